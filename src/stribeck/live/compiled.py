"""Compiles formulas of ``core``, which are written for numpy, for the real-time loop.

For seven numbers the call overhead of a numpy function is thirty times its computing time, and a law has fifty calls. A
formula is therefore recorded once (:mod:`stribeck.model.trace.expressions`), and numexpr evaluates the expression in one call.
Where numexpr is not installed, numpy evaluates the formula.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from stribeck.live.formulas import Formula, as_written
from stribeck.model.trace.expressions import Expression, Tracer

try:
    import numexpr
except ImportError:
    numexpr = None


def compiled(formula: Formula, names: Sequence[str]) -> Formula:
    """Compile a formula to a single numexpr call.

    :param formula: elementwise function of float arrays that broadcast to each other.
    :param names: names of its arguments, in order.
    """
    if numexpr is None:
        return as_written(formula, names)
    text = _text(formula(*map(Tracer().symbol, names)))
    used = [k for k, name in enumerate(names) if re.search(rf"\b{name}\b", text)]
    # Not the object itself, which computes for one thread at a time.
    evaluate: Formula = numexpr.interpreter.NumExpr(*_program(text, tuple(names[k] for k in used)))
    if len(used) == len(names):
        return evaluate
    chosen = itemgetter(slice(0), *used)  # a tuple, also of one
    return lambda *arguments: evaluate(*chosen(arguments)[1:])


@cache
def _program(text: str, names: tuple[str, ...]) -> tuple[Any, ...]:
    """What numexpr's virtual machine runs; translated once, for the formulas of a joint take 0.4 s."""
    found = numexpr.NumExpr(text, signature=[(name, np.float64) for name in names])
    return found.signature, found.tempsig, found.program, found.constants, found.input_names


_FORMS = {
    "neg": "(-{})",
    "~": "(~{})",
    "sign": "where({0} > 0.0, 1.0, where({0} < 0.0, -1.0, {0}))",
    "isfinite": "(abs({}) < 1e400)",
    "minimum": "where(({0} < {1}) | ({0} != {0}), {0}, {1})",
    "maximum": "where(({0} > {1}) | ({0} != {0}), {0}, {1})",
}
"""Operations in numexpr's syntax; others are functions or operators of the same name."""

_FUNCTIONS = {"abs", "cos", "exp", "expm1", "log", "sin", "sqrt", "tanh", "where"}


def _text(value: Any) -> str:
    """An expression in numexpr's syntax, which has no name for infinity."""
    if not isinstance(value, Expression):
        return repr(value).replace("inf", "1e400")
    if value.operation == "input":
        return str(value.arguments[0])
    arguments = list(map(_text, value.arguments))
    if value.operation in _FORMS:
        return _FORMS[value.operation].format(*arguments)
    if value.operation in _FUNCTIONS:
        return f"{value.operation}({', '.join(arguments)})"
    return f"({arguments[0]} {value.operation} {arguments[1]})"
