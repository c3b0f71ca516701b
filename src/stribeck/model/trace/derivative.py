"""Derivatives of formulas in one direction, exact: numbers that carry their slope along.

A formula that takes its functions from an array namespace is evaluated with :class:`Dual` numbers in place of those that
vary, and with :func:`namespace_of` in place of the namespace. Slopes that are zero or one cost no operation, so that a
derivative recorded as an expression has no more operations than one written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


class Dual:
    """A value and its slope; both numbers, arrays or expressions.

    :param slope: ``None``: zero.
    """

    __slots__ = ("slope", "value")
    __array_ufunc__ = None  # arrays leave operations with it to it
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, slope: Any = None) -> None:
        self.value, self.slope = value, slope

    def __neg__(self) -> Dual:
        return Dual(-self.value, _scaled(self.slope, -1.0))

    def __add__(self, other: Any) -> Dual:
        b = _dual(other)
        return Dual(self.value + b.value, _sum(self.slope, b.slope))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dual:
        return self + -_dual(other)

    def __rsub__(self, other: Any) -> Dual:
        return _dual(other) - self

    def __mul__(self, other: Any) -> Dual:
        b = _dual(other)
        return Dual(self.value * b.value, _sum(_scaled(self.slope, b.value), _scaled(b.slope, self.value)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        b = _dual(other)
        quotient = self.value / b.value
        slope = _sum(self.slope, _scaled(_scaled(b.slope, quotient), -1.0))
        return Dual(quotient, None if slope is None else slope / b.value)

    def __rtruediv__(self, other: Any) -> Dual:
        return _dual(other) / self

    def __pow__(self, exponent: float) -> Dual:
        """To the power of a number."""
        if self.slope is None:
            return Dual(self.value**exponent)
        return Dual(self.value**exponent, _scaled(self.slope, exponent * self.value ** (exponent - 1.0)))

    def __lt__(self, other: Any) -> Any:
        return self.value < _dual(other).value

    def __le__(self, other: Any) -> Any:
        return self.value <= _dual(other).value

    def __gt__(self, other: Any) -> Any:
        return self.value > _dual(other).value

    def __ge__(self, other: Any) -> Any:
        return self.value >= _dual(other).value


def slope_of(found: Any) -> Any:
    """The slope of a result, 0.0 if it does not depend on what varies."""
    return 0.0 if not isinstance(found, Dual) or found.slope is None else found.slope


def namespace_of(xp: Any) -> ModuleType:
    """The functions of an array namespace for dual numbers."""
    module: Any = _Functions(xp)
    found: ModuleType = module
    return found


def _dual(value: Any) -> Dual:
    return value if isinstance(value, Dual) else Dual(value)


def _sum(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _scaled(slope: Any, factor: Any) -> Any:
    if slope is None:
        return None
    if isinstance(slope, float) and slope == 1.0:
        return factor
    if isinstance(factor, float) and factor in (1.0, -1.0):
        return slope if factor == 1.0 else -slope
    return slope * factor


class _Functions:
    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def _apply(self, function: Callable[[Any], Any], x: Any, slope: Callable[[Any, Any], Any]) -> Dual:
        """A function of one argument; ``slope(value, result)`` is its derivative."""
        x = _dual(x)
        result = function(x.value)
        return Dual(result, None if x.slope is None else _scaled(x.slope, slope(x.value, result)))

    def _chosen(self, condition: Any, a: Dual, b: Dual) -> Dual:
        slope: Any = None
        if a.slope is not None or b.slope is not None:
            ends = [0.0 if one.slope is None else one.slope for one in (a, b)]
            slope = self._xp.where(condition, *ends)
        return Dual(self._xp.where(condition, a.value, b.value), slope)

    def abs(self, x: Any) -> Dual:
        return self._apply(self._xp.abs, x, lambda value, _: self._xp.sign(value))

    def exp(self, x: Any) -> Dual:
        return self._apply(self._xp.exp, x, lambda _, result: result)

    def log(self, x: Any) -> Dual:
        return self._apply(self._xp.log, x, lambda value, _: 1.0 / value)

    def sqrt(self, x: Any) -> Dual:
        return self._apply(self._xp.sqrt, x, lambda _, result: 0.5 / result)

    def sin(self, x: Any) -> Dual:
        return self._apply(self._xp.sin, x, lambda value, _: self._xp.cos(value))

    def cos(self, x: Any) -> Dual:
        return self._apply(self._xp.cos, x, lambda value, _: -self._xp.sin(value))

    def tanh(self, x: Any) -> Dual:
        return self._apply(self._xp.tanh, x, lambda _, result: 1.0 - result * result)

    def sign(self, x: Any) -> Dual:
        return Dual(self._xp.sign(_dual(x).value))

    def maximum(self, a: Any, b: Any) -> Dual:
        a, b = _dual(a), _dual(b)
        return self._chosen(a.value >= b.value, a, b)

    def minimum(self, a: Any, b: Any) -> Dual:
        a, b = _dual(a), _dual(b)
        return self._chosen(a.value <= b.value, a, b)

    def where(self, condition: Any, a: Any, b: Any) -> Dual:
        return self._chosen(condition, _dual(a), _dual(b))
