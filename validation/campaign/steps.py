"""The steps of a campaign, the most valuable first, and what each needs, runs and leaves."""
import json
import os
import sys

import cases
import machine

HERE = os.path.dirname(os.path.abspath(__file__))
PHASES = ["environment", "smoke", "models", "calibration", "load", "allocator", "plans", "trainer", "overhead",
          "sanitizer"]


class Step:
    """`needs`: words of Campaign.why_not. `commands`: a function of the campaign that gives [(name, command)]; each one's
    output is NAME.out. `done`: called with the campaign and the step's folder when all commands ended well, or, where
    `even_when_cut`, in any case. `accepts`: exit codes that are an answer."""

    def __init__(self, name, phase, seconds, commands, needs=(), done=None, accepts=(0,), after=(), even_when_cut=False,
                 always=False):
        self.name, self.phase, self.seconds, self.commands = name, phase, seconds, commands
        self.needs, self.done, self.accepts, self.after = needs, done, accepts, after
        self.even_when_cut, self.always = even_when_cut, always


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def torch_command(campaign, command, model, batch, folder, *options):
    return [sys.executable, "-B", "-m", "spillway.torch", command, "--model", model, "--batch", str(batch), "--out",
            folder, *options]


# Environment and smoke ---------------------------------------------------------------------------------------------

def environment(campaign, folder):
    return [(name.removesuffix(".txt"), command) for name, command in machine.COMMANDS.items()
            if machine.has_tool(command[0])]


SMOKE_SCENARIO = "share/spillway/examples/scenarios/gpt2-xl-1k-h100.json"
CUDA_LINE = "import torch; x = torch.randn(512, 512, device='cuda'); print((x @ x).sum().item())"


def smoke_steps():
    def program(*words):
        return lambda campaign, folder: [("out", [campaign.program, *(word.format(folder=folder, work=campaign.work,
                                                                                  system=campaign.system()) for word in words)])]
    seconds = 20
    return [
        Step("smoke-torch", "smoke", seconds, lambda campaign, folder: [("out", torch_command(
            campaign, "steps", "gpt2-124m", 1, os.path.join(folder, "steps"), "--steps", "2", "--warm-up", "1",
            "--layers", "2", "--techniques", "keep,full,host"))], needs=("gpu", "torch", "package")),
        Step("smoke-run", "smoke", 10, lambda campaign, folder: [
            ("out", [campaign.program, "run", campaign.scenario("gpt2-124m", 8), "--format", "json"])],
            needs=("program",), accepts=(0, 1)),
        Step("smoke-kernels", "smoke", seconds, program(
            "validate", "kernels", "--backend", "cuda", "--technique", "keep", "--model", "GPT-2 124M, batch 2", "--steps",
            "2", "--file", "{work}/smoke-offload", "--hardware", "{system}", "--format", "json"), needs=("program", "gpu"),
            accepts=(0, 1)),
        Step("smoke-record", "smoke", seconds, lambda campaign, folder: [("out", [
            campaign.program, "record", "--output", os.path.join(folder, "recording.json"), "--", sys.executable, "-c",
            CUDA_LINE])], needs=("program", "gpu", "torch")),
        Step("smoke-cpu", "smoke", 10, program("validate", "kernels", "--backend", "cpu", "--technique", "keep", "--file",
                                               "{work}/smoke-cpu", "--format", "json"), needs=("program",)),
        Step("smoke-sanitizer", "smoke", 10, lambda campaign, folder: [("out", ["compute-sanitizer", "--version"])],
             needs=("sanitizer",)),
    ]


# PyTorch's own steps ------------------------------------------------------------------------------------------------

def record_steps():
    for model, batch in cases.RECORDED:
        name = f"record-{model}-b{batch}"

        def commands(campaign, folder, model=model, batch=batch):
            return [("out", torch_command(campaign, "record", model, batch, os.path.join(folder, "recording")))]
        yield Step(name, "models", 75, commands, needs=("gpu", "torch", "package"),
                   done=lambda campaign, folder, model=model, batch=batch: recorded(campaign, folder, model, batch),
                   even_when_cut=True)

        def join(campaign, folder, name=name):
            recording = os.path.join(campaign.folder_of(name), "recording")
            graph = os.path.join(recording, "graph.json.gz")
            steps = [("convert", [campaign.program, "trace", "convert", os.path.join(recording, "steps.json.gz"),
                                  os.path.join(folder, "trace.spillway")]
                      + (["--graph", graph] if os.path.exists(graph) else []))]
            if os.path.exists(os.path.join(recording, "memory.pickle")):
                steps.append(("memory", [campaign.program, "memory", os.path.join(recording, "memory.pickle"),
                                         "--allocator", "torch", "--format", "json"]))
            return steps
        yield Step(f"join-{model}-b{batch}", "models", 40, join, needs=("program",), after=(name,), accepts=(0, 1),
                   done=lambda campaign, folder, model=model, batch=batch: joined(campaign, folder, model, batch))


