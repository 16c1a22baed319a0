"""apply(..., compiled=True): a plan's recomputation as torch.compile understands it.

A compiled graph runs no hook of Python on what it saves, so nothing leaves the GPU and no single tensor is dropped.
What it honours is torch.utils.checkpoint: a module's forward that is made again as a whole, or with a policy that says
which operators' results are saved (selective checkpointing, PyTorch 2.4). Operators are told by their number: a graph
knows the k-th product of a layer, and no modules.

    layer      products  0 qkv   1 out   2 up   3 down      attention kernel 0
    plan       keeps     qkv     -       up     -           kept
    policy     saves     0               2                  0; all else is made again, which a compiler fuses
"""
import functools

import torch
from torch.utils import checkpoint as checkpoints

from ..errors import InputError, Refused
from .fates import lies_under
from .forwards import Forwards
from .tiers import DISK, HOST

_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_grouped_mm"}
_ATTENTION = ("scaled_dot_product", "flash_attention", "efficient_attention", "flex_attention")
PRODUCT, ATTENTION = "product", "attention"


def has_policies():
    return hasattr(checkpoints, "create_selective_checkpoint_contexts") and hasattr(checkpoints, "CheckpointPolicy")


def kind_of(operator):
    """PRODUCT or ATTENTION of an operator whose results are worth keeping; None: it is cheap to run again."""
    name = operator._schema.name.rpartition("::")[2] if hasattr(operator, "_schema") else str(operator)
    if name in _PRODUCTS:
        return PRODUCT
    return ATTENTION if name.lstrip("_").startswith(_ATTENTION) and "backward" not in name else None


def contexts(saved):
    """What checkpoint's context_fn returns for a layer. `saved`: {(kind, number)} of the operators whose results are
    saved, counted by kind over the layer's forward."""
    counts = {}

    def policy(ctx, operator, *_, **__):
        kind = kind_of(operator)
        if kind is None:
            return checkpoints.CheckpointPolicy.PREFER_RECOMPUTE
        key = (ctx.is_recompute, kind)
        number = counts.get(key, 0)
        counts[key] = number + 1
        return (checkpoints.CheckpointPolicy.MUST_SAVE if (kind, number) in saved
                else checkpoints.CheckpointPolicy.PREFER_RECOMPUTE)

    return checkpoints.create_selective_checkpoint_contexts(policy)


def _operators_of(blocks, run):
    """[[(kind, path of the innermost module within the layer)]] by layer, from one forward that is thrown away."""
    from torch.utils._python_dispatch import TorchDispatchMode
    found, stack, hooks = [[] for _ in blocks], [], []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, arguments=(), keywords=None):
            kind = kind_of(operator)
            if kind is not None and stack:
                index, path = stack[-1]
                found[index].append((kind, path))
            return operator(*arguments, **(keywords or {}))

    for index, (_, block) in enumerate(blocks):
        for path, module in block.named_modules():
            hooks.append(module.register_forward_pre_hook(lambda *_, at=(index, path): stack.append(at)))
            hooks.append(module.register_forward_hook(lambda *_: stack.pop() and None))
    devices = sorted({each.device.index for _, block in blocks for each in block.parameters() if each.is_cuda})
    try:
        with torch.random.fork_rng(devices), Watch():
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _saved_of(operators, results):
    """{(kind, number)} of a layer's operators whose results the plan keeps: of those in a module that it says something
    of, or below it, the last, which makes the module's result."""
    last, counts = {}, {}
    for kind, path in operators:
        number = counts.get(kind, 0)
        counts[kind] = number + 1
        around = [each for each in results if lies_under(path, each)]
        if around:
            last[max(around, key=len)] = (kind, number)
    return frozenset(operator for path, operator in last.items() if results[path])


def _refusals(blocks, said):
    for (path, _), fates in zip(blocks, said.layers):
        for tier, where in ((HOST, "host memory"), (DISK, "files")):
            if fates.moves_to(tier):
                yield (f"{path}: a compiled graph runs no hooks on what it saves, so nothing of it moves to {where}; apply "
                       "the plan without compiled=True to a model that isn't compiled, or plan recomputation alone")
                break


def _needs_policy(fates, run):
    """Whether modules that run again as a whole don't do: some of what they make is kept. Where nobody said how the model
    is called, units run as a whole, as they do without a compiler."""
    return bool(fates.remade) or (run is not None and bool(fates.units) and any(fates.results.values()))


class CompiledHandle:
    """A plan's recomputation at work in a model; torch.compile it now, or wrap its layers with FSDP."""

    def __init__(self, blocks, said, refused, run):
        self.technique, self.refused = said.technique, refused
        self.layers = [path for path, _ in blocks]
        self.saved = {}  # path of a layer -> {(kind, number)} that its policy saves; no entry: no policy
        self._forwards = Forwards()
        needs = [at for at, fates in enumerate(said.layers) if _needs_policy(fates, run)]
        if needs and not has_policies():
            raise InputError(f"{blocks[needs[0]][0]}: some of it is kept and some made again, which takes selective "
                             f"checkpointing (PyTorch 2.4); this is {torch.__version__}")
        if needs and run is None:
            raise InputError(f"{blocks[needs[0]][0]}: some of it is kept and some made again; say with example= how the "
                             "model is called (a batch, or a function that runs its forward), so that its operators "
                             "can be numbered")
        operators = _operators_of(blocks, run) if needs else None
        for at, ((path, block), fates) in enumerate(zip(blocks, said.layers)):
            if at in needs:
                self.saved[path] = _saved_of(operators[at], fates.results)
                self._wrap(block, context_fn=functools.partial(contexts, self.saved[path]))
            elif fates.units:
                inner = dict(block.named_modules())
                for unit in fates.units:
                    self._wrap(inner[unit])

    def _wrap(self, module, **how):
        forward = module.forward

        @functools.wraps(forward)
        def run(*arguments, **keywords):
            if not torch.is_grad_enabled():
                return forward(*arguments, **keywords)
            return checkpoints.checkpoint(forward, *arguments, use_reentrant=False, **how, **keywords)

        self._forwards.replace(module, run)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.remove()

    def remove(self):
        """Gives the model its own forwards back; graphs compiled before keep theirs."""
        self._forwards.give_back()


def _as_run(model, example):
    if example is None or callable(example):
        return example
    if isinstance(example, dict):
        return lambda: model(**example)
    return lambda: model(*(example if isinstance(example, (tuple, list)) else (example,)))


def apply_compiled(model, blocks, said, example, strict):
    refused = [*said.refused, *_refusals(blocks, said)]
    if strict and refused:
        raise Refused(refused)
    return CompiledHandle(blocks, said.without_moves(), refused, _as_run(model, example))
