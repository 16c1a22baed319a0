#!/usr/bin/env python3
"""One document, five faces: the verdict's word and sentence of 40 files (scenarios, captures, snapshots, 20 of them with
findings) are equal in the terminal, in JSON, in the page, in Python, and in the window as a screen reader reads it.

Usage: one_verdict_test.py SPILLWAY VERDICTS_OF_FILES SOURCE_ROOT
"""
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

PROGRAM, WINDOW, ROOT = sys.argv[1:4]
sys.path.insert(0, os.path.join(ROOT, "python"))
import spillway  # noqa: E402

SNAPSHOT = os.path.abspath(os.path.join(ROOT, "traces/data/ran-out/snapshot.pickle"))
SMALL = {"name": "gpt2-small", "layers": 2, "sequence": 256, "micro_batch": 4}
DEVICE = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42_000_000_000}


def scenarios():
    h100 = {"profile": "h100-80gb-1gpu"}
    yield "fits", {"model": SMALL, "hardware": h100}
    yield "short", {"model": SMALL, "hardware": h100, "memory": {"capacity_bytes": 300_000_000}}
    yield "tight", {"model": {**SMALL, "sequence": 512}, "hardware": h100,
                    "memory": {"capacity_bytes": 2_250_000_000, "reserve": "300MiB"}}
    yield "host", {"model": {"name": "llama-3-8b", "layers": 12, "sequence": 256, "micro_batch": 1,
                             "optimizer_device": "cpu"}, "hardware": {"profile": "cloud-1xl4"}}
    offload = {"technique": "ssdtrain", "least_elements": 100000, "drives": "samsung-990-pro-2tb",
               "drives_per_machine": 4, "adaptive": False}
    yield "drives", {"model": {**SMALL, "sequence": 512}, "hardware": {"profile": "ssdtrain-testbed"}, "offload": offload}
    yield "worn", {"model": {**SMALL, "sequence": 512}, "hardware": {"profile": "ssdtrain-testbed"},
                   "offload": {**offload, "least_life_years": 1000}}
    yield "stages", {"model": {**SMALL, "layers": 8, "gradient_accumulation": 4, "pipeline_parallel": 4},
                     "hardware": {"profile": "dgx-a100-40gb"}}
    for key, value in (("recompute", "full"), ("optimizer", "sgd"), ("precision", "fp32"), ("trainable", "lora"),
                       ("loss", "fused"), ("zero_stage", 3)):
        more = {"data_parallel": 8} if key == "zero_stage" else {}
        yield f"with {key}", {"model": {**SMALL, key: value, **more}, "hardware": {"profile": "dgx-h100"}}
    yield "on the CPU", {"trace": os.path.abspath(os.path.join(ROOT, "traces/data/gpt2-tiny-cpu/steps.json.gz"))}
    yield "ran out", {"trace": SNAPSHOT}
    for gib in (80, 1):
        yield f"snapshot in {gib} GiB", {"trace": "kept.pickle", "hardware": {"profile": "h100-sxm5-80gb"},
                                         "memory": {"capacity_bytes": gib << 30}}
    yield "no limit", {"trace": "kept.pickle"}
    yield "captured", {"trace": "kernels.json"}
    yield "captured, short", {"trace": "kernels.json", "memory": {"capacity_bytes": 1_000_000}}


def memory(at, size, address=4096, **more):
    arguments = {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size, "Total Allocated": 1 << 20,
                 "Total Reserved": 2 << 20, **more}
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
            "args": {key: value for key, value in arguments.items() if value is not None}}


def kernel(name="k", at=20, length=50, correlation=1):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": length,
            "args": {"correlation": correlation, "stream": 7, "device": 0}}


LAUNCH = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 5,
          "args": {"correlation": 1}}
PLAIN = [LAUNCH, kernel(), memory(11, 1 << 20), memory(13, -(1 << 20))]


