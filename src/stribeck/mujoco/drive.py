r"""What a servo does to its joint in one step: floats under MuJoCo, ``jax.numpy`` arrays under MJX.

MuJoCo bounds the friction of a joint by :math:`\pm` ``frictionloss``, our law by
:math:`[-\tau_f^{m+}, +\tau_f^{m-}]`. With the centre :math:`c = (\tau_f^{m-} - \tau_f^{m+})/2` as a force and
:math:`(\tau_f^{m+} + \tau_f^{m-})/2` as ``frictionloss`` the two are the same:

.. math::

    c + clip(\tau_{stop} - c, \pm\tfrac12(\tau_f^{m+} + \tau_f^{m-})) = clip(\tau_{stop}, [-\tau_f^{m+}, +\tau_f^{m-}])

The viscous term is part of the budget, as in the simulation behind a fit, so that ``damping`` stays zero: MuJoCo's
integrators treat damping implicitly, which is as if the inertia were larger by :math:`\Delta t K_v`, and a joint
that its friction stops would still move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stribeck.core.actuator import (
    ControlState,
    ServoCommand,
    control_output,
    initial_control_state,
    output_torque,
)
from stribeck.core.electrics import duty_for_current, motor_current, sagging_supply, supply_current
from stribeck.core.friction import friction_budget
from stribeck.core.namespace import array_namespace
from stribeck.core.step import delayed
from stribeck.errors import ConfigError
from stribeck.mujoco.servo import Servo

LOWEST_VOLTAGE = 1e-3
"""A supply sags to this and no further [V], so that a duty is defined."""


_OF_MOTORS = ("kt", "R", "ratio", "current_limit")


class Memory(NamedTuple):
    """What a servo carries from step to step.

    :param control: what the firmware remembers.
    :param output: what it puts out: duty [1], current [A] or torque [N m].
    :param drawn: current drawn from the supply [A].
    :param commands: the last goals and enabling flags (n, 2), where commands are delayed; else 0.
    """

    control: ControlState
    output: Any
    drawn: Any
    commands: Any


class Action(NamedTuple):
    """What MuJoCo is told of one joint during a step.

    :param force: generalised force: motor torque, offset, centre of an asymmetric budget [N m].
    :param frictionloss: half the width of the friction budget [N m].
    """

    force: Any
    frictionloss: Any


class Drive:
    """A servo at a time step.

    :param servo: the servo.
    :param dt: time step of the simulation [s].
    :ivar every: steps between two cycles of the firmware.
    :raises ConfigError: for a firmware whose period is no whole number of steps.
    """

    def __init__(self, servo: Servo, dt: float) -> None:
        self.servo, self.dt = servo, dt
        self.gains, self.voltage = servo.gains, servo.voltage
        self.actuator = servo.parameters.actuator.with_used_terms(self.gains)
        self.law = servo.parameters.law
        values = {name: float(value) for name, value in servo.parameters.values.items()}
        # Formulas look at every value that they are given, so each is given its own.
        self.friction = {name: values[name] for name in self.law.parameter_names}
        self.motor = {name: value for name, value in values.items() if name in _OF_MOTORS}
        self.every = 1 if servo.period is None else max(1, round(servo.period / dt))
        if servo.period is not None and abs(self.every * dt - servo.period) > 1e-6 * servo.period:
            raise ConfigError(
                f"{self.actuator.name}: the firmware's period of {servo.period:g} s is no whole number of time steps "
                f"of {dt:g} s; change the model's timestep, or leave the period out"
            )
        self.delay = np.float64(values.get("command_delay", 0.0))

    def start(self, goal: Any, torque_enable: Any) -> Memory:
        """The memory at the beginning: the firmware's ramp stands at the goal, as in a simulation of a run."""
        commands: Any = 0.0
        if self.delay:
            xp = _array_library(goal)
            commands = xp.tile(xp.stack([goal, torque_enable]), (int(self.delay / self.dt) + 2, 1))
        return Memory(initial_control_state(self.actuator, goal), 0.0 * goal, 0.0 * goal, commands)

    def act(
        self,
        memory: Memory,
        goal: Any,
        torque_enable: Any,
        position: Any,
        velocity: Any,
        external: Any,
        due: Any = True,
    ) -> tuple[Action, Memory]:
        r"""What the servo does in the coming step, and its memory after it.

        :param goal: goal position [rad].
        :param torque_enable: 1 with torque on, 0 with torque off.
        :param position: [rad].
        :param velocity: [rad/s].
        :param external: :math:`\tau_e`, all that acts on the joint but motor and friction [N m].
        :param due: whether the firmware's cycle is due in this step.
        """
        control, output, drawn, commands = memory
        if self.delay:
            goal, torque_enable, commands = self._late(commands, goal, torque_enable)
        supply: Any = self.voltage
        if self.servo.supply_resistance:
            xp = array_namespace(position)
            supply = xp.maximum(
                sagging_supply(self.voltage, self.servo.supply_resistance, drawn), LOWEST_VOLTAGE
            )
        if self.every == 1 or due is not False:
            found = control_output(
                self.actuator,
                self.motor,
                self.gains,
                control,
                goal,
                position,
                velocity,
                self.every * self.dt,
            )
            output, control = found if self.every == 1 else _chosen(due, found, (output, control))
        motor = output_torque(
            self.actuator, self.motor, output, ServoCommand(goal, torque_enable, supply), velocity
        )
        if self.servo.supply_resistance:
            current = motor_current(self.motor, motor)
            drawn = supply_current(duty_for_current(self.motor, current, supply, velocity), current)
        return self._action(motor, external, velocity), Memory(control, output, drawn, commands)

    def _action(self, motor: Any, external: Any, velocity: Any) -> Action:
        positive, negative = friction_budget(self.law, self.friction, motor, external, velocity)
        force = motor + self.friction["torque_offset"] if self.law.offset else motor
        if not self.law.asymmetric:
            return Action(force, positive)
        return Action(force + 0.5 * (negative - positive), 0.5 * (positive + negative))

    def _late(self, commands: Any, goal: Any, torque_enable: Any) -> tuple[Any, Any, Any]:
        """Goal and enabling flag as they reach the servo, and the commands on their way."""
        xp = _array_library(goal)
        commands = xp.concatenate([commands[1:], xp.stack([goal, torque_enable])[None]])
        late = delayed(commands, len(commands) - 1, self.delay, self.dt)
        return late[0], late[1], commands


def _array_library(value: Any) -> Any:
    """The library of an array, numpy for a Python number: where an array of several is made of it."""
    return np if isinstance(value, float) else array_namespace(value)


def _chosen(
    due: Any, new: tuple[Any, ControlState], old: tuple[Any, ControlState]
) -> tuple[Any, ControlState]:
    """The new output and state of a firmware where its cycle is due, else the old."""
    if due is True:
        return new
    xp = array_namespace(due)
    state = ControlState(*[xp.where(due, a, b) for a, b in zip(new[1], old[1], strict=True)])
    return xp.where(due, new[0], old[0]), state
