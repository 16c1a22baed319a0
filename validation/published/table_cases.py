#!/usr/bin/env python3
"""Writes case files of published tables of current software that this repository has no copy of.

Usage: table_cases.py DATA OUTPUT
  DATA    folder with published/megatron_bridge.csv, aws_ep_dispatchers.csv, torchtitan.csv, bigscience_tr11.csv,
          nanotron_playbook_h100.csv, fms_acceleration_a100.csv
  OUTPUT  folder to write to

`spillway validate OUTPUT/NAME.json` runs them. How a row's words map to a set-up is stated here, once for each table;
nothing is chosen row by row. A fifth of the rows, those whose group's SHA-256 is 0 modulo 5, may be fitted to.
"""
import csv
import os
import re
import sys

from make_cases import CaseFile, gpt, role_by_hash


def table(data, name):
    with open(os.path.join(data, "published", name + ".csv"), encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def step(source, seconds, group, **fields):
    """A measured step: its time in seconds, of the group of rows that shares a configuration."""
    return {"source": source, "metric": "iteration_time", "unit": "s", "value": round(seconds, 5),
            "role": role_by_hash(group), **fields}


BRIDGE_MODELS = {"DeepSeekV3": "deepseek-v3", "Kimi_K2": "kimi-k2", "Qwen3_235B_a22B": "qwen3-235b-a22b",
                 "Qwen3_30B_a3B": "qwen3-30b-a3b", "GPT OSS 120B": "gpt-oss-120b", "LLAMA3.1_405B": "llama-3.1-405b",
                 "LLAMA3_70B": "llama-3-70b", "LLAMA3_8B": "llama-3-8b",
                 "Nemotron_3_Nano": "nemotron-3-nano-30b-a3b", "Nemotron_3_Super": "nemotron-3-super-120b-a12b",
                 "Nemotron_3_Ultra": "nemotron-3-ultra-550b-a55b"}
BRIDGE_SYSTEMS = {"DGX-GB300": "gb300-nvl72", "DGX-GB200": "gb200-nvl72", "DGX-B300": "hgx-b300",
                  "DGX-B200": "hgx-b200", "DGX-H100": "dgx-h100"}
BRIDGE_PRECISIONS = {"BF16": "bf16_mixed", "NVFP4": "nvfp4_mixed"}  # else fp8_mixed
FP8_RECIPES = {"delayed", "tensorwise", "rowwise", "blockwise", "mxfp8"}
# Layers of each part of the 61 of DeepSeek-V3 and Kimi K2 (_get_*_pipeline_layout of the recipes), by parts.
BRIDGE_PARTS = {4: [16, 16, 16, 13], 8: [8] * 7 + [5], 16: [4] * 15 + [1]}
DISPATCHERS = {"alltoall": "nccl", "deepep": "deepep", "hybridep": "hybridep"}
STATE_TYPES = {"bfloat16": "bf16", "float32": "fp32"}

def bridge_skip(row):
    if row["model"] not in BRIDGE_MODELS and "tokendrop" not in row["model"] and "w/o MTP" not in row["model"]:
        return "a model that is not known"
    if any("(" in row[key] for key in ("tp", "pp", "cp", "vp", "tok_s_gpu", "fsdp")):
        return "two layouts in one row"
    if row["section"].startswith("LoRA"):
        return "adapters beside frozen weights in fp8 are not simulated"
    return ""


def bridge_graphs(row):
    """Scopes as scenarios name them."""
    scopes = row["cuda_graph_scope"].split("+") if row["cuda_graph_scope"] else []
    if row["cuda_graph_impl"] == "full_iteration" or "full_iteration" in scopes:
        return "full_iteration"
    return ",".join(scopes)


def bridge_experts(row):
    """The settings of a row's blocks of experts."""
    dispatcher = DISPATCHERS[row["moe_dispatcher"].split()[0]]
    own = {"model__expert_dispatcher": dispatcher}
    if row["ep"] not in ("", "n/a"):
        own["model__expert_parallel"] = int(row["ep"])
    if row["moe_a2a_overlap"] == "true":
        own["model__overlap_experts"] = True
    if row["expert_rank_capacity"] or row["paged_stash"] == "true" or "tokendrop" in row["model"]:
        own["model__static_experts"] = True
    if row["grouped_mlp_fused_cutedsl"] == "true" and row["precision"] != "NVFP4":  # which the kernel has not
        own["model__fused_experts"] = True
    if row["router_fusion"] == "false":
        own["model__router_fusion"] = False
    if int(row["tp"]) > 1:
        own["model__expert_tensor_parallel"] = int(row["expert_tensor_parallel"] or 1)
    return own


def megatron_bridge(rows):
    cases = CaseFile("Megatron-Bridge: throughput of 25.09 to 26.08 on H100 to GB300",
                     "NVIDIA-NeMo/Megatron-Bridge docs/performance-summary*.md, settings from each release's recipe. "
                     "Routing is forced even.",
                     {"median": 0.06, "p90": 0.15})
    for row in rows:
        experts = row["moe_dispatcher"] != ""
        source = "Megatron-Bridge " + ("experts" if experts else "dense") + \
                 ("" if row["recipe_match"] == "exact" else ", recipe not exact")
        name = f"{row['release'].split()[0]} {row['config_group']} {row['gbs']}x{row['seq_len']} {row['section'][:3]}"
        why = bridge_skip(row)
        if why:
            cases.add(name, source=source, confidence=row["recipe_match"], skip=why)
            continue
        tensor, pipeline, context = int(row["tp"]), int(row["pp"]), int(row["cp"])
        gpus, sequence, batch = int(row["n_gpus"]), int(row["seq_len"]), int(row["gbs"])
        fields = {"hardware__profile": BRIDGE_SYSTEMS[row["system"]],
                  "model__name": BRIDGE_MODELS[row["model"].split(" (")[0]], "model__framework": "megatron",
                  "model__precision": BRIDGE_PRECISIONS.get(row["precision"], "fp8_mixed"), "model__dropout": 0,
                  "model__sequence": sequence, "model__micro_batch": int(row["mbs"]), "model__global_batch": batch,
                  "model__tensor_parallel": tensor, "model__sequence_parallel": tensor > 1,
                  "model__pipeline_parallel": pipeline, "model__context_parallel": context,
                  "model__data_parallel": gpus // (tensor * pipeline * context), "model__zero_stage": 1,
                  "model__loss": "fused", "model__main_gradients": "bf16"}
        if fields["model__precision"] == "fp8_mixed" and row["fp8_recipe"] in FP8_RECIPES:
            fields["model__fp8_recipe"] = row["fp8_recipe"]
        if row["vp"] not in ("n/a", "1"):
            fields["model__pipeline_chunks"] = int(row["vp"])
        parts = BRIDGE_PARTS.get(pipeline * fields.get("model__pipeline_chunks", 1))
        if parts and row["model"].startswith(("DeepSeekV3", "Kimi_K2")):
            fields["model__stage_layers"] = ",".join(map(str, parts))
        if row["bf16_layers_first_last"] not in ("", "0+0"):
            fields["model__bf16_layers_last"] = int(row["bf16_layers_first_last"].split("+")[1])
        if row["mtp_layers"] and "w/o MTP" not in row["model"]:
            fields["model__mtp_layers"] = int(row["mtp_layers"])
        if row["exp_avg_dtype"] == "bfloat16":
            fields["model__moments"] = "bf16"
        if row["recompute_modules"]:
            fields.update(model__recompute="selective",
                          model__recompute_modules=row["recompute_modules"].replace("+", ","))
        if row["megatron_fsdp"] == "true":
            fields["model__zero_stage"] = 3
        elif row["fp8_param_gather"] == "true" and fields["model__precision"] == "fp8_mixed":
            fields["model__fp8_weights"] = True
        if row["cpu_offload_layers"] not in ("", "0"):  # what leaves is chosen here so that it fits
            fields.update(offload__technique="mix", offload__tier="host")
        if row["tp_comm_overlap"].startswith("true") and tensor > 1:
            fields["model__overlap_tensor"] = True
        graphs = bridge_graphs(row)
        if graphs:
            fields["model__cuda_graphs"] = graphs
        if experts:
            fields.update(bridge_experts(row))
        cases.add(name, **step(source, batch * sequence / (float(row["tok_s_gpu"]) * gpus), row["config_group"],
                               confidence=row["recipe_match"], **fields))
    return cases


AWS_MODELS = {"DeepSeek-V3": "deepseek-v3", "Qwen3-235B-A22B": "qwen3-235b-a22b", "Qwen3-30B-A3B": "qwen3-30b-a3b"}
AWS_SYSTEMS = {"B300": "cloud-8xb300", "H100-SXM-80GB": "cloud-8xh100"}


def aws_ep_dispatchers(rows):
    """Megatron-Bridge's library recipes: no graphs, the router operator by operator, fp32 gradients. Chunks of a stage
    that are not stated are two, recomputation that isn't said is full."""
    cases = CaseFile("Experts' dispatchers over EFA", "awslabs/awsome-distributed-ai 95b939cd, megatron-bridge/*/benchmarks. "
                     "Both of DeepEP's transports are one here.", {"median": 0.25, "p90": 0.45})
    for row in rows:
        tensor, pipeline, gpus = int(row["tp"]), int(row["pp"]), int(row["n_gpus"])
        overlaps = row["ep_overlap"] == "on"
        fields = {"hardware__profile": AWS_SYSTEMS[row["gpu"]], "model__name": AWS_MODELS[row["model"].split()[0]],
                  "model__framework": "megatron", "model__precision": "bf16_mixed", "model__dropout": 0,
                  "model__sequence": int(row["seq"]), "model__micro_batch": int(row["micro_batch"]),
                  "model__global_batch": int(row["global_batch"]), "model__tensor_parallel": tensor,
                  "model__sequence_parallel": True, "model__pipeline_parallel": pipeline,
                  "model__data_parallel": gpus // (tensor * pipeline), "model__zero_stage": 1,
                  "model__expert_parallel": int(row["ep"]), "model__expert_tensor_parallel": 1,
                  "model__expert_dispatcher": "nccl" if row["dispatcher"] == "alltoall" else "deepep",
                  "model__loss": "fused", "model__router_fusion": False}
        if overlaps:
            fields["model__overlap_experts"] = True
            if row["model"].startswith("Qwen3-235B"):
                fields["model__layers"] = 96
        if row["vpp"] not in ("", "1") and pipeline > 1:
            fields["model__pipeline_chunks"] = int(row["vpp"]) if row["vpp"].isdigit() else 2
        if row["recompute"] == "full" or row["recompute"].startswith("recipe default"):
            fields["model__recompute"] = "full"
        name = "{gpu} {n_gpus} {0} t{tp} p{pp} e{ep} b{micro_batch} {recompute:.9} {dispatcher} {ep_overlap}".format(
            fields["model__name"], **row)
        cases.add(name, **step("AWS " + ("all-to-all" if row["dispatcher"] == "alltoall" else "DeepEP"),
                               float(row["step_s"]), name, confidence="chunks and recomputation assumed", **fields))
    return cases


TITAN_MODELS = {"Llama3.1-8B": "llama-3.1-8b", "Llama3-8B": "llama-3-8b", "Llama3.1-405B": "llama-3.1-405b",
                "Llama3-70B": "llama-3-70b", "Llama2-13B": "llama-2-13b", "Llama2-70B": "llama-2-70b"}
TITAN_RECOMPUTE = {"selective": {"model__recompute": "operators"}, "selective op": {"model__recompute": "operators"},
                   "selective layer": {"model__recompute": "full", "model__recompute_every": 2},
                   "full": {"model__recompute": "full"}, "none": {}}


def torchtitan(rows):
    cases = CaseFile("torchtitan on H100 of 500 W and 96 GB, and on A100",
                     "pytorch/torchtitan benchmarks/*.md and docs/performance.md. Compiled where it says so. In pipelines "
                     "the number of micro-batches is not published: that of the ranks, the default (pipelining_utils.py of "
                     "9dec370), chunks or not. There FSDP keeps "
                     "what it gathered and reduces gradients once, which is ZeRO 1 in time.", {"median": 0.06, "p90": 0.15})
    for row in rows:
        sequence, batch, tensor = int(row["seq_len_filled"].split()[0]), int(row["local_bs"]), int(row["tp"])
        name = f"{row['config_group']} {row['n_gpus']} {row['tech']} {row['ac']} {sequence} {batch}"
        source = "torchtitan " + ("A100" if "A100" in row["gpu"] else "H100 of 500 W")
        if not row["tok_s_gpu"]:
            cases.add(name, source=source, confidence="exact", skip="out of memory")
            continue
        data, pipeline, context = int(row["fsdp"]), int(row["pp"]), int(row["cp"])
        chunks = 2 if row["pp_schedule"].startswith("Interleaved") else 1
        micro_batches = pipeline
        is_compiled, recipe = row["compile"].startswith("per "), row["float8"].split(" ")[0]
        # The whole loss was not in December 2024 (train.py of 9dec370); a split one never is.
        compiles_loss = is_compiled and (tensor > 1 or "9dec370" not in row["software"])
        fields = {"hardware__profile": "dgx-a100" if "A100" in row["gpu"] else "dgx-h100-500w-96gb",
                  "model__name": TITAN_MODELS[row["model"]], "model__framework": "eager",
                  "model__precision": "fp8_mixed" if row["float8"] else "bf16_mixed",
                  **({"model__fp8_recipe": recipe} if recipe in FP8_RECIPES else {}),
                  "model__fused_kernels": is_compiled,
                  **({"model__compile": True} if compiles_loss else {}), "model__attention_kernel": "flash2",
                  "model__optimizer_form": "fused", "model__sequence": sequence,
                  "model__micro_batch": batch // micro_batches, "model__gradient_accumulation": micro_batches,
                  "model__tensor_parallel": tensor, "model__sequence_parallel": tensor > 1,
                  "model__pipeline_parallel": pipeline, "model__context_parallel": context,
                  "model__data_parallel": data, **TITAN_RECOMPUTE[row["ac"]],
                  **({"model__zero_stage": 1, "model__fp32_gradients": True} if pipeline > 1 else
                     {"model__zero_stage": 3, "model__fp32_reduction": True})}
        if chunks > 1:
            fields["model__pipeline_chunks"] = chunks
        if context > 1:
            fields["model__context_exchange"] = "all_gather"
        if row["async_tp"] == "true":
            fields["model__overlap_tensor"] = True
        tokens = batch * data * sequence
        cases.add(name, **step(source, tokens / (float(row["tok_s_gpu"]) * int(row["n_gpus"])), row["config_group"],
                               confidence="exact" if pipeline == 1 else "micro-batches assumed", **fields))
    return cases


def bigscience_fill(row):
    """What a row leaves out and its section's heading or its size says; gives the confidence that remains."""
    stated = dict(re.findall(r"(LAYERS|HEADS|HIDDEN)=(\d+)", row["context"]))
    row["nhidden"] = row["nhidden"] or stated.get("HIDDEN", "")
    row["nheads"] = row["nheads"] or stated.get("HEADS", "")
    if row["nlayers"] == "" and "tweaked per row" not in row["notes"]:
        row["nlayers"] = stated.get("LAYERS", "")
    confidence = "text"
    if row["nlayers"] == "" and row["size"] and row["pp"] and row["nhidden"]:
        hidden, stages = int(row["nhidden"]), int(row["pp"])
        layers = (float(row["size"].rstrip("B")) * 1e9 - 250880 * hidden) / (12 * hidden * hidden)
        row["nlayers"], confidence = str(round(layers / stages) * stages), "layers from the size"
    if row["nheads"] == "":
        row["nheads"], confidence = "64", "heads assumed: those of the trials that state them and take as long"
    return confidence


def bigscience(rows):
    """BLOOM's trials: DeepSpeed's pipeline engine around Megatron-LM's layers of 2021, eight A100 of 80 GB with four
    Omni-Path links a machine. What the table doesn't say is the run's own script's (train/tr11-176B-ml of the same
    repository): every launch blocks, bf16 with fp32 gradients in DeepSpeed's BF16_Optimizer, Megatron-LM's default
    dropout."""
    cases = CaseFile("BigScience tr11: trials for BLOOM on A100",
                     "bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md. Sequences of 2,048, a "
                     "vocabulary of 250k, every layer recomputed; bf16, launches and dropout as in the run's script.",
                     {"median": 0.07, "p90": 0.15, "kendall": 0.8})
    for row in rows:
        name = f"line {row['line']}"
        source = "BigScience tr11"
        if not row["sec_per_iter"].replace(".", "", 1).isdigit():
            cases.add(name, source=source, confidence="text", skip="no time")
            continue
        confidence = bigscience_fill(row)
        if any(not row[key] for key in ("nhidden", "nlayers", "nheads", "dp", "tp", "pp", "mbs", "gbs")):
            cases.add(name, source=source, confidence="text", skip="the set-up is not stated in full")
            continue
        layers, hidden, heads = int(row["nlayers"]), int(row["nhidden"]), int(row["nheads"])
        shape = f"gpt-{layers}x{hidden}-{heads}"
        cases.models[shape] = {**gpt(layers, hidden, heads, 2048, 250880), "dropout": 0.1}
        group = f"{row['section']} {shape} {row['dp']}/{row['tp']}/{row['pp']}/{row['mbs']}"
        cases.add(name, **step(source, float(row["sec_per_iter"]), group, confidence=confidence,
                               hardware__profile="hgx-a100-4opa", model__launch_blocking=True,
                               model__name=shape, model__framework="megatron_2021", model__precision="bf16_mixed",
                               model__fp32_gradients=True,
                               model__flash_attention=False, model__optimizer="adam", model__optimizer_form="fused",
                               model__recompute="full", model__overlap_gradients=False,
                               model__zero_stage=int(row["zero_stage"] or 1),
                               model__global_batch=int(row["gbs"]), model__micro_batch=int(row["mbs"]),
                               model__tensor_parallel=int(row["tp"]), model__pipeline_parallel=int(row["pp"]),
                               model__data_parallel=int(row["dp"])))
    return cases


def nanotron(rows):
    cases = CaseFile("nanotron's grid on H100", "vinjn/nanotron-ultrascale-playbook 924e4d0, measured rows above 5 % MFU. "
                     "PyTorch eager, fused norms and rotary embedding, FlashAttention 2, no recomputation, 1F1B.",
                     {"median": 0.10, "p90": 0.25, "kendall": 0.85})
    for row in rows:
        if row["outcome"] != "measured":
            continue
        shape = "nanotron-" + row["model"].lower()
        cases.models[shape] = {
            "schema": "spillway.model", "version": 1, "title": row["model"], "source": "nanotron's script",
            "layers": int(row["layers"]), "hidden": int(row["hidden"]), "heads": int(row["heads"]),
            "feed_forward": int(row["intermediate"]), "vocabulary": int(row["vocab"]), "max_positions": 4096,
            "mask": "causal", "norm": "rms_norm", "norm_placement": "pre", "activation": "silu_gated",
            "positions": "rotary", "tied_embeddings": row["tied"] == "true"}
        name = "{model} {nodes} d{dp} t{tp} p{pp} b{micro_batch} z{zero_stage}".format(**row)
        if float(row["mfu_pct"]) < 5:
            cases.add(name, source="nanotron H100", confidence="rounded", skip="below 5 % MFU: the cluster's accidents")
            continue
        cases.add(name, **step("nanotron H100", float(row["step_s"]), name, confidence="rounded",
                               hardware__profile="cloud-8xh100", model__name=shape, model__framework="nanotron",
                               model__precision="bf16_mixed", model__attention_kernel="flash2", model__optimizer_form="fused",
                               model__zero_stage=int(row["zero_stage"]), model__micro_batch=int(row["micro_batch"]),
                               model__global_batch=256, model__tensor_parallel=int(row["tp"]),
                               model__sequence_parallel=row["sequence_parallel"] == "true",
                               model__pipeline_parallel=int(row["pp"]), model__data_parallel=int(row["dp"])))
    return cases


FMS_MODELS = {"Mistral-7B-v0.1": "mistral-7b", "Meta-Llama-3-8B": "llama-3-8b", "Llama-2-70b-hf": "llama-2-70b",
              "Llama-2-70B": "llama-2-70b", "Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b", "PowerLM-3b": "powerlm-3b",
              "gpt_bigcode-santacoder": "santacoder"}
FMS_OWN_MODELS = {
    "powerlm-3b": {
        "schema": "spillway.model", "version": 1, "title": "PowerLM 3B", "source": "ibm-research/PowerLM-3b",
        "layers": 40, "hidden": 2304, "heads": 36, "feed_forward": 9216, "vocabulary": 49152, "max_positions": 4096,
        "mask": "causal", "norm": "rms_norm", "norm_placement": "pre", "activation": "silu_gated",
        "positions": "rotary", "tied_embeddings": True},
    "santacoder": {
        **gpt(24, 2048, 16, 2048, 49280), "title": "SantaCoder 1.1B", "source": "bigcode/gpt_bigcode-santacoder",
        "kv_heads": 1, "fused_qkv": False}}


def fms_fields(row):
    """transformers' Trainer of 2024 with PEFT (rank 16 on attention, dropout 0.1), everything recomputed. foak: norms,
    rotary embedding and cross-entropy as one kernel each; liger: the head's product with it."""
    config, gpus = row["framework_config"], int(row["gpus"])
    is_fused, is_full = "foak" in config, row["method"] == "full"
    is_mixed = ("fp32 weights" if is_full else "autocast") in row["precision"]
    fields = {"hardware__profile": "dgx-a100", "model__framework": "huggingface_2024", "model__recompute": "full",
              "model__name": FMS_MODELS[row["model"].split("/")[1].removesuffix("-GPTQ")],
              "model__precision": "bf16_mixed" if is_mixed else "bf16", "model__dropout": 0,
              "model__sequence": int(row["seq"]), "model__micro_batch": int(row["micro_batch"]),
              "model__gradient_accumulation": int(row["grad_accum"]), "model__attention_kernel": "flash2",
              "model__fused_kernels": is_fused,
              "model__loss": "chunked" if "liger" in config else "fused" if is_fused else "fp32",
              "model__data_parallel": gpus, "model__zero_stage": 0 if row["sharding"] == "none" else 3}
    if not is_full:
        fields.update(model__trainable="lora" if row["method"].startswith("LoRA") else "qlora",
                      model__lora_dropout=0.1)
    # PEFT's own preparation, which the accelerated one leaves out (framework_plugin_bnb.py); FSDP keeps 16 bits.
    if config == "baseline-peft-bnb" and not is_mixed and row["sharding"] == "none":
        fields["model__fp32_unpacked"] = True
    return fields


def fms_acceleration(rows):
    cases = CaseFile("fms-acceleration: fine-tuning with Hugging Face's Trainer on A100",
                     "foundation-model-stack/fms-acceleration scripts/benchmarks. SXM or PCIe is not stated; GPTQ's 4 bits "
                     "are run as NF4's; fp16 as bf16. Rows that ran out of memory are left out here: their verdict is "
                     "what counts.", {"median": 0.08, "p90": 0.18})
    cases.models.update(FMS_OWN_MODELS)
    for row in rows:
        source = "fms-acceleration " + ("QLoRA" if row["method"].startswith("QLoRA") else row["method"].split()[0])
        name = "{model} {gpus} {method} {framework_config} {precision:.9} {seq} {micro_batch}".format(**row)
        if row["packed"] != "True" or row["model"].split("/")[1].removesuffix("-GPTQ") not in FMS_MODELS:
            cases.add(name, source=source, confidence="exact", skip="sequences of many lengths, or another model")
            continue
        if row["outcome"] != "measured":
            cases.add(name, source=source, confidence="exact", skip="out of memory")
            continue
        fields, role = fms_fields(row), role_by_hash(name)
        cases.add(name, source=source, metric="iteration_time", unit="s", value=float(row["step_s"]), role=role,
                  confidence="exact", **fields)
        if row["peak_alloc_gib"]:
            cases.add(name + " memory", source=source, metric="peak_allocated", unit="GiB",
                      value=float(row["peak_alloc_gib"]), role=role, confidence="exact", **fields)
    return cases


TABLES = {"megatron_bridge": megatron_bridge, "aws_ep_dispatchers": aws_ep_dispatchers, "torchtitan": torchtitan, "bigscience_tr11": bigscience,
          "nanotron_playbook_h100": nanotron, "fms_acceleration_a100": fms_acceleration}


def main():
    data, output = sys.argv[1:3]
    for name, read in TABLES.items():
        cases = read(table(data, name))
        with open(os.path.join(output, name + ".json"), "w", encoding="utf-8") as out:
            out.write(cases.document())
        print(f"{name}: {len(cases.cases)} cases, {sum('skip' in case for case in cases.cases)} skipped")


if __name__ == "__main__":
    main()
