#!/usr/bin/env python3
"""The pages of docs/validation: errors of each release by kind and source, from what the goldens pin.

Usage: validation_pages.py SOURCE_ROOT            exit code 1 where a page isn't what the pinned tables say
       validation_pages.py SOURCE_ROOT --write    writes the pages, and the line of README
       validation_pages.py --self-test

Of the release that is being made the figures are those of tests/goldens/published.json, of an older one those of
tests/goldens/releases/VERSION.json, a copy that never changes. What was predicted blind stands in tables of
docs/internals/validation.md (a release's copy has them too). Every pinned source needs a kind below.
"""
import copy
import json
import pathlib
import re
import statistics
import sys

# Kind of a source, by the beginning of its name; the first that fits. In this order on the pages.
KINDS = (
    ("dense", ("build-nanogpt", "cuDNN", "fms-fsdp", "KempnerForge", "Korthikanti", "llm-foundry", "SC'21", "NeMo", "TinyLlama", "nanoGPT",
               "torchao", "torchtune full", "vTrain", "Zero Bubble", "ChronosPipe", "DeepSpeedExamples", "ml-engineering")),
    ("dense and experts", ("Megatron-core on B200", "STAlloc")),
    ("adapters", ("LitGPT", "torchtune adapters", "Qwen")),
    ("offload", ("SSDTrain",)),
    ("links and drives", ("nvbandwidth", "Xiang", "Smart-Infinity", "stas00", "gds-bench", "TechPowerUp")),
)
METRICS = {"iteration_time": "step time", "throughput": "tokens/s", "peak_allocated": "peak, allocated",
           "peak_reserved": "peak, reserved", "memory_efficiency": "allocated of reserved"}
ROLES = (("validation", "Predicted with the published result at hand"),
         ("derived", "Not evidence: computed from the same source"), ("fit", "Not evidence: a constant was fitted to these cases"))
# Kinds of steps, and the rows of the blind tables.
BLIND_KINDS = (("adapters", ("torchtune adapters", "LitGPT")), ("dense", ("",)))
PINNED = "tests/goldens/published.json"
TEXTS = pathlib.Path("docs/internals/validation.md")
RELEASES = ("0.2.0",)  # those with a copy


def kind_of(source, kinds=KINDS):
    for kind, beginnings in kinds:
        if source.startswith(beginnings):
            return kind
    raise KeyError(f"{source} has no kind: add it to KINDS")


def percent(value, signed):
    text = f"{100 * value:+.1f} %" if signed else f"{100 * value:.1f} %"
    return text.replace("-0.0", "0.0").replace("+0.0", "0.0")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def blind_rows(text):
    """(kind, source, metric, n, error) of what was predicted before anybody corrected anything."""
    rows = []
    section = text.split("## Predicted blind", 1)[1].split("\n## ", 1)[0] if "## Predicted blind" in text else ""
    table = [cells(line) for line in section.splitlines() if line.startswith("|")][2:]
    for source, metric, number, blind, *_ in table:
        rows.append((kind_of(source, BLIND_KINDS), source, {"time": "step time", "peak": "peak, allocated",
                                                           "reserved": "peak, reserved"}[metric], number, blind))
    steps = re.search(r"^\| (\d+) steps without offload", text, re.M)
    for metric in ("step time", "peak allocated", "peak reserved"):
        line = re.search(rf"^\| {metric}, before \|(.*)\|$", text, re.M)
        if steps and line:
            signed, _, nine, _ = cells(line[1])
            rows.append(("dense", "our own H100: GPT-2, Llama, BERT", metric.replace("peak ", "peak, "), steps[1],
                         f"{signed}, {nine}"))
    return rows


