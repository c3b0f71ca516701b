r"""Unit quaternions and the operators :math:`\boxplus`, :math:`\boxminus` (Marklund et al. 2025, eqs. 2.13–2.15).

A quaternion :math:`e = (w, x, y, z)` rotates body coordinates into world coordinates. Increments are rotation vectors
in the body frame:

.. math:: e \boxplus \psi = e \star \exp(\psi), \qquad e' \boxminus e = \log(\bar e \star e').

Near :math:`\psi = 0`, where the formulas are 0/0, a series replaces them, so that derivatives are finite as well.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from stribeck.identify.mechanism.vectors import (
    Matrix,
    Vector,
    add,
    arctan2,
    cos,
    cross,
    dot,
    scale,
    sin,
    split,
    sqrt,
    where,
)

Quaternion = tuple[Any, Vector]
"""Scalar and vector part."""

SMALL = 1e-8
"""Squared angle below which the series is used [rad²]: its next term is then below 1e-18."""


def quaternion(values: Any) -> Quaternion:
    """Components of an array (4,)."""
    return values[0], (values[1], values[2], values[3])


def multiply(p: Quaternion, q: Quaternion) -> Quaternion:
    r"""Product :math:`p \star q`."""
    (a, u), (b, v) = p, q
    return a * b - dot(u, v), add(scale(a, v), scale(b, u), cross(u, v))


def conjugate(q: Quaternion) -> Quaternion:
    """Inverse of a unit quaternion."""
    return q[0], scale(-1.0, q[1])


def exp(psi: Vector) -> Quaternion:
    """Unit quaternion of a rotation vector [rad]."""
    square = dot(psi, psi)
    tiny = square < SMALL
    angle = sqrt(where(tiny, 1.0, square))
    cosine = where(tiny, 1.0 - square / 8.0, cos(0.5 * angle))
    factor = where(tiny, 0.5 - square / 48.0, sin(0.5 * angle) / angle)
    return cosine, scale(factor, psi)


def log(q: Quaternion) -> Vector:
    """Rotation vector [rad] of a unit quaternion, at most half a turn."""
    sign = where(q[0] < 0.0, -1.0, 1.0)
    w, v = sign * q[0], scale(sign, q[1])
    square = dot(v, v)
    tiny = square < SMALL
    norm = sqrt(where(tiny, 1.0, square))
    safe = where(tiny, w, 1.0)
    series = 2.0 / safe * (1.0 - square / (3.0 * safe * safe))
    return scale(where(tiny, series, 2.0 * arctan2(norm, w) / norm), v)


def matrix(q: Quaternion) -> Matrix:
    """Rotation matrix of a unit quaternion: body to world."""
    w, (x, y, z) = q
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def moved(place: Any, by: Any) -> list[Any]:
    """Position and quaternion of one body (7) after an increment (6)."""
    w, v = multiply(quaternion(place[3:]), exp(split(by[3:])))
    # Normalised, because rounding errors of products of unit quaternions accumulate.
    size = 1.0 / sqrt(w * w + dot(v, v))
    return [*(place[k] + by[k] for k in range(3)), size * w, *scale(size, v)]


def difference(new: Any, old: Any) -> list[Any]:
    """Increment (6) between two positions and quaternions of one body (7)."""
    turn = log(multiply(conjugate(quaternion(old[3:])), quaternion(new[3:])))
    return [*(new[k] - old[k] for k in range(3)), *turn]


def plus(q: Any, increment: Any) -> Any:
    r"""Configuration :math:`q \boxplus \delta` (2.14, 2.16).

    :param q: positions and quaternions of bodies (nb, 7) [m, 1].
    :param increment: translation in the world frame, rotation vector in the body frame (nb, 6) [m, rad].
    """
    return jnp.stack([jnp.stack(moved(place, by)) for place, by in zip(q, increment, strict=True)])


def minus(after: Any, before: Any) -> Any:
    r"""Increment :math:`q' \boxminus q` (2.15), the inverse of :func:`plus` (nb, 6)."""
    return jnp.stack([jnp.stack(difference(new, old)) for new, old in zip(after, before, strict=True)])
