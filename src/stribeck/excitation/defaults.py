"""Inputs of the trajectory design for a robot of which only the URDF is known."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stribeck.excitation.task import UNLIMITED, JointLimits
from stribeck.files.robots import RobotConfig
from stribeck.identify.arm.model import ArmModel, load_arm
from stribeck.model.arrays import Array, Mask
from stribeck.rigid.urdf import movable_joints, robot_element

GRIPPER = re.compile("finger|grip|jaw|claw", re.IGNORECASE)
"""Joints with such names belong to a gripper."""

FASTEST = (np.pi, 0.25)
"""Largest default velocity of joints that turn [rad/s] and slide [m/s]: URDFs often state 1000."""

ACCELERATION = (10.0, 2.0)
"""Default acceleration limit of joints that turn [rad/s^2] and slide [m/s^2]: URDFs state none."""

TRAVEL = 0.1
"""Default travel of sliding joints without limits, to both sides of zero [m]."""

RESERVE = 2.0
"""A missing effort limit is this times the largest torque that the URDF's inertials need in random states."""

STATES = 2000
"""Number of these states."""


@dataclass(frozen=True)
class UrdfAlone:
    """A robot of which only the URDF is known.

    :param limits: from the URDF, completed by defaults.
    :param said: one line for each default that was used.
    """

    config: RobotConfig
    arm: ArmModel
    limits: JointLimits
    said: tuple[str, ...]


def robot_of_urdf(path: Path) -> UrdfAlone:
    """A robot from its URDF: joints that move except those of grippers and mimic joints, and limits.

    :raises ConfigError: for an invalid URDF.
    """
    movable, mimics = movable_joints(robot_element(path))
    grippers = [name for name in movable if name not in mimics and GRIPPER.search(name)]
    left = [*grippers, *mimics]
    joints = [name for name in movable if name not in left] or [
        name for name in movable if name not in mimics
    ]
    arm = load_arm(path, joints)
    limits, said = _limits(arm, arm.linear)
    if len(joints) < len(movable):
        still = ", ".join(name for name in movable if name not in joints)
        said = [f"joints: {', '.join(joints)}; locked at zero (gripper or mimic): {still}", *said]
    config = RobotConfig(path=path, schema=1, name=path.stem, title=path.stem, joints=tuple(joints))
    return UrdfAlone(config, arm, limits, tuple(said))


def _limits(arm: ArmModel, slides: Mask) -> tuple[JointLimits, list[str]]:
    """Limits of all joints, and a line for each kind of limit that is not that of the URDF."""
    fastest, acceleration = (
        np.where(slides, of_slides, of_turns) for of_turns, of_slides in (FASTEST, ACCELERATION)
    )
    widest = np.where(slides, TRAVEL, UNLIMITED)
    lower, upper = arm.position_limits
    open_ = ~(lower < upper) | (slides & ~np.isfinite(upper - lower))
    far = ~slides & ~open_ & (np.maximum(-lower, upper) > 1.01 * UNLIMITED)
    turning = far & ~np.isfinite(upper - lower)
    lower, upper = np.where(open_, -widest, lower), np.where(open_, widest, upper)
    lower, upper = (np.where(far, np.clip(side, -UNLIMITED, UNLIMITED), side) for side in (lower, upper))
    stated = arm.velocity_limits
    velocity = np.where(stated > 0.0, np.minimum(stated, fastest), fastest)
    limits = JointLimits(lower, upper, velocity, acceleration, arm.effort_limits, velocity)
    missing = ~(limits.effort > 0.0)
    if missing.any():
        limits = replace(limits, effort=np.where(missing, RESERVE * _needed(arm, limits), limits.effort))
    lines = [
        (
            open_,
            "position: limited to +-{:.3g} rad or +-{:.3g} m, because the URDF states no limits",
            (UNLIMITED, TRAVEL),
        ),
        (turning, "position: continuous, +-{:.3g} rad", (UNLIMITED,)),
        (far & ~turning, "position: limits reduced to +-{:.3g} rad", (UNLIMITED,)),
        (stated != velocity, "velocity: at most {:.3g} rad/s or {:.3g} m/s", FASTEST),
        (
            missing,
            "effort: limited to {:g} times the largest effort that the masses need, because the URDF states no limits",
            (RESERVE,),
        ),
        (np.ones(len(arm), dtype=bool), "acceleration: limited to {:g} rad/s^2 or {:g} m/s^2", ACCELERATION),
    ]
    return limits, [
        f"{text.format(*numbers)} ({_named(arm, mask)})" for mask, text, numbers in lines if mask.any()
    ]


def _named(arm: ArmModel, mask: Mask) -> str:
    return (
        "all joints"
        if mask.all()
        else ", ".join(name for name, of in zip(arm.joints, mask, strict=True) if of)
    )


def _needed(arm: ArmModel, limits: JointLimits) -> Array:
    """Largest torque of each joint in random states within the other limits, (n,); at least 1e-3 of the largest."""
    rng = np.random.default_rng(0)
    velocity, acceleration = (
        rng.uniform(-1.0, 1.0, (STATES, len(arm))) * side for side in (limits.velocity, limits.acceleration)
    )
    needed = np.abs(arm.inverse_dynamics(limits.anywhere(STATES).T, velocity, acceleration)).max(axis=0)
    return np.asarray(np.maximum(needed, 1e-3 * needed.max()))
