"""What the PyTorch at hand can do, found by looking, not by its version's number."""
import inspect

import torch
import torch.profiler


def has_cuda():
    return torch.cuda.is_available()


def has_kineto():
    return bool(torch.profiler.kineto_available())


def execution_trace_observer():
    """The class that writes ExecutionTraces: ExecutionGraphObserver until 2.0; None where there is none."""
    found = getattr(torch.profiler, "ExecutionTraceObserver", None)
    return found or getattr(torch.profiler, "ExecutionGraphObserver", None)


def joins_execution_trace():
    """Whether a profile and an ExecutionTrace of the same steps can be taken together (2.3)."""
    return "execution_trace_observer" in inspect.signature(torch.profiler.profile.__init__).parameters


def memory_history():
    """The function that starts the CUDA allocator's history: begin() until end(); (None, None) where there is none."""
    start = getattr(torch.cuda.memory, "_record_memory_history", None)
    if start is None or not hasattr(torch.cuda.memory, "_dump_snapshot"):
        return None, None
    names = inspect.signature(start).parameters

    def begin():
        if "max_entries" in names:  # 2.1
            start(enabled="all", context=None, stacks="python", max_entries=1_000_000)
        elif "trace_alloc_max_entries" in names:  # 2.0
            start(True, record_context=False, trace_alloc_max_entries=1_000_000)
        else:
            start(True)

    def end():
        if "max_entries" in names:
            start(enabled=None)
        else:
            start(False)

    return begin, end


def has_bfloat16_products(device):
    return device.type == "cpu" or torch.cuda.is_bf16_supported()


def capabilities():
    """name -> True, or the reason why not, as a sentence."""
    found = {}
    found["cuda"] = has_cuda() or "PyTorch sees no CUDA device"
    found["kineto"] = has_kineto() or "this build has no libkineto: operators and memory come from the event tree"
    observer = execution_trace_observer()
    found["execution_trace"] = observer is not None or "this version has no observer of execution traces"
    found["joined_execution_trace"] = joins_execution_trace() or (
        "this version cannot take a profile and an execution trace of the same steps together (2.3 can)")
    begin, _ = memory_history()
    if not has_cuda():
        found["memory_snapshot"] = "PyTorch sees no CUDA device"
    else:
        found["memory_snapshot"] = begin is not None or "this version cannot record the CUDA allocator's history (2.0)"
    found["saved_tensors_hooks"] = hasattr(torch.autograd.graph, "saved_tensors_hooks") or (
        "this version has no hooks on saved tensors (1.11)")
    found["allocator_settings"] = has_cuda() or "PyTorch sees no CUDA device: settings are set and read by nobody"
    return found
