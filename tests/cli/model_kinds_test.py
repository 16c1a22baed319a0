#!/usr/bin/env python3
"""Layers of each kind under each way of training: a step is replayed, and `run` and `techniques` say the same of it.

    model_kinds_test.py SPILLWAY SOURCE_ROOT
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# Published configurations, and so many of their layers that each kind is among them.
KINDS = {"nemotron-3-nano-30b-a3b": 7, "granite-4.0-h-tiny": 7, "falcon-h1-0.5b": 3, "lfm2-8b-a1b": 5, "gemma-4-26b-a4b": 6,
         "gemma-4-e2b": 20,
         "step-3.5-flash": 5, "mimo-v2-flash": 6, "kimi-linear-48b-a3b": 5, "apertus-8b": 3, "mamba-codestral-7b": 3,
         "jamba-52b": 6, "deepseek-v4-flash": 5, "minimax-m3": 5, "deepseek-v3.2": 4, "longcat-flash": 2, "gemma-3-4b": 6,
         "minimax-text-01": 8, "qwen3-vl-8b": 6}
# Of towers that run.
IMAGES = {"gemma-3-4b": {"images": 2}, "qwen3-vl-8b": {"images": 2, "image_tokens": 64, "train_tower": "whole"}}
ONE = ["data_parallel=1"]
WAYS = {"full": ["recompute=full", *ONE], "zero 3": ["zero_stage=3", "data_parallel=8"],
        "tensor 2": ["tensor_parallel=2", "sequence_parallel=true", *ONE],
        "megatron": ["framework=megatron", "tensor_parallel=2", "zero_stage=1", "data_parallel=2"],
        "pipeline 2": ["pipeline_parallel=2", "gradient_accumulation=4", *ONE],
        "zb-h1": ["pipeline_parallel=2", "pipeline_schedule=zb-h1", "gradient_accumulation=4", *ONE],
        "experts 2": ["expert_parallel=2", "data_parallel=2"], "lora": ["trainable=lora", *ONE],
        "fp8": ["precision=fp8_mixed", *ONE], "unfused": ["fused_kernels=false", "flash_attention=false", *ONE],
        "operators": ["recompute=operators", *ONE],
        "ppo": ["loss=group", "value_model=same", "reward_model=same", "reference=model", "rollout_memory=0.3",
                "rollout_group=1", "prompt_tokens=256", "framework=huggingface", *ONE],
        "ppo 2": ["loss=group", "value_model=same", "framework=huggingface", "pipeline_parallel=2",
                  "gradient_accumulation=4", *ONE],
        "pairs": ["loss=preference", "reference=model", "framework=huggingface", "micro_batch=2", *ONE],
        "pairs 2": ["loss=preference", "reference=model", "framework=huggingface", "micro_batch=2", "pipeline_parallel=2",
                    "gradient_accumulation=4", *ONE]}
TECHNIQUES = {"ssdtrain-host": ["offload.technique=ssdtrain", "offload.tier=host"],
              "checkpoints-host": ["offload.technique=checkpoints", "offload.tier=host"],
              "full": ["model.recompute=full"]}
# Mamba-2's states go from token to token, and so do convolutions; one group of heads can't be split.
# Gemma 4's small models have one key head, inputs of all layers in the first, and keys that later layers share. The first
# Mamba's bottleneck sums over all channels; compressed attention has one key head and its own kernel; lightning attention
# has one norm over all heads.
UNSPLIT = ("granite-4.0-h-tiny", "falcon-h1-0.5b", "gemma-4-e2b", "jamba-52b", "deepseek-v4-flash", "minimax-text-01")
REFUSED = {"tensor 2": UNSPLIT, "megatron": UNSPLIT, "unfused": ("deepseek-v4-flash",),
           "pipeline 2": ("gemma-4-e2b",), "zb-h1": ("gemma-4-e2b",), "pairs 2": ("gemma-4-e2b",), "ppo 2": ("gemma-4-e2b",),
           "experts 2": ("falcon-h1-0.5b", "apertus-8b", "mamba-codestral-7b", "gemma-4-e2b", "gemma-3-4b",
                         "qwen3-vl-8b"), "lora": ("qwen3-vl-8b",)}


def spillway(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False)


def sets(keys):
    return [word for key in keys for word in ("--set", key)]


class Kinds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def scenario(self, kind):
        path = os.path.join(self.folder, kind + ".json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "dgx-h100"},
                       "model": {"name": os.path.join(ROOT, "tests", "models", "configs", kind + ".json"),
                                 "sequence": 1024, "micro_batch": 1, "layers": KINDS[kind], **IMAGES.get(kind, {})}}, out)
        return path

    def test_each_kind_is_trained_in_each_way(self):
        scenarios = {kind: self.scenario(kind) for kind in KINDS}

        def verdict(job):
            kind, way = job
            return spillway("run", scenarios[kind], *sets("model." + key for key in WAYS[way]), "--format", "json")

        jobs = [(kind, way) for kind in KINDS for way in WAYS]
        with ThreadPoolExecutor() as pool:
            for (kind, way), result in zip(jobs, pool.map(verdict, jobs)):
                with self.subTest(kind=kind, way=way):
                    if kind in REFUSED.get(way, ()):
                        self.assertEqual(result.returncode, 2)
                        self.assertRegex(result.stderr, "has|does not divide|beside adapters")
                        continue
                    self.assertIn(result.returncode, (0, 1), result.stderr)  # or doesn't fit
                    self.assertGreater(json.loads(result.stdout)["peak_allocated_bytes"], 0)

    def test_a_ring_is_refused_by_what_it_would_need(self):
        for kind, words in (("nemotron-3-nano-30b-a3b", "Mamba"), ("lfm2-8b-a1b", "short convolutions"),
                            ("step-3.5-flash", "an attention window")):
            result = spillway("run", self.scenario(kind), *sets(["model.context_parallel=2", "model.data_parallel=1"]))
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)

    def test_run_and_techniques_agree(self):
        for kind in KINDS:
            path = self.scenario(kind)
            names = [word for name in TECHNIQUES for word in ("--technique", name)]
            answer = spillway("techniques", path, *names, *sets(["model.data_parallel=1"]), "--format", "json")
            self.assertIn(answer.returncode, (0, 1), answer.stderr)
            rows = {row["name"]: row for row in json.loads(answer.stdout)["rows"]}
            for name, keys in TECHNIQUES.items():
                with self.subTest(kind=kind, technique=name):
                    alone = spillway("run", path, *sets(["model.data_parallel=1", *keys]), "--format", "json")
                    self.assertIn(alone.returncode, (0, 1), alone.stderr)
                    step = json.loads(alone.stdout)
                    for key in ("step_time_ns", "peak_allocated_bytes", "fits"):
                        self.assertEqual(rows[name][key], step[key], key)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
