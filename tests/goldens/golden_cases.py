"""What is pinned: groups of command lines. {root} is the source tree, {folder} a folder for files made on the way."""
import dataclasses
import glob
import hashlib
import json
import os


@dataclasses.dataclass
class Case:
    name: str
    arguments: list
    pick: object         # from the answer's document, what is pinned of it: its fingerprint and about six figures
    full: bool = False   # only where SPILLWAY_TEST_SIZE=full
    needs: str = ""      # a file that not every machine has


def digest(value):
    """Stands for what has no fingerprint of its own."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def only(answer, *keys):
    """Of the document, or of a part of it, what is there of the keys."""
    return {key: answer[key] for key in keys if answer.get(key) is not None}


def column(rows, key):
    return [row.get(key) for row in rows]


STEP = ("verdict", "short_of_bytes", "step_time_ns", "peak_allocated_bytes", "peak_reserved_bytes")


def run_figures(answer):
    """Of a replay: its fingerprint pins all times; with several ranks each one's memory."""
    drives, ranks = answer.get("ssd") or {}, answer.get("ranks") or []
    return {**only(answer, "fingerprint", *STEP, "binding_resource", "mfu"),
            **only(drives, "bytes_written_per_step", "life_years"),
            **({"ranks_reserved_bytes": column(ranks, "peak_reserved_bytes")} if ranks else {})}


def explain_figures(answer):
    return {**only(answer, "fingerprint", "step_time_ns"),
            "relaxed_ns": column(answer.get("relaxations", []), "step_time_ns"),
            "owners_bytes": column(answer.get("memory", {}).get("peak_owners", []), "bytes")}


def memory_figures(answer):
    return only(answer, "peak_allocated_bytes", "peak_active_bytes", "peak_requested_bytes", "peak_reserved_bytes",
                "segments_allocated", "allocations")


def stalloc_figures(answer):
    return {**only(answer, "pool_bytes", "lower_bound_bytes", "dynamic_spaces"),
            "reserved_bytes": column(answer["allocators"], "peak_reserved_bytes")}


def layout_figures(answer):
    return only(answer, "buffers", "height", "lower_bound", "proven", "effort")


def order_figures(answer):
    planned = answer.get("planned") or {}
    return {**only(answer, "operators", "peak_bytes", "program_order_peak_bytes", "lower_bound_bytes", "proven"),
            "layout_bytes": answer["layout"]["height_bytes"],
            **only(answer, "emulated_reserved_bytes"), **only(planned, "step_time_ns", "peak_reserved_bytes")}


def recompute_figures(answer):
    return {**only(answer["plan"], "method", *STEP, "away_bytes", "repeated_ops"), **only(answer, "replays")}


def offload_figures(answer):
    return {**only(answer, "fingerprint"), **only(answer["best"], *STEP),
            **only(answer, "kept_bytes", "to_host_bytes", "to_drives_bytes", "recomputed_bytes", "replays"),
            "baselines_ns": column(answer["baselines"], "step_time_ns")}


def rok_figures(answer):
    return {key: column(answer["points"], key) for key in ("step_time_ns", "peak_reserved_bytes", "activation_bytes")}


def pipeline_figures(answer):
    return {**only(answer, "name", "verdict", "makespan", "bubble_makespan", "peak_activations", "lower_bound", "proven"),
            "orders": digest(answer["orders"])}


def pipelines_figures(answer):
    return {row["name"]: [row["makespan"], max(row["peak_activations"])] for row in answer["schedules"]}


def capacity_figures(answer):
    return {row["technique"]: row["answer"] for row in answer["answers"]}


def procurement_figures(answer):
    return {**only(answer, "fingerprint", "answer"), "options": digest(answer["options"])}


def drives_figures(answer):
    return {**only(answer, "fingerprint", "answer", "step_time_ns", "bytes_written_per_step"),
            "lives_years": column(answer.get("drives", []), "life_years")}


def run(name, scenario, *settings, full=False):
    return Case(name, ["run", scenario, *(word for setting in settings for word in ("--set", setting))], run_figures,
                full)


def scenarios(root):
    """Every bundled one, by name."""
    found = {}
    for folder in ("cli/scenarios", "gui/scenarios"):
        for path in sorted(glob.glob(os.path.join(root, folder, "*.json"))):
            found[os.path.splitext(os.path.basename(path))[0]] = path.replace(root, "{root}")
    return found


