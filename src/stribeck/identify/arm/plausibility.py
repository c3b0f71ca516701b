"""Detection of wrong units, and of motor instead of joint coordinates, by comparison with the URDF."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.recordings import ArmRecording

BEYOND = 1.25
"""Valid range of positions, in multiples of the URDF limits, which are often rough."""

STRONGER = 3.0
"""Largest valid torque, in multiples of the URDF's effort limit."""

WEAKER = 0.1
"""Smallest valid torque of the strongest joint, relative to that of the rigid arm in the URDF."""


def check_positions(runs: Sequence[ArmRecording], arm: ArmModel) -> None:
    """Refuse positions far outside the URDF limits, and torques far above its effort limits.

    :raises RecordingError: with the name of the first such joint.
    """
    lower, upper = arm.position_limits
    effort = arm.effort_limits
    margin = 0.5 * (BEYOND - 1.0) * (upper - lower)
    for run in runs:
        lowest, highest = run.position.min(axis=0), run.position.max(axis=0)
        strongest = np.abs(run.effort).max(axis=0)
        for j, joint in enumerate(run.joints):
            if upper[j] > lower[j] and (
                lowest[j] < lower[j] - margin[j] or highest[j] > upper[j] + margin[j]
            ):
                raise RecordingError(
                    f"{run.name}: {joint} moves from {lowest[j]:.4g} to {highest[j]:.4g} rad, but {arm.path.name} allows {lower[j]:.4g} to {upper[j]:.4g}: is "
                    "the position in degrees (set unit: deg), that of the motor (set gears), or relative to another zero (set offset)?"
                )
            if effort[j] > 0.0 and strongest[j] > STRONGER * effort[j]:
                raise RecordingError(
                    f"{run.name}: the torque of {joint} reaches {strongest[j]:.4g} N m, but {arm.path.name} "
                    f"allows {effort[j]:.4g}: is it in N mm, or a current (set scale)?"
                )


def check_torques(motions: Sequence[ProcessedMotion], arm: ArmModel) -> None:
    """Refuse torques that are all far below those of the rigid arm in the URDF.

    :raises RecordingError: with the ratio for the strongest joint.
    """
    shares = np.zeros(len(arm))
    for motion in motions:
        states = motion.states
        needed = arm.inverse_dynamics(states.position, states.velocity, states.acceleration)
        sizes = np.linalg.norm(needed, axis=0)
        measured = np.linalg.norm(motion.torque, axis=0)
        shares = np.maximum(shares, measured / np.where(sizes > 0.0, sizes, np.inf))
    if shares.max() < WEAKER:
        raise RecordingError(
            f"all torques are at most {100.0 * shares.max():.2g} % of those that {arm.path.name} would need without friction: are they torques of the motors "
            "(set gears) or currents (set scale), or are the masses in the URDF in grams?"
        )
