"""What the program answers, as objects."""


class Result(dict):
    """The JSON document that the program printed. Its keys are attributes as well, `result.step_time_ns`; those that
    this document doesn't have raise AttributeError, and `None` is "unknown", never "yes".

    code      the program's exit code: 0 done, 1 the answer is no
    messages  what it wrote beside the answer, line by line
    """

    def __init__(self, document, code=0, messages=()):
        super().__init__(document)
        self.code, self.messages = code, list(messages)

    def __getattr__(self, key):
        try:
            value = self[key]
        except KeyError:
            keys = ", ".join(sorted(self)[:12])
            raise AttributeError(f"the answer has no {key}; it has {keys}, ..") from None
        return Result(value) if isinstance(value, dict) else value

    @property
    def step_time_s(self):
        return self["step_time_ns"] / 1e9

    def __repr__(self):
        shown = {key: self[key] for key in ("verdict", "step_time_ns", "peak_allocated_bytes", "peak_reserved_bytes",
                                            "binding_resource") if key in self}
        return f"Result({shown})"