def draws(seed):
    """below(n): whole numbers from 0, the same on every machine (Knuth's MMIX generator)."""
    state = seed

    def below(bound):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % bound

    return below


# Much as a step: weights live throughout, activations of layers nest, temporaries come and go.
def write_buffers(path, seed, layers, temporaries):
    below = draws(seed)
    end = 4 * layers
    rows = [(0, end, 512 * (1 + below(64))) for _ in range(layers)]
    rows += [(2 * i, end - 2 * i, 512 * (1 + below(256))) for i in range(layers)]
    for _ in range(temporaries):
        begin = below(end - 3)
        rows.append((begin, begin + 1 + below(3), 512 * (1 + below(512))))
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size\n")
        for number, (lower, upper, size) in enumerate(rows):
            file.write(f"{number},{lower},{upper},{size}\n")


LAYOUTS = [("small", 1, 6, 40), ("nested", 2, 40, 0), ("loose", 3, 4, 300), ("step", 4, 32, 400)]
SMALL = "{root}/cli/scenarios/gpt2-xl-1k-h100.json"
CAPTURE = "{root}/traces/data/gpt2-tiny-cpu/steps.json.gz"


# One scenario for all offload techniques: eight layers, drives and host memory at hand.
OFFLOADED = {"model": {"name": "gpt2-xl", "layers": 8, "sequence": 1024, "micro_batch": 16},
             "hardware": {"profile": "h100-80gb-1gpu"},
             "offload": {"drives": "samsung-pm1743-15.36tb", "drives_per_machine": 2}}
# And one for all pipeline schedules: parts enough for four stages of four chunks.
PIPELINED = {"model": {"name": "gpt2-small", "layers": 16, "sequence": 1024, "micro_batch": 4,
                       "gradient_accumulation": 8, "framework": "megatron_2022", "pipeline_parallel": 4},
             "hardware": {"profile": "dgx-a100"}}
# One GPU of many, with all that a data-parallel replica does.
PARALLEL = {"model": {"name": "gpt2-medium", "layers": 6, "sequence": 1024, "micro_batch": 2, "global_batch": 32,
                      "framework": "megatron_2022", "tensor_parallel": 2, "sequence_parallel": True, "data_parallel": 4},
            "hardware": {"profile": "dgx-a100"}}


