"""Conditions from text: `delay > 30 and carrier == 'UA'`, `30 <= age < 40`, `age=30:40`.

A text is clauses joined by "and". A clause compares a column with values:

    column op value | value op column [op value] | column [not] in {value, …}
    column is [not] missing | column = value | column = low:high

with op one of < <= > >= == !=. A value is a number, a word, or anything in quotation marks; names
of columns that are no words stand in backquotes. `age=30:40` is 30 ≤ age < 40, and either end may
be left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nits.tables.questions.conditions import Among, Condition, Missing, Other, Range, Value, missing

TOKEN = re.compile(
    r"""\s*(?:
        (?P<mark><=|>=|==|!=|[<>=(){}\[\],])
      | (?P<quoted>'[^']*'|"[^"]*")
      | `(?P<name>[^`]*)`
      | (?P<word>[^\s<>=!(){}\[\],'"`]+)
    )""",
    re.VERBOSE,
)

PAIR = re.compile(r"(?P<name>[^<>=!`]+)=(?!=)(?P<value>.*)")

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
CLOSING = {"{": "}", "[": "]", "(": ")"}

Pair = tuple[str, Condition]


class Token(NamedTuple):
    """A part of the text.

    kind: "mark", "quoted", "name" (in backquotes) or "word".
    """

    kind: str
    text: str


def parse(text: str) -> list[Pair]:
    """Returns the columns that a text names, each with a condition."""
    found: list[Pair] = []
    for clause in _clauses(_tokens(text), text):
        found += _clause(clause, text)
    return found


def _tokens(text: str) -> list[Token]:
    found, at, whole = [], 0, text.rstrip()
    while at < len(whole):
        match = TOKEN.match(whole, at)
        if match is None:
            raise _error(text, f"{whole[at:].strip()!r} is no part of one")
        kind = str(match.lastgroup)
        part = match.group(kind)
        found.append(Token(kind, part[1:-1] if kind == "quoted" else part))
        at = match.end()
    return found


def _clauses(tokens: list[Token], text: str) -> list[list[Token]]:
    """Returns the tokens between the words "and"."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        word = token.text.lower() if token.kind == "word" else ""
        if word in ("or", "not") and not _negates(found[-1], word):
            raise _error(text, f"{word!r} cannot join clauses; use 'in', '!=' or 'not in'")
        if word in ("and", "&"):
            found.append([])
        else:
            found[-1].append(token)
    if not all(found):
        raise _error(text, "a clause is empty")
    return found


def _negates(before: list[Token], word: str) -> bool:
    """Returns whether "not" stands after a column, as in `x not in {…}` or `x is not missing`."""
    return word == "not" and bool(before)


def _clause(tokens: list[Token], text: str) -> list[Pair]:
    words = [t.text.lower() if t.kind == "word" else "" for t in tokens]
    if len(tokens) > 1 and words[1] == "is":
        return [(tokens[0].text, _hole(words[2:], text))]
    if "in" in words[1:3]:
        return [(tokens[0].text, _listed(tokens, words, text))]
    marks = [(i, t.text) for i, t in enumerate(tokens) if t.kind == "mark"]
    shape = "".join("m" if t.kind == "mark" else "v" for t in tokens)
    if marks[:1] == [(1, "=")]:
        return [(tokens[0].text, _assigned(tokens[2:], text))]
    if shape == "vmvmv":
        return _between(tokens, text)
    if shape == "vmv":
        return [_compared(*tokens, text=text)]
    raise _error(text, f"{' '.join(t.text for t in tokens)!r} is none")


def _hole(words: list[str], text: str) -> Condition:
    if words == ["missing"]:
        return missing
    if words == ["not", "missing"]:
        return Range()
    raise _error(text, "'is' must be followed by 'missing' or 'not missing'")


def _listed(tokens: list[Token], words: list[str], text: str) -> Condition:
    """Returns the condition of `column in {…}`, or `column not in {…}`."""
    start = words.index("in") + 1
    values = _values(tokens[start:], text)
    return Other(values) if words[start - 2] == "not" else Among(values)


