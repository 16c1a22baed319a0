#!/usr/bin/env python3
"""Writes the case files of sources that were predicted before anything was fitted or mended for them.

Usage: make_blind.py [OUTPUT]
  OUTPUT  folder to write to; default: this one

The tables below are the figures as their sources print them, with the settings that the sources' own code says. How a
row's words become a set-up is stated once for each source; no set-up is chosen row by row.
"""
import os
import sys

from make_cases import CaseFile, gpt, write


def llama(title, source, layers, hidden, heads, kv_heads, feed_forward, vocabulary=128256):
    return {"schema": "spillway.model", "version": 1, "title": title, "source": source, "layers": layers,
            "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "feed_forward": feed_forward,
            "vocabulary": vocabulary, "max_positions": 4096, "mask": "causal", "norm": "rms_norm",
            "norm_placement": "pre", "activation": "silu_gated", "positions": "rotary", "tied_embeddings": False}


def add_step(cases, name, seconds, peak, gib, skip=None, **fields):
    """Its time, and its peak, a metric of memory; skip: why the time alone is left out."""
    why = {"skip": skip} if skip else {}
    cases.add(name, metric="iteration_time", unit="s", value=round(seconds, 4), **fields, **why)
    cases.add(name + " memory", metric=peak, unit="GiB", value=gib, **fields)


# KempnerInstitute/KempnerForge 01b461a, benchmarks/mfu_scaling: GPUs, model, tensor split, replicas, tokens/s of all,
# peak allocated (GiB), micro-batch, accumulation, compiled. Micro-batches are the script's, which its text contradicts
# for the first two rows.
KEMPNER = [
    (1, "7b", 1, 1, 10471, 80.7, 2, 4, True), (2, "7b", 1, 2, 18728, 62.4, 2, 4, True),
    (2, "7b", 2, 1, 13163, 57.8, 4, 2, True), (4, "7b", 1, 4, 38983, 61.1, 4, 2, True),
    (4, "7b", 4, 1, 25135, 39.4, 4, 2, True), (4, "7b", 2, 2, 25980, 45.9, 4, 2, True),
    (8, "7b", 4, 2, 44299, 32.7, 4, 2, True), (8, "13b", 1, 8, 35405, 88.5, 4, 4, False),
    (8, "13b", 4, 2, 27345, 45.1, 4, 4, True), (16, "7b", 4, 4, 82988, 29.4, 4, 2, True),
    (16, "13b", 4, 4, 53814, 39.2, 4, 4, True), (32, "7b", 4, 8, 155917, 27.6, 4, 2, True),
    (32, "13b", 4, 8, 104309, 36.3, 4, 4, True), (32, "70b", 4, 8, 17657, 93.2, 2, 4, True),
]


def kempner():
    cases = CaseFile("KempnerForge: FSDP and tensor parallelism on H200, April 2026",
                     "KempnerInstitute/KempnerForge 01b461a (benchmarks/mfu_scaling, 2026-04-05): machines of four H200. "
                     "Weights, gradients and moments in bf16; gradients reduced in fp32; every block recomputed; fused "
                     "AdamW; PyTorch's attention and its cross-entropy on the logits as they are. Replicas reduce in the "
                     "last micro-batch alone. Tensor ranks hold the embedding and, for the loss, the logits whole. GB are 2^30 "
                     "bytes.",
                     {"median": 0.1, "p90": 0.2})
    cases.models["kempner-13b"] = llama("KempnerForge 13B", "the report's table", 40, 5120, 40, 8, 17920)
    names = {"7b": "llama-3-8b", "13b": "kempner-13b", "70b": "llama-3-70b"}
    for gpus, model, tensor, replicas, rate, memory, batch, accumulation, is_compiled in KEMPNER:
        fields = {"confidence": "exact", "hardware__profile": "dgx-h200", "hardware__set__gpu_count": "4",
                  "model__name": names[model], "model__precision": "bf16", "model__sequence": 4096,
                  "model__micro_batch": batch, "model__gradient_accumulation": accumulation,
                  "model__fused_kernels": is_compiled, "model__optimizer_form": "fused", "model__recompute": "full",
                  "model__loss": "native", "model__attention_kernel": "flash2", "model__tensor_parallel": tensor,
                  "model__sequence_parallel": tensor > 1, "model__data_parallel": replicas,
                  "model__zero_stage": 3 if replicas > 1 else 0, "model__fp32_reduction": replicas > 1,
                  "model__late_reduction": replicas > 1, **({"model__whole_vocabulary": True} if tensor > 1 else {})}
        kind = "KempnerForge H200" + (", tensor ranks" if tensor > 1 else "")
        name = f"{gpus} {model} t{tensor} d{replicas}"
        add_step(cases, name, batch * accumulation * replicas * 4096 / rate, "peak_allocated", memory, source=kind, **fields)
    return cases


