"""record(): steps of a training program as PyTorch's own tools see them, beside the same steps unprofiled."""
import contextlib
import gzip
import json
import os
import platform
import re
import resource
import statistics
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from ..errors import InputError
from . import capability, event_tree
from .layers import find_layers

MANIFEST = "manifest.json"
LIGHT, STEPS, GRAPH, SNAPSHOT = "light.json.gz", "steps.json.gz", "graph.json.gz", "memory.pickle"


def phase(name):
    """Marks a part of the step for spillway's readers: forward, backward or optimizer."""
    return record_function(f"## {name} ##")


def record(step=None, folder=None, *, setup=None, model=None, layers=None, device=None, warm_up=3, unprofiled=10,
           light=2, full=2, about=None):
    """Records what `step()` does into `folder`, which is made; returns the manifest, which is written there as well.

    step        a function without arguments that trains one step
    setup       instead of step: makes the model and returns (step, model), or step. It runs while the CUDA allocator's
                history is recorded, so the snapshot begins with the first allocation
    model       its layers are named in the traces; layers: as of spillway.torch.apply
    warm_up     steps before all others; unprofiled, light, full: steps of each kind, run in this order. Light: kernels
                and operators alone; full: shapes, memory and uses too
    about       dict that the manifest keeps as it is

    The device is synchronised at both ends of every step. An exception of the step's own goes through; what was
    recorded until then stays, under a manifest with "complete": false.
    """
    if folder is None or (step is None) == (setup is None):
        raise InputError("record() takes a step or a setup, and a folder to write into")
    if warm_up < 1 or min(unprofiled, light, full) < 0:
        raise InputError("record() takes at least one warm_up step, and no negative counts")
    folder = os.fspath(folder)
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise InputError(f"{folder} exists already; name a new folder")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made ({error.strerror}); name another folder") from None
    recording = _Recording(folder, device, about)
    recording.run(step, setup, model, layers, warm_up, unprofiled, light, full)
    return recording.manifest


