"""python -m spillway.torch record|steps|check: well-known models with random weights, recorded, run under techniques,
or run beside their prediction."""
import argparse
import gc
import json
import os
import statistics
import sys
import time

import torch

from ..errors import InputError, SpillwayError
from . import capability
from .applying import apply
from .checking import check, sentences
from .named import TECHNIQUES
from .plain_models import MODELS
from .recording import phase, record
from .training import IMPLEMENTATIONS, PRECISIONS, Training


def _parser():
    parser = argparse.ArgumentParser(prog="python -m spillway.torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    model = argparse.ArgumentParser(add_help=False)
    model.add_argument("--model", required=True, help=", ".join(MODELS))
    model.add_argument("--batch", type=int, default=8)
    model.add_argument("--sequence", type=int, default=None, help="tokens (1024; bert-large 512)")
    model.add_argument("--precision", choices=PRECISIONS, default="bf16",
                        help="bf16: weights and all; amp: autocast over fp32 weights")
    model.add_argument("--device", default=None, help="cuda where there is one, else cpu")
    model.add_argument("--implementation", choices=IMPLEMENTATIONS, default="auto",
                        help="auto: transformers (random weights from its configuration) where it can be imported, "
                             "else plain torch.nn of the same shape")
    model.add_argument("--layers", type=int, default=None, help="fewer than the model has")
    model.add_argument("--vocabulary", type=int, default=None, help="another than the model has")
    model.add_argument("--seed", type=int, default=1)
    common = argparse.ArgumentParser(add_help=False, parents=[model])
    common.add_argument("--out", required=True, metavar="DIR", help="a new folder to write into")
    common.add_argument("--warm-up", type=int, default=3)
    common.add_argument("--folder", default=None, metavar="DIR", help="where a disk tier puts its files")
    common.add_argument("--least-bytes", type=int, default=1 << 20, help="smaller storages stay")
    recorded = commands.add_parser("record", parents=[common], help="unprofiled times, traces, snapshot")
    recorded.add_argument("--steps", type=int, default=10, help="unprofiled steps")
    recorded.add_argument("--profiled", type=int, default=2, help="steps of each kind of profile")
    recorded.add_argument("--techniques", default="keep", metavar="PLAN", help="a technique or plan they run under")
    run = commands.add_parser("steps", parents=[common], help="step times and losses under techniques")
    run.add_argument("--steps", type=int, default=10)
    run.add_argument("--techniques", default="keep,full,selective", metavar="PLAN,...",
                     help=f"words ({', '.join(TECHNIQUES)}; two joined with +) or plan files")
    checked = commands.add_parser("check", parents=[model], help="a few steps beside their prediction")
    checked.add_argument("--steps", type=int, default=3)
    checked.add_argument("--on", default=None, metavar="GPU", help="of `spillway list gpus`; the one that PyTorch sees")
    checked.add_argument("--output", default=None, metavar="FILE", help="the corrected profile, a new file")
    checked.add_argument("--format", choices=("table", "json"), default="table")
    checked.add_argument("--program", default=None, help="spillway's program")
    return parser


def _checked(arguments):
    if arguments.model not in MODELS:
        raise InputError(f"no model is called {arguments.model}; there are {', '.join(MODELS)}")
    for name in ("batch", "steps", "warm_up", "layers", "vocabulary", "sequence"):
        value = getattr(arguments, name, None)
        if value is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} {value}: at least 1 is needed")
    longest = 512 if arguments.model == "bert-large" else 1024
    arguments.sequence = arguments.sequence or longest
    arguments.device = arguments.device or ("cuda" if capability.has_cuda() else "cpu")
    if arguments.device.startswith("cuda") and not capability.has_cuda():
        raise InputError(f"--device {arguments.device}: PyTorch sees no CUDA device")
    out = getattr(arguments, "out", None)
    if out is not None and os.path.isdir(out) and os.listdir(out):
        raise InputError(f"{out} exists already; name a new folder")
    return arguments


def _training(arguments):
    return Training(arguments.model, batch=arguments.batch, sequence=arguments.sequence,
                    precision=arguments.precision, device=arguments.device,
                    implementation=arguments.implementation, layers=arguments.layers,
                    vocabulary=arguments.vocabulary, seed=arguments.seed)


