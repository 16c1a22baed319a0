#!/usr/bin/env python3
"""Records training steps of a PyTorch program on a GPU with all that PyTorch's own tools see at once.

As a program, for models of well-known shapes (built from torch.nn alone, random tokens):

    python3 traces/pytorch/record.py OUT_FOLDER [--model gpt2-small] [--batch 8] [--sequence 1024] [--steps 3]

Around steps of your own:

    from record import Recorder
    with Recorder("OUT_FOLDER", steps=3) as recorder:
        for batch in batches:
            with recorder.step():
                with recorder.phase("forward"):
                    loss = model(batch)
                with recorder.phase("backward"):
                    loss.backward()
                with recorder.phase("optimizer"):
                    optimizer.step()

Written are steps.json.gz (Kineto: kernels, calls, memory, shapes, phases, step marks), graph.json.gz (the
ExecutionTrace of the same steps: tensors and their uses) and memory.pickle (the CUDA allocator's own history). Then

    spillway trace convert OUT_FOLDER/steps.json.gz step.spillway --graph OUT_FOLDER/graph.json.gz

joins the first two into one trace with times, memory, uses, edges and phases; memory.pickle is for `spillway memory`.

Two steps run before recording begins: allocator, cuBLAS and autotuning are warm then. No stacks are recorded, and what
names files or hosts is taken out of the graph, so that the files may be passed on. Needs PyTorch 2.3 or later with CUDA.
"""
import argparse
import contextlib
import gzip
import os
import re
import shutil
import sys

import torch
from torch import nn
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shapes import SHAPES  # noqa: E402

WARM_UP = 2


class Recorder:
    """Begins to record when WARM_UP steps have passed, and ends after `steps` more; further steps run unrecorded."""

    def __init__(self, folder, steps=3):
        self.folder, self.wanted, self.seen = folder, steps, 0
        os.makedirs(folder, exist_ok=True)
        self.graph_path = os.path.join(folder, "graph.json")
        self.observer = self.profiler = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if self.profiler is not None:
            self._finish()

    @contextlib.contextmanager
    def step(self):
        if self.seen == WARM_UP:
            self._begin()
        recording = self.profiler is not None
        with record_function(f"ProfilerStep#{self.seen}") if recording else contextlib.nullcontext():
            yield
        self.seen += 1
        if recording and self.seen == WARM_UP + self.wanted:
            self._finish()

    @staticmethod
    def phase(name):
        return record_function(f"## {name} ##")

    def _begin(self):
        torch.cuda.synchronize()
        torch.cuda.memory._record_memory_history(stacks="python", context=None, max_entries=1_000_000)
        self.observer = ExecutionTraceObserver().register_callback(self.graph_path)
        self.profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                                profile_memory=True, execution_trace_observer=self.observer)
        self.profiler.start()

    def _finish(self):
        torch.cuda.synchronize()
        self.profiler.stop()
        self.profiler.export_chrome_trace(os.path.join(self.folder, "steps.json.gz"))
        self.observer.unregister_callback()
        torch.cuda.memory._dump_snapshot(os.path.join(self.folder, "memory.pickle"))
        torch.cuda.memory._record_memory_history(enabled=None)
        self.profiler = None
        with open(self.graph_path, encoding="utf-8") as graph:
            text = re.sub(r'"pid": \d+, "time": "[^"]*"', '"pid": 1, "time": ""', graph.read(), count=1)
        with gzip.GzipFile(self.graph_path + ".gz", "wb", 9, mtime=0) as out:
            out.write(text.encode())
        os.remove(self.graph_path)


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.projection(mixed.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width, inner, gated):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.gate = nn.Linear(width, inner) if gated else None

    def forward(self, x):
        if self.gate is None:
            return self.down(nn.functional.gelu(self.up(x)))
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads, inner, gated, causal):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mlp = Attention(width, heads, causal), FeedForward(width, inner, gated)

    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        return x + self.mlp(self.norm_mlp(x))


class Transformer(nn.Module):
    def __init__(self, shape, sequence):
        super().__init__()
        layers, width, heads, inner, vocabulary, gated, causal = shape
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList(Block(width, heads, inner, gated, causal) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight
        for index, block in enumerate(self.blocks):
            with record_function(f"## layer {index} ##"):
                x = block(x)
        return self.head(self.norm(x))


def train(arguments):
    torch.manual_seed(1)
    shape = SHAPES[arguments.model]
    model = Transformer(shape, arguments.sequence).cuda().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    with Recorder(arguments.folder, arguments.steps) as recorder:
        for _ in range(WARM_UP + arguments.steps):
            ids = torch.randint(shape[4], (arguments.batch, arguments.sequence + 1), device="cuda")
            with recorder.step():
                with recorder.phase("forward"):
                    logits = model(ids[:, :-1])
                    loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
                with recorder.phase("backward"):
                    loss.backward()
                with recorder.phase("optimizer"):
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="OUT_FOLDER")
    parser.add_argument("--model", choices=sorted(SHAPES), default="gpt2-small")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("record.py: PyTorch sees no GPU here; record_cpu.py records without one")
    if os.path.exists(arguments.folder):
        sys.exit(f"record.py: {arguments.folder} exists already; name another folder")
    try:
        train(arguments)
    except torch.cuda.OutOfMemoryError as error:
        shutil.rmtree(arguments.folder, ignore_errors=True)
        sys.exit(f"record.py: {error}; use a smaller --batch or --sequence")


if __name__ == "__main__":
    main()
