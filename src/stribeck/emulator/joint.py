"""The physics of an emulated servo: motor, friction and load.

All formulas are from ``core``: a step uses its motor torque for the firmware command and its velocity step, with an
external torque added to that of the load. :func:`joint_step` states it for arrays; the emulation runs what
:mod:`stribeck.model.trace.straight_line` makes of it, which is compiled once for all joints of a kind.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, NamedTuple

from stribeck.errors import ConfigError
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.model.bench import Pendulum, gravity_torque, inertia
from stribeck.model.control_laws import ControlState, Gains, ServoCommand, VoltageControl
from stribeck.model.electrics import duty_for_current, motor_current, sagging_supply, supply_current
from stribeck.model.joint import Drive
from stribeck.model.law import FrictionLaw, law_named
from stribeck.model.namespace import array_namespace
from stribeck.model.step import PlantState, velocity_step
from stribeck.model.trace.straight_line import Steps, compiled_loop

BridgeMode = Literal["off", "position", "pwm", "current"]
"""Control mode of the motor bridge."""

BARE = Pendulum(0.0, 0.0, 0.0)
"""Nothing mounted on the shaft."""


@dataclass(frozen=True)
class Firmware:
    """Command to the firmware, in SI units.

    :param drive: see :data:`BridgeMode`.
    :param goal: position [rad], duty [1] or current [A].
    :param gains: position gains in firmware units.
    :param duty_limit: largest duty [1].
    :param current_limit: largest winding current [A], ``None`` without a limit.
    :param goal_speed: maximum speed towards a position goal [rad/s], ``None`` without a limit.
    :param resolution: of the position that the law uses [rad], 0 for the true position.
    :param dead_zone: largest position error without duty, if there is a resolution [rad].
    :param punch: smallest duty beyond the dead zone, if there is a resolution [1].
    """

    drive: BridgeMode
    goal: float
    gains: Gains
    duty_limit: float = 1.0
    current_limit: float | None = None
    goal_speed: float | None = None
    resolution: float = 0.0
    dead_zone: float = 0.0
    punch: float = 0.0


OFF = Firmware("off", 0.0, Gains(0.0, 0.0, 0.0))


def published_parameters(name: str, law: str = "m6") -> Drive:
    """Published parameters of a servo family, with the mounting offset of the bench set to zero; those of M1 where there
    are no others.

    :raises ConfigError: for a servo without published parameters.
    """
    if name in actuator_names() and law not in (found := load_actuator(name).published) and "m1" in found:
        law = "m1"
    if name not in actuator_names() or law not in (actuator := load_actuator(name)).published:
        published = [n for n in actuator_names() if law in load_actuator(n).published]
        raise ConfigError(
            f"no parameters of the law {law} were published for {name}: give a parameter file; published for {', '.join(published)}"
        )
    values = {**actuator.published[law], "q_offset": 0.0}
    return Drive(actuator, law_named(law), values)


class JointMotion(NamedTuple):
    """What changes from step to step.

    :param position: true position [rad].
    :param velocity: true velocity [rad/s].
    :param ramped: goal position after the firmware's ramp [rad].
    :param integral: integral of the position error [rad s].
    :param voltage: supply at the servo during the step [V].
    :param motor_torque: at the output shaft, at the beginning of the step [N m].
    :param current: of the winding [A].
    :param duty: at the motor, after the current limit [1].
    """

    position: Any
    velocity: Any
    ramped: Any
    integral: Any
    voltage: Any
    motor_torque: Any
    current: Any
    duty: Any


@dataclass(frozen=True)
class JointKind:
    """What decides which operations a step consists of.

    :param control: the firmware's law with the terms whose gain is not zero; its ``goal_speed`` says only that there is one.
    :param parameters: names of the parameter values, among them ``current_limit`` if there is one.
    :param counted: whether the law computes with counts; see :func:`counted_duty`.
    """

    law: FrictionLaw
    control: VoltageControl
    drive: BridgeMode
    parameters: tuple[str, ...]
    counted: bool = False


SETTINGS = (
    *("goal", "kp", "ki", "kd", "goal_speed", "duty_limit"),
    *("mass", "length", "arm_mass", "dt", "supply_resistance"),
    *("resolution", "dead_zone", "punch"),
    *("open_voltage", "push", "lowest_voltage", "highest_voltage"),
)
"""Names of the constants of :func:`joint_step` besides the parameter values: command, load, supply and external torque."""


def counted_duty(
    kind: JointKind, c: Mapping[str, Any], gains: Gains, state: ControlState, velocity: Any, position: Any
) -> Any:
    r"""Duty of a firmware that computes with encoder counts.

    With the count :math:`\epsilon`, :math:`\hat\theta = \epsilon\lfloor\theta/\epsilon + 1/2\rfloor` and
    :math:`e = \theta^* - \hat\theta`: :math:`d = 0` for :math:`|e| \le z`, else
    :math:`d = sign(e)\,\max(|d_{law}(\hat\theta)|, d_0)`, with the dead zone :math:`z` and the punch :math:`d_0`.
    """
    xp = array_namespace(position, velocity, c["resolution"])
    counted = c["resolution"] * xp.floor(position / c["resolution"] + 0.5)
    error = state.goal - counted
    duty = kind.control.output({}, gains, state, state.goal, counted, velocity)
    # Half a count more, as the error is a whole number of counts but for rounding.
    outside = xp.abs(error) > c["dead_zone"] + 0.5 * c["resolution"]
    least = xp.where(error > 0.0, xp.maximum(duty, c["punch"]), xp.minimum(duty, -c["punch"]))
    return xp.where(outside, least, 0.0)


def joint_step(
    kind: JointKind, constants: Mapping[str, Any], state: Sequence[Any]
) -> tuple[Sequence[Any], Any]:
    """The motion one time step later.

    :param constants: parameter values, and :data:`SETTINGS` in SI units.
    :param state: a :class:`JointMotion`.
    :returns: the next :class:`JointMotion`, and whether its voltage is outside the servo's limits.
    """
    now, c, drive = JointMotion(*state), constants, kind.drive
    p = {name: c[name] for name in kind.parameters}
    control, gains, dt, goal = kind.control, Gains(c["kp"], c["ki"], c["kd"]), c["dt"], c["goal"]
    if control.goal_speed is not None:
        control = replace(control, goal_speed=c["goal_speed"])
    xp = array_namespace(*now, *p.values())
    drawn = supply_current(now.duty, now.current)
    voltage = sagging_supply(c["open_voltage"], c["supply_resistance"], drawn)
    supplied = voltage > 0.0
    usable = xp.where(supplied, voltage, 1.0)
    command = ServoCommand(goal, xp.where(supplied, 1.0, 0.0), voltage)
    middle = now.position + 0.5 * dt * now.velocity

    def later(before: ControlState) -> ControlState:
        """The firmware's state half a step later; without a limit of speed its goal is at once the commanded one."""
        if drive != "position":
            return before
        after = control.next_state(gains, before, goal, middle, 0.5 * dt)
        ramped = goal if control.goal_speed is None else after.goal
        return ControlState(
            xp.where(supplied, ramped, before.goal), xp.where(supplied, after.integral, before.integral)
        )

    halfway = later(ControlState(now.ramped, now.integral))

    def motor(velocity: Any) -> Any:
        if drive == "off":
            return 0.0
        if drive == "position" and kind.counted:
            duty = counted_duty(kind, c, gains, halfway, velocity, middle)
        elif drive == "position":
            duty = kind.control.output({}, gains, halfway, goal, middle, velocity)
        else:
            duty = goal if drive == "pwm" else duty_for_current(p, goal, usable, velocity)
        duty = xp.clip(duty, -c["duty_limit"], c["duty_limit"])
        return control.torque(p, duty, command, velocity)

    pendulum = Pendulum(c["mass"], c["length"], c["arm_mass"])
    external = gravity_torque(pendulum, middle, p["q_offset"]) + c["push"]
    mobility = 1.0 / inertia(pendulum, p["armature"])
    velocity, distance = velocity_step(kind.law, mobility, p, now.velocity, motor, external, dt, middle)
    ramped, integral = later(halfway)
    torque = motor(now.velocity)
    current = motor_current(p, torque)
    duty = 0.0
    if drive != "off":
        duty = xp.where(supplied, duty_for_current(p, current, usable, now.velocity), 0.0)
    outside = (voltage < c["lowest_voltage"]) | (voltage > c["highest_voltage"])
    return JointMotion(
        now.position + distance, velocity, ramped, integral, voltage, torque, current, duty
    ), outside


