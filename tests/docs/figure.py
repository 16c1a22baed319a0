"""Figures out of a JSON document, and lines out of a printed one."""
import ast
import difflib
import operator
import re

PATH = re.compile(r"\.[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\]]*\])*")
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
FUNCTIONS = {"max": max, "min": min, "sum": sum, "count": len}


class FigureError(Exception):
    """The expression can't be had from the document."""


def look_up(document, path):
    """What `.key`, `[index]`, `[key=text]` (the only such element) and `[]` (all of them) lead to."""
    values, many = [document], False
    for key, index in re.findall(r"\.([A-Za-z_]\w*)|\[([^\]]*)\]", path):
        try:
            if key:
                values = [value[key] for value in values]
            elif not index.strip():
                values, many = [element for value in values for element in value], True
            elif "=" in index:
                name, _, text = index.partition("=")
                values = [only([element for element in value if str(element.get(name)) == text]) for value in values]
            else:
                values = [value[int(index)] for value in values]
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            step = key or f"[{index}]"
            known = ", ".join(values[0]) if values and isinstance(values[0], dict) else type(values[0]).__name__
            raise FigureError(f"{path}: no {step}; there is {known}") from None
    return values if many else values[0]


def only(elements):
    if len(elements) != 1:
        raise IndexError
    return elements[0]


def evaluate(document, expression):
    """The number or text that `expression` has in `document`: paths, + - * /, and max, min, sum, count of lists."""
    found = []

    def put(path):
        found.append(look_up(document, path[0]))
        return f"_{len(found) - 1}"

    def value(node):
        if isinstance(node, ast.Expression):
            return value(node.body)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and re.fullmatch(r"_\d+", node.id):
            return found[int(node.id[1:])]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*[value(argument) for argument in node.args])
        raise FigureError(f"{expression}: not understood")

    try:
        return value(ast.parse(PATH.sub(put, expression), mode="eval"))
    except (SyntaxError, TypeError, ZeroDivisionError) as error:
        raise FigureError(f"{expression}: {error}") from None


def as_printed(value, printed):
    """`value` with as many decimals, and thousands apart, as `printed` has."""
    if isinstance(value, str):
        return value
    decimals = len(printed.partition(".")[2])
    return f"{value:{',' if ',' in printed else ''}.{decimals}f}"


def agrees(value, printed):
    """Whether `printed` is `value` to its last digit; halves go either way."""
    try:
        number = float(printed.replace(",", ""))
    except ValueError:
        return value == printed
    decimals = len(printed.partition(".")[2])
    return not isinstance(value, (str, list, dict)) and abs(float(value) - number) <= 0.5 * 10**-decimals * (1 + 1e-9)


def bare(line):
    """The line without the spacing of its columns."""
    return " ".join(line.split())


def masked(line):
    """The line with its numbers taken out."""
    return re.sub(r"\d[\d,.]*", "#", bare(line))


def first_column(line):
    return re.split(r"\s{2,}|\s*\d", line.strip(), maxsplit=1)[0]


def compare_lines(documented, printed):
    """Finds the documented lines, in order, among the printed ones.

    Returns where each is, None where it isn't.
    """
    wanted, places, position = [bare(line) for line in printed], [], 0
    for line in documented:
        try:
            places.append(wanted.index(bare(line), position))
            position = places[-1] + 1
        except ValueError:
            places.append(None)
    return places


def nearest(line, printed):
    """The printed line that is most like `line`; None if nothing is printed."""
    ratios = [(difflib.SequenceMatcher(None, bare(line), bare(other), autojunk=False).ratio(), -index)
              for index, other in enumerate(printed) if other.strip()]
    return printed[-max(ratios)[1]] if ratios else None


def replacement(line, printed):
    """The one printed line that `line` became: alike but for numbers, else in its first column; None if several are."""
    for like in (masked, first_column):
        same = [other for other in printed if like(other) == like(line) and like(line)]
        if len(same) == 1:
            return same[0]
        if same:
            return None
    return None


NUMBER_WORDS = dict(zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13)))


def rows_of_table(printed, index):
    """How many rows the printed table has that line `index` is of, its header left out."""
    first = last = index
    while first > 0 and printed[first - 1].strip():
        first -= 1
    while last + 1 < len(printed) and printed[last + 1].strip():
        last += 1
    return last - first


def stated_rows(comment):
    """(shown, in all) of "two rows of nine"; None if the comment doesn't say it."""
    found = re.search(r"(\w+) rows? of (\w+)", comment)
    if not found or not all(word in NUMBER_WORDS for word in found.groups()):
        return None
    return NUMBER_WORDS[found[1]], NUMBER_WORDS[found[2]]
