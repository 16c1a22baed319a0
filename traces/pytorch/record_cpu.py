#!/usr/bin/env python3
"""Records training steps of a small GPT-2-like model on the CPU, with what PyTorch's own profiler sees.

    /usr/bin/python3 traces/pytorch/record_cpu.py OUT_FOLDER      (Debian 12: apt-get install python3-torch)

writes OUT_FOLDER/steps.json.gz (operators with shapes, annotations, memory events, in the shape of Kineto's Chrome
trace) and OUT_FOLDER/graph.json.gz (the execution graph of one more step, by PyTorch's own observer).

Debian's PyTorch is built without libkineto, so export_chrome_trace() writes the pre-Kineto form, with no shapes and
no memory events. The profiler collects them all the same; spillway.torch.event_tree writes the collected event
tree. Recording starts before the model exists, so every tensor's allocation
is in the file. Nothing here is needed to build or test spillway.
"""
import gzip
import json
import os
import re
import sys
import tempfile

import torch
from torch import nn
from torch.profiler import ExecutionGraphObserver, ProfilerActivity, profile, record_function

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
from spillway.torch.event_tree import chrome_trace  # noqa: E402

LAYERS, WIDTH, HEADS, SEQUENCE, BATCH, VOCABULARY, STEPS = 4, 256, 8, 128, 4, 4096, 3


class Block(nn.Module):
    """Pre-norm decoder block: causal self-attention, then a feed-forward of four times the width."""

    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("future", torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1))

    def attention(self, x):
        heads = self.qkv(x).view(BATCH, SEQUENCE, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        scores = (query @ key.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
        mixed = scores.masked_fill(self.future, float("-inf")).softmax(-1) @ value
        return self.projection(mixed.transpose(1, 2).reshape(BATCH, SEQUENCE, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm_mlp(x))))


class TinyGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(SEQUENCE, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight
        for index, block in enumerate(self.blocks):
            with record_function(f"## layer {index} ##"):
                x = block(x)
        return nn.functional.linear(self.norm(x), self.tokens.weight)  # the output shares the token embedding


def train_step(model, optimizer):
    ids = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1))
    with record_function("## forward ##"):
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
    with record_function("## backward ##"):
        loss.backward()
    with record_function("## optimizer ##"):
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def record():
    """Profiles the set-up and STEPS steps; returns the profiler's results, the model and its optimizer."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as profiler:
        with record_function("## setup ##"):
            model = TinyGpt()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step in range(STEPS):
            with record_function(f"ProfilerStep#{step}"):
                train_step(model, optimizer)
    return profiler.profiler.kineto_results, model, optimizer


def execution_graph(model, optimizer):
    """The observer's file for one step; its process id and clock readings are left out."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.json")
        observer = ExecutionGraphObserver()
        observer.register_callback(path)
        observer.start()
        train_step(model, optimizer)
        observer.stop()
        observer.unregister_callback()
        with open(path, encoding="utf-8") as graph:
            text = graph.read()
    return re.sub(r'"pid": \d+, "time": "[^"]*", "start_ts": \d+', '"pid": 1, "time": "", "start_ts": 0', text, count=1)


def write(path, text):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(text.encode())


def main(folder):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    os.makedirs(folder, exist_ok=True)
    results, model, optimizer = record()
    write(os.path.join(folder, "steps.json.gz"), json.dumps(chrome_trace(results), separators=(",", ":")))
    write(os.path.join(folder, "graph.json.gz"), execution_graph(model, optimizer))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
