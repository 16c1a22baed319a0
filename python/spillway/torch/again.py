"""Running a module again in the backward, for what its forward didn't keep.

A unit is a module whose forward drops some of what autograd would save within it. The first of them that the backward
asks for runs the module once more from its inputs, with the random numbers and autocast of the first run, and ends as
soon as the last dropped tensor is there. Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv 1604.06174);
the numbering of saved tensors is that of torch.utils.checkpoint with use_reentrant=False.

A result is what a module returned and another saved: its maker alone runs again, from inputs that may be results
themselves. So what runs again is what the dropped tensors need, as in the program's plans.
"""
import contextlib

import torch
from torch.autograd.graph import saved_tensors_hooks

from ..errors import SpillwayError
from .storages import StorageKey, as_bytes, is_plain, shape_of, view_like


class _Enough(Exception):
    """All dropped tensors are there."""


class Dropped:
    """What autograd holds instead of a tensor that is made again: number `index` of what its unit saved."""
    __slots__ = ("unit", "index")

    def __init__(self, unit, index):
        self.unit, self.index = unit, index

    def get(self):
        return self.unit.get(self.index)


def map_leaves(kind, function, what):
    """The same nest of tuples, lists and dicts with function(leaf) for each leaf of a kind."""
    if isinstance(what, kind):
        return function(what)
    if isinstance(what, tuple) and hasattr(what, "_fields"):
        return type(what)(*(map_leaves(kind, function, each) for each in what))
    if type(what) in (tuple, list):
        return type(what)(map_leaves(kind, function, each) for each in what)
    if type(what) is dict:
        return {key: map_leaves(kind, function, each) for key, each in what.items()}
    return what


def _cuda_devices(tensors):
    return sorted({tensor.device.index for tensor in tensors if tensor.device.type == "cuda"})


def _autocast_state():
    """What to enter again so that products run in the same type."""
    state = []
    for device in ("cuda", "cpu"):
        if device == "cuda" and not torch.cuda.is_available():
            continue
        try:  # 2.4
            enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        except (TypeError, AttributeError):
            if device == "cuda":
                enabled, dtype = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
            else:
                enabled, dtype = torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()
        state.append({"device_type": device, "enabled": enabled, "dtype": dtype,
                      "cache_enabled": torch.is_autocast_cache_enabled()})
    return state


class _FirstRun:
    """The random numbers and autocast of a forward."""

    def __init__(self, tensors):
        self.devices = _cuda_devices(tensors)
        self.cpu_random = torch.get_rng_state()
        self.cuda_random = [torch.cuda.get_rng_state(device) for device in self.devices]
        self.autocast = _autocast_state()

    @contextlib.contextmanager
    def again(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(self.devices))
            torch.set_rng_state(self.cpu_random)
            for device, state in zip(self.devices, self.cuda_random):
                torch.cuda.set_rng_state(state, device)
            for state in self.autocast:
                stack.enter_context(torch.autocast(**state))
            yield


def _tensors_of(*nests):
    found = []
    map_leaves(torch.Tensor, found.append, nests)
    return found


