"""Growing inputs for readers of text: launch files of every syntax, and our own documents."""
import json

from growth_seeds import Seed, doubling, in_brackets, nested

FLAGS = ("--nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 2 --hidden-size 256 --num-attention-heads 4 "
         "--vocab-size 1000 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8")
COMMAND = f"torchrun {FLAGS}"
IMPORT = ["import BAD --model gpt2-small --output OUT"]
TRAINING = "per_device_train_batch_size: 1\nbf16: true\nlearning_rate: 1e-4\n"
TITAN = '[model]\nname = "llama3"\nflavor = "8B"\n\n[optimizer]\nname = "AdamW"\nlr = 3e-4\n\n[training]\nseq_len = 8192\n'
EITHER = (0, 2)  # what is passed over, or refused for another reason


def is_fuzzed(name, codes=(2,)):
    """Fuzzers cut, move and repeat by themselves and take longer with each seed: one of a kind of growth is enough."""
    return codes == (2,) and "-open" not in name and "wide" not in name and not name.startswith(("assigned", "array", "test"))


def launch(ending):
    def make(name, content, codes=(2,)):
        return Seed(f"{ending}-{name}", "launch", content.encode(), IMPORT, f".{ending}", codes, is_fuzzed(name, codes))
    return make


def shell_seeds(size):
    make = launch("sh")
    levels, wide = size.levels, size.wide
    values = {"arithmetic": ("$((", "))"), "command": ("$(", ")"), "default": ("${a:-", "}"), "quoted-command": ('"$(', ')"'),
              "quoted-default": ('"${a:-', '}"'), "default-and-arithmetic": ("${a:-$((", "))}"), "alternative": ("${a+", "}")}
    seeds = in_brackets("value", lambda value: f"{COMMAND} --num-layers {value}\n", values, levels, make)
    seeds += in_brackets("assigned", lambda value: f"N={value}\n{COMMAND} --num-layers $N\n", values, levels, make)
    seeds += in_brackets("array", lambda value: f"N=(--num-layers {value})\n{COMMAND} ${{N[@]}}\n", values, levels, make)
    seeds += in_brackets("test", lambda value: f"[[ 1 == {value} ]] && A=1\n{COMMAND} --num-layers 4\n", values, levels, make)
    blocks = {"if": ("if true; then\n", "fi\n"), "else": ("if false; then\n:\nelse\n", "fi\n"),
              "elif": ("if false; then\n:\nelif true; then\n", "fi\n"), "case": ("case a in a)\n", ";; esac\n")}
    seeds += in_brackets("block", lambda text: f"{text}\n{COMMAND} --num-layers 4\n", blocks, levels, make)
    passed = {"while": ("while true; do\n", "done\n"), "for": ("for i in 1; do\n", "done\n"), "function": ("f() {\n", "}\n"),
              "group": ("{ ", "; }\n"), "subshell": ("( ", " )\n"), "not": ("! ", "\n")}
    loose = lambda name, content: make(name, content, EITHER)
    seeds += in_brackets("passed", lambda text: f"{text}\n{COMMAND} --num-layers 4\n", passed, levels, loose)
    seeds += [
        make("arithmetic-brackets", f"{COMMAND} --num-layers $(({nested('(', ')', levels)}))\n"),
        make("arithmetic-signs", f"{COMMAND} --num-layers $(({'-' * levels}1))\n"),
        make("given-arithmetic", f"[ {nested('(', ')', levels)} -eq 1 ] && A=1\n{COMMAND} --num-layers 4\n", EITHER),
        make("backquotes", f"{COMMAND} --num-layers `{chr(92) + '`'}{(chr(92) * 3 + '`') * levels}\n", EITHER),
        make("here-documents", "cat " + " ".join(f"<<A{i}" for i in range(wide)) + "\n" + "".join(f"A{i}\n" for i in range(wide))
             + f"{COMMAND} --num-layers 4\n", EITHER),
        make("evals", "eval " * levels + f"{COMMAND} --num-layers 4\n", EITHER),
        make("ands", "true && " * wide + f"{COMMAND} --num-layers 4\n", EITHER),
        make("braces", f"{COMMAND} --num-layers {'{1,' * levels}2{'}' * levels}\n", EITHER),
        make("wide-flags", COMMAND + " --num-layers 4" + "".join(f" --a{i} {i}" for i in range(wide)) + "\n", EITHER),
        make("wide-flags-long-value", f"{COMMAND} --num-layers 4 --b {'x' * size.shares}"
             + "".join(f" --a{i} {i}" for i in range(size.shares)) + "\n", EITHER),
        make("wide-variables", "".join(f"A{i}={i}\n" for i in range(wide)) + f"{COMMAND} --num-layers 4\n", EITHER),
        make("wide-commands", f"run --a 1\n" * wide + f"{COMMAND} --num-layers 4\n", EITHER),
        make("wide-cases", "case x in\n" + "".join(f"a{i}) A={i} ;;\n" for i in range(wide)) + f"esac\n{COMMAND} --num-layers 4\n",
             EITHER),
        make("wide-job-options", "#!/bin/bash\n" + "".join(f"#SBATCH --a{i}={i}\n" for i in range(wide))
             + f"{COMMAND} --num-layers 4\n", EITHER),
        make("pattern", f"P={'*[a' * wide}\nT={'a' * wide}\n[[ $T == $P ]] && A=1\n{COMMAND} --num-layers 4\n"),
    ]
    doubled = {"variable": ("A0=xxxxxxxxxx", lambda i, p: f"A{i}=$A{p}$A{p}"),
               "quoted": ('A0="x y"', lambda i, p: f'A{i}="$A{p} ${{A{p}}}"'),
               "array": ("A0=(a b)", lambda i, p: f'A{i}=("${{A{p}[@]}}" ${{A{p}[@]}})'),
               "append": ("A=xxxxxxxxxx", lambda i, p: "A+=$A"),
               "append-array": ("A=(--a 1)", lambda i, p: 'A+=("${A[@]}")'),
               "default": ("A0=xxxxxxxxxx", lambda i, p: f"A{i}=${{B:-$A{p}$A{p}}}"),
               "export": ("export A0=xxxxxxxxxx", lambda i, p: f"export A{i}=$A{p}$A{p}"),
               "unknown": ("A0=$(date)", lambda i, p: f"A{i}=$A{p}$A{p}"),
               "branch": ("A0=xxxxxxxxxx", lambda i, p: f"if true; then A{i}=$A{p}$A{p}; fi"),
               "case": ("A0=xxxxxxxxxx", lambda i, p: f"case a in a) A{i}=$A{p}$A{p};; esac")}
    for word, (first, line) in doubled.items():
        lines = doubling(first, line, size.doublings)
        seeds.append(make(f"doubling-{word}", "\n".join(lines) + f"\n{COMMAND} --num-layers 4\n"))
    line = " ".join("$A" for _ in range(size.shares))
    seeds += [
        make("shared-in-flags", f"A={'x' * size.shares}\n{COMMAND} --num-layers 4 --data-path {line}\n"),
        make("shared-unknown", f"A=$({'x' * size.shares})\n{COMMAND} --num-layers 4 --data-path {line}\n"),
        make("shared-in-eval", f"A={'x' * size.shares}\neval \"{COMMAND} --num-layers 4 --data-path {line}\"\n"),
        make("shared-in-name", f"A={'x' * size.shares}\n" + "".join(f"B{i}=--$A\n" for i in range(size.shares))
             + f"{COMMAND} --num-layers 4\n"),
    ]
    return seeds


