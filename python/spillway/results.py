"""What the program answers, as objects."""
import json

_GIB = 1 << 30


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


class Answer(Result):
    """What fits() found: a Result that prints as sentences."""

    @property
    def peak_bytes(self):
        return self["peak_reserved_bytes"]

    @property
    def step_seconds(self):
        return self.step_time_s

    def to_json(self, **keywords):
        return json.dumps(self, **keywords)

    def _time(self):
        span, step = self["step_time_range"], self.step_seconds * 1e3
        if span["low"] is None:
            return f"{step:.4g} ms a step ({span['basis']})"
        return f"{step:.4g} ms a step, {span['low'] * step:.4g} to {span['high'] * step:.4g} in four of five ({span['basis']})"

    def __str__(self):
        owners = ", ".join(f"{owner['bytes'] / _GIB:.2f} {owner['name'].replace('_', ' ')}"
                           for owner in self["memory"]["peak_owners"][:4])
        lines = [f"{self['title']}: {self['verdict_words']}",
                 f"  memory       {self.peak_bytes / _GIB:.2f} GiB reserved at most, "
                 f"{self['peak_allocated_bytes'] / _GIB:.2f} allocated ({owners})",
                 f"  time         {self._time()}",
                 f"  binds        {self['binding_words']}"]
        return "\n".join(lines + [f"  not covered  {sentence}" for sentence in self["not_covered"]])
