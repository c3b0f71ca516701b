r"""All joints of a robot together, forward in time from goals alone: MuJoCo with the identified drives.

:math:`(M(q) + I_a)\,\ddot q + h(q, \dot q) = \tau_m + \tau_0 + \tau_f`. In each step the friction budget of
:func:`stribeck.model.law.friction_budget` becomes the ``frictionloss`` of its joint, for which MuJoCo solves the dry
friction of all joints jointly; torques that grow with velocity are integrated implicitly.

MuJoCo's velocities are those half a step later than its positions (leapfrog). What it takes at the beginning of a step is corrected so that the
motion is of second order in the step h:

- the damping torque then acts: :math:`-D\dot q(t + h/2) \approx -D\dot q - D h/2\, \ddot q`, so :math:`D h/2` (at most half of the inertia) is
  taken off the armature;
- Coriolis and centrifugal torques are those of velocities half a step later, extrapolated;
- goals are around the time of the positions, and the limit of a torque acts on what a goal is before and after it jumps, not on its mean;
- the first velocity is that after half a step;
- the friction of a joint that turns round changes its sign when it does (:func:`_turn`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np

from stribeck.identify.robot.rollout import resting_gap
from stribeck.identify.robot.tree import Array, RobotTree, gravity_vector
from stribeck.model.law import FrictionLaw, friction_budget
from stribeck.model.step import velocity_step

STIFF = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""``solimp`` of dry friction: nearly rigid, so that joints at rest do not creep."""


class HeldGoals(NamedTuple):
    """Goals around the beginning of each step, which may jump once within it.

    :param first, second: before and after the jump (K, J) [rad].
    :param share: of the step before it (K, J).
    """

    first: Array
    second: Array
    share: Array

    @property
    def mean(self) -> Array:
        """Mean over each step (K, J)."""
        return self.share * self.first + (1.0 - self.share) * self.second

    def limited(self, k: int, pull: Array, stiffness: Array, limit: Array) -> Array:
        """Mean over step k of a torque (J,) whose mean would be ``pull`` without its limit [N m]."""
        jump = stiffness * (self.second[k] - self.first[k])
        first = pull - (1.0 - self.share[k]) * jump
        ends = np.clip(first, -limit, limit), np.clip(first + jump, -limit, limit)
        return np.asarray(self.share[k] * ends[0] + (1.0 - self.share[k]) * ends[1])


def held_goals(goal: Array, delay: Array, substeps: int, dt: float) -> HeldGoals:
    """Goals that are held from their row on, late by a delay, in steps that begin half a step before their time.

    :param goal: (T, J); before the first row the first one holds.
    :param delay: (J,) [s].
    :param substeps: steps per row of ``dt`` [s].
    """
    rows = len(goal)
    edges = np.arange(rows * substeps + 1)[:, None] / substeps - (delay / dt + 0.5 / substeps)
    row = np.floor(edges)
    levels = np.take_along_axis(goal, np.clip(row, 0, rows - 1).astype(int), axis=0)
    share = np.where(row[1:] > row[:-1], (row[1:] - edges[:-1]) * substeps, 1.0)
    return HeldGoals(levels[:-1], levels[1:], np.clip(share, 0.0, 1.0))


