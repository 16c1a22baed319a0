"""One training step of a well-known model with random weights and random tokens."""
import contextlib
import inspect

import torch
from torch.nn import functional

from ..errors import InputError
from . import plain_models

IMPLEMENTATIONS = ("auto", "transformers", "plain")
PRECISIONS = ("bf16", "amp", "fp32")


def has_transformers():
    try:
        import transformers  # noqa: F401
    except ImportError:
        return False
    return True


def _hugging_face(name, shape):
    import transformers
    if name.startswith("gpt2") or name == "tiny":
        config = transformers.GPT2Config(n_layer=shape["layers"], n_embd=shape["width"], n_head=shape["heads"],
                                         vocab_size=shape["vocabulary"], n_positions=shape["longest"], use_cache=False)
        return transformers.GPT2LMHeadModel(config)
    if name.startswith("llama"):
        config = transformers.LlamaConfig(
            num_hidden_layers=shape["layers"], hidden_size=shape["width"], num_attention_heads=shape["heads"],
            num_key_value_heads=shape["groups"], intermediate_size=shape["inner"], vocab_size=shape["vocabulary"],
            max_position_embeddings=shape["longest"], tie_word_embeddings=shape["tied"], use_cache=False)
        return transformers.LlamaForCausalLM(config)
    config = transformers.BertConfig(num_hidden_layers=shape["layers"], hidden_size=shape["width"],
                                     num_attention_heads=shape["heads"], intermediate_size=shape["inner"],
                                     vocab_size=shape["vocabulary"], max_position_embeddings=shape["longest"])
    return transformers.BertForMaskedLM(config)


class Training:
    """Model, optimizer and tokens; step() trains once and returns the loss."""

    def __init__(self, name, *, batch, sequence, precision="bf16", device="cpu", implementation="auto", layers=None,
                 vocabulary=None, seed=1):
        if name not in plain_models.MODELS:
            raise InputError(f"no model is called {name}; there are {', '.join(plain_models.MODELS)}")
        shape, self.spillway_name = plain_models.MODELS[name]
        shape = {**shape, "longest": max(sequence, min(shape["longest"], 4096))}
        shape["layers"], shape["vocabulary"] = layers or shape["layers"], vocabulary or shape["vocabulary"]
        if implementation == "transformers" and not has_transformers():
            raise InputError("transformers can't be imported; install it, or use --implementation plain")
        self.implementation = "transformers" if implementation != "plain" and has_transformers() else "plain"
        self.name, self.shape, self.precision = name, shape, precision
        self.batch, self.sequence = batch, sequence
        self.device = torch.device(device)
        torch.manual_seed(seed)
        self.model = self._build().train()
        self.optimizer = self._optimizer()
        self.ids = torch.randint(shape["vocabulary"], (batch, sequence), device=self.device)

    def _build(self):
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        usual = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            # Weights are drawn where they stay (2.0).
            with self.device if hasattr(self.device, "__enter__") else contextlib.nullcontext():
                model = self._plain_or_hugging_face()
        finally:
            torch.set_default_dtype(usual)
        return model.to(self.device)

    def _plain_or_hugging_face(self):
        if self.implementation == "transformers":
            return _hugging_face(self.name, self.shape)
        return plain_models.Transformer(self.shape)

    def _optimizer(self):
        keywords = {}
        if self.device.type == "cuda" and "fused" in inspect.signature(torch.optim.AdamW.__init__).parameters:
            keywords["fused"] = True
        self.is_fused = bool(keywords)
        return torch.optim.AdamW(self.model.parameters(), lr=1e-4, **keywords)

    def step(self, marks=None):
        """`marks`: a function that names a phase, for profiles."""
        marks = marks or (lambda _: contextlib.nullcontext())
        with marks("forward"):
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "amp"):
                loss = self.loss(self.model(self.ids), self.ids)
        with marks("backward"):
            loss.backward()
        with marks("optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def loss(self, output, labels):
        logits = output if isinstance(output, torch.Tensor) else output.logits
        if self.shape["causal"]:
            logits, labels = logits[:, :-1], labels[:, 1:]
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

    def about(self):
        """What was trained, and spillway's scenario of the same step (without its hardware)."""
        about = {"model": self.name, "implementation": self.implementation, "batch": self.batch,
                 "sequence": self.sequence, "precision": self.precision, "optimizer": "AdamW",
                 "fused_optimizer": self.is_fused, "shape": self.shape,
                 "parameters": sum(parameter.numel() for parameter in self.model.parameters())}
        if self.spillway_name and self.precision != "amp":  # spillway knows no autocast over fp32 weights
            hugging_face = self.implementation == "transformers"
            about["scenario_model"] = {"name": self.spillway_name, "layers": self.shape["layers"],
                                       "sequence": self.sequence, "micro_batch": self.batch,
                                       "precision": self.precision, "framework": "huggingface" if hugging_face else "eager",
                                       "fused_kernels": False, "loss": "sliced" if self.shape["causal"] else "fp32",
                                       "holds_logits": True,
                                       "optimizer_form": "fused" if self.is_fused else "foreach"}
        return about

