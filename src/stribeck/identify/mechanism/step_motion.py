r"""Motion of a mechanism within a time step, for its sensors.

Positions at the time :math:`t_k + sh` are :math:`c_k + s\,(c_{k+1} - c_k)`. Velocities apply half a step before the positions,
:math:`v_k + (s + \frac12)(v_{k+1} - v_k)`. Accelerations and forces are those of the step,
:math:`(v_{k+1} - v_k)/h` and :math:`\lambda/h` with the reactions :math:`\Sigma\lambda = -(Gv_{k+1} + \frac4h\Upsilon g - \Upsilon Gv_k)`,
which apply at :math:`t_k` and are held until :math:`t_{k+1}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.formulas import SCALARS
from stribeck.identify.mechanism.mechanism import Physical
from stribeck.identify.mechanism.vectors import (
    ZERO,
    Vector,
    add,
    cross,
    floor,
    mul,
    mul_transposed,
    scale,
    split,
    sub,
    total,
)

TURN = 2.0 * np.pi


class StepMotion:
    """Quantities of a mechanism within a step.

    :param here, there: states at the beginning and the end.
    """

    _share: Any

    def __init__(
        self,
        dynamics: MultibodyDynamics,
        physical: Physical,
        here: BodyState,
        there: BodyState,
        step: float,
    ) -> None:
        self._dynamics, self._physical, self._step, self._share = dynamics, physical, step, 0.0
        self._states = here, there
        self._poses = [dynamics.layout.pose(physical, state.q) for state in self._states]

    def at(self, share: Any) -> StepMotion:
        """The same step at the position s within it, 0 to 1."""
        other = copy(self)
        other._share = share
        return other

    def ask(self, name: str, index: int, place: Vector) -> Any:
        """A quantity of :data:`~stribeck.identify.mechanism.formulas.QUANTITIES`."""
        if name in ("force", "torque"):
            return self._reaction(index, name)
        if name in SCALARS:
            return self._position(index) if name == "position" else self._rate(index)
        if index == 0:
            return place if name == "point" else scale(-1.0, self._fall) if name == "accelerometer" else ZERO
        arm = sub(place, split(self._physical.com[index - 1]))
        if name == "point":
            return self._point(index, arm)
        if name == "velocity":
            return self._velocity(index, arm)
        return self._accelerometer(index, arm) if name == "accelerometer" else self._gyroscope(index)

    @property
    def _fall(self) -> Vector:
        return self._dynamics.gravity(self._physical)

    def _between(self, values: Sequence[Vector], late: float) -> Vector:
        return add(values[0], scale(self._share + late, sub(values[1], values[0])))

    def _point(self, body: int, arm: Vector) -> Vector:
        pairs = zip(self._states, self._poses, strict=True)
        return self._between(
            [add(split(state.q[body - 1]), mul(pose.turns[body], arm)) for state, pose in pairs], 0.0
        )

    def _velocity(self, body: int, arm: Vector) -> Vector:
        found = []
        for state, pose in zip(self._states, self._poses, strict=True):
            v = state.v[body - 1]
            found.append(add(split(v), mul(pose.turns[body], cross(split(v[3:]), arm))))
        return self._between(found, 0.5)

    def _gyroscope(self, body: int) -> Vector:
        return self._between([split(state.v[body - 1][3:]) for state in self._states], 0.5)

    def _accelerometer(self, body: int, arm: Vector) -> Vector:
        old, new = (state.v[body - 1] for state in self._states)
        linear = scale(1.0 / self._step, sub(split(new), split(old)))
        spin = scale(0.5, add(split(old[3:]), split(new[3:])))
        turning = scale(1.0 / self._step, sub(split(new[3:]), split(old[3:])))
        of_arm = add(cross(turning, arm), cross(spin, cross(spin, arm)))
        return add(mul_transposed(self._poses[0].turns[body], sub(linear, self._fall)), of_arm)

    def _position(self, joint: int) -> Any:
        first, second = (self._dynamics.layout.coordinates(pose)[joint] for pose in self._poses)
        moved = second - first
        if self._dynamics.layout.rotates[joint]:
            moved = moved - TURN * floor(moved / TURN + 0.5)
        return first + self._share * moved

    def _rate(self, joint: int) -> Any:
        pairs = zip(self._poses, self._states, strict=True)
        first, second = (self._dynamics.layout.rates(pose, state.v)[1][joint] for pose, state in pairs)
        return first + (self._share + 0.5) * (second - first)

    def _reaction(self, joint: int, name: str) -> Vector:
        layout, (here, there) = self._dynamics.layout, self._states
        none = [[0.0] * len(layout.owner)], [0.0] * self._dynamics.mechanism.inputs
        gaps = self._dynamics.impulses(self._physical, here, [there.v], *none, self._step)[1][0]
        sigma = self._dynamics.softness(self._physical, self._step).sigma
        held, at = layout.held[joint], self._poses[0].joints[joint]
        first = layout.owner.index(joint) if held else 0
        by = {k: -gaps[first + i] / (sigma[first + i] * self._step) for i, k in enumerate(held)}
        ours = range(3) if name == "force" else range(3, 6)
        vectors = (*at.axes, *at.normals)
        world = total(scale(by[k], vectors[k]) for k in ours if k in by)
        return mul_transposed(self._poses[0].turns[layout.joints[joint].child], world)
