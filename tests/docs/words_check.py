#!/usr/bin/env python3
"""Holds the pages that users read to limits of language, size and links. Standard library only.

Usage: words_check.py SOURCE_ROOT           checks; exit code 1 where a page breaks a rule
       words_check.py SOURCE_ROOT --sizes   words of each user page, and of each kind of page
       words_check.py --self-test           every rule finds the page that was written to break it

User pages: README, docs/index.md, docs/install.md, and the folders tutorial, how-to, explanation and validation of docs.
Prose is what is left of a page without comments, code blocks, tables, headings, images and the targets of links. A list item is a
paragraph. A sentence ends at . ! ? or : before a space and a capital, a digit or a code span, and with its paragraph.
The page of commands, which is what --help prints: no refused word.
CONTRIBUTING, SECURITY, internals/contributing and the decision records keep to the rules of language, and are not counted.
A decision record has a state, a context, a decision and consequences, within their words. A page of docs/reference begins
with a few sentences and an example; what is not generated there keeps to the rules of language.
Pages of all kinds: no dead link, no dead anchor. CHANGELOG: at most 40 bullets a release, of at most 40 words each.
"""
import math
import pathlib
import re
import sys
import tempfile

SENTENCE_WORDS = 30
PARAGRAPH_WORDS = 80
PAGE_WORDS = 1500  # prose, tables and code of one page
LONGER_PAGES = {"docs/tutorial/first-hour.md": 2500, "docs/validation/0.2.0.md": 2500, "docs/validation/0.3.0.md": 2500}  # tables
TOTAL_WORDS = 30000
LINKS = 4  # in one paragraph
BULLETS = BULLET_WORDS = 40  # of a release in CHANGELOG.md, and of a bullet
CLICKS = 2  # from README or docs/index.md to any user page
USER_PAGES = ("README.md", "docs/index.md", "docs/install.md", "docs/tutorial/**/*.md", "docs/how-to/**/*.md",
              "docs/explanation/**/*.md", "docs/validation/**/*.md")
PROJECT_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "docs/internals/contributing/*.md", "docs/internals/decisions/*.md")
RECORDS = "docs/internals/decisions/[0-9]*.md"
RECORD = {"Context": 80, "Decision": 50, "Consequences": 150}  # words at most
REFERENCE_SENTENCES = (2, 6)  # before the first heading of a page of docs/reference
HELP_PAGES = ("docs/reference/commands.md",)  # what --help prints: no refused word
STARTS = ("README.md", "docs/index.md")
TOP_PAGES = ("index.md", "install.md")  # of docs itself
SHORT = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|Fig|No|approx|St)\.$")

# Words people search for: a page names them in its first paragraphs.
SEARCHED = {
    "docs/how-to/find-out-of-memory.md": ("CUDA out of memory", "OOM", "fragmentation", "expandable_segments"),
    "docs/how-to/recompute-activations.md": ("activation checkpointing", "gradient checkpointing",
                                             "activation recomputation"),
    "docs/how-to/offload-activations.md": ("CPU offload", "NVMe offload", "ZeRO-Offload", "ZeRO-Infinity"),
    "docs/explanation/parallelism.md": ("FSDP", "ZeRO", "TP", "PP", "CP", "EP"),
}