# foundation-model-stack/fms-fsdp, README of 2025-07 (compiled) and of February 2024 (not): model, GPUs, GPU, sharded
# over, recomputed every n-th block (0: none), micro-batch, tokens/s a GPU.
FMS_FSDP = [
    ("llama-2-7b", 128, "A100", "machine", 0, 2, 4550, True), ("llama-2-13b", 128, "A100", "all", 3, 2, 2150, True),
    ("codellama-34b", 128, "A100", "all", 1, 2, 820, True), ("llama-2-70b", 128, "A100", "all", 1, 2, 410, True),
    ("llama-2-7b", 96, "H100", "machine", 0, 2, 9600, True), ("llama-2-13b", 96, "H100", "all", 4, 2, 4850, True),
    ("codellama-34b", 96, "H100", "all", 1, 2, 1830, True), ("llama-2-70b", 96, "H100", "all", 1, 2, 890, True),
    ("llama-2-7b", 128, "A100", "machine", 0, 2, 3760, False), ("llama-2-13b", 128, "A100", "machine", 0, 1, 1700, False),
    ("codellama-34b", 128, "A100", "all", 1, 8, 772, False), ("llama-2-70b", 128, "A100", "all", 1, 6, 380, False),
]


def fms_fsdp():
    cases = CaseFile("fms-fsdp: Llama 2 under FSDP on A100 and H100",
                     "foundation-model-stack/fms-fsdp README.md (5a296af, July 2025: compiled; 0d31998, 2024: not). "
                     "Sequences of 4,096, gradients reduced in bf16, AdamW by lists. How many blocks the compiled runs "
                     "recompute is read off their HFU over MFU. Of HSDP each machine "
                     "shares out a copy.",
                     {"median": 0.1, "p90": 0.2})
    for model, gpus, gpu, over, every, batch, rate, is_compiled in FMS_FSDP:
        fields = {"confidence": "text", "hardware__profile": "dgx-a100" if gpu == "A100" else "dgx-h100",
                  "hardware__set__scale_out__bandwidth": "6.25 GB/s" if gpu == "A100" else "12.5 GB/s",
                  "model__name": model, "model__sequence": 4096, "model__micro_batch": batch,
                  "model__fused_kernels": is_compiled, "model__attention_kernel": "flash2", "model__loss": "native",
                  "model__data_parallel": gpus, "model__zero_stage": 3}
        if over == "machine":
            fields["model__shard_groups"] = gpus // 8
        if every:
            fields.update(model__recompute="full", model__recompute_every=every)
        cases.add(f"{model} {gpus} {gpu} {'compiled' if is_compiled else 'eager'}",
                  source="fms-fsdp" if is_compiled else "fms-fsdp, not compiled", metric="iteration_time", unit="s",
                  value=round(batch * 4096 / rate, 4), **fields)
    return cases


# pytorch/ao torchao/float8/README.md, of torch 2.7 (2025): recipe, tokens/s a GPU, peak GB.
TORCHAO = [(None, 6150, 47.65), ("tensorwise", 7689.5, 47.77), ("rowwise", 6768, 47.79)]