def toml_seeds(size):
    make = launch("toml")
    levels, shares = size.levels, size.shares
    dotted = {"dots": ("a.", "a"), "quoted-dots": ('"a".', '"a"'), "spaced-dots": ("a . ", "a")}
    seeds = []
    for word, (part, last) in dotted.items():
        name = part * levels + last
        seeds += [make(f"key-{word}", f"{TITAN}{name} = 1\n"), make(f"header-{word}", f"{TITAN}[{name}]\nb = 1\n"),
                  make(f"tables-{word}", f"{TITAN}[[{name}]]\nb = 1\n"), make(f"inline-{word}", f"{TITAN}b = {{{name} = 1}}\n")]
    values = {"list": ("[", "]"), "table": ("{a = ", "}"), "dotted-table": ("{a.a.a.a.a.a.a.a = ", "}"), "both": ("[{a = ", "}]")}
    seeds += in_brackets("value", lambda value: f"{TITAN}b = {value}\n", values, levels, make)
    long_name = "a" * shares
    seeds += [
        make("long-section", f"[training]\nseq_len = 128\n[{long_name}]\n" + "".join(f"a{i} = 1\n" for i in range(shares))),
        make("long-parent", f"[training]\nseq_len = 128\n" + "".join(f"[{long_name}.b{i}]\n" for i in range(40)) + f"[{long_name}]\n"
             + "".join(f"a{i} = {{}}\n" for i in range(shares))),
        make("deeper-headers", TITAN + "".join(f"[{'a.' * i}a]\nb = 1\n" for i in range(min(levels, 1_000)))),
        make("wide-keys", TITAN + "".join(f"a{i} = 1\n" for i in range(size.wide)), EITHER),
        make("wide-dotted-keys", TITAN + "".join(f"a{i}.b = 1\na{i}.c = 1\n" for i in range(size.shares)), EITHER),
        make("wide-parents", TITAN + "".join(f"[a{i}.b]\n" for i in range(size.shares))
             + "".join(f"[a{i}]\n" for i in range(size.shares)), EITHER),
        make("wide-list", f"{TITAN}b = [{'1,' * size.wide}1]\n", EITHER),
        make("wide-tables", TITAN + "[[a]]\nb = 1\n" * size.wide, EITHER),
    ]
    return seeds


