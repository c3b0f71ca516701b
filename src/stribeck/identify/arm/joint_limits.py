"""Torque limits of joints for live compensation, from the URDF and the recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.model.arrays import Array


def largest_friction(fit: FullFit, motions: Sequence[ProcessedMotion]) -> Array:
    """Largest identified friction of each joint in the recordings (n,) [N m or N], its share of couplings included."""
    parts = [fit.torques(motion) for motion in motions]
    largest = [np.maximum(part.budget, np.abs(part.friction)).max(axis=0) for part in parts]
    return np.asarray(np.max(largest, axis=0))


def torque_limits(arm: ArmModel | None, given: Sequence[float] | None, runs: Sequence[ArmRecording]) -> Array:
    """Largest torque of each joint (n,) [N m or N]: as given, else the URDF's effort limit, else the largest recorded one."""
    largest = np.max([np.abs(run.effort).max(axis=0) for run in runs], axis=0)
    limits = np.array(given) if given is not None else largest * 0.0 if arm is None else arm.effort_limits
    return np.asarray(np.where(limits > 0.0, limits, largest))
