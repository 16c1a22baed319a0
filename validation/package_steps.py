#!/usr/bin/env python3
"""A run of steps as `spillway.torch` makes them under `ssdtrain`, its files behind a page cache, from a recorded step.

What python/spillway/torch/tiers.py does, event by event: a staging block of pinned memory a tensor (sizes are powers of two;
made by the thread that launches where none is free), the copy on a stream, threads that write files, loads or forwarding,
files that are removed, the wait for both streams at a step's end. Times of kernels and launches are the recording's. The
first steps pay for pinned memory, and each is slow enough to need little more of it, so that the run gets faster for dozens
of steps (docs/internals/validation.md). recorded_steps.py prints it.
"""
import heapq
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from campaign import cases  # noqa: E402

# Bytes a second, of that machine. Chosen among 180 sets within a factor of two of what such machines do, by the 40 steps of
# validation/results; the best ten sets are alike. Each can be measured alone.
PINNING = 4e9          # cudaHostAlloc of pages that nobody had
FILE_WRITE = 2.5e9     # a thread's write into the page cache: a copy, and a new page each 4 KiB
FILE_READ = 5e9        # a thread's read of what is there: the copy alone
FILES_TOGETHER = 15e9  # all threads
REMOVAL = 20e9         # unlink of a file in the page cache, by the thread that runs the backward
LINK = 53e9            # 21.4 GB in 405 ms under `host`
HOOK = 0.00018         # seconds each way a tensor: planners/offload/offload_settings.h
WORKERS = 6


class Clock:
    """Generators that yield seconds, or lists that somebody calls back: [] until it is over."""

    def __init__(self):
        self.now, self.queue, self.number = 0.0, [], 0

    def at(self, time, act):
        self.number += 1
        heapq.heappush(self.queue, (time, self.number, act))

    def spawn(self, process):
        def go():
            wait = next(process, None)
            if isinstance(wait, list):
                wait.append(lambda: self.at(self.now, go))
            elif wait is not None:
                self.at(self.now + wait, go)
        self.at(self.now, go)

    def run(self):
        while self.queue:
            self.now, _, act = heapq.heappop(self.queue)
            act()


class Tensor:
    def __init__(self, size, layer):
        self.size, self.layer, self.block, self.copied = size, layer, 0, 0.0
        self.begun = self.written = self.wanted = self.is_away = False
        self.reading, self.ready = None, 0.0


class Pool:
    """Threads that take one job after the other."""

    def __init__(self, clock, work):
        self.clock, self.work, self.jobs, self.idle = clock, work, [], []
        for _ in range(WORKERS):
            clock.spawn(self.thread())

    def submit(self, job):
        self.jobs.append(job)
        if self.idle:
            wake = self.idle.pop()
            for act in wake:
                act()

    def thread(self):
        while True:
            while not self.jobs:
                wake = []
                self.idle.append(wake)
                yield wake
            yield from self.work(self.jobs.pop(0))


class Package:
    def __init__(self, calls, tail):
        self.calls, self.tail, self.clock = calls, tail, Clock()
        self.free, self.pinned, self.at_work = {}, 0, 0
        self.store_end = self.load_end = self.gpu_end = 0.0
        self.away = self.most_away = self.stored = 0
        self.writers, self.readers = Pool(self.clock, self.write), Pool(self.clock, self.read)
        self.steps = []

    def block(self, size):
        """(bytes, seconds to get it). PyTorch has a block again when the copies behind which it was given back are over."""
        size = 1 << (size - 1).bit_length()
        blocks = self.free.setdefault(size, [])
        for index, over in enumerate(blocks):
            if over <= self.clock.now:
                del blocks[index]
                return size, 0.0
        self.pinned += size
        return size, size / PINNING

    def file_seconds(self, size, rate):
        self.at_work += 1
        yield size / min(rate, FILES_TOGETHER / self.at_work)
        self.at_work -= 1

    def write(self, tensor):
        if tensor.wanted:  # its future was cancelled
            return
        tensor.begun = True
        yield max(0.0, tensor.copied - self.clock.now)
        yield from self.file_seconds(tensor.size, FILE_WRITE)
        self.free[tensor.block].append(self.store_end)
        self.stored += tensor.size
        tensor.written, tensor.is_away = True, not tensor.wanted
        if tensor.is_away:
            self.away += tensor.size
            self.most_away = max(self.most_away, self.away)

    def read(self, tensor):
        block, seconds = self.block(tensor.size)
        yield seconds
        yield from self.file_seconds(tensor.size, FILE_READ)
        self.load_end = max(self.load_end, self.clock.now) + tensor.size / LINK
        tensor.ready = self.load_end
        self.free[block].append(self.load_end)
        waiting, tensor.reading = tensor.reading, None
        for act in waiting:
            act()

    def want(self, tensor):
        if tensor.wanted:
            return
        tensor.wanted = True
        if tensor.is_away:
            self.away -= tensor.size
            tensor.reading = []
            self.readers.submit(tensor)
        elif not tensor.begun:  # its write is given up, its copy runs
            self.free[tensor.block].append(self.store_end)

    def store(self, tensor):
        tensor.block, seconds = self.block(tensor.size)
        yield seconds + HOOK
        self.store_end = max(self.store_end, self.gpu_end) + tensor.size / LINK
        tensor.copied = self.store_end
        self.writers.submit(tensor)

    def load(self, tensor, layers):
        for layer in (tensor.layer, tensor.layer - 1):  # and the layer before it
            for other in reversed(layers.get(layer, [])):
                self.want(other)
        yield HOOK
        if tensor.reading is not None:
            yield tensor.reading
        self.gpu_end = max(self.gpu_end, tensor.ready)
        if tensor.begun:
            yield tensor.size / REMOVAL

    def run(self, steps):
        self.clock.spawn(self.launches(steps))
        self.clock.run()
        return self.steps

    def launches(self, steps):
        for _ in range(steps):
            begin, stored, tensors, layers, self.most_away = self.clock.now, self.stored, {}, {}, self.away
            self.gpu_end = begin
            for kind, key, size, layer, host, work in self.calls:
                yield host
                self.gpu_end = max(self.gpu_end, self.clock.now) + work
                if kind == "store":
                    tensors[key] = Tensor(size, layer)
                    layers.setdefault(layer, []).append(tensors[key])
                    yield from self.store(tensors[key])
                else:
                    yield from self.load(tensors[key], layers)
            self.gpu_end += self.tail
            yield max(0.0, max(self.gpu_end, self.store_end, self.load_end) - self.clock.now)
            self.steps.append({"seconds": self.clock.now - begin, "stored_bytes": self.stored - stored,
                               "most_away_bytes": self.most_away, "pinned_bytes": self.pinned})