def _apply(arguments, model, technique):
    return apply(model, technique, folder=arguments.folder, least_bytes=arguments.least_bytes)


def _record(arguments):
    about = {"technique": arguments.techniques}
    handles = []

    def setup():
        training = _training(arguments)
        about.update(training.about())
        handles.append(_apply(arguments, training.model, arguments.techniques))
        return (lambda: training.step(phase)), training.model

    try:
        manifest = record(folder=arguments.out, setup=setup, device=arguments.device, warm_up=arguments.warm_up,
                          unprofiled=arguments.steps, light=arguments.profiled, full=arguments.profiled, about=about)
    finally:
        for handle in handles:
            handle.remove()
    for name, reason in manifest["missing"].items():
        print(f"not recorded: {name}: {reason}", file=sys.stderr)
    median = manifest["phases"]["unprofiled"]["median_ns"]
    print(f"{arguments.model} ({about['implementation']}): {median / 1e6:.3f} ms a step; in {arguments.out}: "
          + ", ".join(file["name"] for file in manifest["files"].values()))


def _measure(arguments, technique):
    """One technique on a model made anew."""
    training = _training(arguments)
    is_cuda = training.device.type == "cuda"
    synchronize = (lambda: torch.cuda.synchronize(training.device)) if is_cuda else (lambda: None)
    row = {"technique": technique, "about": training.about(), "step_times_ns": [], "losses": []}
    with _apply(arguments, training.model, technique) as handle:
        for index in range(arguments.warm_up + arguments.steps):
            if index == arguments.warm_up and is_cuda:
                torch.cuda.reset_peak_memory_stats(training.device)
            synchronize()
            begin = time.perf_counter_ns()
            loss = training.step()
            synchronize()
            if index >= arguments.warm_up:
                row["step_times_ns"].append(time.perf_counter_ns() - begin)
            row["losses"].append(loss.item())
        row["statistics"] = handle.statistics
        row["refused"] = handle.refused
    row["median_ns"] = statistics.median(row["step_times_ns"])
    if is_cuda:
        row["peak_allocated_bytes"] = torch.cuda.max_memory_allocated(training.device)
        row["peak_reserved_bytes"] = torch.cuda.max_memory_reserved(training.device)
    return row


def _steps(arguments):
    techniques = [word for word in arguments.techniques.split(",") if word]
    if not techniques:
        raise InputError("--techniques names none")
    os.makedirs(arguments.out, exist_ok=True)
    found = {"schema": "spillway-steps", "version": 1, "torch": torch.__version__, "rows": []}
    losses = None
    for technique in techniques:
        try:
            row = _measure(arguments, technique)
            losses = losses or row["losses"]
            row["losses_equal_first"] = row["losses"] == losses
            print(f"{technique}: {row['median_ns'] / 1e6:.3f} ms a step, "
                  f"losses {'as' if row['losses_equal_first'] else 'NOT as'} {techniques[0]}'s", flush=True)
        except (SpillwayError, RuntimeError) as error:  # out of memory is a RuntimeError
            if isinstance(error, InputError):
                raise
            row = {"technique": technique, "error": str(error).splitlines()[0]}
            print(f"{technique}: {row['error']}", file=sys.stderr, flush=True)
        found["rows"].append(row)
        part = os.path.join(arguments.out, "steps.json.part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
        os.replace(part, os.path.join(arguments.out, "steps.json"))
        gc.collect()
        if capability.has_cuda():
            torch.cuda.empty_cache()


def _check(arguments):
    found = check(arguments.model, steps=arguments.steps, machine=arguments.on, output=arguments.output,
                  program=arguments.program, tell=lambda words: print(words, file=sys.stderr, flush=True),
                  batch=arguments.batch, sequence=arguments.sequence, precision=arguments.precision,
                  device=arguments.device, implementation=arguments.implementation, layers=arguments.layers,
                  vocabulary=arguments.vocabulary, seed=arguments.seed)
    print(json.dumps(found, indent=1) if arguments.format == "json" else sentences(found))


def main(words=None):
    arguments = _parser().parse_args(words)
    try:
        {"record": _record, "steps": _steps, "check": _check}[arguments.command](_checked(arguments))
    except SpillwayError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
