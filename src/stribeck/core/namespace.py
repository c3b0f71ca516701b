"""Selects the array library of a formula: numpy in the nodes, jax.numpy in the fit, ``math`` for Python floats.

A live servo computes with single numbers, on which numpy's functions take ten times as long as those of ``math``.
"""

import math
from types import ModuleType
from typing import Any

import numpy as np


class _Scalars:
    """The functions that formulas use, on Python floats. Overflow gives infinity, as in numpy."""

    abs = staticmethod(abs)
    sin = staticmethod(math.sin)
    cos = staticmethod(math.cos)
    sqrt = staticmethod(math.sqrt)
    tanh = staticmethod(math.tanh)
    isfinite = staticmethod(math.isfinite)

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

    The first argument that belongs to another library than numpy decides. The arrays of numpy 1.26,
    which know no ``__array_namespace__``, count as numpy. Where all arguments are Python numbers the
    functions are those of ``math``; values agree to the last bits.
    """
    if arrays and _FLOATS.issuperset(map(type, arrays)):
        scalars: ModuleType = _SCALARS
        return scalars
    if _NUMPY.issuperset(map(type, arrays)):  # the loop below, without its cost
        return np
    for array in arrays:
        namespace = getattr(array, "__array_namespace__", None)
        if namespace is not None and not isinstance(array, (np.ndarray, np.generic)):
            found: ModuleType = namespace()
            return found
    return np
