"""What a table of a joint shows about itself: units, signs and clocks that cannot be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array, Indices
from stribeck.recordings.signals.run_units import (
    LARGEST_POSITION,
    LARGEST_SPEED,
    LONGEST_INTERVAL,
    cause_of,
    clock_error,
)

if TYPE_CHECKING:
    from stribeck.identify.joint.run import JointRun
    from stribeck.survey.joint_table import JointTable

STILL = 1e-4
"""Travel below which a joint counts as still [rad]."""

OTHER_UNIT = (0.4, 2.5)
"""Beyond these ratios, velocities are in another unit, or of another side of a gear."""

AGREE = 0.05
"""Velocities that differ less from the slope of the position are right."""

RELATED = 0.5
"""Least correlation of a velocity with the slope of the position."""

LARGEST_TORQUE = 2000.0
"""Larger torques [N m] are in N mm or counts."""


@dataclass(frozen=True)
class Notice:
    """Something noticed about a recording.

    :param use: ``note``: said, ``doubtful`` and ``unusable``: also a reason against the result.
    """

    key: str
    use: Literal["note", "doubtful", "unusable"]
    text: str


def check_magnitudes(table: JointTable, signals: Mapping[str, Array], pieces: Sequence[Indices]) -> None:
    """Refuse a joint that stands still, and values that are only plausible in other units.

    :raises RecordingError: with the unit that is likely.
    """
    name, columns = table.name, table.columns
    travel = float(np.ptp(signals["position"]))
    if travel < STILL:
        raise RecordingError(
            f"{name}: the position of the joint changes by only {travel:.2g} rad: friction can be identified only from motion; record a motion"
        )
    interval = float(np.median(np.concatenate([np.diff(signals["time"][rows]) for rows in pieces])))
    if interval > LONGEST_INTERVAL and "time" not in table.declared:
        raise RecordingError(
            f"{name}: samples are {interval:g} s apart: is {columns['time']} in milliseconds? Then give "
            f"`columns` time={columns['time']}:ms. If it is in seconds, give time={columns['time']}:s"
        )
    largest = float(np.max(np.abs(signals["position"])))
    if largest > LARGEST_POSITION and "position" not in table.declared:
        raise RecordingError(
            f"{name}: {columns['position']} reaches {largest:.4g} rad: is it in degrees? Then give `columns` position={columns['position']}:deg. Is it on the "
            f"motor side of a gear? Then divide it by the gear ratio. If it is correct, give position={columns['position']}:rad"
        )
    torque = signals["torque"]
    if not np.any(torque):
        raise RecordingError(
            f"{name}: all torques are zero: give the column of the torque as `columns` torque=COLUMN"
        )
    if np.ptp(torque) == 0.0:
        raise RecordingError(
            f"{name}: the torque is the same in all rows: give the column of the torque as `columns` torque=COLUMN"
        )
    if float(np.max(np.abs(torque))) > LARGEST_TORQUE and not {"torque", "current"} & table.declared:
        column = columns.get("torque", columns.get("current", "torque"))
        raise RecordingError(
            f"{name}: {column} reaches {np.max(np.abs(torque)):.4g} N m: is it in N mm? Then give `columns` torque={column}:mN m. Is it in counts? Then "
            f"convert it. If it is correct, give torque={column}:N m"
        )


def check_motion(table: JointTable, runs: Sequence[JointRun]) -> None:
    """Refuse a joint that moves in one direction only, and speeds that no joint has.

    :raises RecordingError: for these.
    """
    steps = np.concatenate([np.diff(run.position) for run in runs])
    forward, backward = float(np.sum(steps[steps > 0.0])), -float(np.sum(steps[steps < 0.0]))
    if min(forward, backward) < 0.02 * max(forward, backward):
        raise RecordingError(
            f"{table.name}: the joint moves in one direction only, so that friction cannot be distinguished from a constant torque: record both directions"
        )
    largest = float(np.quantile(np.abs(np.concatenate([run.velocity for run in runs])), 0.99))
    if largest > LARGEST_SPEED and not {"velocity", "position"} & table.declared:
        raise RecordingError(
            f"{table.name}: the joint moves at {largest:.3g} rad/s: are positions and velocities "
            "in degrees, or on the motor side of a gear? Give their units with `columns`"
        )


def check_velocity(table: JointTable, runs: Sequence[JointRun]) -> list[Notice]:
    """Compare the velocity with the slope of the position, by displacements.

    :raises RecordingError: for a velocity in another unit, of another sign, or of something else.
    """
    name, column = table.name, table.columns["velocity"]
    ratio, together = velocity_ratio(runs)
    without = f"ignore it with `columns` velocity=none, so that the velocity is computed from {table.columns['position']}"
    if not np.isfinite(ratio) or abs(together) < RELATED:
        raise RecordingError(
            f"{name}: {column} is not the derivative of {table.columns['position']}: does one of them belong "
            f"to another joint? Name the columns with `columns`, or {without}"
        )
    if ratio < 0.0:
        raise RecordingError(
            f"{name}: {column} is {ratio:.3g} times the derivative of {table.columns['position']}: one of them has the wrong sign: {without}"
        )
    if not OTHER_UNIT[0] < ratio < OTHER_UNIT[1]:
        raise RecordingError(
            f"{name}: {column} is {ratio:.4g} times the derivative of {table.columns['position']}: "
            f"{cause_of(ratio)}: give its unit with `columns`, or {without}"
        )
    if abs(ratio - 1.0) < AGREE:
        return []
    clock = clock_error(ratio)
    why = f"{clock}, or the velocity is wrong" if clock else "one of them is wrong"
    text = (
        f"{name}: {column} is {ratio:.3g} times the derivative of {table.columns['position']}: {why}. It is "
        f"used without a change, so the friction law is valid for velocities scaled like these ({without})"
    )
    return [Notice("velocity", "doubtful", text)]


def velocity_ratio(runs: Sequence[JointRun]) -> tuple[float, float]:
    r"""Measured velocity relative to the slope of the position, and their correlation, by displacements over 0.1 s."""
    moved, integrals = [], []
    for run in runs:
        steps = np.diff(run.time)
        travelled = np.concatenate([[0.0], np.cumsum(0.5 * steps * (run.velocity[1:] + run.velocity[:-1]))])
        width = max(1, min(round(0.1 / float(np.median(steps))), len(steps) // 2))
        moved.append(run.position[width:] - run.position[:-width])
        integrals.append(travelled[width:] - travelled[:-width])
    a, b = np.concatenate(moved), np.concatenate(integrals)
    power = float(a @ a)
    if power <= 0.0:
        return np.nan, 0.0
    return float(a @ b) / power, float(a @ b) / max(np.sqrt(power * float(b @ b)), 1e-300)


def relative_position(name: str, position: Array) -> list[Notice]:
    """A notice about positions from which their mean was subtracted: angles in other recordings have another zero.

    A motion of whole periods has the mean zero too, but ends where it began.
    """
    spread = float(np.std(position))
    if abs(float(np.mean(position))) > 1e-5 * spread or abs(position[-1] - position[0]) < 0.05 * spread:
        return []
    text = (
        f"{name}: the mean of the position is zero, so it was probably subtracted: the zero of the angle "
        "may differ between recordings, and no term that depends on the angle is fitted"
    )
    return [Notice("relative_position", "note", text)]
