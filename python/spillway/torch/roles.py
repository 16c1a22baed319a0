"""Which modules of a block are what in the names of spillway's tensors: "attention.qkv", "mlp.down"."""
import re

from torch import nn

from ..errors import InputError
from .layers import attention_of

_ATTENTION = r"(?:attn|attention|self_attn|self_attention|mixer)(?:\.self)?"
_MLP = r"(?:mlp|feed_forward|ffn|ff|moe|block_sparse_moe)"

# Role -> what the paths of its modules look like, {A} within the attention and {M} within the feed-forward: GPT-2's,
# Llama's, BERT's, Mixtral's, GPT-NeoX's and OPT's of Hugging Face, torchtitan's, Megatron-core's.
_PATTERNS = {
    "attention.norm": r"input_layernorm|ln_?1|norm_?1|attention_norm|attn_norm|norm_attention|self_attn_layer_norm"
                      r"|attention\.output\.LayerNorm",
    "attention.qkv": r"{A}\.(?:c_attn|linear_qkv|qkv|qkv_proj|query_key_value|[wW]qkv|in_proj|[qkv]_proj|query|key|value"
                     r"|w?[qkv]|to_[qkv])",
    "attention.q_norm": r"{A}\.q_(?:norm|layernorm)",
    "attention.k_norm": r"{A}\.k_(?:norm|layernorm)",
    "attention.core": r"{A}\.(?:attn_dropout|attention_dropout|dropout|softmax|core|core_attention|sdpa)",
    "attention.out": r"{A}\.(?:c_proj|o_proj|out_proj|linear_proj|dense|proj|projection|wo|to_out)"
                     r"|attention\.output\.dense",
    "attention.out.dropout": r"{A}\.resid_dropout|attention\.output\.dropout|post_attention_dropout|dropout_?1"
                             r"|resid_dropout",
    "mlp.norm": r"post_attention_layernorm|ln_?2|norm_?2|ffn_norm|mlp_norm|norm_mlp|final_layer_norm|output\.LayerNorm"
                r"|pre_mlp_layernorm",
    "mlp.up": r"{M}\.(?:c_fc|fc_?1|fc_in|up|gate|up_proj|gate_proj|gate_up_proj|dense_h_to_4h|linear_fc1|w1|w3)"
              r"|intermediate\.dense|fc_?1|c_fc|up|gate",
    "mlp.activation": r"{M}\.(?:act|act_fn|activation|gelu|relu|silu)|intermediate\.intermediate_act_fn|act|activation"
                      r"|activation_fn",
    "mlp.down": r"{M}\.(?:c_proj|fc_?2|fc_out|down|down_proj|dense_4h_to_h|linear_fc2|w2)|output\.dense|fc_?2|down",
    "mlp.down.dropout": r"{M}\.dropout|output\.dropout|post_mlp_dropout|dropout_?2|resid_dropout",
    "mlp.router": r"{M}\.(?:gate|router)",
    "mlp.experts.up": r"{M}\.experts\.\d+\.(?:up_proj|gate_proj|w1|w3|up|gate|linear_fc1)",
    "mlp.experts.gated": r"{M}\.experts\.\d+\.(?:act|act_fn|activation)",
    "mlp.experts.product": r"{M}\.experts\.\d+",
    "mlp.experts.down": r"{M}\.experts\.\d+\.(?:down_proj|w2|down|linear_fc2)",
    "mlp.experts": r"{M}\.experts",
}
# What a tensor's module may be called besides; "": what the layer itself does.
_ALIASES = {"attention.q": "attention.qkv", "attention.k": "attention.qkv", "attention.v": "attention.qkv",
            "attention.q_rotary": "attention.core", "attention.k_rotary": "attention.core", "mlp.gate": "mlp.up",
            "mlp.gelu": "mlp.activation", "mlp.silu": "mlp.activation", "mlp.relu": "mlp.activation",
            "mlp.product": "mlp", "mlp.experts.gate": "mlp.experts.up", "mlp.experts.rows": "mlp",
            "mlp.experts.permuted": "mlp", "attention.out.residual": "", "mlp.down.residual": "",
            "mlp.experts.residual": ""}
# Where they have no module of their own they are the layer's, not the attention's or the feed-forward's.
_BESIDE = {"attention.norm", "attention.out.dropout", "mlp.norm", "mlp.down.dropout"}


class BlockRoles:
    """Of one layer. `given`: {role: path or paths within the layer}, before the names'."""

    def __init__(self, path, block, given):
        self._modules = dict(block.named_modules())
        given = {role: [paths] if isinstance(paths, str) else list(paths) for role, paths in given.items()}
        for role, paths in given.items():
            for each in paths:
                if each not in self._modules:
                    raise InputError(f"{path} has no module {each}, which modules= names as {role}")
        attention = given.get("attention") or [each for each in (attention_of(block),) if each]
        self._found = {"attention": attention, "mlp": given.get("mlp") or self._like(_MLP)}
        within = {"{A}": _any_of(given.get("attention"), _ATTENTION), "{M}": _any_of(given.get("mlp"), _MLP)}
        for role, pattern in _PATTERNS.items():
            for letter, said in within.items():
                pattern = pattern.replace(letter, said)
            self._found[role] = self._like(pattern)
        self._found["attention.core"] = attention + self._found["attention.core"]
        # A router and a gate may have one name.
        self._found["mlp.up" if self._found["mlp.experts"] else "mlp.router"] = []
        self._found.update(given)

    def _like(self, pattern):
        return [each for each in self._modules if re.fullmatch(pattern, each)]

    def runs(self, path):
        """Whether the module has a forward of its own."""
        return not isinstance(self._modules[path], (nn.ModuleList, nn.ModuleDict))

    def paths(self, name):
        """Of a module as the plan calls it: those of the longest part of its name that this block has; [""]: the block."""
        parts = name.split(".") if name else []
        while parts:
            role = ".".join(parts)
            role = _ALIASES.get(role, role)
            if not role:
                break
            if self._found.get(role):
                return self._found[role]
            if role in _BESIDE:
                break
            parts.pop()
        return [""]


def _any_of(paths, usual):
    return "(?:" + "|".join(re.escape(path) for path in paths) + ")" if paths else usual
