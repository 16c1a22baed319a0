#!/usr/bin/env python3
"""Times of the kernels that training runs in production: attention by library, layer norms, cross-entropy, AdamW.

Written as raw points of `spillway calibrate gpu` (hwprofiles/gpu_points.h), a line of JSON each as it is made, so that
`spillway calibrate gpu --from points.jsonl --from THIS` lets them into a profile. The source of each is the library
whose kernel it is; PyTorch chooses among several otherwise. Medians, cold in the L2 cache, by CUDA events behind a
kernel that waits until all is queued, less what a pair of events takes by itself. In an order without pattern: cut short
anywhere, all sizes are there.
usage: pytorch_kernels.py [SECONDS]     (stops after so many; all without)
"""
import json
import random
import statistics
import sys
import time

SCHEMA = "spillway-gpu-points/1"
REPEATS = 7
ELEMENT = 2  # bytes of bf16
WAIT_CYCLES = 3_000_000  # of the multiprocessors: longer than the host takes to queue a backward
MOST_BYTES = 4 << 30


def attention_cases():
    for library in ("cudnn", "flash-attention"):
        for batch in (1, 2, 4, 8):
            for heads in (12, 16, 20, 32):
                for sequence in (512, 1024, 2048, 4096):
                    for width in (64, 128):
                        if batch * sequence <= 16384:
                            for word in ("attention_forward", "attention_backward"):
                                yield {"what": word, "source": library, "precision": "bf16", "batch": batch, "heads": heads,
                                       "sequence": sequence, "head_dim": width, "causal": sequence > 512}


def streaming_cases():
    """Each operand read once and each result written once, as the operator times count bytes."""
    for tokens in (2048, 4096, 8192, 16384, 32768):
        for width in (768, 1024, 1280, 1600, 2048, 2560, 3072, 4096, 5120, 8192):
            size = tokens * width * ELEMENT
            yield {"what": "norm_forward", "source": "pytorch", "m": tokens, "n": width, "bytes": 2 * size}
            yield {"what": "norm_backward", "source": "pytorch", "m": tokens, "n": width, "bytes": 3 * size}
    for tokens in (1024, 2048, 4096, 8192, 16384):
        for words in (30592, 32000, 32768, 50257, 50304, 65536, 100352, 128256, 151936, 256000):
            if 2 * 4 * tokens * words <= MOST_BYTES:  # logits in fp32
                yield {"what": "cross_entropy", "source": "pytorch", "m": tokens, "n": words, "bytes": 2 * 4 * tokens * words}
    for power in range(18, 28):
        for quarter in range(5):
            count = (1 << power) * (4 + quarter) // 4 + 256 * quarter
            # Weight and both moments read and written, the gradient read.
            yield {"what": "optimizer", "source": "pytorch", "n": count, "bytes": 7 * count * ELEMENT}


def all_cases(seed=1):
    cases = [*attention_cases(), *streaming_cases()]
    random.Random(seed).shuffle(cases)
    return cases


# What runs a case, in PyTorch -----------------------------------------------------------------------------------------

def attention(torch, case, device):
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = SDPBackend.CUDNN_ATTENTION if case["source"] == "cudnn" else SDPBackend.FLASH_ATTENTION
    shape = (case["batch"], case["heads"], case["sequence"], case["head_dim"])
    query, key, value = (torch.randn(shape, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))

    def forward():
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(query, key, value, is_causal=case["causal"])
    if case["what"] == "attention_forward":
        def without_graph():
            with torch.no_grad():
                forward()
        return without_graph
    out = forward()
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (query, key, value), grad, retain_graph=True)


def norm(torch, case, device):
    from torch.nn import functional
    width = case["n"]
    x = torch.randn(case["m"], width, device=device, dtype=torch.bfloat16, requires_grad=True)
    weight, bias = (torch.ones(width, device=device, dtype=x.dtype, requires_grad=True) for _ in range(2))
    if case["what"] == "norm_forward":
        return lambda: functional.layer_norm(x, (width,), weight, bias)
    out = functional.layer_norm(x, (width,), weight, bias)
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (x, weight, bias), grad, retain_graph=True)


def cross_entropy(torch, case, device):
    from torch.nn import functional
    logits = torch.randn(case["m"], case["n"], device=device)
    labels = torch.randint(case["n"], (case["m"],), device=device)
    return lambda: functional.cross_entropy(logits, labels)


def optimizer(torch, case, device):
    weight = torch.nn.Parameter(torch.randn(case["n"], device=device, dtype=torch.bfloat16))
    weight.grad = torch.randn_like(weight)
    return torch.optim.AdamW([weight], lr=1e-4, fused=True).step


RUNNERS = {"attention_forward": attention, "attention_backward": attention, "norm_forward": norm, "norm_backward": norm,
           "cross_entropy": cross_entropy, "optimizer": optimizer}


class Clock:
    """Seconds of what is queued between two events, when all of it is queued before the first one passes."""

    def __init__(self, torch):
        self.torch = torch
        self.flushed = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        self.own = statistics.median(self.once(lambda: None) for _ in range(20))

    def once(self, run):
        first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flushed.zero_()
        self.torch.cuda._sleep(WAIT_CYCLES)
        first.record()
        run()
        last.record()
        last.synchronize()
        return first.elapsed_time(last) * 1e-3

    def times(self, run):
        run()
        return [max(self.once(run) - self.own, 1e-9) for _ in range(REPEATS)]


# The lines ------------------------------------------------------------------------------------------------------------

def line(**what):
    return json.dumps(what)


def device_line(properties):
    """`properties` as torch.cuda.get_device_properties() has them."""
    device = {"schema": SCHEMA, "name": properties.name, "memory_bytes": properties.total_memory,
              "sm_count": properties.multi_processor_count}
    if getattr(properties, "L2_cache_size", 0):
        device["l2_bytes"] = properties.L2_cache_size
    return line(device=device)


def point_line(case, times, version):
    low, middle, high = statistics.quantiles(times, n=4)
    return line(point={"kind": "operation", **case, "source": f"{case['source']} in PyTorch {version}", "value": middle,
                       "spread": (high - low) / 2 / middle, "samples": len(times)})


def measured_lines(torch, cases, clock, device="cuda", seconds=float("inf")):
    """A line for each case that this machine's PyTorch has a kernel for; what it lacks is told once."""
    begin, failed = time.monotonic(), set()
    for case in cases:
        if time.monotonic() - begin > seconds:
            yield line(note="production kernels cut short by the time they may take")
            break
        family = (case["what"], case["source"])
        if family in failed:
            continue
        try:
            times = clock.times(RUNNERS[case["what"]](torch, case, device))
        except (RuntimeError, ImportError, TypeError) as error:
            if "out of memory" in str(error):
                continue
            failed.add(family)  # no such back end here
            yield line(note=f"no {case['what']} of {case['source']}: {(str(error).splitlines() or ['no reason'])[0]}")
            continue
        yield point_line(case, times, torch.__version__)
    yield line(end=True)


def main(seconds):
    import torch
    print(device_line(torch.cuda.get_device_properties(0)), flush=True)
    for text in measured_lines(torch, all_cases(), Clock(torch), seconds=seconds):
        print(text, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
