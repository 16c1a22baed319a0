"""apply(): a plan's fates carried out in a model, with hooks on what autograd saves and modules that run again."""
import contextlib
import functools
import threading

import torch
from torch.autograd.graph import saved_tensors_hooks

from ..errors import InputError, Refused
from .again import Dropped, Remade, Result, Unit
from .allocator import set_allocator
from .compiled import apply_compiled
from .fates import KEEP, RECOMPUTE
from .forwards import Forwards
from .layers import find_layers
from .plans import read_fates
from .storages import StorageKey, bytes_of, is_of_parameter, is_plain, shape_of, storage_of
from .tiers import DISK, Pass, Place, Saved, Statistics

WORKERS = 6  # of each direction, as SSDTrain's and the program's default
LEAST_BYTES = 1 << 20
_MARK = "_is_under_a_plan"  # of the forwards that are put in place


def apply(model, plan, *, folder=None, layers=None, modules=None, scenario=None, strict=True, least_bytes=LEAST_BYTES,
          in_flight_bytes=None, prefetch=1, store_workers=None, load_workers=None, program=None, compiled=False,
          example=None):
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
    compiled  for torch.compile: recomputation by torch.utils.checkpoint with policies of which operators' results are
              saved, no hooks; compile the model, or wrap its layers with FSDP, afterwards
    example   with compiled, of plans that keep some of a layer and make some again: a batch, keywords, or a function
              that runs the model's forward, which is done once

    Losses and gradients are those of the plain model, to the bit.
    """
    if type(model).__name__ == "OptimizedModule":
        raise InputError("the model is compiled: what its graphs save has no modules; apply the plan with compiled=True to "
                         "the model that was compiled, then compile it")
    blocks = find_layers(model, layers)
    said = read_fates(plan, blocks, modules or {}, scenario=scenario, program=program)
    if compiled:
        return apply_compiled(model, blocks, said, example, strict)
    if strict and said.refused:
        raise Refused(said.refused)
    if any(fates.moves_to(DISK) for fates in said.layers) and folder is None:
        raise InputError("the plan moves tensors to disk; say where with folder= (on the command line --folder)")
    refused = set_allocator(said.allocator)
    if strict and refused:
        raise Refused(refused)
    refused = [*said.refused, *refused]
    statistics = Statistics()
    in_flight = said.in_flight_bytes if in_flight_bytes is None else in_flight_bytes
    place = Place(folder, store_workers or said.store_workers or WORKERS, load_workers or said.load_workers or WORKERS,
                  in_flight, prefetch, statistics)
    return Handle(blocks, said, refused, place, statistics, least_bytes)


def _refuse_compiler():
    raise InputError("the model is under a plan carried out by hooks, which a compiled graph doesn't run; apply the plan "
                     "with compiled=True before torch.compile, or leave the model uncompiled")


_refuse_compiler._dynamo_marked_constant = True  # as torch._dynamo.assume_constant_result: run while a graph is made
_is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)  # 2.1


class _Layer:
    """One forward of one layer."""

    def __init__(self, of_pass):
        self.of_pass = of_pass
        self.decided = {}  # StorageKey -> (fate, unit)
        self.made_by = {}  # StorageKey -> path of the module
        self.results = {}  # StorageKey -> Result
        self.units = []


class _Frame:
    """What counts while a module's forward runs."""
    __slots__ = ("layer", "rule", "unit")

    def __init__(self, layer, rule, unit):
        self.layer, self.rule, self.unit = layer, rule, unit