def asked(program, *words):
    done = subprocess.run([program, "run", *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr.strip())


def loaded(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def calls_of(recording, program, layers):
    """What the launching thread does, a call for each tensor it stores or loads: ([(kind, tensor, bytes, layer, seconds of the
    host since the call before, of kernels launched since then)], seconds of kernels behind the last)."""
    settings = [word for setting in cases.TECHNIQUES["host"] + ["offload.hooks=false"] for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as scratch:
        plain, plan, moved = (os.path.join(scratch, name) for name in ("plain.json", "plan.json", "moved.json"))
        # Nothing is large enough to move: the step as it stands, its ops numbered as the plan has them.
        asked(program, recording, *settings, "--set", "offload.least_elements=1000000000000", "--timeline", plain)
        asked(program, recording, *settings, "--plan-output", plan, "--timeline", moved)
        events, absences = loaded(plain)["traceEvents"], loaded(plan)["fates"]["absences"]
        sizes = [event["args"]["bytes"] for event in loaded(moved)["traceEvents"] if event["name"] == "offload store"]
    launched = {event["id"] - 1: event["ts"] for event in events if event["ph"] == "s"}
    calls = {event["args"]["correlation"]: event["ts"] for event in events if event.get("cat") == "cuda_runtime"}
    kernels = sorted((calls[event["args"]["correlation"]], event["dur"]) for event in events if event.get("cat") == "kernel")
    stores = sorted((launched[absence[2]], launched[absence[5]], size) for absence, size in zip(absences, sizes))
    last_load, of_step = 0.0, []  # a recording may have several steps; this is the first
    for store in stores:
        if of_step and store[0] > last_load:
            break
        of_step.append(store)
        last_load = max(last_load, store[1])
    each = max(1, round(len(of_step) / (layers - 1)))
    points = sorted((time, kind, index, of_step[index][2], min(index // each, layers - 2))
                    for index in range(len(of_step))
                    for kind, time in (("store", of_step[index][0]), ("load", of_step[index][1])))
    found, before, at = [], kernels[0][0], 0
    for time, kind, index, size, layer in points:
        work = 0.0
        while at < len(kernels) and kernels[at][0] <= time:
            work += kernels[at][1]
            at += 1
        found.append((kind, index, size, layer, max(0.0, time - before) / 1e6, work / 1e6))
        before = time
    whole = sum(seconds for _, seconds in kernels) / 1e6 / round(len(stores) / len(of_step))
    return found, whole - sum(call[5] for call in found)


def predicted(recording, program, kept_peak, warm_up=3, steps=10):
    """Of the steps behind the warm-up: the median, in ns, and the most bytes allocated."""
    with open(os.path.join(recording, "manifest.json"), encoding="utf-8") as file:
        layers = json.load(file)["about"]["shape"]["layers"]
    run = Package(*calls_of(recording, program, layers)).run(warm_up + steps)[warm_up:]
    return {"step_time": statistics.median(step["seconds"] for step in run) * 1e9,
            "peak_allocated": kept_peak - min(step["most_away_bytes"] for step in run)}
