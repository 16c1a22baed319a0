"""fits(): whether a training step of one's own module fits a GPU, and how fast it is there, without the GPU."""
import collections.abc
import contextlib
import copy
import inspect
import json
import os
import random
import tempfile

import torch

from ..errors import InputError, SpillwayError
from ..results import Answer
from ..runs import run
from .gpu_ways import GpuWays
from .layers import find_layers
from .noting import Fakes, Noting

OPERATORS = "spillway-operators"
_OPTIMIZERS = {"adamw": (torch.optim.AdamW, {}), "adam": (torch.optim.Adam, {}),
               "sgd": (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9})}
_PRECISIONS = (None, "bf16_mixed")
_MOST_NESTED = 6  # containers within containers that are searched for tensors


def fits(model, batch, *, on, optimizer="adamw", loss=None, precision=None, accumulate=1, reserve=None, keep=None,
         program=None, **settings):
    """See spillway.fits."""
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"fits() takes a torch.nn.Module, not a {type(model).__name__}; for a model by its name, run a "
                         "scenario: spillway.run")
    if precision not in _PRECISIONS:
        raise InputError(f"precision={precision!r}: bf16_mixed runs the module under torch.autocast, None as it is; for "
                         "weights in 16 bits give a module that has them")
    if not isinstance(accumulate, int) or accumulate < 1:
        raise InputError(f"accumulate={accumulate!r}: at least 1 micro-batch a step is needed")
    model, notes = _plain(model)
    listed, more = _Step(model, optimizer, loss, precision, accumulate).note(batch)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "operators.json") if keep is None else os.fspath(keep)
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(listed, file)
        except OSError as error:
            raise InputError(f"{path}: can't be written ({error.strerror}); give keep= another file") from None
        try:
            answer = run(path, program=program, reserve=reserve, hardware__profile=on, **settings)
        except SpillwayError as error:
            error.args = (str(error).replace(path, f"{listed['title']} on {on}"), *error.args[1:])
            raise
    answer["title"] = f"{listed['title']} on {on}"
    answer["not_covered"] = notes + more
    return Answer(answer, answer.code, answer.messages)


def _plain(model):
    inner = getattr(model, "_orig_mod", None)
    if inner is not None:
        return inner, ["torch.compile: answered as eager PyTorch runs it, which holds more and takes longer"]
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise InputError("the module is wrapped for several GPUs, and a step on one is answered; give model.module")
    return model, []


def _tensors_of(thing, path, seen, depth=0):
    """(path, tensor) of all that an object holds: parameters, buffers, and tensors in attributes and containers."""
    if id(thing) in seen or depth > _MOST_NESTED:
        return
    if isinstance(thing, torch.Tensor):
        seen[id(thing)] = thing
        yield path, thing
        return
    if isinstance(thing, dict):
        items = [(f"{path}[{key!r}]", value) for key, value in thing.items()]
    elif isinstance(thing, (list, tuple, set)):
        items = [(f"{path}[{place}]", value) for place, value in enumerate(thing)]
    elif hasattr(thing, "__dict__") and not isinstance(thing, type) and not callable(thing):
        items = [(f"{path}.{name}", value) for name, value in vars(thing).items()]
    else:
        return
    seen[id(thing)] = thing
    for name, value in items:
        yield from _tensors_of(value, name, seen, depth + 1)


