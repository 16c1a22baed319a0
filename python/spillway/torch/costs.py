"""How much there is to an operator of PyTorch's, in the words of a list of operators (`spillway schema operators`):
products and attention by their shape, everything else by the bytes that its kernels move."""
import torch

_LARGE_ROW = 65536  # bytes: rows of a softmax that come from memory in every pass
_TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32", torch.float64: "fp32",
          torch.int64: "int64"}
_PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "_addmm_activation": (1, 2)}
_NORMS = ("layer_norm", "group_norm", "batch_norm", "rms_norm")
_GATHERS = {"embedding", "index_select", "index", "gather", "take"}


def tensors_in(value):
    """Tensors within arguments or results, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def _elements(tensor):
    """Those that lie apart in memory: a dimension that is spread counts once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= 1 if stride == 0 else size
    return count


def _bytes(tensors):
    return sum(_elements(tensor) * tensor.element_size() for tensor in tensors)


def _type(tensor):
    name = _TYPES.get(tensor.dtype, "byte")
    if name == "fp32" and torch.get_float32_matmul_precision() != "highest":
        return "tf32"
    return name


def _product(m, n, k, batch, layout, operand, moved):
    sides = {"m": m, "n": n, "k": k, "batch": batch, "layout": layout}
    return {"kind": "gemm", "type": _type(operand), "bytes": moved, "product": sides}


def _layout(a, b):
    """By the sides that lie contiguous in [.., m, k] and [.., k, n]."""
    if a.stride(-1) != 1 and a.stride(-2) == 1:
        return "nt"
    return "tn" if b.stride(-2) == 1 and b.stride(-1) != 1 else "nn"


def _matrix_product(name, args, moved):
    a, b = (args[place] for place in _PRODUCTS[name])
    batch = a.shape[0] if a.dim() == 3 else 1
    yield _product(a.shape[-2], b.shape[-1], a.shape[-1], batch, _layout(a, b), a, moved)


