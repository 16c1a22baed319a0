"""What a page of the documentation says of the program: examples, figures, tables and the files they need.

An example is a line of a fenced block without a language that begins with `$ spillway` (what is printed under it is
what the program prints, in excerpts; `...` stands for left out lines) or with `spillway` (nothing printed). Its comment
may name an `exit code N`, and `N rows of M` of a table. Examples run in the folder that the page names: "In `FOLDER`,"
or "From the repository's root". What readers need not see stands in HTML comments:

  <!-- examples                           before a block; PART is a part of the commands meant, all of the block's if left out
  with NAME = PATH                        NAME in the commands is a copy of PATH (from the root)
  full PART                               only under SPILLWAY_TEST_SIZE=full
  exit N PART                             the exit code, where the example's comment doesn't say it
  skip PART: REASON                       not run
  -->
  <!-- file NAME -->                      before a json block: it becomes the file NAME for the page's commands
  <!-- file NAME: PATH -->                the same, its keys put over those of PATH
  <!-- figures: COMMAND                   in or before a paragraph: figures in it; COMMAND prints JSON
  EXPRESSION = PRINTED                    PRINTED as the paragraph has it, to its last digit, or a number and "WORDS"
  -->
  <!-- table: COMMAND                     before a table; {row}: the row's number from 0, {NAME}: the row's cell under NAME
  HEADER: EXPRESSION, EXPRESSION          the numbers in the column's cells
  -->

`figures full:` and `table full:` belong to the full size. `figure: COMMAND | EXPRESSION = PRINTED` fits on one line.
"""
import dataclasses
import re
import shlex

COMMENT = re.compile(r"<!--\s*(examples|files?|figures?|table)\b(.*?)-->", re.DOTALL)
FENCE = re.compile(r"^```(\w*)\s*$")
FOLDER = re.compile(r"\bIn `([^`]+)`, with|\b(From the repository's root)\b")
SPAN = re.compile(r"`(spillway [^`]+)`")


class PageError(Exception):
    """The page itself is wrong; says where."""


@dataclasses.dataclass
class Line:
    number: int  # in the page, from 1
    text: str


@dataclasses.dataclass
class Example:
    place: str  # page:line
    text: str
    arguments: list  # behind "spillway"
    comment: str
    folder: str
    printed: list = dataclasses.field(default_factory=list)  # of Line
    exit_code: int = 0
    full: bool = False
    skip: str = ""


@dataclasses.dataclass
class Figure:
    place: str
    arguments: list
    folder: str
    full: bool
    expression: str
    printed: str  # as in the page
    value: str  # the number it stands for
    line: Line  # where it is printed
    marker: Line  # the marker's own line


@dataclasses.dataclass
class Page:
    name: str
    lines: list
    examples: list
    figures: list
    files: dict  # name: JSON text, or (JSON text, path of the base)
    copies: list  # (name, path), as they stand in the examples' folder
    spans: list  # (place, command) of code spans in running text


def command_of(text, place):
    """Arguments and comment of a command line."""
    command, _, comment = text.partition(" #")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise PageError(f"{place}: {error}: {text}") from None
    if words[:1] != ["spillway"]:
        raise PageError(f"{place}: not a command of spillway: {text}")
    return words[1:], comment.strip()


