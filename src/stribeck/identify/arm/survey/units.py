"""Units of recorded positions and velocities, by the limits of the URDF and by the derivatives of the positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.recordings import ArmRecording, velocity_slopes
from stribeck.model.arrays import Array, Mask
from stribeck.recordings.signals.run_units import WRONG, cause_of, clock_error
from stribeck.recordings.signals.units import UNITS

TURNS = 4.0 * np.pi
"""Positions within two turns are radians, whatever the limits of the URDF are."""

TRAVEL = 5.0
"""Prismatic joints do not travel further [m]."""

CLOSE = 0.3
"""Largest relative difference of a slope from that of a unit, as in reading recordings."""

POSITIONS: Mapping[bool, tuple[str, ...]] = {False: ("rad", "deg"), True: ("m", "mm")}
"""Units of positions of revolute and of prismatic joints."""

VELOCITIES: Mapping[bool, tuple[str, ...]] = {False: ("rad/s", "deg/s", "rpm"), True: ("m/s", "mm/s")}
"""Units of velocities of revolute and of prismatic joints."""


@dataclass(frozen=True)
class UnitSurvey:
    """Factors of the readings of all joints to SI, and what they were found from.

    :param position: (n,).
    :param velocity: (n,); ``None`` without measured velocities.
    :param position_reason, velocity_reason: for the comments of the machine's file.
    :param notes: what was found to be in other units than SI.
    """

    position: Array
    velocity: Array | None
    position_reason: str
    velocity_reason: str
    notes: tuple[str, ...] = ()

    def in_si(self, run: ArmRecording) -> ArmRecording:
        """A recording with positions and velocities in SI units."""
        velocity = None if run.velocity is None or self.velocity is None else self.velocity * run.velocity
        return replace(run, position=self.position * run.position, velocity=velocity)


def survey_units(runs: Sequence[ArmRecording], arm: ArmModel) -> UnitSurvey:
    """Find the units of positions and velocities.

    :param runs: recordings as read, without gaps.
    """
    linear = arm.linear
    largest = np.max([np.abs(run.position).max(axis=0) for run in runs], axis=0)
    slopes = _slopes(runs)
    by_slope = slopes is not None and bool(_near(slopes[~linear], UNITS["deg"]).all()) and not linear.all()
    degrees = by_slope or bool((largest[~linear] > TURNS).any())
    millimetres = bool((largest[linear] > TRAVEL).any())
    position = np.where(linear, UNITS["mm"] if millimetres else 1.0, UNITS["deg"] if degrees else 1.0)
    reason = f"largest positions: {', '.join(f'{value:.3g}' for value in largest)}"
    if by_slope:
        reason += "; measured velocities are π/180 of the derivatives of the positions"
    notes = ["positions are in degrees"] if degrees else []
    if slopes is None:
        return UnitSurvey(position, None, reason, "no joint has a measured velocity", tuple(notes))
    slopes = slopes / position
    velocity = np.array([_factor(slope, kind) for slope, kind in zip(slopes, linear, strict=True)])
    shown = ", ".join(f"{slope:.3g}" for slope in slopes)
    if clock := clock_error(float(np.median(slopes))):
        raise RecordingError(
            f"{runs[0].name}: velocities are {shown} times the derivatives of the positions: {clock}, or the "
            "velocities are wrong: give the time in seconds, or ignore the velocities"
        )
    found = f"{shown} times the derivatives of the positions"
    causes = {cause_of(float(slope)) for slope in slopes if abs(slope - 1.0) > CLOSE}
    if causes:
        used = "positions are differentiated" if WRONG in causes else "they are converted by these factors"
        notes.append(f"velocities are {found}: {'; '.join(sorted(causes))}; {used}")
    return UnitSurvey(position, None if WRONG in causes else velocity, reason, found, tuple(notes))


def source_of(
    factors: Array, linear: Mask, units: Mapping[bool, tuple[str, ...]], signs: Array
) -> dict[str, object]:
    """The keys of a signal's source that convert its readings: unit, or scale of each joint, and sign.

    :param factors: of the readings of all joints to SI (n,).
    """
    source: dict[str, object] = {}
    kinds = set(linear.tolist())
    named = [unit for unit in units[bool(linear.all())] if np.allclose(factors, UNITS[unit], rtol=1e-6)]
    if named and (len(kinds) == 1 or named[0] == units[False][0]):
        source["unit"] = named[0]
    else:
        source["scale"] = [float(f"{factor:.6g}") for factor in factors]
    if (signs < 0.0).any():
        source["sign"] = [int(sign) for sign in signs]
    return source


def _slopes(runs: Sequence[ArmRecording]) -> Array | None:
    """Measured velocities relative to the derivatives of positions (n,), of the longest recording that has them."""
    measured = [run for run in runs if run.velocity is not None]
    if not measured:
        return None
    run = max(measured, key=lambda one: len(one.time))
    slopes = velocity_slopes(run)[0]
    return None if not np.isfinite(slopes).all() or (np.abs(slopes) < 1e-6).any() else slopes


def _factor(slope: float, linear: bool) -> float:
    """Factor of a velocity to SI: that of the unit whose slope it has, else the inverse of the slope."""
    for unit in VELOCITIES[linear]:
        if _near(np.array([slope]), 1.0 / UNITS[unit]).all():
            return UNITS[unit]
    return 1.0 / slope


def _near(slopes: Array, expected: float) -> Array:
    return np.asarray(np.abs(slopes / expected - 1.0) < CLOSE)
