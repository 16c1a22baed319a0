"""Small models of the well-known kinds, trained for some steps plainly or under a plan."""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
SKIPPED = 77  # meson's word for it


def need_torch():
    """Ends the test as skipped where PyTorch can't be imported."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}; apt-get install python3-torch")
        sys.exit(SKIPPED)


LAYERS, WIDTH, HEADS, INNER, VOCABULARY, BATCH, SEQUENCE = 4, 64, 4, 256, 96, 2, 24
SIZES = {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "inner": INNER, "vocabulary": VOCABULARY}
LIKE = ("gpt2", "llama", "mixtral", "bert")


def shape(like):
    from spillway.torch import plain_models
    more = {"llama": {"groups": 2, "dropout": 0.1}, "mixtral": {"experts": 4, "dropout": 0.1}}.get(like, {})
    return getattr(plain_models, like)(**SIZES, **{"longest": 128}, **more)


def model_of(like):
    import torch
    from spillway.torch import plain_models
    torch.manual_seed(11)
    return plain_models.Transformer(shape(like))


class Trained:
    """What two steps of training give: losses, the last gradients, the weights."""

    def __init__(self, model, steps=2, inside=None):
        import torch
        torch.manual_seed(5)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.losses = []
        for _ in range(steps):
            ids = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1))
            loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            if inside is not None:
                inside()
            loss.backward()
            self.losses.append(loss.item())
            self.gradients = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
                              for parameter in model.parameters()]  # None: an expert without tokens
            optimizer.step()
            optimizer.zero_grad()
        self.weights = [parameter.detach().clone() for parameter in model.parameters()]

    def equals(self, other):
        import torch
        return self.losses == other.losses and all(
            torch.equal(one, two) for mine, theirs in ((self.gradients, other.gradients), (self.weights, other.weights))
            for one, two in zip(mine, theirs))


def model_file(folder, like):
    """The same model for spillway, which refuses a file whose count of parameters isn't its shape's."""
    count = sum(parameter.numel() for parameter in model_of(like).parameters())
    said = {"schema": "spillway.model", "version": 1, "title": f"small {like}", "source": "tests/python/fixture.py",
            "layers": LAYERS, "hidden": WIDTH, "heads": HEADS, "feed_forward": INNER, "vocabulary": VOCABULARY,
            "max_positions": 128, "norm_placement": "pre", "dropout": 0.1,
            "parameters": {"count": count, "count_source": "config", "source": "tests/python/fixture.py"}}
    if like == "gpt2":
        said.update(mask="causal", norm="layer_norm", activation="gelu", positions="learned", fused_qkv=True,
                    qkv_bias=True, output_bias=True, feed_forward_bias=True, tied_embeddings=True)
    else:
        said.update(mask="causal", norm="rms_norm", activation="silu_gated", positions="rotary", kv_heads=2,
                    tied_embeddings=True)
    if like == "mixtral":
        del said["kv_heads"]
        said.update(tied_embeddings=False, experts={"count": 4, "active": 2, "width": INNER})
    path = os.path.join(folder, f"{like}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(said, file)
    return path


def scenario_file(folder, like, **settings):
    """One of that model's steps on a GPU; `settings`: more sections."""
    document = {"schema": "spillway-scenario", "version": 1, "title": f"small {like}",
                "model": {"name": model_file(folder, like), "sequence": SEQUENCE, "micro_batch": BATCH,
                          "precision": "fp32"},
                "hardware": {"profile": "h100-80gb-1gpu"}}
    for section, values in settings.items():
        document[section] = {**document.get(section, {}), **values} if isinstance(values, dict) else values
    path = os.path.join(folder, f"{like}-scenario.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path
