"""Motion segments of a session: goals of all joints as functions of the time since the start of the segment.

Goals depend on time alone, not on the timing of the loop that sends them. Positions and velocities are (J,); NaN where
torque is off. Trajectory controllers receive segments whole, as plans, and stop at their end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from stribeck.model.arrays import Array
from stribeck.model.trajectories import Trajectory, cubic
from stribeck.session.directive import Plan, SessionOptions
from stribeck.session.limits import Play, SessionJoint, followed, goal_velocity


class GoalMotion(Protocol):
    """Goals as functions of the time since the start of the motion."""

    @property
    def duration(self) -> float:
        """Duration of the motion [s]."""

    def position(self, time: float) -> Array:
        """Goals at ``time`` [s], (J,) [rad], constant after the end."""

    def velocity(self, time: float) -> Array:
        """Velocities of the goals at ``time`` [s], (J,) [rad/s]."""


@dataclass(frozen=True, eq=False)
class Hold:
    """Constant goals, or torque off where they are NaN."""

    goal: Array
    duration: float = 0.0

    def position(self, time: float) -> Array:
        """The goals."""
        return self.goal

    def velocity(self, time: float) -> Array:
        """Zero."""
        return np.zeros_like(self.goal)


@dataclass(frozen=True, eq=False)
class Glide:
    """Rest-to-rest motion from ``start`` to ``end``, (J,) [rad], all joints in ``duration`` [s].

    Uses :func:`~stribeck.model.trajectories.cubic`.
    """

    start: Array
    end: Array
    duration: float

    @classmethod
    def within(cls, start: Array, end: Array, speed: Array, acceleration: Array) -> Glide:
        r"""The shortest motion within the limits of speed and acceleration, (J,).

        A cubic over the distance D in the time T has the peaks :math:`1.5 D / T` and :math:`6 D / T^2`.
        """
        distance = np.abs(end - start)
        times = np.maximum(1.5 * distance / speed, np.sqrt(6.0 * distance / acceleration))
        return cls(start, end, float(np.max(times)))

    def position(self, time: float) -> Array:
        """Goals at ``time``."""
        if time >= self.duration:
            return self.end
        share = cubic(np.array(time), 0.0, 0.0, self.duration, 1.0)
        return np.asarray(self.start + (self.end - self.start) * share)

    def velocity(self, time: float) -> Array:
        r"""The cubic's derivative :math:`6 u (1 - u) D / T`."""
        if not 0.0 < time < self.duration:
            return np.zeros_like(self.start)
        u = time / self.duration
        return np.asarray((self.end - self.start) * (6.0 * u * (1.0 - u) / self.duration))


@dataclass(frozen=True, eq=False)
class Brake:
    """Deceleration to rest, constant for each joint.

    :param start: (J,) [rad].
    :param start_velocity: (J,) [rad/s].
    :param deceleration: (J,), positive; infinite for an immediate stop [rad/s²].
    """

    start: Array
    start_velocity: Array
    deceleration: Array

    @property
    def duration(self) -> float:
        """Time until the last joint has stopped [s]."""
        return float(np.max(self._stops))

    @cached_property
    def _stops(self) -> Array:
        return np.asarray(np.abs(self.start_velocity) / self.deceleration)

    def position(self, time: float) -> Array:
        r"""Positions :math:`x_0 + v_0 t (1 - t / 2T)`, constant after the stopping time :math:`T = |v_0| / a`."""
        t = np.clip(time, 0.0, self._stops)
        share = 1.0 - 0.5 * t / np.where(self._stops > 0.0, self._stops, 1.0)
        return np.asarray(self.start + self.start_velocity * t * share)

    def velocity(self, time: float) -> Array:
        r"""Velocities :math:`v_0 (1 - t / T)`, zero after T."""
        moving = self._stops > 0.0
        left = np.clip(1.0 - time / np.where(moving, self._stops, 1.0), 0.0, 1.0)
        return np.asarray(np.where(moving, self.start_velocity * left, 0.0))


def braking(motion: GoalMotion, time: float, deceleration: Array) -> Brake:
    """Deceleration to rest from ``time`` [s] of a motion; after its end, the rest of the deceleration that follows it.

    :param deceleration: of each joint, (J,) [rad/s²].
    """
    until = min(time, motion.duration) if motion.duration > 0.0 else time
    brake = Brake(motion.position(until), motion.velocity(until), deceleration)
    if time <= until:
        return brake
    return Brake(brake.position(time - until), brake.velocity(time - until), deceleration)


