#!/usr/bin/env python3
"""`spillway record` from one end to the other over the virtual GPU (tests/virtual_gpu): the recorder's library as it is,
a program whose launches are known (virtual_program.cc), and the times that the GPU's constants give them.

Usage: virtual_recorder_test.py SPILLWAY PROGRAM INJECTION [LIBRARY CUPTI]
CUPTI: the name by which INJECTION asks for CUPTI, which LIBRARY has in it.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

SPILLWAY, PROGRAM, INJECTION = map(os.path.abspath, sys.argv[1:4])
MIB = 1 << 20
CUPTI = {}  # how it is found

# Constants of tests/virtual_gpu/virtual_gpu.h, in microseconds and bytes a microsecond.
LAUNCH_CALL, TRACING, LAUNCH_TO_START, KERNEL_GAP, EVENT_GAP = 2.1, 1.5, 3.3, 0.9, 1.9
TO_DEVICE = 1.3 + 16 * MIB / 55e3
TO_HOST = 1.3 + 8 * MIB / 52e3
MEMORY_KERNEL = 1.7 + 2 * 32 * MIB / 3.0e6
EMPTY_KERNEL, SPIN = 1.2, 250
ROUNDED = 0.0021  # two ends, each to the nanosecond


def run(folder, *arguments, code=0, **environment):
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "SPILLWAY_CUDA_INJECTION": INJECTION, "NO_COLOR": "1", **CUPTI, **environment})
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def close(got, wanted, within=ROUNDED):
    assert abs(got - wanted) <= within, (got, wanted)


def end(row):
    return row["ts"] + row["dur"]


def check_recording(rows):
    by_kind = collections.defaultdict(list)
    for row in rows:
        by_kind[row.get("cat")].append(row)
    kernels = sorted(by_kind["kernel"], key=lambda row: row["ts"])
    copies = sorted(by_kind["gpu_memcpy"], key=lambda row: row["ts"])
    assert [row["name"] for row in copies] == ["Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pinned)"], copies
    assert [row["args"]["bytes"] for row in copies] == [16 * MIB, 8 * MIB]
    assert collections.Counter(row["name"] for row in kernels) == {"memory_kernel": 1, "spin_kernel": 1, "empty_kernel": 20}
    named = {name: [row for row in kernels if row["name"] == name] for name in ("memory_kernel", "spin_kernel", "empty_kernel")}
    memory, spin, empty = named["memory_kernel"][0], named["spin_kernel"][0], named["empty_kernel"]

    # How long each ran, and what lies between them.
    close(copies[0]["dur"], TO_DEVICE)
    close(copies[1]["dur"], TO_HOST)
    close(memory["dur"], MEMORY_KERNEL)
    close(spin["dur"], SPIN)
    for row in empty:
        close(row["dur"], EMPTY_KERNEL)
    close(memory["ts"] - end(copies[0]), 0)  # queued long before
    close(spin["ts"] - end(memory), EVENT_GAP)
    for before, after in zip([memory, *empty], empty):
        close(after["ts"] - end(before), KERNEL_GAP)
    close(copies[1]["ts"] - end(spin), 0)
    first, second = memory["args"]["stream"], spin["args"]["stream"]
    assert first != second and {row["args"]["stream"] for row in empty} == {first}
    assert [row["args"]["stream"] for row in copies] == [first, second]

    # Each has the call that had it run: of its kind, and done before it starts.
    calls = {row["args"]["correlation"]: row for row in by_kind["cuda_runtime"]}
    for row in kernels + copies:
        call = calls[row["args"]["correlation"]]
        assert call["name"] == ("cudaLaunchKernel" if row["cat"] == "kernel" else "cudaMemcpyAsync"), call
        assert end(call) <= row["ts"], (call, row)
    launches = [row for row in by_kind["cuda_runtime"] if row["name"] == "cudaLaunchKernel"]
    assert len(launches) == 22
    for row in launches:
        close(row["dur"], LAUNCH_CALL + TRACING)
    # The device was idle when the first copy was asked for.
    close(copies[0]["ts"] - end(calls[copies[0]["args"]["correlation"]]), LAUNCH_TO_START, 0.3)

    # What waits, and for what.
    syncs = {row["name"]: row for row in by_kind["cuda_sync"]}
    assert set(syncs) == {"Stream Wait Event", "Stream Sync", "Context Sync"}, syncs
    wait = syncs["Stream Wait Event"]["args"]
    assert wait["stream"] == second and wait["wait_on_stream"] == first
    assert calls[wait["wait_on_cuda_event_record_corr_id"]]["name"] == "cudaEventRecord"
    close(end(syncs["Stream Sync"]), end(empty[-1]), 0.3)
    close(end(syncs["Context Sync"]), end(copies[1]), 0.3)
    memory_events = [row["args"] for row in by_kind["cpu_instant_event"]]
    assert [row["Bytes"] for row in memory_events] == [64 * MIB, -64 * MIB], memory_events
    assert [row["Total Allocated"] for row in memory_events] == [64 * MIB, 0]
    begin = calls[copies[0]["args"]["correlation"]]["ts"]
    return end(copies[1]) - begin


def main():
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as loaded:
        if len(sys.argv) > 4:
            os.symlink(os.path.abspath(sys.argv[4]), os.path.join(loaded, sys.argv[5]))
            CUPTI["LD_LIBRARY_PATH"] = loaded
        done = run(folder, SPILLWAY, "record", "--output", "t.json", "--", PROGRAM)
        assert "24 works of the GPU" in done.stderr, done.stderr
        assert os.listdir(folder) == ["t.json"]
        with open(os.path.join(folder, "t.json"), encoding="utf-8") as file:
            text = file.read()
        # Decimals as they are written: a double of microseconds since 1970 has no nanoseconds left.
        rows = json.loads(text, parse_float=lambda word: float(word[-14:]))["traceEvents"]
        seconds = check_recording(rows)

        # Every command reads it; a replay of it takes as long as it did.
        info = json.loads(run(folder, SPILLWAY, "trace", "info", "t.json", "--format", "json").stdout)
        assert set(info["findings"]) <= {"informational_calls"}, info["findings"]
        assert (info["kernels"], info["device_memory_events"], info["peak_allocated_bytes"]) == (22, 2, 64 * MIB), info
        answer = json.loads(run(folder, SPILLWAY, "run", "t.json", "--format", "json").stdout)
        close(answer["fidelity"]["recorded_ns"] * 1e-3, seconds)
        assert abs(answer["step_time_ns"] * 1e-3 / seconds - 1) < 0.01, (answer["step_time_ns"], seconds)

        # Without leave to profile the program runs on, and nothing is left.
        done = run(folder, SPILLWAY, "record", "--output", "u.json", "--", PROGRAM, code=2,
                   VIRTUAL_GPU_FAILS="cuptiActivityRegisterCallbacks:1")
        assert "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" in done.stderr and os.listdir(folder) == ["t.json"], done.stderr
    print("ok")


main()
