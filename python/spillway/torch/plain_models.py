"""Transformers of plain torch.nn in the shapes of well-known models, with random weights, for recordings and tests
where transformers isn't installed. Modules are named as Hugging Face's are; attention is scaled_dot_product_attention
where PyTorch has it (2.0), else its products one by one.
"""
import math

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Self-attention with grouped keys, rotated or not."""

    def __init__(self, shape):
        super().__init__()
        width, self.heads, self.groups = shape["width"], shape["heads"], shape["groups"]
        self.size = width // self.heads
        bias = shape["bias"]
        self.q_proj = nn.Linear(width, width, bias)
        self.k_proj = nn.Linear(width, self.groups * self.size, bias)
        self.v_proj = nn.Linear(width, self.groups * self.size, bias)
        self.o_proj = nn.Linear(width, width, bias)
        self.attn_dropout, self.resid_dropout = nn.Dropout(shape["dropout"]), nn.Dropout(shape["dropout"])
        self.is_causal, self.is_rotary = shape["causal"], shape["rotary"]

    def _heads(self, x, count):
        batch, length, _ = x.shape
        return x.view(batch, length, count, self.size).transpose(1, 2)

    def _rotated(self, x):
        length, half = x.shape[-2], self.size // 2
        steps = torch.arange(length, device=x.device, dtype=torch.float32)
        rates = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
        angles = torch.outer(steps, rates)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        first, second = x[..., :half], x[..., half:]
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)

    def forward(self, x):
        query, key, value = (self._heads(x_, count) for x_, count in (
            (self.q_proj(x), self.heads), (self.k_proj(x), self.groups), (self.v_proj(x), self.groups)))
        if self.is_rotary:
            query, key = self._rotated(query), self._rotated(key)
        if self.groups < self.heads:
            key, value = (each.repeat_interleave(self.heads // self.groups, 1) for each in (key, value))
        mixed = self._mixed(query, key, value)
        return self.resid_dropout(self.o_proj(mixed.transpose(1, 2).reshape(x.shape)))

    def _mixed(self, query, key, value):
        if hasattr(functional, "scaled_dot_product_attention"):
            dropout = self.attn_dropout.p if self.training else 0.0
            return functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout,
                                                           is_causal=self.is_causal)
        scores = (query @ key.transpose(-2, -1)) / math.sqrt(self.size)
        if self.is_causal:
            length = scores.shape[-1]
            future = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        return self.attn_dropout(scores.softmax(-1)) @ value


class FusedAttention(Attention):
    """GPT-2's: one product for queries, keys and values."""

    def __init__(self, shape):
        super().__init__(shape)
        width = shape["width"]
        del self.q_proj, self.k_proj, self.v_proj, self.o_proj
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        query, key, value = (self._heads(part, self.heads) for part in self.c_attn(x).split(x.shape[-1], dim=2))
        return self.resid_dropout(self.c_proj(self._mixed(query, key, value).transpose(1, 2).reshape(x.shape)))


class Mlp(nn.Module):
    def __init__(self, width, inner, dropout):
        super().__init__()
        self.c_fc, self.act, self.c_proj = nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class GatedMlp(nn.Module):
    def __init__(self, width, inner, dropout):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, inner, False), nn.Linear(width, inner, False)
        self.down_proj, self.act_fn = nn.Linear(inner, width, False), nn.SiLU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x)))


class Experts(nn.Module):
    """Each token through the `chosen` experts that its router likes best (Mixtral's layout)."""

    def __init__(self, shape):
        super().__init__()
        self.chosen = shape["chosen"]
        self.gate = nn.Linear(shape["width"], shape["experts"], bias=False)
        self.dropout = nn.Dropout(shape["dropout"])
        self.experts = nn.ModuleList(GatedMlp(shape["width"], shape["inner"], 0.0) for _ in range(shape["experts"]))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weights, picked = self.gate(flat).float().softmax(-1).topk(self.chosen, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(flat.dtype)
        out = torch.zeros_like(flat)
        for index, expert in enumerate(self.experts):
            tokens, place = torch.where(picked == index)
            if tokens.numel():
                out = out.index_add(0, tokens, expert(flat[tokens]) * weights[tokens, place].unsqueeze(-1))
        return self.dropout(out.view_as(x))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class Block(nn.Module):
    """One layer: norm before attention and feed-forward, or, BERT's, behind both."""

    def __init__(self, shape):
        super().__init__()
        width, norm = shape["width"], RmsNorm if shape["rotary"] else nn.LayerNorm
        attention = FusedAttention(shape) if shape["fused"] else Attention(shape)
        if shape["experts"]:
            mlp = Experts(shape)
        else:
            mlp = (GatedMlp if shape["gated"] else Mlp)(width, shape["inner"], shape["dropout"])
        self.input_layernorm, self.self_attn = norm(width), attention
        self.post_attention_layernorm, self.mlp = norm(width), mlp
        self.is_post = shape["post"]

    def forward(self, x):
        if self.is_post:
            x = self.input_layernorm(x + self.self_attn(x))
            return self.post_attention_layernorm(x + self.mlp(x))
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Transformer(nn.Module):
    """Token ids to logits."""

    def __init__(self, shape):
        super().__init__()
        width = shape["width"]
        self.shape = shape
        self.tokens = nn.Embedding(shape["vocabulary"], width)
        self.places = None if shape["rotary"] else nn.Embedding(shape["longest"], width)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape["layers"]))
        self.norm = (RmsNorm if shape["rotary"] else nn.LayerNorm)(width)
        self.lm_head = nn.Linear(width, shape["vocabulary"], bias=False)
        if shape["tied"]:
            self.lm_head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids)
        if self.places is not None:
            x = x + self.places.weight[:ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


_PLAIN = {"groups": 0, "gated": False, "rotary": False, "causal": True, "fused": False, "post": False, "bias": True,
          "tied": True, "experts": 0, "chosen": 0, "dropout": 0.0, "longest": 1024}


def shape_of(**values):
    """A shape with the rest as usual."""
    shape = {**_PLAIN, **values}
    shape["groups"] = shape["groups"] or shape["heads"]
    return shape


def gpt2(**values):
    return shape_of(**{"vocabulary": 50257, "fused": True, "dropout": 0.1, **values})


def llama(**values):
    return shape_of(**{"vocabulary": 128256, "gated": True, "rotary": True, "bias": False, "longest": 131072, **values})


def bert(**values):
    return shape_of(**{"vocabulary": 30522, "causal": False, "post": True, "dropout": 0.1, "longest": 512, **values})


def mixtral(**values):
    return llama(**{"experts": 8, "chosen": 2, "tied": False, **values})


# What `python -m spillway.torch` knows: a shape, and the model's name in `spillway list models`.
MODELS = {
    "tiny": (gpt2(layers=4, width=64, heads=4, inner=256, vocabulary=512), ""),  # to try the command with
    "gpt2-124m": (gpt2(layers=12, width=768, heads=12, inner=3072), "gpt2-small"),
    "gpt2-774m": (gpt2(layers=36, width=1280, heads=20, inner=5120), "gpt2-large"),
    "llama-1b": (llama(layers=16, width=2048, heads=32, groups=8, inner=8192), "llama-3.2-1b"),
    "bert-large": (bert(layers=24, width=1024, heads=16, inner=4096), "bert-large"),
}
