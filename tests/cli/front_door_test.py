#!/usr/bin/env python3
"""What a person types first: names of models, in every command; files of another kind than a command takes; nothing.

    front_door_test.py SPILLWAY
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
CONFIG = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "scale": float("inf"),
          "text_config": {"model_type": "gemma3_text", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
                          "vocab_size": 32000, "sliding_window": 256},
          "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "image_size": 896,
                            "patch_size": 14, "num_attention_heads": 16}}
# 27 layers of 4 h + 4 h^2 + 4 h + 2 h f + f + h; patches, positions, a norm; a norm and a product into the text.
TOWER = 27 * 15239504 + (588 + 1) * 1152 + 4096 * 1152 + 2 * 1152 + 1152 + 1152 * 512


def spillway(*arguments, cwd=None):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False, cwd=cwd)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.mkdir(self.path("model"))
        self.write("model/config.json", json.dumps(CONFIG))

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)

    def done(self, *arguments, rc=0, **more):
        result = spillway(*arguments, **more)
        self.assertEqual(result.returncode, rc, result.stderr)
        return result



class OldNames(Files):
    def test_old_options_are_the_new_ones(self):
        step = self.done("new", "gpt2-small", "a10").stdout
        step = self.write("step.json", step)
        for old, new, arguments in (("--reserve", "--keep-free", ("run", step, "{}", "3GiB")),
                                    ("--reserve", "--keep-free", ("run", step, "{}=8%")),
                                    ("--same-maths", "--keep-numerics", ("fit", step, "{}", "--replays", "1"))):
            def asked(name, *more, arguments=arguments):
                result = spillway(*(word.format(name) for word in arguments), *more)
                self.assertIn(result.returncode, (0, 1, 4), result.stderr)
                return result

            self.assertEqual(asked(old).stdout, asked(new).stdout)
            self.assertIn(f"note: {old} is now {new}\n", asked(old).stderr)
            self.assertNotIn("note:", asked(new).stderr)
            self.assertNotIn("note:", asked(old, "--quiet").stderr)
            self.assertNotIn(old, self.done(arguments[0], "--help").stdout)


class Models(Files):
    def scenario(self, model):
        return {"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "h100-80gb-1gpu"},
                "model": {"name": model, "sequence": 256}}

    def step(self, *arguments, **more):
        return json.loads(self.done("run", *arguments, "--format", "json", **more).stdout)["step_time_ns"]

    # One spelling everywhere: each gives the step of the bundled name.
    def test_names_are_alike_in_every_command(self):
        known = self.write("a.json", json.dumps(self.scenario("qwen2.5-0.5b")))
        wanted = self.step(known)
        for name in ("Qwen2.5-0.5B", "qwen-2.5_0.5b", "Qwen/Qwen2.5-Coder-0.5B-Instruct", "hf:Qwen/Qwen2-0.5B"):
            self.assertEqual(self.step(self.write("b.json", json.dumps(self.scenario(name))), cwd="/"), wanted, name)
            self.assertEqual(self.step(known, "--set", "model.name=" + name), wanted, name)
            new = self.done("new", name, "h100-80gb-1gpu").stdout
            self.assertIn(f'"name": "{name}"', new)
            self.done("fit", name, "--on", "h100-80gb-1gpu", "--sequence", "256", "--global-batch", "1", "--budget", "1000")
        sweep = self.write("sweep.json", json.dumps({
            "schema": "spillway-sweep", "version": 1, "objectives": ["step_time"],
            "base": {"hardware": {"profile": "h100-80gb-1gpu"}, "model": {"name": "qwen2.5-0.5b", "sequence": 256}},
            "axes": [{"name": "model", "key": "model.name", "values": ["Qwen/Qwen2-0.5B", "qwen2.5-0.5b"]}]}))
        rows = json.loads(self.done("sweep", sweep, "--format", "json").stdout)["rows"]
        self.assertEqual({row["step_time_ns"] for row in rows}, {wanted})

    def test_imports_say_what_an_id_stands_for(self):
        launch = self.write("run.sh", "python train.py --model_name_or_path mistralai/Mistral-7B-Instruct-v0.3 --bf16 true "
                                      "--per_device_train_batch_size 1 --output_dir x --max_steps 3\n")
        made = json.loads(self.done("import", launch, "--format", "json").stdout)
        self.assertEqual(made["model"]["alias"], {"id": "mistralai/Mistral-7B-Instruct-v0.3", "shape": "mistral-7b",
                                                  "overrides": ["vocabulary=32768", "attention_window=0"]})
        self.assertEqual(made["scenario"]["model"]["name"], "mistralai/Mistral-7B-Instruct-v0.3")
        other = json.loads(self.done("import", launch, "--model", "Qwen/QwQ-32B", "--format", "json").stdout)
        self.assertEqual(other["model"]["alias"], {"id": "Qwen/QwQ-32B", "shape": "qwen2.5-32b", "overrides": []})
        self.assertEqual(other["scenario"]["model"]["name"], "Qwen/QwQ-32B")

    # A configuration of several parts, with an endless number, by its folder; the tower's weights are held.
    def test_a_folder_is_a_model(self):
        for name in (self.path("model"), self.path("model", "config.json")):
            done = self.done("run", self.write("a.json", json.dumps(self.scenario(name))), "--format", "json")
            result = json.loads(done.stdout)
            self.assertIn("text only: the vision tower's 0.42 B parameters are held and not run", result["warnings"])
            tower = [part for part in result["reserve"]["parts"] if part["name"] == "vision tower"]
            self.assertEqual(tower[0]["bytes"], 2 * TOWER)
            images = json.loads(self.done("run", self.path("a.json"), "--set", "model.images=1", "--format", "json").stdout)
            self.assertFalse([part for part in images["reserve"]["parts"] if part["name"] == "vision tower"])
            self.assertFalse([line for line in images["warnings"] if "tower" in line])
            self.assertGreater(images["peak_allocated_bytes"], result["peak_allocated_bytes"] + 2 * TOWER)
            self.assertGreater(images["step_time_ns"], result["step_time_ns"])
            self.assertTrue(0 < images["mfu"] < 1)
        self.done("fit", "model", "--on", "h100-80gb-1gpu", "--sequence", "256", "--global-batch", "1", "--budget", "1000",
                  cwd=self.folder.name)
        launch = self.write("run.sh", "python train.py --model_name_or_path ./model --bf16 true --max_steps 3 "
                                      "--per_device_train_batch_size 1 --output_dir x\n")
        made = json.loads(self.done("import", launch, "--model", "./model", "--format", "json", cwd=self.folder.name).stdout)
        self.assertEqual(made["scenario"]["model"]["name"], os.path.realpath(self.path("model")))

    def test_ids_are_listed_with_their_counts(self):
        items = {item["name"]: item for item in
                 json.loads(self.done("list", "models", "--all", "--format", "json").stdout)["items"]}
        self.assertEqual(items["codellama/CodeLlama-7b-hf"]["parameters"], 6738546688)
        self.assertEqual(items["codellama/CodeLlama-7b-hf"]["alias"]["overrides"], ["vocabulary=32016"])
        self.assertNotIn("alias", items["llama-2-7b"])

    # One message, whatever the command.
    def test_unknown_ids_say_how_to_go_on(self):
        said = set()
        for command in (("fit", "acme/thing", "--on", "8xh100"), ("new", "acme/thing"), ("run", "acme/thing"),
                        ("explain", "acme/thing"), ("techniques", "acme/thing"), ("capacity", "acme/thing"),
                        ("plan", "offload", "acme/thing"), ("export", "acme/thing", "--for", "megatron")):
            said.add(" ".join(self.done(*command, rc=2).stderr.split()))
        self.assertEqual(len(said), 1, said)
        self.assertIn("huggingface-cli download acme/thing config.json", said.pop())

    def test_words_that_are_nothing_are_said_alike(self):
        for word in ("lama-3-8b", "no/such/file.json", "nothing.json"):
            said = {" ".join(self.done(*command, rc=2).stderr.split())
                    for command in (("run", word), ("explain", word), ("fit", word, "--on", "8xh100"))}
            self.assertEqual(len(said), 1, said)
        self.assertIn("did you mean llama-3-8b", self.done("run", "lama-3-8b", rc=2).stderr)


SCENARIO = {"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 128},
            "hardware": {"profile": "h100-80gb-1gpu"}}
LAUNCH = "is a launch script or configuration"
# Name, content, what it is called, what is to be typed instead; commands that take it.
KINDS = [
    ("launch.sh", "#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers 2\n", LAUNCH, "spillway import FILE", ("import", "fit")),
    ("titan.toml", '[model]\nname = "llama3"\nflavor = "8B"\n', LAUNCH, "spillway import FILE", ("import", "fit")),
    ("args.yaml", "model_name_or_path: gpt2\nbf16: true\n", LAUNCH, "spillway import FILE", ("import", "fit")),
    ("ds.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', LAUNCH, "spillway import FILE", ("import", "fit")),
    ("train.py", "import torch\nmodel = build()\n", LAUNCH, "spillway import FILE", ("import", "fit")),
    ("a.json", json.dumps(SCENARIO), "is a scenario", "spillway run FILE", ("run", "explain", "export", "fit", "capacity")),
    ("sweep.json", json.dumps({"schema": "spillway-sweep", "version": 1, "base": SCENARIO}), "is a sweep", "spillway sweep FILE",
     ("sweep",)),
    ("config.json", json.dumps(CONFIG), "is a model", "spillway fit FILE --on", ("fit", "new")),
    ("folder/config.json", json.dumps(CONFIG), "is a model", "spillway fit FILE --on", ("fit", "new")),
    ("gpu.json", '{"schema": "spillway-hardware-profile/1"}', "is a hardware profile", "--on FILE", ("new",)),
    ("answer.json", '{"schema": "spillway-result", "version": 1}', "is an answer", "the scenario", ()),
    ("snap.pickle", b"\x80\x04\x95segments", "is a memory snapshot", "spillway explain FILE", ("run", "explain", "memory", "fit",
                                                                                              "capacity")),
    ("trace.json", '{"traceEvents": []}', "is a trace", "spillway run FILE", ("run", "explain", "memory", "fit", "capacity")),
    ("w.gguf", b"GGUF\x03\x00\x00\x00", "is a file of weights", "config.json", ()),
    ("w.safetensors", b"\x40\x00\x00\x00\x00\x00\x00\x00{\"a\": {\"dtype\": \"BF16\"}}", "is a file of weights", "config.json", ()),
    ("w.index.json", '{"metadata": {}, "weight_map": {}}', "is a file of weights", "config.json", ()),
    ("empty.json", b"\n", "is empty", "has ended well", ()),
    ("n.ipynb", '{"cells": [{"cell_type": "code"}], "nbformat": 4}', "is a notebook", "jupyter nbconvert", ()),
]
COMMANDS = {"run": (), "explain": (), "memory": (), "capacity": (), "sweep": (), "import": (), "export": ("--for", "megatron"),
            "fit": ("--on", "8xh100"), "new": ()}


class WrongFiles(Files):
    def test_every_command_says_what_a_file_is_and_what_to_type(self):
        os.mkdir(self.path("folder"))
        for name, content, called, remedy, takes in KINDS:
            with open(self.path(name), "wb") as out:
                out.write(content if isinstance(content, bytes) else content.encode())
            file = self.path("folder") if name.startswith("folder") else self.path(name)
            for command, more in COMMANDS.items():
                if command in takes:
                    continue
                said = self.done(command, file, *more, rc=2).stderr
                self.assertIn(f"{file}: {called}; spillway {command} takes ", said)
                self.assertIn(remedy.replace("FILE", file), said)

    def test_what_is_taken_is_not_called_wrong(self):
        for name, content, called, _, takes in KINDS:
            if name.startswith("folder"):
                continue
            with open(self.path(name), "wb") as out:
                out.write(content if isinstance(content, bytes) else content.encode())
            for command in set(takes) & {"run", "export", "import", "new"}:
                self.assertNotIn(called, spillway(command, self.path(name), *COMMANDS[command]).stderr)

    def test_a_model_that_is_nearly_named_is_offered(self):
        for words in (("run", "llama3"), ("fit", "llama3", "--on", "8xh100"), ("new", "llama3", "8xh100")):
            self.assertRegex(self.done(*words, rc=2).stderr, r"did you mean llama-3[^\n]*\?")
        self.assertLess(len(self.done("new", "nosuchthing", "8xh100", rc=2).stderr), 200)

    def test_a_model_by_name_is_no_step(self):
        said = self.done("run", "Qwen/Qwen3-8B", rc=2).stderr
        self.assertIn("Qwen/Qwen3-8B: is a model; spillway run takes a scenario or a trace", said)
        self.assertIn("spillway fit Qwen/Qwen3-8B --on 8xh100", said)

    def test_a_launch_is_fitted(self):
        launch = self.write("a.yaml", "model_name_or_path: gpt2\nbf16: true\nper_device_train_batch_size: 1\noutput_dir: x\n")
        done = self.done("fit", launch, "--on", "h100-80gb-1gpu", "--sequence", "128", "--budget", "1000", "--format", "json")
        self.assertTrue(json.loads(done.stdout)["ways"][0]["fits"])

    def test_a_key_may_leave_out_its_section(self):
        scenario = self.write("a.json", json.dumps(SCENARIO))
        done = self.done("run", scenario, "--set", "micro_batch=2")
        self.assertIn("with model.micro_batch=2", done.stdout)
        said = self.done("run", scenario, "--set", "technique=none", rc=2).stderr
        self.assertIn("offload.technique, order.technique", said)
        self.assertIn("did you mean", self.done("run", scenario, "--set", "model.micro_bach=2", rc=2).stderr)


class Start(unittest.TestCase):
    def test_nothing_shows_where_to_begin(self):
        shown = [spillway(), spillway("help")]
        self.assertEqual({(each.returncode, each.stdout) for each in shown}, {(0, shown[0].stdout)})
        self.assertTrue(all(len(line) <= 80 for line in shown[0].stdout.splitlines()))
        begins = [line.split()[1] for line in shown[0].stdout.splitlines() if line.startswith("  spillway ")]
        self.assertEqual(len(begins), 5)
        for command in begins:
            self.assertEqual(spillway("help", command).stdout, spillway(command, "--help").stdout)

    def test_lists_are_listed(self):
        names = {item["name"] for item in json.loads(spillway("list", "--format", "json").stdout)["items"]}
        self.assertTrue({"models", "machines", "techniques"} <= names)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