def blind_table(text):
    lines = ["| kind | source | what | cases | signed median, 90th percentile |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in sorted(blind_rows(text), key=lambda row: [kind for kind, _ in KINDS].index(row[0]))]
    return lines


def pinned_table(groups, role):
    order = [kind for kind, _ in KINDS]
    rows = []
    for name, group in groups.items():
        source, metric, its_role = name.split(" | ")
        if its_role == role:
            rows.append((order.index(kind_of(source)), source, METRICS.get(metric, metric.replace("_", " ")), group))
    rows.sort(key=lambda row: row[:3])
    yield from ("| kind | source | what | cases | signed median, % | median, % | 90th percentile, % |", "|---|---|---|---|---|---|---|")
    for kind, source, metric, group in rows:
        yield (f"| {order[kind]} | {source} | {metric} | {group['n']} | "
               + " | ".join(text.removesuffix(" %") for text in (
                   percent(group["median_error"], True), percent(group["median_abs_error"], False),
                   percent(group["p90_abs_error"], False))) + " |")


def page(version, pinned, text, state):
    groups = pinned["whole"]
    lines = [f"# Errors of release {version}", "",
             "Errors of predicted memory and step time, by kind of training and by source. A positive error means that the",
             "prediction is too high. [What we do not know](unknown.md) belongs to this page.", "", state, ""]
    if blind_rows(text):
        lines += ["## Predicted blind", "",
                  "These cases were predicted before anybody saw or used their results. The first answer counts.", "",
                  *blind_table(text), "",
                  "No case with experts, and no step that keeps weights or optimizer states off the GPU, was predicted blind.", ""]
    else:
        lines += ["## Predicted blind", "", "Nothing. All results were known when this release predicted them.", ""]
    for role, title in ROLES:
        lines += [f"## {title}", "", *pinned_table(groups, role), ""]
    total = sum(group["n"] for group in groups.values())
    lines += [f"All {total:,} cases: `spillway validate published`. One source: `spillway validate published --source vtrain`.", ""]
    return "\n".join(lines)


def accuracy(text):
    """The line of README: what blind predictions of step times were off by."""
    times = [row for row in blind_rows(text) if row[0] == "dense" and row[2] == "step time"]
    medians = [float(re.match(r"([-+\d.]+) %", row[4])[1]) for row in times]
    cases = sum(int(row[3]) for row in times)
    return ("Blind predictions, made before the results were known, were off by more: "
            f"{cases} steps of dense models, {len(times)} sources, medians from {min(medians):+.1f} % to {max(medians):+.1f} %.\n"
            "[Errors by release](docs/validation/index.md) has every source, and what nobody measured.")


def expected(groups):
    """Of each kind what its sources' errors are: the middle and the worst of their medians, the worst 90th percentile."""
    lines = ["| kind | what | sources | cases | median of the medians | largest median | largest 90th percentile |",
             "|---|---|---|---|---|---|---|"]
    for kind, _ in KINDS[:-1]:
        for title, metrics in (("step time", ("iteration_time", "throughput", "relative_step_time")),
                               ("peak memory", ("peak_allocated", "peak_reserved", "activation_saving", "activation_memory"))):
            found = [(name.split(" | ")[0], group) for name, group in groups.items()
                     if name.endswith("| validation") and name.split(" | ")[1] in metrics
                     and kind_of(name.split(" | ")[0]) == kind]
            if not found:
                lines.append(f"| {kind} | {title} | 0 | 0 | not known | | |")
                continue
            medians = [group["median_abs_error"] for _, group in found]
            lines.append(f"| {kind} | {title} | {len({source for source, _ in found})} | {sum(group['n'] for _, group in found)} | "
                         f"{percent(statistics.median(medians), False)} | {percent(max(medians), False)} | "
                         f"{percent(max(group['p90_abs_error'] for _, group in found), False)} |")
    return "\n".join(lines)


def with_block(text, name, block):
    return re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda match: f"{match[1]}{block}\n{match[2]}", text, flags=re.S)


def pages(root):
    """Path and text of what is generated."""
    version = re.search(r"^## (\S+)\n\nNot released yet", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    version = version[1] if version else re.search(r"version: '([^']+)'", (root / "meson.build").read_text(encoding="utf-8"))[1]
    text = (root / TEXTS).read_text(encoding="utf-8")
    pinned = json.loads((root / PINNED).read_text(encoding="utf-8"))
    yield (root / f"docs/validation/{version}.md",
           page(version, pinned, text, "Figures are those of today's program, which tests hold. They end with the release."))
    for old in RELEASES:
        copied = json.loads((root / f"tests/goldens/releases/{old}.json").read_text(encoding="utf-8"))
        yield root / f"docs/validation/{old}.md", page(old, copied, copied["text"], "Figures are those of the release, and stay.")
    readme = root / "README.md"
    yield readme, with_block(readme.read_text(encoding="utf-8"), "accuracy", accuracy(text))
    index = root / "docs/validation/index.md"
    yield index, with_block(index.read_text(encoding="utf-8"), "expect", expected(pinned["whole"]))


def self_test():
    root = pathlib.Path(__file__).resolve().parents[2]
    pinned = json.loads((root / PINNED).read_text(encoding="utf-8"))
    text = (root / TEXTS).read_text(encoding="utf-8")
    good = page("1", pinned, text, "")
    moved = copy.deepcopy(pinned)
    next(iter(moved["whole"].values()))["median_error"] += 0.01
    unknown = copy.deepcopy(pinned)
    unknown["whole"]["Nobody | iteration_time | validation"] = next(iter(pinned["whole"].values()))
    fine = page("1", moved, text, "") != good and len(blind_rows(text)) > 15 and len(accuracy(text)) > 100
    try:
        page("1", unknown, text, "")
        fine = False
    except KeyError:
        pass
    fine = fine and good.count("\n| ") > len(pinned["whole"]) and with_block("<!-- x -->\na\n<!-- end -->", "x", "b").count("b") == 1
    fine = fine and "not known" in expected({}) and "not known" not in expected(pinned["whole"])
    print("self-test passed" if fine else "self-test failed")
    return 0 if fine else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root, wrong = pathlib.Path(arguments[0]), 0
    for path, text in pages(root):
        if arguments[1:] == ["--write"]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong += 1
            print(f"{path.relative_to(root)} is not what the pinned tables say: python3 tests/docs/validation_pages.py . --write")
    print(f"{wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
