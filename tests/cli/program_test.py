#!/usr/bin/env python3
"""The program as scripts see it: exit codes, what goes to which stream, files left behind.

Usage: program_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import csv
import fcntl
import gzip
import json
import os
import pickle
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

PROGRAM, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
CAPTURE = os.path.join(ROOT, "traces/data/gpt2-tiny-cpu/steps.json.gz")
GRAPH = os.path.join(ROOT, "traces/data/gpt2-tiny-cpu/graph.json.gz")
PROFILE = os.path.join(ROOT, "hwprofiles/data/gpus/a10.json")


def spillway(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


def answer_of(page):
    """The document that a page of an answer carries."""
    with open(page, encoding="utf-8") as html:
        return json.loads(html.read().split('type="application/json"')[1].split(">", 1)[1].split("</script>")[0])


class ProgramTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as out:
                out.write(content)
        return path

    def refused(self, *arguments, says):
        """Exit code 2, nothing on standard output, one message with every word in `says`."""
        result = spillway(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("error:"), 1, result.stderr)
        for word in says:
            self.assertIn(word, result.stderr)

    def info(self, path):
        result = spillway("trace", "info", path, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)


class WordsTest(ProgramTest):
    """Reserve, verdict and what is missing mean one thing, in every form."""

    def setUp(self):
        super().setUp()
        self.scenario = self.path("s.json", json.dumps({
            "schema": "spillway-scenario", "version": 1,
            "model": {"name": "gpt2-small", "sequence": 512, "micro_batch": 4, "data_parallel": 2},
            "hardware": {"profile": "dgx-h100"}, "memory": {"allocator": "ideal"}}).encode())

    def run_at(self, capacity, *more):
        result = spillway("run", self.scenario, "--set", f"memory.capacity={capacity}", *more, "--format", "json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout), result

    def test_the_verdict_is_a_replay_at_the_lower_capacity(self):
        answer, _ = self.run_at("60GiB")
        reserve = answer["reserve"]
        self.assertEqual(sum(part["bytes"] for part in reserve["parts"] if not part["off_the_capacity_already"]),
                         reserve["bytes"])
        self.assertIn("NCCL, 1 communicator (data)", [part["name"] for part in reserve["parts"]])
        self.assertEqual((answer["fits"], answer["verdict"], answer["short_of_bytes"]), (True, "fits", None))
        peak, whole = answer["peak_reserved_bytes"], 2 << 30
        for capacity, verdict, code in ((peak + whole, "fits", 0), (peak + whole - 512, "tight", 0),
                                        (peak + 64, "does not fit", 1)):
            answer, result = self.run_at(capacity, "--keep-free", "2GiB")
            self.assertEqual((answer["verdict"], answer["fits"], result.returncode), (verdict, verdict != "does not fit",
                                                                                      code))
            self.assertEqual(answer["reserve"]["bytes"], whole)
            self.assertEqual("warning: tight" in result.stderr, verdict == "tight", result.stderr)
            table = spillway("run", self.scenario, "--set", f"memory.capacity_bytes={capacity}", "--keep-free", "2GiB")
            shape = {"fits": "✔ Fits", "tight": "▲ Tight", "does not fit": "✖ Does not fit"}[verdict]
            self.assertEqual(table.stdout.splitlines()[2].split(":")[0].split(" with")[0], shape)
            rows = spillway("run", self.scenario, "--set", f"memory.capacity_bytes={capacity}", "--keep-free", "2GiB",
                            "--format", "csv").stdout.splitlines()
            row = next(csv.DictReader(rows))
            self.assertEqual((row["fits"], row["verdict"]), ("false" if code else "true", verdict))
            page = self.path("page.html")
            report = spillway("report", "step", self.scenario, "--set", f"memory.capacity_bytes={capacity}", "--keep-free",
                              "2GiB", "--output", page)
            self.assertEqual(report.returncode, code, report.stderr)
            self.assertEqual(answer_of(page)["verdict"]["word"], verdict)

    def test_with_what_it_is_short_of_it_fits(self):
        answer, _ = self.run_at("1GiB", "--keep-free", "256MiB")
        self.assertFalse(answer["fits"])
        short = answer["short_of_bytes"]
        self.assertTrue(self.run_at((1 << 30) + short, "--keep-free", "256MiB")[0]["fits"])
        self.assertFalse(self.run_at((1 << 30) + short - 1024, "--keep-free", "256MiB")[0]["fits"])

    def test_bad_reserves_are_refused(self):
        self.refused("run", self.scenario, "--keep-free", "much", says=["--keep-free", "much"])
        self.refused("run", self.scenario, "--keep-free", "100%", says=["--keep-free", "less than 100 %"])
        self.refused("run", self.scenario, "--set", "memory.reserve=900GiB", says=["/memory/reserve", "leave nothing"])

    def test_a_what_if_is_compared_with_what_it_changes(self):
        changed = self.path("c.json")
        with open(self.scenario, encoding="utf-8") as text:
            document = json.load(text)
        document["model"]["micro_batch"] = 8
        with open(changed, "w", encoding="utf-8") as out:
            json.dump(document, out)
        two = json.loads(spillway("compare", self.scenario, changed, "--format", "json").stdout)
        one = json.loads(spillway("compare", self.scenario, "--set", "model.micro_batch=8", "--format", "json").stdout)
        self.assertEqual(one["step_time_ratio"], two["step_time_ratio"])
        self.assertNotEqual(one["a"]["fingerprint"], one["b"]["fingerprint"])
        self.refused("compare", self.scenario, says=["--set"])


class LaunchFilesTest(ProgramTest):
    SCRIPT = (b"#!/bin/bash\nTP=${TP:-2}\ntorchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size $TP \\\n"
              b"  --num-layers 4 --hidden-size 256 --num-attention-heads 4 --vocab-size 1000 --seq-length 128 \\\n"
              b"  --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --bf16 --lr 1e-4 --odd 1\n")

    def test_import_writes_a_scenario_and_its_model_that_run(self):
        out = self.path("small.json")
        result = spillway("import", self.path("run.sh", self.SCRIPT), "--on", "dgx-a100", "--output", out, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "spillway.import")
        with open(out, encoding="utf-8") as written:
            self.assertEqual(json.load(written), document["scenario"])
        self.assertEqual(document["scenario"]["model"]["tensor_parallel"], 2)
        self.assertEqual({each["flag"]: each["effect"] for each in document["ignored"]}, {"--lr": "no_effect", "--odd": "unknown"})
        self.assertIn("hardware.profile", [each["key"] for each in document["defaulted"]])
        self.assertEqual(len(document["warnings"]), 1)
        self.assertTrue(os.path.exists(self.path("small.model.json")))
        hangs = spillway("run", out)  # on a flag that nobody knows
        self.assertEqual(hangs.returncode, 4)
        self.assertIn("--odd (run.sh: line", hangs.stdout)
        for plan in ("offload", "recompute"):
            asked = spillway("plan", plan, out)
            self.assertEqual(asked.returncode, 4, asked.stderr)
            self.assertNotRegex(asked.stdout, r"\byes\b")
        self.assertEqual(spillway("run", out, "--set", "import=null").returncode, 0)

    def test_a_shell_variable_is_given(self):
        result = spillway("import", self.path("run.sh", self.SCRIPT), "--env", "TP=4", "--model", "gpt2-small")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["model"]["tensor_parallel"], 4)  # the lists are on standard error
        self.assertIn("--odd", result.stderr)

    def test_what_cannot_be_read_leaves_nothing_behind(self):
        script, out = self.path("run.sh", self.SCRIPT.replace(b"$TP", b"$1")), self.path("out.json")
        self.refused("import", script, "--output", out, says=["run.sh", "line 3", "--env 1=VALUE"])
        self.refused("import", self.path("x.toml", b"[training]\nseq_len = \n"), says=["x.toml", "line 2"])
        self.refused("import", self.path("run.sh", self.SCRIPT), says=["--output"])  # its model needs a file
        self.assertFalse(os.path.exists(out))

    def test_export_says_what_it_cannot(self):
        scenario = os.path.join(ROOT, "cli/scenarios/llama2-70b-chronos-64xa100.json")
        result = spillway("export", scenario, "--for", "megatron", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertIn("--tensor-model-parallel-size 8", document["text"])
        self.assertIn("model.pipeline_schedule", [each["key"] for each in document["unsaid"]])
        self.assertEqual(len(document["warnings"]), len(document["unsaid"]))


class PlanLayoutTest(ProgramTest):
    TABLE = b"id,lower,upper,size\na,0,3,4\nb,1,5,2\nc,3,6,4\n"

    def test_layout_is_written_with_offsets(self):
        table, out = self.path("in.csv", self.TABLE), self.path("out.csv")
        result = spillway("plan", "layout", table, "--output", out, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual((document["buffers"], document["height"], document["lower_bound"]), (3, 6, 6))
        self.assertTrue(document["proven"])
        self.assertIsNone(document["fits"])  # no capacity, no answer
        with open(out, encoding="utf-8") as lines:
            rows = [line.strip().split(",") for line in lines]
        self.assertEqual(rows[0], ["id", "lower", "upper", "size", "offset"])
        self.assertEqual([row[:4] for row in rows[1:]], [line.split(",") for line in self.TABLE.decode().split()[1:]])

    def test_what_does_not_fit_is_exit_code_1(self):
        result = spillway("plan", "layout", self.path("in.csv", self.TABLE), "--capacity", "5", "--format", "json")
        self.assertEqual(result.returncode, 1, result.stderr)
        document = json.loads(result.stdout)
        self.assertFalse(document["fits"])
        self.assertTrue(document["fit_impossible"])

    def test_bad_tables_are_refused(self):
        self.refused("plan", "layout", self.path("a.csv", b"id,lower,upper,size\na,3,1,4\n"), says=["line 2", "upper"])
        self.refused("plan", "layout", self.path("b.csv", b"id,lower,uper,size\n"), says=["did you mean upper?"])
        self.refused("plan", "layout", self.path("c.csv", self.TABLE), "--capacity", "0", says=["--capacity"])


class VerdictTest(ProgramTest):
    def test_unknown_memory_is_no_yes(self):
        captured = os.path.join(ROOT, "cli/scenarios/gpt2-tiny-captured-cpu.json")  # a step on a host
        result = spillway("run", captured, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertIsNone(document["fits"])
        self.assertEqual(document["verdict"], "unknown")
        self.assertIn("warning: ", result.stderr + spillway("run", captured).stderr)
        self.assertIn("▲ Unknown: it ran on the host", spillway("run", captured).stdout)

    def test_memory_without_places_is_unknown_everywhere(self):
        """Totals of a GPU without addresses say nothing of what an allocator makes; nor does a trace without any."""
        events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100 + 10 * i, "dur": 8,
                   "args": {"device": 0, "stream": 7, "correlation": i + 1}} for i in range(5)]
        events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 90 + 5 * i,
                    "dur": 3, "args": {"correlation": i + 1}} for i in range(5)]
        memory = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 91,
                  "args": {"Device Type": 1, "Device Id": 0, "Bytes": 1024, "Total Allocated": 1 << 30,
                           "Total Reserved": 2 << 30}}
        device = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85031714816, "numSms": 108}
        for name, more in (("none.json", []), ("totals.json", [memory])):
            trace = self.path(name, json.dumps({"deviceProperties": [device], "traceEvents": events + more}).encode())
            document = json.loads(spillway("run", trace, "--format", "json").stdout)
            self.assertEqual((document["fits"], document["verdict"]), (None, "unknown"))
            self.assertEqual((document["peak_allocated_bytes"], document["peak_reserved_bytes"]), (None, None))
            rows = spillway("run", trace, "--format", "csv").stdout.splitlines()
            row = dict(zip(rows[0].split(","), rows[1].split(",")))
            self.assertEqual([row[key] for key in ("fits", "verdict", "peak_allocated_bytes", "peak_reserved_bytes")],
                             ["unknown", "unknown", "", ""])
            self.assertIn("no usable memory events", spillway("run", trace).stdout)
            page = self.path("x.html")
            self.assertEqual(spillway("report", "step", trace, "--output", page).returncode, 0)
            answer = answer_of(page)
            self.assertEqual(answer["verdict"]["word"], "unknown")
            self.assertEqual((answer["now"]["peak_reserved_bytes"], answer["stages"]), (None, []))
            compared = json.loads(spillway("compare", trace, "--set", "what_if.gpu=2", "--format", "json").stdout)
            self.assertEqual([compared[each]["fits"] for each in "ab"], [None, None])
            self.assertIsNone(compared["peak_reserved_difference_bytes"])
            self.assertNotIn("peak reserved", spillway("compare", trace, "--set", "what_if.gpu=2").stdout)
            sweep = self.path("sweep.json", json.dumps({
                "schema": "spillway-sweep", "version": 1, "base": {"trace": trace},
                "axes": [{"name": "g", "key": "what_if.gpu", "values": [1, 2]}], "objectives": ["step_time"]}).encode())
            swept = spillway("sweep", sweep, "--format", "json")
            self.assertEqual(swept.returncode, 1, swept.stderr)
            for each in json.loads(swept.stdout)["rows"]:
                self.assertEqual([each[key] for key in ("fits", "verdict", "on_front", "peak_reserved_bytes")],
                                 [None, "unknown", False, None])

    DEVICE = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85031714816, "numSms": 108}

    def capture(self, name, *more, kernel_time=20):
        """Of one kernel and a block of 1 MiB, with events besides."""
        def memory(at, size, address):
            return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
                    "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size,
                             "Total Allocated": 1 << 20, "Total Reserved": 2 << 20}}
        events = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 5,
                   "args": {"correlation": 1}},
                  {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 50,
                   "args": {"correlation": 1, "stream": 7, "device": 0}},
                  {"ph": "X", "cat": "kernel", "name": "l", "pid": 0, "tid": 7, "ts": kernel_time, "dur": 50,
                   "args": {"correlation": 2, "stream": 7, "device": 0}}]
        events += [memory(11, 1 << 20, 4096), *[memory(12, *each) for each in more], memory(13, -(1 << 20), 4096)]
        return self.path(name, json.dumps({"schemaVersion": 1, "deviceProperties": [self.DEVICE],
                                           "traceEvents": events}).encode())

    # A script without its adapters is another training: never a yes.
    def test_adapters_are_not_exported_as_all_weights(self):
        scenario = self.path("lora.json", json.dumps({
            "schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "trainable": "lora"},
            "hardware": {"profile": "h100-80gb-1gpu"}}).encode())
        result = spillway("export", scenario, "--for", "megatron", "--output", self.path("run.sh"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("it trains all weights, not adapters", result.stderr)
        found = json.loads(spillway("fit", scenario, "--replays", "4", "--format", "json").stdout)
        megatron = [one for one in found["exports"] if one["for"] == "megatron"]
        self.assertTrue(megatron and not megatron[0]["runs"], megatron)

    # One verdict, whoever is asked: of a record whose memory is in doubt none, and exit code 4.
    def test_a_record_in_doubt_is_unknown_in_every_face(self):
        trace = self.capture("doubt.json", ("no number", 8192))
        page = self.path("x.html")
        faces = {"run": ["run", trace], "report": ["report", "step", trace, "--output", page],
                 "recompute": ["plan", "recompute", trace], "memory": ["memory", trace, "--capacity", "1GiB"]}
        for name, call in faces.items():
            if name == "recompute":
                continue  # needs phases
            found = spillway(*call, "--format", "json")
            self.assertEqual(found.returncode, 4, (name, found.stderr))
            document = json.loads(found.stdout)
            self.assertEqual((document["fits"], document["verdict"]), (None, "unknown"), name)
            self.assertIn("without a usable size", found.stderr, name)
            if name != "memory":
                self.assertIn("without a usable size", document["why_unknown"])
        self.assertEqual(answer_of(page)["verdict"]["word"], "unknown")
        text = spillway("run", trace)
        self.assertEqual(text.returncode, 4)
        self.assertIn("▲ Unknown: its record of memory is in doubt: a memory event without", " ".join(text.stdout.split()))
        self.assertNotIn("GiB free", text.stdout)
        self.assertIn(",unknown,", spillway("run", trace, "--format", "csv").stdout)
        explained = json.loads(spillway("explain", trace, "--format", "json").stdout)
        self.assertEqual((explained["fits"], explained["verdict"]), (None, "unknown"))
        compared = json.loads(spillway("compare", trace, "--set", "what_if.gpu=2", "--format", "json").stdout)
        self.assertEqual([compared[each]["verdict"] for each in "ab"], ["unknown", "unknown"])
        rows = json.loads(spillway("techniques", trace, "--technique", "plain", "--format", "json").stdout)["rows"]
        self.assertEqual([(row["fits"], row["verdict"]) for row in rows], [(None, "unknown")] * len(rows))
        self.assertIn("without a usable size", rows[0]["why_unknown"])
        sweep = self.path("sweep.json", json.dumps({
            "schema": "spillway-sweep", "version": 1, "base": {"trace": trace},
            "axes": [{"name": "g", "key": "what_if.gpu", "values": [1, 2]}], "objectives": ["step_time"]}).encode())
        swept = spillway("sweep", sweep, "--format", "json")
        self.assertEqual(swept.returncode, 4, swept.stderr)
        for each in json.loads(swept.stdout)["rows"]:
            self.assertEqual((each["fits"], each["verdict"], each["on_front"]), (None, "unknown", False))
            self.assertIn("without a usable size", each["why_unknown"])
        scenario = self.path("s.json", json.dumps({"schema": "spillway-scenario", "version": 1, "trace": trace}).encode())
        room = spillway("capacity", scenario, "--axis", "memory.capacity_bytes=1000000000..9000000000", "--smallest",
                        "--technique", "plain")
        if room.returncode != 2:  # where that axis is one
            self.assertEqual(room.returncode, 4, room.stderr)

    # What is wrong with work alone says nothing of memory; and what doesn't fit stays a no.
    def test_what_is_wrong_with_work_leaves_the_verdict(self):
        whole, odd = self.capture("whole.json"), self.capture("odd.json", kernel_time="never")
        for trace in (whole, odd):
            found = spillway("run", trace, "--format", "json")
            self.assertEqual(found.returncode, 0, found.stderr)
            document = json.loads(found.stdout)
            self.assertEqual((document["fits"], document["verdict"]), (True, "fits"))
            self.assertNotIn("why_unknown", document)
        said = spillway("run", odd).stderr
        self.assertIn("warning: ", said)
        self.assertNotIn("bad_time", said)  # a word of programs: JSON's
        doubt = self.capture("doubt.json", ("no number", 8192))
        short = spillway("run", doubt, "--set", "memory.capacity_bytes=1000000", "--format", "json")
        self.assertEqual(short.returncode, 1, short.stderr)
        self.assertEqual(json.loads(short.stdout)["verdict"], "does not fit")

    # A share of the critical path is no gain: the shares make up the whole of it, of every step there is.
    def test_the_parts_of_the_critical_path_are_all_of_it(self):
        folders = [os.path.join(ROOT, folder) for folder in ("cli/scenarios", "gui/scenarios")]
        steps = [os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder))]
        steps = [path for path in steps if "procurement" not in path and "capacity" not in path] + [CAPTURE]
        self.assertGreater(len(steps), 9)
        for path in steps:
            found = spillway("run", path, "--format", "json")
            self.assertIn(found.returncode, (0, 1), found.stderr)
            document = json.loads(found.stdout)
            parts = sum(document["breakdown"].values())
            self.assertAlmostEqual(parts / document["replayed_ns"], 1, 6, path)

    def test_explain_tells_shares_and_gains_apart(self):
        found = spillway("explain", CAPTURE, "--format", "json")
        relaxations = json.loads(found.stdout)["relaxations"]
        shares = {each["resource"]: each["path_share"] for each in relaxations}
        self.assertTrue(all(0 <= share <= 1 for share in shares.values()), shares)
        self.assertAlmostEqual(shares["whole GPU x2"], shares["GPU arithmetic x2"] + shares["GPU memory bandwidth x2"], 9)
        text = spillway("explain", CAPTURE).stdout
        self.assertRegex(text, r"twice as fast +step +gain +of the path")
        self.assertIn("no gain from a faster", text)

    def test_offloading_pipelines_keep_their_step(self):
        step = {"schema": "spillway-scenario", "version": 1,
                "model": {"name": "gpt3-175b", "layers": 16, "sequence": 2048, "micro_batch": 1, "global_batch": 16,
                          "pipeline_parallel": 8},
                "hardware": {"profile": "dgx-h100"}, "offload": {"drives": "samsung-990-pro-2tb", "drives_per_machine": 4}}
        path = self.path("step.json", json.dumps(step).encode())
        times = {}
        for technique in ("none", "ssdtrain"):
            result = spillway("run", path, "--set", "offload.technique=" + technique, "--format", "json")
            times[technique] = json.loads(result.stdout)["step_time_ns"]
        # Drives that can't keep up take less, and cost no time: each stage has a rate of its own.
        self.assertLess(times["ssdtrain"], 1.03 * times["none"])


class NewAndListTest(ProgramTest):
    def test_a_new_scenario_runs_and_says_what_is_trained(self):
        path = self.path("new.json")
        self.assertEqual(spillway("new", "gpt2-small", "h100-80gb-1gpu", "--output", path).returncode, 0)
        with open(path, encoding="utf-8") as file:
            self.assertIn("// ", file.read())
        result = spillway("run", path, "--set", "model.trainable=lora", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        # 12 layers, rank 16: qkv [2304, 768] and the output's [768, 768].
        trained = 12 * 16 * (2304 + 768 + 768 + 768)
        self.assertIn(f"{trained} of {124439808 + trained} parameters", result.stdout)
        self.refused("new", "gpt2-smal", says=["gpt2-small"])

    def test_a_model_in_a_scenarios_place_says_what_to_do(self):
        config = self.path("config.json", b'{"model_type": "gpt2", "n_layer": 2}')
        self.refused("run", config, says=["is a model", "spillway fit " + config])
        self.refused("new", config, says=["/vocab_size", "missing"])
        self.refused("run", PROFILE, says=["hardware profile", "spillway fit MODEL --on"])

    def test_lists_have_names_and_figures(self):
        for name, key in (("models", "parameters"), ("machines", "gpu_count"), ("gpus", "memory_bytes"),
                          ("drives", "capacity_bytes"), ("hosts", "cores"), ("networks", "bytes_per_second"),
                          ("techniques", "source"), ("schedules", "about"), ("allocators", "about"),
                          ("optimizers", "about"), ("precisions", "about")):
            items = json.loads(spillway("list", name, "--format", "json").stdout)["items"]
            self.assertTrue(items and all(item["name"] and key in item for item in items), name)
            self.assertEqual(spillway("list", name).returncode, 0)
        machines = {item["name"]: item for item in json.loads(spillway("list", "machines", "--format",
                                                                       "json").stdout)["items"]}
        self.assertEqual(machines["hgx-h800"]["gpu"], "h800-sxm5-80gb")


class PlanStallocTest(ProgramTest):
    LOG = b"1 1 4096 0\n1 2 1024 0\n0 1 4096 0\n1 1 2048 0\n0 1 2048 0\n0 2 1024 0\n"

    # 4096 and 1024 are alive together, 2048 follows 4096.
    def test_a_log_is_planned_and_written_in_stallocs_form(self):
        for algorithm in ("group", "split-and-fuse", "best"):
            out = self.path("dev_0.txt")
            result = spillway("plan", "stalloc", self.path("log.txt", self.LOG), "--algorithm", algorithm, "--output",
                              out, "--format", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            self.assertEqual((document["pool_bytes"], document["lower_bound_bytes"]), (5120, 5120))
            self.assertEqual(document["requests"]["transient"], 3)
            self.assertEqual(document["allocators"][0]["peak_reserved_bytes"], 5120)
            with open(out, encoding="utf-8") as lines:
                rows = lines.read().split("\n")
            self.assertEqual(rows[:2], ["", "5120 5120 0 3 0"])
            self.assertEqual([row.split()[1] for row in rows[2:5]], ["4096", "1024", "2048"])

    # An expert's 20 MiB stay while the attention works on 30: as published there is no room for them in the pool.
    EXPERTS = "".join(f"{row}\n" for row in (
        "0 : F", "1 1 4194304 0", "moe-1->SwitchMLP Layer : F-start", "1 2 20971520 0",
        "moe-1->SwitchMLP Layer : F-end", "1 3 31457280 0", "0 3 0 0", "0 : B", "1 4 31457280 0", "0 4 0 0",
        "moe-1->SwitchMLP Layer : B-start", "0 2 0 0", "moe-1->SwitchMLP Layer : B-end", "0 1 0 0",
        "1 5 52428800 0", "0 5 0 0")).encode()

    def test_where_a_plan_loses_the_command_says_why(self):
        log = self.path("log.txt", self.EXPERTS)
        found = {}
        for algorithm in ("group", "split-and-fuse", "best"):
            result = spillway("plan", "stalloc", log, "--algorithm", algorithm, "--format", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            found[algorithm] = json.loads(result.stdout)
        reserved = {name: [one["peak_reserved_bytes"] for one in document["allocators"]]
                    for name, document in found.items()}
        self.assertEqual(found["best"]["warnings"], [])
        self.assertLessEqual(reserved["best"][0], min(reserved["best"][1:]))
        for name in ("group", "split-and-fuse"):
            self.assertGreater(reserved[name][0], min(reserved[name][1:]))
            self.assertIn("1 of 1 dynamic requests found no room", found[name]["warnings"][0])
            self.assertIn("--algorithm best", found[name]["warnings"][0])
        self.assertIn("found no room", spillway("plan", "stalloc", log, "--algorithm", "group").stderr)

    def test_bad_logs_are_refused(self):
        self.refused("plan", "stalloc", self.path("a.txt", b"1 1 4096 0\n1 1\n"), says=["line 2"])
        self.refused("plan", "stalloc", self.path("b.txt", b"1 1 4096 0\n"), "--algorithm", "bset", says=["algorithm"])


class PlanOrderTest(ProgramTest):
    # Both branches of operator 0 end in 4: the deep one first leaves 1 byte of it beside the wide one's 4 and 2.
    GRAPH = (b'{"nodes": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e"}], "edges": ['
             b'{"src": [0], "sinks": [1, 2], "size": 1}, {"src": [1], "sinks": [3], "size": 8},'
             b'{"src": [3], "sinks": [4], "size": 1}, {"src": [2], "sinks": [4], "size": 4}], "pt_order": [0, 2, 1, 3, 4]}')

    def test_an_order_is_found_checked_and_written(self):
        out = self.path("order.txt")
        result = spillway("plan", "order", self.path("g.json", self.GRAPH), "--layout", "--baselines", "--output", out,
                          "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        # The program: 1 + 4 + 8 when b runs, and 1 more when d does. Deep branch first: 1 + 8 + 1.
        self.assertEqual((document["program_order_peak_bytes"], document["peak_bytes"]), (13, 10))
        self.assertTrue(document["proven"])
        self.assertEqual((document["operators"], document["layout"]["height_bytes"]), (5, 10))
        with open(out, encoding="utf-8") as lines:
            self.assertEqual(lines.read().split(), ["a", "b", "d", "c", "e"])

    def test_methods_are_chosen_and_compared(self):
        graph, table = self.path("g.json", self.GRAPH), self.path("layout.csv")
        peaks = {}
        for method in ("program", "greedy", "lescea", "roam", "best"):
            result = spillway("plan", "order", graph, "--method", method, "--layout-output", table, "--format", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            self.assertEqual(document["method"], method)
            self.assertGreaterEqual(document["layout"]["height_bytes"], document["peak_bytes"])
            peaks[method] = document["peak_bytes"]
        # List orders run c first, which leaves 4 + 1 beside b's 8, and 8 + 1 + 4 when d runs.
        self.assertEqual(peaks, {"program": 13, "greedy": 13, "lescea": 13, "roam": 10, "best": 10})
        with open(table, encoding="utf-8") as lines:
            rows = lines.read().split()
        self.assertEqual((rows[0], len(rows)), ("id,lower,upper,size,offset", 5))
        result = spillway("plan", "order", graph, "--compare", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        methods = {row["method"]: row["peak_bytes"] for row in json.loads(result.stdout)["methods"]}
        self.assertEqual({name: methods[name] for name in peaks}, peaks)

    def test_bad_graphs_are_refused(self):
        self.refused("plan", "order", self.path("g.json", self.GRAPH), "--method", "raom", says=["--method"])
        loop = self.GRAPH.replace(b'"sinks": [4], "size": 1', b'"sinks": [1], "size": 1')
        self.refused("plan", "order", self.path("loop.json", loop), says=["wait for each other"])
        self.refused("plan", "order", self.path("neg.json", self.GRAPH.replace(b'"size": 8', b'"size": -8')),
                     says=["/edges/1", "size"])
        self.refused("plan", "order", self.path("cut.json", self.GRAPH[:60]), says=["cut.json", "not valid JSON"])


class PlanPipelineTest(ProgramTest):
    """Schedules by name, from a file and searched: the keys others build on, and every kind of no."""

    def answer(self, *arguments, code=0):
        result = spillway("plan", "pipeline", *arguments, "--format", "json")
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def test_a_schedule_is_played_drawn_and_read_again(self):
        picture, orders = self.path("c.svg"), self.path("c.json")
        sizes = ("--stages", "4", "--microbatches", "8")
        chronos = self.answer("--schedule", "chronos", *sizes, "--output", picture)
        self.assertEqual(chronos["makespan"], 33)
        self.assertAlmostEqual(chronos["bubble_makespan"], 3 / 11)
        self.assertAlmostEqual(chronos["bubble_stage_span"], 3 / 11)
        self.assertEqual(chronos["peak_activations"], [3.5, 3, 2.5, 2])
        self.assertEqual(chronos["orders"][3][:4], ["F0.0", "F1.0", "F0.1", "BW0.1"])
        with open(picture, encoding="utf-8") as file:
            self.assertIn("</svg>", file.read())
        self.answer("--schedule", "chronos", *sizes, "--output", orders)
        self.assertEqual(self.answer("--schedule", orders)["makespan"], 33)

    def test_best_is_proven_on_small_problems(self):
        best = self.answer("--schedule", "best", "--stages", "3", "--microbatches", "4", "--chunks", "1",
                           "--memory-limit", "2")
        self.assertTrue(best["proven"])
        self.assertLessEqual(max(best["peak_activations"]), 2)

    def test_what_does_not_fit_is_exit_code_1(self):
        sizes = ("--stages", "4", "--microbatches", "8")
        self.assertFalse(self.answer("--schedule", "1f1b", *sizes, "--memory-limit", "3", code=1)["fits"])
        self.assertFalse(self.answer("--schedule", "best", *sizes, "--memory-limit", "0.2", code=1)["fits"])

    def test_impossible_requests_are_refused(self):
        refused = ("plan", "pipeline", "--stages", "3", "--microbatches", "6")
        self.refused(*refused, "--schedule", "zbv", says=["zbv", "did you mean zb-v?"])
        self.refused(*refused, "--schedule", "dualpipe", says=["stages", "odd"])
        self.refused(*refused, "--set", "tx=1", says=["tx=1"])
        self.refused(*refused, "--set", "tf=1,2", says=["tf has 2 values"])
        stuck = (b'{"stages": 2, "micro_batches": 2,'
                 b' "orders": [["F0", "BW0", "F1", "BW1"], ["F0", "F1", "BW0", "BW1"]]}')
        self.refused("plan", "pipeline", "--schedule", self.path("stuck.json", stuck), says=["deadlock", "BW0"])


class PlanReplayTest(ProgramTest):
    """Plans of a generated step, written and followed."""

    def scenario(self, name, model):
        return self.path(name, json.dumps({
            "schema": "spillway-scenario", "version": 1, "model": model,
            "hardware": {"profile": "h100-80gb-1gpu"}}).encode())

    def answer(self, *arguments):
        result = spillway(*arguments, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_an_order_and_its_layout_are_followed(self):
        step = self.scenario("step.json", {"name": "gpt2-small", "sequence": 128, "micro_batch": 1})
        plan = self.path("plan.json")
        found = self.answer("plan", "order", step, "--layout", "--output", plan)
        self.assertLessEqual(found["peak_bytes"], found["program_order_peak_bytes"])
        self.assertLessEqual(found["program_order_peak_bytes"], found["recorded_peak_bytes"])
        self.assertEqual(found["planned"]["peak_reserved_bytes"], found["layout"]["height_bytes"])
        followed = self.answer("run", step, "--set", "plan=" + plan)
        self.assertEqual(followed["memory"]["allocator"], "arena")
        self.assertEqual(followed["peak_reserved_bytes"], found["layout"]["height_bytes"])
        self.assertEqual(followed["step_time_ns"], found["planned"]["step_time_ns"])
        self.refused("run", step, "--set", "plan=" + plan, "--set", "model.micro_batch=2",
                     says=["made for another trace", "plan order"])
        self.refused("run", step, "--set", "plan=" + self.path("bad.json", b'{"schema": "spillway-plan", "version": 7}'),
                     says=["bad.json", "/version"])

    def test_a_capture_and_its_execution_trace(self):
        plan = self.path("plan.json")
        found = self.answer("plan", "order", CAPTURE, "--execution-trace", GRAPH, "--output", plan)
        self.assertLess(found["peak_bytes"], found["program_order_peak_bytes"])
        self.assertIn("deduced", found["warnings"][0])
        followed = self.answer("run", CAPTURE, "--set", "execution_trace=" + GRAPH, "--set", "plan=" + plan)
        self.assertEqual(followed["step_time_ns"], found["planned"]["step_time_ns"])
        self.refused("plan", "order", CAPTURE, "--output", plan, says=["uses"])

    def test_a_stalloc_plan_is_followed(self):
        steps = (("dense.json", {"name": "gpt2-small", "sequence": 128, "micro_batch": 1, "gradient_accumulation": 2}),
                 ("moe.json", {"name": "qwen1.5-moe-a2.7b", "sequence": 64, "micro_batch": 1}))
        for name, model in steps:
            step, plan = self.scenario(name, model), self.path("plan.json")
            found = self.answer("plan", "stalloc", step, "--output", plan)
            planned = found["allocators"][0]
            followed = self.answer("run", step, "--set", "memory.allocator=planned", "--set", "memory.plan=" + plan,
                                   "--set", "memory.capacity_bytes=1000000000000")
            self.assertEqual(followed["peak_reserved_bytes"], planned["peak_reserved_bytes"], name)
            self.assertGreaterEqual(planned["efficiency"], found["allocators"][1]["efficiency"], name)
            self.assertEqual("moe" in name, found["requests"]["dynamic"] > 0, name)


class OffloadTest(ProgramTest):
    MOVES = ("--set", "offload.technique=ssdtrain", "--set", "offload.adaptive=false")

    def scenario(self, **more):
        return self.path("s.json", json.dumps({
            "schema": "spillway-scenario", "version": 1, "title": "small",
            "model": {"name": "gpt2-small", "sequence": 512, "micro_batch": 8},
            "hardware": {"profile": "h100-80gb-1gpu"}, **more}).encode())

    def test_a_run_reports_what_was_moved_and_the_drives_life(self):
        path = self.scenario(offload={"technique": "ssdtrain", "least_elements": 1000000, "adaptive": False,
                                      "in_flight_bytes": 30000000, "drives": "samsung-990-pro-2tb", "drives_per_machine": 4})
        picture = self.path("t.svg")
        result = spillway("run", path, "--format", "json", "--timeline", picture)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        offload, ssd = document["offload"], document["ssd"]
        self.assertGreater(offload["stored_bytes"], 0)
        self.assertEqual(offload["stored_bytes"], offload["loaded_bytes"] + offload["forwarded_bytes"])
        self.assertEqual(ssd["bytes_written_per_step"], offload["stored_bytes"])
        self.assertGreater(ssd["life_years"], 0)
        self.assertEqual(document["drives"][0]["model"], "samsung-990-pro-2tb")
        with open(picture, encoding="utf-8") as svg:
            self.assertIn("stores to drives", svg.read())

    def test_a_recomputation_plan_is_followed(self):
        path, plan = self.scenario(), self.path("recompute.json")
        budget = json.loads(spillway("run", path, "--format", "json").stdout)["peak_reserved_bytes"] * 9 // 10
        result = spillway("plan", "recompute", path, "--budget", str(budget), "--output", plan, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        planned = json.loads(result.stdout)["plan"]
        self.assertGreater(planned["repeated_ops"], 0)
        followed = json.loads(spillway("run", path, "--set", "plan=" + plan, "--set",
                                       f"memory.capacity_bytes={budget}", "--format", "json").stdout)
        for key in ("step_time_ns", "peak_allocated_bytes", "peak_reserved_bytes"):
            self.assertEqual(followed[key], planned[key])
        self.assertTrue(followed["fits"])
        self.assertTrue(followed["offload"]["technique"].startswith("recompute "))

    def test_the_optimizer_moves_to_the_host(self):
        path = self.scenario()
        keep = json.loads(spillway("run", path, "--format", "json").stdout)
        self.assertNotIn("host_memory", keep)
        cpu = json.loads(spillway("run", path, "--set", "model.optimizer_device=cpu", "--format", "json").stdout)
        self.assertLess(cpu["peak_allocated_bytes"], keep["peak_allocated_bytes"])
        self.assertGreater(cpu["host_memory"]["peak_bytes"], 0)
        self.assertTrue(any(p["name"] == "host.cpu_adam_parameters_per_second" for p in cpu["provenance"]))
        small = spillway("run", path, "--set", "model.optimizer_device=cpu", "--set", "hardware.set.host.dram=1 GiB")
        self.assertEqual(small.returncode, 1)
        self.assertIn("of host memory wanted", small.stdout)

    def test_a_plan_fits_the_budget_and_says_no_when_it_cannot(self):
        path = self.scenario()
        keep = json.loads(spillway("run", path, "--format", "json").stdout)["peak_reserved_bytes"]
        result = spillway("plan", "offload", path, "--budget", str(keep * 8 // 10), "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertTrue(document["best"]["fits"])
        self.assertLessEqual(document["best"]["peak_reserved_bytes"], keep * 8 // 10)
        for one in document["baselines"]:
            if one["fits"]:
                self.assertLessEqual(document["best"]["step_time_ns"], one["step_time_ns"])
        plan = self.path("plan.json")
        spillway("plan", "offload", path, "--budget", str(keep * 8 // 10), "--output", plan)
        self.assertIn(f"memory.capacity_bytes={keep * 8 // 10}", document["settings"])
        settings = [word for setting in document["settings"] for word in ("--set", setting)]
        followed = json.loads(spillway("run", path, *settings, "--set", "plan=" + plan, "--format", "json").stdout)
        self.assertEqual(followed["step_time_ns"], document["best"]["step_time_ns"])
        self.assertEqual(followed["peak_reserved_bytes"], document["best"]["peak_reserved_bytes"])
        self.refused("run", path, "--set", "model.name=gpt2-medium", "--set", "plan=" + plan, says=["another trace"])
        result = spillway("plan", "offload", path, "--budget", "100000000", "--replays", "3")
        self.assertEqual(result.returncode, 1, result.stderr)

    # As model.recompute=full alone does, which needs no plan.
    def test_a_plan_is_never_worse_than_a_setting(self):
        path = self.scenario()
        full = json.loads(spillway("run", path, "--set", "model.recompute=full", "--format", "json").stdout)
        budget = full["peak_reserved_bytes"]
        for command in ("offload", "recompute"):
            result = spillway("plan", command, path, "--budget", str(budget), "--format", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            best = document["best" if command == "offload" else "plan"]
            self.assertTrue(best["fits"])
            self.assertLessEqual(best["step_time_ns"], full["step_time_ns"])

    def test_the_rok_curve_has_a_point_per_family_and_batch(self):
        picture = self.path("rok.svg")
        result = spillway("plan", "rok", self.scenario(), "--batches", "2,4", "--output", picture, "--format", "csv")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = result.stdout.strip().split("\n")
        self.assertEqual([row.split(",")[:2] for row in rows[1:]],
                         [[family, batch] for family in ("keep", "recompute", "offload") for batch in ("2", "4")])
        with open(picture, encoding="utf-8") as svg:
            self.assertIn("<svg ", svg.read())

    ALL_OUT = {"technique": "ssdtrain", "least_elements": 1000000, "adaptive": False, "in_flight_bytes": 30000000,
               "drives": "samsung-980-pro-1tb"}

    def verdict_of_run(self, code, **offload):
        result = spillway("run", self.scenario(offload={**self.ALL_OUT, **offload}), "--format", "json")
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def verdict_of_plan(self, code, *options, **offload):
        result = spillway("plan", "offload", self.scenario(offload={**self.ALL_OUT, "technique": "none", **offload}),
                          "--budget", "5000000000", "--replays", "20", "--no-recompute", *options)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def test_drives_without_life_or_room_are_a_no(self):
        for key, value, says in (("drive_used_percent", 100, "nothing is left of the rated life of samsung-980-pro"),
                                 ("drive_free_bytes", 1000000, "offload has room for 0.001 GB"),
                                 ("least_life_years", 50, "50 are asked for")):
            found = self.verdict_of_run(1, **{key: value})
            self.assertTrue(found["fits"])
            self.assertFalse(found["ssd"]["answer"])
            self.assertIn(says, found["ssd"]["verdict"])
            text = spillway("run", self.scenario(offload={**self.ALL_OUT, key: value}))
            self.assertEqual(text.returncode, 1)
            self.assertIn("✖ No: ", text.stdout)
            # The mix takes host memory instead, and says no where it may not.
            self.assertNotIn("no: ", self.verdict_of_plan(0, **{key: value}))
            self.assertIn("\nno: ", self.verdict_of_plan(1, "--no-host", **{key: value}))
        self.assertTrue(self.verdict_of_run(0)["ssd"]["answer"])
        worn = spillway("report", "ssd", self.scenario(), *self.MOVES, "--drives", "samsung-980-pro-1tb", "--used", "100")
        self.assertEqual(worn.returncode, 1, worn.stderr)
        self.assertIn("nothing is left of its rated life", worn.stdout)

    def test_a_training_run_wears_its_drives(self):
        one = self.verdict_of_run(0)
        few = json.loads(self.run_of_steps(0, "--steps", "1000", "--format", "json"))["training_run"]
        self.assertEqual(json.loads(self.run_of_steps(0, "--steps", "1e3", "--format", "json"))["training_run"], few)
        self.assertAlmostEqual(few["seconds"], 1000 * one["step_time_ns"] / 1e9 + few["first_step_extra_seconds"], 3)
        self.assertTrue(few["drives_last"])
        last = few["drives"][0]["steps_they_take"]
        self.assertNotIn("worn out", self.run_of_steps(0, "--steps", str(last)))
        self.assertIn("worn out by step", " ".join(self.run_of_steps(1, "--steps", str(last + 1)).split()))
        tokens = json.loads(self.run_of_steps(0, "--tokens", str(few["tokens"]), "--format", "json"))["training_run"]
        self.assertEqual(tokens, few)
        for wrong in (["--steps", "0"], ["--steps", "5", "--tokens", "5"], ["--steps", "5", "--format", "csv"]):
            self.assertEqual(spillway("run", self.scenario(), *wrong).returncode, 2)

    # A life that nobody states is unknown to every command: never for ever, never enough.
    def test_an_unrated_drives_life_is_unknown_everywhere(self):
        drives = {**self.ALL_OUT, "drives": "crucial-t705-2tb"}
        path = self.scenario(offload=drives)
        text = spillway("run", path, "--steps", "10")
        self.assertIn("not rated, so their wear is unknown", " ".join(text.stdout.split()))
        found = json.loads(spillway("run", path, "--steps", "10", "--format", "json").stdout)
        self.assertIsNone(found["ssd"]["life_years"])
        self.assertIsNone(found["training_run"]["drives_last"])
        asked = self.scenario(offload={**drives, "least_life_years": 1})
        self.assertIn("is not rated", spillway("run", asked).stdout)
        self.assertEqual(spillway("run", asked).returncode, 1)
        table = spillway("techniques", path, "--technique", "ssdtrain")
        self.assertIn("not rated", table.stdout, table.stderr)
        rows = json.loads(spillway("techniques", path, "--technique", "ssdtrain", "--format", "json").stdout)["rows"]
        self.assertTrue(all(row["life_years"] is None and row["life_low_years"] is None for row in rows))
        with open(path, encoding="utf-8") as file:
            base = json.load(file)
        del base["schema"], base["version"]
        for asks in ({"require": {"life_years": 1}}, {"objectives": ["ssd_life"]}):
            sweep = self.path("sweep.json", json.dumps({
                "schema": "spillway-sweep", "version": 1, "base": base, **asks,
                "axes": [{"name": "least", "key": "offload.least_elements", "values": [1000000, 2000000]}]}).encode())
            swept = spillway("sweep", sweep, "--all", "--format", "csv")
            self.assertIn("crucial-t705-2tb is not rated", swept.stdout, swept.stderr)

    def run_of_steps(self, code, *options):
        result = spillway("run", self.scenario(offload=self.ALL_OUT), *options)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def test_drives_slower_than_the_link_bind(self):
        found = self.verdict_of_run(0)
        self.assertEqual(found["binding_resource"], "storage")
        keep = json.loads(spillway("run", self.scenario(), "--format", "json").stdout)
        self.assertGreater(found["step_time_ns"], 2 * keep["step_time_ns"])
        report = spillway("report", "ssd", self.scenario(), *self.MOVES, "--drives", "samsung-980-pro-1tb",
                          "--drives-per-machine", "1")
        self.assertEqual(report.returncode, 1, report.stderr)
        self.assertRegex(" ".join(report.stdout.split()), r"No: 1 x Samsung 980 PRO 1 TB per GPU fail by (saving; )?bandwidth, caches (empty|full)[;:] ")

    def test_no_drives_at_all(self):
        bare = {"hardware": {"profile": "h100-sxm5-80gb"}}
        self.refused("run", self.scenario(offload={"technique": "ssdtrain", "least_elements": 1000000}, **bare),
                     says=["no drives to offload to", "samsung-990-pro-2tb"])
        report = spillway("report", "ssd", self.scenario(**bare))
        self.assertEqual(report.returncode, 1, report.stderr)
        self.assertIn("No: this machine has no drive", report.stdout)
        plan = spillway("plan", "offload", self.scenario(**bare), "--budget", "5000000000", "--replays", "5")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        none = spillway("plan", "offload", self.scenario(**bare), "--budget", "5000000000", "--replays", "5",
                        "--no-host", "--no-recompute", "--format", "json")
        self.assertEqual(none.returncode, 1, none.stderr)
        self.assertEqual(json.loads(none.stdout)["best"]["name"], "keep")

    def test_explain_relaxes_links_and_drives_of_what_offloads(self):
        explained = spillway("explain", self.scenario(offload=self.ALL_OUT), "--format", "json")
        self.assertEqual(explained.returncode, 0, explained.stderr)
        found = json.loads(explained.stdout)
        gain = {one["resource"]: one["gain_fraction"] for one in found["relaxations"]}
        self.assertGreater(gain["drives infinitely fast"], 0.5)
        self.assertGreaterEqual(gain["links infinitely fast"], 0)
        plain = json.loads(spillway("explain", self.scenario(), "--format", "json").stdout)
        self.assertNotIn("drives infinitely fast", [one["resource"] for one in plain["relaxations"]])

    def test_captures_without_gpu_work_or_memory_are_refused(self):
        self.refused("run", CAPTURE, "--set", "offload.technique=ssdtrain", says=["no GPU work"])

    def test_bad_offload_settings_are_refused(self):
        self.refused("run", self.scenario(offload={"drive_used_percent": 101}), says=["drive_used_percent", "0 to 100"])
        self.refused("run", self.scenario(offload={"technique": "magic"}), says=["/offload/technique", "ssdtrain"])
        self.refused("run", self.scenario(offload={"techniqe": "mix"}), says=["/offload/techniqe", "technique"])
        self.refused("run", self.scenario(offload={"technique": "ssdtrain", "drives": "no-drive"}), says=["no-drive"])
        self.refused("plan", "rok", CAPTURE, says=["scenario"])


class CalibrateTest(ProgramTest):
    """On a file in the working folder, which lies on a drive where the temporary one may not."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(dir=".")
        self.addCleanup(folder.cleanup)
        self.drive = folder.name

    def test_a_drive_gets_a_profile_and_keeps_nothing(self):
        profile = self.path("drive.json")
        result = spillway("calibrate", "nvme", "--quick", "--bytes", "64 MiB", "--file", f"{self.drive}/scratch",
                          "--output", profile, "--format", "json")
        if result.returncode == 2 and ("io_uring" in result.stderr or "O_DIRECT" in result.stderr):
            self.skipTest(result.stderr)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.listdir(self.drive), [])
        document = json.loads(result.stdout)
        self.assertEqual(len(document["points"]), 18)
        self.assertLessEqual(document["bytes_written"], 192 << 20)
        self.assertEqual(spillway("profile", "check", profile).returncode, 0)
        shown = spillway("profile", "show", profile).stdout
        self.assertIn("measured", shown)

    def test_interrupted_it_leaves_nothing(self):
        arguments = [PROGRAM, "calibrate", "nvme", "--quick", "--bytes", "1 GiB", "--file", f"{self.drive}/scratch"]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            try:
                running.wait(0.5)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=60)
        self.assertIn(running.returncode, (2, 130))  # 2: not possible here at all
        self.assertEqual(out, b"")
        self.assertEqual(os.listdir(self.drive), [])

    def test_what_exists_is_not_touched(self):
        precious = self.path("precious", b"data")
        if "built without it" in spillway("calibrate", "nvme", "--file", precious).stderr:
            self.skipTest("built without liburing")
        self.refused("calibrate", "nvme", "--file", precious, says=["exists already"])
        with open(precious, "rb") as kept:
            self.assertEqual(kept.read(), b"data")
        self.refused("calibrate", "nvme", "--file", self.path("none/scratch"), says=["folder"])
        self.refused("calibrate", "nvme", "--file", self.path("new"), "--bytes", "1 MiB", says=["--bytes", "64 MiB"])
        self.refused("calibrate", "nvme", "--file", self.path("new"), "--bytes", "5 W", says=["--bytes"])

    def test_pcie_from_a_copy_of_sysfs(self):
        device = os.path.join(self.folder, "devices/pci0000:00/0000:01:00.0")
        os.makedirs(device)
        os.makedirs(os.path.join(self.folder, "bus/pci/devices"))
        os.symlink(device, os.path.join(self.folder, "bus/pci/devices/0000:01:00.0"))
        for name, text in (("class", "0x030200"), ("current_link_speed", "16.0 GT/s PCIe"),
                           ("max_link_speed", "16.0 GT/s PCIe"), ("current_link_width", "16")):
            self.path(os.path.join(device, name), text.encode())
        profile = self.path("host.json")
        result = spillway("calibrate", "pcie", "--sysfs", self.folder, "--output", profile, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["functions"][0]["kind"], "GPU")
        self.assertEqual(spillway("profile", "check", profile).returncode, 0)
        self.refused("calibrate", "pcie", "--sysfs", self.path("none"), says=["PCI"])


