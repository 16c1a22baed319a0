"""check(): a few short steps on this machine, each predicted before it runs, and a profile corrected by what came out."""
import datetime
import gc
import json
import os
import statistics
import tempfile
import time

import torch

from ..errors import InputError
from ..program import call
from . import capability
from .fitting import fits
from .training import Training

WORST_NOISE = 0.2  # of the steps among each other: beyond it nothing is corrected
_LEAST_SECONDS = 0.05  # a measured step: shorter ones are taken several times together
_SCALED = [("product", precision) for precision in ("bf16", "fp16", "fp32", "tf32")] + [
    (kind, "bf16") for kind in ("memory_bound", "attention_forward", "attention_backward")]


def _median_seconds(work, repeats=5):
    work()
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def _sourced(value, unit=None, provenance="measured", source="spillway check"):
    leaf = {"value": value, "provenance": provenance, "source": source, "date": str(datetime.date.today())}
    return {**leaf, "unit": unit} if unit else leaf


def cpu_profile():
    """This machine's processor as a profile: the rates of large products and copies, the time of small operators."""
    side, count = 768, 1 << 24
    first, second = torch.rand(side, side), torch.rand(side, side)
    flops = 2 * side**3 / _median_seconds(lambda: torch.mm(first, second))
    source, target = torch.rand(count), torch.empty(count)
    rate = 2 * 4 * count / _median_seconds(lambda: target.copy_(source))
    small = torch.rand(16)
    call_seconds = _median_seconds(lambda: [small.add(1) for _ in range(1000)]) / 1000
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    none = "a processor computes where its memory is"
    return {
        "schema": "spillway-hardware-profile/1", "kind": "gpu", "name": "this-cpu", "title": "this machine's processor",
        "vendor": "other", "provenance": "measured", "source": "spillway check", "date": str(datetime.date.today()),
        "memory": _sourced(memory / 2**30, "GiB"), "memory_bandwidth": _sourced(rate / 1e9, "GB/s"),
        "peak_flops": {"fp32": _sourced(flops / 1e12, "TFLOPS"), "bf16": _sourced(flops / 1e12, "TFLOPS")},
        "pcie_generation": _sourced(4, provenance="assumed", source=none),
        "pcie_lanes": _sourced(16, provenance="assumed", source=none),
        "pageable_copy_fraction": _sourced(1, provenance="assumed", source=none),
        "copy_latency": _sourced(1, "us", "assumed", none),
        "copy_engines_per_direction": _sourced(1, provenance="assumed", source=none),
        "hbm_contention_factor": _sourced(1, provenance="assumed", source=none),
        "launch_call": _sourced(0.1, "us", "assumed", none), "launch_to_start": _sourced(0.1, "us", "assumed", none),
        "kernel_gap": _sourced(0, "us", "assumed", none),
        "launch_queue_depth": _sourced(1024, provenance="assumed", source=none),
        "malloc_cost": _sourced(1, "us", "assumed", none), "free_cost": _sourced(1, "us", "assumed", none),
        "context_memory": _sourced(0, "GiB", "assumed", none),
        "roofline": {"compute_efficiency": _sourced(1), "memory_efficiency": _sourced(1),
                     "latency": _sourced(call_seconds * 1e6, "us")},
    }


def _corrected_cpu(profile, factor):
    """The rates by as much lower as the steps were longer."""
    for leaf in (profile["memory_bandwidth"], *profile["peak_flops"].values()):
        leaf["value"] /= factor
    profile["roofline"]["latency"]["value"] *= factor
    return profile


def _gpu_of(machine, title, program):
    """The name in the library of what a driver calls so: a GPU alone is told as "1x " and its title."""
    out, _, _ = call("profile", "list", "--format", "json", program=program)
    for profile in json.loads(out)["profiles"]:
        if profile["kind"] == "gpu" and (profile["name"] == machine or title == f"1x {profile['title']}"):
            return profile["name"], profile["title"]
    raise InputError(f"--on {machine}: that is no GPU alone; name one of `spillway list gpus`")


def _scales_of(gpu, program):
    """{(operator, precision): [compute, memory, fixed]} of a profile."""
    out, _, _ = call("profile", "show", gpu, "--format", "json", program=program)
    rows = {row["path"]: row["value"] for row in json.loads(out)["values"]}
    scales = {}
    while f"operator_scales.{len(scales)}.of" in rows:
        at = f"operator_scales.{len(scales)}"
        scales[rows[f"{at}.of"], rows.get(f"{at}.precision", "bf16")] = [
            float(rows[f"{at}.{part}"]) for part in ("compute", "memory", "fixed")]
    return scales


