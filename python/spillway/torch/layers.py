"""Which modules of a model are its transformer layers, and what each of their modules is in spillway's words."""
import re

from torch import nn

from ..errors import InputError

_LISTS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)


def _candidates(module, path):
    """Lists of equal blocks, outermost alone: experts within a block are none."""
    children = list(module.children())
    if isinstance(module, _LISTS) and children and len({type(child) for child in children}) == 1 and any(
            True for _ in children[0].children()):
        yield path, children
        return
    for name, child in module.named_children():
        yield from _candidates(child, f"{path}.{name}" if path else name)


def _by_path(model, path):
    found = dict(model.named_modules()).get(path)
    if found is None:
        raise InputError(f"the model has no module {path}; name one of model.named_modules()")
    return found


def find_layers(model, layers=None):
    """[(path, module)] by layer index. `layers`: None for the longest list of equal blocks; the path of such a list; or
    the layers' paths (a list, or a dict by index, with every index from 0 on)."""
    if layers is None:
        found = list(_candidates(model, ""))
        if not found:
            raise InputError("the model has no list of equal blocks; name its layers with layers=[path, ...]")
        longest = max(len(children) for _, children in found)
        found = [(path, children) for path, children in found if len(children) == longest]
        if len(found) > 1:
            raise InputError(f"{' and '.join(path for path, _ in found)} have {longest} blocks each; name the layers "
                             "with layers=PATH or layers=[path, ...]")
        layers = found[0][0]
    if isinstance(layers, str):
        path, module = layers, _by_path(model, layers) if layers else model
        named = [(f"{path}.{name}" if path else name, child) for name, child in module.named_children()]
    else:
        if isinstance(layers, dict):
            if sorted(layers) != list(range(len(layers))):
                raise InputError(f"layers= names the layers {sorted(layers)}; every index from 0 on is needed")
            layers = [layers[index] for index in range(len(layers))]
        named = [(path, _by_path(model, path)) for path in layers]
    if len({id(module) for _, module in named}) < len(named):
        raise InputError("two layers are the same module; what one forward saves cannot be told from the other's")
    if not named:
        raise InputError(f"{layers} holds no layers")
    return named


def is_attention(path):
    """The module that holds a block's attention: `self_attn`, `attn`, BERT's `attention.self`."""
    return re.fullmatch(r"(?:attn|attention|self_attn|self_attention|mixer)(?:\.self)?", path) is not None


def attention_of(block):
    """The path of a block's attention, its core's if that is a module of its own, or None."""
    paths = [path for path, _ in block.named_modules() if path]
    cores = [path for path in paths if re.search(r"(?:^|\.)(?:core|core_attention|sdpa|attn_core|inner_attention)$", path)]
    if len(cores) == 1:
        return cores[0]
    found = [path for path in paths if is_attention(path)]
    return max(found, key=len) if found else None
