"""Settings of PyTorch's CUDA allocator, which it reads once, before its first allocation."""
import os

import torch

VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
NEWER = "PYTORCH_ALLOC_CONF"  # 2.9 reads it first


def set_allocator(settings):
    """Sets them where the allocator hasn't begun; returns the sentences of what is refused. `settings`: "" for its
    own, None: as it is."""
    if settings is None or settings == os.environ.get(VARIABLE, ""):
        return []
    if torch.cuda.is_available() and torch.cuda.is_initialized() and not _set_before_first_use(settings):
        return [f"allocator settings {settings or 'of its own'}: the CUDA allocator has begun with "
                f"{os.environ.get(VARIABLE) or 'its own'}; set {VARIABLE} before the program starts, or apply the plan "
                "before the model is moved to the GPU"]
    for name in (VARIABLE, *([NEWER] if NEWER in os.environ else [])):
        if settings:
            os.environ[name] = settings
        else:
            os.environ.pop(name, None)
    return []


def _set_before_first_use(settings):
    """Whether an allocator that is there, but has reserved nothing, took them (2.0)."""
    change = getattr(torch.cuda.memory, "_set_allocator_settings", None)
    if change is None or not settings or torch.cuda.memory_reserved() > 0:
        return False
    try:
        change(settings)
    except RuntimeError:
        return False
    return True