def joined(campaign, folder, model, batch):
    predicted_from_trace(campaign, folder, model, batch)
    path = os.path.join(folder, "memory.out")
    if os.path.exists(path):
        campaign.judged(cases.plain_case(model, batch), served_differently(load(path)))


def served_differently(answer):
    """Where the simulator's allocator put what PyTorch's own served in a recorded step: what `spillway memory` counts."""
    return [f"{count}: {answer[count]['matched']} of {answer[count]['total']} as recorded"
            for count in ("addresses", "segments", "final_blocks")
            if answer[count]["matched"] != answer[count]["total"]]


def recorded(campaign, folder, model, batch):
    path = os.path.join(folder, "recording", "manifest.json")
    if not os.path.exists(path):
        return
    phase = load(path)["phases"].get("unprofiled", {})
    memory = phase.get("memory", {})
    campaign.measured(cases.plain_case(model, batch), {"step_time": phase.get("median_ns"),
                      "peak_allocated": memory.get("peak_allocated_bytes"), "peak_reserved": memory.get("peak_reserved_bytes")})


def predicted_from_trace(campaign, folder, model, batch):
    """Replays the recorded step, as it was and under each technique that can be put on a recorded trace."""
    trace = os.path.join(folder, "trace.spillway")
    if not os.path.exists(trace):
        return
    for technique, settings in cases.TECHNIQUES.items():
        is_planned = (model, batch) in cases.PLANNED
        if any(setting.startswith("model.") for setting in settings) or not (is_planned or technique == "keep"):
            continue
        on_machine = ["hardware.profile=" + campaign.system()] if settings else []
        answer = campaign.ask("run", trace, *sets(settings + on_machine))
        if answer is not None:
            figures = {metric: answer.get(key) for metric, (key, _) in cases.METRICS.items()}
            if technique == "keep":
                figures["step_time"] = little_profiled(campaign, model, batch) or figures["step_time"]
            if is_planned:
                campaign.predicted("from_trace", cases.case_name(model, batch, technique), figures)
            if technique == "keep":
                campaign.predicted("from_trace", cases.plain_case(model, batch), figures)
    os.remove(trace)  # made anew of the recording in a second


# Calibration, load, allocator ---------------------------------------------------------------------------------------

def little_profiled(campaign, model, batch):
    """The step's time where the profiler noted kernels and operators alone: with shapes, memory and stacks the host takes
    two to seven times as long (docs/internals/validation.md)."""
    path = os.path.join(campaign.folder_of(f"record-{model}-b{batch}"), "recording", "light.json.gz")
    answer = campaign.ask("run", path) if os.path.exists(path) else None
    return answer.get("step_time_ns") if answer else None


def calibrate_gpu(campaign, folder):
    command = [campaign.program, "calibrate", "gpu", "--quick", "--output", os.path.join(folder, "gpu.json"), "--format", "json"]
    if campaign.knows("calibrate gpu", "--points"):
        command += ["--points", os.path.join(folder, "points.jsonl")]
    return [("out", command)]


def calibrate_production(campaign, folder):
    """The profile once more, with the production kernels' points beside those of calibrate-gpu."""
    return [("out", [campaign.program, "calibrate", "gpu", "--from",
                     os.path.join(campaign.folder_of("calibrate-gpu"), "points.jsonl"), "--from",
                     os.path.join(campaign.folder_of("production-kernels"), "points.out"), "--output",
                     os.path.join(folder, "gpu.json"), "--format", "json"])]


def keeps(*names):
    def done(campaign, folder):
        for name in names:
            if os.path.exists(os.path.join(folder, name)):
                campaign.keep(name, load(os.path.join(folder, name)))
    return done


