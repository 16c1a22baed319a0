"""The runs that predictions are held to: models, batches, and each technique as PyTorch and as spillway call it."""

# Model of `python -m spillway.torch` -> (spillway's name, tokens).
MODELS = {
    "gpt2-124m": ("gpt2-small", 1024),
    "gpt2-774m": ("gpt2-large", 1024),
    "llama-1b": ("llama-3.2-1b", 1024),
    "bert-large": ("bert-large", 512),
}
RECORDED = [("gpt2-124m", 8), ("gpt2-774m", 4), ("llama-1b", 4), ("bert-large", 8), ("gpt2-774m", 8), ("llama-1b", 8)]
PLANNED = [("gpt2-774m", 4), ("llama-1b", 4), ("gpt2-774m", 8), ("llama-1b", 8)]
# spillway.torch runs a layer's whole attention module again, and moves every storage of 1 MiB and more that a layer but
# the last saves, whether the way has time for it or not.
SELECTIVE = ["model.recompute=selective", "model.recompute_modules=attention"]
EVERYTHING = ["offload.technique=ssdtrain", "offload.adaptive=false", "offload.least_elements=524288"]
# What the first says to spillway.torch, the second says to a scenario.
TECHNIQUES = {
    "keep": [],
    "full": ["model.recompute=full"],
    "selective": SELECTIVE,
    "every:2": ["model.recompute=full", "model.recompute_every=2"],
    "host": EVERYTHING + ["offload.tier=host"],
    "ssdtrain": EVERYTHING + ["offload.tier=drive"],
    "checkpoints-host": ["model.recompute=full"] + EVERYTHING + ["offload.tier=host"],
    "selective+host": SELECTIVE + EVERYTHING + ["offload.tier=host"],
}
# Of one process each.
PROCESSES = [["keep", "full", "selective", "host"], ["every:2", "ssdtrain", "checkpoints-host", "selective+host"]]
METRICS = {"step_time": ("step_time_ns", "ns"), "peak_allocated": ("peak_allocated_bytes", "B"),
           "peak_reserved": ("peak_reserved_bytes", "B")}
# Of `spillway validate kernels`, which asks for no prediction of `spillway run`.
UNITS = {**{metric: unit for metric, (_, unit) in METRICS.items()}, "trainer_step_time": "ns"}

# Devices by name, the longest that fits first; for a GPU that was not calibrated.
PROFILES = {"H100 80GB HBM3": "h100-sxm5-80gb", "H100 NVL": "h100-nvl-94gb", "H100 PCIe": "h100-pcie-80gb",
            "H100": "h100-sxm5-80gb", "H200": "h200-sxm-141gb", "A100-SXM4-80GB": "a100-sxm4-80gb",
            "A100-SXM4-40GB": "a100-sxm4-40gb", "A100 80GB PCIe": "a100-pcie-80gb", "RTX 4090": "rtx-4090"}


def case_name(model, batch, technique):
    return f"{model} b{batch} {technique}"


def plain_case(model, batch):
    return case_name(model, batch, "keep, recorded")


def profile_of(device):
    for words, profile in PROFILES.items():
        if words in device:
            return profile
    return None


def scenario(model, batch, hardware):
    """The step that spillway.torch trains: transformers' modules uncompiled, bf16 throughout under a fused AdamW, the loss
    in fp32, on logits that are cut by a token unless the model is BERT."""
    name, sequence = MODELS[model]
    return {"schema": "spillway-scenario", "version": 1, "title": f"{model}, batch {batch}",
            "model": {"name": name, "sequence": sequence, "micro_batch": batch, "precision": "bf16",
                      "framework": "huggingface", "fused_kernels": False,
                      "loss": "fp32" if name.startswith("bert") else "sliced", "holds_logits": True,
                      "optimizer_form": "fused"},
            "hardware": {"profile": hardware}}
