"""A good input of every kind that the program reads, and the commands that read it."""
import gzip
import json
import os
import random
import subprocess

from bad_inputs import Kind

STEP = {"schema": "spillway-scenario", "version": 1,
        "model": {"name": "gpt2-small", "sequence": 128, "micro_batch": 1},
        "hardware": {"profile": "h100-80gb-1gpu"}}
SWEEP = {"schema": "spillway-sweep", "version": 1,
         "base": {"model": {"name": "gpt2-small", "sequence": 128, "global_batch": 16}, "hardware": {"profile": "dgx-h100"}},
         "constants": {"gpus": 8},
         "axes": [{"name": "t", "key": "model.tensor_parallel", "values": [1, 2]},
                  {"name": "b", "key": "model.micro_batch", "from": 1, "to": 2, "times": 2}],
         "derived": [{"name": "d", "key": "model.data_parallel", "value": "gpus / t"}],
         "where": [{"is": "t * b <= 4", "reason": "no more than four"}],
         "objectives": ["step_time", "peak_memory"]}
GRAPH = {"nodes": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}],
         "edges": [{"src": [0], "sinks": [1, 2], "size": 1}, {"src": [1], "sinks": [3], "size": 8},
                   {"src": [2], "sinks": [3], "size": 4}], "pt_order": [0, 2, 1, 3]}
BUFFERS = "id,lower,upper,size\na,0,3,400000\nb,1,5,200000\nc,3,6,400000\nd,2,4,300000\n"
SHELL = ("#!/bin/bash\ntorchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 2 \\\n"
         "  --num-layers 4 --hidden-size 256 --num-attention-heads 4 --vocab-size 1000 --seq-length 128 \\\n"
         "  --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --bf16\n")


def lines_with(text, number, replacements):
    """The text with one line's words changed, once for each replacement."""
    lines = text.splitlines(keepends=True)
    return [("".join(lines[:number]) + line + "\n" + "".join(lines[number + 1:])).encode("utf-8", "surrogateescape")
            for line in replacements]


