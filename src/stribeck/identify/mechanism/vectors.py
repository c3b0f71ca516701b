"""Three-dimensional vectors and matrices as tuples of numbers, for JAX, CasADi and numpy.

Each formula of the dynamics is implemented once, for JAX arrays in simulations and for CasADi symbols where the estimation
needs sparse derivatives. CasADi differentiates a time step in 50 µs without compilation; XLA compiles for a minute.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import jax.numpy as jnp
import numpy as np

Vector = tuple[Any, Any, Any]
Matrix = tuple[Vector, Vector, Vector]
"""Three rows."""

ZERO: Vector = (0.0, 0.0, 0.0)
IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def split(values: Any) -> Vector:
    """The three elements of an array (3,)."""
    return values[0], values[1], values[2]


def add(first: Vector, *others: Vector) -> Vector:
    """Sum of vectors."""
    for other in others:
        first = (first[0] + other[0], first[1] + other[1], first[2] + other[2])
    return first


def total(vectors: Iterable[Vector]) -> Vector:
    """Sum of any number of vectors."""
    return add(ZERO, *vectors)


def sub(a: Vector, b: Vector) -> Vector:
    """Difference."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def scale(factor: Any, a: Vector) -> Vector:
    """Product of a number and a vector."""
    return factor * a[0], factor * a[1], factor * a[2]


def dot(a: Vector, b: Vector) -> Any:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def column(m: Matrix, k: int) -> Vector:
    """Column k."""
    return m[0][k], m[1][k], m[2][k]


def mul(m: Matrix, a: Vector) -> Vector:
    """Product of a matrix and a vector."""
    return dot(m[0], a), dot(m[1], a), dot(m[2], a)


def mul_transposed(m: Matrix, a: Vector) -> Vector:
    """Product of the transposed matrix and a vector."""
    return dot(column(m, 0), a), dot(column(m, 1), a), dot(column(m, 2), a)


def _library(*numbers: Any) -> Any:
    """CasADi if one of the numbers is a CasADi symbol, numpy for numpy arrays, otherwise JAX."""
    for number in numbers:
        if type(number).__module__.startswith("casadi"):
            return import_module("casadi")
    return np if any(isinstance(number, np.ndarray) for number in numbers) else jnp


def where(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, otherwise ``no``; both must be finite."""
    library = _library(condition, yes, no)
    return (library.where if hasattr(library, "where") else library.if_else)(condition, yes, no)


def sqrt(x: Any) -> Any:
    """Square root."""
    return _library(x).sqrt(x)


def sin(x: Any) -> Any:
    """Sine."""
    return _library(x).sin(x)


def cos(x: Any) -> Any:
    """Cosine."""
    return _library(x).cos(x)


def arctan2(y: Any, x: Any) -> Any:
    """Angle of (x, y) in (-π, π]."""
    library = _library(x, y)
    return (library.arctan2 if hasattr(library, "arctan2") else library.atan2)(y, x)


def floor(x: Any) -> Any:
    """Largest integer not above x; its derivative is 0."""
    return _library(x).floor(x)