def torchao():
    cases = CaseFile("torchao float8: Llama 3 8B on eight H100, 2025",
                     "pytorch/ao torchao/float8/README.md: torchtitan 0.0.2, FSDP2, compiled, sequences of 8,192, every "
                     "second product kept. The machine is taken to be torchtitan's own, H100 of 500 W: as DGX H100 all three come "
                     "out 22 % too fast. The peak is torchtitan's, which is what PyTorch has reserved, in 2^30 bytes.",
                     {"median": 0.1, "p90": 0.2})
    for recipe, rate, memory in TORCHAO:
        fields = {"confidence": "machine assumed", "hardware__profile": "dgx-h100-500w-96gb", "model__name": "llama-3-8b",
                  "model__precision": "fp8_mixed" if recipe else "bf16_mixed", "model__sequence": 8192,
                  "model__micro_batch": 1, "model__data_parallel": 8, "model__zero_stage": 3,
                  "model__fp32_reduction": True, "model__recompute": "operators", "model__optimizer_form": "fused",
                  "model__attention_kernel": "flash2"}
        if recipe:
            fields["model__fp8_recipe"] = recipe
        add_step(cases, recipe or "bf16", 8192 / rate, "peak_reserved", memory, source="torchao", **fields)
    return cases


# pytorch/torchtune README.md of 2025. Full fine-tuning of Llama 3.2 3B in bf16 on one A100, two packed sequences of 4,096:
# name, peak, tokens/s, settings.
TORCHTUNE_FULL = [
    ("packed", 60.0, 7075, {"model__fused_kernels": False, "model__loss": "fp32"}),
    ("compiled", 51.0, 8998, {"model__loss": "fp32"}),
    ("compiled, chunked loss", 42.9, 9174, {"model__loss": "native"}),
    ("compiled, chunked loss, recomputed", 24.9, 7210, {"model__loss": "native", "model__recompute": "full"}),
]
# Llama 3.1, two packed sequences of 2,048, compiled: name, machine, replicas, peak, tokens/s, settings.
TORCHTUNE_LORA = [
    ("8B LoRA RTX 4090", "workstation-4090", 1, 16.2, 3083, {"model__name": "llama-3.1-8b", "model__recompute": "full"}),
    ("8B LoRA A6000", "a6000-1gpu", 1, 30.3, 4699, {"model__name": "llama-3.1-8b"}),
    ("8B QLoRA RTX 4090", "workstation-4090", 1, 7.4, 2413,
     {"model__name": "llama-3.1-8b", "model__trainable": "qlora", "model__recompute": "full"}),
    ("70B LoRA 8 A100", "dgx-a100", 8, 27.6, 3497,
     {"model__name": "llama-3.1-70b", "model__recompute": "full", "model__lora_rank": 16, "model__zero_stage": 3}),
]


def torchtune():
    cases = CaseFile("torchtune: fine-tuning on few GPUs, 2024 and 2025",
                     "pytorch/torchtune README.md, settings from its recipes. Everything in bf16; peaks are PyTorch's, of "
                     "active or allocated memory. The chunked loss takes fp32 copies of an eighth of the logits at a time. "
                     "Adapters (rank 8, 16 for 70B) on every matrix but the keys', run as on every matrix. tokens/s of "
                     "eight GPUs are taken as one GPU's times eight.", {"median": 0.1, "p90": 0.2})
    common = {"confidence": "text", "model__precision": "bf16", "model__optimizer_form": "fused"}
    for name, memory, rate, own in TORCHTUNE_FULL:
        fields = {**common, "hardware__profile": "a100-80gb-1gpu", "model__name": "llama-3.2-3b", "model__sequence": 4096,
                  "model__micro_batch": 2, **own}
        add_step(cases, f"3B {name}", 8192 / rate, "peak_allocated", memory, source="torchtune full", **fields)
    for name, machine, replicas, memory, rate, own in TORCHTUNE_LORA:
        fields = {**common, "hardware__profile": machine, "model__sequence": 2048, "model__micro_batch": 2,
                  "model__loss": "native", "model__trainable": "lora", "model__lora_rank": 8,
                  "model__lora_targets": "all_linear", "model__lora_weights": "same", "model__data_parallel": replicas,
                  **own}
        skip = "97 % of an RTX A6000's peak: another GPU" if "A6000" in name else None
        add_step(cases, name, 4096 * replicas / rate, "peak_allocated", memory, skip, source="torchtune adapters", **fields)
    return cases