class Maker:
    def __init__(self, program, root, folder):
        self.program, self.root, self.folder = program, root, folder
        self.kinds = []

    def at(self, name):
        return os.path.join(self.folder, name)

    def keep(self, name, content):
        with open(self.at(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else json.dumps(content).encode())

    def bytes_of(self, path):
        with open(path, "rb") as file:
            content = file.read()
        return gzip.decompress(content) if path.endswith(".gz") else content

    def source(self, name):
        return self.bytes_of(os.path.join(self.root, name))

    def made(self, name, *arguments):
        """What the program writes to the file `name`, when asked with OUT in that place."""
        words = [self.at(name) if word == "OUT" else word for word in arguments]
        result = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{words}: {result.stderr}")
        return self.bytes_of(self.at(name))

    def add(self, name, good, commands, ending=".json", **more):
        good = good if isinstance(good, bytes) else json.dumps(good).encode()
        self.kinds.append(Kind(name, good, [command.split() for command in commands], ending, **more))


SCENARIO_COMMANDS = ["run BAD", "explain BAD", "compare GOOD/step.json BAD", "fit BAD --output OUT", "techniques BAD",
                     "report step BAD --output OUT.html", "report ssd BAD --output OUT.csv", "run BAD --timeline OUT.svg",
                     "plan recompute BAD --output OUT.json", "export BAD --for megatron --output OUT",
                     "run BAD --memory-snapshot OUT.pickle", "run BAD --output OUT.html", "plan offload BAD --output OUT.json", "plan rok BAD"]


def add_documents(maker):
    """Our own: scenarios and what they name."""
    for name in ("gpt2-xl-1k-h100", "llama2-70b-chronos-64xa100", "ssdtrain-gpt-h12288"):
        maker.add(f"scenario {name}", maker.source(f"cli/scenarios/{name}.json"), SCENARIO_COMMANDS, strict=True,
                  anywhere=("/hardware/set",))
    maker.add("scenario with a capacity section", maker.source("cli/scenarios/llama2-70b-width-chronos-capacity.json"),
              ["capacity BAD"], strict=True, anywhere=("/hardware/set",))
    maker.add("scenario with a procurement section", maker.source("cli/scenarios/llama3-8b-procurement.json"),
              ["report procurement BAD --output OUT.html", "report procurement BAD --output OUT.xlsx"], strict=True,
              anywhere=("/hardware/set",))
    maker.add("small sweep", SWEEP, ["sweep BAD --output OUT", "sweep BAD", "sweep BAD --output OUT --resume",
                                     "report procurement BAD --output OUT.csv"], strict=True)
    maker.add("sweep", maker.source("cli/sweeps/gpt3-175b-512xa100.json"),
              ["sweep BAD --output OUT", "sweep BAD --check-screen 2", "sweep BAD --plot front=OUT.svg"], strict=True)
    for place in ("gpus/h100-sxm5-80gb", "nvme/samsung-990-pro-2tb", "hosts/dgx-h100-host", "networks/nvlink4-h100",
                  "systems/dgx-h100"):
        commands = ["profile check BAD", "profile show ./BAD"]
        if place.startswith(("systems", "gpus")):
            commands += ["run GOOD/step.json --set hardware.profile=./BAD", "profile diff ./BAD " + place.split("/")[1]]
        maker.add(f"profile {place}", maker.source(f"hwprofiles/data/{place}.json"), commands, strict=True)
    for name in ("gpt2-small", "llama-3-8b", "mixtral-8x7b"):
        maker.add(f"model {name}", maker.source(f"models/data/{name}.json"),
                  ["run GOOD/step.json --set model.name=./BAD", "fit ./BAD --on dgx-h100", "new ./BAD --output OUT"],
                  strict=True)
    maker.add("prices", maker.source("hwprofiles/prices.json"),
              ["report procurement GOOD/procurement.json --prices BAD --output OUT.html",
               "capacity GOOD/step.json --axis replicas --max-cost 1000000 --prices BAD"], strict=True)
    for name in ("zero-bubble", "other"):
        maker.add(f"cases {name}", maker.source(f"validation/published/{name}.json"),
                  ["validate BAD --output OUT.csv", "validate BAD --plot OUT.svg", "validate BAD"], strict=True)


def add_plans(maker):
    step = maker.at("step.json")
    follow = ["run GOOD/step.json --set plan=BAD", "run GOOD/step.json --set plan=BAD --plan-output OUT",
              "export GOOD/step.json --set plan=BAD --for pytorch --output OUT"]
    maker.add("offload plan", maker.made("offload.json", "plan", "offload", step, "--budget", "2.2GiB", "--output", "OUT"),
              follow, strict=True)
    maker.add("recomputation plan", maker.made("recompute.json", "plan", "recompute", step, "--method", "full", "--output",
                                               "OUT"), follow, strict=True)
    maker.add("order plan", maker.made("order.json", "plan", "order", step, "--method", "greedy", "--layout", "--output",
                                       "OUT"), follow, strict=True)
    planned = "--set memory.allocator=planned --set memory.capacity_bytes=79000000000 --set memory.plan=BAD"
    maker.add("memory plan", maker.made("stalloc.json", "plan", "stalloc", step, "--output", "OUT"),
              [f"run GOOD/step.json {planned}", "memory GOOD/step.pickle --allocator planned --plan BAD"], strict=True)
    maker.add("pipeline schedule",
              maker.made("schedule.json", "plan", "pipeline", "--schedule", "1f1b", "--stages", "3", "--microbatches", "6",
                         "--output", "OUT"),
              ["plan pipeline --schedule ./BAD", "plan pipeline --schedule ./BAD --output OUT.svg"])
    maker.add("graph", GRAPH, ["plan order BAD --output OUT", "plan order BAD --layout-output OUT", "plan order BAD --compare"])
    rows = "id,lower,upper,size\n"
    table_faults = {
        "table": [(rows + row + "\n").encode("utf-8", "surrogateescape") for row in (
            "a,0,3", "a,0,3,4,5", "a,x,3,4", "a,0,3,-4", "a,3,0,4", "a,0,nan,4", "a,0,inf,4", "a,0,1e400,4", "a,0,3,4.5",
            "a,0,3,99999999999999999999", "a,0,3,", "a;0;3;4", "a,0,3,0x10", "a,0,3,4\na,0,3,4", '"a,0,3,4', "a,-9" + "9" * 30 + ",3,4",
            "a,0,3,4\x00", "a,0,3,four\x1b[31m")],
        "heading": [BUFFERS.replace("size", word).encode() for word in ("", "sise", "size,size", "lower")]}
    maker.add("buffers", BUFFERS.encode(), ["plan layout BAD --output OUT", "plan layout BAD"], ".csv", json=False,
              faults=table_faults)
    log = maker.source("tests/docs/stand-ins/mem_log_dev0.txt").decode()
    maker.add("allocation log", log.encode(), ["plan stalloc BAD --output OUT"], ".txt", json=False, faults={
        "line": lines_with(log, 2, ("1 x 1000 0", "1 -5 1000 0", "1 nan 1000 0", "1 1e400 1000 0", "1 100", "7 100 1000 0",
                                    "1 99999999999999999999 1000 0", "word", "1 100 2000 0 1 2 3 \x1b"))})


def add_stores(maker):
    maker.keep("sweep.json", SWEEP)
    store = maker.made("sweep.store", "sweep", maker.at("sweep.json"), "--output", "OUT")
    text = store.decode()
    rng = random.Random(7)
    damaged = []
    for _ in range(8):  # no line's checksum holds
        damaged.append("".join(line[:9] + line[9:].replace('"', "'", rng.randrange(1, 5)) for line in text.splitlines(True)).encode())
    maker.add("store", store, ["merge BAD", "merge BAD --output OUT", "merge GOOD/sweep.store BAD --output OUT",
                               "sweep GOOD/sweep.json --resume --output BAD", "sweep GOOD/sweep.json --output BAD"],
              ".store", json=False, drop=("empty",), faults={
                  "checksums": damaged,
                  "without checksums": ["".join(line[9:] for line in text.splitlines(True)).encode()],
                  "notes": [b"notes of a month\n", b"a,b\n1,2\n", b"{}", b"[]\n", b"00000000 {}\n", b"0" * 4096]})
    notes = b"an hour's notes\nthat nobody else has\n"
    maker.add("file in a store's place", notes, ["sweep GOOD/sweep.json --resume --output BAD", "sweep GOOD/sweep.json --output BAD",
                                                 "merge GOOD/sweep.store --output BAD"], ".txt", json=False,
              drop=("empty",), faults={"notes": [notes, b"\n", b"x"]})


def add_foreign(maker):
    """Files of other programs: unknown keys are passed over, so fewer faults are certain."""
    hf = "tests/fuzz/seeds/model/"
    for name in ("hf-deepseek-v3", "hf-gemma-2"):
        maker.add(f"Hugging Face config {name}", maker.source(f"{hf}{name}.json"),
                  ["run GOOD/step.json --set model.name=./BAD", "fit ./BAD --on dgx-h100 --output OUT"],
                  faults={"sizes": [json.dumps({**json.loads(maker.source(f"{hf}{name}.json")), key: value}).encode()
                                    for key in ("hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads")
                                    for value in (-1, 0, "many", [], {}, None, 1e300, 2.5)]})
    trainer = json.loads(maker.source("tests/launch/data/ds-alone.json"))
    maker.add("DeepSpeed configuration", trainer, ["import BAD --model gpt2-small --output OUT"],
              drop=("no UTF-8",), faults={
        "sizes": [json.dumps({**trainer, key: value}).encode()
                  for key in ("train_micro_batch_size_per_gpu",) for value in (-1, 0, "many", [], {}, 1e300, 2.5)]})
    for name in ("fsdp.yaml", "titan-llama3-8b.toml"):
        good = maker.source(f"tests/launch/data/{name}").decode()
        middle = good.count("\n") // 2
        mark = ("a: [1, 2", "a: {b: 1", "a: &x *y *z", "\ta: 1\n b: 2", "- x\na: 1") if name.endswith("yaml") else (
            "a = [1, 2", "a = {b = 1", 'a = "b', "[section", "a = 1\na = 2", "a == 1")
        maker.add(f"launch file {name}", good.encode(), ["import BAD --model gpt2-small --output OUT"],
                  os.path.splitext(name)[1], json=False, faults={"syntax": lines_with(good, middle, mark)})
    maker.add("launch script", SHELL.encode(), ["import BAD --output OUT", "import BAD --on dgx-a100"], ".sh", json=False, faults={
        "arguments": [SHELL.replace(old, new).encode("utf-8", "surrogateescape") for old, new in (
            ("--tensor-model-parallel-size 2", "--tensor-model-parallel-size two"),
            ("--tensor-model-parallel-size 2", "--tensor-model-parallel-size -2"),
            ("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 1e400"),
            ("--tensor-model-parallel-size 2", "--tensor-model-parallel-size $TP"),
            ("--num-layers 4", "--num-layers 0"), ("--num-layers 4", "--num-layers nan"),
            ("--num-layers 4", "--num-layers 99999999999999999999"), ("--hidden-size 256", "--hidden-size -1"),
            ("--hidden-size 256", "--hidden-size 2.5"), ("--seq-length 128", "--seq-length inf"),
            ("--micro-batch-size 1", "--micro-batch-size"), ("--bf16", "'--bf16"), ("--bf16", '"'),
            ("--micro-batch-size 1", "--micro-batch-size $(cat x)"))]})


TRACE_COMMANDS = ["trace info BAD", "trace check BAD", "trace convert BAD OUT.json", "memory BAD", "run BAD",
                  "trace convert BAD OUT.spillway", "plan order BAD --output OUT", "explain BAD",
                  "memory BAD --save-requests OUT", "report step BAD --output OUT.html", "explain BAD --output OUT.html"]


def add_traces(maker):
    step = maker.at("step.json")
    maker.made("step.pickle", "run", step, "--memory-snapshot", "OUT")
    graph = maker.made("step.spillway", "trace", "convert", maker.at("step.pickle"), "OUT")
    own = maker.made("own.spillway.json", "trace", "convert", maker.at("step.pickle"), "OUT")
    chakra = maker.source("tests/fuzz/seeds/chakra/small.et")
    seeds = "tests/fuzz/seeds/"

    def cut(content, seed):
        rng = random.Random(seed)
        return [content[:length] for length in sorted(rng.sample(range(12, len(content) - 1), min(12, len(content) - 13)))]

    def flipped(content, seed, places):
        rng, spoiled = random.Random(seed), []
        for _ in range(8):
            changed = bytearray(content)
            changed[rng.choice(places)] ^= 1 << rng.randrange(8)
            spoiled.append(bytes(changed))
        return spoiled

    maker.add("trace of spillway's", graph, TRACE_COMMANDS, ".spillway", json=False,
              faults={"cut": cut(graph, 1), "first byte": flipped(graph, 2, range(4))})
    maker.add("trace in spillway's readable form", own, TRACE_COMMANDS, ".json", strict=True,
              anywhere=("/provenance", "/metadata", "/steps"), drop=("unknown key", "no object"))
    snapshot = maker.bytes_of(maker.at("step.pickle"))
    maker.add("trace: memory snapshot", snapshot, TRACE_COMMANDS, ".pickle", json=False,
              faults={"cut": cut(snapshot, 3), "first byte": flipped(snapshot, 4, range(1)),
                      "other pickles": [b"\x80\x04N.", b"\x80\x04]q\x00.", b"\x80\x04}q\x00.", b"cos\nsystem\n(S'true'\ntR.",
                                        b"\x80\x04" + b"(" * 100_000, b"\x80\x04" + b"]" * 100_000 + b".",
                                        b"\x80\x05\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", b"\x80\x04X\xff\xff\xff\x7f."]})
    nsys = maker.source(seeds + "nsys/small.sqlite")
    maker.add("trace: Nsight Systems export", nsys, TRACE_COMMANDS, ".sqlite", json=False,
              faults={"cut": cut(nsys[:4096], 5), "first byte": flipped(nsys, 6, range(15))})
    maker.add("trace: Chakra graph", chakra, TRACE_COMMANDS, ".et", json=False, faults={"first byte": flipped(chakra, 8, (0,))})
    perfetto = maker.source(seeds + "perfetto/rocprof.pftrace")

    def packets(*messages):  # behind one that says a sequence's number alone
        return b"".join(b"\x0a" + bytes([len(message)]) + message for message in (b"\x50\x01", *messages))

    ranges = (b"\x40\x05\x5a\x08\x48\x01\x58\x01\xba\x01\x01k", b"\x40\x09\x5a\x04\x48\x02\x58\x01")
    maker.add("trace: Perfetto", perfetto, TRACE_COMMANDS, ".pftrace", json=False,
              faults={"first byte": flipped(perfetto, 9, (0,)),
                      "other packets": [packets(), packets(b"\x58\x03"), packets(b"\x5a\x01\x0b"), packets(*ranges)[:-3] + b"\xff" * 12,
                                        packets(b"\x92\x03\x02\x78\x9c"), packets() + b"\x0a\x80\x80\x80\x80\x80\x20",
                                        packets(b"\xe2\x03\x04\x08\x01\x28\x02", b"\xe2\x03\x04\x08\x02\x28\x01", *ranges)]})
    for name, seed in (("trace: Kineto", "kineto/step.json"), ("trace: ExecutionTrace", "execution_trace/flat.json"),
                       ("trace: rocprofv3's JSON", "rocprof_json/step.json")):
        good = maker.source(seeds + seed)
        # Rows of a wrong type are left out and told; a reader of JSON as it streams by need not see what follows.
        maker.add(name, good, TRACE_COMMANDS, ".json",
                  drop=("cut", "no object", "not a number", "beyond a double", "control character", "no UTF-8", "behind the end", "too deep", "brackets"))


def add_settings(maker):
    """Values on the command line: the scenario is named, or --set."""
    numbers = ("model.sequence", "model.micro_batch", "model.tensor_parallel", "model.pipeline_parallel", "model.data_parallel",
               "model.gradient_accumulation", "model.zero_stage", "memory.capacity_bytes", "what_if.gpu", "what_if.pcie",
               "hardware.jitter.sigma", "model.layers")
    words = ("model.precision", "model.optimizer", "memory.allocator", "model.recompute", "offload.technique",
             "model.pipeline_schedule", "model.framework")
    values = ("abc", "nan", "inf", "-inf", "1e400", "-1", "[]", "{}", "[1,2]", '{"a":1}', "1e300", "--", "\x1b[31m")
    commands = [f"run BAD --set {key}={value}" for key in numbers for value in values]
    commands += [f"run BAD --set {key}={value}" for key in words for value in ("no_such_word", "1", "[]", "{}", "nan", "true")]
    commands += [f"run BAD --set {word}" for word in ("model", "=", "=1", "model.=1", ".=1", "model..sequence=1", "a.b.c=1",
                                                      "model.sequence", "schema=x", "version=99", "model.sequense=1")]
    for number, command in enumerate(commands):
        maker.add(f"setting {number}", STEP, [command], json=False,
                  drop=("empty", "binary", "zeros", "cut gzip", "damaged gzip", "cut zstd", "machine code", "picture", "web page",
                        "wrong kind of file"), faults={"value": [json.dumps(STEP).encode()]})


def keep_basics(maker):
    """What commands of every kind name as GOOD/..."""
    maker.keep("step.json", STEP)
    maker.keep("procurement.json", maker.source("cli/scenarios/llama3-8b-procurement.json"))


def make(program, root, folder):
    maker = Maker(program, root, folder)
    keep_basics(maker)
    add_documents(maker)
    add_foreign(maker)
    add_traces(maker)
    add_plans(maker)
    add_stores(maker)
    add_settings(maker)
    return maker.kinds


# What stands in a place, by the first word of a kind's name, to what else may stand there.
TAKEN_TOO = {"scenario": ("sweep", "small", "model", "Hugging", "graph", "trace"), "small": ("sweep", "scenario"),
             "sweep": ("small", "scenario"), "model": ("Hugging", "scenario", "trace"), "Hugging": ("model", "scenario", "trace"), "trace": ("scenario", "graph"),
             "graph": ("trace", "scenario"), "allocation": ("trace", "scenario"), "file": ("store",), "memory": ("buffers",),
             "offload": ("recomputation", "order"), "recomputation": ("offload", "order"), "order": ("offload", "recomputation")}


def strangers(kind, kinds):
    """Good files of other kinds, none of which the commands of `kind` can take."""
    if kind.name.startswith(("launch", "setting")):
        return []
    first = kind.name.split()[0].rstrip(":")
    return [other for other in kinds
            if not other.name.startswith((first, "setting", "launch", "file") + TAKEN_TOO.get(first, ()))]