class _Recording:
    def __init__(self, folder, device, about):
        self.folder = folder
        self.device = torch.device(device) if device is not None else torch.device(
            "cuda" if capability.has_cuda() else "cpu")
        self.is_cuda = self.device.type == "cuda"
        self.steps = 0
        self.manifest = {"schema": "spillway-recording", "version": 1, "complete": False, "about": about or {},
                         "machine": _machine(self.device), "files": {}, "missing": {}, "phases": {}}
        for name, found in capability.capabilities().items():
            if found is not True:
                self.manifest["missing"][name] = found

    def run(self, step, setup, model, layers, warm_up, unprofiled, light, full):
        begin, end = capability.memory_history() if self.is_cuda else (None, None)
        if begin is not None:
            self.manifest["snapshot_from_first_allocation"] = not torch.cuda.is_initialized() or (
                torch.cuda.memory_reserved() == 0)
            begin()
        try:
            if setup is not None:
                made = setup()
                step, model = made if isinstance(made, tuple) else (made, model)
            self._phase("warm_up", step, warm_up)
            if begin is not None:
                torch.cuda.memory._dump_snapshot(self._path(SNAPSHOT))
                self._wrote("memory_snapshot", SNAPSHOT, "the allocator's history from set-up to the last warm-up step")
        finally:
            if end is not None:
                end()
        self._phase("unprofiled", step, unprofiled)
        with _named_layers(model, layers):
            if light:
                self._profiled("light", step, light, LIGHT)
            if full:
                self._profiled("full", step, full, STEPS)
            if full and not capability.joins_execution_trace():
                self._execution_trace_alone(step)
        self.manifest["complete"] = True
        self._flush()

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _wrote(self, key, name, about):
        self.manifest["files"][key] = {"name": name, "bytes": os.path.getsize(self._path(name)), "about": about}

    def _flush(self):
        part = self._path(MANIFEST + ".part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.manifest, file, indent=1)
            file.write("\n")
        os.replace(part, self._path(MANIFEST))

    def _synchronize(self):
        if self.is_cuda:
            torch.cuda.synchronize(self.device)

    def _phase(self, name, step, count, annotate=False):
        """Runs steps, synchronised at their ends, and notes their times and memory."""
        if self.is_cuda and torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats(self.device)
        times = []
        for _ in range(count):
            self._synchronize()
            begin = time.perf_counter_ns()
            with record_function(f"ProfilerStep#{self.steps}") if annotate else contextlib.nullcontext():
                step()
                self._synchronize()
            times.append(time.perf_counter_ns() - begin)
            self.steps += 1
        self.manifest["phases"][name] = {"step_times_ns": times, "median_ns": statistics.median(times) if times else None,
                                         "memory": self._memory()}
        self._flush()

    def _memory(self):
        if not self.is_cuda:
            return {"peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
        found = {"peak_allocated_bytes": torch.cuda.max_memory_allocated(self.device),
                 "peak_reserved_bytes": torch.cuda.max_memory_reserved(self.device),
                 "statistics": dict(torch.cuda.memory_stats(self.device))}
        with contextlib.suppress(Exception):  # the driver's view: 1.13 has it, some containers don't
            free, total = torch.cuda.mem_get_info(self.device)
            found.update(device_free_bytes=free, device_total_bytes=total)
        return found

    def _profiled(self, name, step, count, file):
        is_full = name == "full"
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self.is_cuda else [])
        keywords = {"record_shapes": is_full, "profile_memory": is_full}
        observer = None
        if is_full and capability.joins_execution_trace():
            observer = capability.execution_trace_observer()()
            observer.register_callback(self._path("graph.part"))
            keywords["execution_trace_observer"] = observer
        with profile(activities=activities, **keywords) as profiler:
            self._phase(name, step, count, annotate=True)
        self._write_trace(profiler, file, is_full)
        if observer is not None:
            observer.unregister_callback()
            self._finish_graph()
        self._flush()

    def _write_trace(self, profiler, file, is_full):
        if capability.has_kineto():
            part = self._path("trace.part.json")
            profiler.export_chrome_trace(part)
            with open(part, encoding="utf-8") as trace:
                _write_compressed(self._path(file), trace.read())
            os.unlink(part)
        elif is_full:
            document = event_tree.chrome_trace(profiler.profiler.kineto_results)
            _write_compressed(self._path(file), json.dumps(document, separators=(",", ":")))
        else:
            self.manifest["missing"][file] = "without libkineto only the full profile has a tree of events"
            return
        self._wrote("kineto" if is_full else "kineto_light", file,
                    "steps with shapes, memory and annotations" if is_full else "the same steps, lightly profiled")

    def _execution_trace_alone(self, step):
        """One step more, under the observer of older versions."""
        observer_class = capability.execution_trace_observer()
        if observer_class is None:
            return
        observer = observer_class()
        observer.register_callback(self._path("graph.part"))
        observer.start()
        step()
        self._synchronize()
        observer.stop()
        observer.unregister_callback()
        self._finish_graph()

    def _finish_graph(self):
        part = self._path("graph.part")
        with open(part, encoding="utf-8") as graph:
            # Process and clock say nothing of the step.
            text = re.sub(r'"pid": \d+, "time": "[^"]*"', '"pid": 1, "time": ""', graph.read(), count=1)
        _write_compressed(self._path(GRAPH), text)
        os.unlink(part)
        joined = "of the fully profiled steps" if capability.joins_execution_trace() else "of one more step"
        self._wrote("execution_trace", GRAPH, f"tensors and their uses, {joined}")


@contextlib.contextmanager
def _named_layers(model, layers):
    """Layers' forwards stand in the traces by their index."""
    hooks, open_layers = [], []
    if model is not None:
        try:
            found = find_layers(model, layers)
        except InputError:
            if layers is not None:
                raise
            found = []
        for index, (_, block) in enumerate(found):
            def enter(*_, index=index):
                mark = record_function(f"## layer {index} ##")
                mark.__enter__()
                open_layers.append(mark)

            def leave(*_):
                open_layers.pop().__exit__(None, None, None)

            hooks += [block.register_forward_pre_hook(enter), block.register_forward_hook(leave)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _machine(device):
    found = {"torch": torch.__version__, "python": platform.python_version(), "device": device.type,
             "cuda": torch.version.cuda, "threads": torch.get_num_threads(),
             "allocator_settings": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
             "float32_matmul_precision": torch.get_float32_matmul_precision()}
    if "transformers" in sys.modules:
        found["transformers"] = getattr(sys.modules["transformers"], "__version__", "")
    if device.type == "cuda":
        # Asked for without beginning the allocator.
        properties = torch.cuda.get_device_properties(device)
        found.update(name=properties.name, total_memory_bytes=properties.total_memory,
                     multiprocessors=properties.multi_processor_count,
                     compute_capability=[properties.major, properties.minor], cudnn=torch.backends.cudnn.version())
    return found


def _write_compressed(path, text):
    with open(path + ".part", "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as out:
        out.write(text.encode())
    os.replace(path + ".part", path)
