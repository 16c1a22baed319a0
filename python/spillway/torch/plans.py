"""From what a user names as a plan to the fates of each layer."""
import json
import os
from dataclasses import dataclass, field, replace

from ..errors import InputError
from ..runs import export
from .fates import FATES, KEEP, RECOMPUTE, LayerFates, Rule, lies_under, outermost
from .layers import attention_of
from .named import is_name, named_fates
from .roles import BlockRoles

MODULE_PLAN, PLAN, SCENARIO = "spillway-module-plan", "spillway-plan", "spillway-scenario"


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

    def without_moves(self):
        return replace(self, layers=[fates.without_moves() for fates in self.layers])


def read_fates(plan, blocks, modules, *, scenario=None, program=None):
    """SaidFates of a plan as apply() takes it. Raises InputError."""
    if isinstance(plan, str) and not os.path.exists(plan):
        if is_name(plan) or not plan.endswith(".json"):
            return SaidFates(plan, named_fates(plan, blocks))
        raise InputError(f"{plan}: there is no such file")
    return _fates_of(_module_plan(plan, scenario, program), blocks, modules)


def _module_plan(plan, scenario, program):
    document, name = (plan, "the plan") if isinstance(plan, dict) else (_read(plan), os.fspath(plan))
    schema = document.get("schema")
    if schema == MODULE_PLAN:
        if document.get("version") != 1:
            raise InputError(f"{name}: version {document.get('version')} of a module plan; this package knows 1")
        return document
    if schema == SCENARIO:
        return export(plan, program=program)
    if schema == PLAN:
        if isinstance(plan, dict) or scenario is None:
            raise InputError(f"{name}: a plan numbers the operators of its scenario's step; pass its path, and "
                             "scenario=FILE, or what `spillway export SCENARIO --set plan=PLAN --for pytorch` writes")
        return export(scenario, program=program, plan=os.path.abspath(plan))
    raise InputError(f"{name}: neither a scenario, a plan nor a module plan (its schema is {schema})")


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    try:
        document = json.loads(text)
    except ValueError as error:
        if f'"{SCENARIO}"' in text:  # a scenario may have comments, which the program reads
            return {"schema": SCENARIO}
        raise InputError(f"{path}: isn't JSON: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: isn't a JSON object")
    return document


def _fates_of(document, blocks, modules):
    layers = document.get("layers")
    if not isinstance(layers, list):
        raise InputError("the module plan has no layers")
    numbers = [layer.get("layer") for layer in layers]
    if numbers != list(range(len(blocks))):
        raise InputError(f"the plan is for {len(layers)} layers of {document.get('model')}, the model has {len(blocks)}; "
                         "plan this model's shape, or name its layers with layers=")
    said = SaidFates(document.get("technique") or KEEP, [], list(document.get("refused", [])),
                     document.get("allocator_config", ""), document.get("in_flight_bytes", 0),
                     document.get("store_workers", 0), document.get("load_workers", 0))
    for layer, (path, block) in zip(layers, blocks):
        said.layers.append(_Layer(layer, path, block, modules, said.refused).fates())
    return said