def yaml_seeds(size):
    make = launch("yaml")
    levels, shares = size.levels, size.shares
    values = {"list": ("[", "]"), "map": ("{a: ", "}"), "both": ("[{a: ", "}]"), "anchored": ("&a [", "]"), "tagged": ("!a [", "]"),
              "keys": ("{? ", "}"), "list-keys": ("[? ", "]")}
    seeds = in_brackets("value", lambda value: f"{TRAINING}b: {value}\n", values, levels, make)
    indents = range(min(levels, 1_000))
    seeds += [
        make("block-lists", f"{TRAINING}b:\n  {'- ' * levels}1\n"),
        make("block-keys", f"{TRAINING}b:\n  {'? ' * levels}1\n"),
        make("block-maps", f"{TRAINING}b:\n" + "".join(f"{' ' * (i + 1)}a:\n" for i in indents) + " " * (len(indents) + 1) + "a: 1\n"),
        make("alias-text", f's: &s "{"x" * shares}"\nb: [{",".join("*s" for _ in range(shares))}]\n{TRAINING}'),
        make("alias-keys", f's: &s "{"x" * shares}"\n' + "".join(f"b{i}: *s\n" for i in range(shares)) + TRAINING),
        make("alias-list", f's: &s [{"1," * shares}1]\n' + "".join(f"b{i}: *s\n" for i in range(shares)) + TRAINING),
        make("alias-map", "s: &s {" + ", ".join(f"a{i}: 1" for i in range(shares)) + "}\n"
             + "".join(f"b{i}: *s\n" for i in range(shares)) + TRAINING),
        make("alias-empty-map", "s: &s {}\n" + f"? {'k' * shares}\n: {{" + ", ".join(f"b{i}: *s" for i in range(shares)) + f"}}\n{TRAINING}"),
        make("alias-empty-list", "s: &s []\nt: &t [" + "*s," * shares + "]\nb: [" + "*t," * shares + f"]\n{TRAINING}"),
        make("alias-doubling", "\n".join(doubling("b0: &b0 [x]", lambda i, p: f"b{i}: &b{i} [*b{p}, *b{p}]", size.doublings))
             + f"\n{TRAINING}"),
        make("alias-doubling-maps", "\n".join(doubling("b0: &b0 {x: 1}", lambda i, p: f"b{i}: &b{i} {{c: *b{p}, d: *b{p}}}",
                                                       size.doublings)) + f"\n{TRAINING}"),
        make("long-key", f"? {'k' * shares}\n:\n" + "".join(f"  a{i}: 1\n" for i in range(shares)) + TRAINING),
        make("long-key-empty", f"? {'k' * shares}\n:\n" + "".join(f"  a{i}: {{}}\n" for i in range(shares)) + TRAINING),
        make("wide-keys", TRAINING + "".join(f"a{i}: 1\n" for i in range(size.wide)), EITHER),
        make("wide-list", f"{TRAINING}b: [{'1,' * size.wide}1]\n", EITHER),
        make("wide-anchors", TRAINING + "".join(f"a{i}: &a{i} 1\n" for i in range(size.wide)), EITHER),
    ]
    return seeds


BRACKETS = {"list": ("[", "]"), "object": ('{"a":', "}"), "both": ('[{"a":', "}]")}


