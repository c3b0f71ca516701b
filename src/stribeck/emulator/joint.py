"""The physics of an emulated servo: motor, friction and load.

All formulas are from ``core``: a step uses its motor torque for the firmware command and its velocity step, with an
external torque added to that of the load.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from stribeck.core.actuator import (
    ControlState,
    ServoCommand,
    firmware_output,
    next_control_state,
    voltage_torque,
)
from stribeck.core.bench import Pendulum, gravity_torque, inertia
from stribeck.core.control_laws import Gains, VoltageControl
from stribeck.core.electrics import duty_for_current, motor_current, sagging_supply, supply_current
from stribeck.core.friction import law_named
from stribeck.core.step import Plant, PlantState, velocity_step
from stribeck.errors import ConfigError
from stribeck.io.actuators import actuator_names, load_actuator
from stribeck.io.parameter_file import ParameterFile

Drive = Literal["off", "position", "pwm", "current"]
"""Control mode of the motor bridge."""

BARE = Pendulum(0.0, 0.0, 0.0)
"""Nothing mounted on the shaft."""


@dataclass(frozen=True)
class Firmware:
    """Command to the firmware, in SI units.

    :param drive: see :data:`Drive`.
    :param goal: position [rad], duty [1] or current [A].
    :param gains: position gains in firmware units.
    :param duty_limit: largest duty [1].
    :param current_limit: largest winding current [A], ``None`` without a limit.
    :param goal_speed: maximum speed towards a position goal [rad/s], ``None`` without a limit.
    """

    drive: Drive
    goal: float
    gains: Gains
    duty_limit: float = 1.0
    current_limit: float | None = None
    goal_speed: float | None = None


OFF = Firmware("off", 0.0, Gains(0.0, 0.0, 0.0))


def published_parameters(name: str, law: str = "m6") -> ParameterFile:
    """Published parameters of a servo family, with the mounting offset of the bench set to zero.

    :raises ConfigError: for a servo without published parameters.
    """
    if name not in actuator_names() or law not in (actuator := load_actuator(name)).published:
        published = [n for n in actuator_names() if law in load_actuator(n).published]
        raise ConfigError(
            f"no {law} parameters were published for {name}: give a parameter file; published for {', '.join(published)}"
        )
    values = {**actuator.published[law], "q_offset": 0.0}
    return ParameterFile(actuator, law_named(law), values)


class EmulatedJoint:
    """Simulation of a joint: true state and electrical quantities. It starts hanging at rest.

    :param parameters: motor, friction law and their values.
    :param pendulum: the load.
    :param supply_resistance: of supply and cables [ohm].
    :param dt: time step [s].
    :raises ConfigError: for a servo without a drive/brake bridge.
    """

    def __init__(
        self, parameters: ParameterFile, pendulum: Pendulum, supply_resistance: float, dt: float
    ) -> None:
        control = parameters.actuator.control
        if not isinstance(control, VoltageControl) or control.bridge != "brake":
            raise ConfigError(
                f"{parameters.actuator.title} cannot be emulated: a Dynamixel has a voltage law with a drive/brake "
                "bridge"
            )
        self.law = parameters.law
        self.pendulum = Pendulum(*(float(value) for value in pendulum))
        self.dt = dt
        self.supply_resistance = supply_resistance
        self.values = {name: float(value) for name, value in parameters.values.items()}
        self.state = PlantState(-self.values["q_offset"], 0.0, ControlState(0.0, 0.0))
        self.motor_torque = self.current = self.duty = self.voltage = 0.0
        self._actuator = parameters.actuator
        self._control = control
        self._firmware: Firmware | None = None
        self._adopt(OFF)

    def _adopt(self, firmware: Firmware) -> None:
        """Precompute the quantities that are constant between steps."""
        before, self._firmware = self._firmware, firmware
        gains = firmware.gains
        self._law_of_control = replace(self._control.with_used_terms(gains), goal_speed=firmware.goal_speed)
        actuator = replace(self._actuator, control=self._law_of_control)
        self._plant = Plant(actuator, self.law, self.pendulum, gains)
        self._p = {name: value for name, value in self.values.items() if name != "current_limit"}
        if firmware.current_limit is not None:
            self._p["current_limit"] = firmware.current_limit
        if firmware.drive == "position" and (before is None or before.drive != "position"):
            self.state = self.state._replace(control=ControlState(self.state.position, 0.0))

    def step(self, firmware: Firmware, push: float, open_voltage: float) -> None:
        """Advance by one time step.

        :param push: external torque besides gravity [N m].
        :param open_voltage: open-circuit supply [V].
        """
        if firmware is not self._firmware:
            self._adopt(firmware)
        state, p, dt = self.state, self._p, self.dt
        voltage = sagging_supply(
            open_voltage, self.supply_resistance, supply_current(self.duty, self.current)
        )
        driven = firmware.drive != "off" and voltage > 0.0
        follows = driven and firmware.drive == "position"
        command = ServoCommand(firmware.goal, 1.0 if driven else 0.0, voltage)
        middle = state.position + 0.5 * dt * state.velocity
        halfway = self._next_control(state.control, firmware, middle) if follows else state.control

        def motor(velocity: float) -> float:
            duty = self._duty(firmware, halfway, middle, velocity, voltage) if driven else 0.0
            return float(voltage_torque(self._law_of_control, p, duty, command, velocity))

        external = gravity_torque(self.pendulum, middle, p["q_offset"]) + push
        mobility = 1.0 / inertia(self.pendulum, p["armature"])
        velocity, distance = velocity_step(self.law, mobility, p, state.velocity, motor, external, dt)
        control = self._next_control(halfway, firmware, middle) if follows else halfway
        self.state = PlantState(state.position + distance, velocity, control)
        self.voltage, self.motor_torque = voltage, motor(state.velocity)
        self.current = motor_current(p, self.motor_torque)
        # Duty at the motor, after the current limit.
        self.duty = duty_for_current(p, self.current, voltage, state.velocity) if driven else 0.0

    def _next_control(self, control: ControlState, firmware: Firmware, position: float) -> ControlState:
        """The firmware's state half a step later; without a limit of speed its goal is at once the commanded one."""
        control = next_control_state(
            self._plant.actuator, firmware.gains, control, firmware.goal, position, 0.5 * self.dt
        )
        return control if firmware.goal_speed is not None else ControlState(firmware.goal, control.integral)

    def _duty(
        self, firmware: Firmware, control: ControlState, position: float, velocity: float, voltage: float
    ) -> float:
        limit = firmware.duty_limit
        if firmware.drive == "position":
            duty = firmware_output(
                self._plant.actuator, self._p, firmware.gains, control, firmware.goal, position, velocity
            )
        elif firmware.drive == "current":
            duty = duty_for_current(self._p, firmware.goal, voltage, velocity)
        else:
            duty = firmware.goal
        return float(max(-limit, min(limit, duty)))
