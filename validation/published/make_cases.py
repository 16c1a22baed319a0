#!/usr/bin/env python3
"""Writes the case files of this folder from tables of published measurements.

Usage: make_cases.py DATA [OUTPUT]
  DATA    folder with published/pipeline.csv, offload.csv and stalloc.csv, throughput/llm-foundry.csv, ops/cudnn-frontend/
  OUTPUT  folder to write to (default: this one)

Every row of the tables becomes a case: simulated, or skipped with the reason. How a row's words map to a set-up is
stated here, once for each source; nothing is chosen row by row. Rows of one table that are the same measurement in
other units are skipped as such.
"""
import csv
import hashlib
import json
import os
import statistics
import sys


def write(files, held_to, output):
    """Case files by name, with what groups are held to, by file."""
    for name, cases in files.items():
        cases.held_to = held_to.get(name, [])
        with open(os.path.join(output, name + ".json"), "w", encoding="utf-8") as out:
            out.write(cases.document())
        print(f"{name}: {len(cases.cases)} cases, {sum('skip' in case for case in cases.cases)} skipped")


def gpt(layers, hidden, heads, positions, vocabulary=51200):
    """GPT-2's architecture as Megatron-LM trains it: vocabulary padded, dropout 0.1."""
    return {
        "schema": "spillway.model", "version": 1, "title": f"GPT, {layers} layers of {hidden}",
        "source": "the shape as published", "layers": layers, "hidden": hidden, "heads": heads,
        "feed_forward": 4 * hidden, "vocabulary": vocabulary, "max_positions": positions, "mask": "causal",
        "norm": "layer_norm", "norm_placement": "pre", "activation": "gelu", "positions": "learned",
        "fused_qkv": True, "qkv_bias": True, "output_bias": True, "feed_forward_bias": True,
        "tied_embeddings": True, "dropout": 0.1,
    }


def setup_of(row):
    """The words of a row's set-up: 'h=1024;l=24' to {'h': '1024', 'l': '24'}."""
    return dict((part.split("=", 1) + [""])[:2] for part in row["setup"].split(";"))


class CaseFile:
    """One case file. Columns are found from the cases: what all share goes to `common`."""

    def __init__(self, title, note, tolerance=None):
        self.title, self.note, self.tolerance = title, note, tolerance
        self.models, self.cases, self.ids, self.held_to = {}, [], {}, []

    def model(self, layers, hidden, heads, positions, vocabulary=51200):
        name = f"gpt-{layers}x{hidden}-{positions}"
        self.models[name] = gpt(layers, hidden, heads, positions, vocabulary)
        return name

    def add(self, identity, **fields):
        """Keys of a scenario come with '__' for '.'; an identity that was there before gets a number."""
        self.ids[identity] = self.ids.get(identity, 0) + 1
        if self.ids[identity] > 1:
            identity += f"-{self.ids[identity]}"
        self.cases.append({"id": identity, **{key.replace("__", "."): value for key, value in fields.items()}})

    def document(self):
        common = {}
        for key in self.cases[0]:
            values = [case.get(key) for case in self.cases]
            if key not in ("id", "skip", "note") and all(value == values[0] for value in values):
                common[key] = values[0]
        columns = []
        for case in self.cases:
            columns += [key for key in case if key not in common and key not in columns and key not in ("skip", "note")]
        plain = [case for case in self.cases if "skip" not in case and "note" not in case]
        others = [{key: value for key, value in case.items() if key not in common}
                  for case in self.cases if "skip" in case or "note" in case]
        head = {"schema": "spillway-cases", "version": 1, "title": self.title, "note": self.note}
        if self.tolerance:
            head["tolerance"] = self.tolerance
        parts = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        if self.held_to:
            parts.append('  "held_to": [\n' + ",\n".join("    " + json.dumps(group) for group in self.held_to) + "\n  ]")
        if self.models:
            parts.append('  "models": {\n' + ",\n".join(
                f"    {json.dumps(name)}: {json.dumps(model)}" for name, model in self.models.items()) + "\n  }")
        parts.append(f'  "common": {json.dumps(common)}')
        if plain:
            parts.append(f'  "columns": {json.dumps(columns)}')
            parts.append('  "rows": [\n' + ",\n".join(
                "    " + json.dumps([case.get(key) for key in columns]) for case in plain) + "\n  ]")
        if others:
            parts.append('  "cases": [\n' + ",\n".join("    " + json.dumps(case) for case in others) + "\n  ]")
        return "{\n" + ",\n".join(parts) + "\n}\n"


# Megatron-LM before FlashAttention: fused scale-mask-softmax, bias-GELU and bias-dropout-add kernels, fp16 with fp32
# main gradients, Adam by one multi-tensor kernel.
MEGATRON = {"model__framework": "megatron_2022", "model__precision": "fp16_mixed", "model__flash_attention": False,
            "model__optimizer": "adam", "model__optimizer_form": "fused", "model__overlap_gradients": False}


# The same before September 2021: forwards and backwards are timed by waiting for the device, input gradients' all-reduces are waited for, weight gradients are 16 bits wide and
# added up by kernels of their own. As SC'21 ran it, and in Megatron-DeepSpeed until July 2023.
MEGATRON_2021 = {**MEGATRON, "model__framework": "megatron_2021", "model__phase_timers": True}


def number(text):
    return int(text.split()[0])


def role_by_hash(identity):
    """A fifth of the cases may be used in fits: those whose name's hash ends so."""
    return "fit" if int(hashlib.sha256(identity.encode()).hexdigest(), 16) % 5 == 0 else "validation"


def vtrain(rows, table, title, source, hardware, tolerance, has_fit):
    cases = CaseFile(title,
                     "VIA-Research/vTrain (MIT licence), data/" + table + ": Megatron-DeepSpeed on A100 machines of 8. "
                     "Full recomputation and 1F1B, as in the repository's own validation configurations; vocabulary "
                     "51,200; the GPU's memory size, fused kernels and the optimizer's sharding are not stated: "
                     "Megatron's defaults are taken."
                     + (" Role fit: a fifth, by SHA-256 of the id." if has_fit else ""), tolerance)
    for row in rows:
        if row["table_or_figure"] != "data/" + table:
            continue
        s = setup_of(row)
        identity = "h{h}-l{l}-t{tp}-p{pp}-d{dp}-b{mbs}-g{gbs}".format(**s)
        cases.add(identity, source=source, metric="iteration_time", unit="ms", value=float(row["value"]),
                  confidence=row["confidence"], role=role_by_hash(identity) if has_fit else "validation",
                  hardware__profile=hardware,
                  model__name=cases.model(number(s["l"]), number(s["h"]), number(s["a"]), number(s["s"])),
                  **MEGATRON_2021, model__recompute="full", model__global_batch=number(s["gbs"]),
                  model__micro_batch=number(s["mbs"]), model__tensor_parallel=number(s["tp"]),
                  model__pipeline_parallel=number(s["pp"]), model__data_parallel=number(s["dp"]))
    return cases


