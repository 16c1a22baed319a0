"""What can go wrong, each with one sentence that says what to do."""


class SpillwayError(Exception):
    """The base of all that this package raises."""


class NotFound(SpillwayError):
    """The program spillway isn't where it was looked for."""


class InputError(SpillwayError, ValueError):
    """The program or this package can't use what it was given (the program's exit code 2)."""


class ProgramError(SpillwayError):
    """The program failed or was stopped; `code` is its exit status, `words` all that it wrote to stderr."""

    def __init__(self, message, code, words=""):
        super().__init__(message)
        self.code, self.words = code, words


class Refused(SpillwayError):
    """Something that a plan asks for can't be carried out; `refused` lists the sentences."""

    def __init__(self, refused):
        self.refused = list(refused)
        super().__init__("; ".join(self.refused) + " (strict=False carries out the rest)")