class _Layer:
    def __init__(self, layer, path, block, modules, refused):
        self.layer, self.path, self.block, self.refused = layer, path, block, refused
        self.roles = BlockRoles(path, block, modules)
        self.saved = [self._checked(saved) for saved in layer.get("saved", [])]

    def _checked(self, saved):
        if saved.get("fate") not in FATES:
            raise InputError(f"the module plan's layer {self.layer['layer']} has the fate {saved.get('fate')}; known are "
                             f"{', '.join(FATES)}")
        return saved

    def fates(self):
        inputs = {saved["fate"] for saved in self.saved if not saved["made_by"]} - {RECOMPUTE}
        of_inputs = inputs.pop() if len(inputs) == 1 else KEEP
        if self.layer.get("whole") == RECOMPUTE:
            return LayerFates(Rule(RECOMPUTE), units=("",), inputs=of_inputs)
        by_path = {}
        for saved in self.saved:
            for path in self.roles.paths(saved["module"]):
                by_path.setdefault(path, []).append(saved)
        rules = {path: self._rule(path, tensors) for path, tensors in by_path.items()}
        default = rules.pop("", None) or self._usual()
        units, remade = self._runs_again()
        if self.layer.get("core") == RECOMPUTE:
            attention = attention_of(self.block)
            if attention is None:
                self._refuse("no module is named as attention is; say it with modules={'attention': PATH}")
            else:
                rules[attention] = Rule(RECOMPUTE)
                units = outermost((*units, attention))
        return LayerFates(default, rules, units, remade, of_inputs if units == ("",) else KEEP, self._results())

    def _results(self):
        """{path: whether any of what the module there makes is kept}"""
        kept = {}
        for saved in self.saved:
            for path in self.roles.paths(saved["made_by"]) if saved["made_by"] else ():
                kept[path] = kept.get(path, False) or saved["fate"] != RECOMPUTE
        if self.layer.get("core") == RECOMPUTE:
            kept[attention_of(self.block)] = False  # its kernel, not the products in modules of their own
        return kept

    def _usual(self):
        """Of what lies in no module that the plan names: what all tensors made in the layer have in common."""
        fates = {saved["fate"] for saved in self.saved if saved["made_by"]}
        return Rule(fates.pop() if len(fates) == 1 else KEEP)

    def _rule(self, path, tensors):
        total = {}
        for saved in tensors:
            total[saved["fate"]] = total.get(saved["fate"], 0) + saved["bytes"]
        usual = max(total, key=lambda fate: (total[fate], fate))
        if len(total) == 1:
            return Rule(usual)
        by_bytes = {}
        for saved in tensors:
            by_bytes.setdefault(saved["bytes"], {}).setdefault(saved["fate"], []).append(saved)
        said_by_bytes, by_maker = [], {}
        for size, fates in by_bytes.items():
            rest = next(iter(fates))
            if len(fates) > 1:
                rest, told = self._by_maker(path, fates, usual)
                by_maker.update(told)
            said_by_bytes.append((size, rest))
        return Rule(usual, tuple(said_by_bytes), tuple(by_maker.items()))

    def _by_maker(self, path, fates, usual):
        """Of tensors of one size and several fates that one module saves: the fate of those whose makers aren't told
        from the module, and [(maker, fate)] of the others."""
        makers = {fate: {each for saved in tensors for each in self.roles.paths(saved["made_by"])}
                  for fate, tensors in fates.items()}
        unknown = [fate for fate, paths in makers.items() if any(lies_under(path, each) for each in paths)]
        told = [(each, fate) for fate, paths in makers.items() if fate not in unknown for each in sorted(paths)]
        if len(unknown) > 1 or len({each for each, _ in told}) < len(told):
            said = " and ".join(f"{', '.join(saved['tensor'] for saved in tensors)} ({fate})"
                                for fate, tensors in fates.items())
            self._refuse(f"{said} are saved by one module, {path or 'the layer itself'}, are of one size and made by no "
                         "modules of their own: PyTorch can't tell them apart")
            return (usual if usual in fates else next(iter(fates))), []
        return (unknown[0] if unknown else usual), told

    def _runs_again(self):
        """(units, makers whose results are remade) for what is made again."""
        units, remade = [], []
        made_here = [saved for saved in self.saved if saved["made_by"]]
        if made_here and all(saved["fate"] == RECOMPUTE for saved in made_here):
            units = [""]  # all of it: the layer runs as a whole
        for saved in self.saved:
            if saved["fate"] != RECOMPUTE:
                continue
            if not saved["made_by"]:
                self._refuse(f"{saved['tensor']} is made again, and the layer before makes it")
                continue
            makers = self.roles.paths(saved["made_by"])
            for saver in self.roles.paths(saved["module"]):
                around = [maker for maker in makers if lies_under(saver, maker)]
                if around:
                    units.append(self._that_runs(around[0]))
                else:
                    remade += [(self._that_runs(maker), saver) for maker in makers]
        units = outermost(units)
        alone = {maker for maker, saver in remade
                 if not any(lies_under(maker, unit) and lies_under(saver, unit) for unit in units)}
        return units, tuple(sorted(alone))

    def _that_runs(self, path):
        """The module itself, or the one around it where it is but a list."""
        while path and not self.roles.runs(path):
            path = path.rpartition(".")[0]
        return path

    def _refuse(self, sentence):
        sentence = f"{self.path}: {sentence}"
        if sentence not in self.refused:
            self.refused.append(sentence)