def narayanan_seconds(s, tflops):
    """Iteration time from TFLOP/s per GPU by the paper's equation 3."""
    b, seq, l, h, v = (number(s[key]) for key in ("gbs", "s", "l", "h", "vocab"))
    flops = 96 * b * seq * l * h * h * (1 + seq / (6 * h) + v / (16 * l * h))
    return round(flops / (tflops * 1e12 * number(s["gpus"])), 4)


# Micro-batch and chunks of SC'21 Table 1 are not in the paper; Megatron-LM's examples/sc21/run_table_1.sh has them:
# parameters in billions -> (micro-batch, layers per chunk or 0).
SC21_TABLE_1 = {"1.7B": (16, 0), "3.6B": (16, 0), "7.5B": (16, 0), "18.4B": (8, 0), "39.1B": (4, 0), "76.1B": (2, 5),
                "145.6B": (2, 5), "310.1B": (1, 3), "529.6B": (1, 1), "1008.0B": (1, 0)}
SAME = "the same measurement as the iteration time of this set-up, in other units"


def narayanan(rows):
    cases = CaseFile("Narayanan et al., SC'21: Megatron-LM on DGX A100",
                     "arXiv:2104.04473. TFLOP/s per GPU are turned into iteration times by the paper's equation 3. "
                     "Table 1 does not state micro-batch and chunks: they are taken from Megatron-LM's "
                     "examples/sc21/run_table_1.sh.", {"median": 0.05, "p90": 0.10, "kendall": 0.93})
    for row in rows:
        if not row["source"].startswith("Narayanan"):
            continue
        s, table = setup_of(row), row["table_or_figure"]
        is_time = table in ("Table 1", "Table 2") and row["unit"] == "TFLOP/s"
        name = f"{table} {s.get('params', s.get('model', ''))} {s.get('gpus', '')} {s.get('scheme', '')[:6]}".strip()
        if table not in ("Table 1", "Table 2"):
            why = ("the layout over GPUs is not stated" if row["unit"] == "TFLOP/s" else
                   "no time or memory of a training step")
            cases.add(f"{name} {row['metric']}", **skipped(row, "SC'21 " + table, why))
            continue
        if not is_time:
            cases.add(f"{name} {row['unit']}", **skipped(row, "SC'21 " + table, SAME))
            continue
        is_zero = "ZeRO" in s.get("scheme", "")
        if is_zero:  # the shape is that of the same table's PTD-P rows
            s.update({"174.6B": {"h": "12288", "l": "96", "a": "96"},
                      "529.6B": {"h": "20480", "l": "105", "a": "128"}}[s["params"]], vocab="51200")
        micro_batch, per_chunk = SC21_TABLE_1[s["params"]] if table == "Table 1" else (number(s["mbs"]), 0)
        layers, stages = number(s["l"]), number(s["pp"])
        chunks = layers // stages // per_chunk if per_chunk else 1
        extra = {"model__pipeline_chunks": chunks} if chunks > 1 else {}
        if table == "Table 1" and stages == 1:  # run_table_1.sh: PyTorch's DDP, which overlaps
            extra["model__overlap_gradients"] = True
        if is_zero:
            extra["model__zero_stage"] = 3
            extra["model__prefetch"] = 0  # DeepSpeed's default of the time: overlap_comm off
        source = "SC'21 " + table + (" ZeRO-3" if is_zero else "")
        cases.add(name, source=source, metric="iteration_time", unit="s",
                  value=narayanan_seconds(s, float(row["value"])),
                  confidence="exact" if table == "Table 2" else "exact; micro-batch and chunks from the code",
                  hardware__profile="dgx-a100", model__name=cases.model(layers, number(s["h"]), number(s["a"]), 2048),
                  **{**MEGATRON_2021, **extra}, model__recompute="full", model__global_batch=number(s["gbs"]),
                  model__micro_batch=micro_batch, model__tensor_parallel=number(s["tp"]),
                  model__pipeline_parallel=stages, model__data_parallel=number(s["dp"]))
    return cases


def skipped(row, source, why):
    """A row that is listed, not run; the note keeps its figure."""
    return {"source": source, "confidence": row["confidence"],
            "skip": why, "note": f"{row['metric']}: {row['value']} {row['unit']}"}


def korthikanti_setup(cases, s):
    v = s.get("v", "1")
    return {"hardware__profile": "dgx-a100",
            "model__name": cases.model(number(s["l"]), number(s["h"]), number(s["a"]), 2048), **MEGATRON,
            "model__recompute": s["recompute"], "model__sequence_parallel": s["sequence_parallel"] == "1",
            "model__global_batch": number(s["gbs"]), "model__micro_batch": number(s["mbs"]),
            "model__tensor_parallel": number(s["tp"]), "model__pipeline_parallel": number(s["pp"]),
            "model__data_parallel": number(s["dp"]),
            **({"model__pipeline_chunks": int(v)} if v.isdigit() and int(v) > 1 else {})}


KORTHIKANTI_METRICS = {
    "iteration time": "iteration_time", "iteration time (no overlap of grad all-reduce)": "iteration_time",
    "forward time of one layer": "layer_forward_time",
    "backward time of one layer (incl. recompute)": "layer_backward_time",
    "forward+backward time of one layer": "layer_time",
    # Figure 1's bars are the paper's closed forms to the last digit read: layers alone, 18 bytes per parameter of 12 l
    # h^2 / (t p), and table 2's activations times 1 + (p - 1) / (p m).
    "parameters+optimizer memory per GPU": "layer_state_memory",
    "activation memory per GPU (first stage)": "layer_kept_memory",
}


