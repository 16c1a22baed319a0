#!/usr/bin/env python3
"""What a capture leaves open is kept and said, and its diagnosis names what people can change.

Captures are written here, with known gaps; a memory snapshot is the bundled one that ran out.

Usage: captures_test.py SPILLWAY SOURCE_ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SPILLWAY, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
FAULTS = []


def expect(condition, what):
    if not condition:
        FAULTS.append(what)


def run(*arguments):
    done = subprocess.run([SPILLWAY, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{arguments}: {done.returncode}\n{done.stderr}")
    return done


def document(*arguments):
    return json.loads(run(*arguments, "--format", "json").stdout)


class Capture:
    """Kineto events, times in microseconds."""

    def __init__(self):
        self.events = []

    def add(self, category, name, start, length, thread=1, **arguments):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 1 if category != "kernel" else 0,
                            "tid": thread, "ts": 1_000_000 + start, "dur": length, "args": arguments})

    def launch(self, correlation, start, name="cudaLaunchKernel", length=4):
        self.add("cuda_runtime", name, start, length, correlation=correlation)

    def kernel(self, correlation, start, length, name="gemm", stream=7):
        self.add("kernel", name, start, length, thread=stream, correlation=correlation, stream=stream, device=0)

    def write(self, folder, name):
        path = pathlib.Path(folder, name)
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": self.events}))
        return path


def steady(capture, begin, count, first):
    """`count` launches 10 us apart, each kernel 5 us behind its launch and 4 us long."""
    for k in range(count):
        capture.launch(first + k, begin + 10 * k)
        capture.kernel(first + k, begin + 10 * k + 5, 4)


def a_gap_that_nothing_explains(folder):
    """Recorded: 200 us of work, 63 ms of nothing before a kernel that was launched long ago, 200 us of work."""
    capture = Capture()
    steady(capture, 0, 20, 100)
    capture.launch(200, 200)
    capture.kernel(200, 63_200, 50, "late_kernel")
    capture.launch(201, 210, "cudaDeviceSynchronize", 63_045)
    steady(capture, 63_300, 20, 300)
    path = capture.write(folder, "gap.json")
    own = document("run", path)
    recorded = 63_300 + 190 + 9
    expect(abs(own["fidelity"]["recorded_ns"] - recorded * 1000) < 1000, f"gap: recorded {own['fidelity']}")
    expect(abs(own["fidelity"]["relative_error"]) < 0.01, f"gap: {own['fidelity']}")
    row = own["kept_idle"][0]
    expect(row["name"] == "unexplained gap before late_kernel", f"gap: {row}")
    expect(abs(row["on_critical_path_ns"] - 63_000_000) < 100_000, f"gap: {row}")
    expect(own["unexplained_ns"] > 0.98 * own["replayed_ns"], "gap: most of the step rests on it")
    expect("idle time that nothing in the capture explains" in own["warnings"][0], f"gap: {own['warnings']}")
    first = run("run", path).stderr.splitlines()[0]
    expect("nothing in the capture explains" in first, f"gap, first line: {first}")
    faster = document("run", path, "--set", "what_if.gpu=4")
    expect(faster["step_time_ns"] > 63_000_000, "a faster GPU doesn't shorten what nothing explains")
    expect(faster["unexplained_ns"] == own["unexplained_ns"], "a what-if says how much rests on it")
    expect(abs(faster["fidelity"]["relative_error"]) < 0.01, "a what-if's base is judged on its own timings")
    for form in ("gap.spillway", "gap.spillway.json"):
        run("trace", "convert", path, pathlib.Path(folder, form))
        again = document("run", pathlib.Path(folder, form))
        expect(again["fingerprint"] == own["fingerprint"] and again["kept_idle"] == own["kept_idle"], f"gap as {form}")
    report = run("report", "step", path, "--output", pathlib.Path(folder, "gap.html"))
    expect("nothing in the capture explains" in report.stderr.splitlines()[0], f"gap, report: {report.stderr}")
    page = pathlib.Path(folder, "gap.html").read_text()
    expect("unexplained gap before late_kernel" in page and "Where the recorded time went" in page, "gap: in the report")
    row = run("run", path, "--format", "csv").stdout.splitlines()
    expect(row[0].endswith("replay_error,unexplained_ns"), f"CSV: {row[0]}")
    expect(row[1].split(",")[-1] == str(own["unexplained_ns"]), f"CSV: {row[1]}")


def a_capture_that_explains_itself(folder):
    capture = Capture()
    steady(capture, 0, 200, 100)
    own = document("run", capture.write(folder, "sound.json"))
    expect(own["kept_idle"] == [] and own["unexplained_ns"] == 0, f"sound: {own['kept_idle']}")
    expect(abs(own["fidelity"]["relative_error"]) < 0.01, f"sound: {own['fidelity']}")
    expect(own["fidelity"]["cause"] == "", f"sound: {own['fidelity']}")


def a_graph_launch_with_many_kernels(folder):
    """One cudaGraphLaunch, 50 kernels on one correlation id, 30 ms until the first begins."""
    capture = Capture()
    steady(capture, 0, 20, 100)
    capture.launch(500, 200, "cudaGraphLaunch", 40)
    for k in range(50):
        capture.kernel(500, 30_200 + 20 * k, 19, f"node_{k % 3}")
    own = document("run", capture.write(folder, "graph.json"))
    expect(abs(own["fidelity"]["relative_error"]) < 0.01, f"graph: {own['fidelity']}")
    expect("CUDA graphs: 1 launches of 50 works" in own["fidelity"]["cause"], f"graph: {own['fidelity']}")


def kernels_without_launches(folder):
    """A capture of the GPU alone: what places its bursts is their recorded time, which is no explanation."""
    capture = Capture()
    for burst in range(5):
        for k in range(20):
            capture.kernel(0, 10_000 * burst + 10 * k, 9)
    path = capture.write(folder, "kernels.json")
    own = document("run", path)
    expect(abs(own["fidelity"]["relative_error"]) < 0.01, f"kernels: {own['fidelity']}")
    expect(own["fidelity"]["unexplained_fraction"] > 0.9, f"kernels: {own['fidelity']}")
    expect("missing launches: 100 of 100 works" in own["fidelity"]["cause"], f"kernels: {own['fidelity']}")
    expect("missing launches" in run("run", path).stderr.splitlines()[0], "kernels: not in the first line")


def a_wait_for_kernels_nobody_recorded(folder):
    """The host synchronises for 40 ms; the capture shows 4 us of work for it."""
    capture = Capture()
    steady(capture, 0, 20, 100)
    capture.launch(200, 200)
    capture.launch(201, 210)
    capture.launch(202, 220, "cudaStreamSynchronize", 40_000)
    steady(capture, 40_300, 20, 300)
    own = document("run", capture.write(folder, "missing.json"))
    expect(abs(own["fidelity"]["relative_error"]) < 0.01, f"missing: {own['fidelity']}")
    expect(own["kept_idle"][0]["name"] == "unexplained wait in cudaStreamSynchronize", f"missing: {own['kept_idle']}")
    expect(own["kept_idle"][0]["in_host_call"], "missing: it is a call's")
    expect("cudaStreamSynchronize for GPU work that was not recorded" in own["fidelity"]["cause"],
           f"missing: {own['fidelity']}")


def a_data_loader(folder):
    """Two steps of 12 ms: 5 ms of the loader, 2 ms of item(), launches, Python between them."""
    capture = Capture()
    for step in range(2):
        at = 12_000 * step
        capture.add("user_annotation", f"ProfilerStep#{step}", at, 12_000)
        capture.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 5_000)
        capture.add("cpu_op", "aten::mm", at + 5_100, 1_000)
        for k in range(100):
            correlation = 1 + 1000 * step + k
            capture.launch(correlation, at + 5_100 + 10 * k)
            capture.kernel(correlation, at + 5_105 + 10 * k, 4, "triton_poi_fused_add_native_layer_norm_5")
        capture.add("cpu_op", "aten::item", at + 6_200, 2_000)
        capture.add("python_function", "train.py(12): main", at, 12_000)
        capture.add("python_function", "nn.Module: Linear_0", at + 5_050, 1_100)
    path = capture.write(folder, "loader.json")
    found = document("explain", path)["diagnosis"]
    expect(found["recorded_ns"] == 24_000_000, f"loader: {found['recorded_ns']}")
    host = {row["name"]: row for row in found["host"]}
    loader = host["DataLoader: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"]
    expect(loader["time_ns"] == loader["gpu_idle_ns"] == 10_000_000 and loader["count"] == 2, f"loader: {loader}")
    expect(host["item(): aten::item"]["time_ns"] == 4_000_000, "loader: item()")
    expect("between operators (Python)" in host, "loader: what is left is Python's")
    expect(found["operators"][0]["name"] == "torch.compile: add, native_layer_norm", f"loader: {found['operators']}")
    expect(found["modules"][0]["name"] == "nn.Module: Linear_0" and found["modules"][0]["count"] == 200,
           f"loader: {found['modules']}")
    expect(any(row["name"].startswith("train.py(12)") for row in found["python_frames"]), "loader: frames")
    best = {row["what"]: row["gain_fraction"] for row in found["reliefs"]}
    gain = best["without the host's time in DataLoader: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"]
    expect(abs(gain - 5 / 12) < 0.02, f"loader: without it a step takes 7 of 12 ms, said {gain}")
    expect(found["launch_bound"] and found["launch_bound"][0]["works"] >= 99, f"loader: {found['launch_bound']}")
    short = document("run", path)["diagnosis"]
    expect({key: short[key] for key in ("steps", "recorded_ns", "active_ns", "gpu_busy_ns", "launch_bound_ns")} ==
           {key: found[key] for key in ("steps", "recorded_ns", "active_ns", "gpu_busy_ns", "launch_bound_ns")},
           f"loader: run's {short}")
    for rows in ("host", "kernels", "operators"):
        expect(short[rows] == found[rows][:3], f"loader: run's {rows}: {short[rows]}")
    expect("reliefs" not in short and "modules" not in short, "loader: run says nothing of what it didn't work out")
    expect("10.0 ms  41.7 %  DataLoader" in run("run", path).stdout, "loader: in the text of run")
    # GPU work of the last step that ends behind its annotation.
    capture.launch(9000, 23_990)
    capture.kernel(9000, 24_500, 500)
    late = document("run", capture.write(folder, "late.json"))["diagnosis"]
    expect(late["recorded_ns"] == 24_500_000, f"late work: {late['recorded_ns']}")
    busy_on_the_host = 2 * (5_000 + 1_000 + 2_000) + 4
    expect(late["active_ns"] == (busy_on_the_host + 500) * 1000, f"late work: {late['active_ns']}")
    text = run("explain", path, "--stacks", pathlib.Path(folder, "folded.txt")).stdout
    expect("DataLoader" in text and "10.0 ms" in text, "loader: in the text")
    folded = pathlib.Path(folder, "folded.txt").read_text().splitlines()
    expect(any(line.endswith("Iter.__next__ 10000") for line in folded), f"loader: {folded}")


def a_snapshot_that_ran_out(folder):
    snapshot = ROOT / "traces" / "data" / "ran-out" / "snapshot.pickle"
    written = pathlib.Path(folder, "again.pickle")
    subprocess.run([sys.executable, ROOT / "traces" / "pytorch" / "ran_out_by_hand.py", written], check=True)
    stacks, treemap = pathlib.Path(folder, "stacks.txt"), pathlib.Path(folder, "map.svg")
    found = document("memory", written, "--explain", "--stacks", stacks, "--treemap", treemap)["diagnosis"]
    expect(found == document("explain", snapshot)["diagnosis"], "the bundled snapshot is not what its script writes")
    mib = 1 << 20
    alive = 12 * (96 + 192 + 128 + 56) * mib + 440 * mib
    expect(found["alive_bytes"] == alive, f"ran out: alive {found['alive_bytes']}, {alive}")
    expect(sum(row["bytes"] for row in found["by_line"]) == alive, "ran out: by line")
    expect(sum(row["bytes"] for row in found["by_phase"]) == alive, "ran out: by phase")
    top = found["by_line"][0]
    expect(top["name"] == "train.py:64 build" and top["bytes"] == 12 * 192 * mib, f"ran out: {top}")
    modules = {row["name"]: row["bytes"] for row in found["by_module"]}
    expect(modules["model.py:22 forward"] == 12 * 128 * mib, f"ran out: {modules}")
    why = found["ran_out"]
    expect(why["asked_bytes"] == 1024 * mib and why["asked_at"] == "loss.py:9 cross_entropy", f"ran out: {why}")
    expect(why["device_free_bytes"] == 900 * mib and why["allocated_bytes"] == alive, f"ran out: {why}")
    others = {row["allocator"]: row["serves"] for row in why["others"]}
    expect(others["torch-expandable"] and others["ideal"] and not others["gmlake"], f"ran out: {others}")
    expect(why["largest_free_block_bytes"] == 200 * mib and why["cached_bytes"] >= 200 * mib, f"ran out: {why}")
    lines = stacks.read_text().splitlines()
    expect(sum(int(line.rsplit(" ", 1)[1]) for line in lines) == alive, f"ran out: {lines}")
    expect(lines[0].startswith("train.py:88 main;"), f"ran out: outermost first: {lines[0]}")
    expect("train.py" in treemap.read_text() and "line 64 build" in treemap.read_text(), "ran out: treemap")


def steps_of(capture, pause, names, memory=False):
    """Two steps of 40 launches, `pause` us apart, of kernels of 4 us, and a wait for them all; a block a kernel."""
    for step in range(2):
        begin = step * 100 * pause
        capture.add("user_annotation", f"ProfilerStep#{step + 1}", begin, 42 * pause)
        for k in range(40):
            correlation = 1000 * step + k + 1
            capture.launch(correlation, begin + pause * k + 2)
            capture.kernel(correlation, begin + pause * k + 5, 4, names[k % len(names)])
            for change in ((1 << 20, k), (-1 << 20, k + 1)) if memory else ():
                if change[0] > 0 or k % 2:
                    capture.events.append({"ph": "i", "name": "[memory]", "pid": 1, "tid": 1,
                                           "ts": 1_000_000 + begin + pause * k + (1 if change[0] > 0 else 7),
                                           "args": {"Addr": 4096 + (k << 21), "Bytes": change[0], "Device Type": 1,
                                                    "Device Id": 0, "Total Allocated": 1, "Total Reserved": 1 << 30}})
        capture.launch(0, begin + pause * 40 + 2, "cudaDeviceSynchronize", 6)


def a_recording(folder):
    """Full steps take 10 us a launch more than light ones, and light ones 8 us more than without a profiler."""
    recorded = pathlib.Path(folder, "recorded")
    recorded.mkdir()
    for name, pause, names, memory in (("steps.json", 30, ("a", "b"), True), ("light.json", 20, ("a", "b"), False)):
        capture = Capture()
        steps_of(capture, pause, names, memory)
        capture.write(recorded, name)
    alone = document("run", recorded / "steps.json")
    light = document("run", recorded / "light.json")
    expect(light["verdict"] == "unknown", f"recording: the light trace alone {light['verdict']}")
    joined = document("run", recorded)
    expect(joined["step_time_ns"] == light["step_time_ns"], f"recording: {joined['step_time_ns']} {light['step_time_ns']}")
    expect(joined["peak_allocated_bytes"] == alone["peak_allocated_bytes"] > 0, "recording: the full trace's memory")
    unprofiled = [480_000, 470_000, 490_000]
    manifest = {"schema": "spillway-recording", "version": 1, "complete": True, "machine": {"torch": "2.11"},
                "files": {"kineto": {"name": "steps.json.gz", "bytes": 1}},
                "phases": {"unprofiled": {"step_times_ns": unprofiled, "median_ns": 480_000}}}
    (recorded / "manifest.json").write_text(json.dumps(manifest))
    told = document("run", recorded)
    # A period has the pause between two steps too, of 58 launches' time; it is shortened alike.
    expect(abs(told["step_time_ns"] - 480_000) < 0.01 * 480_000, f"recording: step {told['step_time_ns']}")
    expect(told["fidelity"]["unprofiled_step_ns"] == 480_000 and abs(told["fidelity"]["unprofiled_error"]) < 0.01,
           f"recording: {told['fidelity']}")
    expect(any("profiler_host_time" in warning for warning in told["warnings"]), f"recording: {told['warnings']}")
    expect(document("trace", "info", recorded)["steps"] == document("trace", "info", recorded / "light.json")["steps"],
           "recording: info has the light trace's steps")
    run("trace", "check", recorded), run("explain", recorded)
    # Without the light trace the full one's times are shortened as far; another program's light trace isn't taken.
    (recorded / "light.json").unlink()
    full = document("run", recorded)
    expect(abs(full["step_time_ns"] - 480_000) < 0.01 * 480_000, f"recording: full alone {full['step_time_ns']}")
    expect(any("not_in_recording" in warning for warning in full["warnings"]), f"recording: {full['warnings']}")
    other = Capture()
    steps_of(other, 20, ("c", "d"))
    other.write(recorded, "light.json")
    expect(any("light_not_joined" in warning for warning in document("run", recorded)["warnings"]),
           "recording: another program's light trace")
    # The full profile alone says that its times hold the profiler.
    expect("the times hold the profiler" in alone["warnings"][0], f"recording: {alone['warnings']}")
    expect(alone["fidelity"]["without_profiler_ns"] < 0.7 * alone["step_time_ns"], f"recording: {alone['fidelity']}")
    (recorded / "manifest.json").write_text('{"schema": "spillway-recording", "version": 1, "phases": 3}')
    done = subprocess.run([SPILLWAY, "run", recorded], capture_output=True, text=True, check=False)
    expect(done.returncode == 2 and "/phases" in done.stderr, f"recording: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for check in (a_gap_that_nothing_explains, a_capture_that_explains_itself, a_graph_launch_with_many_kernels,
                      kernels_without_launches,
                      a_wait_for_kernels_nobody_recorded, a_data_loader, a_snapshot_that_ran_out, a_recording):
            check(folder)
    print(*FAULTS, sep="\n")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
