r"""The controller for MJX: pure JAX functions for many simulations at once.

Equivalent of :class:`stribeck.mujoco.controller.Controller` whose state is an argument and a result, for ``jax.jit`` and
``jax.vmap``::

    servos = BatchController(model, {"shoulder": servo})
    start = jax.jit(jax.vmap(servos.start))
    step = jax.jit(jax.vmap(servos.step))
    data = jax.vmap(forward)(data)                # mjx.forward(servos.model, …) on every state
    memory = start(data, goals)
    data, memory = step(data, memory, goals)
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from stribeck.errors import MissingDependencyError
from stribeck.model.joint import Servo
from stribeck.mujoco.drive import ServoMemory, SteppedServo
from stribeck.mujoco.joints import SMALLEST_LOSS, take_over

try:
    # On import it prints that an optional backend is missing, which is not used here.
    with contextlib.redirect_stdout(io.StringIO()):
        from mujoco import mjx
except ModuleNotFoundError as error:
    raise MissingDependencyError(
        f"stribeck.mujoco.batch needs {error.name}: pip install 'stribeck[mujoco]'"
    ) from None


class BatchMemory(NamedTuple):
    """State of the servos of one simulation from one step to the next.

    :param force: applied force of each joint in the last step (J,) [N m].
    :param cycle: index of the step.
    """

    servos: tuple[ServoMemory, ...]
    force: jax.Array
    cycle: jax.Array


class BatchController:
    """Servos at joints of an MJX model.

    :param model: modified as by :class:`~stribeck.mujoco.controller.Controller`.
    :param servos: a servo for each joint, by joint name; defines the order of the goals.
    :param replace_actuators: switch off the model's actuators of these joints.
    :ivar model: the model on the accelerator.
    :raises ConfigError: for joints, servos or model options that cannot be simulated.
    """

    def __init__(
        self, model: mujoco.MjModel, servos: Mapping[str, Servo], *, replace_actuators: bool = False
    ) -> None:
        joints = take_over(model, servos, replace_actuators)
        self.model = mjx.put_model(
            model, impl="jax"
        )  # the implementation whose constraint forces are read below
        self.joints = tuple(joint.name for joint in joints)
        self._drives = [SteppedServo(servo, float(model.opt.timestep)) for servo in servos.values()]
        self._positions = np.array([joint.position for joint in joints])
        self._dofs = np.array([joint.dof for joint in joints])
        # Friction rows are in the order of the degrees of freedom with friction.
        self._ranks = np.searchsorted(np.flatnonzero(model.dof_frictionloss > 0.0), self._dofs)

    def start(self, data: mjx.Data, goals: jax.Array, torque_enable: jax.Array | None = None) -> BatchMemory:
        """The initial state of the servos; call ``mjx.forward`` on ``data`` first.

        :param data: one simulation.
        :param goals: goal positions (J,) [rad].
        :param torque_enable: 1 with torque on, 0 with torque off (J,); default: on.
        """
        goals = self._floats(data, goals)
        enable = self._flags(goals, torque_enable)
        memories = [
            drive.start(goal, on) for drive, goal, on in zip(self._drives, goals, enable, strict=True)
        ]
        arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf, goals.dtype), memories)
        return BatchMemory(tuple(arrays), data.qfrc_applied[self._dofs], jnp.zeros((), jnp.int32))

    def step(
        self,
        data: mjx.Data,
        memory: BatchMemory,
        goals: jax.Array,
        torque_enable: jax.Array | None = None,
    ) -> tuple[mjx.Data, BatchMemory]:
        """One step of one simulation: servos, friction, ``mjx.step``.

        :param goals: goal positions (J,) [rad].
        :param torque_enable: 1 with torque on, 0 with torque off (J,); default: on.
        """
        goals = self._floats(data, goals)
        enable = self._flags(goals, torque_enable)
        inertia = jnp.diagonal(mjx.full_m(self.model, data))[self._dofs]
        external = self._external(data, inertia, memory.force)
        actions, memories = [], []
        for j, drive in enumerate(self._drives):
            action, after = drive.act(
                memory.servos[j],
                goals[j],
                enable[j],
                data.qpos[self._positions[j]],
                data.qvel[self._dofs[j]],
                external[j],
                1.0 / inertia[j],
                memory.cycle % drive.every == 0,
            )
            actions.append(action)
            memories.append(after)
        force = jnp.stack([action.force for action in actions])
        loss = jnp.maximum(jnp.stack([action.frictionloss for action in actions]), SMALLEST_LOSS)
        model = self.model.replace(dof_frictionloss=self.model.dof_frictionloss.at[self._dofs].set(loss))
        data = data.replace(qfrc_applied=data.qfrc_applied.at[self._dofs].set(force))
        return mjx.step(model, data), BatchMemory(tuple(memories), force, memory.cycle + 1)

    def _external(self, data: mjx.Data, inertia: jax.Array, force: jax.Array) -> jax.Array:
        friction = data._impl.efc_force[data._impl.ne + self._ranks]  # equality constraints come first
        external: jax.Array = inertia * data.qacc[self._dofs] - force - friction
        return external

    @staticmethod
    def _floats(data: mjx.Data, goals: jax.Array) -> jax.Array:
        return jnp.asarray(goals, data.qpos.dtype)

    @staticmethod
    def _flags(goals: jax.Array, torque_enable: jax.Array | None) -> jax.Array:
        return jnp.ones_like(goals) if torque_enable is None else jnp.asarray(torque_enable, goals.dtype)