# Lightning-AI/litgpt: model, kind of weights, rank, tokens, micro-batch, peak allocated in 10^9 bytes, GPU, dropout.
LITGPT = [
    # tutorials/resource-tables.md, October 2023: the longest of Alpaca's sequences
    ("llama-2-7b", "lora", 8, 1304, 1, 21.30, "a100-40gb-1gpu"), ("llama-2-7b", "nf4", 8, 1304, 1, 14.14, "a100-40gb-1gpu"),
    ("llama-2-7b", "nf4_double", 8, 1304, 1, 13.84, "a100-40gb-1gpu"),
    ("llama-2-7b", "lora", 8, 1304, 2, 29.07, "a100-40gb-1gpu"),
    ("llama-2-13b", "lora", 8, 1304, 1, 38.12, "a100-40gb-1gpu"),
    ("llama-2-13b", "nf4", 8, 1304, 1, 23.14, "a100-40gb-1gpu"),
    ("llama-2-13b", "nf4_double", 8, 1304, 1, 22.55, "a100-40gb-1gpu"),
    # config_hub/finetune/README.md, 2024: cut at 512 tokens
    ("llama-2-7b", "lora", 32, 512, 2, 19.77, "a10"), ("llama-2-7b", "nf4", 32, 512, 2, 13.68, "a10"),
    ("llama-3-8b", "lora", 32, 512, 1, 19.73, "a10"), ("llama-3-8b", "nf4", 32, 512, 2, 17.41, "a10"),
    ("llama-3.2-1b", "full", 0, 512, 4, 8.70, "a10"), ("llama-3.2-1b", "lora", 32, 512, 1, 4.49, "a10"),
    ("llama-3.2-1b", "nf4", 32, 512, 2, 5.53, "a10"), ("llama-3.2-3b", "full", 0, 512, 4, 16.51, "a10"),
    ("llama-3.2-3b", "lora", 32, 512, 1, 9.67, "a10"), ("llama-3.2-3b", "nf4", 32, 512, 2, 10.30, "a10"),
    ("mistral-7b", "lora", 32, 512, 2, 20.66, "a10"), ("mistral-7b", "nf4", 32, 512, 2, 14.29, "a10"),
]


def litgpt():
    cases = CaseFile("LitGPT: peak memory of fine-tuning on one GPU, 2023 and 2024",
                     "Lightning-AI/litgpt tutorials/resource-tables.md (October 2023) and config_hub/finetune/README.md "
                     "(2024), settings from the scripts and configurations. Everything in bf16, adapters too (of queries "
                     "and values, run as of queries, keys and values; dropout 0.05); nothing recomputed; loss on the "
                     "logits as they are, 128 tokens at a time there, all here. GB are 10^9 bytes of max_memory_allocated.", {"median": 0.05, "p90": 0.1})
    cases.models["litgpt-1b"] = llama("Llama 3.2 1B, head apart", "LitGPT ties no weights", 16, 2048, 32, 8, 8192)
    cases.models["litgpt-3b"] = llama("Llama 3.2 3B, head apart", "LitGPT ties no weights", 28, 3072, 24, 8, 8192)
    for model, kind, rank, tokens, batch, memory, gpu in LITGPT:
        own = model.replace("llama-3.2", "litgpt")
        fields = {"confidence": "exact", "hardware__profile": gpu, "model__name": own, "model__precision": "bf16",
                  "model__sequence": tokens, "model__micro_batch": batch, "model__fused_kernels": False,
                  "model__loss": "native", "model__optimizer_form": "foreach"}
        if kind != "full":
            fields.update(model__trainable="lora", model__lora_rank=rank, model__lora_targets="qkv",
                          model__lora_weights="same", model__lora_dropout=0.05)
            if kind != "lora":
                fields.update(model__base_weights=kind, model__keeps_packed_inputs=True)
        why = {"skip": "4 bytes a parameter, less than weights, gradients and AdamW's moments"} if kind == "full" else {}
        cases.add(f"{model} {kind} {batch}x{tokens}", source="LitGPT" + (", NF4" if kind.startswith("nf4") else ""),
                  metric="peak_allocated", unit="GB", value=memory, **fields, **why)
    return cases