@dataclass(frozen=True, eq=False)
class Following:
    """A trajectory, either with each joint's center and scale or with goals for each joint; NaN once torque is off."""

    trajectory: Trajectory
    joints: Sequence[SessionJoint]

    @property
    def duration(self) -> float:
        """Duration of the trajectory [s]."""
        return self.trajectory.duration

    @property
    def drops(self) -> bool:
        """Whether torque is off at the end."""
        return self.trajectory.torque_until < self.trajectory.duration

    def position(self, time: float) -> Array:
        """Goals at ``time``."""
        time = min(max(time, 0.0), self.duration)
        if not self.trajectory.torque_enable(time):
            return np.full(len(self.joints), math.nan)
        if not self.trajectory.joint_goals:
            goal = float(self.trajectory.goal(np.array([time]))[0])
            return np.array([joint.center + joint.scale * goal for joint in self.joints])
        return np.array([trajectory.goal(np.array([time]))[0] for trajectory in self._of_joints])

    def velocity(self, time: float) -> Array:
        """Velocities of the goals."""
        time = min(max(time, 0.0), self.duration)
        if not self.trajectory.joint_goals:
            velocity = goal_velocity(self.trajectory, time)
            return np.array([joint.scale * velocity for joint in self.joints])
        return np.array([goal_velocity(trajectory, time) for trajectory in self._of_joints])

    @cached_property
    def _of_joints(self) -> list[Trajectory]:
        return [followed(self.trajectory, joint)[0] for joint in self.joints]


AT_REST = 1e-6
"""Stopping time [s] below which a joint counts as at rest; controllers need strictly increasing times."""


def sampled(motion: GoalMotion, start: float, step: float, bounds: tuple[Array, Array]) -> Plan | None:
    """A motion as points, or ``None`` if it holds a position.

    :param start: its start time [s].
    :param step: longest time between points [s].
    :param bounds: lower and upper bounds of the positions, (J,) each [rad].
    """
    if motion.duration <= 0.0:
        return None
    count = max(1, math.ceil(motion.duration / step))
    time = np.linspace(0.0, motion.duration, count + 1)
    position = np.clip([motion.position(float(t)) for t in time], *bounds)
    velocity = np.array([motion.velocity(float(t)) for t in time])
    return Plan(start, time, position, velocity)


def with_rest(plan: Plan, deceleration: Array, step: float, rest: float) -> Plan:
    """Extend a plan by deceleration and a period of rest.

    The controller then stops even if it receives nothing further, and the plan is not already over when it arrives late:
    controllers reject such plans, and go on with what they have. With infinite deceleration the last position is held at zero velocity.

    :param deceleration: of each joint, (J,) [rad/s²].
    :param step: time between points [s].
    :param rest: duration of the rest period [s].
    """
    brake = Brake(plan.position[-1], plan.velocity[-1], deceleration)
    count = math.ceil(brake.duration / step) if brake.duration > AT_REST else 0
    time = np.linspace(0.0, brake.duration, count + 1)[1:]
    ends = [*time, brake.duration + rest]
    velocity = plan.velocity.copy()
    if not count:
        velocity[-1] = 0.0
    return Plan(
        plan.start,
        np.concatenate([plan.time, plan.time[-1] + np.array(ends)]),
        np.concatenate([plan.position, [brake.position(float(t)) for t in ends]]),
        np.concatenate([velocity, [brake.velocity(float(t)) for t in ends]]),
    )


def hold(position: Array, start: float, duration: float, rest: float) -> Plan:
    """Plan that moves to a position (J,) [rad] within ``duration`` [s] from ``start`` [s] and rests there for ``rest`` [s]."""
    times = np.array([duration, duration + rest])
    return Plan(start, times, np.tile(position, (2, 1)), np.zeros((2, position.size)))


def estimated_duration(
    play: Play,
    joints: Sequence[SessionJoint],
    rest: Array,
    soft: tuple[Array, Array],
    options: SessionOptions,
) -> float:
    """Estimated duration of a play with all its phases [s].

    :param rest: position between runs, (J,) [rad].
    :param soft: speed [rad/s] and acceleration [rad/s²] between runs, (J,) each.
    """
    before = options.gain_time + 2.0 * options.rest_time + play.trajectory.duration
    following = Following(play.trajectory, joints)
    if following.drops:
        return before + options.enable_time + options.swing_time + 2.0
    back = Glide.within(following.position(play.trajectory.duration), rest, *soft)
    return before + back.duration + 2.0 * options.rest_time