def _values(tokens: list[Token], text: str) -> tuple[str, ...]:
    """Returns the values in braces."""
    if len(tokens) < 3 or CLOSING.get(tokens[0].text) != tokens[-1].text:
        raise _error(text, "'in' must be followed by values in braces, such as {'JFK', 'LGA'}")
    items = tokens[1:-1]
    commas = all(t.text == "," and t.kind == "mark" for t in items[1::2])
    if not commas or any(t.kind == "mark" for t in items[::2]) or not len(items) % 2:
        raise _error(text, "values in braces must be separated by commas")
    return tuple(t.text for t in items[::2])


def _assigned(tokens: list[Token], text: str) -> Condition:
    """Returns the condition of `column=value`, `column=low:high` or `column=missing`."""
    if tokens and tokens[0] == Token("mark", "{"):
        return Among(_values(tokens, text))
    if len(tokens) != 1 or tokens[0].kind == "mark":
        raise _error(text, "'=' must be followed by a value or a range low:high")
    token = tokens[0]
    return assigned(token.text) if token.kind == "word" else Value(token.text)


def option(text: str) -> list[Pair]:
    """Returns the conditions of one option of a command line: `column=value with spaces`, or any.

    What stands after the first single "=" needs no quotation marks.
    """
    match = PAIR.fullmatch(text)
    if match is None or match["value"].lstrip()[:1] in tuple("{'\""):
        return parse(text)
    return [(match["name"].strip(), assigned(match["value"].strip()))]


def assigned(text: str) -> Condition:
    """Returns the condition that the part after "column=" stands for."""
    if text == "missing":
        return missing
    low, colon, high = text.partition(":")
    # Times have colons, too: 2024-01-01T12:30 is a value.
    if not colon or ":" in high or "T" in low:
        return Value(text)
    return Range(low.strip() or None, high.strip() or None)


def _between(tokens: list[Token], text: str) -> list[Pair]:
    """Returns the conditions of `low <= column < high`, or with the signs turned."""
    low, first, column, second, high = tokens
    for mark in (first, second):
        _refuse_no_comparison(mark, text)
    if first.text[0] != second.text[0] or first.text[0] not in "<>":
        raise _error(text, "two comparisons in a row must point the same way")
    one = _compared(low, first, column, text=text, turned=True)
    other = _compared(column, second, high, text=text)
    a, b = one[1], other[1]
    if not (isinstance(a, Range) and isinstance(b, Range)):
        raise _error(text, "two comparisons in a row must point the same way")
    if first.text[0] == "<":
        return [(column.text, Range(a.low, b.high, a.from_low, b.to_high))]
    return [(column.text, Range(b.low, a.high, b.from_low, a.to_high))]


def _compared(
    left: Token, mark: Token, right: Token, *, text: str, turned: bool | None = None
) -> Pair:
    """Returns the condition of one comparison; a column on its right is one in backquotes.

    turned: Whether the column is on the right; by default as it looks.
    """
    _refuse_no_comparison(mark, text)
    if turned is None:
        turned = right.kind == "name" or (left.kind == "quoted" or _numeric(left))
    sign = FLIPPED[mark.text] if turned else mark.text
    column, value = (right, left) if turned else (left, right)
    word = value.kind == "word" and value.text == "missing"
    return column.text, _of_sign(sign, missing if word else value.text)


def _refuse_no_comparison(mark: Token, text: str) -> None:
    if mark.text not in FLIPPED:
        raise _error(text, f"{mark.text!r} is no comparison")


def _numeric(token: Token) -> bool:
    try:
        float(token.text)
    except ValueError:
        return False
    return token.kind == "word"


def _of_sign(sign: str, value: str | Missing) -> Condition:
    if isinstance(value, Missing):
        return Range() if sign == "!=" else value
    found: dict[str, Condition] = {
        "<": Range(None, value),
        "<=": Range(None, value, to_high=True),
        ">": Range(value, None, from_low=False),
        ">=": Range(value, None),
        "==": Value(value),
        "!=": Other((value,)),
    }
    return found[sign]


def _error(text: str, why: str) -> ValueError:
    return ValueError(
        f"a condition must look like \"delay > 30 and carrier == 'UA'\" or 'age=30:40', "
        f"but in {text!r} {why}."
    )
