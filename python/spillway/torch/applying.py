"""apply(): a plan's fates carried out in a model, with hooks on what autograd saves and modules that run again."""
import contextlib
import functools
import threading

import torch
from torch.autograd.graph import saved_tensors_hooks

from ..errors import InputError, Refused
from .again import Dropped, Unit
from .allocator import set_allocator
from .fates import KEEP, RECOMPUTE
from .layers import find_layers
from .plans import read_fates
from .storages import StorageKey, bytes_of, is_of_parameter, is_plain, storage_of
from .tiers import DISK, Pass, Place, Saved, Statistics

WORKERS = 6  # of each direction, as SSDTrain's and the program's default
LEAST_BYTES = 1 << 20


def apply(model, plan, *, folder=None, layers=None, modules=None, scenario=None, strict=True, least_bytes=LEAST_BYTES,
          in_flight_bytes=None, prefetch=1, store_workers=None, load_workers=None, program=None):
    """Carries a plan out in `model` until the handle's remove(), or the end of its `with`.

    plan      a technique's word (spillway.torch.TECHNIQUES; two joined with +), the path or dict of what
              `spillway export SCENARIO --for pytorch` writes, of a scenario, or of a plan with `scenario` beside it
              (these two are exported by the program, which is found as by spillway.find_program)
    folder    where the disk tier makes a folder of its own, removed at the end
    layers    which modules are the layers: see spillway.torch.layers.find_layers
    modules   {module of the plan: path of a module within the layer}, where the names don't say it: {"attention": "mix"}
    strict    refuse what cannot be carried out (Refused, nothing is applied); False: list it in handle.refused
    least_bytes  smaller storages stay
    in_flight_bytes  the forward waits while unfinished stores hold more; 0: never; None: as the plan says
    prefetch  how many layers ahead of the backward are read
    store_workers, load_workers  transfers at once; None: as the plan says

    Losses and gradients are those of the plain model, to the bit.
    """
    if type(model).__name__ == "OptimizedModule":
        raise InputError("the model is compiled: what its graphs save has no modules; apply the plan to the model that "
                         "was compiled, and run that")
    blocks = find_layers(model, layers)
    said = read_fates(plan, blocks, modules or {}, scenario=scenario, program=program)
    refused = list(said.refused) + set_allocator(said.allocator)
    if strict and refused:
        raise Refused(refused)
    if any(fates.moves_to(DISK) for fates in said.layers) and folder is None:
        raise InputError("the plan moves tensors to disk; say where with folder=")
    statistics = Statistics()
    in_flight = said.in_flight_bytes if in_flight_bytes is None else in_flight_bytes
    place = Place(folder, store_workers or said.store_workers or WORKERS, load_workers or said.load_workers or WORKERS,
                  in_flight, prefetch, statistics)
    return Handle(model, blocks, said, refused, place, statistics, least_bytes)


class _Frame:
    """What counts while a layer's forward runs."""
    __slots__ = ("of_pass", "rule", "unit", "decided", "made_by")

    def __init__(self, of_pass, rule, unit, decided, made_by):
        self.of_pass, self.rule, self.unit = of_pass, rule, unit
        self.decided = decided  # StorageKey -> (fate, unit), of the whole layer
        self.made_by = made_by  # StorageKey -> path of the module, of the whole layer