def simulate_robot(
    tree: RobotTree,
    law: FrictionLaw,
    p: Mapping[str, Array],
    goals: HeldGoals,
    start: Array,
    dt: float,
    every: int,
) -> Array:
    """Free-running motion of the robot from rest (T, J).

    :param p: parameters of the drives by name (J,), see :data:`stribeck.identify.robot.rollout.DRIVE`, and of the law.
    :param goals: around the beginning of each step, late by their delay.
    :param start: positions at the first row (J,) [rad].
    :param dt: step [s].
    :param every: steps per row.
    """
    model, data = tree.model, _at_rest(tree, p, start, dt)
    dry = {**p, "friction_viscous": 0.0}
    changing, loaded = law.inputs_beside("viscous") or p["backlash"].any(), "external" in law.load_inputs
    stiffness, derivative, limit, lag = p["stiffness"], p["derivative"], p["limit"], 0.5 * model.dof_damping
    means, free = goals.mean - p["bias"], limit - stiffness * np.abs(goals.second - goals.first)
    positions = np.empty((len(means) // every, len(start)))
    gaps = Gaps(tree, law, p, data, dt) if p["backlash"].any() else None
    external, before, still, half = *np.zeros((3, len(start))), np.full(len(start), 0.5)
    position, velocity, offset = data.qpos, data.qvel, p["torque_offset"]
    for k, goal in enumerate(means):
        if k % every == 0:
            positions[k // every] = position
        last = velocity.copy()
        change = last - before
        now = last + half * change
        _begin(model, data, last, now)
        damped = derivative * now
        motor = stiffness * (goal - position) - damped
        if (np.abs(motor) > free[k]).any():
            motor = goals.limited(k, motor, stiffness, limit)
        if loaded:
            external = tree.external(data, change / dt) if k else external
        if changing or not k:
            budget = np.maximum(friction_budget(law, dry, motor, external, now, position)[0], 1e-9)
            model.dof_frictionloss[:] = data.efc_frictionloss[data.ne : data.ne + data.nf] = budget
        data.qfrc_applied[:] = motor + damped + offset + lag * change
        before = last
        if gaps is not None:
            gaps.step(data, goal + p["bias"], now)
            continue
        mujoco.mj_step2(model, data)
        if not k:  # from rest: half a step
            velocity[:] *= 0.5
            position[:], before = start + dt * velocity, -velocity
        if (turned := last * velocity < still).any():
            _turn(model, data, last, np.flatnonzero(turned))
    for values in (model.dof_armature, model.dof_damping, model.dof_frictionloss):
        values[:] = 0.0
    return positions


def _at_rest(tree: RobotTree, p: Mapping[str, Array], start: Array, dt: float) -> Any:
    """The state of the robot at rest, whose model has its drives' armatures and damping."""
    model, data, damping = tree.model, mujoco.MjData(tree.model), p["derivative"] + p["friction_viscous"]
    model.opt.timestep, model.opt.integrator = dt, int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    model.opt.tolerance = 1e-12
    model.opt.gravity[:] = gravity_vector((p["tilt_x"][0], p["tilt_y"][0]))
    model.dof_armature[:], model.dof_damping[:] = p["armature"], damping
    model.dof_solimp[:], model.dof_solref[:] = STIFF, (2.0 * dt, 1.0)
    model.dof_frictionloss[:] = 1.0
    mujoco.mj_setConst(model, data)
    model.dof_armature[:] -= np.minimum(0.5 * dt * damping, 0.5 * model.dof_M0)
    data.qpos[:] = start
    return data


def _begin(model: Any, data: Any, velocity: Array, now: Array) -> None:
    """The first half of a step, with Coriolis, centrifugal and damping torques at the velocities ``now`` (J,), dry friction at those of the state."""
    data.qvel[:] = now
    mujoco.mj_step1(model, data)
    data.qvel[:] = velocity
    mujoco.mj_referenceConstraint(model, data)


def _turn(model: Any, data: Any, before: Array, joints: Any) -> None:
    r"""Let the friction of joints that turned round change its sign when they did, not at the beginning of the step.

    Within the step h a joint with the velocity v is slowed by the acceleration b until :math:`t = v / b`, and from there accelerated
    by :math:`b - 2 F / m`, with the friction F and the inertia m that the joint has in the robot. MuJoCo takes the second for all of
    the step: the impulse is :math:`2 F t` too large.

    :param before: velocities at the beginning (J,).
    """
    one, response = np.zeros((2, 1, model.nv))
    for joint in joints:
        one[:], one[0, joint] = 0.0, 1.0
        mujoco.mj_solveM(model, data, response, one)
        lost = 2.0 * model.dof_frictionloss[joint]
        after = abs(data.qvel[joint] - before[joint]) / model.opt.timestep
        impulse = lost * abs(before[joint]) / (after + lost * response[0, joint])
        change = -np.copysign(impulse, before[joint]) * response[0]
        data.qvel[:] += change
        data.qpos[:] += model.opt.timestep * change


class Gaps:
    r"""Links that leave their gears: within the gap :math:`w = q - q_g` of ±p/2 they move without drive, and the gears without link.

    A link leaves when it would pull at its gears, and meets them again in a plastic impact, as in
    :func:`stribeck.identify.robot.rollout.with_backlash`.
    """

    def __init__(
        self, tree: RobotTree, law: FrictionLaw, p: Mapping[str, Array], data: Any, dt: float
    ) -> None:
        self.tree, self.law, self.p, self.dt = tree, law, p, dt
        mujoco.mj_forward(tree.model, data)
        self.gap = resting_gap(
            p["backlash"], tree.external(data, np.zeros(len(data.qpos))) + p["torque_offset"]
        )
        self.gears = np.zeros(len(data.qpos))
        self.apart = np.zeros(len(data.qpos), dtype=bool)
        self.carried = tree.model.dof_armature.copy(), tree.model.dof_damping.copy()

    def step(self, data: Any, goal: Array, now: Array) -> None:
        """A step of all joints; the model and its applied torques are those of gears that carry their links.

        :param now: velocities half a step later than those of the state (J,) [rad/s].
        """
        model, p, dt, apart = self.tree.model, self.p, self.dt, self.apart
        for values, carried in zip((model.dof_armature, model.dof_damping), self.carried, strict=True):
            values[:] = np.where(apart, 0.0, carried)
        model.dof_frictionloss[apart] = 1e-9
        data.qfrc_applied[apart] = p["torque_offset"][apart]
        position, velocity = data.qpos.copy(), data.qvel.copy()
        _begin(model, data, velocity, now)
        mujoco.mj_step2(model, data)
        if apart.any():
            self._cross(data, goal, position)
        acceleration = (data.qvel - velocity) / dt
        inertia = data.M[self.tree.diagonal] - model.dof_armature
        load = self.tree.external(data, acceleration) + p["torque_offset"]
        pulls = (inertia * acceleration - load) * self.gap > 0.0
        pulls |= np.abs(self.gap) < 0.49 * p["backlash"]
        self.gears = np.where(apart, self.gears, data.qvel)
        self.apart = (p["backlash"] > 0.0) & (apart & self.apart | ~apart & pulls)

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
        end = np.clip(wanted, -0.5 * p["backlash"], 0.5 * p["backlash"])
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