def write_scenario(runner, name, parts):
    with open(os.path.join(runner.folder, name + ".json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "spillway-scenario", "version": 1, **parts}, file)
    return "{folder}/" + name + ".json"


def techniques(runner):
    offloaded = write_scenario(runner, "offloaded", OFFLOADED)
    cases = []
    for tier in ("drive", "host"):
        for technique in ("none", "ssdtrain", "mix", "lifetimes", "stream"):
            cases.append(run(f"offload {technique} to {tier}", offloaded, f"offload.technique={technique}",
                             f"offload.tier={tier}"))
    for recompute in ("none", "selective", "full"):
        for flash in ("true", "false"):
            cases.append(run(f"recompute {recompute}, flash attention {flash}", offloaded,
                             f"model.recompute={recompute}", f"model.flash_attention={flash}"))
    for device in ("gpu", "cpu", "drives"):
        cases.append(run(f"optimizer on {device}", offloaded, f"model.optimizer_device={device}"))
    for optimizer in ("adamw", "adam", "sgd", "sgd_momentum", "adafactor", "adamw_8bit", "muon"):
        cases.append(run(f"optimizer {optimizer}", offloaded, f"model.optimizer={optimizer}"))
    parallel = write_scenario(runner, "parallel", PARALLEL)
    for zero in range(4):
        cases.append(run(f"ZeRO {zero}", parallel, f"model.zero_stage={zero}"))
    cases.append(run("FSDP, late prefetch", parallel, "model.zero_stage=3", "model.late_prefetch=true"))
    return cases


def schedules(runner):
    pipelined = write_scenario(runner, "pipelined", PIPELINED)
    table = ["plan", "pipeline", "--stages", "4", "--microbatches", "8"]
    names = [row["name"] for row in runner.answer([*table, "--schedule", "all"])[0]["schedules"]]
    cases = [Case("all, uneven times", [*table, "--schedule", "all", "--set", "tf=1", "--set", "tb=1.2", "--set",
                                        "tw=0.8", "--set", "tcomm=0.1"], pipelines_figures)]
    for limit in (3, 6):
        cases.append(Case(f"best of {limit}", [*table, "--schedule", "best", "--chunks", "1", "--memory-limit",
                                              str(limit), "--effort", "20000"], pipeline_figures))
    for name in names:
        cases.append(Case(f"{name}, orders", [*table, "--schedule", name], pipeline_figures))
        cases.append(run(f"{name}, a model's step", pipelined, f"model.pipeline_schedule={name}"))
    return cases


def allocators(runner):
    offloaded = write_scenario(runner, "offloaded", OFFLOADED)
    names = ("ideal", "torch", "torch-expandable", "gmlake", "stalloc")
    cases = [run(f"{name}, a model's step", offloaded, f"memory.allocator={name}") for name in names]
    snapshot, plan = "{folder}/step.pickle", "{folder}/stalloc-plan.json"
    runner.answer(["run", offloaded, "--memory-snapshot", snapshot])
    runner.answer(["plan", "stalloc", snapshot, "--output", plan])
    cases += [Case(f"{name}, a recorded stream", ["memory", snapshot, "--allocator", name], memory_figures)
              for name in names[:-1]]
    cases.append(Case("torch, rounded and split", ["memory", snapshot, "--alloc-conf",
                                                  "max_split_size_mb:20,roundup_power2_divisions:4"], memory_figures))
    cases.append(Case("planned, a recorded stream", ["memory", snapshot, "--allocator", "planned", "--plan", plan],
                      memory_figures))
    for algorithm in ("group", "split-and-fuse", "best"):
        cases.append(Case(f"plan stalloc {algorithm}", ["plan", "stalloc", snapshot, "--algorithm", algorithm],
                          stalloc_figures))
    return cases


def layouts(runner):
    cases = []
    for name, seed, layers, temporaries in LAYOUTS:
        file = f"{name}.csv"
        write_buffers(os.path.join(runner.folder, file), seed, layers, temporaries)
        cases.append(Case(name, ["plan", "layout", "{folder}/" + file], layout_figures))
    for letter in "ABCDEFGHIJK":  # MiniMalloc's, where they are at hand
        path = os.path.join(runner.shared, f"memory/dsa_benchmarks/minimalloc_{letter}.1048576.csv")
        cases.append(Case(f"MiniMalloc {letter}", ["plan", "layout", path], layout_figures, full=True, needs=path))
    return cases


# Forward, loss, backward, updates, as OrderGraph's JSON: each layer keeps two activations and updates one weight.
def write_graph(path, seed, layers):
    below = draws(seed)
    nodes, edges = [], []

    def node(*reads):
        for edge in reads:
            edge["sinks"].append(len(nodes))
        nodes.append({"name": f"op{len(nodes)}"})
        return len(nodes) - 1

    def tensor(source, most):
        edges.append({"src": [source], "sinks": [], "size": 1 + below(most)})
        return edges[-1]

    state, kept = tensor(node(), 64), []
    for _ in range(layers):
        wide = tensor(node(state), 256)
        beside = tensor(node(state), 64)
        kept.append((state, wide))
        state = tensor(node(wide, beside), 64)
    gradient = tensor(node(state), 64)
    for state, wide in reversed(kept):
        inner = tensor(node(gradient, wide), 256)
        node(tensor(node(gradient, wide), 128), tensor(node(inner, state), 128))  # the update, of two gradients
        gradient = tensor(node(inner), 64)
    node(gradient)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"nodes": nodes, "edges": edges, "pt_order": list(range(len(nodes)))}, file)


def orders(runner):
    cases = []
    for name, seed, layers in (("small", 5, 4), ("larger", 6, 40)):
        file = f"{name}-graph.json"
        write_graph(os.path.join(runner.folder, file), seed, layers)
        for method in ("program", "greedy", "lescea", "roam", "best"):
            cases.append(Case(f"{method}, {name} graph", ["plan", "order", "{folder}/" + file, "--method", method,
                                                         "--layout"], order_figures))
    short = write_scenario(runner, "short", {**OFFLOADED, "model": {**OFFLOADED["model"], "layers": 2}})
    cases.append(Case("best, a model's step", ["plan", "order", short, "--layout"], order_figures))
    return cases


