"""Shapes of the models that record.py builds, and what spillway needs to predict their steps unseen."""

# layers, width, heads, feed-forward width, vocabulary, gated (Llama's) or plain feed-forward, causal
SHAPES = {
    "gpt2-small": (12, 768, 12, 3072, 50257, False, True),
    "gpt2-large": (36, 1280, 20, 5120, 50257, False, True),
    "llama-1b": (16, 2048, 32, 8192, 32000, True, True),
    "bert-large": (24, 1024, 16, 4096, 30522, False, False),
}


def parameter_count(shape, sequence):
    layers, width, _, inner, vocabulary, gated, _ = shape
    attention = 4 * (width * width + width)
    feed_forward = 2 * width * inner + inner + width + (width * inner + inner if gated else 0)
    embedding = vocabulary * width + sequence * width
    return embedding + layers * (4 * width + attention + feed_forward) + 2 * width + vocabulary * width


def model_file(name, sequence):
    """By docs/schemas/model.schema.json."""
    layers, width, heads, inner, vocabulary, gated, causal = SHAPES[name]
    return {
        "schema": "spillway.model", "version": 1, "title": f"{name}, as record.py builds it",
        "source": "traces/pytorch/record.py", "layers": layers, "hidden": width, "heads": heads, "feed_forward": inner,
        "vocabulary": vocabulary, "max_positions": sequence, "mask": "causal" if causal else "bidirectional",
        "norm": "layer_norm", "norm_placement": "pre", "activation": "silu_gated" if gated else "gelu",
        "positions": "learned", "fused_qkv": True, "qkv_bias": True, "output_bias": True, "feed_forward_bias": True,
        "parameters": {"count": parameter_count(SHAPES[name], sequence), "count_source": "config",
                       "source": "traces/pytorch/shapes.py"}}


def scenario(name, sequence, batch, model_path, hardware):
    """The same step for `spillway run`: bf16 throughout, fused AdamW, the loss in fp32."""
    return {
        "schema": "spillway-scenario", "version": 1, "title": f"{name}, batch {batch}",
        "model": {"name": model_path, "sequence": sequence, "micro_batch": batch, "precision": "bf16",
                  "optimizer_form": "fused", "loss": "fp32"},
        "hardware": {"profile": hardware}}