class Handle:
    """A plan at work in a model."""

    def __init__(self, blocks, said, refused, place, statistics, least_bytes):
        self.technique, self.refused, self.fates = said.technique, refused, said.layers
        self.layers = [path for path, _ in blocks]
        self._place, self._statistics, self._least = place, statistics, least_bytes
        self._local = threading.local()
        self._last_pass = None
        self._forwards = Forwards()
        try:
            for (path, block), fates in zip(blocks, said.layers):
                if hasattr(block.forward, _MARK):
                    raise InputError(f"{path} is under a plan already; remove() its handle first")
                if not fates.is_plain():
                    self._wrap_layer(path, block, fates)
        except InputError:
            self.remove()
            raise

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
        self._forwards.give_back()
        self._place.close()

    # Forwards.

    def _replace(self, module, forward):
        setattr(forward, _MARK, True)
        self._forwards.replace(module, forward)

    def _wrap_layer(self, path, block, fates):
        inner = dict(block.named_modules())
        for each in sorted({*fates.by_path, *fates.units, *fates.remade, *fates.makers()} - {""}):
            if each not in inner:
                raise InputError(f"{path} has no module {each}")
            self._wrap_inner(path, each, inner[each], fates)
        forward = block.forward

        @functools.wraps(forward)
        def run(*arguments, **keywords):
            if _is_compiling():
                _refuse_compiler()
            if not torch.is_grad_enabled() or self._is_running_again():
                return forward(*arguments, **keywords)
            layer = _Layer(self._next_pass())
            frame = _Frame(layer, fates.default, None)
            if "" in fates.units:
                frame.unit = self._unit(path, forward, arguments, keywords, fates, layer)
            with self._in(frame), saved_tensors_hooks(self._pack, self._unpack):
                try:
                    made = forward(*arguments, **keywords)
                except RuntimeError:
                    self._place.raise_error()  # 1.13 turns what a hook raises into a RuntimeError
                    raise
            self._settle(layer)
            return made

        self._replace(block, run)

    def _wrap_inner(self, layer, path, module, fates):
        forward, rule = module.forward, fates.by_path.get(path)
        is_unit, is_maker, is_remade = path in fates.units, path in fates.makers(), path in fates.remade

        @functools.wraps(forward)
        def run(*arguments, **keywords):
            outer = getattr(self._local, "frame", None)
            if outer is None or not torch.is_grad_enabled():
                return forward(*arguments, **keywords)
            frame = _Frame(outer.layer, rule or outer.rule, outer.unit)
            if is_unit:
                frame.unit = self._unit(f"{layer}.{path}", forward, arguments, keywords, fates, outer.layer)
            if is_remade:
                result = Result(f"{layer}.{path}", self._plain(forward), arguments, keywords, self._statistics)
            with self._in(frame):
                made = forward(*arguments, **keywords)
            if (is_maker or is_remade) and isinstance(made, torch.Tensor) and is_plain(made):
                key = StorageKey(made)
                outer.layer.made_by[key] = path
                if is_remade and key not in self._keys_of(arguments):  # not what it was given
                    outer.layer.results[key] = result
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

    @staticmethod
    def _keys_of(arguments):
        return {StorageKey(each) for each in arguments if isinstance(each, torch.Tensor) and is_plain(each)}

    def _plain(self, forward):
        def run(*again, **words):
            with self._again():
                return forward(*again, **words)
        return run

    def _settle(self, layer):
        """What runs again holds no inputs that are away or made again themselves."""
        for each in (*layer.units, *layer.results.values()):
            each.settle(functools.partial(self._resolve, layer))

    def _resolve(self, layer, tensor):
        """How an input comes back; None: it is held."""
        if not is_plain(tensor):
            return None
        key = StorageKey(tensor)
        fate, _ = layer.decided.get(key, (RECOMPUTE, None))
        result = layer.results.get(key)
        if result is not None and fate == RECOMPUTE:
            result.settle(functools.partial(self._resolve, layer))
            return functools.partial(result.get, shape_of(tensor))
        entry = self._place.known(key)
        if entry is None or fate == KEEP:
            return None
        return functools.partial(self._place.get, Saved(entry, tensor))

    def _unit(self, path, forward, arguments, keywords, fates, layer):
        def store(tensor):
            if fates.inputs == KEEP or not self._may_leave(tensor):
                return None
            saved = self._place.put(tensor, fates.inputs, layer.of_pass)
            return lambda: self._place.get(saved)

        unit = Unit(path, self._plain(forward), arguments, keywords, store, self._statistics)
        layer.units.append(unit)
        return unit

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
        layer, key = frame.layer, StorageKey(tensor)
        if unit is not None and key in unit.inputs and key not in layer.results and self._place.known(key) is None:
            return tensor  # held anyway
        if key not in layer.decided:
            layer.decided[key] = (frame.rule.of(bytes_of(storage_of(tensor)), layer.made_by.get(key)), unit)
        fate, of_unit = layer.decided[key]
        if fate == RECOMPUTE:
            if key in layer.results:
                return layer.results[key].stand_for(tensor)
            if unit is not None and of_unit is unit and key not in unit.inputs:
                return unit.drop(index, tensor)
            self._statistics.add(not_dropped_bytes=bytes_of(storage_of(tensor)))
            return tensor  # an input, or saved once more outside of the unit that would make it again
        if fate == KEEP or not self._may_leave(tensor):
            return tensor
        return self._place.put(tensor, fate, layer.of_pass)

    def _unpack(self, packed):
        if isinstance(packed, Saved):
            return self._place.get(packed)
        if isinstance(packed, (Dropped, Remade)):
            return packed.get()
        return packed