# NVIDIA NeMo, docs/source/performance/performance_summary.md of release 24.07, the page of 24.12, and for 25.02 that
# page and examples/llama of Megatron-LM: model, GPUs, batch, micro-batch, sequence, t, p, c, v, tokens/s a GPU.
NEMO = {
    "24.07": [
        ("nemo-gpt3-5b", 64, 2048, 4, 2048, 1, 1, 1, 1, 22521), ("nemo-gpt3-20b", 64, 256, 2, 2048, 2, 1, 1, 1, 5851),
        ("gpt3-175b", 128, 256, 1, 2048, 4, 8, 1, 6, 726), ("gpt3-175b", 512, 2048, 2, 2048, 4, 8, 1, 6, 782),
        ("llama-2-7b", 8, 128, 1, 4096, 1, 1, 1, 1, 16847), ("llama-2-13b", 16, 128, 1, 4096, 1, 4, 1, 10, 8646),
        ("llama-2-70b", 64, 128, 1, 4096, 4, 4, 1, 20, 1707), ("llama-3-8b", 8, 128, 1, 8192, 1, 1, 2, 1, 12036),
        ("llama-3-70b", 64, 128, 1, 8192, 4, 4, 2, 5, 1533)],
    "24.12": [
        ("nemo-gpt3-5b", 64, 2048, 4, 2048, 1, 1, 1, 1, 23406), ("nemo-gpt3-20b", 64, 256, 2, 2048, 2, 1, 1, 1, 5851),
        ("gpt3-175b", 128, 256, 1, 2048, 4, 8, 1, 6, 716), ("gpt3-175b", 512, 2048, 2, 2048, 4, 8, 1, 6, 825),
        ("llama-2-7b", 8, 128, 1, 4096, 1, 1, 1, 1, 16934), ("llama-2-13b", 16, 128, 1, 4096, 1, 4, 1, 10, 8715),
        ("llama-2-70b", 64, 128, 1, 4096, 4, 4, 1, 20, 1728), ("llama-3-8b", 8, 128, 1, 8192, 1, 1, 2, 1, 12273),
        ("llama-3-70b", 64, 128, 1, 8192, 4, 4, 2, 5, 1524)],
    "25.02": [
        ("gpt3-175b", 512, 2048, 2, 2048, 4, 8, 1, 6, 866), ("llama-3-8b", 8, 128, 1, 8192, 1, 1, 2, 1, 13812),
        ("llama-3-70b", 64, 128, 1, 8192, 4, 8, 1, 5, 1621)],
}


def nemo_gpt(title, layers, hidden, heads):
    return {**gpt(layers, hidden, heads, 2048, 51200), "title": title, "source": "NeMo-Megatron-Launcher's configuration"}