# A word of this project, and the word of the field (docs/reference/glossary.md).
REFUSED = {
    r"the maths|same maths": "numerics",
    r"is told|are told|tells apart|told apart|told beside": "is reported, is printed",
    r"reckoned with|reckons with": "included, counted",
    r"got by|get by|gets by": "would have fitted",
    r"made again|makes again|make again|computed again": "recomputed",
    r"made anew|makes anew|anew": "again, from scratch",
    r"fates?": "decision for each tensor",
    r"lives|life left": "lifetime",
    r"looks (?:for|whether)|is looked for|are looked for|looked at": "search, check",
    r"worn(?! out)|wears": "worn out, wear",
    r"of one's own|of its own": "own",
    r"some share": "part",
    r"comes? to(?! (?:the|a|an)\b)": "amounts to",
    r"lent|lends": "provides",
    r"whoever|whose": "(rewrite)",
    r"for ever": "unlimited",
    r"stretch(?:es)?": "range, interval",
    r"mended|mend": "fixed",
    r"sees? to": "ensures",
    r"(?:a|the) No|(?:a|the) Yes": "no or yes as a verdict",
    r"but for": "except",
    r"be it": "whether",
    r"said otherwise|says? otherwise": "set",
    r"system profile": "machine, or its profile",
    r"simply|just(?! (?:before|after|as)\b)|easy|easily|obviously|of course": "(delete)",
}
CONTRACTION = re.compile(r"\b\w+n't\b|\b(?:it|that|there)'s\b", re.I)  # harder for readers of another language
BE = r"(?:is|are|was|were|be|been|being|gets|got)"
IRREGULAR = ("made|taken|given|kept|held|told|said|read|written|found|shown|known|done|seen|left|put|drawn|met|sent|"
             "built|run|set|lost|paid|chosen|thrown|spent|cut|split|begun|worn|bound|meant|let|asked|looked")
# Sentences that are fine now and then: what, at most which share of a page's sentences, how they are known.
SHARES = (
    ("over 25 words", 0.10, lambda sentence: count(sentence) > 25),
    ("passive", 0.20, re.compile(
        rf"\b{BE}\s+(?:(?:not|never|always|also|then|only|once|all|there|again)\s+)?(?:\w+ed|{IRREGULAR})\b", re.I).search),
    ("inverted", 0.03, lambda sentence: count(sentence) > 5 and not sentence.endswith("?") and re.match(
        r"(?:What|Of|Where|Whose|Whoever|Those|Such|Which|Beside|With what)\b", sentence)),
    ("with 'of it', 'of them'", 0.02, re.compile(
        r"\b(?:of it|of them|of these|of those|thereof|of which|behind it|by itself)\b", re.I).search),
    ("with over four numbers", 0.02, lambda sentence: len(re.findall(r"(?<![\w.])\d[\d,.]*", sentence)) > 4),
)
REFUSED_RE = [(re.compile(rf"\b(?:{words})\b", re.I), better) for words, better in REFUSED.items()]


def blank(match):
    return re.sub(r"[^\n]", "", match[0])


def prose(text):
    """Lines of the page, line for line, with all that is no prose blanked out."""
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.S)
    lines, fenced = [], False
    for line in text.split("\n"):
        fence = re.match(r"\s*(```|~~~)", line)
        fenced ^= bool(fence)
        is_prose = not fenced and not fence and not re.match(r"\s*(\||#{1,6} |!\[|<)", line)
        lines.append(line if is_prose else "")
    return lines


def plain(text):
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "CODE", text)  # a code span is one word


def paragraphs(lines):
    """(number of the first line, text)"""
    begin, parts = 0, []
    for number, line in enumerate(lines + [""], 1):
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+(.*)", line)
        if (not line.strip() or item) and parts:
            yield begin, " ".join(parts)
            parts = []
        if item:
            begin, parts = number, [item[1].strip()]
        elif line.strip():
            begin = begin if parts else number
            parts.append(line.strip())


def sentences(text):
    start = 0
    for match in re.finditer(r"(?:[?!][)\"*]*\s+|[.:][)\"*]*\s+(?=[A-Z0-9(\"*]|spillway\b))", text):
        if not SHORT.search(text[start:match.start() + 1]):
            yield text[start:match.end()].strip()
            start = match.end()
    yield text[start:].strip()


def count(text):
    return len(re.findall(r"[A-Za-z0-9][\w'./%+-]*", text))


def anchors(text):
    found = set()
    for heading in re.findall(r"^#{1,6} (.*)", re.sub(r"```.*?```", "", text, flags=re.S), re.M):
        name = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = base = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        number = 0
        while name in found:
            number += 1
            name = f"{base}-{number}"
        found.add(name)
    return found


