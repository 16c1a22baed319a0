"""What PyTorch's profiler collected, as rows of Kineto's Chrome trace, for builds without libkineto (Debian's): their
export_chrome_trace() leaves out shapes and memory events, the event tree has both. Nothing is added but the order of
events."""
import torch


def _walk(events):
    for event in events:
        yield event
        yield from _walk(event.children)


def _operator_row(event, link):
    annotation = str(event.extra_fields.scope).endswith("USER_SCOPE")
    arguments = {"External id": event.correlation_id}
    if not annotation:
        inputs = event.extra_fields.inputs
        arguments.update({"Input Dims": inputs.shapes, "Input type": inputs.dtypes})
        if event.extra_fields.sequence_number >= 0:
            arguments.update({"Fwd thread id": link.get(event.correlation_id, 0),
                              "Sequence number": event.extra_fields.sequence_number})
    return {"ph": "X", "cat": "user_annotation" if annotation else "cpu_op", "name": event.name,
            "dur": event.duration_time_ns / 1000, "args": arguments}


def _memory_row(event):
    what = event.extra_fields
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]",
            "args": {"Total Reserved": what.total_reserved, "Total Allocated": what.total_allocated,
                     "Bytes": what.alloc_size, "Addr": what.ptr, "Device Id": -1, "Device Type": 0}}


def chrome_trace(results):
    """`results`: profile.profiler.kineto_results, taken with record_shapes and profile_memory."""
    link = {event.correlation_id(): event.fwd_thread_id() for event in results.events()}
    events = sorted(_walk(results.experimental_event_tree()), key=lambda event: event.start_time_ns)
    origin = events[0].start_time_ns
    rows = []
    for index, event in enumerate(events):
        kind = type(event.extra_fields).__name__
        if kind not in ("_ExtraFields_TorchOp", "_ExtraFields_Allocation"):
            continue
        row = _memory_row(event) if kind == "_ExtraFields_Allocation" else _operator_row(event, link)
        row.update(pid=1, tid=event.start_tid, ts=(event.start_time_ns - origin) / 1000)
        row["args"]["Ev Idx"] = index
        rows.append(row)
    return {"schemaVersion": 1, "record_shapes": 1, "profile_memory": 1, "with_stack": 0, "deviceProperties": [],
            "displayTimeUnit": "ms", "baseTimeNanoseconds": 0, "torch_version": torch.__version__,
            "traceEvents": rows}