def corrected_gpu(machine, title, factor, context_bytes=None, program=None):
    """A GPU of the library with factors on its operators' times, on top of those that its profile has."""
    base, title = _gpu_of(machine, title, program)
    known = _scales_of(base, program)
    scales = []
    for kind in {**known, **dict.fromkeys(_SCALED)}:
        scale = known.get(kind, [1.0, 1.0, 1.0])
        if kind in _SCALED:
            scale = [scale[0] / factor, scale[1] / factor, scale[2] * factor]
        scales.append({"of": kind[0], "precision": kind[1],
                       **{part: _sourced(value) for part, value in zip(("compute", "memory", "fixed"), scale)}})
    profile = {"schema": "spillway-hardware-profile/1", "kind": "gpu", "name": "checked-" + base, "title": title,
               "base": base, "operator_scales": scales}
    if context_bytes is not None:
        profile["context_memory"] = _sourced(context_bytes / 2**30, "GiB")
    return profile


def allowed_correction(predicted, steps):
    """(the factor on times, the noise): of what the steps differ from the prediction, what their own spread leaves
    certain. 1.0: nothing, or the steps differ too much among each other."""
    middle = statistics.median(steps)
    noise = (max(steps) - min(steps)) / middle
    error = middle / predicted - 1
    certain = max(0.0, abs(error) - noise)
    if noise > WORST_NOISE or certain == 0:
        return 1.0, noise
    factor = 1 + certain if error > 0 else 1 - certain
    return max(0.01, min(100.0, factor)), noise


class _Check:
    def __init__(self, name, keywords, steps, machine, program):
        self.name, self.keywords, self.steps, self.machine, self.program = name, keywords, steps, machine, program
        device = keywords["device"]
        self.is_cuda = device.startswith("cuda")
        self.base = machine or (torch.cuda.get_device_name(device) if self.is_cuda else None)

    def predict(self, profile):
        """Of the same module on fake tensors, before a step has run, and after it with the corrected profile."""
        training = Training(self.name, **{**self.keywords, "device": "cpu"})
        precision = "bf16_mixed" if self.keywords["precision"] == "amp" else None
        return fits(training.model, training.ids, on=profile, precision=precision, program=self.program,
                    loss=lambda logits, ids: training.loss(logits, ids), optimizer=_adamw)

    def measure(self):
        training = Training(self.name, **self.keywords)
        training.optimizer = _adamw(training.model.parameters())
        synchronize = (lambda: torch.cuda.synchronize(training.device)) if self.is_cuda else (lambda: None)
        found = {"steps_s": []}
        begin = time.perf_counter()
        for _ in range(3):  # the first makes the optimizer's states, and libraries choose their kernels
            begin = time.perf_counter()
            training.step()
            synchronize()
        each = max(1, int(_LEAST_SECONDS / max(1e-6, time.perf_counter() - begin)))
        if self.is_cuda:
            torch.cuda.reset_peak_memory_stats(training.device)
        for _ in range(self.steps):
            synchronize()
            begin = time.perf_counter()
            for _ in range(each):
                training.step()
            synchronize()
            found["steps_s"].append((time.perf_counter() - begin) / each)
        if self.is_cuda:
            free, everything = torch.cuda.mem_get_info(training.device)
            reserved = torch.cuda.memory_reserved(training.device)
            found.update(peak_allocated_bytes=torch.cuda.max_memory_allocated(training.device),
                         peak_reserved_bytes=torch.cuda.max_memory_reserved(training.device),
                         outside_bytes=max(0, everything - free - reserved))
        return found


def _adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-4, foreach=True)


