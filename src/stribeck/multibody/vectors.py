"""Vectors and matrices of three as tuples of numbers.

Under JAX each number is an array over time steps and directions of differentiation. As elements of small arrays they would be
strided, and XLA would spend its time on taking them apart; as numbers they are contiguous, and everything fuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    """Product with a number."""
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
