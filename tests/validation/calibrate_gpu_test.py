#!/usr/bin/env python3
"""`spillway calibrate gpu` from end to end over a virtual GPU (tests/virtual_gpu).

Usage: calibrate_gpu_test.py SPILLWAY LIBRARY SOURCE_ROOT
"""
import json
import os
import subprocess
import sys
import tempfile

SPILLWAY, LIBRARY, ROOT = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, os.path.join(ROOT, "validation/campaign"))
import pytorch_kernels  # noqa: E402  (it imports PyTorch when it measures)


def run(folder, *arguments, code=0, **environment):
    env = {**os.environ, "SPILLWAY_CUDA_MODULE": LIBRARY, "SPILLWAY_CUDNN": LIBRARY, "LD_LIBRARY_PATH": folder, "NO_COLOR": "1",
           **environment}
    done = subprocess.run([SPILLWAY, "calibrate", "gpu", *arguments], cwd=folder, env=env, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def lines(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class H100:
    name, total_memory, multi_processor_count = "NVIDIA H100 80GB HBM3", 85_017_755_648, 132


def write_production(folder, name, device, seconds_of):
    """A file as pytorch_kernels.py writes it, each case in so many seconds."""
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        print(pytorch_kernels.device_line(device), file=file)
        for case in pytorch_kernels.all_cases():
            seconds = seconds_of(case)
            print(pytorch_kernels.point_line(case, [0.99 * seconds, seconds, 1.01 * seconds], "2.11.0"), file=file)
        print(pytorch_kernels.line(end=True), file=file)


def emulated_seconds(case):
    """Attention at 350 TFLOPS (backwards 280), the rest at 0.8 TB/s and 2 us: no table says so."""
    if "bytes" in case:
        return 2e-6 + case["bytes"] / 0.8e12
    flops = 4 * case["batch"] * case["heads"] * case["sequence"] ** 2 * case["head_dim"] / (2 if case["causal"] else 1)
    return 5e-6 + (flops / 350e12 if case["what"] == "attention_forward" else 2.5 * flops / 280e12)


def test_production_kernels(folder, profile):
    write_production(folder, "kernels.jsonl", H100, emulated_seconds)
    both = ["--from", "gpu.points.jsonl", "--from", "kernels.jsonl"]
    document = json.loads(run(folder, *both, "--output", "both.json", "--format", "json").stdout)
    rows = {row["what"]: row for row in document["verdict"]["held_out"]}
    assert {"attention_forward", "attention_backward", "norm_forward", "optimizer", "cross_entropy"} <= set(rows), rows.keys()
    for what, row in rows.items():
        assert row["median_abs_error_after"] <= row["median_abs_error_before"] * 1.0001, row
    # PyTorch's FlashAttention 2 is not what the tables of a Hopper GPU are of.
    assert any("of flash-attention in PyTorch 2.11.0 are not used" in note for note in document["warnings"]), document["warnings"]
    # Where PyTorch's points of cuDNN are there, they count, and those of the module's own graphs don't.
    for what in ("attention_forward", "attention_backward"):
        assert any(f"points of {what} of cudnn-graph 9.19.0 are not used: those of cuDNN in PyTorch count" in note
                   for note in document["warnings"]), document["warnings"]
    with open(os.path.join(folder, "both.json"), encoding="utf-8") as file:
        scaled = {scale["of"] for scale in json.load(file)["operator_scales"]}
    assert {"optimizer", "cross_entropy", "norm_backward"} <= scaled, scaled
    assert scaled > {scale["of"] for scale in profile["operator_scales"]}

    # A library that nobody trains with changes nothing; another card's points are refused.
    with open(os.path.join(folder, "kernels.jsonl"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(folder, "own.jsonl"), "w", encoding="utf-8") as file:
        for word in ("cudnn", "flash-attention", "pytorch"):
            text = text.replace(f'"{word} in', '"home-made in')
        file.write(text)
    run(folder, "--from", "gpu.points.jsonl", "--from", "own.jsonl", "--output", "own.json")
    with open(os.path.join(folder, "own.json"), encoding="utf-8") as file:
        own = json.load(file)
    assert own["operator_scales"] == profile["operator_scales"] and "home-made" in own["note"]
    write_production(folder, "other-card.jsonl", type("A100", (H100,), {"name": "NVIDIA A100-SXM4-80GB"}), emulated_seconds)
    done = run(folder, "--from", "gpu.points.jsonl", "--from", "other-card.jsonl", code=2)
    assert "other-card.jsonl" in done.stderr and "NVIDIA A100-SXM4-80GB" in done.stderr, done.stderr


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
        # Without PyTorch: attention by cuDNN's graphs is fitted and judged (the stand-in's times are not of the tables'
        # shape, so that no factor helps), its norms are not, and are told.
        of_graphs = [line["point"] for line in points if line.get("point", {}).get("source") == "cudnn-graph 9.19.0"]
        assert {"attention_forward", "attention_backward", "norm_forward", "norm_backward"} == {point["what"] for point in of_graphs}
        rows = {row["what"]: row for row in document["verdict"]["held_out"]}
        for what in ("attention_forward", "attention_backward"):
            assert rows[what]["points"] > 8 and rows[what]["median_abs_error_after"] <= rows[what]["median_abs_error_before"], rows
            assert f"{what}: the fitted factors do not help, so the tables stand" in document["warnings"], document["warnings"]
            assert what not in {scale["of"] for scale in profile["operator_scales"]}, profile["operator_scales"]
        assert not {"norm_forward", "norm_backward"} & {scale["of"] for scale in profile["operator_scales"]}
        assert any("points of norm_backward of cudnn-graph 9.19.0 are not used" in note for note in document["warnings"])
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

        test_production_kernels(folder, profile)

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

        # A cuDNN that fails to run: its points are left out and told, nothing else is lost.
        document = json.loads(run(folder, "--quick", "--points", "no-cudnn.jsonl", "--output", "no-cudnn.json", "--format", "json",
                                  SPILLWAY_CUDNN="/none/libcudnn.so.9").stdout)
        assert document["written"] and any("no points of cuDNN's kernels" in note for note in document["warnings"])
        assert not any(line.get("point", {}).get("kind") == "operation" for line in lines(folder, "no-cudnn.jsonl"))

        # A card that no profile is of is told at once; what was asked by name is taken, and refused where it can't be.
        done = run(folder, "--quick", "--points", "other.jsonl", code=2, VIRTUAL_GPU_NAME="NVIDIA Z9000")
        assert "--base" in done.stderr and len(lines(folder, "other.jsonl")) == 1
        done = run(folder, "--from", "gpu.points.jsonl", "--base", "a100-sxm4-80gb", code=2)
        assert "another GPU" in done.stderr
    print("ok")


main()