@cache
def _loop_of(kind: JointKind) -> Callable[..., Steps]:
    step = partial(joint_step, kind)
    return compiled_loop(step, (*kind.parameters, *SETTINGS), JointMotion._fields).prepare


def _unobserved(_: float) -> None:
    pass


class EmulatedJoint:
    """Simulation of a joint: true state and electrical quantities. It starts hanging at rest.

    :param parameters: motor, friction law and their values.
    :param pendulum: the load.
    :param supply_resistance: of supply and cables [ohm].
    :param dt: time step [s].
    :raises ConfigError: for a servo without a drive/brake bridge.
    """

    def __init__(self, parameters: Drive, pendulum: Pendulum, supply_resistance: float, dt: float) -> None:
        control = parameters.actuator.control
        if not isinstance(control, VoltageControl) or control.bridge != "brake":
            raise ConfigError(
                f"{parameters.actuator.title} cannot be emulated: only servos with a voltage law and a drive/brake bridge can"
            )
        self.law = parameters.law
        self.pendulum = Pendulum(*(float(value) for value in pendulum))
        self.dt = dt
        self.supply_resistance = supply_resistance
        self.values = {name: float(value) for name, value in parameters.values.items()}
        self.state = PlantState(-self.values["q_offset"], 0.0, ControlState(0.0, 0.0))
        self.motor_torque = self.current = self.duty = self.voltage = 0.0
        self._control = control
        self.goal_speed = math.inf if control.goal_speed is None else control.goal_speed
        self._firmware: Firmware | None = None
        self._surroundings: tuple[float, ...] = ()
        self._steps: Steps | None = None
        self._parameters = {name: value for name, value in self.values.items() if name != "current_limit"}
        self._load = (*self.pendulum, float(dt), float(supply_resistance))
        self._loops: dict[tuple[Any, ...], Callable[..., Steps]] = {}

    def _adopt(self, firmware: Firmware, surroundings: tuple[float, ...]) -> Steps:
        """Compute what is constant between steps."""
        before = self._firmware
        if firmware.drive == "position" and (before is None or before.drive != "position"):
            self.state = self.state._replace(control=ControlState(self.state.position, 0.0))
        self._firmware, self._surroundings = firmware, surroundings
        speed, limit = firmware.goal_speed, firmware.current_limit
        self._steps = self.loop_of(firmware)(
            *self._parameters.values(),
            *(() if limit is None else (float(limit),)),
            *(float(firmware.goal), *firmware.gains, 0.0 if speed is None else speed, firmware.duty_limit),
            *self._load,
            *(firmware.resolution, firmware.dead_zone, firmware.punch),
            *surroundings,
        )
        return self._steps

    def loop_of(self, firmware: Firmware) -> Callable[..., Steps]:
        """The compiled step for commands of this kind; its constants are the parameter values and :data:`SETTINGS`."""
        gains = firmware.gains
        unlimited = firmware.goal_speed is None, firmware.current_limit is None, firmware.resolution > 0.0
        terms = (firmware.drive, bool(gains.ki), bool(gains.kd), *unlimited)
        if terms not in self._loops:
            self._loops[terms] = _loop_of(self._kind_of(firmware))
        return self._loops[terms]

    def _kind_of(self, firmware: Firmware) -> JointKind:
        control = self._control.with_used_terms(firmware.gains)
        control = replace(control, goal_speed=None if firmware.goal_speed is None else 1.0)
        limited = () if firmware.current_limit is None else ("current_limit",)
        names = (*self._parameters, *limited)
        return JointKind(self.law, control, firmware.drive, names, firmware.resolution > 0.0)

    def step(
        self,
        firmware: Firmware,
        push: float,
        open_voltage: float,
        count: int = 1,
        allowed: tuple[float, float] = (-math.inf, math.inf),
        observe: Callable[[float], object] = _unobserved,
    ) -> int:
        """Advance by ``count`` time steps, or to the end of the first one in which the voltage is not as allowed.

        :param push: external torque besides gravity [N m].
        :param open_voltage: open-circuit supply [V].
        :param allowed: lowest and highest voltage at the servo [V].
        :param observe: called with the position after each step [rad].
        :returns: the number of steps made.
        """
        surroundings = (open_voltage, push, *allowed)
        steps = self._steps
        if steps is None or firmware is not self._firmware or surroundings != self._surroundings:
            steps = self._adopt(firmware, surroundings)
        position, velocity, control = self.state
        electric: Sequence[float] = (self.voltage, self.motor_torque, self.current, self.duty)
        made, position, velocity, ramped, integral, *electric = steps(
            count, observe, position, velocity, *control, *electric
        )
        self.voltage, self.motor_torque, self.current, self.duty = electric
        self.state = PlantState(position, velocity, ControlState(ramped, integral))
        return int(made)
