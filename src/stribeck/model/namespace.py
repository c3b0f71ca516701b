"""Selects the array library of a formula: numpy in the nodes, jax.numpy in fits, ``math`` for Python floats.

A live servo computes with single numbers, for which numpy's functions take ten times as long as those of ``math``.
"""

import math
from types import ModuleType
from typing import Any

import numpy as np

PI_IN_TWO = 3.140625, 9.67653589793e-4
r""":math:`\pi` as a number of few bits, whose multiples are exact in float32, and the rest."""


class _Scalars:
    """The functions used in formulas, for Python floats. Overflow gives infinity, as in numpy."""

    abs = staticmethod(abs)
    sin = staticmethod(math.sin)
    cos = staticmethod(math.cos)
    sqrt = staticmethod(math.sqrt)
    tanh = staticmethod(math.tanh)
    isfinite = staticmethod(math.isfinite)
    floor = staticmethod(math.floor)

    @staticmethod
    def exp(x: float) -> float:
        try:
            return math.exp(x)
        except OverflowError:
            return math.inf

    @staticmethod
    def log(x: float) -> float:
        return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)

    @staticmethod
    def maximum(a: float, b: float) -> float:
        return a if a >= b or a != a else b

    @staticmethod
    def minimum(a: float, b: float) -> float:
        return a if a <= b or a != a else b

    @staticmethod
    def clip(x: float, lower: float, upper: float) -> float:
        if x < lower:
            x = lower
        return upper if x > upper else x

    @staticmethod
    def sign(x: float) -> float:
        return math.copysign(1.0, x) if x else x

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        return a if condition else b

    @staticmethod
    def ndim(_: Any) -> int:
        return 0


_SCALARS: Any = _Scalars()
_FLOATS = frozenset((float, int, bool))
_NUMPY = _FLOATS | {np.ndarray, np.float64}


def array_namespace(*arrays: Any) -> ModuleType:
    """The array namespace of the arguments, numpy by default.

    The first argument from a library other than numpy decides. Arrays of numpy 1.26, which lack
    ``__array_namespace__``, count as numpy. If all arguments are Python numbers, the functions are those of ``math``;
    their values agree up to rounding.
    """
    if arrays and _FLOATS.issuperset(map(type, arrays)):
        scalars: ModuleType = _SCALARS
        return scalars
    if _NUMPY.issuperset(map(type, arrays)):  # shortcut for the loop below
        return np
    for array in arrays:
        namespace = getattr(array, "__array_namespace__", None)
        if namespace is not None and not isinstance(array, (np.ndarray, np.generic)):
            module: ModuleType = namespace()
            return module
    return np


def sine(x: Any) -> Any:
    r""":math:`\sin x`, in float32 under JAX as the Taylor series up to the eleventh power, after reduction to :math:`|x| \le \pi/2`.

    XLA calls the C library for the sine of each element on a processor, which takes longer than all else in a time step of a
    servo. The remainder of the series is below 6e-8, the rounding of float32.
    """
    xp = array_namespace(x)
    if getattr(x, "dtype", None) != np.float32 or xp is np:
        return xp.sin(x)
    turns = xp.round(x * (1.0 / np.pi))
    rest = x - turns * PI_IN_TWO[0] - turns * PI_IN_TWO[1]
    square = rest * rest
    series = 1.0
    for power in (10, 8, 6, 4, 2):
        series = 1.0 - square * series * (1.0 / (power * (power + 1)))
    odd = turns - 2.0 * xp.floor(0.5 * turns)
    return (1.0 - 2.0 * odd) * rest * series
