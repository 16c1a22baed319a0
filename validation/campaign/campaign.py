"""A campaign: its steps one after the other within their time, each result packed as soon as it is made."""
import json
import os
import shutil
import sys
import time

import cases
import machine
import manifest
import steps
from pack import Pack
from runner import Runner, Stopped

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEAST_SECONDS = 5  # of a step; with less left it isn't begun
PACKING_SECONDS = 10  # kept free at the end


def say(text):
    print(f"campaign: {text}", file=sys.stderr, flush=True)


def find_program():
    for place in ("bin/spillway", "build/cli/spillway"):
        path = os.path.join(ROOT, place)
        if os.access(path, os.X_OK):
            return path
    return shutil.which("spillway")


class Campaign:
    def __init__(self, work, out, minutes, most_files, part_bytes, program, earlier):
        self.begin = time.monotonic()
        self.minutes, self.work, self.out = minutes, work, out
        self.runner = Runner()
        # The manifest is a file too, and is written beside itself.
        self.pack = Pack(out, most_files - 2, part_bytes)
        self.document = manifest.empty()
        for document in earlier:
            manifest.resume(self.document, document)
        self.program = program or find_program()
        self.reasons, self.helps, self.environment = {}, {}, {}

    # What is here ---------------------------------------------------------------------------------------------------

    def look_around(self):
        """The program first, whose answer takes no second; PyTorch's may take long."""
        self.reasons["program"], self.document["spillway"] = machine.why_program_fails(self.program, self.output_of)
        if self.reasons["program"]:
            say(self.reasons["program"] + "; going on with the Python parts")
        found = machine.gpu(self.output_of)
        self.reasons["gpu"] = None if found.get("gpu") else "nvidia-smi names no GPU here"
        self.reasons["sanitizer"] = None if machine.has_tool("compute-sanitizer") else "no compute-sanitizer here"
        package = next((folder for folder in ("python", "share/spillway/python")
                        if os.path.isdir(os.path.join(ROOT, folder, "spillway", "torch"))), None)
        self.reasons["package"] = None if package else "no Python package spillway.torch beside this script"
        torch = machine.pytorch(self.output_of, min(90, max(5, self.remaining())))
        libraries = torch.pop("libraries", [])
        found = {**{key: str(value) for key, value in torch.items()}, **machine.host(), **found}
        self.reasons["torch"] = None if torch.get("sees_gpu") else "no PyTorch that sees a GPU (" + torch.get(
            "torch_error", "its own answer") + ")"
        self.environment = {"PATH": machine.tool_path(), "SPILLWAY": self.program or "",
                            "PYTHONPATH": os.pathsep.join(filter(None, [
                                package and os.path.join(ROOT, package), os.environ.get("PYTHONPATH")]))}
        if libraries:
            self.environment["SPILLWAY_CUDA_LIBRARIES"] = ":".join(
                filter(None, [os.environ.get("SPILLWAY_CUDA_LIBRARIES"), *libraries]))
        self.document["machine"] = found
        self.refuse_another_gpu()

    def refuse_another_gpu(self):
        before, here = self.document["kept"].get("gpu"), self.document["machine"].get("gpu")
        if before and here and before != here:
            raise manifest.Unreadable(f"--resume: what is resumed was measured on {before}, this is {here}; begin a campaign of its own")
        if here:
            self.document["kept"]["gpu"] = here

    def why_not(self, need):
        return self.reasons[need]

    def knows(self, command, option):
        """Whether the program's help of this command names the option."""
        if command not in self.helps:
            self.helps[command] = self.output_of(self.program, *command.split(), "--help")[0] or ""
        return option in self.helps[command]

    def output_of(self, *command, seconds=20, answers=(0,)):
        """What a command printed, None where it failed; and its last words."""
        folder = os.path.join(self.work, "asked")
        os.makedirs(folder, exist_ok=True)
        output, error = os.path.join(folder, "output"), os.path.join(folder, "error")
        code = self.runner.run(list(command), output, error, min(seconds, max(1, self.remaining())), self.environment)
        with open(output, encoding="utf-8", errors="replace") as file:
            printed = file.read()
        return (printed if code in answers else None), self.last_words(error) or ("it took too long" if code is None else f"exit code {code}")

    # What steps need -------------------------------------------------------------------------------------------------

    def folder_of(self, step):
        return os.path.join(self.work, "results", step)

    def scratch(self):
        folder = os.path.join(self.work, "scratch")
        os.makedirs(folder, exist_ok=True)
        return folder

    def remaining(self):
        return self.minutes * 60 - (time.monotonic() - self.begin) - PACKING_SECONDS

    def keep(self, name, value):
        self.document["kept"][name] = value

    def profile(self):
        """The GPU's profile that predictions are from: as measured here, or a bundled one by the device's name."""
        if "gpu.json" in self.document["kept"]:
            return "measured"
        return cases.profile_of(self.document["machine"].get("gpu", "")) or "h100-sxm5-80gb"

    def system(self):
        """A profile of this machine, written of what was measured of it so far."""
        kept, folder = self.document["kept"], os.path.join(self.work, "machine")
        os.makedirs(folder, exist_ok=True)

        def measured(name, otherwise):
            if name not in kept:
                return otherwise
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(kept[name], file)
            return path
        host = "generic-pcie5-host"
        if {"gpu_slot", "drive_slot"} <= {node.get("kind") for node in kept.get("host.json", {}).get("pcie", [])}:
            host = measured("host.json", host)  # a virtual machine shows no links
        document = {"schema": "spillway-hardware-profile/1", "kind": "system", "name": "this-machine",
                    "title": "This machine, as measured", "provenance": "measured", "source": "validation/gpu_campaign.sh",
                    "gpu": {"profile": measured("gpu.json", self.profile()), "count": 1}, "host": host,
                    "drives": [{"profile": measured("drive.json", "samsung-990-pro-2tb"), "name": "scratch", "count": 1,
                                "raid0": False}]}
        path = os.path.join(folder, "system.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        return path

    def scenario(self, model, batch):
        path = os.path.join(self.work, "machine", f"{model}-b{batch}.json")
        text = json.dumps(cases.scenario(model, batch, self.system()), indent=1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def ask(self, *words):
        """The program's answer; None, with its reason told, where it has none."""
        said, error = self.output_of(self.program, *words, "--format", "json", seconds=60, answers=(0, 1))
        if said is not None:
            return json.loads(said)
        say(f"no prediction ({' '.join(words[:1] + words[2:])}): {error}")
        return None

    # Predicted and measured --------------------------------------------------------------------------------------------

    def row(self, case, metric):
        for row in self.document["comparisons"]:
            if (row["case"], row["metric"]) == (case, metric):
                return row
        row = {"case": case, "metric": metric, "unit": cases.UNITS[metric], **manifest.NOTHING_KNOWN}
        self.document["comparisons"].append(row)
        return row

    def predicted(self, column, case, figures):
        """Blind ones count only while nothing of the case has been measured; they are not written twice."""
        for metric, value in figures.items():
            row = self.row(case, metric)
            if value is None or (column == "blind" and (row["measured"] is not None or row["blind"] is not None)):
                continue
            row[column] = value
            if column == "blind":
                row["blind_profile"] = self.profile()

    def measured(self, case, figures):
        for metric, value in figures.items():
            if value is not None:
                self.row(case, metric)["measured"] = value

    def judged(self, check, differences):
        """Kept for `spillway validate results`: what PyTorch's own allocator did, against spillway's of the same requests."""
        others = [known for known in self.document["allocator"] if known["check"] != check]
        self.document["allocator"] = [*others, {"check": check, "confirmed": not differences, "differences": differences}]

    # Running -----------------------------------------------------------------------------------------------------------

    def status(self, name):
        return next((step["status"] for step in self.document["steps"] if step["name"] == name), None)

    def run(self, phases):
        wanted = [step for step in steps.all_steps()
                  if step.phase in phases and (self.status(step.name) != manifest.DONE or step.always)]
        names = {step.name for step in wanted}
        entries = {step.name: {"name": step.name, "phase": step.phase, "status": manifest.LEFT, "seconds": 0.0,
                               "reason": "not begun", "earlier": False} for step in wanted}
        self.document["steps"] = [known for known in self.document["steps"] if known["name"] not in names]
        self.document["steps"] += entries.values()
        self.write()
        for step in wanted:
            entry = entries[step.name]
            try:
                self.run_step(step, entry)
            finally:
                self.write()
            took = f": {entry['reason']}" if entry["reason"] else f" in {entry['seconds']:.1f} s"
            say(f"{step.name}: {entry['status']}{took}")
        self.document["finished"] = True
        self.write()

    def write(self):
        self.document["packs"] = self.pack.parts
        manifest.write(self.out, self.document)

    def why_skipped(self, step):
        for need in step.needs:
            if self.reasons[need]:
                return self.reasons[need]
        for name in step.after:
            if self.status(name) != manifest.DONE or not os.path.isdir(self.folder_of(name)):
                return f"needs what {name} leaves, done in the same call"
        return None

    def run_step(self, step, entry):
        if self.runner.stopped:
            raise Stopped
        reason = self.why_skipped(step)
        if reason:
            return entry.update(status=manifest.SKIPPED, reason=reason)
        if self.remaining() < LEAST_SECONDS:
            return entry.update(reason="no time")
        folder = self.folder_of(step.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        begin, end = time.monotonic(), time.monotonic() + min(step.seconds, self.remaining())
        entry.update(status=manifest.STOPPED, reason="interrupted")
        try:
            self.run_commands(step, entry, folder, end)
        finally:
            entry["seconds"] = round(time.monotonic() - begin, 3)
            self.pack_folder(folder)

    def run_commands(self, step, entry, folder, end):
        status, reason = manifest.DONE, ""
        for name, command in step.commands(self, folder):
            path = os.path.join(folder, name)
            code = self.runner.run(command, path + ".out", path + ".err", max(0.0, end - time.monotonic()), self.environment, folder)
            if code is None:
                status, reason = manifest.STOPPED, f"{os.path.basename(command[0])} took longer than the step's {step.seconds} s, or than was left"
            elif code not in step.accepts:
                status, reason = manifest.FAILED, self.last_words(path + ".err") or f"exit code {code}"
            if status != manifest.DONE:
                break
        if step.done is not None and (status == manifest.DONE or step.even_when_cut):
            try:
                step.done(self, folder)
            except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
                if status == manifest.DONE:
                    status, reason = manifest.FAILED, f"what it left can't be used: {error}"
        entry.update(status=status, reason=reason)

    @staticmethod
    def last_words(path):
        """The program's error where it tells one (a remedy follows it), else the last line."""
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().splitlines()
        told = [line for line in lines if line.startswith("error: ")] or lines
        return told[-1][:300] if told else ""

    def pack_folder(self, folder):
        root = os.path.join(self.work, "results")
        names = [os.path.relpath(os.path.join(where, name), root) for where, _, files in os.walk(folder) for name in files
                 if os.path.isfile(os.path.join(where, name)) and os.path.getsize(os.path.join(where, name)) > 0]
        self.document["left_out"] += self.pack.add(root, names, lambda: not self.runner.stopped)
