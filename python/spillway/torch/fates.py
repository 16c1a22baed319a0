"""What becomes of what each layer saves for its backward."""
from dataclasses import dataclass, field

from .tiers import DISK, HOST

KEEP, RECOMPUTE = "keep", "recompute"
FATES = (KEEP, HOST, DISK, RECOMPUTE)


@dataclass
class LayerFates:
    """Of one layer. Paths are of modules within the layer; "" is the layer itself. What a module saves has the fate of
    the longest path that it lies under."""
    default: str = KEEP
    by_path: dict = field(default_factory=dict)  # path -> fate
    units: tuple = ()     # paths of modules that run again; what is made again lies under one of them
    inputs: str = KEEP    # of the units' inputs

    def moves(self):
        """Whether anything leaves for a tier, or that tier's name is asked for."""
        return {fate for fate in (self.default, self.inputs, *self.by_path.values()) if fate in (HOST, DISK)}

    def is_plain(self):
        return not self.units and {self.default, *self.by_path.values()} == {KEEP}


def outermost(paths):
    """Those that lie under none of the others."""
    kept = []
    for path in sorted(set(paths), key=len):
        if not any(other == "" or path == other or path.startswith(other + ".") for other in kept):
            kept.append(path)
    return tuple(kept)