def nemo():
    cases = CaseFile("NeMo 24.07 to 25.02: fp8 on DGX H100",
                     "NVIDIA/NeMo docs/source/performance/performance_summary.md (24.07), the documentation of 24.12 and "
                     "25.02, Megatron-LM's examples/llama. Delayed scaling, distributed optimizer, gradients in bf16, "
                     "tensor groups' collectives beside their products, as in NeMo's performance scripts.",
                     {"median": 0.06, "p90": 0.15})
    cases.models["nemo-gpt3-5b"] = nemo_gpt("NeMo GPT-3 5B", 24, 4096, 32)
    cases.models["nemo-gpt3-20b"] = nemo_gpt("NeMo GPT-3 20B", 44, 6144, 48)
    for release, rows in NEMO.items():
        for model, gpus, batch, micro, sequence, tensor, pipeline, context, chunks, rate in rows:
            fields = {"confidence": "text", "hardware__profile": "dgx-h100", "model__name": model,
                      "model__framework": "megatron", "model__precision": "fp8_mixed", "model__fp8_recipe": "delayed",
                      "model__dropout": 0, "model__sequence": sequence, "model__micro_batch": micro,
                      "model__global_batch": batch, "model__tensor_parallel": tensor,
                      "model__sequence_parallel": tensor > 1, "model__overlap_tensor": tensor > 1,
                      "model__pipeline_parallel": pipeline, "model__context_parallel": context,
                      "model__data_parallel": gpus // (tensor * pipeline * context), "model__zero_stage": 1,
                      "model__loss": "fused", "model__main_gradients": "bf16"}
            if chunks > 1:
                fields["model__pipeline_chunks"] = chunks
            cases.add(f"{release} {model} {gpus} {batch}x{sequence}", source="NeMo " + release, metric="iteration_time",
                      unit="s", value=round(batch * sequence / (rate * gpus), 4), **fields)
    return cases


# jzhang38/TinyLlama README.md (2023): 24,000 tokens/s a GPU, 56 % of the peak; karpathy/nanoGPT README.md (December 2022).
def small():
    cases = CaseFile("TinyLlama and nanoGPT: steps of small models on A100, 2022 and 2023",
                     "jzhang38/TinyLlama README.md: 1.1B on 16 A100 of 40 GB, eight sequences of 2,048 a GPU, kernels of "
                     "FlashAttention's repository. karpathy/nanoGPT README.md: twelve sequences of 1,024 on one A100, "
                     "PyTorch before FlashAttention, train.py under torch.autocast; the compiled step is that of PyTorch "
                     "2.0, stated as fused kernels in 16 bits.", {"median": 0.1, "p90": 0.2})
    cases.add("TinyLlama 16 A100", source="TinyLlama", metric="iteration_time", unit="s",
              value=round(1024 * 2048 / (24000 * 16), 4), confidence="text", hardware__profile="dgx-a100-40gb",
              model__name="tinyllama-1.1b", model__sequence=2048, model__micro_batch=8, model__global_batch=1024,
              model__data_parallel=16, model__zero_stage=3, model__loss="fused", model__attention_kernel="flash2")
    for is_compiled, time in ((False, 250), (True, 135)):
        cases.add("nanoGPT " + ("compiled" if is_compiled else "eager"), source="nanoGPT", metric="iteration_time",
                  unit="ms", value=time, confidence="text", hardware__profile="a100-40gb-1gpu", model__name="gpt2-small",
                  model__sequence=1024, model__micro_batch=12, model__flash_attention=False,
                  model__fused_kernels=is_compiled, model__loss="native" if is_compiled else "fp32",
                  model__autocast=None if is_compiled else True, model__dropout=0)
    return cases


FILES = {"kempner": kempner, "fms-fsdp": fms_fsdp, "torchao": torchao, "torchtune": torchtune, "litgpt": litgpt,
         "nemo": nemo, "small-gpts": small}
# What groups reach where they miss what their file asks.
HELD_TO = {
    "kempner": [{"source": "KempnerForge H200", "metric": "iteration_time", "median": 0.17, "p90": 0.25},
                {"source": "KempnerForge H200, tensor ranks", "metric": "iteration_time", "median": 0.115, "p90": 0.215},
                {"source": "KempnerForge H200, tensor ranks", "metric": "peak_allocated", "p90": 0.215}],
    "torchtune": [{"source": "torchtune adapters", "metric": "iteration_time", "median": 0.2, "p90": 0.42},
                  {"source": "torchtune adapters", "metric": "peak_allocated", "median": 0.23, "p90": 0.28}],
    "litgpt": [{"source": "LitGPT, NF4", "metric": "peak_allocated", "median": 0.12, "p90": 0.17}],
    "small-gpts": [{"source": "nanoGPT", "metric": "iteration_time", "median": 0.13}],
}


def main():
    output = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    write({name: make() for name, make in FILES.items()}, HELD_TO, output)


if __name__ == "__main__":
    main()
