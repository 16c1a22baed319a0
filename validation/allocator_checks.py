#!/usr/bin/env python3
"""Compares PyTorch's caching allocator on a GPU with spillway's model of it, rule by rule.

    validation/allocator_checks.py record OUT_FOLDER            needs PyTorch and a GPU
    validation/allocator_checks.py compare OUT_FOLDER [--spillway PROGRAM] [--output FILE.json]

Each check is a program of allocations and frees, run by a process of its own with its settings, whose history PyTorch
records from the first allocation on (NAME.pickle), with torch.cuda.memory_stats() of the end (NAME.json). `compare` has
`spillway memory` serve the same requests: every block must lie where PyTorch put it, every segment must be asked for
when PyTorch asked for it, and every statistic must be the same. Exit code 1 when one is not.
"""
import argparse
import json
import os
import random
import subprocess
import sys

MIB = 1 << 20
# name: settings, bytes the process may take (0: all), what is checked
CHECKS = {
    "plain": ("", 0, "rounding, pools, best fit, splitting, merging"),
    "expandable": ("expandable_segments:True", 0, "ranges that grow, pages that are mapped and unmapped"),
    "expandable-full": ("expandable_segments:True", 3072 * MIB, "unmapping of pages under pressure"),
    "streams": ("", 0, "blocks of several streams, frees that wait for events"),
    "retry": ("", 3072 * MIB, "release of cached blocks and retry before running out of memory"),
    "max-split": ("max_split_size_mb:64", 3072 * MIB, "blocks that are not split, oversize segments"),
    "gc": ("garbage_collection_threshold:0.6", 3072 * MIB, "cached blocks given back by age"),
    "roundup": ("roundup_power2_divisions:4", 0, "sizes rounded to parts of powers of two"),
}


def serve(torch, name, seed=7):
    """Random requests, small and large, with lives that overlap; what does not fit is caught."""
    choice, held = random.Random(seed), []
    streams = [torch.cuda.current_stream()]
    if name == "streams":
        streams += [torch.cuda.Stream() for _ in range(2)]
    limited = CHECKS[name][1] > 0
    for step in range(3000):
        stream = choice.choice(streams)
        if held and (choice.random() < 0.48 or len(held) > 120):
            tensor, made_on = held.pop(choice.randrange(len(held)))
            if stream is not made_on:
                tensor.record_stream(stream)
            del tensor
            continue
        scale = choice.choice([512, 64 << 10, MIB, 4 * MIB, 24 * MIB, (200 if limited else 60) * MIB])
        size = choice.randrange(1, 2 * scale)
        try:
            with torch.cuda.stream(stream):
                held.append((torch.empty(size, dtype=torch.uint8, device="cuda"), stream))
        except torch.cuda.OutOfMemoryError:
            for _ in range(len(held) // 2):
                held.pop(choice.randrange(len(held)))
        if limited and step % 500 == 499:
            held.clear()
    torch.cuda.synchronize()


def record_one(name, folder):
    import torch
    settings, capacity, _ = CHECKS[name]
    torch.cuda.init()
    total = torch.cuda.mem_get_info()[1]
    if capacity:
        torch.cuda.set_per_process_memory_fraction(capacity / total)
        capacity = int(capacity / total * total)  # as the allocator computes it
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=1_000_000)
    serve(torch, name)
    stats = torch.cuda.memory_stats()
    torch.cuda.memory._dump_snapshot(os.path.join(folder, name + ".pickle"))
    torch.cuda.memory._record_memory_history(enabled=None)
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as out:
        json.dump({"settings": settings, "capacity": capacity, "torch": torch.__version__, "stats": stats}, out,
                  indent=1)


def record(folder):
    try:
        import torch
        seen = torch.cuda.is_available()
    except ImportError:
        sys.exit("allocator_checks.py: PyTorch is not here")
    if not seen:
        sys.exit("allocator_checks.py: PyTorch sees no GPU here")
    os.makedirs(folder, exist_ok=True)
    failed = []
    for name, (settings, _, _) in CHECKS.items():
        if os.path.exists(os.path.join(folder, name + ".json")):
            continue
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=settings)
        if not settings:
            environment.pop("PYTORCH_CUDA_ALLOC_CONF")
        done = subprocess.run([sys.executable, __file__, "one", folder, "--check", name], env=environment, check=False)
        if done.returncode != 0:
            failed.append(name)
    if failed:
        sys.exit("allocator_checks.py: not recorded: " + ", ".join(failed))


def compare_one(folder, name, program):
    """What differs, in words; empty when the check is confirmed."""
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        said = json.load(file)
    is_expandable = "expandable_segments:True" in said["settings"]
    command = [program, "memory", os.path.join(folder, name + ".pickle"), "--format", "json", "--allocator",
               "torch-expandable" if is_expandable else "torch"]
    settings = [said["settings"]] if said["settings"] else []
    if said["capacity"]:  # half of a device twice as large: garbage collection wants a share below 1
        command += ["--capacity", str(2 * said["capacity"])]
        settings.append("per_process_memory_fraction:0.5")
    if settings:
        command += ["--alloc-conf", ",".join(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        return [done.stderr.strip() or f"spillway ended with code {done.returncode}"]
    answer = json.loads(done.stdout)
    differences = []
    for count in ("addresses", "segments", "final_blocks"):
        if answer[count]["matched"] != answer[count]["total"]:
            differences.append(f"{count}: {answer[count]['matched']} of {answer[count]['total']} as recorded")
    for key, value in sorted(answer["memory_stats"].items()):
        if key in said["stats"] and said["stats"][key] != value:
            differences.append(f"{key}: {said['stats'][key]} in PyTorch, {value} here")
    return differences


def compare(folder, program, output):
    names = [name for name in CHECKS if os.path.exists(os.path.join(folder, name + ".json"))]
    if not names:
        sys.exit(f"allocator_checks.py: nothing was recorded in {folder}")
    answers = {name: compare_one(folder, name, program) for name in names}
    for name, differences in answers.items():
        print(f"{name}: {'confirmed' if not differences else 'DIFFERS'} ({CHECKS[name][2]})")
        for line in differences[:20]:
            print(f"  {line}")
    if output:
        with open(output, "w", encoding="utf-8") as out:
            json.dump({name: {"confirmed": not differences, "differences": differences}
                       for name, differences in answers.items()}, out, indent=1)
    return any(answers.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare", "one"])
    parser.add_argument("folder", metavar="OUT_FOLDER")
    parser.add_argument("--check", choices=list(CHECKS))
    parser.add_argument("--spillway", default="build/cli/spillway", metavar="PROGRAM")
    parser.add_argument("--output", metavar="FILE.json")
    arguments = parser.parse_args()
    if arguments.action == "one":
        record_one(arguments.check, arguments.folder)
    elif arguments.action == "record":
        record(arguments.folder)
    else:
        sys.exit(1 if compare(arguments.folder, arguments.spillway, arguments.output) else 0)


if __name__ == "__main__":
    main()
