r"""What a measured effort is: torque, current or torque of the motor, and its signs, against the torques of the URDF.

For each joint, least squares over its moving rows

.. math::

    y = s\,\tau_{URDF} + I\,\ddot q + v\,\dot q + c\,sign(\dot q) + o

gives the scale s of the effort y (1 for torques in N m) and the friction c. With friction against the motion, c has the
sign of the effort, and with the URDF's gravity, s has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import linalg

from stribeck.files.commented_yaml import TODO
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.motion import ProcessedMotion, States
from stribeck.model.arrays import Array

ROWS = 1500
"""At most so many rows of each recording are used."""

CORRELATED = 20.0
"""Rows that carry the information of one independent row, for the standard deviations."""

CLEAR = 5.0
"""A scale is clear if it exceeds this multiple of its standard deviation."""

FACTOR = 2.0
"""Efforts whose scale is within this factor of one are torques; links and friction explain the difference."""

ODD = 4.0
"""Beyond this factor the links of one joint are questioned."""

BETTER = 0.7
"""Another sign of a position must leave less than this share of the squared error."""

MILLI = 1e3

UNITS: dict[str, dict[str, object]] = {
    "torque": {},
    "millitorque": {"unit": "mN m"},
    "other": {"scale": TODO},
}
"""Keys of the source of an effort, by its kind."""


class EffortNote(NamedTuple):
    """What looks wrong with the ``sign`` or the ``size`` (``about``) of the effort of a joint."""

    joint: str
    about: str
    text: str


@dataclass(frozen=True)
class EffortSurvey:
    """Comparison of efforts with the torques of the URDF.

    :param kind: ``torque``, ``millitorque`` (N mm), or ``other`` (currents, torques of motors).
    :param scale: s of each joint (n,), NaN where it is not clear.
    :param position_signs, effort_signs: ±1 for each joint (n,).
    :param notes: what looks wrong.
    """

    kind: str
    scale: Array
    position_signs: Array
    effort_signs: Array
    notes: tuple[EffortNote, ...]


@dataclass(frozen=True)
class _Rows:
    """Rows of all recordings: states (N, n), effort (N, n) and moving rows (N, n)."""

    states: States
    effort: Array
    moving: Array


@dataclass(frozen=True)
class _JointFit:
    """Least squares of one joint: values and standard deviations of (s, I, v, c, o), and squared errors."""

    values: Array
    sigma: Array
    square: float
    total: float


def survey_effort(arm: ArmModel, motions: Sequence[ProcessedMotion]) -> EffortSurvey:
    """Compare efforts with the torques of the URDF.

    :param motions: recordings with efforts as measured.
    """
    rows = _rows(motions)
    signs = _position_signs(arm, rows)
    fits = _fits(arm, rows, signs)
    scale, effort_signs = np.full(len(arm), np.nan), np.ones(len(arm))
    notes: list[EffortNote] = []
    sizes = np.zeros(len(arm))
    for j, (joint, fit) in enumerate(zip(arm.joints, fits, strict=True)):
        gravity, friction = (fit.values[k] / max(fit.sigma[k], 1e-300) for k in (0, 3))
        leading = gravity if abs(gravity) > abs(friction) else friction
        if leading < -CLEAR:
            effort_signs[j] = -1.0
        if min(abs(gravity), abs(friction)) > CLEAR and gravity * friction < 0.0:
            sign = (
                f"{joint}: the effort has the sign {np.sign(gravity):+.0f} against the gravity and inertia of the URDF, but {np.sign(friction):+.0f} against "
                "friction: check the signs of position and effort"
            )
            notes.append(EffortNote(joint, "sign", sign))
        if abs(gravity) > CLEAR:
            scale[j] = abs(fit.values[0])
            sizes[j] = abs(gravity)
    kind = _kind(scale, sizes)
    if kind == "torque":
        notes += [
            EffortNote(
                joint,
                "size",
                f"{joint}: the effort is {value:.3g} times the torque that the links of the URDF need: does the URDF lack a tool or load "
                "(`stribeck identify arm … --payload identify`), or are its masses wrong?",
            )
            for joint, value in zip(arm.joints, scale, strict=True)
            if value > ODD or value < 1.0 / ODD
        ]
    return EffortSurvey(kind, scale, signs, effort_signs, tuple(notes))


def effort_source(arm: ArmModel, effort: EffortSurvey) -> tuple[dict[str, object], str]:
    """Keys of the source of the efforts, and what they were found from."""
    signs = effort.effort_signs
    source: dict[str, object] = dict(UNITS[effort.kind])
    if effort.kind == "torque":
        source["unit"] = "N" if arm.linear.all() else "N m"
    clear = np.isfinite(effort.scale)
    ratio = ", ".join(
        f"{joint} {value:.3g}"
        for joint, value in zip(arm.joints, effort.scale, strict=True)
        if np.isfinite(value)
    )
    reason = f"ratio of the efforts to the torques that the links of the URDF need, without friction: {ratio or 'not clear for any joint'}"
    if effort.kind == "other":
        gains = ", ".join(
            f"{1.0 / value:.3g}" if known else "?" for value, known in zip(effort.scale, clear, strict=True)
        )
        reason += (
            "; the efforts are not in N m, but are currents or torques of the motors. Enter the drive gains as a list, in N m of each joint per unit of "
            f"effort; these agree with the masses of the URDF: [{gains}]"
        )
    if (signs < 0.0).any():
        source["sign"] = [int(sign) for sign in signs]
        against = [joint for joint, sign in zip(arm.joints, signs, strict=True) if sign < 0.0]
        reason += f"; the efforts of {', '.join(against)} have the opposite sign to gravity or friction"
    return source, reason


def _kind(scale: Array, sizes: Array) -> str:
    """Kind of effort by the median scale of the joints, each weighted by the square of its t-ratio ``sizes``."""
    clear = np.flatnonzero(np.isfinite(scale))
    if len(clear) == 0:
        return "torque"
    order = clear[np.argsort(scale[clear])]
    weights = np.cumsum(sizes[order] ** 2)
    typical = float(scale[order[int(np.searchsorted(weights, 0.5 * weights[-1]))]])
    for kind, expected in (("torque", 1.0), ("millitorque", MILLI)):
        if 1.0 / FACTOR < typical / expected < FACTOR:
            return kind
    return "other"


def _rows(motions: Sequence[ProcessedMotion]) -> _Rows:
    parts = []
    for motion in motions:
        pick = slice(None, None, -(-len(motion.time) // ROWS))
        states = motion.states.at(pick)
        parts.append(
            (states.position, states.velocity, states.acceleration, motion.torque[pick], motion.moving[pick])
        )
    position, velocity, acceleration, effort, moving = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    return _Rows(States(1.0, position, velocity, acceleration), effort, moving)


def _position_signs(arm: ArmModel, rows: _Rows) -> Array:
    """Signs of the positions that explain the efforts best, changed one joint after the other."""
    signs = np.ones(len(arm))
    best = _error(_fits(arm, rows, signs))
    for _, j in product(range(2), range(len(arm))):
        other = signs.copy()
        other[j] = -other[j]
        error = _error(_fits(arm, rows, other))
        if error < BETTER * best:
            signs, best = other, error
    return signs


def _error(fits: Sequence[_JointFit]) -> float:
    """Mean squared error of the joints, relative to their efforts."""
    return float(np.mean([fit.square / fit.total for fit in fits if fit.total > 0.0] or [0.0]))


def _fits(arm: ArmModel, rows: _Rows, signs: Array) -> list[_JointFit]:
    states = rows.states
    position, velocity, acceleration = (
        signs * part for part in (states.position, states.velocity, states.acceleration)
    )
    torque = arm.inverse_dynamics(position, velocity, acceleration)
    fits = []
    for j in range(len(arm)):
        moving = rows.moving[:, j]
        columns = np.column_stack(
            [
                torque[moving, j],
                acceleration[moving, j],
                velocity[moving, j],
                np.sign(velocity[moving, j]),
                np.ones(int(moving.sum())),
            ]
        )
        fits.append(_fit(columns, rows.effort[moving, j]))
    return fits


def _fit(columns: Array, effort: Array) -> _JointFit:
    if len(effort) < 4 * columns.shape[1]:
        return _JointFit(np.zeros(5), np.ones(5), 0.0, 0.0)
    size = np.linalg.norm(columns, axis=0)
    size[size == 0.0] = 1.0
    scaled = columns / size
    gram = scaled.T @ scaled + 1e-9 * np.eye(columns.shape[1])
    values = linalg.solve(gram, scaled.T @ effort, assume_a="pos")
    residual = effort - scaled @ values
    variance = float(residual @ residual) / len(effort) * CORRELATED
    sigma = np.sqrt(variance * np.diag(linalg.inv(gram)))
    total = float(np.sum((effort - effort.mean()) ** 2))
    return _JointFit(values / size, sigma / size, float(residual @ residual), total)
