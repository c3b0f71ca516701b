"""Recorded formulas as statements of C and C++."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stribeck.model.trace.expressions import OPERATORS, Expression

_FORMS = {
    "neg": "(-{0})",
    "~": "(!{0})",
    "&": "({0} && {1})",
    "|": "({0} || {1})",
    "where": "({0} ? {1} : {2})",
    "maximum": "({0} >= {1} || {0} != {0} ? {0} : {1})",
    "minimum": "({0} <= {1} || {0} != {0} ? {0} : {1})",
    "sign": "({0} > {zero} ? {one} : {0} < {zero} ? -{one} : {0})",
}
"""Operations that are no functions, as :mod:`stribeck.model.namespace` defines them."""

_REPEATED = {"maximum", "minimum", "sign"}
"""Operations whose form contains an argument more than once."""


LONGEST = 90
"""Characters of a value without a name of its own."""


@dataclass(frozen=True)
class Dialect:
    """How numbers and functions are written.

    :param real: type of numbers.
    :param number: a number in text.
    :param functions: names of functions that differ from those of the formulas.
    """

    real: str
    number: Callable[[float], str]
    functions: Mapping[str, str]


def statements(results: Sequence[Any], dialect: Dialect) -> tuple[list[str], list[str]]:
    """Declarations of values that are used more than once or are long, and the texts of the results.

    :param results: expressions of one trace, or numbers. Inputs are named as in the trace.
    """
    nodes: dict[int, Expression] = {}
    uses: Counter[int] = Counter()
    for result in results:
        _count(result, nodes, uses)
    repeated = {
        argument.index
        for node in nodes.values()
        if node.operation in _REPEATED
        for argument in _expressions(node)
    }
    names = {index: str(node.arguments[0]) for index, node in nodes.items() if node.operation == "input"}
    lines: list[str] = []
    for index, node in sorted(nodes.items()):
        if index in names:
            continue
        text = _written(node, names, dialect)
        if uses[index] > 1 or index in repeated or len(text) > LONGEST:
            kind = "int" if node.truth else dialect.real
            names[index] = f"t{len(lines)}"
            lines.append(f"const {kind} t{len(lines)} = {_bare(text)};")
    return lines, [_bare(_text(result, names, dialect)) for result in results]


def _count(value: Any, nodes: dict[int, Expression], uses: Counter[int]) -> None:
    if isinstance(value, Expression):
        uses[value.index] += 1
        if value.index not in nodes:
            nodes[value.index] = value
            for argument in value.arguments:
                _count(argument, nodes, uses)


def _expressions(node: Expression) -> Iterator[Expression]:
    return (argument for argument in node.arguments if isinstance(argument, Expression))


def _text(value: Any, names: Mapping[int, str], dialect: Dialect) -> str:
    if not isinstance(value, Expression):
        return str(int(value)) if isinstance(value, bool) else dialect.number(float(value))
    return names[value.index] if value.index in names else _written(value, names, dialect)


def _written(node: Expression, names: Mapping[int, str], dialect: Dialect) -> str:
    arguments = [_text(argument, names, dialect) for argument in node.arguments]
    if node.operation in _FORMS:
        zero, one = dialect.number(0.0), dialect.number(1.0)
        return _FORMS[node.operation].format(*arguments, zero=zero, one=one)
    if node.operation in OPERATORS and node.operation not in dialect.functions:
        return f"({arguments[0]} {node.operation} {arguments[1]})"
    name = dialect.functions.get(node.operation, node.operation)
    return f"{name}({', '.join(map(_bare, arguments))})"


def _bare(text: str) -> str:
    """A text without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]