ALLOCATOR = [sys.executable, "-B", os.path.join(HERE, "../allocator_checks.py")]


def allocator_compare(campaign, folder):
    return [("out", [*ALLOCATOR, "compare", campaign.folder_of("allocator-record"), "--spillway", campaign.program,
                     "--output", os.path.join(folder, "verdicts.json")])]


def allocator_judged(campaign, folder):
    for name, verdict in load(os.path.join(folder, "verdicts.json")).items():
        campaign.judged(name, verdict["differences"])


# Plans --------------------------------------------------------------------------------------------------------------

def predict(wanted):
    """From the profile alone, before any of the cases has run: `wanted` is [(case, model, batch, settings)]."""
    def done(campaign, folder):
        with open(os.path.join(folder, "predictions.jsonl"), "w", encoding="utf-8") as file:
            for case, model, batch, settings in wanted:
                answer = campaign.ask("run", campaign.scenario(model, batch), *sets(settings))
                if answer is None:
                    continue
                figures = {metric: answer.get(key) for metric, (key, _) in cases.METRICS.items()}
                campaign.predicted("blind", case, figures)
                file.write(json.dumps({"case": case, "profile": campaign.profile(), "verdict": answer.get("verdict"), **figures}) + "\n")
                file.flush()
    return done


def sets(settings):
    return [word for setting in settings for word in ("--set", setting)]


RECORDED_CASES = [(cases.plain_case(model, batch), model, batch, []) for model, batch in cases.RECORDED]
PLANNED_CASES = [(cases.case_name(model, batch, technique), model, batch, settings)
                 for model, batch in cases.PLANNED for technique, settings in cases.TECHNIQUES.items()]


def plan_steps():
    for model, batch in cases.PLANNED:
        # A process for several techniques, since importing and starting takes longer than they do; two of them, so that
        # one that fails doesn't take all with it.
        for number, techniques in enumerate(cases.PROCESSES, 1):
            def commands(campaign, folder, model=model, batch=batch, techniques=techniques):
                return [("out", torch_command(campaign, "steps", model, batch, os.path.join(folder, "steps"), "--techniques",
                                              ",".join(techniques), "--folder", campaign.scratch()))]
            yield Step(f"plans-{model}-b{batch}-{number}", "plans", 120, commands, needs=("gpu", "torch", "package"),
                       done=lambda campaign, folder, model=model, batch=batch: planned(campaign, folder, model, batch),
                       even_when_cut=True)


def planned(campaign, folder, model, batch):
    """Of a process that was cut off, what it had come to."""
    path, errors = os.path.join(folder, "steps", "steps.json"), []
    for row in load(path)["rows"] if os.path.exists(path) else []:
        technique = row["technique"]
        if "error" in row:
            errors.append(f"{technique}: {row['error']}")
            continue
        campaign.measured(cases.case_name(model, batch, technique), {"step_time": row.get("median_ns"), "peak_allocated":
                          row.get("peak_allocated_bytes"), "peak_reserved": row.get("peak_reserved_bytes")})
    if errors:
        raise ValueError("; ".join(errors))


# Trainer, overhead, sanitizer ---------------------------------------------------------------------------------------

TRAINER_TECHNIQUES = ["keep", "recompute", "offload-host", "offload-drive", "recompute-every-2", "recompute-offload",
                      "order-arena", "stalloc"]


def kernels(campaign, folder, model, *options):
    return [campaign.program, "validate", "kernels", "--backend", "cuda", "--model", model, "--file",
            os.path.join(campaign.scratch(), "offload"), "--hardware", campaign.system(), "--output",
            os.path.join(folder, "kernels.csv"), "--plot", os.path.join(folder, "kernels.svg"), "--format", "json", *options]


def trainer_steps():
    for batch in (2, 4, 8):
        for technique in TRAINER_TECHNIQUES:
            yield Step(f"trainer-124m-b{batch}-{technique}", "trainer", 60,
                       lambda campaign, folder, batch=batch, technique=technique: [("out", kernels(
                           campaign, folder, f"GPT-2 124M, batch {batch}", "--technique", technique))],
                       needs=("program", "gpu"), accepts=(0, 1),
                       done=lambda campaign, folder, batch=batch, technique=technique: trained(
                           campaign, folder, f"trainer gpt2-124m b{batch} {technique}"))


