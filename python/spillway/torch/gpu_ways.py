"""What PyTorch does on a CUDA device and not on the CPU, of which fake tensors say that they are: fused dropout and
attention, and which functions autocast does in fp32."""
from unittest import mock

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_ATTENTION = tuple(getattr(functional, name) for name in ("scaled_dot_product_attention",) if hasattr(functional, name))
_DROPOUT = (functional.dropout, torch.dropout)
_REPEATS = (torch.repeat_interleave, torch.Tensor.repeat_interleave)
_WHOLE = (functional.multi_head_attention_forward,)  # calls others of these within

# torch.amp's list of what runs in fp32 on CUDA ("CUDA Ops that can autocast to float32").
_NAMES_IN_FP32 = (
    "acos", "asin", "binary_cross_entropy_with_logits", "cdist", "cosine_embedding_loss", "cosine_similarity", "cosh",
    "cross_entropy", "dist", "erfinv", "exp", "expm1", "gaussian_nll_loss", "group_norm", "hinge_embedding_loss",
    "huber_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log1p", "log2", "log_softmax", "logsumexp",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "norm", "normalize", "pdist",
    "poisson_nll_loss", "pow", "reciprocal", "renorm", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "tan", "triplet_margin_loss")
_NAMES_TO_FP32 = ("cumprod", "cumsum", "prod", "sum")  # by dtype=


def _functions(names):
    places = (torch, functional, torch.Tensor)
    return {found for place in places for found in (getattr(place, name, None) for name in names) if found is not None}


_IN_FP32, _TO_FP32 = _functions(_NAMES_IN_FP32), _functions(_NAMES_TO_FP32)


def _is_cuda(value):
    return isinstance(value, (str, torch.device)) and str(value).startswith("cuda")


if hasattr(torch, "get_autocast_dtype"):  # 2.4
    def _is_autocast():
        return torch.is_autocast_enabled("cpu")
else:
    def _is_autocast():
        return torch.is_autocast_cpu_enabled()


def _widened(value):
    if isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16):
        return value.float()
    return value


class GpuWays(TorchFunctionMode):
    """Within, functions do as on a GPU, and name it as a device in vain: everything stays where it is."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = "cpu"
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_cuda(value) else value for value in args)
        if func in _DROPOUT:
            return _dropout(*args, **kwargs)
        if func in _ATTENTION:
            return _attention(*args, **kwargs)
        if func in _REPEATS and isinstance(args[1] if len(args) > 1 else kwargs.get("repeats"), int):
            return _repeated(*args, **kwargs)
        if func in _WHOLE:
            within = {"dropout": _dropout}
            if _ATTENTION:
                within["scaled_dot_product_attention"] = _attention
            with mock.patch.multiple(functional, **within):
                return func(*args, **kwargs)
        if _is_autocast() and func in _IN_FP32:
            with torch.autocast("cpu", enabled=False):
                return func(*map(_widened, args), **{key: _widened(value) for key, value in kwargs.items()})
        if _is_autocast() and func in _TO_FP32 and "dtype" not in kwargs and _widened(args[0]) is not args[0]:
            kwargs["dtype"] = torch.float32
        return func(*args, **kwargs)


def _dropout(input, p=0.5, training=True, inplace=False, train=None):
    """`train`: as torch.dropout calls it."""
    is_training = training if train is None else train
    if not is_training or not 0 < p < 1 or inplace:
        return (torch.dropout_ if inplace else _plain_dropout)(input, p, is_training)
    return torch.native_dropout(input, p, True)[0]


_plain_dropout = torch.dropout


def _repeated(input, repeats, dim=None, output_size=None):
    """As PyTorch 2 does; before, it made a tensor of counts, which has no values here."""
    if dim is None:
        input, dim = input.flatten(), 0
    dim %= input.dim()
    spread = input.unsqueeze(dim + 1)
    shape = list(spread.shape)
    shape[dim + 1] = repeats
    return spread.expand(shape).clone(memory_format=torch.contiguous_format).flatten(dim, dim + 1)


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Flash attention in 16 bits without a mask, the memory-efficient kernels else: as sdp_utils.cpp chooses on Ampere
    and later."""
    if _is_autocast():  # in its list of 16 bits
        query, key, value = (each.to(torch.bfloat16) for each in (query, key, value))
    scaled = {} if scale is None else {"scale": scale}
    ops, cuda = torch.ops.aten, torch.backends.cuda
    is_narrow = query.dtype in (torch.float16, torch.bfloat16)
    has_four = query.dim() == 4 and value.shape[-1] == query.shape[-1]
    if not enable_gqa and key.dim() == 4 and key.shape[1] != query.shape[1]:
        has_four = False
    if has_four and is_narrow and attn_mask is None and query.shape[-1] <= 256 and cuda.flash_sdp_enabled():
        width = query.shape[-1]
        if width % 8:
            query, key, value = (functional.pad(each, (0, 8 - width % 8)) for each in (query, key, value))
            scaled.setdefault("scale", width ** -0.5)
        return ops._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, **scaled)[0][..., :width]
    if enable_gqa and key.shape[1] != query.shape[1]:
        key, value = (each.repeat_interleave(query.shape[1] // key.shape[1], 1) for each in (key, value))
    if has_four and query.shape[-1] % (8 if is_narrow else 4) == 0 and cuda.mem_efficient_sdp_enabled():
        bias = attn_mask
        if bias is not None:
            if bias.dtype == torch.bool:
                bias = torch.zeros_like(bias, dtype=query.dtype).masked_fill_(bias.logical_not(), float("-inf"))
            bias = bias.to(query.dtype).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        return ops._scaled_dot_product_efficient_attention(query, key, value, bias, True, dropout_p, is_causal, **scaled)[0]
    return ops._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, **scaled)[0]
