#!/usr/bin/env python3
"""A GPU under load for some seconds: rate of a large product, with clock, watts and degrees as nvidia-smi has them.

One line of JSON to each sample, as it is made; nothing of the GPU's settings is changed.
usage: pytorch_load.py [SECONDS]
"""
import json
import subprocess
import sys
import time

SIDE = 8192
FIELDS = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "clocks_event_reasons.active"]


def sample():
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits", "-i", "0"],
                              capture_output=True, text=True, check=False, timeout=5).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(zip(FIELDS, (word.strip() for word in said.splitlines()[0].split(",")))) if said else {}


def main(seconds):
    import torch
    torch.manual_seed(1)
    left, right = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(200):
            torch.matmul(left, right, out=out)
        last.record()
        state = sample()  # while the GPU works
        last.synchronize()
        flops = 200 * 2 * SIDE ** 3
        print(json.dumps({"seconds": time.monotonic() - begin, "flops_per_second": flops / first.elapsed_time(last) * 1e3,
                          **state}), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20)