def trained(campaign, folder, case):
    """The trainer's own steps, under a metric of their own: no framework's kernels."""
    answer = load(os.path.join(folder, "out.out"))
    for row in answer["rows"]:
        if row["metric"] == "step_time" and row["source"] in ("blind", "from_trace"):
            campaign.predicted(row["source"], case, {"trainer_step_time": row["predicted"] * 1e9})
            figures = {"trainer_step_time": row["measured"] * 1e9}
    campaign.measured(case, figures)
    for run in answer["runs"]:
        row = campaign.row(case, "trainer_step_time")
        row["measured_share"] = run["measured_share_of_blind"]
        if "overlap" in run and run["overlap"].get("verdict_is_right") is not None:
            row["verdict_is_right"] = run["overlap"]["verdict_is_right"]


def overhead(campaign, folder):
    def command(name):
        return torch_command(campaign, "steps", "gpt2-124m", 8, os.path.join(folder, name), "--techniques", "keep", "--steps", "20")
    return [("plain", command("plain-steps")),
            ("recorded", [campaign.program, "record", "--output", os.path.join(folder, "recording.json"), "--",
                          *command("recorded-steps")])]


def overhead_done(campaign, folder):
    plain, under = (load(os.path.join(folder, name, "steps.json"))["rows"][0]["median_ns"]
                    for name in ("plain-steps", "recorded-steps"))
    with open(os.path.join(folder, "overhead.json"), "w", encoding="utf-8") as file:
        json.dump({"plain_ns": plain, "recorded_ns": under, "relative": under / plain - 1}, file, indent=1)
    campaign.keep("overhead.json", {"plain_ns": plain, "recorded_ns": under})


def all_steps():
    return [
        Step("environment", "environment", 25, environment, always=True, accepts=tuple(range(256))),
        *smoke_steps(),
        Step("predictions-of-recorded", "models", 30, lambda campaign, folder: [], needs=("program",),
             done=predict(RECORDED_CASES)),
        *record_steps(),
        Step("calibrate-pcie", "calibration", 10, lambda campaign, folder: [("out", [
            campaign.program, "calibrate", "pcie", "--output", os.path.join(folder, "host.json")])], needs=("program",),
            done=keeps("host.json")),
        Step("calibrate-gpu", "calibration", 180, calibrate_gpu, needs=("program", "gpu"), done=keeps("gpu.json"), accepts=(0, 1)),
        Step("calibrate-nvme", "calibration", 60, lambda campaign, folder: [("out", [
            campaign.program, "calibrate", "nvme", "--quick", "--file", os.path.join(campaign.scratch(), "scratch-drive"),
            "--output", os.path.join(folder, "drive.json"), "--format", "json"])], needs=("program",), done=keeps("drive.json")),
        Step("load", "load", 45, lambda campaign, folder: [("out", [sys.executable, "-B", os.path.join(HERE, "pytorch_load.py")])],
             needs=("gpu", "torch")),
        Step("production-kernels", "load", 60, lambda campaign, folder: [("points", [
            sys.executable, "-B", os.path.join(HERE, "pytorch_kernels.py"), "45"])], needs=("gpu", "torch")),
        Step("calibrate-production", "load", 20, calibrate_production, needs=("program",),
             after=("calibrate-gpu", "production-kernels"), done=keeps("gpu.json"), accepts=(0, 1)),
        Step("allocator-record", "allocator", 100, lambda campaign, folder: [("out", [*ALLOCATOR, "record", folder])],
             needs=("gpu", "torch")),
        Step("allocator-compare", "allocator", 40, allocator_compare, needs=("program",), after=("allocator-record",),
             done=allocator_judged, accepts=(0, 1)),
        Step("predictions", "plans", 60, lambda campaign, folder: [], needs=("program",), done=predict(PLANNED_CASES)),
        *plan_steps(),
        *trainer_steps(),
        Step("recorder-overhead", "overhead", 90, overhead, needs=("program", "gpu", "torch", "package"), done=overhead_done),
        Step("sanitizer", "sanitizer", 240, lambda campaign, folder: [("out", [
            # Calls that fail by design, cuFile's own on a machine without GPUDirect among them, are no errors of memory.
            "compute-sanitizer", "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9", *kernels(
                campaign, folder, "GPT-2 124M, batch 2", "--technique", "offload-drive", "--steps", "1")])],
            needs=("program", "gpu", "sanitizer"), accepts=(0, 1)),
    ]
