"""Plans that have a name: what frameworks offer by a setting, and SSDTrain's rule."""
import re

from ..errors import InputError
from .fates import KEEP, RECOMPUTE, LayerFates, Rule
from .layers import attention_of
from .tiers import DISK, HOST

# Word -> what it does. Words are those of `spillway list techniques`, and of `plan recompute --method`.
TECHNIQUES = {
    "keep": "every activation stays",
    "full": "each layer is made again from its input",
    "selective": "each layer's attention is made again from its input",
    "every:K": "of K layers in a row the first is made again",
    "ssdtrain": "what all layers but the last save goes to files",
    "ssdtrain-host": "the same to host memory; also called host",
    "checkpoints": "each layer is made again, and its input goes to a file until then",
    "checkpoints-host": "the same with inputs in host memory",
}
_ALIASES = {"host": "ssdtrain-host", "none": "keep", "disk": "ssdtrain"}


def _offload(tier):
    def fates(blocks, _):
        last = len(blocks) - 1
        return [LayerFates(Rule(tier if index < last else KEEP)) for index in range(len(blocks))]
    return fates


def _checkpoints(tier):
    return lambda blocks, _: [LayerFates(Rule(RECOMPUTE), units=("",), inputs=tier) for _ in blocks]


def _every(blocks, count):
    return [LayerFates(Rule(RECOMPUTE), units=("",)) if index % count == 0 else LayerFates() for index in range(len(blocks))]


def _selective(blocks, _):
    fates = []
    for path, block in blocks:
        attention = attention_of(block)
        if attention is None:
            raise InputError(f"no module of {path} is named as attention is; use attention=PATH_WITHIN_THE_LAYER")
        fates.append(LayerFates(Rule(), {attention: Rule(RECOMPUTE)}, units=(attention,)))
    return fates


_MAKERS = {"keep": lambda blocks, _: [LayerFates() for _ in blocks], "full": lambda blocks, _: _every(blocks, 1),
           "selective": _selective, "every": _every, "ssdtrain": _offload(DISK), "ssdtrain-host": _offload(HOST),
           "checkpoints": _checkpoints(DISK), "checkpoints-host": _checkpoints(HOST)}


def is_name(word):
    return all(_maker(part) is not None for part in word.split("+"))


def _maker(word):
    found = re.fullmatch(r"every:([1-9]\d{0,5})", word)
    if found:
        return _MAKERS["every"], int(found.group(1))
    word = _ALIASES.get(word, word)
    return (_MAKERS[word], 1) if word in _MAKERS and word != "every" else None


def _together(first, second):
    """Where the first keeps, the second decides; where it makes again, the second's tier takes the inputs."""
    joined = []
    for one, other in zip(first, second):
        if other.by_path or other.units:
            raise InputError("of techniques joined with + the one that makes layers again comes first")
        inputs = other.default.usual if one.units and one.inputs == KEEP else one.inputs
        default = other.default if one.default == Rule() else one.default
        joined.append(LayerFates(default, dict(one.by_path), one.units, inputs=inputs))
    return joined


def named_fates(word, blocks):
    """[LayerFates] by layer of "full", "every:2", or of two words joined, "selective+ssdtrain". `blocks`: find_layers()'s
    answer. Raises InputError for a word that is none."""
    fates = None
    for part in word.split("+"):
        found = _maker(part)
        if found is None:
            raise InputError(f"{word} is neither a file nor a technique; techniques are {', '.join(TECHNIQUES)}, also "
                             "two joined with +")
        maker, count = found
        made = maker(blocks, count)
        fates = made if fates is None else _together(fates, made)
    return fates
