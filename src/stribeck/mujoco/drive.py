r"""Force and friction of a servo in one time step: floats for MuJoCo, ``jax.numpy`` arrays for MJX.

MuJoCo bounds the friction of a joint by :math:`\pm` ``frictionloss``, the friction law by
:math:`[-\tau_f^{m+}, +\tau_f^{m-}]`. With the centre :math:`c = (\tau_f^{m-} - \tau_f^{m+})/2` as a force and
:math:`(\tau_f^{m+} + \tau_f^{m-})/2` as ``frictionloss`` the two are equivalent:

.. math::

    c + clip(\tau_{stop} - c, \pm\tfrac12(\tau_f^{m+} + \tau_f^{m-})) = clip(\tau_{stop}, [-\tau_f^{m+}, +\tau_f^{m-}])

The viscous term is included in these bounds, as in the simulation used for a fit, and ``damping`` is zero: MuJoCo
integrates damping implicitly, which adds :math:`\Delta t K_v` to the inertia and makes joints creep at rest.

MuJoCo's Euler step is the leapfrog rule: its velocity at :math:`t_k` is that of :math:`t_k - \Delta t/2`, and its forces those of
:math:`t_k`. So back-EMF, velocity feedback and friction are taken at the mean velocity of the step
(:func:`stribeck.model.step.mean_velocity`), which makes positions of second order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.control_laws import ControlState, ServoCommand
from stribeck.model.electrics import duty_for_current, motor_current, sagging_supply, supply_current
from stribeck.model.joint import Servo
from stribeck.model.law import friction_budget, with_offset
from stribeck.model.namespace import array_namespace
from stribeck.model.step import delayed, mean_velocity

LOWEST_VOLTAGE = 1e-3
"""Lower limit of a sagging supply [V], so that the duty is defined."""

_OF_MOTORS = ("kt", "R", "ratio", "current_limit", "torque_saturation")


class ServoMemory(NamedTuple):
    """State of a servo from one step to the next.

    :param control: state of the firmware.
    :param output: output of the firmware: duty [1], current [A] or torque [N m].
    :param drawn: current drawn from the supply [A].
    :param commands: the last goals and enable flags (n, 2) if commands are delayed, otherwise 0.
    """

    control: ControlState
    output: Any
    drawn: Any
    commands: Any


class Action(NamedTuple):
    """Inputs to MuJoCo for one joint during a step.

    :param force: generalised force: motor torque, offset, and centre of asymmetric friction bounds [N m].
    :param frictionloss: half the distance between the friction bounds [N m].
    """

    force: Any
    frictionloss: Any


class SteppedServo:
    """A servo simulated with a fixed time step.

    :param dt: time step of the simulation [s].
    :ivar every: steps per cycle of the firmware.
    :raises ConfigError: if the firmware's period is not a multiple of the time step.
    """

    def __init__(self, servo: Servo, dt: float) -> None:
        self.servo, self.dt = servo, dt
        self.gains, self.voltage = servo.gains, servo.voltage
        self.actuator = servo.parameters.actuator.with_used_terms(self.gains)
        self.law = servo.parameters.law
        values = {name: float(value) for name, value in servo.parameters.values.items()}
        # Formulas check all values they are given, so each gets only those that it uses.
        self.friction = {name: values[name] for name in self.law.parameter_names}
        self.motor = {name: value for name, value in values.items() if name in _OF_MOTORS}
        self.every = 1 if servo.period is None else max(1, round(servo.period / dt))
        if servo.period is not None and abs(self.every * dt - servo.period) > 1e-6 * servo.period:
            raise ConfigError(
                f"{self.actuator.name}: the firmware period of {servo.period:g} s must be a multiple of the "
                f"time step of {dt:g} s: change the model's timestep, or leave out the period"
            )
        self.delay = np.float64(values.get("command_delay", 0.0))

    def start(self, goal: Any, torque_enable: Any) -> ServoMemory:
        """The initial state: the firmware's ramp is at the goal, as at the start of a simulated run."""
        commands: Any = 0.0
        if self.delay:
            xp = _array_library(goal)
            commands = xp.tile(xp.stack([goal, torque_enable]), (int(self.delay / self.dt) + 2, 1))
        return ServoMemory(self.actuator.control.first_state(goal), 0.0 * goal, 0.0 * goal, commands)

    def act(
        self,
        memory: ServoMemory,
        goal: Any,
        torque_enable: Any,
        position: Any,
        velocity: Any,
        external: Any,
        mobility: Any,
        due: Any = True,
    ) -> tuple[Action, ServoMemory]:
        r"""The servo's inputs to MuJoCo for the next step, and its state afterwards.

        :param goal: goal position [rad].
        :param torque_enable: 1 with torque on, 0 with torque off.
        :param position: [rad].
        :param velocity: [rad/s].
        :param external: :math:`\tau_e`, torque on the joint other than motor and friction [N m].
        :param mobility: :math:`1/M_{ii}` [1/(kg m²)].
        :param due: whether a cycle of the firmware begins with this step.
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
        command = ServoCommand(goal, torque_enable, supply)
        halfway = control
        if self.every == 1:
            halfway = self._advanced(control, goal, position)
            control = self._advanced(halfway, goal, position)
        elif due is not False:
            sampled = self.actuator.control.next_state(
                self.gains, control, goal, position, self.every * self.dt
            )
            now = self.actuator.control.output(self.motor, self.gains, sampled, goal, position, velocity)
            output, control = _chosen(due, (now, sampled), (output, control))

        def motor(v: Any) -> Any:
            held = output
            if self.every == 1:
                held = self.actuator.control.output(self.motor, self.gains, halfway, goal, position, v)
            return self.actuator.control.torque(self.motor, held, command, v)

        mean = mean_velocity(self.law, mobility, self.friction, velocity, motor, external, self.dt, position)
        torque = motor(mean)
        if self.servo.supply_resistance:
            current = motor_current(self.motor, torque)
            drawn = supply_current(duty_for_current(self.motor, current, supply, mean), current)
        return self._action(torque, external, mean, position), ServoMemory(control, output, drawn, commands)

    def _advanced(self, control: ControlState, goal: Any, position: Any) -> ControlState:
        """The firmware's state half a step later."""
        return self.actuator.control.next_state(self.gains, control, goal, position, 0.5 * self.dt)

    def _action(self, motor: Any, external: Any, velocity: Any, position: Any) -> Action:
        positive, negative = friction_budget(self.law, self.friction, motor, external, velocity, position)
        force = with_offset(self.law, self.friction, motor, position)
        if positive is negative:
            return Action(force, positive)
        return Action(force + 0.5 * (negative - positive), 0.5 * (positive + negative))

    def _late(self, commands: Any, goal: Any, torque_enable: Any) -> tuple[Any, Any, Any]:
        xp = _array_library(goal)
        commands = xp.concatenate([commands[1:], xp.stack([goal, torque_enable])[None]])
        late = delayed(commands, len(commands) - 1, self.delay, self.dt)
        return late[0], late[1], commands


def _array_library(value: Any) -> Any:
    """The array namespace of a value; numpy for a Python number."""
    return np if isinstance(value, float) else array_namespace(value)


def _chosen(
    due: Any, new: tuple[Any, ControlState], old: tuple[Any, ControlState]
) -> tuple[Any, ControlState]:
    """The new output and state of a firmware whose cycle is due, otherwise the old ones."""
    if due is True:
        return new
    xp = array_namespace(due)
    state = ControlState(*[xp.where(due, a, b) for a, b in zip(new[1], old[1], strict=True)])
    return xp.where(due, new[0], old[0]), state