def launch_json_seeds(size):
    make = launch("json")
    start = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, '
    shares = size.shares
    seeds = in_brackets("value", lambda value: f'{start}"b": {value}}}', BRACKETS, size.levels, make)
    many = ", ".join(f'"a{i}": 1' for i in range(shares))
    seeds += [
        make("long-key", f'{start}"{"k" * shares}": {{{many}}}}}'),
        make("long-key-lists", f'{start}"{"k" * shares}": {{{many.replace(": 1", ": []")}}}}}'),
        make("long-key-objects", f'{start}"{"k" * shares}": {{{many.replace(": 1", ": {}")}}}}}'),
        make("wide-keys", start + ", ".join(f'"a{i}": 1' for i in range(size.wide)) + "}", EITHER),
        make("wide-keys-unicode", start + ", ".join(f'"ä{i}": 1' for i in range(size.wide)) + "}", EITHER),
        make("wide-list", f'{start}"b": [{"1," * size.wide}1]}}', EITHER),
    ]
    return seeds


def document_seeds(size):
    """Our own documents, where any value may stand and where a list of them may."""
    kinds = {"scenario": ("spillway-scenario", "scenario", "model", ["run BAD", "explain BAD", "report step BAD --output OUT.html"]),
             "sweep": ("spillway-sweep", "sweep", "base", ["sweep BAD --output OUT", "sweep BAD"]),
             "gpu": ("spillway-gpu", "profile", "memory", ["profile check BAD", "profile show ./BAD"]),
             "system": ("spillway-system", "profile", "gpu", ["run GOOD/step.json --set hardware.profile=./BAD"]),
             "model": ("spillway-model", "model", "layers", ["run GOOD/step.json --set model.name=./BAD", "fit ./BAD --on dgx-h100"]),
             "prices": ("spillway-prices", "prices", "gpus", ["report procurement GOOD/procurement.json --prices BAD --output OUT.html"]),
             "cases": ("spillway-cases", "cases", "cases", ["validate BAD"]),
             "plan": ("spillway-offload-plan", "plan", "tensors", ["run GOOD/step.json --set plan=BAD"]),
             "schedule": ("spillway-pipeline", "pipeline", "orders", ["plan pipeline --schedule ./BAD"]),
             "graph": ("", "order_graph", "nodes", ["plan order BAD --output OUT"]),
             "hf": ("", "model", "hidden_size", ["run GOOD/step.json --set model.name=./BAD"])}
    seeds = []
    for word, (schema, target, key, commands) in kinds.items():
        head = f'{{"schema": "{schema}", "version": 1, ' if schema else "{"
        make = lambda name, content, of=(word, target, commands): Seed(f"{of[0]}-{name}", of[1], content.encode(), of[2], ".json", is_fuzzed=is_fuzzed(name))
        seeds += in_brackets("value", lambda value, start=head, at=key: f'{start}"{at}": {value}}}', BRACKETS, size.levels, make)
        names = ", ".join(f'"a{i}": 1' for i in range(size.wide))
        seeds += [make("wide-keys", f'{head}"{key}": {{{names}}}}}'),
                  make("wide-keys-unicode", f'{head}"{key}": {{{names.replace("a", "ä")}}}}}'),
                  make("wide-list", f'{head}"{key}": [{"1," * size.wide}1]}}'),
                  make("long-key", f'{head}"{"k" * size.shares}": {{{names}}}}}')]
    return seeds


def expression_seeds(size):
    """What a sweep's conditions and derived values are written in."""
    brackets = {"bracket": ("(", ")"), "call": ("min(1,", ")"), "not": ("!", ""), "minus": ("-", ""), "choice": ("t ? 1 : ", ""),
                "sum": ("t + ", ""), "and": ("t && ", "")}

    def sweep(condition):
        return json.dumps({"schema": "spillway-sweep", "version": 1,
                           "base": {"model": {"name": "gpt2-small", "sequence": 128, "global_batch": 16},
                                    "hardware": {"profile": "dgx-h100"}},
                           "axes": [{"name": "t", "key": "model.tensor_parallel", "values": [1, 2]}],
                           "where": [condition], "objectives": ["step_time"]})

    def make(name, content):
        codes = (0, 1, 2) if name.startswith("short") else (2,)  # what muParser takes as long as it is short; 1: no point is so
        return Seed(f"expression-{name}", "sweep", content.encode(), ["sweep BAD --output OUT"], ".json", codes,
                    is_fuzzed(name, codes))

    levels = size.levels
    return [seed for depth, word in ((levels, "long"), (min(levels, 2_000), "short"))
            for seed in in_brackets(word, lambda value: sweep(f"t == {value}"), brackets, depth, make)]


READERS = (shell_seeds, toml_seeds, yaml_seeds, launch_json_seeds, document_seeds, expression_seeds)