class Handle:
    """A plan at work in a model."""

    def __init__(self, model, blocks, said, refused, place, statistics, least_bytes):
        self.technique, self.refused, self.fates = said.technique, refused, said.layers
        self.layers = [path for path, _ in blocks]
        self._place, self._statistics, self._least = place, statistics, least_bytes
        self._local = threading.local()
        self._last_pass = None
        self._wrapped = []
        del model
        for (path, block), fates in zip(blocks, said.layers):
            if not fates.is_plain():
                self._wrap_layer(path, block, fates)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.remove()

    @property
    def statistics(self):
        """Bytes stored, loaded, forwarded; seconds waited for either; tensors made again; since apply()."""
        return self._statistics.snapshot()

    @property
    def folder(self):
        """The folder of the disk tier's files; None: there is none."""
        return self._place.folder

    def settle(self):
        """Waits until all that leaves has left: for measurements."""
        self._place.settle()

    def remove(self):
        """Gives the model its own forwards back and removes files. Graphs made before can still be run backward."""
        for module, own in reversed(self._wrapped):
            if own is None:
                del module.__dict__["forward"]
            else:
                module.forward = own
        self._wrapped = []
        self._place.close()

    # Forwards.

    def _replace(self, module, forward):
        self._wrapped.append((module, module.__dict__.get("forward")))
        module.forward = forward

    def _wrap_layer(self, path, block, fates):
        inner = dict(block.named_modules())
        for each in sorted({*fates.by_path, *fates.units, *fates.makers()} - {""}):
            if each not in inner:
                raise InputError(f"{path} has no module {each}")
            self._wrap_inner(path, each, inner[each], fates)
        forward = block.forward

        @functools.wraps(forward)
        def run(*arguments, **keywords):
            if not torch.is_grad_enabled() or self._is_running_again():
                return forward(*arguments, **keywords)
            frame = _Frame(self._next_pass(), fates.default, None, {}, {})
            if "" in fates.units:
                frame.unit = self._unit(path, forward, arguments, keywords, fates, frame)
            with self._in(frame), saved_tensors_hooks(self._pack, self._unpack):
                try:
                    return forward(*arguments, **keywords)
                except RuntimeError:
                    self._place.raise_error()  # 1.13 turns what a hook raises into a RuntimeError
                    raise

        self._replace(block, run)

    def _wrap_inner(self, layer, path, module, fates):
        forward, rule = module.forward, fates.by_path.get(path)
        is_unit, is_maker = path in fates.units, path in fates.makers()

        @functools.wraps(forward)
        def run(*arguments, **keywords):
            outer = getattr(self._local, "frame", None)
            if outer is None or not torch.is_grad_enabled():
                return forward(*arguments, **keywords)
            frame = _Frame(outer.of_pass, rule or outer.rule, outer.unit, outer.decided, outer.made_by)
            if is_unit:
                frame.unit = self._unit(f"{layer}.{path}", forward, arguments, keywords, fates, frame)
            with self._in(frame):
                made = forward(*arguments, **keywords)
            if is_maker and isinstance(made, torch.Tensor) and is_plain(made):
                frame.made_by[StorageKey(made)] = path
            return made

        self._replace(module, run)

    def _is_running_again(self):
        return getattr(self._local, "runs_again", False)

    @contextlib.contextmanager
    def _in(self, frame):
        before = getattr(self._local, "frame", None)
        self._local.frame = frame
        try:
            yield
        finally:
            self._local.frame = before

    @contextlib.contextmanager
    def _again(self):
        """Forwards that run again are the plain ones."""
        before = self._is_running_again()
        self._local.runs_again = True
        try:
            with self._in(None):
                yield
        finally:
            self._local.runs_again = before

    def _next_pass(self):
        self._last_pass = Pass(self._last_pass)
        return self._last_pass

    def _unit(self, path, forward, arguments, keywords, fates, frame):
        def run(*again, **words):
            with self._again():
                return forward(*again, **words)

        def store(tensor):
            if fates.inputs == KEEP or not self._may_leave(tensor):
                return None
            saved = self._place.put(tensor, fates.inputs, frame.of_pass)
            return lambda: self._place.get(saved)

        return Unit(path, run, arguments, keywords, store, self._statistics)

    # Saved tensors.

    def _may_leave(self, tensor):
        if not is_plain(tensor) or is_of_parameter(tensor):
            return False
        size = bytes_of(storage_of(tensor))
        if size < max(self._least, 1):
            self._statistics.add(kept_small_bytes=size)
            return False
        return True

    def _pack(self, tensor):
        frame = self._local.frame
        unit, index = frame.unit, -1
        if unit is not None:
            index, unit.saved = unit.saved, unit.saved + 1
        if not is_plain(tensor) or is_of_parameter(tensor):
            return tensor
        key = StorageKey(tensor)
        if unit is not None and key in unit.inputs and self._place.known(key) is None:
            return tensor  # held anyway
        if key not in frame.decided:
            frame.decided[key] = (frame.rule.of(bytes_of(storage_of(tensor)), frame.made_by.get(key)), unit)
        fate, of_unit = frame.decided[key]
        if fate == RECOMPUTE:
            # Saved once more outside of the unit that makes it again, or in no unit: it stays.
            return unit.drop(index, tensor) if unit is not None and of_unit is unit else tensor
        if fate == KEEP or not self._may_leave(tensor):
            return tensor
        return self._place.put(tensor, fate, frame.of_pass)

    def _unpack(self, packed):
        if isinstance(packed, Saved):
            return self._place.get(packed)
        if isinstance(packed, Dropped):
            return packed.unit.get(packed.index)
        return packed