def _linear(args, moved):
    x, weight = args[0], args[1]
    yield _product(x.numel() // x.shape[-1], weight.shape[0], x.shape[-1], 1, "tn", x, moved)


def _convolution_sides(x, weight, out, groups, is_transposed):
    """Of the implicit product: positions by output channels by a filter's inputs; of a transposed one x's positions."""
    at = x if is_transposed else out
    positions = at.shape[0] * (at.numel() // (at.shape[0] * at.shape[1]))
    return positions, weight.shape[0] // groups, weight.numel() // weight.shape[0], groups


def _convolution(args, outputs, moved):
    x, weight, groups, is_transposed = args[0], args[1], args[8], args[6]
    m, n, k, batch = _convolution_sides(x, weight, outputs[0], groups, is_transposed)
    yield _product(m, n, k, batch, "tn", x, moved)


def _convolution_backward(args, outputs):
    gradient, x, weight, is_transposed, groups, wanted = args[0], args[1], args[2], args[7], args[9], args[10]
    m, n, k, batch = _convolution_sides(x, weight, gradient, groups, is_transposed)
    if wanted[0]:
        yield _product(m, k, n, batch, "nn", x, _bytes((gradient, weight, x)))
    if wanted[1]:
        yield _product(n, k, m, batch, "nt", x, _bytes((gradient, x, weight)))
    if len(wanted) > 2 and wanted[2]:
        yield {"memory": "elementwise", "access": "column_sum", "bytes": _bytes((gradient,))}


def _attention(name, named, moved):
    query, key = named["query"], named["key"]
    shape = {"batch": query.shape[0], "heads": query.shape[1], "kv_heads": key.shape[1], "sequence": query.shape[2],
             "head_dim": query.shape[3], "causal": named.get("is_causal", False) and key.shape[2] == query.shape[2],
             "dropout": named.get("dropout_p", 0) > 0, "kernel": "flash2"}
    if key.shape[2] != query.shape[2]:
        shape["keys"] = key.shape[2]
    return {"kind": "attention_backward" if name.endswith("_backward") else "attention_forward", "type": _type(query),
            "bytes": moved, "attention": shape}


def _access(inputs, outputs):
    """As TensorIterator's kernels go: with vectors only over what lies alike and doesn't become wider."""
    out = outputs[0] if outputs else inputs[0]
    for tensor in inputs:
        if tensor.dim() == 0:
            continue
        if _elements(tensor) < out.numel() or not _is_dense(tensor) or tensor.element_size() < out.element_size():
            return "strided"
        if tensor.dim() == out.dim() and tensor.shape == out.shape and tensor.stride() != out.stride():
            return "strided"
    return "streamed"


def _is_dense(tensor):
    """Without gaps, in whatever order of its dimensions."""
    expected = 1
    for stride, size in sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def _is_column_sum(tensor, dims):
    if not isinstance(dims, (list, tuple)) or not dims or tensor.dim() < 2:
        return False
    return tensor.dim() - 1 not in {dim % tensor.dim() for dim in dims}


def costs_of(name, inputs, outputs, args, named, written):
    """One a kernel. `named`: the arguments by name, as far as they were given; `written`: tensors among the inputs that it
    changes."""
    moved = _bytes(inputs) + _bytes(outputs)
    if name in _PRODUCTS:
        yield from _matrix_product(name, args, moved)
    elif name == "linear":
        yield from _linear(args, moved)
    elif name == "convolution":
        yield from _convolution(args, outputs, moved)
    elif name == "convolution_backward":
        yield from _convolution_backward(args, outputs)
    elif "scaled_dot_product" in name and "attention" in name:
        yield _attention(name, named, moved)
    elif any(norm in name for norm in _NORMS):
        yield from _norm(name, inputs, outputs)
    elif name.startswith(("_softmax", "_log_softmax")):
        yield _softmax(name, inputs, outputs)
    elif name.startswith(("_foreach", "_fused")):
        yield {"memory": "optimizer", "bytes": _bytes(inputs) + _bytes(outputs or written)}
    elif name in _GATHERS:
        yield {"memory": "gather", "bytes": _bytes(inputs[1:]) + 2 * _bytes(outputs)}
    elif name == "embedding_dense_backward":
        yield {"bytes": _bytes(outputs)}  # filled with zeros
        yield {"memory": "gather", "bytes": _bytes(inputs[1:]) + 2 * _bytes(inputs[:1])}
    elif name.startswith("nll_loss"):
        rows = inputs[1 if "forward" in name else 2]
        if "backward" in name:
            yield {"bytes": _bytes(outputs)}  # filled with zeros
        yield {"bytes": _bytes((rows,)) + rows.numel() * inputs[0].element_size()}
    elif name in ("sum", "mean"):
        yield {"bytes": moved, "access": "column_sum" if _is_column_sum(args[0], named.get("dim")) else "streamed"}
    elif written:
        rest = [tensor for tensor in inputs if all(tensor is not one for one in written)]
        reads = [] if name in ("copy_", "zero_", "fill_", "bernoulli_", "normal_", "uniform_") else written
        yield {"bytes": _bytes(rest) + _bytes(reads) + _bytes(written), "access": _access(rest, written)}
    else:
        yield {"bytes": moved, "access": _access(inputs, outputs)}


def _norm(name, inputs, outputs):
    if "backward" not in name:
        yield {"memory": "norm_forward", "bytes": _bytes(inputs) + _bytes(outputs)}
        return
    gradient, x = inputs[0], inputs[1]
    # Of the input and of the weights: what norms were measured by holds both kernels.
    yield {"memory": "norm_backward", "bytes": _bytes((gradient, x, x))}


def _softmax(name, inputs, outputs):
    x = outputs[0]
    row = x.shape[-1] * x.element_size() if x.dim() else 0
    passes = 1 if row < _LARGE_ROW else 2 if "backward" in name else 3
    return {"memory": "softmax", "bytes": _bytes(inputs[:1]) * passes + _bytes(inputs[1:]) + _bytes(outputs)}