class Parser:
    def __init__(self, name, text):
        self.name = name
        self.lines = text.split("\n")
        self.folder = None
        self.page = Page(name, self.lines, [], [], {}, [], [])
        self.marks = []  # of the examples' comment before the next block
        self.pending_file = None
        # The text without comments, line for line: paragraphs and tables are looked for in it.
        self.plain = re.sub(r"<!--.*?-->", lambda found: re.sub(r"[^\n]", "", found[0]), text,
                            flags=re.DOTALL).split("\n")

    def place(self, index):
        return f"{self.name}:{index + 1}"

    def fail(self, index, what):
        raise PageError(f"{self.place(index)}: {what}")

    def parse(self):
        index = 0
        while index < len(self.lines):
            if fence := FENCE.match(self.lines[index]):
                index = self.block(index, fence[1])
            elif self.lines[index].lstrip().startswith("<!--") or COMMENT.search(self.lines[index]):
                index = self.comment(index)
            else:
                if folder := FOLDER.search(self.lines[index]):
                    self.folder = folder[1] or "."
                self.page.spans += [(self.place(index), span) for span in SPAN.findall(self.lines[index])]
                index += 1
        if self.marks:
            self.fail(self.marks[0][0], "no block of examples after this comment")
        return self.page

    def comment(self, index):
        end = index
        while "-->" not in self.lines[end]:
            end += 1
            if end == len(self.lines):
                self.fail(index, "this comment has no end")
        if found := COMMENT.search("\n".join(self.lines[index:end + 1])):
            kind, body = found[1], found[2]
            if kind == "examples":
                self.marks += [(index + offset, line.strip()) for offset, line in enumerate(body.split("\n"))
                               if line.strip()]
            elif kind.startswith("file"):
                name, _, base = body.strip().partition(":")
                self.pending_file = (name.strip(), base.strip())
            elif kind.startswith("figure"):
                self.figures(index, end, body)
            else:
                self.table(index, end, body)
        if self.plain[end].strip():
            if folder := FOLDER.search(self.plain[end]):
                self.folder = folder[1] or "."
        return end + 1

    def block(self, begin, language):
        end = begin + 1
        while not FENCE.match(self.lines[end]):
            end += 1
            if end == len(self.lines):
                self.fail(begin, "this block has no end")
        if language == "json" and self.pending_file:
            name, base = self.pending_file
            body = "\n".join(self.lines[begin + 1:end])
            self.page.files[name] = (body, base)
        elif self.pending_file:
            self.fail(begin, "a json block is wanted here")
        self.pending_file = None
        if not language:
            self.examples(begin + 1, end)
        return end + 1

    def examples(self, begin, end):
        found, index = [], begin
        while index < end:
            text, first = self.lines[index], index
            if text.startswith(("$ spillway ", "spillway ")):
                while text.endswith("\\"):
                    index += 1
                    text = text[:-1] + " " + self.lines[index].strip()
                arguments, comment = command_of(text.removeprefix("$ "), self.place(first))
                found.append(Example(self.place(first), text.removeprefix("$ "), arguments, comment, self.folder))
                if code := re.search(r"exit code (\d+)", comment):
                    found[-1].exit_code = int(code[1])
            elif found and text.strip() not in ("", "..."):
                found[-1].printed.append(Line(index + 1, text))
            index += 1
        for line, mark in self.marks if found else []:
            self.mark(line, mark, found)
        for example in found:
            if example.folder is None and not example.skip:
                raise PageError(f"{example.place}: the page doesn't say where its examples run: \"From the "
                                "repository's root\" or \"In `FOLDER`, with ...\"")
        if found:
            self.marks = []
        self.page.examples += found

    def mark(self, index, text, examples):
        word, _, rest = text.partition(" ")
        word, reason, part = word.rstrip(":"), "", rest.strip()
        if word == "with":
            name, path = (side.strip() for side in part.split("="))
            self.page.copies.append((name, path, self.folder))
            part = name
        elif word == "skip":
            part, _, reason = (text.removeprefix("skip")).partition(":")
            part, reason = part.strip(), reason.strip()
            if not reason:
                self.fail(index, "skip needs a reason: skip PART: REASON")
        elif word == "exit":
            code, _, part = part.partition(" ")
        elif word != "full":
            self.fail(index, f"no mark of examples: {text}")
        meant = [example for example in examples if part in example.text]
        if not meant:
            self.fail(index, f"no example of the block has this: {part}")
        for example in meant:
            if word == "full":
                example.full = True
            elif word == "skip":
                example.skip = reason
            elif word == "exit":
                example.exit_code = int(code)

    def head(self, index, body):
        """Size, command and the lines behind it, each with its index, of a comment of figures or a table."""
        size, colon, rest = body.partition(":")
        if not colon or size.strip() not in ("", "full"):
            self.fail(index, "a command is wanted here: \"figures: COMMAND\" or \"figures full: COMMAND\"")
        first, *others = rest.split("\n")
        command, *inline = first.split(" | ")
        entries = [(index, entry.strip()) for entry in inline]
        entries += [(index + 1 + offset, entry.strip()) for offset, entry in enumerate(others) if entry.strip()]
        if not entries:
            self.fail(index, "a command without a figure")
        if self.folder is None:
            self.folder = "."
        return size.strip() == "full", command.strip(), entries

    def after(self, index):
        """The block of text at `index` or after it: first and last line."""
        while index < len(self.plain) and not self.plain[index].strip():
            index += 1
        first = last = index
        while first > 0 and self.plain[first - 1].strip():
            first -= 1
        while last + 1 < len(self.plain) and self.plain[last + 1].strip():
            last += 1
        return range(first, min(last + 1, len(self.plain)))

    def figures(self, begin, end, body):
        full, command, entries = self.head(begin, body)
        paragraph = self.after(end)
        for index, entry in entries:
            expression, equals, printed = entry.rpartition(" = ")
            if not equals:
                self.fail(index, f"EXPRESSION = PRINTED is wanted here: {entry}")
            printed = printed.strip()
            words = re.fullmatch(r'(\S+) "(.*)"', printed)
            value, shown = (words[1], words[2]) if words else (printed, printed)
            where = [line for line in paragraph
                     if re.search(rf"(?<![\w.,]){re.escape(shown)}(?![\w]|[.,]\d)", self.plain[line])]
            if not where:
                self.fail(index, f"the paragraph from line {paragraph.start + 1} on doesn't say {shown}")
            arguments, _ = command_of(command, self.place(begin))
            self.page.figures.append(Figure(self.place(index), arguments, self.folder, full, expression.strip(), shown,
                                            value, Line(where[0] + 1, self.lines[where[0]]),
                                            Line(index + 1, self.lines[index])))

    def table(self, begin, end, body):
        full, command, entries = self.head(begin, body)
        rows = [index for index in self.after(end + 1) if self.plain[index].startswith("|")]
        if len(rows) < 3:
            self.fail(begin, "no table after this comment")
        headers = cells_of(self.plain[rows[0]])
        for index, entry in entries:
            header, _, expressions = entry.partition(": ")
            if header not in headers:
                self.fail(index, f"the table has no column {header}; it has {', '.join(headers)}")
            column = headers.index(header)
            for number, line in enumerate(rows[2:]):
                cells = cells_of(self.plain[line])
                names = {"{row}": str(number)} | {f"{{{name}}}": cell for name, cell in zip(headers, cells)}
                found = re.findall(r"-?\d[\d,]*(?:\.\d+)?", cells[column]) if column < len(cells) else []
                wanted = expressions.split(", ")
                if len(found) != len(wanted):
                    self.fail(line, f"{header}: {len(wanted)} numbers are wanted, not {cells[column:column + 1]}")
                for expression, printed in zip(wanted, found):
                    arguments, _ = command_of(filled(command, names), self.place(begin))
                    self.page.figures.append(Figure(self.place(line), arguments, self.folder, full,
                                                    filled(expression, names), printed, printed,
                                                    Line(line + 1, self.lines[line]), None))


def filled(text, names):
    for name, value in names.items():
        text = text.replace(name, value)
    return text


def cells_of(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def parse(name, text):
    """The page as a Page; throws PageError."""
    return Parser(name, text).parse()