class _Step:
    """One training step, on a copy of the module whose tensors are fake."""

    def __init__(self, model, optimizer, loss, precision, accumulate):
        self.model, self.optimizer, self.loss = model, optimizer, loss
        self.precision, self.accumulate = precision, accumulate
        self.fakes = Fakes()
        self.noting = Noting()
        self.memo = {}
        self.not_covered = []

    def note(self, batch):
        """(the list of operators as a document, sentences of what it doesn't cover)"""
        title = type(self.model).__name__
        with _untouched_random_state():
            model = self._copy()
            step = self._optimizer(model)
            hooks = self._name_modules(model)
            try:
                for name, parameter in model.named_parameters():
                    self.noting.allocate(parameter, name, "weight")
                for name, buffer in model.named_buffers():
                    self.noting.allocate(buffer, name, "buffer")
                self._iterate(model, step, batch)
                self.noting.begin_step()
                self._iterate(model, step, batch)
            finally:
                for hook in hooks:
                    hook.remove()
            self.noting.finish()
        return {"schema": OPERATORS, "version": 1, "title": title, "producer": f"torch {torch.__version__}",
                "first": self.noting.first, "tensors": self.noting.tensors, "operators": self.noting.rows}, self._said()

    def _copy(self):
        seen = {}
        for module_path, module in self.model.named_modules():
            for part in (module._parameters, module._buffers, vars(module)):
                for name, value in part.items():
                    if name in ("_modules", "_parameters", "_buffers"):
                        continue
                    for path, tensor in _tensors_of(value, f"{module_path}.{name}" if module_path else name, seen):
                        self._fake(tensor, path)
        try:
            model = copy.deepcopy(self.model, self.memo)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"the module can't be copied, and it is never run itself: copy.deepcopy says {error}; leave out "
                             "what can't be copied (locks, open files, process groups)") from None
        return model.train()

    def _fake(self, tensor, path):
        if id(tensor) not in self.memo:
            self.memo[id(tensor)] = self.fakes.of(tensor, path)
            self.memo.setdefault(id(self.memo), []).append(tensor)  # kept while the memo lives, as deepcopy does
        return self.memo[id(tensor)]

    @contextlib.contextmanager
    def _noted(self):
        """What is called within is noted: functions go the ways of a GPU, their operators meet fake tensors."""
        try:
            with torch.backends.mkldnn.flags(enabled=False), self.fakes.mode, GpuWays(), self.noting:
                yield
        except InputError:
            raise
        except Exception as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            failed, place = self.noting.failed
            place = place if error is failed else self.noting.where()
            raise InputError(f"{place} fails on tensors without values: {said[:300]}; it must run on the CPU, "
                             "make its tensors on the device of its inputs and take all others from its parameters, buffers "
                             "and the batch") from error

    def _optimizer(self, model):
        """A function that updates, and one that clears gradients; None: the step ends with its gradients."""
        if self.optimizer is None:
            return None
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not trained:
            raise InputError("no parameter of the module requires a gradient; unfreeze what is trained")
        if isinstance(self.optimizer, torch.optim.Optimizer):
            seen = {}
            for path, tensor in _tensors_of(dict(self.optimizer.state), "optimizer.state", seen):
                self._fake(tensor, path)
            known = {id(parameter) for parameter in self.model.parameters()}
            for group in self.optimizer.param_groups:
                if any(id(parameter) not in known for parameter in group["params"]):
                    raise InputError("the optimizer updates parameters that the module doesn't have; make it of "
                                     "model.parameters()")
            optimizer = copy.deepcopy(self.optimizer, self.memo)
            for parameter, state in list(optimizer.state.items()):
                for path, tensor in _tensors_of(state, "optimizer.state", {}):
                    self.noting.allocate(tensor, path, "optimizer_state")
        elif callable(self.optimizer):
            optimizer = self.optimizer(trained)
        elif self.optimizer in _OPTIMIZERS:
            kind, keywords = _OPTIMIZERS[self.optimizer]
            optimizer = kind(trained, **keywords)
        else:
            raise InputError(f"optimizer={self.optimizer!r}: {', '.join(_OPTIMIZERS)}, a torch.optim.Optimizer of the "
                             "module's parameters, a function that makes one of a list of parameters, or None")
        for group in optimizer.param_groups:
            if "foreach" in group and group["foreach"] is None and not group.get("fused"):
                group["foreach"] = True  # PyTorch's own choice on a GPU
        return optimizer

    def _name_modules(self, model):
        noting, hooks = self.noting, []
        layers = {}
        with contextlib.suppress(InputError):
            layers = {id(module): index for index, (_, module) in enumerate(find_layers(model))}

        def at_layer(tensors, layer):
            for tensor in tensors:
                if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                    tensor.register_hook(lambda gradient: setattr(noting, "layer", layer))

        # A checkpoint's forward that is run again ends by an exception as soon as all that was dropped is there.
        always = {"always_call": True} if "always_call" in inspect.signature(
            torch.nn.Module.register_forward_hook).parameters else {}
        for path, module in model.named_modules():
            layer = layers.get(id(module))

            def enter(module, inputs, path=path, layer=layer):
                noting.modules.append(path or type(module).__name__)
                if layer is not None:
                    noting.layer = layer
                    at_layer(inputs, -1)

            def leave(module, inputs, output, layer=layer):
                noting.modules.pop()
                if layer is not None:
                    noting.layer = -1
                    at_layer(output if isinstance(output, tuple) else (output,), layer)

            hooks += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave, **always)]
        return hooks

    def _iterate(self, model, optimizer, batch):
        noting = self.noting
        for index in range(self.accumulate):
            noting.micro_batch = index if self.accumulate > 1 else -1
            noting.phase = "forward"
            arrived = self._arrived(batch, "batch")
            with self._noted():
                loss = self._forward(model, arrived)
                noting.phase, noting.layer = "backward", -1
                torch.autograd.backward(loss)  # the method is a function that GpuWays would see and be off within
            noting.layer = -1
            for parameter in model.parameters():
                if parameter.grad is not None:
                    noting.set_role(parameter.grad, "gradient")
            del loss, arrived
        noting.phase, noting.micro_batch = "optimizer", -1
        if optimizer is not None:
            with self._noted():
                # A scheduler replaces the method of the instance by one that steps the user's own.
                type(optimizer).step(optimizer)
        for parameter in model.parameters():
            parameter.grad = None

    def _forward(self, model, batch):
        autocast = torch.autocast("cpu", dtype=torch.bfloat16) if self.precision else contextlib.nullcontext()
        with autocast:
            if isinstance(batch, collections.abc.Mapping):
                output = model(**batch)
            elif isinstance(batch, (list, tuple)):
                output = model(*batch)
            else:
                output = model(batch)
            loss = self._loss_of(output, batch)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
            raise InputError("the loss isn't one number with a gradient; give loss= a function of the output (or of the output "
                             "and the batch) that returns it")
        return loss

    def _loss_of(self, output, batch):
        if self.loss is not None:
            return self.loss(output, batch) if _takes_two(self.loss) else self.loss(output)
        found = output.get("loss") if isinstance(output, collections.abc.Mapping) else getattr(output, "loss", None)
        if found is not None:
            return found
        if isinstance(output, (list, tuple)) and output:
            output = output[0]
        if isinstance(output, collections.abc.Mapping):
            output = output.get("logits")
        if not isinstance(output, torch.Tensor):
            raise InputError("the module's output is no tensor and has no loss; give loss= a function of it")
        self._remark("the output has no loss: its sum in fp32 was taken for one; give loss= your own")
        return output.float().sum()

    def _arrived(self, thing, path):
        """A batch of tensors on the device, copied there now."""
        if isinstance(thing, torch.Tensor):
            fake = self.fakes.of(thing.detach(), path).requires_grad_(thing.requires_grad)
            self.noting.arrives(fake, path)
            return fake
        if isinstance(thing, collections.abc.Mapping):
            return {key: self._arrived(value, f"{path}.{key}") for key, value in thing.items()}
        if isinstance(thing, tuple) and hasattr(thing, "_fields"):
            return type(thing)(*(self._arrived(value, path) for value in thing))
        if isinstance(thing, (list, tuple)):
            return type(thing)(self._arrived(value, f"{path}.{place}") for place, value in enumerate(thing))
        return thing

    def _remark(self, sentence):
        if sentence not in self.not_covered:
            self.not_covered.append(sentence)

    def _said(self):
        by_bytes = sorted(self.noting.by_bytes)
        if by_bytes:
            self._remark(f"timed by the bytes that they move alone, whatever they compute: {', '.join(by_bytes)}")
        if any(isinstance(module, torch.nn.RNNBase) for module in self.model.modules()):
            self._remark("recurrent layers: step by step, not by cuDNN's kernels, which hold more and take less time")
        return self.not_covered + [
            "workspaces of cuBLAS, cuDNN and of kernels within an operator are not counted",
            "one GPU: no gradients are exchanged, no parameters sharded"]


def _takes_two(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return len([each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
                and each.default is each.empty]) == 2


@contextlib.contextmanager
def _untouched_random_state():
    state, numbers = random.getstate(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(state)
        torch.set_rng_state(numbers)
