#!/usr/bin/env python3
"""Times of the kernels that training runs in production: attention by back end, norms, cross-entropy, AdamW.

One line of JSON to each point, as it is made: what, shape, bytes or flops that it must move or do, and the median and
spread (half the interquartile range over the median) of its times by CUDA events, cold in the L2 cache.
usage: pytorch_kernels.py
"""
import json
import statistics

import torch
from torch.nn import functional

REPEATS = 15


def timed(run, flush):
    run()
    times = []
    for _ in range(REPEATS):
        flush.zero_()
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        run()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) * 1e6)
    low, middle, high = statistics.quantiles(times, n=4)
    return {"median_ns": middle, "spread": (high - low) / 2 / middle}


def attention(flush):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
        for batch, heads, length, width in ((8, 12, 1024, 64), (4, 20, 1024, 64), (4, 32, 1024, 64), (2, 32, 4096, 128)):
            shape = (batch, heads, length, width)
            query, key, value = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
            point = {"what": "attention", "backend": backend.name, "shape": shape, "causal": True,
                     "flops": 2 * 2 * batch * heads * length * length * width // 2}
            try:
                with sdpa_kernel(backend):
                    yield {**point, "pass": "forward", **timed(
                        lambda: functional.scaled_dot_product_attention(query, key, value, is_causal=True), flush)}
                    out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
                    grad = torch.randn_like(out)
                    yield {**point, "pass": "backward", "flops": point["flops"] * 5 // 2, **timed(
                        lambda: torch.autograd.grad(out, (query, key, value), grad, retain_graph=True), flush)}
            except RuntimeError as error:
                yield {**point, "error": str(error).splitlines()[0]}


def rows(flush):
    for tokens, width in ((8192, 768), (4096, 1280), (4096, 2048), (16384, 4096)):
        x = torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)
        weight, bias = torch.ones(width, device="cuda", dtype=x.dtype), torch.zeros(width, device="cuda", dtype=x.dtype)
        point = {"shape": (tokens, width), "bytes": 2 * x.nbytes}
        yield {"what": "layer_norm", **point, **timed(lambda: functional.layer_norm(x, (width,), weight, bias), flush)}
        yield {"what": "gelu", **point, **timed(lambda: functional.gelu(x), flush)}
        yield {"what": "add", **point, "bytes": 3 * x.nbytes, **timed(lambda: x + x, flush)}
    for tokens, words in ((8192, 50257), (4096, 128256)):
        logits = torch.randn(tokens, words, device="cuda")
        labels = torch.randint(words, (tokens,), device="cuda")
        yield {"what": "cross_entropy", "shape": (tokens, words), "bytes": 2 * logits.nbytes,
               **timed(lambda: functional.cross_entropy(logits, labels), flush)}


def adam(flush):
    for count in (1 << 20, 1 << 24, 1 << 27):
        weight = torch.nn.Parameter(torch.randn(count, device="cuda", dtype=torch.bfloat16))
        weight.grad = torch.randn_like(weight)
        optimizer = torch.optim.AdamW([weight], lr=1e-4, fused=True)
        yield {"what": "adamw_fused", "shape": (count,), "bytes": 7 * weight.nbytes, **timed(optimizer.step, flush)}


def main():
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for family in (attention, rows, adam):
        try:
            for point in family(flush):
                print(json.dumps(point), flush=True)
        except (RuntimeError, ImportError) as error:
            print(json.dumps({"what": family.__name__, "error": str(error).splitlines()[0]}), flush=True)


if __name__ == "__main__":
    main()
