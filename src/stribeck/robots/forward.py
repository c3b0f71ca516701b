r"""All joints of a robot together, forward in time from goals alone: MuJoCo with the identified drives.

:math:`(M(q) + I_a)\,\ddot q + h(q, \dot q) = \tau_m + \tau_0 + \tau_f`. In each step the friction budget of
:func:`stribeck.core.friction.friction_budget` becomes the ``frictionloss`` of its joint, for which MuJoCo solves the dry
friction of all joints jointly; torques that grow with velocity are integrated implicitly.

MuJoCo's velocities are those half a step later than its positions (leapfrog), at which the damping torque then acts:
:math:`-D\dot q(t + h/2) \approx -D\dot q - D h/2\, \ddot q`. So :math:`D h/2` (at most half of the inertia) is taken off the armature, and goals are means around the
time of the positions; the motion is then of second order in the step h.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from stribeck.core.friction import FrictionLaw, friction_budget
from stribeck.robots.rollout import PLACE, dry_friction
from stribeck.robots.tree import Array, RobotTree, gravity_vector

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

    :param p: parameters of the drives by name (J,), see :data:`stribeck.robots.rollout.DRIVE`, and of the law.
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
    changing = law.load != "none" or law.stribeck or any(p[name].any() for name in PLACE)
    positions = np.empty((len(goals) // every, len(start)))
    data.qpos[:] = start
    external = before = np.zeros(len(start))
    stiffness, derivative, limit, bias = p["stiffness"], p["derivative"], p["limit"], p["bias"]
    for k, goal in enumerate(goals):
        if k % every == 0:
            positions[k // every] = data.qpos
        velocity = data.qvel
        pull = stiffness * (goal - bias - data.qpos) - derivative * velocity
        motor = np.minimum(np.maximum(pull, -limit), limit)
        if law.load != "none":
            external = tree.external(data, (velocity - before) / dt) if k else external
            before = velocity.copy()
        if changing or not k:
            dry["friction_base"] = dry_friction(p, data.qpos)
            budget = friction_budget(law, dry, motor, external, velocity)[0]
            model.dof_frictionloss[:] = np.maximum(budget, 1e-9)
        data.qfrc_applied[:] = motor + derivative * velocity + p["torque_offset"]
        mujoco.mj_step(model, data)
    for values in (model.dof_armature, model.dof_damping, model.dof_frictionloss):
        values[:] = 0.0
    return positions
