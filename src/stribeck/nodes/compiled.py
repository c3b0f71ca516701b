"""Compiles formulas of ``core``, which are written for numpy, for the real-time loop. No ROS here.

For seven numbers the call overhead of a numpy function is thirty times its computing time, and a law has fifty calls. A
formula is therefore run once on symbols that record the operations, and numexpr evaluates the resulting expression in one
call. Where numexpr is not installed, numpy evaluates the formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from stribeck.core.formulas import Formula, as_written

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
    text = formula(*map(_Symbol, names)).text
    used = [k for k, name in enumerate(names) if re.search(rf"\b{name}\b", text)]
    # Not the object itself, which computes for one thread at a time.
    evaluate: Formula = numexpr.interpreter.NumExpr(*_program(text, tuple(names[k] for k in used)))
    if len(used) == len(names):
        return evaluate
    return lambda *arguments: evaluate(*[arguments[k] for k in used])


@cache
def _program(text: str, names: tuple[str, ...]) -> tuple[Any, ...]:
    """What numexpr's virtual machine runs; translated once, for the formulas of a joint take 0.4 s."""
    found = numexpr.NumExpr(text, signature=[(name, np.float64) for name in names])
    return found.signature, found.tempsig, found.program, found.constants, found.input_names


def _binary(form: str, truth: bool = False) -> Callable[[Any, Any], _Symbol]:
    return lambda a, b: _Symbol(form.format(_text(a), _text(b)), truth)


def _unary(form: str, truth: bool = False) -> Callable[[Any], _Symbol]:
    return lambda a: _Symbol(form.format(_text(a)), truth)


def _logical(form: str) -> Callable[[Any, Any], _Symbol]:
    return lambda a, b: _Symbol(form.format(_condition(a), _condition(b)), True)


class _Symbol:
    """A number that records the operations applied to it, in numexpr's syntax.

    :param truth: whether it is a truth value; arguments of formulas are numbers, even those used as masks.
    """

    def __init__(self, text: str, truth: bool = False) -> None:
        self.text, self.truth = text, truth

    def __array_namespace__(self) -> type[_Functions]:
        return _Functions

    __neg__ = _unary("(-{})")
    __add__, __radd__ = _binary("({} + {})"), _binary("({1} + {0})")
    __sub__, __rsub__ = _binary("({} - {})"), _binary("({1} - {0})")
    __mul__, __rmul__ = _binary("({} * {})"), _binary("({1} * {0})")
    __truediv__, __rtruediv__ = _binary("({} / {})"), _binary("({1} / {0})")
    __lt__, __gt__ = _binary("({} < {})", True), _binary("({} > {})", True)
    __le__, __ge__ = _binary("({} <= {})", True), _binary("({} >= {})", True)
    __eq__, __ne__ = _binary("({} == {})", True), _binary("({} != {})", True)  # type: ignore[assignment]
    __and__, __or__ = _logical("({} & {})"), _logical("({} | {})")
    __hash__ = object.__hash__

    def __invert__(self) -> _Symbol:
        return _Symbol(f"(~{_condition(self)})", True)


class _Functions:
    """The array functions that formulas use. Comparisons with NaN are false; NaN values propagate."""

    abs = staticmethod(_unary("abs({})"))
    exp = staticmethod(_unary("exp({})"))
    expm1 = staticmethod(_unary("expm1({})"))
    log = staticmethod(_unary("log({})"))
    sqrt = staticmethod(_unary("sqrt({})"))
    sign = staticmethod(_unary("where({0} > 0.0, 1.0, where({0} < 0.0, -1.0, {0}))"))
    isfinite = staticmethod(_unary("(abs({}) < 1e400)", True))
    minimum = staticmethod(_binary("where(({0} < {1}) | ({0} != {0}), {0}, {1})"))
    maximum = staticmethod(_binary("where(({0} > {1}) | ({0} != {0}), {0}, {1})"))

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> _Symbol:
        return _Symbol(f"where({_condition(condition)}, {_text(a)}, {_text(b)})")


def _text(value: Any) -> str:
    """A number in numexpr's syntax, which has no name for infinity."""
    return value.text if isinstance(value, _Symbol) else repr(float(value)).replace("inf", "1e400")


def _condition(value: Any) -> str:
    return value.text if getattr(value, "truth", False) else f"({_text(value)} != 0.0)"