def with_findings():
    """Events that a reader can't use; of memory they take the verdict away, of work they don't."""
    odd = {
        "size in words": memory(12, "many", 8192), "no size": memory(12, None, 8192), "no address": memory(12, 512, None),
        "address in words": memory(12, 512, "here"), "time in words": memory("never", 512, 8192),
        "no time": {key: value for key, value in memory(12, 512, 8192).items() if key != "ts"},
        "freed before": memory(12, -512, 8192), "device far away": memory(12, 512, 8192, **{"Device Id": 77}),
        "size 0": memory(12, 0, 8192), "huge": memory(12, 1 << 62, 8192),
        "kernel without launch": kernel("l", 80, 5, 9), "kernel that never was": kernel("l", "never"),
        "kernel of no length": kernel("l", 80, -3), "kernel in words": kernel("l", 80, "long"),
        "launch of nothing": {**LAUNCH, "ts": 90, "args": {"correlation": 99}},
        "launch without a time": {**LAUNCH, "ts": "then", "args": {"correlation": 98}},
        "two at once": kernel("l", 30, 50, 1), "no stream": {**kernel("l", 80), "args": {"correlation": 3}},
    }
    for name, event in odd.items():
        yield name, json.dumps({"schemaVersion": 1, "deviceProperties": [DEVICE], "traceEvents": [*PLAIN, event]})
    whole = json.dumps({"schemaVersion": 1, "deviceProperties": [DEVICE], "traceEvents": PLAIN})
    yield "cut", whole[:-40]
    yield "no JSON within", whole.replace('"args": {"correlation": 1}}', '"args" {"correlation": 1}}', 1)


def plain_words(text):
    return " ".join(text.split())


def compare(path, window):
    """What differs, in a sentence; empty: nothing."""
    is_snapshot = "snapshot" in path or os.path.basename(path) in ("ran out.json", "no limit.json")
    command = "explain" if is_snapshot else "run"
    page = path + ".html"
    words, _, code = spillway.call(command, path, "--output", page, program=PROGRAM, answers=(0, 1, 4))
    if is_snapshot:
        told = json.loads(spillway.call(command, path, "--format", "json", program=PROGRAM, answers=(0, 1, 4))[0])
        answer = told.get("answer")
    else:
        told = spillway.run(path, program=PROGRAM)
        answer = told["answer"]
        if told.code != code:
            return f"exit codes {told.code} and {code}"
    with open(page, encoding="utf-8") as file:
        shown = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read(), re.S).group(1))
    heading = shown["verdict"]["heading"]
    faces = {"terminal": heading in plain_words(words), "window": window.get("heading") == heading}
    if answer is not None:
        faces["JSON"] = answer["verdict"] == shown["verdict"]
    if not is_snapshot:
        faces["word"] = told["verdict"] == shown["verdict"]["word"] == window.get("word")
        refuses = heading.startswith("✖ No: ")  # drives, of a step whose memory fits
        faces["strip"] = window.get("strip") == "✖ drives refuse" if refuses else window.get("strip", "").endswith(
            " " + told["verdict"])
    wrong = [face for face, same in faces.items() if not same]
    return f"{', '.join(wrong)}: {heading!r}, window {window}, terminal {words[:160]!r}" if wrong else ""


def main():
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    with tempfile.TemporaryDirectory() as folder:
        def write(name, text):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            return path

        environment["HOME"] = environment["XDG_CONFIG_HOME"] = environment["XDG_RUNTIME_DIR"] = folder
        write("kernels.json", json.dumps({"schemaVersion": 1, "deviceProperties": [DEVICE], "traceEvents": PLAIN}))
        kept = write("kept-of.json", json.dumps({"schema": "spillway-scenario", "version": 1, "model": SMALL,
                                                 "hardware": {"profile": "h100-80gb-1gpu"}}))
        spillway.call("run", kept, "--memory-snapshot", os.path.join(folder, "kept.pickle"), program=PROGRAM, answers=(0,))
        with open(os.path.join(folder, "kept.pickle"), "rb") as file:
            assert pickle.load(file)["device_traces"], "a snapshot with events"
        files = [write(f"{name}.json", json.dumps({"schema": "spillway-scenario", "version": 1, "title": name, **parts}))
                 for name, parts in scenarios()]
        files += [write(f"finding {name}.json", text) for name, text in with_findings()]
        assert len(files) == 40, len(files)
        done = subprocess.run([WINDOW, *files], env=environment, capture_output=True, text=True, timeout=600, check=True)
        heard = [json.loads(line) for line in done.stdout.splitlines()]
        assert [one["file"] for one in heard] == files
        words = {one.get("word") for one in heard}
        assert {"fits", "tight", "does not fit", "unknown"} <= words, words
        wrong = [f"{os.path.basename(one['file'])}: {trouble}" for one in heard if (trouble := compare(one["file"], one))]
    print("\n".join(wrong) or f"{len(files)} files are told alike")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