class Unit:
    """One forward of one module that drops what it saves."""

    def __init__(self, name, forward, arguments, keywords, store, statistics):
        """`store`: what the inputs are held through, (tensor) to a function that gives it back."""
        self.name, self.forward, self.statistics = name, forward, statistics
        tensors = _tensors_of(arguments, keywords)
        self.inputs = {StorageKey(tensor) for tensor in tensors if is_plain(tensor)}
        self.held = map_leaves(torch.Tensor, lambda tensor: _Held(tensor, store), (arguments, keywords))
        self.first_run = _FirstRun(tensors)
        self.saved = 0       # so far
        self.dropped = {}    # number -> (shape, type)
        self.made_again = {}  # number -> tensor

    def settle(self, resolve):
        """The layer's forward has ended: inputs that are made again are held no longer."""
        map_leaves(_Held, lambda held: held.settle(resolve), self.held)

    def drop(self, index, tensor):
        self.dropped[index] = (tensor.shape, tensor.dtype)
        return Dropped(self, index)

    def get(self, index):
        if index not in self.made_again:
            self._run()
        return self.made_again.pop(index)

    def _run(self):
        arguments, keywords = map_leaves(_Held, _Held.get, self.held)
        made, count = {}, 0

        def save(tensor):
            nonlocal count
            index, count = count, count + 1
            if index in self.dropped:
                made[index] = tensor.detach()
                if len(made) == len(self.dropped):
                    raise _Enough
            return tensor.detach()

        def refuse(_):
            raise SpillwayError(f"{self.name}: its forward runs a backward of its own; keep what it saves")

        with self.first_run.again(), torch.enable_grad(), saved_tensors_hooks(save, refuse):
            try:
                self.forward(*arguments, **keywords)
            except Exception:  # 1.13 turns what a hook raises into a RuntimeError
                if len(made) < len(self.dropped):
                    raise
        for index, (shape, dtype) in self.dropped.items():
            if index not in made or (made[index].shape, made[index].dtype) != (shape, dtype):
                raise SpillwayError(f"{self.name}: run again, it saves other tensors than the first time; keep what it "
                                    "saves, or take out what changes between the runs (caches, counters)")
        self.made_again = made
        self.statistics.add(recomputations=1, recomputed_tensors=len(made))


class _Held:
    """One tensor among a unit's inputs."""

    def __init__(self, tensor, store):
        self.requires_grad = tensor.requires_grad
        self.version = None if tensor.is_inference() else tensor._version
        self.tensor = store(tensor) if store is not None else None
        if self.tensor is None:
            plain = tensor.detach()
            self.tensor = lambda: plain
            self.watched = plain
        else:
            self.watched = None

    def settle(self, resolve):
        if self.watched is not None:
            found = resolve(self.watched)
            if found is not None:
                self.tensor, self.watched = found, None

    def get(self):
        if self.watched is not None and self.version is not None and self.watched._version != self.version:
            raise SpillwayError("an input of a module that is made again was changed in place after its forward; keep "
                                "what the module saves")
        return self.tensor().detach().requires_grad_(self.requires_grad)



class Result:
    """What one forward of a maker returned. `handles`: how many saved tensors stand for it."""

    def __init__(self, name, forward, arguments, keywords, statistics):
        self.name, self.forward, self.statistics = name, forward, statistics
        self.held = map_leaves(torch.Tensor, lambda tensor: _Held(tensor, None), (arguments, keywords))
        self.first_run = _FirstRun(_tensors_of(arguments, keywords))
        self.handles, self.is_settled = 0, False
        self.flat = None  # the bytes of its storage, while handles wait for it

    def settle(self, resolve):
        """As of a unit; without handles it may be an input of others."""
        if not self.is_settled:
            self.is_settled = True
            map_leaves(_Held, lambda held: held.settle(resolve), self.held)

    def stand_for(self, tensor):
        self.handles += 1
        return Remade(self, tensor)

    def get(self, like):
        """For an input of another that is made again."""
        flat = self._made()
        if self.handles > 0:
            self.flat = flat
        return view_like(flat, like)

    def take(self, like):
        """For one of the handles."""
        flat = self._made()
        self.handles -= 1
        self.flat = flat if self.handles > 0 else None
        return view_like(flat, like)

    def _made(self):
        if self.flat is not None:
            return self.flat
        arguments, keywords = map_leaves(_Held, _Held.get, self.held)
        with self.first_run.again(), torch.no_grad():
            made = self.forward(*arguments, **keywords)
        self.statistics.add(recomputations=1, recomputed_tensors=1)
        return as_bytes(made)


class Remade:
    """What autograd holds instead of a tensor in the memory of a result."""
    __slots__ = ("result", "like")

    def __init__(self, result, tensor):
        self.result, self.like = result, shape_of(tensor)

    def get(self):
        return self.result.take(self.like)
