"""A training step as the operators that it calls, noted on fake tensors: shapes without memory or arithmetic.

What is noted is what a list of operators holds (`spillway schema operators`): for each operator what it allocates, reads,
writes and what is freed behind it, and how much there is to it (costs.py).
"""
import contextlib
import weakref

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import InputError
from .costs import costs_of, tensors_in

_WITHOUT_KERNEL = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
_LIFTS = {"lift_fresh", "lift_fresh_copy", "lift"}
# What fake tensors raise for results that depend on values, and for operators that have no shape function.
_UNKNOWN = tuple(getattr(fake_tensor, name) for name in (
    "DynamicOutputShapeException", "DataDependentOutputException", "UnsupportedOperatorException",
    "UnsupportedFakeTensorException") if hasattr(fake_tensor, name)) + (NotImplementedError,)


def storage_key(tensor):
    """What tells storages apart while they live."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._storage
    return storage._cdata


def _storage_bytes(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._storage
    return storage.nbytes()


class Fakes:
    """Fake twins of tensors. Those that share a storage share the twin's."""

    def __init__(self):
        # Without a shape function an operator would run, on memory full of zeros.
        self.mode = FakeTensorMode(allow_fallback_kernels=False)
        self._bases = {}  # (storage, type) -> a flat meta tensor

    def of(self, tensor, name="a tensor"):
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
        if isinstance(tensor, FakeTensor):
            raise InputError(f"{name} is a FakeTensor of another mode; give the module itself, or one made on the device "
                             "meta")
        if not plain or tensor.layout != torch.strided or tensor.is_quantized:
            raise InputError(f"{name} is a {type(tensor).__name__} of layout {tensor.layout}: only plain dense tensors are "
                             "covered; give the module before it is sharded or quantised")
        with torch.no_grad():
            meta = self._meta(tensor)
            fake = FakeTensor(self.mode, meta, torch.device("cpu"))
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(fake, requires_grad=tensor.requires_grad)
        return fake.requires_grad_(tensor.requires_grad) if tensor.is_leaf else fake

    def _meta(self, tensor):
        if tensor.device.type == "meta" and not tensor.numel():
            return torch.empty_like(tensor)
        count = tensor.storage_offset() + 1 + sum(
            (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
        key = (storage_key(tensor), tensor.dtype)
        base = self._bases.get(key)
        if base is None:
            count = max(count, _storage_bytes(tensor) // tensor.element_size())
            base = self._bases[key] = torch.empty(count, dtype=tensor.dtype, device="meta")
        return base.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


class _Written:
    """Which arguments an operator writes."""

    def __init__(self, func):
        arguments = func._schema.arguments
        self.places = [(place, argument.name) for place, argument in enumerate(arguments)
                       if argument.alias_info is not None and argument.alias_info.is_write]

    def of(self, args, kwargs):
        for place, name in self.places:
            yield from tensors_in(args[place] if place < len(args) else kwargs.get(name))


def _result(func, name, args, kwargs):
    """Of fake tensors. What PyTorch 1.13 has no shapes of has them here."""
    if name.startswith("_foreach_"):
        if name.endswith("_"):
            return None
        if name in ("_foreach_norm", "_foreach_max"):
            return [tensor.new_empty(()) for tensor in args[0]]
        return [torch.empty_like(tensor) for tensor in args[0]]
    try:
        return func(*args, **kwargs)
    except _UNKNOWN:
        if name != "convolution_backward":
            raise
    gradient, x, weight, wanted = args[0], args[1], args[2], args[10]
    return tuple(made() if is_wanted else None for is_wanted, made in zip(wanted, (
        lambda: torch.empty_like(x), lambda: torch.empty_like(weight), lambda: gradient.new_empty(gradient.shape[1]))))


class Noting(TorchDispatchMode):
    """Notes every operator that is called within."""

    def __init__(self):
        super().__init__()
        self.tensors, self.rows = [], []  # as in the list; a tensor's role is found at the end
        self.first = 0
        self.phase, self.layer, self.micro_batch, self.modules = "unknown", -1, -1, []
        self.failed = (None, "")  # the last operator's error, and where
        self.by_bytes = set()  # operators that PyTorch doesn't bring
        self._known = {}  # storage -> number
        self._handles = {}  # id of a tensor object -> weak reference
        self._counts = {}  # storage -> tensor objects
        self._host = set()  # storages of numbers that the host keeps
        self._pending = []  # allocated for the row to come
        self._written = {}
        self._born, self._died = [], {}  # phases
        self._is_open = True

    # What the program is at.

    def now(self):
        return "recompute" if self.phase == "backward" and self.modules else self.phase

    def place(self):
        return self.modules[-1] if self.modules else ""

    # Storages.

    def allocate(self, tensor, name, role="unknown"):
        """The number of a tensor's storage; it is allocated now where it wasn't there."""
        key = storage_key(tensor)
        self._hold(tensor, key)
        number = self._known.get(key)
        if number is None and key not in self._host:
            number = self._known[key] = len(self.tensors)
            self.tensors.append([name, max(1, _storage_bytes(tensor)), role])
            self._born.append(self.now())
            self._pending.append(number)
        return number

    def _hold(self, tensor, key):
        handle = id(tensor)
        if handle in self._handles:
            return
        self._counts[key] = self._counts.get(key, 0) + 1

        def gone(_, handle=handle, key=key):
            if not self._is_open:
                return
            del self._handles[handle]
            self._counts[key] -= 1
            if self._counts[key] == 0:
                self._free(key)

        self._handles[handle] = weakref.ref(tensor, gone)

    def _free(self, key):
        del self._counts[key]
        self._host.discard(key)
        number = self._known.pop(key, None)
        if number is None:
            return
        self._died[number] = self.now()
        if number in self._pending or not self.rows:
            self._flush()
        self.rows[-1].setdefault("frees", []).append(number)

    def _flush(self):
        self.row({})

    def row(self, row):
        """Appends a row with what was allocated for it."""
        if self._pending:
            row["allocates"], self._pending = self._pending, []
        row["phase"] = self.now()
        if self.layer >= 0:
            row["layer"] = self.layer
        if self.micro_batch >= 0:
            row["micro_batch"] = self.micro_batch
        self.rows.append(row)

    def arrives(self, tensor, name):
        """A tensor that comes from host memory."""
        number = self.allocate(tensor, name, "input")
        self.row({"name": "Memcpy HtoD", "kind": "copy_to_device", "writes": [number], "bytes": self.tensors[number][1]})

    def set_role(self, tensor, role):
        number = self._known.get(storage_key(tensor))
        if number is not None and self.tensors[number][2] == "unknown":
            self.tensors[number][2] = role

    def begin_step(self):
        self._flush()
        self.first = len(self.rows)

    def finish(self):
        """Roles that show in how long a tensor lived. Nothing is noted any more."""
        self._is_open = False
        for number, tensor in enumerate(self.tensors):
            if tensor[2] != "unknown":
                continue
            born, died = self._born[number], self._died.get(number)
            if born == "optimizer" and died is None:
                tensor[2] = "optimizer_state"
            elif born == "recompute" or (born == "forward" and died != "forward"):
                tensor[2] = "activation"
            else:
                tensor[2] = "temporary"

    # Operators.

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None and "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        space, _, name = func._schema.name.partition("::")
        if space == "profiler":  # marks of record_function
            with no_dispatch():
                return func(*args, **kwargs)
        if space == "prim" or not self._is_open:
            return func(*args, **kwargs)
        inputs = list(tensors_in((args, kwargs)))
        is_of_host = bool(inputs) and all(storage_key(tensor) in self._host for tensor in inputs)
        if name == "_local_scalar_dense":
            return self._number(func, args[0], is_of_host)
        try:
            result = _result(func, name, args, kwargs)
        except _UNKNOWN as error:
            raise InputError(self._unknown(func, error)) from None
        except Exception as error:
            self.failed = (error, self.where())
            raise
        outputs = [tensor for tensor in tensors_in(result) if isinstance(tensor, FakeTensor)]
        if name in _LIFTS or is_of_host:
            for tensor in outputs:
                self._host.add(storage_key(tensor))
                self._hold(tensor, storage_key(tensor))
            return result
        if space != "aten":
            self.by_bytes.add(f"{space}::{name}")
        self._note(func, name, inputs, outputs, args, kwargs)
        return result

    def _note(self, func, name, inputs, outputs, args, kwargs):
        if func not in self._written:
            self._written[func] = _Written(func)
        written = list(self._written[func].of(args, kwargs))
        label = f"{self.place()}.{name}" if self.modules else name
        for tensor in inputs:  # made outside: constants of the module's code
            self.allocate(tensor, label)
        made = len(self._pending)
        for tensor in outputs:
            self.allocate(tensor, label)
        is_new = len(self._pending) > made
        if name in _WITHOUT_KERNEL or not (is_new or written):
            if self._pending:
                self._flush()
            return
        reads = self._numbers(inputs)
        writes = self._numbers(written + outputs)
        named = {argument.name: value for argument, value in zip(func._schema.arguments, args)}
        for cost in costs_of(name, inputs, outputs, args, {**named, **kwargs}, written):
            self.row({"name": name, "reads": reads, "writes": writes, **cost})

    def _numbers(self, tensors):
        found = dict.fromkeys(self._known.get(storage_key(tensor)) for tensor in tensors)
        return [number for number in found if number is not None]

    def _number(self, func, tensor, is_of_host):
        """What item() gives: numbers of an optimizer's counters don't matter, others may decide what follows."""
        if self.phase == "optimizer":
            return 1.0 if tensor.dtype.is_floating_point else 1
        if is_of_host:
            with contextlib.suppress(*_UNKNOWN):
                return func(tensor)
        raise InputError(f"{self.where()} reads a number off a tensor (item(), a comparison in an if): what follows depends "
                         "on values, and there are none; give a module whose operators don't, or record its step on a GPU "
                         "(spillway.torch.record)")

    def where(self):
        path = f"module {self.place()}" if self.place() else "the step outside the module"
        return f"{path}, in its {self.now()},"

    def _unknown(self, func, error):
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return (f"{self.where()} calls {func}, whose result has no shape without values or a GPU ({said[:160]}); register a "
                "fake kernel for it (torch.library.register_fake), leave it out, or record the step on a GPU "
                "(spillway.torch.record)")
