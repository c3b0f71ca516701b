"""A session on ideal joints, in virtual time: the goals that it would send, and what they demand of the joints."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.model.arrays import Array
from stribeck.model.bench import gravity_torque, inertia
from stribeck.session.config import SessionConfig
from stribeck.session.limits import Play, SessionJoint, extent, followed, rest_position
from stribeck.session.motion import Following
from stribeck.session.session import Session

FALL = 0.05
"""Time constant with which an ideal joint without torque falls to 0 rad [s]."""

STEP = 0.001
"""Time between the samples of which torques are computed [s]."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Goals of a session, NaN where torque is off.

    :param time: (N,) [s].
    :param goal: (N, J) [rad].
    """

    time: Array
    goal: Array

    @property
    def velocity(self) -> Array:
        """Slopes of the goals, (N, J) [rad/s]."""
        return np.asarray(np.gradient(self.goal, self.time, axis=0))


@dataclass(frozen=True)
class Demand:
    """What a trajectory demands of a joint.

    :param lower, upper: lowest and highest goal [rad].
    :param velocity, acceleration: largest magnitudes [rad/s, rad/s²]; infinite for a goal that jumps.
    :param torque: largest magnitude for the pendulum of the bench, without friction and rotor [N m].
    :param stall_torque: of the servo's datasheet, NaN where not given [N m].
    """

    trajectory: str
    joint: str
    lower: float
    upper: float
    velocity: float
    acceleration: float
    torque: float
    stall_torque: float


def distinct_plays(plays: Sequence[Play]) -> tuple[Play, ...]:
    """The plays without those that repeat a trajectory, at whatever gain: their goals are the same."""
    return tuple({id(play.trajectory): play for play in reversed(plays)}.values())[::-1]


def rehearse(config: SessionConfig, *, releases_torque: bool) -> Rehearsal:
    """Play each trajectory once on joints that are at their goals.

    :raises ConfigError: for plays that exceed limits.
    """
    session = Session(
        distinct_plays(config.plays), config.joints, releases_torque=releases_torque, options=config.options
    )
    position = np.array([rest_position(joint, releases_torque) for joint in config.joints])
    step = 1.0 / config.rate
    goals: list[Array] = []
    fall = math.exp(-step / FALL)
    while not session.over:
        directive = session.update(len(goals) * step, position, source_age=0.0)
        goals.append(directive.goals)
        position = np.where(np.isfinite(directive.goals), directive.goals, position * fall)
    return Rehearsal(np.arange(len(goals)) * np.float64(step), np.array(goals))


def demands(config: SessionConfig) -> list[Demand]:
    """What every trajectory demands of every joint."""
    found = []
    for play in distinct_plays(config.plays):
        torque = _torques(play, config)
        for j, joint in enumerate(config.joints):
            single, placed = followed(play.trajectory, joint)
            goals = extent(single)
            ends = [placed.center + placed.scale * goal for goal in (goals.lower, goals.upper)]
            found.append(
                Demand(
                    play.trajectory.name,
                    joint.name,
                    min(ends),
                    max(ends),
                    abs(placed.scale) * goals.velocity,
                    abs(placed.scale) * goals.acceleration,
                    float(torque[j]),
                    load_actuator(config.bench_joints[j].actuator).datasheet_torque or math.nan,
                )
            )
    return found


def motion_of(play: Play, joints: Sequence[SessionJoint]) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations of a run while torque is on, (N, J) each; N is 0 for a run without torque."""
    until = min(play.trajectory.duration, play.trajectory.torque_until)
    motion = Following(play.trajectory, joints)
    goals = [motion.position(float(time)) for time in np.arange(0.0, until, STEP)]
    if len(goals) < 3:
        return (np.empty((0, len(joints))),) * 3
    goal = np.array(goals)
    return goal[1:-1], (goal[2:] - goal[:-2]) / (2.0 * STEP), np.diff(goal, 2, axis=0) / STEP**2


def _torques(play: Play, config: SessionConfig) -> Array:
    r"""Largest :math:`|J \ddot\theta - \tau_e|` of each joint's pendulum, (J,) [N m]; NaN without torque, and for joints of a robot."""
    position, _, acceleration = motion_of(play, config.joints)
    if not len(position):
        return np.full(len(config.joints), math.nan)
    torque = [
        np.full(len(position), math.nan)
        if joint.load is None
        else inertia(joint.load, 0.0) * acceleration[:, j] - gravity_torque(joint.load, position[:, j], 0.0)
        for j, joint in enumerate(config.bench_joints)
    ]
    return np.asarray(np.abs(torque).max(axis=1))


def check_rehearsal(rehearsal: Rehearsal, joints: Sequence[SessionJoint]) -> None:
    """Check the goals of all phases, soft motions included, against the limits of position and velocity.

    :raises ConfigError: naming joint, time, value and limit.
    """
    goal, velocity = rehearsal.goal, rehearsal.velocity
    for j, joint in enumerate(joints):
        limits = joint.limits
        outside = (goal[:, j] < limits.position_lower) | (goal[:, j] > limits.position_upper)
        fast = np.abs(velocity[:, j]) > limits.velocity * (1.0 + 1e-6)
        for wrong, values, text in (
            (outside, goal, f"{limits.position_lower:g} to {limits.position_upper:g} rad"),
            (fast, velocity, f"{limits.velocity:g} rad/s"),
        ):
            if wrong.any():
                k = int(np.argmax(wrong))
                raise ConfigError(
                    f"joint {joint.name!r} would be at {values[k, j]:.4g} after {rehearsal.time[k]:.3f} s, but its limits are {text}"
                )
