#!/usr/bin/env python3
"""`spillway calibrate gpu` from end to end over a virtual GPU (tests/virtual_gpu).

Usage: calibrate_gpu_test.py SPILLWAY LIBRARY
"""
import json
import os
import subprocess
import sys
import tempfile

SPILLWAY, LIBRARY = map(os.path.abspath, sys.argv[1:3])


def run(folder, *arguments, code=0, **environment):
    env = {**os.environ, "SPILLWAY_CUDA_MODULE": LIBRARY, "LD_LIBRARY_PATH": folder, "NO_COLOR": "1", **environment}
    done = subprocess.run([SPILLWAY, "calibrate", "gpu", *arguments], cwd=folder, env=env, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def lines(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    with tempfile.TemporaryDirectory() as folder:
        # NVML is looked for by this name; the machine behind it is the same.
        os.symlink(os.path.abspath(LIBRARY), os.path.join(folder, "libnvidia-ml.so.1"))

        # The card is found, the profile written, the points beside it.
        done = run(folder, "--quick", "--output", "gpu.json", "--format", "json")
        document = json.loads(done.stdout)
        assert document["base"] == "h100-sxm5-80gb" and document["written"], document["warnings"]
        assert document["verdict"]["helps"] and document["points_file"] == "gpu.points.jsonl"
        for row in document["verdict"]["held_out"]:
            if row["what"].startswith("products bf16"):
                assert row["median_abs_error_after"] < row["median_abs_error_before"], row
        points = lines(folder, "gpu.points.jsonl")
        assert points[0]["device"]["name"] == "NVIDIA H100 80GB HBM3" and points[-1] == {"end": True}
        assert sum("point" in line for line in points) == document["points"] > 1000
        with open(os.path.join(folder, "gpu.json"), encoding="utf-8") as file:
            profile = json.load(file)
        assert profile["operator_times_of"] == "h100-sxm5-80gb"
        # 780 TFLOPS at 0.72 of the clock; 55 GB/s; 1.3 us (tests/virtual_gpu/virtual_gpu.h).
        for key, unit, scale, wanted in (("sustained_flops", "TFLOPS", 1, 561.6),
                                         ("host_to_device_bandwidth", "GB/s", 1, 55),
                                         ("copy_latency", "us", 1, 1.3)):
            got = profile[key]
            assert got["unit"] == unit and abs(got["value"] * scale / wanted - 1) < 0.05, (key, got)
        assert subprocess.run([SPILLWAY, "profile", "check", os.path.join(folder, "gpu.json")]).returncode == 0

        # The same points again, without a GPU, give the same profile.
        run(folder, "--from", "gpu.points.jsonl", "--output", "again.json", SPILLWAY_CUDA_MODULE="/nowhere")
        with open(os.path.join(folder, "again.json"), encoding="utf-8") as file:
            assert json.load(file) == profile

        # Points are not written over.
        before = lines(folder, "gpu.points.jsonl")
        done = run(folder, "--quick", "--points", "gpu.points.jsonl", code=2)
        assert "not written over" in done.stderr and lines(folder, "gpu.points.jsonl") == before

        # A call that fails: exit code 2, no profile, and all that was measured of the other parts.
        done = run(folder, "--quick", "--points", "part.jsonl", "--output", "part.json", code=2,
                   VIRTUAL_GPU_FAILS="cudaMemcpyAsync:10")
        assert "--from part.jsonl" in done.stderr and not os.path.exists(os.path.join(folder, "part.json"))
        part = lines(folder, "part.jsonl")
        kinds = {line["point"]["kind"] for line in part if "point" in line}
        assert {"launch_call", "product", "sustained_product"} <= kinds
        assert [line["failed"]["part"] for line in part if "failed" in line] == ["copies"]
        run(folder, "--from", "part.jsonl", "--output", "part.json")

        # A card that no profile is of is told at once; what was asked by name is taken, and refused where it can't be.
        done = run(folder, "--quick", "--points", "other.jsonl", code=2, VIRTUAL_GPU_NAME="NVIDIA Z9000")
        assert "--base" in done.stderr and len(lines(folder, "other.jsonl")) == 1
        done = run(folder, "--from", "gpu.points.jsonl", "--base", "a100-sxm4-80gb", code=2)
        assert "another GPU" in done.stderr
    print("ok")


main()