def links(path, text):
    """(line, target, file, anchor) of every link to a file."""
    bare = re.sub(r"```.*?```", blank, text, flags=re.S)
    bare = re.sub(r"`[^`\n]*`", lambda span: " " * len(span[0]), bare)
    for match in re.finditer(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", bare):
        if re.match(r"[a-z]+:", match[1]):
            continue
        file, _, anchor = match[1].partition("#")
        yield bare.count("\n", 0, match.start()) + 1, match[1], (path.parent / file) if file else path, anchor


def dead_links(path, text):
    for line, target, to, anchor in links(path, text):
        if not to.exists():
            yield line, f"dead link {target}"
        elif anchor and to.suffix == ".md" and anchor not in anchors(to.read_text(encoding="utf-8")):
            yield line, f"dead anchor {target}"


def refused(text):
    for pattern, better in REFUSED_RE:
        for match in pattern.finditer(text):
            yield f"'{match[0]}' is no word for users; instead: {better}"


def shares(text):
    """(line of the last one, what is too often) of the sentences of a page."""
    every = [(line, sentence) for line, raw in paragraphs(prose(text)) for sentence in sentences(plain(raw)) if count(sentence)]
    for kind, share, known in SHARES:
        hits = [line for line, sentence in every if known(sentence)]
        if len(hits) > math.ceil(share * len(every)):
            yield hits[-1], f"{len(hits)} of {len(every)} sentences are {kind}, at most {share:.0%}: lines {hits}"


def language(text):
    """(line, what is wrong) of a user page."""
    for line, raw in paragraphs(prose(text)):
        paragraph = plain(raw)
        if count(paragraph) > PARAGRAPH_WORDS:
            yield line, f"a paragraph of {count(paragraph)} words, at most {PARAGRAPH_WORDS}"
        if raw.count("](") > LINKS:
            yield line, f"{raw.count('](')} links in a paragraph, at most {LINKS}"
        for sentence in sentences(paragraph):
            if count(sentence) > SENTENCE_WORDS:
                yield line, f"a sentence of {count(sentence)} words, at most {SENTENCE_WORDS}: {sentence[:60]}..."
        yield from ((line, what) for what in refused(paragraph))
        yield from ((line, f"'{match[0]}': write it out") for match in CONTRACTION.finditer(paragraph))
    yield from shares(text)


def record(text):
    """(line, what is wrong) of a decision record."""
    if not re.search(r"^Date: \d{4}-\d\d-\d\d\. State: (in force|replaced by \[.+\]\(.+\))\.$", text, re.M):
        yield 3, "no line 'Date: YYYY-MM-DD. State: in force.'"
    for title, most in RECORD.items():
        part = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
        if not part:
            yield 1, f"no section '{title}'"
        elif count(part[1]) > most:
            yield text.count("\n", 0, part.start()) + 1, f"'{title}' has {count(part[1])} words, at most {most}"


def introduction(text):
    """(line, what is wrong) of the beginning of a page of docs/reference."""
    opening = re.split(r"^## ", text, maxsplit=1, flags=re.M)[0]
    number = sum(1 for _, raw in paragraphs(prose(opening)) for sentence in sentences(plain(raw)) if count(sentence))
    least, most = REFERENCE_SENTENCES
    if not least <= number <= most:
        yield 1, f"begins with {number} sentences, at least {least} and at most {most}"
    if not re.search(r"^```", opening, re.M):
        yield 1, "no example before the first heading"


def project_pages(root):
    return {path for pattern in PROJECT_PAGES for path in root.glob(pattern)}


def user_pages(root):
    return sorted({path for pattern in USER_PAGES for path in root.glob(pattern)})


def size(path):
    return len(path.read_text(encoding="utf-8").split())


def unreachable(root, pages):
    """User pages that no two links lead to."""
    near = {(root / start).resolve() for start in STARTS if (root / start).exists()}
    for _ in range(CLICKS):
        near |= {to.resolve() for page in list(near) if page.suffix == ".md" and page.exists()
                 for _, _, to, _ in links(page, page.read_text(encoding="utf-8"))}
    return [page for page in pages if page.resolve() not in near]


def changelog(text):
    """(line, what is wrong) of CHANGELOG.md."""
    first = text.count("\n", 0, text.find("\n## ")) + 2
    release, bullets = 0, 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("## "):
            release, bullets = number, 0
        bullets += line.startswith("- ")
        if line.startswith("- ") and bullets == BULLETS + 1:
            yield release, f"a release of more than {BULLETS} bullets"
    for number, bullet in paragraphs(text.split("\n")):
        if number > first and count(plain(bullet)) > BULLET_WORDS:
            yield number, f"a bullet of {count(plain(bullet))} words, at most {BULLET_WORDS}"


def problems(root):
    pages, project = user_pages(root), project_pages(root)
    for path in sorted({*pages, *root.glob("*.md"), *root.glob("docs/**/*.md")}):
        name, text = str(path.relative_to(root)), path.read_text(encoding="utf-8")
        wrong = list(dead_links(path, text))
        if path in pages:
            wrong += language(text)
            most = LONGER_PAGES.get(name, PAGE_WORDS)
            if size(path) > most:
                wrong.append((1, f"{size(path)} words, at most {most}"))
        elif path in project:
            wrong += language(text)
        if path.match(RECORDS):
            wrong += record(text)
        if name.startswith("docs/reference/") and path.name != "index.md":
            wrong += [*introduction(text), *language(re.sub(r"<!-- generated.*?<!-- end -->", blank, text, flags=re.S))]
        wrong += changelog(text) if name == "CHANGELOG.md" else []
        if name in HELP_PAGES:
            wrong += [(number, what) for number, line in enumerate(text.split("\n"), 1) for what in refused(plain(line))]
        opening = " ".join(text.split("\n## ")[0].split())
        wrong += [(1, f"does not begin with the words people search for: {word}")
                  for word in SEARCHED.get(name, ()) if word not in opening]
        yield from (f"{name}:{line}: {what}" for line, what in sorted(wrong))
    for path in root.glob("docs/*.md"):
        if path.name not in TOP_PAGES:
            yield f"{path.relative_to(root)}: pages lie in the folders of docs, by what a reader needs"
    for path in unreachable(root, pages):
        yield f"{path.relative_to(root)}: no {CLICKS} links lead here from {' or '.join(STARTS)}"
    total = sum(map(size, pages))
    if total > TOTAL_WORDS:
        yield f"user pages have {total} words, at most {TOTAL_WORDS}"


def print_sizes(root):
    pages, classes = user_pages(root), {}
    for path in pages:
        print(f"{size(path):6} {path.relative_to(root)}")
    for path in {*root.glob("*.md"), *root.glob("docs/**/*.md")}:
        parts = path.relative_to(root).parts
        kind = "user" if path in pages else parts[1] if len(parts) > 2 else "other"
        classes[kind] = classes.get(kind, 0) + size(path)
    for kind, words in sorted(classes.items()):
        print(f"{words:6} words: {kind}")


# A page, and what is found on it; the last entry of each is a part of the message.
GOOD = "# Page\n\nOne sentence. Another one, with `code that is long` in it.\n"
FAULTS = (
    ("Word " * 31 + "end.", "a sentence of 32 words"),
    ("The tensor is kept. It was made. It is run.", "sentences are passive"),
    ("What fits in it is a small step. Of the steps one fits well.", "sentences are inverted"),
    ("Most of them fit. One of these fits.", "'of it'"),
    ("Two words. " * 41, "a paragraph of 82 words"),
    ("The fates of tensors.", "'fates'"),
    ("It can't fit.", "write it out"),
    ("See [x](missing.md).", "dead link"),
    ("See [x](#nowhere).", "dead anchor"),
    ("[a](#page) " * 5, "5 links"),
    ("```\n" + "word " * 1500 + "\n```", "words, at most 1500"),
)


def self_test():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs/how-to").mkdir(parents=True)
        (root / "docs/internals").mkdir(parents=True)
        page = root / "docs/how-to/page.md"

        def expect(text, part, where=page, index="[page](how-to/page.md)"):
            nonlocal failures
            (root / "docs/index.md").write_text(index, encoding="utf-8")
            where.write_text(text, encoding="utf-8")
            found = list(problems(root))
            good = not found if part is None else len(found) == 1 and part in found[0]
            if not good:
                failures += 1
                print(f"expected {part or 'nothing'} of {text[:60]!r}, found {found}")

        expect(GOOD, None)
        for text, part in FAULTS:
            expect(GOOD + "\n" + text + "\n", part)
        expect(GOOD + "\n| " + "fates " * 90 + "|\n\n```\n" + "fates " * 90 + "\n```\n<!-- fates -->\n", None)
        expect(GOOD, "no 2 links lead here", index="Nothing.")
        expect(GOOD, "pages lie in the folders", where=root / "docs/guide.md", index="[page](how-to/page.md)")
        (root / "docs/guide.md").unlink()
        (root / "docs/reference").mkdir()
        begin = "# Page\n\nOne sentence. Another one.\n\n```text\nspillway x\n```\n\n"
        expect(begin + "| `--x` | the fates |\n", "'fates'", where=root / HELP_PAGES[0])
        expect(begin, None, where=root / HELP_PAGES[0])
        expect(begin.replace("```", "..."), "no example", where=root / HELP_PAGES[0])
        expect(begin.replace("Another one.", ""), "begins with 1 sentences", where=root / HELP_PAGES[0])
        (root / HELP_PAGES[0]).unlink()
        log = "# Changelog\n\n## 2\n\n" + "- Bullet.\n" * 40
        expect(log, None, where=root / "CHANGELOG.md", index="[page](how-to/page.md)")
        expect(log + "- Bullet.\n", "more than 40 bullets", where=root / "CHANGELOG.md", index="[page](how-to/page.md)")
        expect(log + "\n## 1\n\n- " + "Word " * 41 + "\n", "a bullet of 41 words", where=root / "CHANGELOG.md",
               index="[page](how-to/page.md)")
        (root / "CHANGELOG.md").unlink()
        expect("Fates. " + "Word " * 90, None, where=root / "docs/internals/page.md",
               index="[page](how-to/page.md)")
        (root / "docs/internals/decisions").mkdir()
        kept = "# 1\n\nDate: 2026-01-01. State: in force.\n\n## Context\n\nA.\n\n## Decision\n\nB.\n\n## Consequences\n\n- C.\n"
        for text, part in ((kept, None), (kept.replace("Decision", "Choice"), "no section 'Decision'"),
                           (kept.replace("B.", "Some word. " * 26), "'Decision' has 52 words"),
                           (kept.replace("Date", "Day"), "no line 'Date"), (kept + "- The fates.\n", "'fates'")):
            expect(text, part, where=root / "docs/internals/decisions/0001-x.md", index="[page](how-to/page.md)")
        (root / "docs/internals/decisions/0001-x.md").unlink()
        for number in range(20):
            (root / f"docs/how-to/{number}.md").write_text("Words of it. " * 497, encoding="utf-8")
        found = [problem for problem in problems(root) if "user pages have" in problem]
        failures += len(found) != 0  # 20 x 1,491 and the page are below the sum
        (root / "docs/how-to/20.md").write_text("Words of it. " * 497, encoding="utf-8")
        found = [problem for problem in problems(root) if "user pages have" in problem]
        failures += len(found) != 1
    print("self-test failed" if failures else "self-test passed")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0])
    if arguments[1:] == ["--sizes"]:
        print_sizes(root)
        return 0
    found = list(problems(root))
    print("\n".join(found))
    print(f"{len(user_pages(root))} user pages, {sum(map(size, user_pages(root)))} words; {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
