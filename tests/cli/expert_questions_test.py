#!/usr/bin/env python3
"""Ten questions with the answer that an expert would give: the verdict, the first set-up, and what must not be there.
A first set-up of other edits must be as fast as the expert's by its own replay. The quick size asks those that take
seconds.

Usage: expert_questions_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import json
import os
import sys
import unittest

import fit_case

PROGRAM, ROOT = sys.argv[1:3]
fit_case.FitCase.program = PROGRAM
ON_CPU = {"model.optimizer_device": "cpu"}
RECOMPUTED = {"model.recompute": "full"}
SHARED = {"model.zero_stage": 3}
full_size = unittest.skipUnless(fit_case.FULL, "SPILLWAY_TEST_SIZE=full: minutes")


def bundled(name):
    return os.path.join(ROOT, "cli/scenarios", name)


def split(tensor, context, data):
    return {"model.tensor_parallel": tensor, "model.sequence_parallel": tensor > 1, "model.context_parallel": context,
            "model.data_parallel": data}


class ExpertQuestions(fit_case.FitCase):
    def numerics(self, answer):
        return [row for row in self.shown(answer) if row["group"] == "Changes the numerics"]

    def on_gpus_alone(self, answer):
        """Of the same training, what leaves the host and the drives alone."""
        return [row for row in self.shown(answer)
                if row["group"] == "Same training, in frameworks of today" and row["edits"].get("offload.technique") is None
                and row["edits"].get("model.optimizer_device", "gpu") == "gpu"]

    def test_8b_on_one_gpu(self):
        scenario = bundled("llama3-8b-8k-h100.json")
        given = self.run_of(scenario, {})
        self.assertEqual((given["verdict"], given["answer"]["why"]["kind"]), ("does not fit", "states"))
        self.assertAlmostEqual(self.gib_short(given), 78.8, delta=5)
        answer = self.fit(scenario)
        self.assertEqual(answer["answer"]["verdict"]["word"], "fits")
        first = self.shown(answer)[0]
        self.assert_has(first, optimizer_device="cpu")
        self.assert_as_fast_as(first, scenario, ON_CPU)
        # 8-bit Adam with all layers recomputed would take 1.11 s.
        other = self.numerics(answer)[0]
        self.assert_has(other, recompute="full")
        eight_bit = self.run_of(scenario, {"model.optimizer": "adamw_8bit", **RECOMPUTED, "model.loss": "fused"})
        self.assertLessEqual(other["step_time_ns"], 1.001 * eight_bit["step_time_ns"])
        self.assert_no_word(answer, "ZeRO")  # one GPU shares nothing out

    def test_gpt2_xl_in_one_batch(self):
        scenario = bundled("gpt2-xl-32-h100.json")
        given = self.run_of(scenario, {})
        self.assertEqual((given["verdict"], given["answer"]["why"]["kind"]), ("does not fit", "activations"))
        self.assertAlmostEqual(self.gib_short(given), 40.3, delta=5)
        answer = self.fit(scenario)
        first = self.shown(answer)[0]
        self.assert_has(first, micro_batch=16)
        self.assertIn("accumulate 2", first["name"])
        self.assert_as_fast_as(first, scenario, {"model.micro_batch": 16, "model.global_batch": 32, "model.loss": "fused"})
        self.assert_no_word(answer, "SSD")  # where host memory does, none of them moves anything more

    def test_gpt3_on_128_gpus_gets_faster(self):
        scenario = bundled("gpt3-175b-128xa100.json")
        given = self.run_of(scenario, {})
        self.assertEqual(given["verdict"], "fits")
        answer = self.fit(scenario)
        first = self.shown(answer)[0]
        self.assertNotIn("hronos", first["name"])
        interleaved = {"model.pipeline_schedule": "interleaved", "model.pipeline_chunks": 2}
        for recipe in (interleaved, {"model.flash_attention": True}):
            self.assert_as_fast_as(first, scenario, recipe)
        self.assertLess(first["step_time_ns"], 0.99 * given["step_time_ns"])

    def test_a_snapshot_names_the_line(self):
        page = self.path("answer.json")
        self.ask("explain", os.path.join(ROOT, "traces/data/ran-out/snapshot.pickle"), "--output", page)
        with open(page, encoding="utf-8") as file:
            answer = json.load(file)
        self.assertTrue(answer["verdict"]["heading"].startswith("✖ Ran out: loss.py:9 "), answer["verdict"])
        self.assertTrue(answer["why"]["sentence"].startswith("train.py:64 build holds the most"), answer["why"])
        self.assertEqual(answer["ways"][0]["name"], "Expandable segments")
        fits = [way["figures"]["verdict"] == "fits" for way in answer["ways"]]
        self.assertEqual(fits, sorted(fits, reverse=True))  # what saves nothing stands behind

    @full_size
    def test_70b_on_8_gpus(self):
        answer = self.fit("llama-3-70b", "--on", "8xh100")
        self.assertEqual(answer["answer"]["verdict"]["word"], "fits")
        base = self.base("llama-3-70b", "8xh100", 8192, 64, 8)
        first = self.shown(answer)[0]
        self.assert_has(first, tensor_parallel=4, context_parallel=2, zero_stage=3, optimizer_device="cpu")
        self.assert_as_fast_as(first, base, {**split(4, 2, 1), **SHARED, **ON_CPU})

    @full_size
    def test_70b_on_8_gpus_in_deepspeed(self):
        answer = self.fit("llama-3-70b", "--on", "8xh100", "--for", "deepspeed")
        base = self.base("llama-3-70b", "8xh100", 8192, 64, 8, framework="deepspeed")
        first = self.shown(answer)[0]
        self.assert_has(first, zero_stage=3, recompute="full", optimizer_device="cpu")
        for micro_batch in (1, 2):
            recipe = {**SHARED, **RECOMPUTED, **ON_CPU, "model.micro_batch": micro_batch}
            expert = self.run_of(base, recipe)
            self.assertEqual(expert["verdict"], "fits")
            self.assertLessEqual(first["step_time_ns"], 1.001 * expert["step_time_ns"])

    @full_size
    def test_70b_on_16_gpus(self):
        answer = self.fit("llama-3-70b", "--on", "16xh100")
        base = self.base("llama-3-70b", "16xh100", 8192, 64, 16)
        first = self.shown(answer)[0]
        self.assert_has(first, tensor_parallel=2, context_parallel=2, zero_stage=3, optimizer_device="cpu")
        self.assert_as_fast_as(first, base, {**split(2, 2, 4), **SHARED, **ON_CPU, **RECOMPUTED,
                                             "model.recompute_layers": 16})
        # Beside it what leaves the host alone.
        expert = self.run_of(base, {**split(2, 2, 4), **SHARED, **RECOMPUTED})
        alone = self.on_gpus_alone(answer)
        self.assertTrue(alone, "all have the optimizer on the CPU")
        self.assertLessEqual(alone[0]["step_time_ns"], 1.002 * expert["step_time_ns"])

    @full_size
    def test_long_sequences_on_4_gpus(self):
        answer = self.fit("llama-3-8b", "--on", "4xh100", "--sequence", "32768")
        base = self.base("llama-3-8b", "4xh100", 32768, 16, 4)
        recipe = {**split(1, 4, 1), **SHARED, **RECOMPUTED, "model.recompute_layers": 4, "model.loss": "fused"}
        self.assert_as_fast_as(self.shown(answer)[0], base, recipe)
        alone = self.on_gpus_alone(answer)[0]
        self.assert_has(alone, context_parallel=4, zero_stage=3, recompute="full")
        self.assertLessEqual(alone["step_time_ns"], 1.001 * self.run_of(base, recipe)["step_time_ns"])
        for row in self.shown(answer):
            self.assertNotEqual(row["runs_in"], "simulation", row["name"])  # planned addresses

    @full_size
    def test_longest_sequences_on_8_gpus(self):
        answer = self.fit("llama-3-8b", "--on", "8xh100", "--sequence", "131072", "--global-batch", "4")
        base = self.base("llama-3-8b", "8xh100", 131072, 4, 8)
        rows = self.shown(answer)
        self.assert_as_fast_as(rows[0], base, {**split(1, 8, 1), **SHARED, **RECOMPUTED, "model.recompute_layers": 16,
                                                "model.loss": "fused"})
        alone = self.on_gpus_alone(answer)[0]
        self.assert_has(alone, context_parallel=8, recompute="full")
        planned = [row for row in rows if row["group"].endswith("spillway.torch")]
        self.assertTrue(planned)
        expert = self.run_of(base, {**split(1, 2, 4), "model.zero_stage": 2, "model.loss": "fused",
                                    "offload.technique": "checkpoints", "offload.tier": "host"})
        self.assertEqual(expert["verdict"], "fits")
        self.assertLessEqual(min(row["step_time_ns"] for row in planned), 1.001 * expert["step_time_ns"])
        self.assertNotIn("SSD", rows[0]["name"])

    @full_size
    def test_7b_on_two_small_gpus(self):
        answer = self.fit("qwen2.5-7b", "--on", "2xrtx4090+ram=256GiB")
        self.assertEqual(answer["answer"]["verdict"]["word"], "fits")
        first = self.shown(answer)[0]
        self.assert_has(first, optimizer_device="cpu")
        self.assertTrue(first["edits"].get("model.tensor_parallel") == 2 or first["edits"].get("model.zero_stage", 0) > 0)
        self.assertGreaterEqual(answer["answer"]["ways"][0]["figures"]["limit_bytes"] - first["peak_reserved_bytes"],
                                1 << 29)
        self.assert_no_word(answer, "GMLake|stitched")

    @full_size
    def test_70b_on_one_gpu_does_not_fit(self):
        answer = self.fit("llama-3-70b", "--on", "1xh100", codes=(1,))
        self.assertEqual(answer["answer"]["verdict"]["word"], "does not fit")
        self.assertEqual(answer["answer"]["search"]["state"], "finished")
        for row in self.shown(answer):
            self.assertFalse(row["fits"], row["name"])  # states that are streamed from SSDs are no answer
        adapters = {other["training"]: other for other in answer["other_trainings"]}
        self.assertEqual(adapters["QLoRA"]["verdict"], "fits")
        self.assertEqual(adapters["QLoRA"]["edits"].get("model.recompute"), "full")
        more = answer["other_machine"]
        self.assertTrue(more["machine"].endswith("h100-sxm5-80gb") and more["verdict"] == "fits", more["machine"])
        # The least number: on half of them none is found, by all that the search may take.
        half = self.fit("llama-3-70b", "--on", f"{more['gpus'] // 2}xh100", codes=(1, 4))
        self.assertIn(half["answer"]["verdict"]["word"], ("does not fit", "unknown"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
