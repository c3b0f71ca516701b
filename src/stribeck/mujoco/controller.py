r"""Simulates identified servos at joints of a MuJoCo model, step by step.

Before every step the controller simulates the firmware, applies the motor torque as a force and sets ``frictionloss`` to
the maximum friction of the law; MuJoCo then computes the friction within this bound. Laws M3 to M6 use the load of the
previous step (Duclusaud et al. 2025, sec. IV-E):

.. math::

    \tau_{e,i} = M_{ii}\ddot q_i - \tau_{m,i} - \tau_{f,i}

the torque on joint i without motor, friction and its own inertia; for a pendulum the gravity torque.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.model.joint import Servo
from stribeck.mujoco.drive import ServoMemory, SteppedServo
from stribeck.mujoco.joints import SMALLEST_LOSS, take_over

Numbers = Sequence[float] | Array


class Controller:
    """Servos at joints of a model.

    :param model: modified at once (:func:`~stribeck.mujoco.joints.take_over`) and in every step, so simultaneous
        simulations need separate models.
    :param servos: a servo for each joint, by joint name; defines the order of the goals.
    :param replace_actuators: switch off the model's actuators of these joints.
    :raises ConfigError: for joints, servos or model options that cannot be simulated.

    The controller writes ``qfrc_applied`` of these joints; put disturbances into ``xfrc_applied``.
    """

    def __init__(
        self, model: mujoco.MjModel, servos: Mapping[str, Servo], *, replace_actuators: bool = False
    ) -> None:
        self._model = model
        self._joints = take_over(model, servos, replace_actuators)
        self._timestep = float(model.opt.timestep)
        self._drives = [SteppedServo(servo, self._timestep) for servo in servos.values()]
        self._time = math.inf
        self._cycle = 0
        self._memory: list[ServoMemory] = []
        self._force = [0.0] * len(self._joints)
        self._external = [0.0] * len(self._joints)
        self._rows = [0] * len(self._joints)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, in the order of the goals."""
        return tuple(joint.name for joint in self._joints)

    @property
    def external_torque(self) -> Array:
        r"""The load :math:`\tau_e` on each joint in the last evaluation of the laws [N m]."""
        return np.array(self._external)

    def reset(self, data: mujoco.MjData, goals: Numbers, torque_enable: Numbers | None = None) -> None:
        """Reset to the current state of the data: firmware at rest at the goals, forces computed for this state.

        :meth:`update` does this in the first step and when simulation time goes backwards. Call it after setting another
        state without resetting the time.
        """
        enable = self._flags(torque_enable)
        self._memory = [
            drive.start(float(goal), on) for drive, goal, on in zip(self._drives, goals, enable, strict=True)
        ]
        for joint in self._joints:
            data.qfrc_applied[joint.dof] = 0.0
            self._model.dof_frictionloss[joint.dof] = SMALLEST_LOSS
        self._force = [0.0] * len(self._joints)
        mujoco.mj_forward(self._model, data)
        self._measure(data)
        self._cycle = 0

    def update(self, data: mujoco.MjData, goals: Numbers, torque_enable: Numbers | None = None) -> None:
        """Set forces and friction for the next step; call it before each ``mj_step``.

        :param goals: goal position of each joint [rad].
        :param torque_enable: 1 with torque on, 0 with torque off; default: on.
        :raises ConfigError: for non-finite goals, a wrong number of goals, or a changed time step of the model.
        """
        if len(goals) != len(self._joints) or not all(map(math.isfinite, goals)):
            raise ConfigError(
                f"expected {len(self._joints)} finite goals ({', '.join(self.joints)}), found {list(goals)}"
            )
        enable = self._flags(torque_enable)
        time = data.time
        if self._model.opt.timestep != self._timestep:
            raise ConfigError(
                f"the model's time step was {self._timestep:g} s when this controller was created, and is "
                f"{self._model.opt.timestep:g} s now: create a new controller"
            )
        if time < self._time or (time == self._time and self._cycle == 1):  # reset after one step
            self.reset(data, goals, torque_enable)
        elif time > self._time:
            self._measure(data)
        self._time = time
        self._act(data, goals, enable)

    def _flags(self, torque_enable: Numbers | None) -> Sequence[float]:
        if torque_enable is None:
            return [1.0] * len(self._joints)
        if len(torque_enable) != len(self._joints) or not all(flag in (0, 1) for flag in torque_enable):
            raise ConfigError(
                f"torque_enable must be 0 or 1 for each of {len(self._joints)} joints, found {list(torque_enable)}"
            )
        return [float(flag) for flag in torque_enable]

    def _act(self, data: mujoco.MjData, goals: Numbers, enable: Sequence[float]) -> None:
        qpos, qvel, applied, loss = data.qpos, data.qvel, data.qfrc_applied, self._model.dof_frictionloss
        for i, (joint, drive) in enumerate(zip(self._joints, self._drives, strict=True)):
            action, self._memory[i] = drive.act(
                self._memory[i],
                float(goals[i]),
                enable[i],
                qpos.item(joint.position),
                qvel.item(joint.dof),
                self._external[i],
                1.0 / data.M.item(joint.diagonal),
                self._cycle % drive.every == 0,
            )
            applied[joint.dof] = self._force[i] = action.force
            loss[joint.dof] = max(action.frictionloss, SMALLEST_LOSS)
        self._cycle += 1

    def _measure(self, data: mujoco.MjData) -> None:
        """Compute the load on each joint in the previous step."""
        inertia, acceleration = data.M, data.qacc
        kinds, dofs, friction = data.efc_type, data.efc_id, data.efc_force
        for i, joint in enumerate(self._joints):
            row = self._rows[i]
            if row >= len(kinds) or kinds.item(row) != _FRICTION or dofs.item(row) != joint.dof:
                # The number of equality rows, which precede those of friction, may change.
                rows = np.flatnonzero((kinds == _FRICTION) & (dofs == joint.dof))
                if not rows.size:  # the joint sleeps: its forces have not changed
                    continue
                row = self._rows[i] = int(rows[0])
            self._external[i] = (
                inertia.item(joint.diagonal) * acceleration.item(joint.dof)
                - self._force[i]
                - friction.item(row)
            )


_FRICTION = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