def korthikanti(rows):
    cases = CaseFile("Korthikanti et al. 2022: recomputation and sequence parallelism on DGX A100",
                     "arXiv:2205.05198. Figure 7's percentages are of Figure 1's bar without recomputation.",
                     {"median": 0.05, "p90": 0.10, "kendall": 0.93})
    baseline = {setup_of(row)["model"]: float(row["value"]) for row in rows
                if row["table_or_figure"] == "Fig 1" and "activation" in row["metric"]
                and "recompute=none" in row["setup"]}
    for row in rows:
        if not row["source"].startswith("Korthikanti"):
            continue
        s, table = setup_of(row), row["table_or_figure"]
        name = f"{table} {s.get('model', s.get('configuration', s.get('schedule', '')))} {s.get('recompute', '')}" \
               f"{' sp' if s.get('sequence_parallel') == '1' else ''} {s.get('gpus', '')}"
        metric = KORTHIKANTI_METRICS.get(row["metric"])
        if table == "Fig 7":
            cases.add(name, source="Korthikanti " + table, metric="layer_kept_memory", unit="GiB",
                      value=round(float(row["value"]) / 100 * baseline[s["model"]], 3), confidence=row["confidence"],
                      **korthikanti_setup(cases, s))
        elif metric and "microbatch-level" not in s["recompute"]:
            cases.add(f"{name} {metric}", source="Korthikanti " + table, metric=metric, unit=row["unit"],
                      value=float(row["value"]), confidence=row["confidence"], **korthikanti_setup(cases, s))
        else:
            why = ("a formula: tested as one, not measured" if row["unit"] == "formula" else
                   "recomputation chosen micro-batch by micro-batch is not simulated"
                   if "microbatch-level" in s.get("recompute", "") else
                   SAME if row["metric"] in ("MFU", "HFU", "throughput increase over full recompute") else
                   "a difference or ratio of other rows")
            cases.add(f"{name} {row['metric']}", **skipped(row, "Korthikanti " + table, why))
    return cases


def zero_bubble(rows):
    cases = CaseFile("Qi et al.: Zero Bubble pipelines on A100",
                     "arXiv:2401.10241. Schedules ZB-* run without a barrier before the update, as there; the RoCE "
                     "network's rate is not "
                     "stated: 200 Gbit/s a GPU is assumed. GB is read as GiB. The vocabulary is not stated: 32,000, since "
                     "the parameter counts in the models' names leave 25,500 to 32,400 rows of a tied embedding.",
                     {"median": 0.07, "p90": 0.10, "kendall": 0.93})
    for row in rows:
        if "Zero Bubble" not in row["source"]:
            continue
        s, table = setup_of(row), row["table_or_figure"]
        source = "Zero Bubble " + table
        if table == "Table 5" or table == "Table 8":
            cases.add(f"{table} {len(cases.cases)}", **skipped(row, source, "a calculated bubble, not measured"))
            continue
        schedule = s["schedule"]
        name = f"{table} {s['model'].split()[-1]} p{s['pp']} b{s['mbs']} m{s['m']} {schedule}"
        # The first and last stage have a layer fewer than the others; interleaved chunks have one layer.
        chunks = (number(s["l"]) + 2) // number(s["pp"]) if schedule.startswith("1F1B-I") else 1
        runs = {"1F1B": "1f1b", "1F1B-I": "interleaved", "ZB-1p": "zb-1p", "ZB-2p": "zb-2p", "ZB-V": "zb-v"}
        metric = {"throughput": ("throughput", "samples/s/GPU"),
                  "peak memory": ("peak_allocated", "GiB")}.get(row["metric"])
        if metric is None:
            cases.add(f"{name} {row['metric']}", **skipped(row, source, "times of parts of a stage"))
            continue
        cases.add(f"{name} {metric[0]}", source=source, metric=metric[0], unit=metric[1], value=float(row["value"]),
                  confidence=row["confidence"], hardware__profile="dgx-a100",
                  model__name=cases.model(number(s["l"]), number(s["h"]), number(s["a"]), number(s["s"]), 32000), **MEGATRON,
                  model__gradient_accumulation=number(s["m"]), model__micro_batch=int(float(s["mbs"])),
                  model__pipeline_parallel=number(s["pp"]), model__pipeline_chunks=2 if schedule == "ZB-V" else chunks,
                  model__pipeline_schedule=runs[schedule.split()[0]],
                  # Only the zero-bubble schedules check the gradients' norm afterwards.
                  model__step_barrier=not schedule.startswith("ZB"))
    return cases


def remaining(rows):
    """Sources of pipeline.csv none of whose rows states a step that could be simulated."""
    cases = CaseFile("Other published figures", "Rows that state no set-up of a training step, or are calculated.")
    for row in rows:
        if row["source"].startswith(("Narayanan", "Korthikanti", "VIA-Research")) or "Zero Bubble" in row["source"]:
            continue
        why = ("micro-batch and chunks are not stated" if "Megatron-LM README" in row["source"] else
               "it states no set-up; an inferred one is in chronospipe.json" if "ChronosPipe" in row["source"] else
               "a formula or a ratio without a set-up" if row["unit"] in ("formula", "ratio") else
               "no complete set-up of a training step")
        cases.add(f"{row['table_or_figure']} {len(cases.cases)}", **skipped(row, row["source"], why))
    return cases


# llm-foundry's MPT with learned positions, as many as the row's sequence: n_params of the table comes out exactly.
FOUNDRY_SHAPES = {"125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16),
                  "3b": (32, 2560, 20), "7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56),
                  "70b": (80, 8192, 64)}
FOUNDRY_BUCKET = 1 << 36  # FSDP reduces each layer's gradients as a whole
FOUNDRY_FLASH = ("1b", "3b", "7b", "70b")  # sweep.py
FOUNDRY_HARDWARE = {"h100_80gb": "dgx-h100", "a100_80gb": "dgx-a100", "a100_40gb": "dgx-a100-40gb"}


def foundry_model(cases, row):
    layers, hidden, heads = FOUNDRY_SHAPES[row["model"]]
    name = f"mpt-{row['model']}-{row['seq_len']}"
    cases.models[name] = {
        **gpt(layers, hidden, heads, int(row["seq_len"]), 50368),
        "title": f"MPT {row['model']}, {row['seq_len']} positions",
        "source": "scripts/train/yamls/pretrain of github.com/mosaicml/llm-foundry", "dropout": 0,
        "parameters": {"count": int(row["n_params"]), "count_source": "publication",
                       "source": "n_params of llm-foundry's table of training throughput"}}
    return name


