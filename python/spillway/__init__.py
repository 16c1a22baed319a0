"""spillway from Python: runs scenarios and sweeps through the program, and carries plans out in PyTorch.

    import spillway
    result = spillway.run("scenario.json", **{"model.micro_batch": 4})
    print(result.verdict, result.step_time_ns)

    print(spillway.fits(model, batch, on="4090"))       # a torch.nn.Module of your own

Importing this needs nothing but the standard library. `spillway.torch` and `fits` need PyTorch, 1.13 or later.
"""
from .errors import InputError, NotFound, ProgramError, Refused, SpillwayError
from .program import call, find_program
from .results import Answer, Result
from .runs import export, run, sweep

__all__ = ["Answer", "InputError", "NotFound", "ProgramError", "Refused", "Result", "SpillwayError", "call", "export",
           "find_program", "fits", "run", "sweep"]


def fits(model, batch, *, on, optimizer="adamw", loss=None, precision=None, accumulate=1, reserve=None, keep=None,
         program=None, **settings):
    """Whether a training step of a torch.nn.Module of your own fits a GPU, and how fast it is there: no GPU, no memory for
    its weights, and nothing of the module is changed; its copy is in training mode.

    model      on any device; on "meta" for one that this machine couldn't hold
    batch      a tensor; a tuple or list of the arguments; or a mapping of keyword arguments
    on         the machine, as everywhere in spillway: "4090", "h100", "A100 80GB"; one GPU
    optimizer  "adamw", "adam", "sgd"; one of your own over the module's parameters; a function that makes one of a list of
               parameters; None: no update
    loss       a function of the output, or of the output and the batch. None: the output's own, else its sum
    precision  "bf16_mixed": under torch.autocast. None: as the module is
    accumulate micro-batches of this batch in a step
    reserve    as of run(); settings: as of run(), `memory__allocator="torch-expandable"`
    keep       a file for the noted operators, for `spillway run FILE --on MACHINE`
    Returns an Answer: print it, or take verdict, peak_bytes, step_seconds, not_covered and all that run() gives. Raises
    InputError, which names the module and the operator that can't be followed."""
    from .torch.fitting import fits as of_module
    return of_module(model, batch, on=on, optimizer=optimizer, loss=loss, precision=precision, accumulate=accumulate,
                     reserve=reserve, keep=keep, program=program, **settings)