class KernelsTest(ProgramTest):
    def test_reference_kernels_are_as_predicted(self):
        result = spillway("validate", "kernels", "--backend", "cpu", "--technique", "keep", "--technique", "recompute",
                          "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual([run["as_predicted"] for run in document["runs"]], [True] * 6)
        self.refused("validate", "kernels", "--backend", "cpuu", says=["cpuu", "did you mean cpu?"])
        self.refused("validate", "kernels", "--technique", "kep", says=["did you mean keep?"])


class CapacityTest(ProgramTest):
    def scenario(self, **more):
        return self.path("s.json", json.dumps({
            "schema": "spillway-scenario", "version": 1,
            "model": {"name": "gpt2-small", "sequence": 256, "micro_batch": 2},
            "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 4000000000}, **more}).encode())

    def test_the_answer_is_the_last_value_a_run_says_yes_to(self):
        again = {"name": "all again", "set": {"model": {"recompute": "full"}}}
        path = self.scenario(capacity={"techniques": ["keep", again]})
        result = spillway("capacity", path, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["axis"]["key"], "model.layers")
        self.assertEqual([answer["technique"] for answer in document["answers"]], ["keep", "all again"])
        for answer in document["answers"]:
            settings = [word for setting in answer["settings"] for word in ("--set", setting)]
            at = json.loads(spillway("run", path, *settings, "--set", f"model.layers={answer['answer']}", "--format",
                                     "json").stdout)
            self.assertEqual(at["step_time_ns"], answer["at"]["step_time_ns"])
            self.assertEqual(at["peak_reserved_bytes"], answer["at"]["peak_reserved_bytes"])
            self.assertEqual(at["fingerprint"], answer["at"]["fingerprint"])
            further = spillway("run", path, *settings, "--set", f"model.layers={answer['beyond']['value']}")
            # With the reserve's margin given up it may run yet: that is no answer, but no error either.
            self.assertTrue(further.returncode == 1 or "tight" in further.stderr, further.stderr)

    def test_tables_in_every_form(self):
        path = self.scenario()
        arguments = ("capacity", path, "--axis", "micro_batch", "--technique", "keep", "--technique",
                     "again:model.recompute=full")
        rows = spillway(*arguments, "--format", "csv").stdout.strip().split("\n")
        self.assertEqual(len(rows), 3)
        self.assertEqual(rows[0].split(",")[:2], ["technique", "micro_batch"])
        lines = spillway(*arguments, "--format", "markdown").stdout.strip().split("\n")
        self.assertEqual(len(lines), 4)
        self.assertTrue(all(line.startswith("|") and line.endswith("|") for line in lines))
        told = spillway(*arguments).stdout
        self.assertIn("keep everything on the GPU", told)  # the rows of files have its name
        self.assertIn("keep,", "\n".join(rows))
        self.assertIn("ssdtrain", spillway("capacity", "--list").stdout)

    def test_nothing_fits_is_exit_code_1_and_mistakes_2(self):
        path = self.scenario()
        result = spillway("capacity", path, "--set", "memory.capacity_bytes=1000000", "--technique", "keep")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("weights and optimizer state alone", result.stdout)
        self.refused("capacity", path, "--axis", "layer", says=["did you mean layers"])
        self.refused("capacity", path, "--technique", "ful", says=["did you mean full"])
        self.refused("capacity", says=["SCENARIO"])
        self.refused("capacity", self.scenario(capacity={"axes": "layers"}), says=["/capacity/axes", "axis"])


class TerminalTest(ProgramTest):
    """Answers as people see them: no line wider than the terminal, nor than 100 characters."""
    SCENARIOS = os.path.join(ROOT, "cli/scenarios")
    CASES = (
        ("run", "llama3-8b-8k-h100.json"), ("run", "gpt3-175b-128xa100.json"), ("run", "--verbose", "gpt2-xl-32-h100.json"),
        ("explain", "gpt2-xl-32-h100.json"), ("explain", CAPTURE),
        ("explain", os.path.join(ROOT, "traces/data/ran-out/snapshot.pickle")),
        ("run", CAPTURE), ("report", "ssd", "ssdtrain-gpt-h12288.json"), ("report", "pcie", "ssdtrain-gpt-h12288.json"),
        ("report", "ssd", "--verbose", "ssdtrain-gpt-h12288.json"),
        ("techniques", "gpt2-xl-1k-h100.json", "--technique", "full", "--technique", "ssdtrain"),
        ("compare", "gpt2-xl-1k-h100.json", "--set", "model.recompute=full"),
    )

    def shown(self, columns, *arguments, with_errors=False):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        with subprocess.Popen([PROGRAM, *arguments], cwd=self.SCENARIOS, stdin=subprocess.DEVNULL, stdout=theirs,
                              stderr=theirs if with_errors else subprocess.DEVNULL) as running:
            os.close(theirs)
            text = b""
            while True:
                try:
                    more = os.read(ours, 65536)
                except OSError:
                    break
                if not more:
                    break
                text += more
            running.wait(60)
        os.close(ours)
        return text.decode().replace("\r", "")

    def test_no_line_is_wider_than_the_terminal(self):
        for case in self.CASES:
            for columns, most in ((80, 80), (200, 100)):
                text = self.shown(columns, *case)
                self.assertTrue(text, case)
                for line in text.splitlines():
                    self.assertLessEqual(len(line), most, (case, line))

    def test_progress_is_cleared_before_the_answer(self):
        raw = self.shown(80, "capacity", "gpt2-xl-1k-h100.json", "--technique", "keep", with_errors=True)
        self.assertIn("values tried", raw)
        seen = [line.rsplit("\x1b[K", 1)[-1] for line in raw.splitlines()]
        self.assertTrue([line for line in seen if line.startswith("best: ") and "layers under keep" in line], seen)
        self.assertFalse([line for line in seen if "values tried" in line], seen)

    def test_a_pipe_may_say_how_wide_it_is(self):
        widths = {}
        for columns in ("", "70", "100", "none", "-5"):
            told = subprocess.run([PROGRAM, "run", "llama3-8b-8k-h100.json"], capture_output=True, text=True, timeout=120,
                                  check=False, cwd=self.SCENARIOS, env={**os.environ, "COLUMNS": columns}).stdout
            widths[columns] = max(len(line) for line in told.splitlines())
        self.assertLessEqual(widths["70"], 70)
        self.assertEqual(len({widths[columns] for columns in ("", "none", "-5")}), 1)
        self.assertLessEqual(widths[""], 80)
        self.assertGreater(widths["100"], 80)

    def test_the_answer_stands_first(self):
        for case, says in (("llama3-8b-8k-h100.json", "✖ Does not fit"), ("gpt3-175b-128xa100.json", "✔ Fits with")):
            self.assertTrue(self.shown(80, "run", case).splitlines()[2].startswith(says), case)
        snapshot = self.shown(80, "explain", os.path.join(ROOT, "traces/data/ran-out/snapshot.pickle"))
        self.assertTrue(snapshot.startswith("✖ Ran out: loss.py:9"), snapshot)
        drives = self.shown(80, "report", "ssd", "ssdtrain-gpt-h12288.json")
        self.assertIn("\nYes: 2 of 2 sets", drives)
        self.assertNotIn("Years of training without pause", drives)


class FitTest(ProgramTest):
    QUESTION = ("fit", "gpt2-small", "--on", "1xh100", "--sequence", "512", "--global-batch", "8", "--set",
                "model.layers=6", "--set", "model.micro_batch=4", "--replays", "40")

    def fit(self, capacity, *more):
        return spillway(*self.QUESTION, "--set", f"memory.capacity_bytes={capacity}", "--format", "json", *more)

    def test_the_best_way_is_a_scenario_that_runs_as_it_says(self):
        best = self.path("best.json")
        result = self.fit(2600000000, "--output", best)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        way = document["ways"][0]
        self.assertTrue(way["fits"])
        self.assertTrue(way["edits"])
        self.assertTrue(document["assumptions"])
        run = json.loads(spillway("run", best, "--format", "json").stdout)
        for key in ("fingerprint", "fits", "verdict", "step_time_ns", "tokens_per_second", "mfu",
                    "peak_allocated_bytes", "peak_reserved_bytes", "binding_resource"):
            self.assertEqual(way[key], run[key], key)
        self.assertEqual(way["runs_in"], "frameworks")
        for other in document["ways"][:document["fitting"]]:  # of its kind, as far as more edits are worth it
            if other["runs_in"] == "frameworks" and other["same_maths"]:
                self.assertLessEqual(way["step_time_ns"], 1.005 * other["step_time_ns"])
        for each in document["without"]:
            self.assertIn(each["way"], range(1, len(document["ways"])))

    def test_nothing_fits_is_exit_code_1_and_leaves_no_file(self):
        best = self.path("best.json")
        result = self.fit(100000000, "--output", best)
        self.assertEqual(result.returncode, 1, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["fitting"], 0)
        self.assertFalse(document["ways"][0]["fits"])
        self.assertGreater(document["ways"][0]["short_of_bytes"], 0)
        self.assertFalse(os.path.exists(best))

    def test_a_scenario_keeps_its_files_and_a_table_tells_the_edits(self):
        scenario = os.path.join(ROOT, "cli/scenarios/gpt2-xl-1k-h100.json")
        result = spillway("fit", scenario, "--goal", "change", "--replays", "20", "--keep-numerics", "--set",
                          "memory.capacity_bytes=40000000000")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        self.assertIn("runs in", result.stdout)
        self.assertIn("at the peak, then", " ".join(result.stdout.split()))  # why it does not fit as given
        self.assertNotIn("other numerics", result.stdout)
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_a_way_of_a_framework_is_told_and_written(self):
        best = self.path("second.json")
        result = self.fit(2600000000, "--for", "deepspeed", "--way", "2", "--output", best)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        folded = [each["way"] for one in document["shown"] for each in one["folded"]]
        places = [one["way"] for one in document["shown"]] + folded
        self.assertEqual(sorted(places), list(range(document["fitting"])))
        way = document["ways"][document["shown"][1]["way"]]
        run = json.loads(spillway("run", best, "--format", "json").stdout)
        for key in ("fingerprint", "verdict", "step_time_ns", "peak_reserved_bytes"):
            self.assertEqual(way[key], run[key], key)
        with open(best, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["model"]["framework"], "deepspeed")
        self.refused(*self.QUESTION, "--way", "99", says=["--way", "99"])
        self.refused(*self.QUESTION, "--for", "deepsped", says=["--for", "deepspeed"])

    def test_where_nothing_fits_more_gpus_are_looked_at(self):
        question = ("llama-2-13b", "--sequence", "1024", "--keep-numerics", "--replays", "12", "--format", "json")
        small = json.loads(spillway("fit", *question, "--on", "1xrtx3090").stdout)
        self.assertEqual(small["fitting"], 0)
        other = small["other_machine"]
        self.assertTrue(other["fits"])
        self.assertGreater(other["gpus"], 1)
        batch = str(small["ways"][0]["tokens_per_step"] // 1024) if "tokens_per_step" in small["ways"][0] else "16"
        asked = json.loads(spillway("fit", *question, "--on", other["machine"], "--global-batch", batch).stdout)
        self.assertGreater(asked["fitting"], 0)
        self.assertIsNone(asked["other_machine"])
        self.assertEqual(asked["larger_machines"], [])
        costs = []
        for larger in small["larger_machines"]:
            self.assertTrue(larger["fits"])
            self.assertEqual(larger["gpus"], 1)
            alone = json.loads(spillway("fit", *question, "--on", larger["machine"], "--global-batch", batch).stdout)
            self.assertGreater(alone["fitting"], 0)
            costs.append(larger["cost_per_million_tokens"])
        self.assertTrue(0 < len(costs) <= 2 and costs == sorted(costs), costs)

    def test_mistakes_are_exit_code_2(self):
        early = spillway("fit", "llama-3-8b", "--on", "1xrtx3090", "--sequence", "1024", "--keep-numerics", "--replays", "1")
        self.assertEqual(early.returncode, 4, early.stderr)  # a search that ended early is never a no
        self.assertIn("Not decided", early.stdout)
        self.refused("fit", "lama-3-8b", "--on", "8xh100", says=["llama-3-8b"])
        self.refused("fit", "llama-3-8b", says=["--on"])
        self.refused("fit", "llama-3-8b", "--on", "8xh10", says=["did you mean"])
        self.refused("fit", "llama-3-8b", "--on", "8xh100", "--goal", "sped", says=["--goal"])
        self.refused("fit", CAPTURE, "--sequence", "4", says=["--sequence"])
        launch = self.path("launch.sh", b"torchrun pretrain_gpt.py --num-layers $LAYERS --hidden-size 1024 "
                                        b"--num-attention-heads 16 --seq-length 1024 --micro-batch-size 1\n")
        self.refused("fit", launch, "--on", "1xh100", says=["LAYERS"])  # its own fault, not "is a launch file"

    def test_interrupted_it_prints_the_best_so_far(self):
        with subprocess.Popen([PROGRAM, "fit", "llama-3-70b", "--on", "64xh100", "--format", "json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            try:
                running.wait(4)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGINT)
            output, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, errors)
        if output:  # it had replayed something
            self.assertTrue(json.loads(output)["stopped"])


class UsageTest(ProgramTest):
    def test_unknown_words_get_the_nearest_known_one(self):
        self.refused("trce", "info", CAPTURE, says=["'trce'", "did you mean trace?"])
        self.refused("trace", "inof", CAPTURE, says=["'inof'", "did you mean info?"])
        self.refused("--fromat", "json", "profile", "list", says=["--fromat", "did you mean --format?"])
        self.refused("memory", CAPTURE, "--allocator", "trch", says=["did you mean torch?"])
        self.refused("trace", "convert", CAPTURE, self.path("out"), "--to", "kinto", says=["did you mean kineto?"])
        self.refused("profile", "show", "a1000", says=["a1000", "did you mean"])
        self.refused("run", "gpt2-small", "--set", "model.sequence=512", "model.micro_batch=2",
                     says=["'model.micro_batch=2'", "--set before each KEY=VALUE"])

    def test_bad_values_are_usage_errors(self):
        self.refused("trace", says=["spillway trace --help"])
        self.refused("trace", "info", says=["FILE"])
        self.refused("profile", "list", "--format", "xml", says=["xml"])
        self.refused("schema", "sweep", "--table", says=["--table", "scenario"])
        self.refused("new", "gpt2-small", "--examples", self.path("examples"), says=["--examples", "alone"])
        self.refused("memory", CAPTURE, "--capacity", "-5", says=["--capacity"])

    def test_help_and_version_are_results(self):
        for option in ("--help", "--version"):
            result = spillway(option)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("pillway" if option == "--version" else "Usage", result.stdout)

    def test_verbose_says_what_was_taken_and_leaves_results_alone(self):
        scenario = self.path("s.json", json.dumps({
            "schema": "spillway-scenario", "version": 1, "title": "small",
            "model": {"name": "gpt2-small", "sequence": 512, "micro_batch": 8},
            "hardware": {"profile": "h100-80gb-1gpu"},
            "offload": {"technique": "ssdtrain", "drives": "samsung-990-pro-2tb", "drives_per_machine": 4}}).encode())
        plain = spillway("run", scenario, "--format", "json")
        told = spillway("run", scenario, "--format", "json", "--verbose")
        self.assertEqual((plain.stdout, plain.returncode), (told.stdout, told.returncode))
        self.assertNotIn("spillway: ", plain.stderr)
        for line in ("profile: h100-80gb-1gpu (hardware.profile)", "profile: samsung-990-pro-2tb (offload.drives)",
                     "technique: ssdtrain (offload.technique)", "allocator: torch", "cost table: "):
            self.assertEqual(told.stderr.count("spillway: " + line), 1, told.stderr)

    def test_verbose_says_which_profile_fits_a_capture_and_what_a_sweep_searches(self):
        captured = spillway("run", CAPTURE, "--set", "hardware.profile=a10", "--verbose")
        self.assertIn("spillway: profile: a10 (hardware.profile)\n", captured.stderr)
        self.assertIn("spillway: technique: none", captured.stderr)
        sweep, store = self.path("sweep.json", json.dumps(SweepTest.SWEEP).encode()), self.path("a.store")
        first = spillway("sweep", sweep, "--output", store, "--verbose")
        self.assertIn("spillway: search: 12 configurations", first.stderr)
        again = spillway("sweep", sweep, "--output", store, "--resume", "--verbose")
        self.assertEqual(again.stdout, first.stdout)
        self.assertIn("spillway: store: 1 of 1 screened blocks were there already", again.stderr)

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([PROGRAM, "profile", "list"], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"standard output", result.stderr)


class InputTest(ProgramTest):
    def test_missing_file_and_folder(self):
        self.refused("trace", "info", self.path("none.json"), says=["none.json"])
        self.refused("trace", "info", self.folder, says=[self.folder])

    def test_truncated_gzip(self):
        with open(CAPTURE, "rb") as capture:
            whole = capture.read()
        self.refused("trace", "info", self.path("cut.json.gz", whole[: len(whole) // 2]), says=["cut.json.gz", "byte"])

    def test_no_known_format_and_empty(self):
        self.refused("trace", "info", self.path("words.txt", b"hello"), says=["words.txt", "format"])
        self.refused("trace", "info", self.path("empty.json", b""), says=["empty.json"])

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_unreadable(self):
        locked = self.path("locked.json", b"{}")
        os.chmod(locked, 0)
        self.refused("trace", "info", locked, says=["locked.json"])

    def test_tar_archive_is_named_as_such(self):
        header = bytearray(1024)
        header[257:262] = b"ustar"
        header[0:5] = b"a.txt"
        self.refused("trace", "info", self.path("a.tar.gz", gzip.compress(bytes(header))), says=["tar archive"])

    def test_memory_without_events(self):
        self.refused("memory", GRAPH, says=["memory events"])

    def test_rows_without_events_are_no_trace(self):
        """As torch.profiler's raw memory timelines are."""
        timeline = self.path("raw.json", b"[[1000, 2, 512, 0], [2000, 4, -512, 0]]")
        self.refused("trace", "info", timeline, says=["raw.json", "in no format that can be read", "memory snapshot"])

    def test_profile_with_a_wrong_key(self):
        with open(PROFILE, encoding="utf-8") as profile:
            document = json.load(profile)
        document["memoryy"] = 1
        bad = self.path("bad.json", json.dumps(document).encode())
        result = spillway("profile", "check", PROFILE, bad)
        self.assertEqual(result.returncode, 2)
        self.assertIn("memoryy", result.stdout)
        self.assertNotIn(PROFILE, result.stdout)


class ValidateTest(ProgramTest):
    COMMON = {"source": "desk", "metric": "iteration_time", "unit": "ms", "hardware.profile": "a100-80gb-1gpu",
              "model.name": "gpt2-small"}

    def cases(self, *cases, **more):
        document = {"schema": "spillway-cases", "version": 1, "common": self.COMMON, "cases": list(cases), **more}
        return self.path("cases.json", json.dumps(document).encode())

    def test_errors_are_predicted_over_measured(self):
        path = self.cases({"id": "a", "value": 50}, {"id": "b", "value": 90, "model.micro_batch": 2},
                          {"id": "c", "skip": "no set-up"})
        table, plot = self.path("rows.csv"), self.path("plot.svg")
        result = spillway("validate", path, "--format", "json", "--output", table, "--plot", plot)
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual([row["case"] for row in answer["rows"]], ["a", "b"])
        for row in answer["rows"]:
            self.assertAlmostEqual(row["relative_error"], row["predicted"] / row["measured"] - 1)
        self.assertEqual(answer["skipped"], [{"case": "c", "source": "desk", "reason": "no set-up"}])
        summary = answer["summary"][0]
        errors = [abs(row["relative_error"]) for row in answer["rows"]]
        self.assertEqual((summary["source"], summary["metric"], summary["n"]), ("desk", "iteration_time", 2))
        self.assertAlmostEqual(summary["median_abs_error"], sum(errors) / 2)
        self.assertAlmostEqual(summary["worst_abs_error"], max(errors))
        with open(table, encoding="utf-8") as rows:
            self.assertEqual(len(rows.readlines()), 3)
        with open(plot, encoding="utf-8") as picture:
            self.assertIn("desk: 2 cases", picture.read())

    def test_out_of_tolerance_is_exit_code_1(self):
        path = self.cases({"id": "a", "value": 1e9}, tolerance={"median": 0.05})
        self.assertEqual(spillway("validate", path).returncode, 1)
        self.assertEqual(spillway("validate", path, "--tolerance", "2").returncode, 0)

    def test_what_is_asked_stays_in_sight_of_what_is_held(self):
        held = {"source": "desk", "metric": "iteration_time", "median": 1}
        path = self.cases({"id": "a", "value": 1e9}, tolerance={"median": 0.05}, held_to=[held])
        result = spillway("validate", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, "missed: median 5 % +median 100 % +yes")
        summary = json.loads(spillway("validate", path, "--format", "json").stdout)["summary"][0]
        self.assertEqual([summary[key]["median"] for key in ("asked", "missed", "tolerance")], [0.05, 0.05, 1])
        self.assertTrue(summary["within_tolerance"])
        self.assertEqual(spillway("validate", path, "--tolerance", "0.5").returncode, 1)

    def test_a_sample_is_some_of_each(self):
        path = self.cases(*({"id": str(i), "value": 50, "model.gradient_accumulation": i} for i in range(1, 9)),
                          {"id": "other", "value": 50, "source": "other"})
        rows = [row["case"] for row in json.loads(
            spillway("validate", path, "--sample", "2", "--format", "json").stdout)["rows"]]
        self.assertEqual((len(rows), rows[-1]), (3, "other"))
        self.assertLess(int(rows[1]), 5)  # of the shorter half, in the file's order
        self.assertLess(int(rows[0]), int(rows[1]))
        self.refused("validate", path, "--sample", "0", says=["--sample"])

    def test_mistakes(self):
        self.refused("validate", self.cases({"id": "a", "value": 1, "model.micro_bach": 2}),
                     says=["cases.json", "did you mean micro_batch?"])
        self.refused("validate", self.cases({"id": "a", "value": 1}), "--source", "dsk", says=["did you mean desk?"])


class ReportTest(ProgramTest):
    SCENARIO = os.path.join(ROOT, "cli/scenarios/gpt3-175b-zero3-384xa100.json")
    SLOW = ("--set", "what_if.compute=0.6", "--set", "offload.technique=ssdtrain", "--set", "offload.adaptive=false",
            "--drives-per-gpu", "4", "--life-years", "1")

    def test_another_drive_is_asked_about_as_many_as_the_machine_has(self):
        moves = ("--set", "model.layers=2", "--set", "offload.technique=ssdtrain", "--drives", "micron-9550-max-12.8tb",
                 "--format", "json")
        scenario = self.path("s.json", json.dumps({
            "schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 256},
            "hardware": {"profile": "dgx-h100"}}).encode())
        for more, count in (((), 8), (("--drives-per-machine", "3"), 3), (("--set", "offload.drives_per_machine=2"), 2)):
            drives = json.loads(spillway("report", "ssd", scenario, *moves, *more).stdout)["drives"]
            self.assertEqual([drive["drives_per_set"] for drive in drives], [count], more)

    def test_drives_that_hold_and_drives_that_do_not(self):
        good = spillway("report", "ssd", self.SCENARIO, *self.SLOW, "--format", "json",
                        "--drives", "micron-9550-max-12.8tb,samsung-980-pro-1tb")
        self.assertEqual(good.returncode, 0, good.stderr)
        document = json.loads(good.stdout)
        self.assertEqual([drive["answer"] for drive in document["drives"]], [True, False])
        self.assertFalse(document["drives"][1]["holds_steady"])
        bad = spillway("report", "ssd", self.SCENARIO, *self.SLOW, "--drives", "samsung-980-pro-1tb", "--verbose")
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("6 GB/s once full", bad.stdout)
        self.assertNotIn("retention relaxed from", bad.stdout)

    def test_reports_have_the_same_bytes_again(self):
        for ending, begins in ((".html", b"<!DOCTYPE"), (".csv", b'"Drives for'), (".pdf", b"%PDF"), (".xlsx", b"PK")):
            pages = []
            for name in ("a", "b"):
                path = self.path(name + ending)
                result = spillway("report", "ssd", self.SCENARIO, *self.SLOW, "--drives", "micron-9550-max-12.8tb",
                                  "--output", path)
                if result.returncode == 2 and "was built without" in result.stderr:
                    continue
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(path, "rb") as page:
                    pages.append(page.read())
            if pages:
                self.assertTrue(pages[0].startswith(begins), ending)
                self.assertEqual(pages[0], pages[1], ending)

    def test_links(self):
        result = spillway("report", "pcie", self.SCENARIO, "--drives", "micron-9550-max-12.8tb", "--format", "json")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertLess(json.loads(result.stdout)["links"][0]["headroom"], 1)

    def test_mistakes(self):
        self.refused("report", "ssd", self.SCENARIO, "--drives", "samsung-981-pro-1tb", says=["samsung-980-pro-1tb"])
        self.refused("report", "ssd", self.SCENARIO, "--output", self.path("x.doc"),
                     says=[".html, .pdf, .xlsx or .csv"])

    def test_a_number_of_drives_says_of_what_and_is_of_named_ones(self):
        drives = ("--drives", "micron-9550-max-12.8tb")
        for report in ("ssd", "pcie"):
            self.refused("report", report, self.SCENARIO, *drives, "--count", "4",
                         says=["--count", "--drives-per-gpu", "--drives-per-machine"])
            self.refused("report", report, self.SCENARIO, "--count", "4", says=["--count"])
            for option in ("--drives-per-gpu", "--drives-per-machine"):
                self.refused("report", report, self.SCENARIO, option, "4", says=[option, "--drives MODEL"])
            self.refused("report", report, self.SCENARIO, *drives, "--drives-per-gpu", "1", "--drives-per-machine", "8",
                         says=["one of the two"])
        old = ("drive_count", "write", "drives_per_machine")
        self.refused("run", self.SCENARIO, "--set", "offload.drive_count=4", says=old)
        self.refused("run", self.path("old.json", json.dumps({
            "schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small"},
            "hardware": {"profile": "dgx-a100"}, "offload": {"drive_count": 4}}).encode()), says=old)
        self.refused("capacity", self.SCENARIO, "--axis", "offload.drive_count", says=old)


class ProcurementTest(ProgramTest):
    SCENARIO = os.path.join(ROOT, "cli/scenarios/gpt2-small-procurement.json")

    def ask(self, *arguments):
        return spillway("report", "procurement", self.SCENARIO, *arguments)

    def test_the_answer_as_json(self):
        result = self.ask("--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["schema"], "spillway.procurement")
        able = [option for option in answer["options"] if "failure" not in option]
        self.assertEqual(answer["chosen"], able[0]["name"])
        self.assertEqual([option["usd_per_billion_tokens"] for option in able],
                         sorted(option["usd_per_billion_tokens"] for option in able))
        # A plan's settings are the scenario that was replayed.
        plan = able[0]["plans"][0]
        settings = [word for setting in plan["settings"] for word in ("--set", setting)]
        again = spillway("run", self.SCENARIO, *settings, "--format", "json")
        self.assertEqual(json.loads(again.stdout)["step_time_ns"], plan["step_time_ns"])

    def test_no_fleet_is_fast_enough(self):
        result = self.ask("--deadline-days", "0.01")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("No: the cheapest option", result.stdout)

    def test_files_have_the_same_bytes_again(self):
        store = self.path("replays.sqlite")
        for ending, begins in ((".html", b"<!DOCTYPE"), (".csv", b'"Procurement for'), (".pdf", b"%PDF"), (".xlsx", b"PK")):
            pages = []
            for name in ("a", "b"):
                path = self.path(name + ending)
                result = self.ask("--output", path, "--quiet", "--store", store)
                if result.returncode == 2 and "was built without" in result.stderr:
                    continue
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(path, "rb") as page:
                    pages.append(page.read())
            if pages:
                self.assertTrue(pages[0].startswith(begins), ending)
                self.assertEqual(pages[0], pages[1], ending)

    def test_prices_of_ones_own(self):
        leaf = {"unit": "USD", "provenance": "measured", "source": "an offer", "date": "2026-03-02"}
        cheap = json.dumps({"schema": "spillway-prices", "version": 1,
                            "machines": {"dgx-h100": {"price": {"value": 1000, **leaf}}}})
        result = self.ask("--prices", self.path("prices.json", cheap.encode()), "--format", "json")
        self.assertIn("dgx-h100", json.loads(result.stdout)["chosen"])

    def test_mistakes(self):
        self.refused("report", "procurement", os.path.join(ROOT, "cli/scenarios/gpt2-xl-1k-h100.json"),
                     says=["--tokens"])
        self.refused("report", "procurement", self.SCENARIO, "--machines", "dgx-h101", says=["dgx-h100"])
        self.refused("report", "procurement", self.SCENARIO, "--prices", self.path("no.json"), says=["no.json"])
        self.refused("report", "procurement", self.path("bad.json", b"{"), says=["bad.json"])
        for value, says in (("0", "1 to 1000000000000000000"), ("nan", "2e12 or 2T")):
            self.refused("report", "procurement", self.SCENARIO, "--tokens", value, says=["--tokens", says])
        self.refused("report", "procurement", self.SCENARIO, "--set", "hardware.set.gpu.foo=1", says=["gpu.foo", "no such value"])
        self.refused("report", "procurement", self.SCENARIO, "--drives", "samsung-pm983-0.96tb", "--technique", "ssdtrain",
                     says=["samsung-pm983-0.96tb", "rates"])
        leaf = {"value": 1, "unit": "USD", "provenance": "measured", "source": "s", "date": "2026"}
        prices = self.path("prices.json", json.dumps({"schema": "spillway-prices", "version": 1,
                                                      "machines": {"dgx-h1000": {"price": leaf}}}).encode())
        self.refused("report", "procurement", self.SCENARIO, "--prices", prices, says=["dgx-h1000", "did you mean dgx-h100"])

    def test_prices_that_nobody_vouches_for_are_listed(self):
        listed = spillway("prices", "check", "--format", "json")
        self.assertEqual(listed.returncode, 1, listed.stderr)
        document = json.loads(listed.stdout)
        self.assertTrue(document["items"])
        for item in document["items"]:
            self.assertTrue(item["is_old"] or item["is_assumed"], item["name"])
            self.assertLessEqual(item["low"], item["value"])
            self.assertGreaterEqual(item["high"], item["value"])
        later = json.loads(spillway("prices", "check", "--date", "2030", "--format", "json").stdout)["items"]
        width = {item["name"]: item["high"] / item["low"] for item in document["items"]}
        for item in later:
            if item["name"] in width:
                self.assertGreater(item["high"] / item["low"], width[item["name"]], item["name"])
        for date in ("tomorrow", "2026-13"):
            self.refused("prices", "check", "--date", date, says=[date, "2026-03"])

        def own(**price):
            leaf = {"value": 7, "unit": "USD", "provenance": "measured", "source": "an offer", "date": "2026-03", **price}
            return self.path("own.json", json.dumps({"schema": "spillway-prices", "version": 1,
                                                     "machines": {"dgx-h100": {"price": leaf}}}).encode())
        self.refused("prices", "check", own(date="May"), says=["own.json", "/machines/dgx-h100/price/date", "May"])
        self.refused("prices", "check", own(low=8), says=["own.json", "low <= value <= high"])
        self.refused("prices", "check", own(index="tulips"), says=["own.json", "tulips"])
        kept = json.loads(spillway("prices", "check", own(), "--date", "2026-05", "--format", "json").stdout)["items"]
        self.assertNotIn("machines/dgx-h100/price", [item["name"] for item in kept])
        everything = json.loads(spillway("prices", "check", own(), "--all", "--date", "2026-05", "--format", "json").stdout)
        self.assertEqual([item["name"] for item in kept],
                         [item["name"] for item in everything["items"] if item["is_old"] or item["is_assumed"]])
        self.assertIn("machines/dgx-h100/price", [item["name"] for item in everything["items"]])

    def test_documents_that_can_not_be_are_refused_before_any_replay(self):
        page = self.path("page.html")
        for outputs, words in (((page, page), "named twice"), ((page, self.path("page.doc")), ".html, .pdf, .xlsx or .csv")):
            given = [word for output in outputs for word in ("--output", output)]
            for report in ("procurement", "step", "ssd", "pcie"):
                self.refused("report", report, self.SCENARIO, *given, says=[words])
        self.assertFalse(os.path.exists(page))

    def test_a_plan_that_writes_nothing_is_no_reason_to_buy_drives(self):
        wanted = [word for setting in ("hardware.profile=dgx-h100", "model.micro_batch=16", "model.data_parallel=8")
                  for word in ("--set", setting)]
        drives = ("--drives", "micron-9550-max-6.4tb")
        result = spillway("report", "ssd", self.SCENARIO, *wanted, "--set", "offload.technique=ssdtrain",
                          "--set", "offload.drives=micron-9550-max-6.4tb", *drives)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("writes nothing here", result.stdout)


class SweepTest(ProgramTest):
    SWEEP = {
        "schema": "spillway-sweep", "version": 1, "title": "small",
        "base": {"model": {"name": "gpt2-small", "sequence": 256, "global_batch": 16},
                 "hardware": {"profile": "dgx-a100"}},
        "axes": [{"name": "t", "key": "model.tensor_parallel", "values": [1, 2, 4]},
                 {"name": "p", "key": "model.pipeline_parallel", "values": [1, 2]},
                 {"name": "b", "key": "model.micro_batch", "values": [1, 2]}],
        "derived": [{"name": "d", "key": "model.data_parallel", "value": "8 / (t * p)"}],
        "objectives": ["step_time", "peak_memory"],
    }

    def sweep(self, **changes):
        return self.path("sweep.json", json.dumps({**self.SWEEP, **changes}).encode())

    def test_a_point_is_a_scenario(self):
        path, scenario = self.sweep(), self.path("point.json")
        rows = json.loads(spillway("sweep", path, "--format", "json").stdout)["rows"]
        row = next(row for row in rows if row["on_front"])
        result = spillway("sweep", path, "--point", str(row["point"]), "--output", scenario)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        answer = json.loads(spillway("run", scenario, "--format", "json").stdout)
        for key in ("step_time_ns", "peak_reserved_bytes", "fits", "verdict", "mfu", "tokens_per_second"):
            self.assertEqual(answer[key], row[key], key)
        self.refused("sweep", path, "--point", "12", says=["no point 12", "0 to 11"])

    def test_the_same_bytes_from_threads_shards_and_kills(self):
        path = self.sweep()
        whole = spillway("sweep", path, "--format", "json")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        document = json.loads(whole.stdout)
        self.assertEqual(document["points"], 12)
        self.assertTrue(any(row["on_front"] for row in document["rows"]))
        self.assertEqual(spillway("sweep", path, "--jobs", "1", "--format", "json").stdout, whole.stdout)
        stores = [self.path(f"{shard}.store") for shard in range(3)]
        for shard, store in enumerate(stores):
            part = spillway("sweep", path, "--shard", f"{shard}/3", "--output", store, "--format", "json")
            self.assertIn("one shard's own answer", part.stderr)
        self.assertEqual(spillway("merge", *stores, "--format", "json").stdout, whole.stdout)
        store = self.path("killed.store")
        for delay in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
            with subprocess.Popen([PROGRAM, "sweep", path, "--output", store, "--resume"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as run:
                try:
                    run.wait(delay)
                except subprocess.TimeoutExpired:
                    run.send_signal(signal.SIGKILL)
        again = spillway("sweep", path, "--output", store, "--resume", "--format", "json")
        self.assertEqual(again.stdout, whole.stdout, again.stderr)

    def test_pruning_is_explained(self):
        path = self.sweep(where=[{"is": "t < 4", "reason": "no more than two"}])
        result = spillway("sweep", path, "--explain-pruning")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("left out: no more than two", result.stdout)
        self.assertIn("estimate against simulation", result.stdout)

    def test_no_point_does(self):
        result = spillway("sweep", self.sweep(require={"step_time_seconds": 1e-6}))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("no configuration meets the requirements", result.stdout)

    def test_mistakes(self):
        path = self.sweep()
        store = self.path("a.store")
        self.assertEqual(spillway("sweep", path, "--output", store).returncode, 0)
        self.refused("sweep", path, "--output", store, says=["a.store", "--resume"])
        self.refused("sweep", path, "--shard", "3/3", says=["0 <= i < N"])
        self.refused("sweep", self.path("no.json"), says=["no.json"])
        unpriced = {**self.SWEEP["base"], "hardware": {"profile": "h100-80gb-1gpu"}}
        self.refused("sweep", self.sweep(objectives=["cost_per_token"], base=unpriced), says=["no price per hour"])
        self.refused("sweep", self.sweep(axes=[{"name": "g", "key": "hardware.profile", "values": ["dgx-a101"]}],
                                         derived=[]), says=["dgx-a101", "dgx-a100"])
        self.refused("merge", self.path("empty.store", b""), says=["no sweep's store"])
        self.refused("sweep", path, "--jobs", "-1", says=["--jobs"])
        self.refused("sweep", path, "--check-screen", "5", "--shard", "0/2", says=["--check-screen", "--shard"])
        self.refused("sweep", self.path("huge.json", b'{"schema": "spillway-sweep", "replays": 1e999}'),
                     says=["huge.json", "too large", "1e999"])
        self.refused("sweep", self.sweep(replays=2.5), says=["/replays", "whole number"])
        b = {"name": "b2", "key": "model.micro_batch", "values": [2]}
        self.refused("sweep", self.sweep(axes=self.SWEEP["axes"] + [b]), says=["/axes/3/key", "'b' sets"])
        derived = {"name": "b2", "key": "model.micro_batch", "value": "2"}
        self.refused("sweep", self.sweep(derived=self.SWEEP["derived"] + [derived]), says=["/derived/1/key", "'b' sets"])
        twice = {"name": "c", "key": "model.sequence", "values": [256, 256]}
        self.refused("sweep", self.sweep(axes=[twice]), says=["/axes/0", "256 twice"])
        self.refused("sweep", self.sweep(axes=[{"name": "s", "key": "model.sequence", "values": [-5]}], derived=[],
                                         objectives=["peak_memory"]),
                     says=["/axes/0/values/0", "can't set model.sequence to -5"])

    def test_every_objective_has_a_column_and_every_invalid_point_a_reason(self):
        axes = self.SWEEP["axes"] + [{"name": "z", "key": "model.expert_parallel", "values": [1, 2]}]
        result = spillway("sweep", self.sweep(axes=axes, objectives=["cost_per_token", "gpu_time_per_token"]))
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = spillway("sweep", self.sweep(axes=axes, objectives=["cost_per_token", "gpu_time_per_token"]), "--format",
                        "csv").stdout
        for column in ("USD per 1e6 tokens", "GPU hours per 1e6 tokens"):
            self.assertIn(column, rows.split("\n")[0])
        self.assertRegex(" ".join(result.stdout.split()), r"invalid, \d+ of them: .*expert.*\(first: .*2")

    def test_a_store_is_of_one_sweep(self):
        store, other = self.path("one.store"), self.path("other.store")
        self.assertEqual(spillway("sweep", self.sweep(), "--output", store).returncode, 0)
        # More replays of the same points, under another title: what is stored counts.
        more = spillway("sweep", self.sweep(replays=600, title="more"), "--output", store, "--resume")
        self.assertEqual(more.returncode, 0, more.stderr)
        self.assertNotIn("warning", more.stderr)
        changed = self.sweep(objectives=["step_time"])
        self.refused("sweep", changed, "--output", store, "--resume", says=["one.store", "another sweep"])
        self.assertEqual(spillway("sweep", changed, "--output", other).returncode, 0)
        self.refused("merge", store, other, says=["other.store", "another sweep"])
        self.refused("merge", other, "--output", store, says=["one.store", "another sweep"])

    def test_what_is_no_store_is_left_alone(self):
        """Neither --output, --resume nor merge changes a byte of a file that holds something else."""
        path, store = self.sweep(), self.path("good.store")
        self.assertEqual(spillway("sweep", path, "--output", store).returncode, 0)
        with open(store, "rb") as file:
            whole = file.read()
        for content in (b"notes of a month\nwithout an end", b"a,b\n1,2\n", bytes(range(256)), b"{}"):
            notes = self.path("notes.txt", content)
            for arguments in (["sweep", path, "--output", notes], ["sweep", path, "--output", notes, "--resume"],
                              ["merge", notes], ["merge", store, notes], ["merge", store, "--output", notes],
                              ["merge", notes, "--output", self.path("new.store")]):
                self.refused(*arguments, says=["notes.txt", "no sweep's store", "left as it is"])
                with open(notes, "rb") as file:
                    self.assertEqual(file.read(), content, arguments)
            self.assertFalse(os.path.exists(self.path("new.store")))
        # A torn last record of a store is mended, unless the store is refused.
        torn = self.path("torn.store", whole[:-3])
        self.refused("sweep", self.sweep(objectives=["step_time"]), "--output", torn, "--resume", says=["another sweep"])
        with open(torn, "rb") as file:
            self.assertEqual(file.read(), whole[:-3])
        again = spillway("sweep", self.sweep(), "--output", torn, "--resume")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("no whole record", again.stderr)
        with open(torn, "rb") as file:
            self.assertEqual(file.read(), whole)

    def test_nothing_stale_is_taken_for_a_result(self):
        """A profile beside the sweep names its GPU in a file of its own, and that changes between two runs."""
        data = os.path.join(ROOT, "hwprofiles/data")
        with open(os.path.join(data, "systems/dgx-a100.json")) as file:
            system = json.load(file)
        with open(os.path.join(data, f"gpus/{system['gpu']['profile']}.json")) as file:
            gpu = file.read()
        self.path("gpu.json", gpu.encode())
        system["gpu"]["profile"] = "gpu.json"
        self.path("mine.json", json.dumps(system).encode())
        base = {**self.SWEEP["base"], "hardware": {"profile": "mine.json"}}
        path, store = self.sweep(base=base, objectives=["step_time"]), self.path("own.store")

        def best(*arguments):
            result = spillway("sweep", path, "--format", "json", *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return min(row["step_time_ns"] for row in json.loads(result.stdout)["rows"]), result.stderr

        first, _ = best("--output", store)
        slower = json.loads(gpu)
        slower["memory_bandwidth"] = {**slower["memory_bandwidth"], "value": slower["memory_bandwidth"]["value"] / 2}
        self.path("gpu.json", json.dumps(slower).encode())
        second, words = best("--output", store, "--resume")
        self.assertIn("have changed since", words)
        self.assertGreater(second, first)
        self.assertEqual(second, best()[0])
        # From any folder: the sweep's names are paths from its own.
        there = subprocess.run([os.path.abspath(PROGRAM), "merge", store, "--format", "json"], cwd="/", capture_output=True, text=True)
        self.assertEqual(there.returncode, 0, there.stderr)
        os.remove(self.path("mine.json"))
        self.refused("sweep", path, says=["sweep.json", "/hardware/profile", "mine.json"])


class MemoryTest(ProgramTest):
    def snapshot(self):
        scenario = {"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "h100-80gb-1gpu"},
                    "model": {"name": "gpt2-small", "micro_batch": 2, "sequence": 256}}
        out = self.path("snapshot.pickle")
        result = spillway("run", self.path("s.json", json.dumps(scenario).encode()), "--memory-snapshot", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def test_allocators_side_by_side(self):
        names = ["torch", "torch-expandable", "gmlake", "ideal", "torch:roundup_power2_divisions:4"]
        arguments = [word for name in names for word in ("--allocator", name)]
        result = spillway("memory", self.snapshot(), "--format", "json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual([one["allocator"] for one in document["allocators"]],
                         ["torch", "torch-expandable", "gmlake", "ideal", "torch"])
        self.assertEqual(document["allocators"][4]["settings"], "roundup_power2_divisions:4")
        for one in document["allocators"]:
            self.assertGreaterEqual(one["peak_reserved_bytes"], one["peak_allocated_bytes"])
            self.assertGreaterEqual(one["peak_reserved_bytes"], document["allocators"][3]["peak_reserved_bytes"])
            stats = one["memory_stats"]
            self.assertEqual(stats["allocated_bytes.all.peak"], one["peak_allocated_bytes"])
            self.assertEqual(stats["allocation.all.allocated"] - stats["allocation.all.freed"],
                             stats["allocation.all.current"])
        table = spillway("memory", self.snapshot(), *arguments).stdout
        for part in ("torch:roundup_", "power2_", "divisions:4"):  # over lines
            self.assertIn(part, table)
        self.assertRegex(table, r"peak reserved +[0-9.]+ GiB")
        self.assertNotRegex(table, r"\d{7}")  # bytes are for programs

    def test_a_layout_is_followed(self):
        snapshot, requests, layout = self.snapshot(), self.path("requests.csv"), self.path("layout.csv")
        result = spillway("memory", snapshot, "--save-requests", requests)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(requests, encoding="utf-8") as rows, open(layout, "w", encoding="utf-8") as out:
            out.write(next(rows).strip() + ",offset\n")
            offset = 0
            for row in rows:  # one behind the other: no reuse, but a layout
                out.write(f"{row.strip()},{offset}\n")
                offset += int(row.split(",")[3])
        result = spillway("memory", snapshot, "--allocator", "arena", "--plan", layout, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["plan"]["placed"], document["allocations"])
        self.assertEqual(document["peak_reserved_bytes"], offset)

    def test_mistakes(self):
        snapshot = self.snapshot()
        self.refused("memory", snapshot, "--allocator", "gmlake", "--alloc-conf", "fragLimt:1",
                     says=["did you mean fragLimit?"])
        self.refused("memory", snapshot, "--alloc-conf", "max_split_size:1", says=["did you mean max_split_size_mb?"])
        self.refused("memory", snapshot, "--allocator", "planned", says=["memory plan"])
        self.refused("memory", snapshot, "--allocator", "planned", "--plan", self.path("p.json", b"{}"),
                     says=["p.json", "memory plan"])
        self.refused("memory", snapshot, "--plan", self.path("l.csv", b"id,size,offset\n0,1,0\n"),
                     says=["no allocator follows"])
        self.refused("memory", snapshot, "--allocator", "planned", "--plan",
                     self.path("l.csv", b"id,size,offset\n0,1,0\n"), says=["another kind"])


class TraceTest(ProgramTest):
    def test_info_of_the_bundled_capture(self):
        info = self.info(CAPTURE)
        keys = ("schema", "version", "format", "capabilities", "events", "kernels", "ops", "tensors", "memory_events",
                "peak_allocated_bytes", "steps", "findings", "warnings")
        self.assertEqual([key for key in keys if key not in info], [])
        with gzip.open(CAPTURE) as capture:
            rows = json.load(capture)["traceEvents"]
        self.assertEqual(info["format"], "kineto")
        self.assertEqual(info["events"], len(rows))
        self.assertEqual(info["memory_events"], sum(row["name"] == "[memory]" for row in rows))
        # ProfilerStep#n annotations of the file are the steps.
        recorded = {row["name"]: row["dur"] for row in rows if row["name"].startswith("ProfilerStep#")}
        self.assertEqual([step["name"] for step in info["steps"]], sorted(recorded))
        for step in info["steps"]:
            self.assertAlmostEqual(step["duration_ns"], recorded[step["name"]] * 1000, delta=1)

    def test_a_snapshots_peaks_count_what_was_there_before(self):
        """A history of three events of a GPU that held 3 MiB in two segments when it began."""
        block = {"requested_size": 1 << 20, "size": 1 << 20, "state": "active_allocated", "frames": []}
        segments = [{"device": 0, "address": begin, "total_size": 2 << 20, "stream": 0, "segment_type": "large",
                     "blocks": [{**block, "address": begin}, {**block, "address": begin + (1 << 20), "state": state}]}
                    for begin, state in ((1 << 30, "active_allocated"), (2 << 30, "inactive"))]
        history = [{"action": action, "addr": (2 << 30) + (1 << 20), "size": 1 << 20, "stream": 0, "time_us": time, "frames": []}
                   for time, action in enumerate(("free_requested", "free_completed"), 1)]
        history.insert(0, {"action": "segment_free", "addr": 3 << 30, "size": 4 << 20, "stream": 0, "time_us": 1, "frames": []})
        info = self.info(self.path("s.pickle", pickle.dumps({"segments": segments, "device_traces": [history]})))
        self.assertEqual((info["peak_allocated_bytes"], info["peak_reserved_bytes"]), (4 << 20, 8 << 20))

    def test_quiet_leaves_results_alone(self):
        loud, quiet = spillway("trace", "info", CAPTURE), spillway("-q", "trace", "info", CAPTURE)
        self.assertNotEqual(loud.stderr, "")
        self.assertEqual(quiet.stderr, "")
        self.assertEqual(loud.stdout, quiet.stdout)

    def test_check_says_no_when_rows_were_dropped(self):
        self.assertEqual(spillway("trace", "check", CAPTURE).returncode, 0)
        row = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 10}
        events = {"traceEvents": [row | {"dur": 5}, row | {"dur": -5}]}
        result = spillway("trace", "check", self.path("bad.json", json.dumps(events).encode()), "--format", "json")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertFalse(json.loads(result.stdout)["sound"])

    def test_conversions_come_back(self):
        before = self.info(CAPTURE)
        for name in ("out.spillway", "out.spillway.json"):
            out = self.path(name)
            self.assertEqual(spillway("trace", "convert", CAPTURE, out).returncode, 0)
            after = self.info(out)
            for key in before:
                if key not in ("format", "warnings"):
                    self.assertEqual(after[key], before[key], f"{key} through {name}")
        self.assertEqual(spillway("trace", "convert", CAPTURE, self.path("out.json")).returncode, 0)
        after = self.info(self.path("out.json"))
        self.assertEqual((after["format"], after["kernels"]), ("kineto", before["kernels"]))
        self.assertGreater(after["ops"], 0)

    def test_failed_conversion_leaves_nothing(self):
        self.refused("trace", "convert", CAPTURE, "/dev/full", "--to", "chrome", says=["/dev/full"])
        self.refused("trace", "convert", CAPTURE, self.path("out.unknown"), says=["--to", ".spillway"])
        self.refused("trace", "convert", GRAPH, self.path("out.pickle"), says=["memory"])
        self.refused("trace", "convert", CAPTURE, self.path("none/out.json"), says=["out.json"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_interrupt(self):
        """A trace of 60 MB in one file takes long enough to be interrupted; a second SIGINT would kill."""
        row = b'{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":1,"dur":1},\n'
        big = self.path("big.json", b'{"traceEvents":[' + row * 800_000 + row[:-2] + b"]}")
        running = subprocess.Popen([PROGRAM, "trace", "convert", big, self.path("out.json")], stderr=subprocess.PIPE)
        # Sent as soon as the file is open, so that the handler is in place.
        while running.poll() is None and big not in open_files(running.pid):
            pass
        running.send_signal(signal.SIGINT)
        running.communicate()
        self.assertEqual(running.returncode, 130)
        self.assertEqual(os.listdir(self.folder), ["big.json"])


def open_files(pid):
    folder = f"/proc/{pid}/fd"
    found = []
    try:
        for name in os.listdir(folder):
            found.append(os.path.realpath(os.path.join(folder, name)))
    except FileNotFoundError:
        pass
    return found


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
