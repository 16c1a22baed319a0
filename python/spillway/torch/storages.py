"""Storages of tensors: which memory is whose, and views of it, in all versions alike."""
import torch
from torch.multiprocessing.reductions import StorageWeakRef


def storage_of(tensor):
    """The untyped storage; `storage()` of 1.13 knows a type."""
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor.storage().untyped()


class StorageKey:
    """Names a storage as it is now. While the key lives, no other storage gets its number, even if this one is freed."""
    __slots__ = ("number", "version", "_watch")

    def __init__(self, tensor):
        self._watch = StorageWeakRef(storage_of(tensor))
        self.number, self.version = self._watch.cdata, tensor._version

    def __hash__(self):
        return hash((self.number, self.version))

    def __eq__(self, other):
        return self.number == other.number and self.version == other.version


def bytes_of(storage):
    return storage.nbytes()


def as_bytes(tensor):
    """The whole storage of a tensor as one row of bytes."""
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(storage_of(tensor))


def view_like(flat, like):
    """The tensor that shape_of() described, in the memory of the bytes `flat`."""
    dtype, offset, size, stride = like
    whole = flat.numel() - flat.numel() % torch.empty(0, dtype=dtype).element_size()
    return flat[:whole].view(dtype).as_strided(size, stride, offset)


def shape_of(tensor):
    return tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride()


def is_plain(tensor):
    """Strided memory of its own kind: no subclass, no sparse or quantized tensor, no lazy conjugate."""
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
            and not (tensor.is_inference() or tensor.is_quantized or tensor.is_conj() or tensor.is_neg()))


def is_of_parameter(tensor):
    """A parameter, a view of one, or a cast copy of one that autocast made."""
    if isinstance(tensor, torch.nn.Parameter) or isinstance(tensor._base, torch.nn.Parameter):
        return True
    node = tensor.grad_fn
    for _ in range(4):  # a view of a cast of a parameter
        if node is None:
            return False
        if hasattr(node, "variable"):
            return isinstance(node.variable, torch.nn.Parameter)
        if type(node).__name__ not in ("TBackward0", "ToCopyBackward0", "ViewBackward0", "TransposeBackward0",
                                       "PermuteBackward0", "AliasBackward0"):
            return False
        node = node.next_functions[0][0]
    return False
