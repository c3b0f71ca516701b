"""Independent check of a trajectory's limits, at every millisecond.

Positions, velocities and accelerations are summed term by term, torques come from Pinocchio's recursive Newton-Euler
algorithm, and distances from coal on the exact bodies. Only the robot description is shared with the search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import coal
import numpy as np
import pinocchio as pin

from stribeck.excitation.contacts import geometry_of
from stribeck.excitation.shapes import Shape
from stribeck.excitation.task import ExcitationTask
from stribeck.model.arrays import Array
from stribeck.session.fourier import FourierTrajectory

RATE = 1000.0
"""Default rate of the check [Hz]."""

ROUNDING = 1e-9
"""Tolerated excess over a limit, relative to the limit."""

REST = 1e-8
"""Largest velocity [rad/s] and acceleration [rad/s^2] that count as rest."""


@dataclass(frozen=True)
class LimitReport:
    """Result of the independent check of a trajectory against its limits.

    :param violations: number of violations of each limit, over samples of all joints, coefficients or times.
    :param largest: maximum utilisation of each joint limit: position, velocity, acceleration, torque, coefficients.
    :param height: height of the lowest point of all moving bodies [m]; infinite without a floor.
    """

    violations: dict[str, int]
    largest: dict[str, float]
    height: float
    samples: int

    @property
    def clean(self) -> bool:
        """Whether all limits are respected."""
        return not any(self.violations.values())

    @property
    def summary(self) -> str:
        """The violated limits with their counts, in words."""
        return ", ".join(f"{name} ({count})" for name, count in self.violations.items() if count)


def check(task: ExcitationTask, trajectory: FourierTrajectory, rate: float = RATE) -> LimitReport:
    """Check a trajectory at a rate [Hz]."""
    steps = math.ceil(trajectory.duration * rate)
    time = np.linspace(0.0, trajectory.duration, steps + 1)
    position, velocity, acceleration = _motion(trajectory, time)
    torque = task.arm.inverse_dynamics(position, velocity, acceleration)
    limits = task.limits
    middle, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    coefficients = np.hstack([trajectory.sine, trajectory.cosine])
    shares = {
        "position": np.abs(position - middle) / half,
        "velocity": np.abs(velocity) / limits.velocity,
        "acceleration": np.abs(acceleration) / limits.acceleration,
        "torque": np.abs(torque) / limits.effort,
        "coefficients": np.abs(coefficients) / limits.coefficient[:, None],
    }
    ends = np.abs([velocity[0], velocity[-1], acceleration[0], acceleration[-1]])
    height = _lowest(task, position)
    violations = {name: int(np.sum(~(share <= 1.0 + ROUNDING))) for name, share in shares.items()}
    violations["rest"] = int(np.sum(~(ends <= REST)))
    violations["floor"] = 0 if task.floor is None else int(np.sum(~(height > task.floor)))
    violations["self_collision"] = _collisions(task, position)
    return LimitReport(
        violations,
        {name: float(share.max()) for name, share in shares.items()},
        float(height.min()),
        len(time),
    )


def _motion(trajectory: FourierTrajectory, time: Array) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration, term by term."""
    position = np.tile(trajectory.offset, (len(time), 1))
    velocity, acceleration = np.zeros_like(position), np.zeros_like(position)
    for harmonic in range(1, trajectory.sine.shape[1] + 1):
        rate = 2.0 * math.pi * harmonic / trajectory.duration
        a, b = trajectory.sine[:, harmonic - 1], trajectory.cosine[:, harmonic - 1]
        sine, cosine = np.sin(rate * time)[:, None], np.cos(rate * time)[:, None]
        position += (a * sine - b * cosine) / rate
        velocity += a * cosine + b * sine
        acceleration += rate * (b * cosine - a * sine)
    return position, velocity, acceleration


def _placements(task: ExcitationTask, position: Array) -> tuple[Array, Array]:
    """Rotations (N, J, 3, 3) and origins (N, J, 3) of all Pinocchio joints, the base first."""
    model = task.arm.model
    data = model.createData()
    rotations, origins = (
        np.empty((len(position), model.njoints, 3, 3)),
        np.empty((len(position), model.njoints, 3)),
    )
    for k, configuration in enumerate(task.arm.configuration(position)):
        pin.forwardKinematics(model, data, configuration)
        for j in range(model.njoints):
            rotations[k, j], origins[k, j] = data.oMi[j].rotation, data.oMi[j].translation
    return rotations, origins


def _lowest(task: ExcitationTask, position: Array) -> Array:
    """Height of the lowest point of all moving bodies, (N,) [m]."""
    lowest = np.full(len(position), np.inf)
    if task.floor is None:
        return lowest
    rotations, origins = _placements(task, position)
    for shape in task.shapes:
        if shape.joint > 0:
            points, radius = _support(shape)
            heights = rotations[:, shape.joint, 2] @ points.T + origins[:, shape.joint, 2, None]
            lowest = np.minimum(lowest, heights.min(axis=1) - radius)
    return lowest


def _support(shape: Shape) -> tuple[Array, float]:
    """Points in the joint frame and a radius; spheres about the points have the same lowest point as the body."""
    geometry, radius = shape.geometry, 0.0
    if isinstance(geometry, coal.Capsule | coal.Cylinder):
        points, radius = geometry.halfLength * np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]]), geometry.radius
    elif isinstance(geometry, coal.Sphere):
        points, radius = np.zeros((1, 3)), geometry.radius
    elif isinstance(geometry, coal.Box):
        points = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]) * geometry.halfSide
    else:
        points = np.array(
            geometry.vertices() if isinstance(geometry, coal.BVHModelBase) else geometry.points()
        )
    return points @ shape.placement.rotation.T + shape.placement.translation, float(radius)


def _collisions(task: ExcitationTask, position: Array) -> int:
    """Number of times at which bodies collide; meshes are only checked if their convex hulls collide."""
    if not task.shapes:
        return 0
    model = task.arm.model
    hulls, bodies = (geometry_of(task.arm, task.shapes, task.ignored, convex) for convex in (True, False))
    data, hull_data, body_data = model.createData(), hulls.createData(), bodies.createData()
    return sum(
        pin.computeCollisions(model, data, hulls, hull_data, q, True)
        and pin.computeCollisions(model, data, bodies, body_data, q, True)
        for q in task.arm.configuration(position)
    )