def check(name, *, steps=3, machine=None, output=None, program=None, tell=lambda _: None, **keywords):
    """Predicts a step of a named model (plain_models.MODELS), runs it, and corrects the machine's profile by what the
    steps' own spread leaves certain. Returns a dict: predicted, measured, errors, noise, factor, profile (the path, or
    None where nothing was written). keywords: Training's. `machine`: a GPU of the library; the one that PyTorch sees,
    else the processor, which is measured first. `output`: the profile is written there."""
    if steps < 3:
        raise InputError(f"steps={steps}: the noise of fewer than three steps isn't known")
    if output is not None and os.path.exists(output):
        raise InputError(f"{output} exists already; name a new file")
    this = _Check(name, {"device": "cuda" if capability.has_cuda() else "cpu", **keywords}, steps, machine, program)
    with tempfile.TemporaryDirectory() as folder:
        scratch = os.path.join(folder, "machine.json")
        profile = None
        if this.base is None:
            profile = cpu_profile()
            _write(scratch, profile)
        before = this.predict(scratch if profile else this.base)
        tell(f"predicted: {before.step_time_s * 1e3:.4g} ms a step, {before['peak_allocated_bytes'] / 2**30:.3g} GiB "
             "allocated")
        gc.collect()
        measured = this.measure()
        factor, noise = allowed_correction(before.step_time_s, measured["steps_s"])
        found = _found(this, before, measured, factor, noise)
        profile = (_corrected_cpu(profile, factor) if profile else
                   corrected_gpu(this.base, before["machine"]["title"], factor, measured.get("outside_bytes"), program))
        profile["title"] += ", " + found["words"]
        _write(scratch, profile)
        after = this.predict(scratch)
    found["corrected"] = {"step_time_s": after.step_time_s,
                          "time_error": after.step_time_s / found["measured"]["step_time_s"] - 1}
    if output is not None:
        _write(output + ".part", profile)
        os.replace(output + ".part", output)
        found["profile"] = output
    return found


def _found(this, before, measured, factor, noise):
    middle = statistics.median(measured["steps_s"])
    found = {"schema": "spillway-check", "version": 1, "model": this.name, "date": str(datetime.date.today()),
             "machine": this.base or "this machine's processor", "torch": torch.__version__,
             "predicted": {"step_time_s": before.step_time_s, "step_time_range": before["step_time_range"],
                           "peak_allocated_bytes": before["peak_allocated_bytes"],
                           "peak_reserved_bytes": before["peak_reserved_bytes"]},
             "measured": {"step_time_s": middle, **measured}, "time_error": before.step_time_s / middle - 1,
             "noise": noise, "time_factor": factor, "profile": None}
    words = f"checked here on {found['date']}: {this.name}, time {100 * found['time_error']:+.1f} %"
    if this.is_cuda:
        found["memory_error"] = before["peak_allocated_bytes"] / measured["peak_allocated_bytes"] - 1
        words += f", memory {100 * found['memory_error']:+.1f} %"
    words += f", {len(measured['steps_s'])} steps within {100 * noise:.1f} %"
    found["words"] = words + (f", times corrected by {100 * (factor - 1):+.1f} %" if factor != 1 else ", nothing corrected")
    return found


def _write(path, profile):
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(profile, file, indent=1)
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror}); name a file in a folder you may write to") from None


def sentences(found):
    """What a person reads of it."""
    predicted, measured = found["predicted"], found["measured"]
    lines = [f"{found['model']} on {found['machine']}",
             f"  step     predicted {predicted['step_time_s'] * 1e3:.4g} ms, measured {measured['step_time_s'] * 1e3:.4g} ms: "
             f"{100 * found['time_error']:+.1f} %; steps differ by {100 * found['noise']:.1f} %"]
    if "memory_error" in found:
        gib = 2**30
        lines += [f"  memory   predicted {predicted['peak_allocated_bytes'] / gib:.2f} GiB allocated, measured "
                  f"{measured['peak_allocated_bytes'] / gib:.2f}: {100 * found['memory_error']:+.1f} %; outside PyTorch's "
                  f"allocator {measured['outside_bytes'] / gib:.2f} GiB"]
    else:
        lines.append("  memory   not known: PyTorch counts none on a processor")
    if found["noise"] > WORST_NOISE:
        lines.append(f"  nothing is corrected: the steps differ by more than {100 * WORST_NOISE:.0f} %; try again on a "
                     "quiet machine")
    elif found["time_factor"] == 1:
        lines.append("  nothing to correct: the prediction lies within what the steps differ by")
    else:
        lines.append(f"  times are corrected by {100 * (found['time_factor'] - 1):+.1f} %, what the noise leaves certain; "
                     f"then {100 * found['corrected']['time_error']:+.1f} %")
    if found["profile"]:
        lines.append(f"  profile  {found['profile']}: --on {found['profile']} in every command")
    return "\n".join(lines)
