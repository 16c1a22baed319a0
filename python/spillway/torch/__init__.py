"""spillway in a PyTorch program: `record` steps, and `apply` a plan's fates to a model.

    import spillway.torch
    with spillway.torch.apply(model, "scenario.json", folder="/scratch"):
        loss = model(batch)
        loss.backward()

Works with PyTorch 1.13 to 2.11 by what each version has; `capabilities()` lists what this one lacks.
"""
from ..errors import InputError, NotFound

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise NotFound(f"PyTorch can't be imported ({error}); install it, or use `spillway` alone") from None

from .applying import Handle, apply
from .capability import capabilities
from .named import TECHNIQUES
from .recording import phase, record

__all__ = ["Handle", "InputError", "TECHNIQUES", "apply", "capabilities", "phase", "record"]
