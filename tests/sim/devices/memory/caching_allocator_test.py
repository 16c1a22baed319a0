"""The torch and torch-expandable policies against an allocator written apart from them (caching_allocator.py).

  caching_allocator_test.py SPILLWAY SOURCE_ROOT

Streams: random programs under several settings, generated training steps, and, where they lie beside the checkout, the
histories of public snapshots from an empty cache. Every statistic of torch.cuda.memory_stats() is equal, to the byte.
"""
import gzip
import json
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile

from caching_allocator import MIB, UNLIMITED, CachingAllocator

EXE, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])

# PYTORCH_CUDA_ALLOC_CONF, the same for the emulator, and the device's memory (0: without end).
SETTINGS = [
    ('', {}, 0),
    ('expandable_segments:True', {'expandable': True}, 0),
    ('roundup_power2_divisions:8', {'divisions': 8}, 0),
    ('', {}, 400 * MIB),
    ('expandable_segments:True', {'expandable': True}, 400 * MIB),
    ('max_split_size_mb:32', {'max_split': 32 * MIB}, 500 * MIB),
    ('garbage_collection_threshold:0.5,per_process_memory_fraction:0.75', {'gc_threshold': 0.5, 'fraction': 0.75},
     600 * MIB),
]
STEPS = ['gpt2-xl-1k-h100', 'llama3-8b-8k-h100', 'llama2-70b-chronos-64xa100']


def random_stream(seed, streams=3, events=1500):
    """Allocations and frees over six decades of size; some blocks are used by another stream when they are freed."""
    draw = random.Random(seed)
    rows, live, waiting = [], [], []
    for number in range(1, events):
        choice = draw.random()
        if waiting and choice < 0.1:
            rows.append({**waiting.pop(draw.randrange(len(waiting))), 'action': 'free_completed'})
        elif live and choice < 0.5:
            block = live.pop(draw.randrange(len(live)))
            rows.append({**block, 'action': 'free_requested'})
            if draw.random() < 0.9:
                rows.append({**block, 'action': 'free_completed'})
            else:
                waiting.append(block)
        else:
            sizes = [draw.randint(1, 4096), draw.randint(1, MIB), draw.randint(MIB, 12 * MIB), draw.randint(MIB, 70 * MIB)]
            block = {'addr': number << 40, 'size': draw.choices(sizes, (3, 4, 3, 1))[0],
                     'stream': draw.randrange(streams)}
            live.append(block)
            rows.append({**block, 'action': 'alloc'})
    return [{**row, 'time_us': time} for time, row in enumerate(rows, 1)]


def cold(rows):
    """A history without what it says of blocks from before it, and of the driver."""
    live, kept = set(), []
    for row in rows:
        if row['action'] == 'alloc':
            live.add(row['addr'])
        elif row['action'] not in ('free_requested', 'free_completed') or row['addr'] not in live:
            continue
        elif row['action'] == 'free_completed':
            live.remove(row['addr'])
        kept.append({key: row[key] for key in ('action', 'addr', 'size', 'stream', 'time_us') if key in row})
    return kept


def emulated(rows, settings, memory):
    allocator = CachingAllocator(memory=memory or UNLIMITED, **settings)
    live, waiting = {}, {}
    for row, following in zip(rows, rows[1:] + [{}]):
        address = row['addr']
        if row['action'] == 'alloc':
            live[address] = allocator.malloc(row['size'], row['stream'])
        elif row['action'] == 'free_requested':
            block = live.pop(address)
            done = following.get('action') == 'free_completed' and following['addr'] == address
            if block is None:
                continue
            allocator.free(block, done)
            if not done:
                waiting[address] = block
        elif address in waiting:
            allocator.finish(waiting.pop(address))
    return allocator.statistics()


def replayed(path, config, memory):
    command = [EXE, 'memory', str(path), '--allocator', 'torch', '--format', 'json']
    command += ['--alloc-conf', config] if config else []
    command += ['--capacity', str(memory)] if memory else []
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, 1):  # 1: it does not fit
        sys.exit(f'{" ".join(command)}: {run.stderr}')
    return json.loads(run.stdout)['memory_stats']


def compare(name, rows, folder, settings=SETTINGS[:2]):
    path = folder / 'stream.pickle'
    path.write_bytes(pickle.dumps({'segments': [], 'device_traces': [rows]}))
    faults = []
    for config, known, memory in settings:
        expected, got = emulated(rows, known, memory), replayed(path, config, memory)
        differing = [f'{key}: {got.get(key)}, not {value}' for key, value in expected.items() if got.get(key) != value]
        faults += [f'{name} [{config}] of {memory}: {fault}' for fault in differing[:5]]
        if memory and not expected['num_device_free']:
            faults.append(f'{name} [{config}] of {memory}: nothing was given back to the driver, so nothing is tested')
    return faults


def random_faults(folder):
    faults = []
    for seed in range(4):
        faults += compare(f'random {seed}', random_stream(seed), folder, SETTINGS)
    return faults


def step_faults(folder):
    faults = []
    for step in STEPS:
        snapshot = folder / 'step.pickle'
        subprocess.run([EXE, 'run', str(ROOT / f'cli/scenarios/{step}.json'), '--memory-snapshot', str(snapshot)],
                       capture_output=True, check=False)
        rows = pickle.loads(snapshot.read_bytes())['device_traces'][0]
        requested, completed = (sum(row['action'] == action for row in rows)
                                for action in ('free_requested', 'free_completed'))
        if requested == 0 or requested != completed:  # a viewer would never see the rest go
            faults.append(f'{step}: {requested} frees, {completed} completed')
        faults += compare(step, rows, folder)
    return faults


def snapshot_faults(folder):
    faults = []
    for path in sorted(ROOT.parent.glob('shared/data/memory/*/*.pickle*')):
        if 'mosaic' in str(path):  # made up, under no allocator's rules
            continue
        data = path.read_bytes()
        snapshot = pickle.loads(gzip.decompress(data) if path.suffix == '.gz' else data)
        rows = snapshot['device_traces'][0]
        name = path.parent.name + '/' + path.name
        faults += compare(name, cold(rows), folder)
        faults += recorded_faults(name, snapshot['segments'], rows)
    return faults


def recorded_faults(name, segments, rows):
    """The emulator itself against PyTorch, where a history holds all that ever was reserved."""
    taken, given = (sum(row['size'] for row in rows if row['action'] == action)
                    for action in ('segment_alloc', 'segment_free'))
    if given or taken != sum(segment['total_size'] for segment in segments):
        return []
    reserved = emulated(cold(rows), {}, 0)['reserved_bytes.all.current']
    return [] if reserved == taken else [f'{name}: {reserved} reserved, recorded {taken}']


with tempfile.TemporaryDirectory() as name:
    where = pathlib.Path(name)
    found = random_faults(where) + step_faults(where) + snapshot_faults(where)
for fault in found:
    print(fault)
sys.exit(bool(found))
