"""A model's forwards, replaced for a while: what a plan wraps is given back as it was."""


class Forwards:
    def __init__(self):
        self._own = []  # (module, forward of its own or None: its class has it)

    def replace(self, module, forward):
        self._own.append((module, module.__dict__.get("forward")))
        module.forward = forward

    def give_back(self):
        for module, own in reversed(self._own):
            if own is None:
                del module.__dict__["forward"]
            else:
                module.forward = own
        self._own = []
