#!/usr/bin/env python3
"""`spillway validate kernels --backend cuda` and the drive's way to the GPU, from one end to the other over a virtual GPU
that computes (tests/virtual_gpu). Its clock is not the host's, so step times mean nothing here; what is stated does.

Usage: virtual_kernels_test.py SPILLWAY LIBRARY FAKE_CUFILE
"""
import csv
import io
import json
import os
import resource
import subprocess
import sys
import tempfile

SPILLWAY, LIBRARY, CUFILE = map(os.path.abspath, sys.argv[1:4])
TIMES = {"step_time", "forward_time", "backward_time", "optimizer_time"}


def run(folder, *arguments, codes=(0,), **environment):
    env = {**os.environ, "SPILLWAY_CUDA_MODULE": LIBRARY, "LD_LIBRARY_PATH": folder, "NO_COLOR": "1",
           "VIRTUAL_GPU_COMPUTES": "1", "SPILLWAY_NVIDIA_FS": os.path.join(folder, "nvidia-fs"), **environment}
    env = {name: value for name, value in env.items() if value is not None}
    done = subprocess.run([SPILLWAY, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode in codes, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def kernels(folder, *options):
    return run(folder, "validate", "kernels", "--backend", "cuda", "--model", "2 layers of 64", "--hardware",
               "h100-80gb-1gpu", "--file", os.path.join(folder, "offload"), *options, codes=(0, 1))


def test_two_columns(folder):
    document = json.loads(kernels(folder, "--technique", "keep", "--technique", "offload-host", "--technique", "recompute",
                                  "--output", "rows.csv", "--plot", "rows.svg", "--format", "json").stdout)
    assert document["device"] == "NVIDIA H100 80GB HBM3" and "no claim" in document["meaning"]
    assert len(document["runs"]) == 3
    for one in document["runs"]:
        assert one["same_bits"] and one["order_kept"] and one["transfers_kept"] and one["pool_kept"], one
        assert 0 < one["measured_share_of_blind"] < 1, one
    sources = {}
    for row in document["rows"]:
        sources.setdefault(row["metric"], set()).add(row["source"])
        assert row["measured"] >= 0 and row["predicted"] >= 0 and "peak" not in row["metric"], row
    assert all(sources[metric] == {"blind", "from_trace"} for metric in TIMES), sources
    assert sources["host_written"] == {"plan"}
    # Blind: from the profile, the same whatever the device did; from the trace: from its kernels.
    step = {(row["case"], row["source"]): row["predicted"] for row in document["rows"] if row["metric"] == "step_time"}
    assert all(step[case, "blind"] != step[case, "from_trace"] for case, _ in step), step
    assert {(row["metric"], row["source"]) for row in document["summary"]} >= {
        (metric, source) for metric in TIMES for source in ("blind", "from_trace")}
    judged = [row["source"] for row in document["summary"] if row["tolerance"]["median"] is not None]
    assert judged == ["from_trace"], judged
    with open(os.path.join(folder, "rows.csv"), encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert {"measured", "blind", "from a trace"} <= set(table[0]), table[0]
    assert all((row["blind"] == "-") == (row["unit"] == "B") for row in table)
    with open(os.path.join(folder, "rows.svg"), encoding="utf-8") as file:
        assert "hollow: blind" in file.read()
    words = kernels(folder, "--technique", "keep").stdout
    assert "from a trace" in words.splitlines()[0] and "blind" in words.splitlines()[0], words


def test_a_large_model_costs_the_host_little(folder):
    """Of GPT-2 124M everything but the kernels themselves: weights, moments and digests are not the host's work. Its 124M
    normal numbers alone took it seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(folder, "validate", "kernels", "--backend", "cuda", "--model", "GPT-2 124M, batch 2", "--technique", "keep",
               "--hardware", "h100-80gb-1gpu", "--format", "json", codes=(0, 1), VIRTUAL_GPU_COMPUTES=None)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert seconds < 1.5, seconds
    one, = json.loads(done.stdout)["runs"]
    assert one["order_kept"] and one["pool_reserved_bytes"] > 124e6 * 14, one  # bf16, and three of fp32


def test_the_processor_states_no_times(folder):
    done = run(folder, "validate", "kernels", "--backend", "cpu", "--technique", "keep", "--technique", "offload-host")
    assert "step" not in done.stdout.splitlines()[0] and "proves bits, order and bytes" in done.stdout, done.stdout
    rows = csv.DictReader(io.StringIO(run(folder, "validate", "kernels", "--backend", "cpu", "--technique", "offload-host",
                                          "--format", "csv").stdout))
    assert {row["unit"] for row in rows} == {"B"}


def test_the_drives_way(folder):
    """With cuFile's stand-in: what nvidia-fs counts is GPUDirect Storage, what it doesn't is not called so."""
    arguments = ["calibrate", "nvme", "--quick", "--bytes", "64 MiB", "--file", os.path.join(folder, "scratch"), "--format"]
    done = run(folder, *arguments, "json", codes=(0, 2), SPILLWAY_CUFILE=CUFILE)
    if done.returncode == 2:  # no io_uring or no O_DIRECT here
        return print("no drive to measure: " + done.stderr.strip())
    document = json.loads(done.stdout)["gpudirect"]
    assert document["points"] and document["way"] == "compatibility", document
    assert "nvidia-fs is not loaded" in document["because"], document
    os.mkdir(os.path.join(folder, "nvidia-fs"))
    with open(os.path.join(folder, "nvidia-fs/stats"), "w", encoding="utf-8") as file:
        file.write("IO stats: Enabled, peer IO stats: Disabled\nReads : n=0 ok=0 err=0\nWrites : n=0 ok=0 err=0\n")
    document = json.loads(run(folder, *arguments, "json", SPILLWAY_CUFILE=CUFILE).stdout)["gpudirect"]
    assert document["way"] == "direct", document
    words = run(folder, *arguments, "table", SPILLWAY_CUFILE=CUFILE, FAKE_CUFILE="compatibility").stdout
    assert "not of GPUDirect Storage" in words and "cuFile, through host memory: read" in words, words


def main():
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        os.symlink(LIBRARY, os.path.join(folder, "libnvidia-ml.so.1"))
        test_two_columns(folder)
        test_a_large_model_costs_the_host_little(folder)
        test_the_processor_states_no_times(folder)
        test_the_drives_way(folder)
    print("ok")


main()
