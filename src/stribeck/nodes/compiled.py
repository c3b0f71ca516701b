"""Formulas of ``core``, written once for numpy, compiled for the live loop. No ROS here.

For seven numbers numpy's functions cost thirty times what they compute, and a law has fifty of them. A
formula is therefore run once on symbols, which write down what is done to them, and numexpr evaluates the
whole text in one call. Where numexpr is not installed the formula stays with numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stribeck.core.formulas import Formula, as_written

try:
    import numexpr
except ImportError:
    numexpr = None


def compiled(formula: Formula, names: Sequence[str]) -> Formula:
    """A formula as one call.

    :param formula: elementwise, of arguments that are arrays of floats or broadcast to them.
    :param names: of its arguments, in their order.
    """
    if numexpr is None:
        return as_written(formula, names)
    text = formula(*map(_Symbol, names)).text
    used = [k for k, name in enumerate(names) if re.search(rf"\b{name}\b", text)]
    evaluate: Formula = numexpr.NumExpr(text, signature=[(names[k], np.float64) for k in used])
    if len(used) == len(names):
        return evaluate
    return lambda *arguments: evaluate(*[arguments[k] for k in used])


def _binary(form: str, truth: bool = False) -> Callable[[Any, Any], _Symbol]:
    return lambda a, b: _Symbol(form.format(_text(a), _text(b)), truth)


def _unary(form: str, truth: bool = False) -> Callable[[Any], _Symbol]:
    return lambda a: _Symbol(form.format(_text(a)), truth)


def _logical(form: str) -> Callable[[Any, Any], _Symbol]:
    return lambda a, b: _Symbol(form.format(_condition(a), _condition(b)), True)


class _Symbol:
    """A number that writes down what is done to it, in numexpr's language.

    :param truth: whether it is a truth value; arguments of formulas are numbers, also where they are masks.
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
    """The functions of an array namespace that formulas use. A comparison with NaN is false, a NaN goes through."""

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
    """A number as numexpr reads it, which has no name for infinity."""
    return value.text if isinstance(value, _Symbol) else repr(float(value)).replace("inf", "1e400")


def _condition(value: Any) -> str:
    return value.text if getattr(value, "truth", False) else f"({_text(value)} != 0.0)"