def fates(runner):
    offloaded = write_scenario(runner, "offloaded", OFFLOADED)
    tiny = write_scenario(runner, "tiny", {**OFFLOADED, "model": {**OFFLOADED["model"], "layers": 1,
                                                                 "dropout": 0}})
    budget = ["--budget", "16GiB"]
    cases = []
    for method in ("none", "selective", "full", "every:2", "segments:3", "greedy", "chain", "best"):
        cases.append(Case(f"recompute {method}", ["plan", "recompute", offloaded, "--method", method, *budget],
                          recompute_figures))
    cases.append(Case("recompute exact", ["plan", "recompute", tiny, "--method", "exact"], recompute_figures))
    for name, more in (("offload", []), ("offload, no drives", ["--no-drives"]),
                       ("offload, nothing again", ["--no-recompute"])):
        cases.append(Case(name, ["plan", "offload", offloaded, *budget, "--replays", "12", *more], offload_figures))
    cases.append(Case("rok", ["plan", "rok", offloaded, "--batches", "4,8"], rok_figures))
    return cases


def answers(runner):
    root = "{root}/cli/scenarios/"
    cases = [Case(f"explain {name}", ["explain", path], explain_figures, full=name.startswith(("gpt3", "llama2")))
             for name, path in scenarios(runner.root).items()]
    cases.append(Case("capacity, micro-batch", ["capacity", SMALL, "--axis", "micro_batch", "--technique", "keep",
                                                "--technique", "full"], capacity_figures))
    cases.append(Case("capacity, Chronos", ["capacity", root + "llama2-70b-width-chronos-capacity.json"],
                      capacity_figures, full=True))
    for name, full in (("gpt2-small", False), ("llama3-8b", True)):
        cases.append(Case(f"procurement, {name}", ["report", "procurement", root + name + "-procurement.json"],
                          procurement_figures, full=full))
    for report in ("ssd", "pcie"):
        cases.append(Case(f"report {report}", ["report", report, SMALL, "--drives",
                                               "samsung-980-pro-1tb,micron-9550-max-12.8tb"], drives_figures))
    return cases


def front(answer):
    """A sweep's counts and the points on its front."""
    rows = [row for row in answer["rows"] if row["on_front"]]
    return {**only(answer, "points", "screened", "replayed", "replays", "front_is_proven"),
            "front": column(rows, "point"), "front_ns": column(rows, "step_time_ns")}


def drawn(runner, file, store):
    """Of --check-screen: the screen's errors, and what `run` says of each drawn point; the store that it kept names them."""
    def points(answer):
        replays = []
        point = store.replace("{folder}", runner.folder) + ".point.json"
        with open(store.replace("{folder}", runner.folder), encoding="utf-8") as kept:
            for line in kept:
                record = json.loads(line[9:])  # behind its checksum
                if "replay" not in record:
                    continue
                number = record["key"].rsplit("-", 1)[1]
                with open(point, "w", encoding="utf-8") as scenario:
                    json.dump(runner.answer(["sweep", file, "--point", number])[0], scenario)
                run = {} if record["error"] else runner.answer(["run", point])[0]
                replays.append([int(number), record["error"],
                                *(run.get(key) for key in ("step_time_ns", "peak_reserved_bytes", "fingerprint"))])
        errors = answer["groups"]["all"] if isinstance(answer["groups"], dict) else answer["groups"][0]
        return {"sampled": answer["sampled"], "replays": digest(sorted(replays)),
                **{key: errors[key]["worst_abs_error"] for key in ("step_time", "peak_reserved")}}
    return points


def sweeps(runner):
    root = "{root}/cli/sweeps/"
    cases = [Case("llama2-7b-16xa100", ["sweep", root + "llama2-7b-16xa100.json"], front, full=True),
             Case("gpt2-medium-32xa100", ["sweep", root + "gpt2-medium-32xa100.json"], front, full=True),
             Case("gpt3-175b-512xa100, part 3 of 16",
                  ["sweep", root + "gpt3-175b-512xa100.json", "--shard", "3/16"], front, full=True)]
    for name, points, full in (("llama2-7b-16xa100", 8, False), ("gpt3-175b-512xa100-wide", 64, True)):
        store = "{folder}/" + name + ".store"
        cases.append(Case(f"{name}, {points} points drawn",
                          ["sweep", root + name + ".json", "--check-screen", str(points), "--output", store],
                          drawn(runner, root + name + ".json", store), full=full))
    return cases


def groups(runner):
    bundled = [run(name, path, full=name.startswith(("gpt3", "llama2")))
               for name, path in scenarios(runner.root).items()]
    bundled.append(run("captured step", CAPTURE))
    return {"scenarios": bundled, "techniques": techniques(runner), "schedules": schedules(runner),
            "allocators": allocators(runner), "layouts": layouts(runner), "orders": orders(runner),
            "fates": fates(runner), "answers": answers(runner), "sweeps": sweeps(runner)}
