"""spillway from Python: runs scenarios and sweeps through the program, and carries plans out in PyTorch.

    import spillway
    result = spillway.run("scenario.json", **{"model.micro_batch": 4})
    print(result.verdict, result.step_time_ns)

Importing this needs nothing but the standard library. `spillway.torch` needs PyTorch, 1.13 or later.
"""
from .errors import InputError, NotFound, ProgramError, Refused, SpillwayError
from .program import call, find_program
from .results import Result
from .runs import export, run, sweep

__all__ = ["InputError", "NotFound", "ProgramError", "Refused", "Result", "SpillwayError", "call", "export",
           "find_program", "run", "sweep"]
