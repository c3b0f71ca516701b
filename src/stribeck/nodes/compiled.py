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

from stribeck.core.compensation import Formula, as_written

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


def _binary(form: str) -> Callable[[Any, Any], _Symbol]:
    return lambda a, b: _Symbol(form.format(_text(a), _text(b)))


def _unary(form: str) -> Callable[[Any], _Symbol]:
    return lambda a: _Symbol(form.format(_text(a)))


class _Symbol:
    """A number that writes down what is done to it, in numexpr's language."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __array_namespace__(self) -> type[_Functions]:
        return _Functions

    __neg__ = _unary("(-{})")
    __add__, __radd__ = _binary("({} + {})"), _binary("({1} + {0})")
    __sub__, __rsub__ = _binary("({} - {})"), _binary("({1} - {0})")
    __mul__, __rmul__ = _binary("({} * {})"), _binary("({1} * {0})")
    __truediv__, __rtruediv__ = _binary("({} / {})"), _binary("({1} / {0})")
    __lt__, __gt__ = _binary("({} < {})"), _binary("({} > {})")


class _Functions:
    """The functions of an array namespace that formulas use. A comparison with NaN is false, a NaN goes through."""

    abs = staticmethod(_unary("abs({})"))
    exp = staticmethod(_unary("exp({})"))
    log = staticmethod(_unary("log({})"))
    minimum = staticmethod(_binary("where(({0} < {1}) | ({0} != {0}), {0}, {1})"))
    maximum = staticmethod(_binary("where(({0} > {1}) | ({0} != {0}), {0}, {1})"))

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> _Symbol:
        return _Symbol(f"where({_text(condition)}, {_text(a)}, {_text(b)})")


def _text(value: Any) -> str:
    return value.text if isinstance(value, _Symbol) else repr(float(value))
