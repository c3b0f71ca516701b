r"""All joints of a robot together, forward in time from goals alone: MuJoCo with the identified drives.

:math:`(M(q) + I_a)\,\ddot q + h(q, \dot q) = \tau_m + \tau_0 + \tau_f`. In each step the friction budget of
:func:`stribeck.model.law.friction_budget` becomes the ``frictionloss`` of its joint, for which MuJoCo solves the dry
friction of all joints jointly; torques that grow with velocity are integrated implicitly.

MuJoCo's velocities are those half a step later than its positions (leapfrog), at which the damping torque then acts:
:math:`-D\dot q(t + h/2) \approx -D\dot q - D h/2\, \ddot q`. So :math:`D h/2` (at most half of the inertia) is taken off the armature, and goals are means around the
time of the positions; the motion is then of second order in the step h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from stribeck.identify.robot.rollout import resting_gap
from stribeck.identify.robot.tree import Array, RobotTree, gravity_vector
from stribeck.model.law import FrictionLaw, friction_budget
from stribeck.model.step import velocity_step

STIFF = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""``solimp`` of dry friction: nearly rigid, so that joints at rest do not creep."""


def simulate_robot(
    tree: RobotTree,
    law: FrictionLaw,
    p: Mapping[str, Array],
    goals: Array,
    start: Array,
    dt: float,
    every: int,
) -> Array:
    """Free-running motion of the robot from rest (T, J).

    :param p: parameters of the drives by name (J,), see :data:`stribeck.identify.robot.rollout.DRIVE`, and of the law.
    :param goals: mean goals around the beginning of each step, late by their delay (K, J) [rad].
    :param start: positions at the first row (J,) [rad].
    :param dt: step [s].
    :param every: steps per row.
    """
    model, data = tree.model, mujoco.MjData(tree.model)
    damping = p["derivative"] + p["friction_viscous"]
    model.opt.timestep, model.opt.integrator = dt, int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    model.opt.tolerance = 1e-12
    model.opt.gravity[:] = gravity_vector((p["tilt_x"][0], p["tilt_y"][0]))
    model.dof_armature[:], model.dof_damping[:] = p["armature"], damping
    model.dof_solimp[:], model.dof_solref[:] = STIFF, (2.0 * dt, 1.0)
    model.dof_frictionloss[:] = 1.0
    mujoco.mj_setConst(model, data)
    model.dof_armature[:] -= np.minimum(0.5 * dt * damping, 0.5 * model.dof_M0)
    dry = {**p, "friction_viscous": 0.0}
    changing = law.inputs_beside("viscous") or p["play"].any()
    positions = np.empty((len(goals) // every, len(start)))
    data.qpos[:] = start
    gaps = Gaps(tree, law, p, data, dt) if p["play"].any() else None
    external = before = np.zeros(len(start))
    stiffness, derivative, limit, bias = p["stiffness"], p["derivative"], p["limit"], p["bias"]
    for k, goal in enumerate(goals):
        if k % every == 0:
            positions[k // every] = data.qpos
        velocity = data.qvel
        pull = stiffness * (goal - bias - data.qpos) - derivative * velocity
        motor = np.minimum(np.maximum(pull, -limit), limit)
        if "external" in law.inputs:
            external = tree.external(data, (velocity - before) / dt) if k else external
            before = velocity.copy()
        if changing or not k:
            budget = friction_budget(law, dry, motor, external, velocity, data.qpos)[0]
            model.dof_frictionloss[:] = np.maximum(budget, 1e-9)
        data.qfrc_applied[:] = motor + derivative * velocity + p["torque_offset"]
        if gaps is None:
            mujoco.mj_step(model, data)
        else:
            gaps.step(data, goal)
    for values in (model.dof_armature, model.dof_damping, model.dof_frictionloss):
        values[:] = 0.0
    return positions


class Gaps:
    r"""Links that leave their gears: within the gap :math:`w = q - q_g` of ±p/2 they move without drive, and the gears without link.

    A link leaves when it would pull at its gears, and meets them again in a plastic impact, as in
    :func:`stribeck.identify.robot.rollout.with_play`.
    """

    def __init__(
        self, tree: RobotTree, law: FrictionLaw, p: Mapping[str, Array], data: Any, dt: float
    ) -> None:
        self.tree, self.law, self.p, self.dt = tree, law, p, dt
        mujoco.mj_forward(tree.model, data)
        self.gap = resting_gap(p["play"], tree.external(data, np.zeros(len(data.qpos))) + p["torque_offset"])
        self.gears = np.zeros(len(data.qpos))
        self.apart = np.zeros(len(data.qpos), dtype=bool)
        self.carried = tree.model.dof_armature.copy(), tree.model.dof_damping.copy()

    def step(self, data: Any, goal: Array) -> None:
        """A step of all joints; the model and its applied torques are those of gears that carry their links."""
        model, p, dt, apart = self.tree.model, self.p, self.dt, self.apart
        for values, carried in zip((model.dof_armature, model.dof_damping), self.carried, strict=True):
            values[:] = np.where(apart, 0.0, carried)
        model.dof_frictionloss[apart] = 1e-9
        data.qfrc_applied[apart] = p["torque_offset"][apart]
        position, velocity = data.qpos.copy(), data.qvel.copy()
        mujoco.mj_step(model, data)
        if apart.any():
            self._cross(data, goal, position)
        acceleration = (data.qvel - velocity) / dt
        inertia = data.M[self.tree.diagonal] - model.dof_armature
        load = self.tree.external(data, acceleration) + p["torque_offset"]
        pulls = (inertia * acceleration - load) * self.gap > 0.0
        pulls |= np.abs(self.gap) < 0.49 * p["play"]
        self.gears = np.where(apart, self.gears, data.qvel)
        self.apart = (p["play"] > 0.0) & (apart & self.apart | ~apart & pulls)

    def _cross(self, data: Any, goal: Array, position: Array) -> None:
        """Move the gears of the links that are apart, and let them meet."""
        model, p, dt, apart = self.tree.model, self.p, self.dt, self.apart
        pull = p["stiffness"] * (goal - p["bias"] - position)
        speed, _ = velocity_step(
            self.law,
            1.0 / np.maximum(p["armature"], 1e-9),
            p,
            self.gears,
            lambda v: np.clip(pull - p["derivative"] * v, -p["limit"], p["limit"]),
            0.0 * pull,
            dt,
            position,
        )
        wanted = self.gap + data.qpos - position - dt * speed
        end = np.clip(wanted, -0.5 * p["play"], 0.5 * p["play"])
        meets = apart & (end != wanted)
        one, response = np.zeros((2, 1, len(end)))
        for joint in np.flatnonzero(meets):
            one[:], one[0, joint] = 0.0, 1.0
            mujoco.mj_solveM(model, data, response, one)
            mobility = response[0, joint] + 1.0 / p["armature"][joint]
            data.qpos[:] += response[0] * (end - wanted)[joint] / mobility
            data.qvel[:] += response[0] * (speed - data.qvel)[joint] / mobility
        self.gap, self.gears = np.where(apart, end, self.gap), np.where(apart, speed, self.gears)
        self.apart = apart & ~meets