def foundry(path):
    cases = CaseFile("llm-foundry: MPT training throughput on A100 and H100",
                     "mosaicml/llm-foundry (Apache-2.0), throughput tables. FSDP over all GPUs, learned positions "
                     "(n_params comes out exactly), decoupled AdamW. Global batch = micro-batch x accumulation x "
                     "GPUs. By the repository's scripts: attention is the first FlashAttention in Triton; in the table "
                     "of 128 and more GPUs FlashAttention 2 for some sizes, and SHARD_GRAD_OP for one (sweep.py's "
                     "model arguments, which agree with the table; its common arguments do not: PURE against DEFAULT). "
                     "The loss is a fused kernel, and two metrics (cross-entropy, perplexity) take it once more from "
                     "each micro-batch's logits (Composer's trainer). FSDP gathers weights late (Composer's default "
                     "BACKWARD_POST); Composer from 0.16.4 on, so in the table of 128 and more GPUs, reduces in fp32. "
                     "Role fit: a fifth, by SHA-256 of the id.",
                     {"median": 0.05, "p90": 0.10, "kendall": 0.93})
    with open(path, encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    for row in rows:
        name = "{model}-{gpu}-s{seq_len}-n{n_gpus}-{precision}".format(**row)
        precision = {"amp_bf16": "bf16_mixed", "bf16": "bf16_mixed", "amp_fp8": "fp8_mixed"}[row["precision"]]
        fields = {"source": "llm-foundry " + {"h": "H100", "a": "A100"}[row["gpu"][0]] +
                            (" fp8" if precision == "fp8_mixed" else ""),
                  "metric": "throughput", "unit": "tokens/s/GPU", "value": float(row["throughput_tok_s_gpu"]),
                  "confidence": "exact", "role": role_by_hash(name),
                  "hardware.profile": FOUNDRY_HARDWARE[row["gpu"]],
                  "model.name": foundry_model(cases, row), "model.sequence": int(row["seq_len"]),
                  "model.micro_batch": int(row["micro_batch_size"]),
                  "model.gradient_accumulation": int(row["grad_accum"]), "model.data_parallel": int(row["n_gpus"]),
                  "model.zero_stage": 3, "model.precision": precision,
                  "model.recompute": "full" if row["activation_checkpointing"] == "True" else "none",
                  "model.optimizer": "adamw", "model.optimizer_form": "foreach", "model.loss": "fused",
                  "model.loss_metrics": 2, "model.bucket_bytes": FOUNDRY_BUCKET, "model.late_prefetch": True}
        is_large = "Large Scale" in row["section"]
        is_flash = is_large and row["model"] in FOUNDRY_FLASH
        fields["model.attention_kernel"] = "flash2" if is_flash else "triton"
        fields["model.fp32_reduction"] = is_large
        if row["sharding_strategy"] == "SHARD_GRAD_OP":
            fields["model.zero_stage"] = 2
        cases.add(name, **fields)
    return cases


def cudnn_llama(folder):
    cases = CaseFile("Llama-3.2 1B training steps on H200",
                     "NVIDIA/cudnn-frontend (MIT licence), benchmark/Llama-3.2-1B-Training: Hugging Face's model in "
                     "bf16, SGD; the clock locked at 1,500 MHz, as the README states; logits are not cast for the "
                     "loss. The embedding look-up is left out of the measured step. The flash backend is "
                     "FlashAttention 2.",
                     {"median": 0.06, "p90": 0.06})
    path = os.path.join(folder, "Llama-3.2-1B-Training_artifacts_h200_training_timing.csv")
    with open(path, encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    for row in rows:
        name = f"{row['backend'].lower()}-b{row['batch_size']}-s{row['seq_len']}"
        fields = {"source": "cuDNN Llama-3.2-1B", "metric": "iteration_time", "unit": "s",
                  "value": round(float(row["time"]), 5), "confidence": "exact", "hardware.profile": "h200-141gb-1gpu",
                  "hardware.set.gpu.locked_clock_mhz": 1500,
                  "model.name": "llama-3.2-1b", "model.sequence": int(row["seq_len"]),
                  "model.micro_batch": int(row["batch_size"]), "model.precision": "bf16", "model.optimizer": "sgd",
                  "model.fused_kernels": False, "model.loss": "native"}
        if row["backend"] == "FLASH_ATTENTION":
            fields.update({"source": "cuDNN Llama-3.2-1B, flash", "model.attention_kernel": "flash2"})
        if row["backend"] == "EFFICIENT_ATTENTION":
            fields["skip"] = "nothing is known of the times of this attention kernel"
        cases.add(name, **fields)
    return cases


# Why a row of offload.csv is not run: by source, then by the part of the row that says what it is of (first match).
NO_STEP = "neither model, batch nor sequence of the figure is stated"
OFFLOAD_SKIPS = {
    "SSDTrain": [("multiplier", "an assumption of the authors, taken as given"),
                 ("Fig.6", "ssdtrain-measured has a case for each run of the set"),
                 ("abstract (arXiv v1)", "a case of ssdtrain-measured"),
                 ("max throughput gain",
                  "neither model nor batches are stated; ssdtrain-measured has an inferred case"),
                 ("abstract (DAC'25)", "the shapes of its Llama runs are not stated"),
                 ("", "a statement about a set of runs, not a figure of one")],
    "TERAIO": [("characterisation", NO_STEP), ("roofline", NO_STEP),
               ("compile time", "the time the authors' planner took on their processor"),
               ("GDS", "load of a host's processor and DRAM, which no result shows"),
               ("cost table", "prices of machines"),
               ("host memory;", "batch and sequence are not stated, nor what the runtime's buffers hold"),
               ("", "batch and sequence are ranges (16-128, 1,024-8,192) without a figure for each; "
                    "docs/internals/offload.md compares the direction")],
    "Fuyou": [("", "batch and sequence are not stated, nor how many drives")],
    "LoHan": [("", "batch and sequence are not stated, nor which drives")],
    "Smart-Infinity": [("Smart-Infinity interconnect", "drives that compute, which are not modelled"),
                       ("baseline update", "sequence length and host are not stated"),
                       ("", "drives that compute, which are not modelled")],
    "ZeRO-Infinity": [("", "batch and parallel layout are not stated")],
    "FlashNeuron": [("", NO_STEP)],
    "PipeOffload": [("repo", "constants the authors put into their own model; docs/internals/offload.md uses them as they do"),
                    ("", "the pair of runs behind the largest gain is not named")],
    "MEMO": [("", "splits activations by tokens between swapping and recomputation, which is not modelled")],
    "SPPO": [("", "offloads chunks of a sequence, which is not modelled")],
    "Capuchin": [("", NO_STEP)],
    "MemAscend": [("", "pinned pools of set block sizes, which are not modelled")],
    "10Cache": [("", NO_STEP)],
    "GreedySnake": [("", "one layer over all micro-batches before the next, which is not modelled")],
    "OptPipe": [("", NO_STEP)],
    "stas00": [("H2D", "the GPU profile's own input"), ("D2H", "the GPU profile's own input")],
    "TechPowerUp": [("", "the drive profile's own input")],
    "Xiang": [("", "the model's own printed figure")],
    "StorageReview": [("", "inference, not a training step")],
}


def offload_skip(row):
    words = " ".join([row["table_or_figure"], row["setup"] + ";", row["metric"]])
    for source, reasons in OFFLOAD_SKIPS.items():
        if row["source"].lstrip("\"").startswith(source):
            return next(reason for part, reason in reasons if part in words)
    raise SystemExit(f"no reason for {row}")


# Rates of one transfer: the row's set-up and metric to a machine and a path of validation/published/link_rate.h.
LINKS = {("8x H200;NVLink4;pairwise", "unidirectional"): {"system": "dgx-h200", "path": "peer"},
         ("8x H200;NVLink4;pairwise", "duplex"): {"system": "dgx-h200", "path": "peer_duplex"},
         ("L40S;PCIe4 x16;GDS (link ceiling ~28)", "bandwidth"):
             {"system": "l40s-1gpu", "path": "drive_read", "drive": "solidigm-d7-ps1010-7.68tb", "drives": 8},
         ("4x D7-PS1010 RAID0;GDS (drive ceiling 58)", "bandwidth"):
             {"system": "h200-141gb-1gpu", "path": "drive_read", "drive": "solidigm-d7-ps1010-7.68tb", "drives": 4}}


PROJECTED = {"activations written per GPU per microbatch pass": "activation_volume",
             "required write bandwidth per GPU = act/(1.5*fwd time)": "write_bandwidth",
             "forward time": "forward_time", "iteration time": "iteration_time",
             "bytes written per GPU over 300e9 tokens": "bytes_written", "training time": "training_time",
             "SSD lifespan (formula applied here)": "drive_life"}
# (layers, hidden, heads): both with OPT's padded vocabulary, which the volumes show.
PROJECTED_MODELS = {"megatron-lm-175b": (96, 12288, 96, 50272), "megatron-lm-530b": (105, 20480, 128, 50272)}
PROJECTED_MEMORY = {"a100-pcie-80gb": 1935, "a100-sxm-80gb": 2039}


def projected(row):
    """The set-up of a row of SSDTrain's projection."""
    s = setup_of(row)
    model = row["setup"].split(";")[0]
    if model in PROJECTED_MODELS:
        layers, hidden, heads, vocabulary = PROJECTED_MODELS[model]
    else:
        layers, hidden, vocabulary = int(s["layers"]), int(s["hidden"]), int(s["vocab"])
        heads = hidden // int(s["head_dim"])
        if "layers multiplied by pp" in row["setup"]:
            layers *= int(s["pp"])
    keys = {"layers": layers, "hidden": hidden, "heads": heads, "vocabulary": vocabulary, "sequence": int(s["seq"]),
            "micro_batch": int(s["micro_batch"]), "tensor_parallel": int(s["tp"]), "pipeline_parallel": int(s["pp"]),
            "data_parallel": int(s["dp"]), "gradient_accumulation": int(s["grad_acc"]), "zero_stage": int(s["zero"]),
            "tflops": float(s["achieved_TFLOPS"]), "memory_gbs": PROJECTED_MEMORY[s["gpu"]], "link_gbs": 300}
    if "total_tokens" in s:
        keys["tokens"] = float(s["total_tokens"])
    if "endurance" in s:
        keys["endurance_pb"] = 516
    return {"projection__" + key: value for key, value in keys.items()}


def ssdtrain(rows):
    cases = CaseFile("SSDTrain: the authors' projection of activation volume, write bandwidth and drive life",
                     "arXiv 2408.10013, sections II-B and III-D; the authors' code, run again, prints these digits. "
                     "Closed forms (models/spec/activation_volume.h): nothing is replayed. Memory and link rates are those "
                     "of the A100's datasheets.",
                     {"median": 0.0001, "p90": 0.0002})
    for row in rows:
        if "llm-analysis" not in row["source"]:
            continue
        s, metric = setup_of(row), PROJECTED[row["metric"]]
        name = row["setup"].split(";")[0].replace("hidden=", "h")
        cases.add(f"{row['table_or_figure']} {name} {s['gpus']} GPUs {metric}", source="SSDTrain's projection",
                  role="derived", metric=metric, unit=row["unit"], value=float(row["value"]), confidence=row["confidence"],
                  **projected(row))
    return cases


# SSDTrain's testbed and set-ups: three shapes of three models (T5's layers are split over its two stacks, the decoder's
# share rounded down), one micro-batch of 16 on two GPUs; 16-bit weights and loss, SGD, as the launch scripts of
# K-Wu/FlashTrain@668f553 have it. GPT's vocabulary is that of the estimates, the others' Megatron-LM's padded one.
# 765 of 1,410 MHz.
SSDTRAIN = {"hardware__profile": "ssdtrain-testbed", "hardware__set__gpu__peak_flops__bf16": "x0.5426",
            "model__sequence": 1024, "model__precision": "bf16", "model__optimizer": "sgd",
            "model__framework": "megatron_2022", "model__attention_kernel": "flash2", "model__loss": "native",
            "model__tensor_parallel": 2, "model__sequence_parallel": True}
SSDTRAIN_SHAPES = [(8192, 4), (12288, 3), (16384, 2)]
PADDED_BERT = 30720


def ssdtrain_model(cases, kind, hidden, layers):
    model = gpt(layers, hidden, hidden // 128, 1024, PADDED_BERT)
    if kind == "GPT":
        model["vocabulary"] = 32000
    elif kind == "BERT":
        model.update(mask="bidirectional", token_types=2, masked_lm_head=True)
    else:
        model.update(encoder_layers=layers - layers // 2, layers=layers // 2, fused_qkv=False)
    model["title"] = f"{kind}, {layers} layers of {hidden}"
    name = f"{kind.lower()}-{layers}x{hidden}"
    cases.models[name] = model
    return name


def ssdtrain_measured(rows):
    cases = CaseFile("SSDTrain on two A100: what the text says of figures 6 and 7, and the estimates of Table III",
                     "arXiv 2408.10013 and its DAC'25 version. The text gives ranges and statements over sets of runs: a "
                     "case is one run of the set, with the technique at its defaults. Sequence parallelism as the "
                     "authors' estimates have it; their launch scripts do not set it. Table III is their formula, here "
                     "against a replay.", {"median": 0.05, "p90": 0.12})
    said = {(row["table_or_figure"], row["metric"]): float(row["value"]) for row in rows
            if row["source"].startswith("SSDTrain (")}
    moved = {"offload__technique": "ssdtrain", "confidence": "text"}
    runs = [(kind, hidden, layers) for kind in ("GPT", "BERT", "T5") for hidden, layers in SSDTRAIN_SHAPES]
    for kind, hidden, layers in runs:
        step = {**SSDTRAIN, "model__name": ssdtrain_model(cases, kind, hidden, layers), "model__micro_batch": 16, **moved}
        cases.add(f"Fig. 6 {kind} h{hidden} L{layers} activations", source="SSDTrain Fig. 6", metric="activation_saving",
                  unit="%", value=said["Fig.6 (text)", "reduction of activation peak, low end"],
                  value_to=said["Fig.6 (text)", "reduction of activation peak, high end"], **step)
        cases.add(f"Fig. 6 {kind} h{hidden} L{layers} step", source="SSDTrain Fig. 6", metric="relative_step_time",
                  unit="x", value=1, **step)
    for hidden in (12288, 14336):
        for batch in (4, 8, 16):
            cases.add(f"Fig. 7 BERT h{hidden} L3 batch {batch}", source="SSDTrain Fig. 7", metric="relative_step_time",
                      unit="x", value=1, **SSDTRAIN, model__name=ssdtrain_model(cases, "BERT", hidden, 3),
                      model__micro_batch=batch, **moved)
    cases.add("abstract (arXiv v1), largest saving", source="SSDTrain abstract", metric="activation_saving", unit="%",
              value=said["abstract (arXiv v1)", "max reduction of peak activation memory vs keep-in-GPU"], **SSDTRAIN,
              model__name=ssdtrain_model(cases, "T5", 8192, 4), model__micro_batch=16, **moved,
              note="the paper does not say of which run: of figure 6's nine the one that saves most here")
    cases.add("abstract (DAC'25), larger micro-batch", source="SSDTrain abstract (DAC'25)", metric="throughput_ratio",
              unit="x", value=1.31, confidence="text, set-up inferred", role="derived", **SSDTRAIN,
              note="Neither model nor batches are stated. A model of Llama-2 70B's width has one batch size more or less "
                   "room on these GPUs by its layers: with 13, keeping trains micro-batches of 2 and SSDTrain of 13; with "
                   "14, of 1 and 7 (1.53 times as fast).",
              model__name="llama-2-70b", model__layers=13, model__micro_batch=13, **moved,
              against=["model.micro_batch=2", "offload.technique=none"])
    for row in rows:
        if "llm-analysis" in row["source"] and PROJECTED[row["metric"]] == "activation_volume" and \
                row["table_or_figure"].startswith("Table III"):
            hidden = int(setup_of(row)["hidden"])
            cases.add(f"Table III GPT h{hidden}", source="SSDTrain Table III, estimate", metric="activation_memory",
                      unit="GiB", value=float(row["value"]), **SSDTRAIN, confidence=row["confidence"],
                      model__name=ssdtrain_model(cases, "GPT", hidden, dict(SSDTRAIN_SHAPES)[hidden]),
                      model__micro_batch=16)
    return cases


def offload(rows):
    """Figures on offloading that state no step which could be simulated, and single ones that a formula gives."""
    cases = CaseFile("Published figures on offloading and drives",
                     "Rows that state no set-up of a training step, and figures of drives.")
    first = next(row for row in rows if "175b" in row["setup"] and "zero=3" in row["setup"] and "gpus=384" in row["setup"])
    largest = {**projected(first), "projection__endurance_pb": 516}
    for row in rows:
        if "llm-analysis" in row["source"]:
            continue
        name = f"{row['table_or_figure']} {len(cases.cases)}"
        fields = {"source": row["source"], "value": float(row["value"]), "confidence": row["confidence"]}
        if row["metric"].startswith("max required write bandwidth"):
            cases.add(name, metric="write_bandwidth", unit="GiB/s", role="derived", **fields, **largest,
                      note="the largest of all projected systems is ZeRO-3 175B on 384 GPUs; printed as GB/s")
        elif (row["setup"], row["metric"]) in LINKS:
            link = LINKS[row["setup"], row["metric"]]
            note = {"peer": "the profile's NVLink efficiency is that of a collective",
                    "peer_duplex": "the profile's NVLink efficiency is that of a collective",
                    "drive_read": "reads; " + ("more drives than the link carries assumed" if "L40S" in row["setup"]
                                               else "a GPU with PCIe 5 x16 assumed")}[link["path"]]
            cases.add(name, metric="link_rate", unit=row["unit"], **fields, note=note,
                      **{"projection__" + key: value for key, value in link.items()})
        elif row["metric"] == "read+write" and "ZeRO-Infinity" in row["setup"]:
            cases.add(name, metric="drive_traffic", unit="M", **fields, hardware__profile="teraio-testbed",
                      model__name="gpt2-xl", model__optimizer_device="drives",
                      note="per byte of the model, so that any model does")
        elif row["metric"] == "write amplification, measured":
            cases.add(name, metric="write_amplification", unit="x", projection__spare=0.3, **fields)
        elif row["metric"] == "whole-drive average":
            cases.add(name, metric="drive_fill_rate", unit="GB/s", projection__drive="samsung-980-pro-1tb", **fields,
                      note="two rates and a cache size from the same review do not add up to its average")
        else:
            cases.add(name, **skipped(row, row["source"], offload_skip(row)))
    cases.add("GH200, copy engine, host to device", source="nvbandwidth 5.0 on GH200 (NVIDIA/nvbandwidth issue 23)",
              metric="link_rate", unit="GB/s", value=346, confidence="text", projection__system="gh200-1gpu",
              projection__path="host_to_device", note="NVLink-C2C; the profile's rate is another paper's")
    return cases


# By file: groups that miss what it asks, and what they are held to until they don't: what they reach, rounded up.
# docs/internals/validation.md says what is known of the reasons.
HELD_TO = {
    "cudnn-llama": [{"source": "cuDNN Llama-3.2-1B, flash", "metric": "iteration_time", "p90": 0.081}],
    "llm-foundry": [{"source": "llm-foundry A100", "metric": "throughput", "p90": 0.13}],
    "megatron-b200-steps": [
        {"source": "Megatron-core on B200", "metric": "iteration_time", "median": 0.196, "p90": 0.336},
        {"source": "Megatron-core on B200, rate known", "metric": "iteration_time", "median": 0.124, "p90": 0.289}],
    "megatron-b200": [{"source": "Megatron-core on B200", "metric": "peak_reserved", "median": 0.008, "p90": 0.016}],
    "narayanan-2021": [{"source": "SC'21 Table 1", "metric": "iteration_time", "median": 0.062},
                       {"source": "SC'21 Table 2 ZeRO-3", "metric": "iteration_time", "median": 0.48, "p90": 0.68,
                        "kendall": 0.85}],
    "ssdtrain-measured": [{"source": "SSDTrain Fig. 6", "metric": "activation_saving", "median": 0.076, "p90": 0.158}],
    "vtrain-multi": [{"source": "vTrain multi-node", "metric": "iteration_time", "p90": 0.2, "kendall": 0.87}],
    "vtrain-single": [{"source": "vTrain single node", "metric": "iteration_time", "median": 0.067, "p90": 0.175,
                       "kendall": 0.91}],
    "zero-bubble": [{"source": "Zero Bubble Table 6", "metric": "peak_allocated", "kendall": 0.85}],
}


def cut(title, layers, **own):
    """The first layers of a model, with NullTokenizer's one word more."""
    return {"schema": "spillway.model", "version": 1, "title": f"{title}, {layers} layers",
            "source": "config.json of the model at huggingface.co, cut", "layers": layers, **own, "mask": "causal",
            "norm": "rms_norm", "norm_placement": "pre", "activation": "silu_gated", "positions": "rotary",
            "tied_embeddings": False}


MEGATRON_B200_MODELS = {
    "llama": lambda layers: cut("Llama 3 70B", layers, hidden=8192, heads=64, kv_heads=8, feed_forward=28672,
                                vocabulary=128257, max_positions=32768),
    "deepseek": lambda layers: cut(
        "DeepSeek-V2", layers, hidden=5120, heads=128, feed_forward=12288, vocabulary=102401, max_positions=163840,
        latent_attention={"query_rank": 1536, "kv_rank": 512, "rope_dim": 64, "nope_dim": 128, "value_dim": 128},
        experts={"count": 160, "active": 6, "width": 1536, "shared_width": 3072, "first_dense_layers": 1}),
}


def megatron_b200_rows(path, cases):
    with open(path, encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    for row in rows:
        deepseek = row["model"].startswith("deepseek")
        name = row["model"] + "-" + row["layers"]
        cases.models[name] = MEGATRON_B200_MODELS["deepseek" if deepseek else "llama"](number(row["layers"]))
        context = int(row["cp"])
        yield row, {"confidence": "exact", "hardware.profile": "hgx-b200", "model.name": name,
                    "model.framework": "megatron", "model.sequence": int(row["seq"]),
                    "model.gradient_accumulation": int(row["micro_batches"]), "model.tensor_parallel": int(row["tp"]),
                    "model.sequence_parallel": int(row["tp"]) > 1, "model.context_parallel": context,
                    "model.context_exchange": "a2a" if context > 1 else "p2p",
                    "model.pipeline_parallel": int(row["pp"]), "model.data_parallel": int(row["dp"]),
                    "model.expert_parallel": int(row["ep"]), "model.zero_stage": 1, "model.loss": "fused",
                    "model.overlap_gradients": False, "model.dropout": 0}


# The same set-ups' times, as the machine is said to be and with the one rate that its owners measured: the median of
# Transformer Engine's products of more than a millisecond on it (ops/transformer-engine/products.csv, 232 rows).
SUSTAINED_B200 = "1084 TFLOPS"


def megatron_b200_steps(path):
    cases = CaseFile("Steps of Megatron-core on 8 B200",
                     "MooreThreads/SimuMax 4dcaae5, simu_tools/megatron_scripts, as in the cases of its memory. The "
                     "second source's set-ups know the rate that this machine's long products settle at.",
                     {"median": 0.08, "p90": 0.15})
    for row, fields in megatron_b200_rows(path, cases):
        for source, known in (("Megatron-core on B200", {}),
                              ("Megatron-core on B200, rate known",
                               {"hardware.set.gpu.sustained_flops": SUSTAINED_B200})):
            cases.add(row["case"].replace("_cef", "") + (" rate known" if known else ""), source=source,
                      metric="iteration_time", unit="ms", value=float(row["real_step_ms"]), **fields, **known)
    return cases


# Megatron-core 0.14 with Transformer Engine 2.11 on eight B200, the peaks of every rank. 4, 8 and 32 micro-batches have
# the same ones.
def megatron_b200(path):
    cases = CaseFile("Memory of Megatron-core on 8 B200",
                     "MooreThreads/SimuMax 4dcaae5, simu_tools/megatron_scripts: max_memory_allocated and "
                     "max_memory_reserved of each rank over two iterations without warm-up, cold start. A stage's "
                     "allocated figure is the median of its ranks, its reserved one their mean; ranks of one stage "
                     "reserve up to 4 % differently. Its tokenizer adds one to the vocabulary. Experts have a capacity "
                     "factor of one, so that they see equal shares. Context parallelism exchanges heads.",
                     {"median": 0.0005, "p90": 0.001})
    for row, fields in megatron_b200_rows(path, cases):
        if row["micro_batches"] != "4":
            continue
        pipeline = int(row["pp"])
        for metric, column, of_ranks in (("peak_allocated", "ranks_max_allocated_mib", statistics.median),
                                         ("peak_reserved", "ranks_max_reserved_mib", statistics.mean)):
            ranks = [float(value) for value in row[column].split(";")]
            for stage in range(pipeline):
                own = ranks[stage * len(ranks) // pipeline:(stage + 1) * len(ranks) // pipeline]
                cases.add(f"{row['case'].replace('_mbc4_cef', '')} stage {stage} {metric}",
                          source="Megatron-core on B200", metric=metric, unit="MiB", value=round(of_ranks(own), 3),
                          stage=stage, **fields)
    return cases


# STAlloc's artifact and Table 3: Megatron-LM on one machine of 8 A800. R full recomputation, V two chunks a stage, Z
# ZeRO 1 over two replicas, O the optimizer's state in host memory. Set-ups are those of the artifact's scripts (example/
# gpt2/ZR.sh, llama/naive.sh, qwen-moe/ZR.sh at bfd3a58): sequence parallel; legacy models of Megatron-LM core_r0.8.0,
# whose RMSNorm and rotary embedding are kernel by kernel, or, of experts, its core_r0.10.0; PyTorch 2.3.
STALLOC_GPT = {"schema": "spillway.model", "version": 1, "title": "GPT-2 345M as STAlloc's scripts have it",
               "source": "infinigence/STAlloc bfd3a58, example/gpt2/ZR.sh; Llama's tokenizer assumed", "layers": 24,
               "hidden": 1024, "heads": 16, "feed_forward": 4096, "vocabulary": 32000, "max_positions": 1024,
               "mask": "causal", "norm": "rms_norm", "norm_placement": "pre", "activation": "silu_gated",
               "positions": "rotary", "qkv_bias": True, "output_bias": True, "feed_forward_bias": True, "dropout": 0.1}
STALLOC_STEPS = {
    "gpt2 csv": {"model__name": "stalloc-gpt2", "model__micro_batch": 128, "model__global_batch": 1024,
                 "model__sequence": 1024, "model__framework": "megatron_2022", "model__fused_kernels": False},
    "llama csv": {"model__name": "llama-2-7b", "model__micro_batch": 4, "model__global_batch": 128,
                  "model__sequence": 4096, "model__framework": "megatron_2022", "model__fused_kernels": False},
    "qwen-moe csv": {"model__name": "qwen1.5-moe-a2.7b", "model__micro_batch": 8, "model__global_batch": 128,
                     "model__sequence": 4096, "model__expert_parallel": 2, "model__framework": "megatron",
                     "model__fused_experts": False},
}
STALLOC_PARTS = {"V": {"model__pipeline_chunks": 2, "model__pipeline_schedule": "interleaved"},
                 "R": {"model__recompute": "full"}, "Z": {"model__zero_stage": 1},
                 "O": {"model__optimizer_device": "cpu"}}
STALLOC_ALLOCATORS = {"torch2.3.0a0": "torch", "expandable": "torch-expandable", "gmlake": "gmlake",
                      "STAlloc": "stalloc-paper"}


def stalloc_setup(step, parts):
    fields = {"hardware__profile": "dgx-a100", "model__precision": "bf16_mixed", "model__flash_attention": True,
              "model__tensor_parallel": 2, "model__sequence_parallel": True, "model__pipeline_parallel": 2,
              "model__data_parallel": 2, "memory__record_streams": True, **STALLOC_STEPS[step]}
    for part in parts:
        fields.update(STALLOC_PARTS[part])
    return fields


def stalloc(rows):
    cases = CaseFile("STAlloc (EuroSys 2026): memory of Megatron-LM steps under four allocators, 8 A800",
                     "arXiv:2507.16274 and its artifact (infinigence/STAlloc 522ebfe, Apache-2.0). Devices 0 to 3 hold the "
                     "first stage, 4 to 7 the second. GB is read as GiB. Table 3 is not of the artifact's set-up, nor says "
                     "of which rank it is: the fullest is taken.")
    cases.models["stalloc-gpt2"] = STALLOC_GPT
    source = "STAlloc artifact"
    for row in rows:
        table, metric = row["table_or_figure"], row["metric"]
        if row["source"].startswith("infinigence/STAlloc"):
            allocator, devices = (part.strip() for part in row["setup"].split("; ")[-2:])
            name = f"{table} {allocator} {devices} {metric}"
            figure = {"allocated": ("peak_allocated", "GiB"), "reserved": ("peak_reserved", "GiB"),
                      "memory efficiency": ("memory_efficiency", "%")}.get(metric)
            if figure is None:
                cases.add(name, **skipped(row, source, SAME))
            elif table == "qwen-moe csv" and allocator == "torch2.3.0a0" and figure[1] == "GiB":
                cases.add(name, **skipped(row, source, "the artifact's own columns contradict each other"))
            else:
                cases.add(name, source=f"{source} {STALLOC_ALLOCATORS[allocator]}", metric=figure[0], unit=figure[1],
                          value=float(row["value"]), confidence=row["confidence"], stage=int("4-7" in devices),
                          **stalloc_setup(table, "ROZ"), memory__allocator=STALLOC_ALLOCATORS[allocator])
        elif row["source"].startswith("STAlloc EuroSys26"):
            name = f"{table} {row['setup']} {metric}"
            if table == "Table 3" and metric == "total allocation":
                parts = row["setup"].split()[-1].replace("None", "")
                cases.add(name, source="STAlloc Table 3", metric="peak_allocated", unit="GiB",
                          value=float(row["value"]), confidence=row["confidence"], **stalloc_setup("qwen-moe csv", parts))
                continue
            why = ("batch and sequence are not stated" if table == "Table 1" else
                   "the time and the requests of the authors' profiler and planner" if table == "Table 2" else
                   "shares of the total by the authors' classes of requests, which a result does not show"
                   if table == "Table 3" else "a statement about a set of runs, not a figure of one")
            cases.add(name, **skipped(row, "STAlloc (arXiv 2507.16274)", why))
    return cases


def main():
    data = sys.argv[1]
    output = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(data, "published/pipeline.csv"), encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    with open(os.path.join(data, "published/offload.csv"), encoding="utf-8") as table:
        offload_rows = [row for row in csv.DictReader(table)]
    with open(os.path.join(data, "published/stalloc.csv"), encoding="utf-8") as table:
        stalloc_rows = list(csv.DictReader(table))
    files = {
        "ssdtrain-projection": ssdtrain(offload_rows),
        "ssdtrain-measured": ssdtrain_measured(offload_rows),
        "offload": offload(offload_rows),
        "vtrain-single": vtrain(rows, "ground_truth_single.csv", "vTrain: one machine of 2-8 A100",
                                "vTrain single node",
                                "dgx-a100", {"median": 0.05, "p90": 0.12, "kendall": 0.93}, True),
        "vtrain-multi": vtrain(rows, "ground_truth_multi.csv", "vTrain: 64-512 A100", "vTrain multi-node",
                               "hgx-a100-4hdr",
                               {"median": 0.07, "p90": 0.15, "kendall": 0.93}, False),
        "narayanan-2021": narayanan(rows),
        "korthikanti-2022": korthikanti(rows),
        "zero-bubble": zero_bubble(rows),
        "llm-foundry": foundry(os.path.join(data, "throughput/llm-foundry.csv")),
        "cudnn-llama": cudnn_llama(os.path.join(data, "ops/cudnn-frontend")),
        "megatron-b200": megatron_b200(os.path.join(data, "published/megatron_b200_8gpu.csv")),
        "megatron-b200-steps": megatron_b200_steps(os.path.join(data, "published/megatron_b200_8gpu.csv")),
        "stalloc": stalloc(stalloc_rows),
        "other": remaining(rows),
    }
    write(files, HELD_TO, output)


if __name__ == "__main__":
    main()
