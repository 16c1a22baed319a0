"""From what a user names as a plan to the fates of each layer."""
from dataclasses import dataclass, field

from ..errors import InputError
from .named import named_fates


@dataclass
class SaidFates:
    """A plan for the layers of one model."""
    technique: str
    layers: list                   # LayerFates by layer
    refused: list = field(default_factory=list)
    allocator: object = None       # settings; None: as it is
    in_flight_bytes: int = 0
    store_workers: int = 0         # 0: not said
    load_workers: int = 0


def read_fates(plan, blocks, modules, *, scenario=None, program=None):
    if isinstance(plan, str):
        return SaidFates(plan, named_fates(plan, blocks))
    raise InputError("no plan")
