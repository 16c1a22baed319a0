"""What becomes of what each layer saves for its backward."""
from dataclasses import dataclass, field, replace

from .tiers import DISK, HOST

KEEP, RECOMPUTE = "keep", "recompute"
FATES = (KEEP, HOST, DISK, RECOMPUTE)


@dataclass(frozen=True)
class Rule:
    """Of what one module saves: by the module that made it where that says it, else by the bytes of its storage, else
    `usual`."""
    usual: str = KEEP
    by_bytes: tuple = ()  # of (bytes, fate)
    by_maker: tuple = ()  # of (path of a module within the layer, fate)

    def of(self, size, maker=None):
        for path, fate in self.by_maker:
            if path == maker:
                return fate
        for bytes_, fate in self.by_bytes:
            if bytes_ == size:
                return fate
        return self.usual

    def fates(self):
        return {self.usual, *(fate for _, fate in self.by_bytes), *(fate for _, fate in self.by_maker)}

    def makers(self):
        return {path for path, _ in self.by_maker}


@dataclass
class LayerFates:
    """Of one layer. Paths are of modules within the layer; "" is the layer itself. What a module saves has the fate of
    the longest path that it lies under."""
    default: Rule = Rule()
    by_path: dict = field(default_factory=dict)  # path -> Rule
    units: tuple = ()     # paths of modules that run again for what is saved within them
    remade: tuple = ()    # paths of modules that run again for what they returned
    inputs: str = KEEP    # of the units' inputs
    results: dict = field(default_factory=dict)  # path of a module -> whether what it makes is kept; of module plans

    def fates(self):
        return set().union(self.default.fates(), *(rule.fates() for rule in self.by_path.values()))

    def makers(self):
        """Modules whose results are told from those of others."""
        return set().union(*(rule.makers() for rule in (self.default, *self.by_path.values())))

    def without_moves(self):
        """What leaves stays instead."""
        def stay(fate):
            return KEEP if fate in (HOST, DISK) else fate

        def stays(rule):
            return Rule(stay(rule.usual), tuple((size, stay(fate)) for size, fate in rule.by_bytes),
                        tuple((path, stay(fate)) for path, fate in rule.by_maker))

        return replace(self, default=stays(self.default), inputs=KEEP,
                       by_path={path: stays(rule) for path, rule in self.by_path.items()})

    def moves_to(self, tier):
        return tier in self.fates() or self.inputs == tier

    def is_plain(self):
        return not self.units and not self.remade and self.fates() == {KEEP}


def outermost(paths):
    """Those that lie under none of the others."""
    kept = []
    for path in sorted(set(paths), key=len):
        if not any(lies_under(path, other) for other in kept):
            kept.append(path)
    return tuple(kept)


def lies_under(path, other):
    return other in ("", path) or path.startswith(other + ".")

