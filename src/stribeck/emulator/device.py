"""An emulated servo: its control table and the physics of its joint.

Without I/O and clock: :meth:`EmulatedServo.advance_to` advances it to a time, at which reads and writes then act.
Behaviour follows the ROBOTIS e-manual and Feetech's memory tables. Where these are silent:

- The firmware controls the true position; the registers report the encoder's, with noise and rounding at each read.
- The reported velocity is the mean over the last 5 ms, rounded to counts.
- When the Bus Watchdog expires, the present position becomes the goal, or the goal current or duty becomes zero.
- Switching torque on applies the goal in the register, which is initially the position at power-on.
- Voltage errors occur without delay. Overloads occur only as injected faults.
- Below half of the lowest rated voltage the servo is off. After power-on or reboot it ignores the bus for 0.3 s.
- Feetech servos compute their law with whole counts: no duty within the larger dead zone, at least ``punch`` beyond it.
- Velocity modes, trapezoidal profiles, feed-forward and reversed direction are not emulated: values that need them
  are rejected as out of range, but ``profile_acceleration`` is accepted without effect.
"""

import copy
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from stribeck.emulator.control_table import ControlTable
from stribeck.emulator.joint import BARE, OFF, EmulatedJoint, Firmware, published_parameters
from stribeck.emulator.protocol import ALERT, Error1, Error2
from stribeck.emulator.refusal import DRIVES, command_of, gains_of, mode_of, refusal, revives
from stribeck.errors import check_valid
from stribeck.model.bench import Pendulum
from stribeck.model.joint import Drive
from stribeck.model.step import PlantState
from stribeck.servo.registers import ServoModel
from stribeck.servo.tables import model_named

VELOCITY_WINDOW = 0.005

BOOT_TIME = 0.3
"""Time until a servo responds after power-on or a reboot [s]."""

PROTECTED = ("overload", "overcurrent")
"""Errors at which a Feetech servo goes on with its protective torque, until torque is switched off."""

OFF_SHARE = 0.5
"""Voltage below which a servo is off, as a fraction of the lowest rated voltage."""


class EmulatedServo:
    """One servo.

    :param model: the servo, or its name.
    :param parameters: motor and friction; default: the published M6 values of its family.
    :param pendulum: the load; default: none.
    :param servo_id: ID on the bus.
    :param voltage: open-circuit supply [V]; default: nominal.
    :param supply_resistance: of supply and cables, causes a voltage drop under load [ohm].
    :param temperature: constant [°C].
    :param noise: standard deviation of the encoder noise before rounding [counts].
    :param baud: the only baud rate at which it receives [bit/s]; ``None``: every rate, until a program writes
        ``baud_rate``.
    :param registers: counts of EEPROM registers that differ from the factory values, by name.
    :param dt: time step of the physics [s].
    :param rng: random generator for the noise.
    :ivar firmware: what the registers command to the motor.
    :raises ConfigError: for invalid values.
    """

    def __init__(
        self,
        model: ServoModel | str = "xl330",
        parameters: Drive | None = None,
        pendulum: Pendulum = BARE,
        *,
        servo_id: int = 1,
        voltage: float | None = None,
        supply_resistance: float = 0.1,
        temperature: float = 25.0,
        noise: float = 0.3,
        baud: int | None = None,
        registers: Mapping[str, int] | None = None,
        dt: float = 1e-3,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.model = model_named(model) if isinstance(model, str) else model
        if parameters is None:
            parameters = published_parameters(self.model.name)
        rng = np.random.default_rng(0) if rng is None else rng
        self._made_from: tuple[tuple[Any, ...], dict[str, Any]] = (
            (self.model, parameters, pendulum),
            {
                "servo_id": servo_id,
                "voltage": voltage,
                "supply_resistance": supply_resistance,
                "temperature": temperature,
                "noise": noise,
                "baud": baud,
                "registers": dict(registers or {}),
                "dt": dt,
                "rng": copy.deepcopy(rng),
            },
        )
        self.joint = EmulatedJoint(parameters, pendulum, supply_resistance, dt)
        self.open_voltage = self.model.nominal_voltage if voltage is None else voltage
        self.joint.voltage = self.open_voltage
        self._normal_voltage: float | None = None
        self.temperature = temperature
        self.noise = noise
        self.baud = baud
        self.errors = 0
        self.clock = 0.0
        self.first_torque: float | None = None
        self._rng = rng
        self._origin, self._steps = 0.0, 0
        self._push, self._push_end = 0.0, -math.inf
        self._delay = float(parameters.values.get("command_delay", 0.0))
        self.firmware, self._delayed = OFF, deque[tuple[float, Firmware]]()
        self._positions = deque([self.joint.state.position], maxlen=max(1, round(VELOCITY_WINDOW / dt)) + 1)
        self._boots_until, self._heard = -math.inf, 0.0
        self._registered: tuple[int, bytes] | None = None
        self._powered, self._revives = True, revives(self.model)
        rate = self.model.baud_value(baud if baud is not None else 1_000_000)
        factory = {"id": servo_id, "baud_rate": rate, **(registers or {})}
        self.memory = ControlTable(self.model, factory, self._measured())
        self._start()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made from: another process receives the servo as it was at first."""
        return partial(EmulatedServo, **self._made_from[1]), self._made_from[0]

    @property
    def id(self) -> int:
        """ID on the bus."""
        return self.memory.numbers["id"]

    @property
    def state(self) -> PlantState:
        """The true state."""
        return self.joint.state

    @property
    def torque_enabled(self) -> bool:
        """Whether the motor is driven."""
        return self.firmware.drive != "off"

    @property
    def listens(self) -> bool:
        """Whether the servo is powered and has started."""
        return self._powered and self.clock >= self._boots_until

    def _measured(self) -> dict[str, Callable[[], int]]:
        """Functions that compute the registers measured at each read."""
        quantities: dict[str, Callable[[], float]] = {
            "present_velocity": self._mean_velocity,
            "present_current": lambda: self.joint.current,
            "present_pwm": lambda: self.joint.duty,
            "present_load": lambda: self.joint.duty,
            "present_input_voltage": lambda: self.joint.voltage,
            "present_temperature": lambda: self.temperature,
            "position_trajectory": lambda: self.state.control.goal,
        }

        def counts(name: str, quantity: Callable[[], float]) -> Callable[[], int]:
            return lambda: self._counts(name, quantity())

        return {name: counts(name, quantity) for name, quantity in quantities.items()} | {
            "present_position": self._position_count,
            "hardware_error_status": lambda: self.errors,
            "realtime_tick": lambda: int(1e3 * self.clock) % 32768,
            "moving": self._moving,
            "registered_instruction": lambda: int(self._registered is not None),
        }

    # Time.

    def warm_up(self) -> None:
        """Compile the physics without torque and of the present operating mode, which takes some 10 ms each."""
        for firmware in (self.firmware, self._energised()):
            self.joint.loop_of(firmware)

    def begin(self, clock: float) -> None:
        """Start time at ``clock`` [s]."""
        self._origin, self._steps, self.clock, self._heard = clock, 0, clock, clock

    def advance_to(self, clock: float) -> None:
        """Advance by whole steps of the physics that end by ``clock`` [s]."""
        dt, joint = self.joint.dt, self.joint
        last = int((clock - self._origin) / dt + 1e-6)
        while self._steps < last:
            if self._delayed and self._delayed[0][0] <= self.clock:
                self.firmware = self._delayed.popleft()[1]
            if self.clock - self._heard > self._watchdog:
                self._watchdog_expires()
            push = self._push if self.clock < self._push_end else 0.0
            count = min(last - self._steps, self._steps_undisturbed())
            allowed = (self._lowest, self._highest)
            self._steps += joint.step(
                self.firmware, push, self.open_voltage, count, allowed, self._positions.append
            )
            self.clock = self._origin + self._steps * dt
            if not self._lowest <= joint.voltage <= self._highest:
                self._voltage_is_wrong()

    def _steps_undisturbed(self) -> int:
        """Number of steps, at least 1, before which only the joint changes: one fewer than the times say, because of rounding."""
        event = self._heard + self._watchdog
        if self.clock < self._push_end:
            event = min(event, self._push_end)
        if self._delayed:
            event = min(event, self._delayed[0][0])
        left = (event - self.clock) / self.joint.dt - 1.0
        return 1 if left < 1.0 else int(min(left, 1e9))

    def hear(self) -> None:
        """Restart the watchdog: an instruction arrived on the bus."""
        self._heard = self.clock

    # External influences.

    def push(self, torque: float, duration: float) -> None:
        """Apply an external torque [N m] to the shaft for a time [s]."""
        self._push, self._push_end = torque, self.clock + duration

    def set_voltage(self, voltage: float) -> None:
        """Change the open-circuit supply voltage [V]."""
        self.open_voltage = voltage
        if not self._powered and voltage >= OFF_SHARE * self.model.rated_min:
            self._powered = True
            self.reboot()

    def brown_out(self, voltage: float | None) -> None:
        """Change the supply voltage temporarily [V]; ``None`` restores it."""
        if self._normal_voltage is None:
            self._normal_voltage = self.open_voltage
        self.set_voltage(self._normal_voltage if voltage is None else voltage)
        if voltage is None:
            self._normal_voltage = None

    def set_temperature(self, temperature: float) -> None:
        """Change the temperature [°C]; above ``temperature_limit`` the servo overheats."""
        self.temperature = temperature
        if temperature > self._quantity("temperature_limit"):
            self.fail("overheating")

    def fail(self, name: str) -> None:
        """Raise a hardware error by its name in the model's ``error_bits``.

        :raises ConfigError: for an error that this servo does not have.
        """
        check_valid(name, self.model.error_bits, f"{self.model.title} has no error")
        bit = self.model.error_bits[name]
        self.errors |= bit
        numbers = self.memory.numbers
        if numbers["shutdown"] & bit:
            protective = "protective_torque" in numbers
            if not (protective and name in PROTECTED):
                numbers["torque_limit" if self._revives and not protective else "torque_enable"] = 0
            self._apply_registers(at_once=True)

    def reboot(self) -> None:
        """Restart: RAM as at power-on, EEPROM unchanged."""
        self.memory.power_on()
        self._start()
        self._boots_until = self.clock + BOOT_TIME

    # Registers.

    def read(self, address: int, length: int) -> tuple[int, bytes]:
        """Read the control table; return the error number or bits, and the bytes."""
        data = self.memory.read(address, length)
        if data is None:
            return self.status(Error2.ACCESS, Error1.RANGE), b""
        return self.status(), data

    def write(self, address: int, data: bytes) -> int:
        """Write to the control table, all or nothing.

        :returns: the error number or bits of the answer.
        """
        numbers, problem = self.memory.parts(address, data)
        if problem is not None:
            return self.status(problem, Error1.RANGE)
        for name, number in numbers.items():
            problem_of_one = refusal(self.model, self.memory.numbers, self.errors, name, number, numbers)
            if problem_of_one is not None:
                return self.status(*problem_of_one)
        for name, number in numbers.items():
            self._set(name, number)
        self.memory.adopt(address, data)
        self._apply_registers()
        return self.status()

    def register(self, address: int, data: bytes) -> int:
        """Store a write for later execution by :meth:`act`."""
        _, problem = self.memory.parts(address, data)
        if problem is not None:
            return self.status(problem, Error1.RANGE)
        self._registered = (address, data)
        return self.status()

    def act(self) -> int:
        """Execute the stored write."""
        if self._registered is None:
            return self.status(Error2.INSTRUCTION, Error1.INSTRUCTION)
        (address, data), self._registered = self._registered, None
        return self.write(address, data)

    def status(self, error: Error2 | int = 0, bits: Error1 | int = 0) -> int:
        """Error byte of a status packet: a number (protocol 2) or bits (protocol 1), and hardware errors."""
        if self.model.protocol == 1.0:
            return self.errors | (int(bits) if self.model.dialect.refusals else 0)
        return int(error) | (ALERT if self.errors else 0)

    def _set(self, name: str, number: int) -> None:
        """Store an accepted number and apply its side effects."""
        numbers = self.memory.numbers
        before, numbers[name] = numbers[name], number
        if name == "operating_mode" and number != before:
            for other, register in self.model.registers.items():
                if other.endswith("_gain") or other.startswith("profile_"):
                    numbers[other] = register.initial
            for goal in ("pwm", "current"):
                if f"{goal}_limit" in numbers:
                    numbers[f"goal_{goal}"] = numbers[f"{goal}_limit"]
        elif name == "baud_rate" and number != before:
            self.baud = self.model.baud_rates[number]
        elif self._revives and (name, bool(number)) in (("torque_limit", True), ("torque_enable", False)):
            self.errors = 0
        if self.model.registers[name].eeprom:
            self.memory.keep(name)
        if name == "torque_enable" and number and self.first_torque is None:
            self.first_torque = self.clock

    # Internals.

    def _start(self) -> None:
        self.errors, self._registered = 0, None
        self.memory.numbers["goal_position"] = self._position_count()
        if "max_torque" in self.memory.numbers and "torque_limit" in self.memory.numbers:
            self.memory.numbers["torque_limit"] = self.memory.numbers["max_torque"]
        self._apply_registers(at_once=True)
        self.set_temperature(self.temperature)

    def _apply_registers(self, at_once: bool = False) -> None:
        """Apply the registers to the firmware, after the command delay or at once."""
        numbers = self.memory.numbers
        # The servo compares counts of 0.1 V.
        self._lowest = self._quantity("min_voltage_limit") - 0.05
        self._highest = self._quantity("max_voltage_limit") + 0.05
        watching = numbers["torque_enable"] and numbers.get("bus_watchdog", 0) > 0
        self._watchdog = self._quantity("bus_watchdog") if watching else math.inf
        if at_once:
            self._delayed.clear()
        if self._delay > 0.0 and not at_once:
            self._delayed.append((self.clock + self._delay, self._commanded()))
        else:
            self.firmware = self._commanded()

    def _commanded(self) -> Firmware:
        numbers = self.memory.numbers
        if not numbers["torque_enable"] or not numbers.get("torque_limit", 1):
            return replace(OFF, gains=gains_of(numbers))
        return self._energised()

    def _energised(self) -> Firmware:
        return command_of(self.model, self.memory.numbers, self.errors, self.joint.goal_speed)

    def _watchdog_expires(self) -> None:
        numbers = self.memory.numbers
        numbers["bus_watchdog"] = -1
        drive = DRIVES[self._mode()]
        numbers[f"goal_{drive}"] = self._position_count() if drive == "position" else 0
        self._apply_registers(at_once=True)

    def _voltage_is_wrong(self) -> None:
        if self.joint.voltage < OFF_SHARE * self.model.rated_min:
            if self._powered:
                self._powered = False
                self.memory.power_on()
                self._start()
        elif not self.errors & self.model.error_bits["input_voltage"]:
            self.fail("input_voltage")

    def _mode(self) -> str:
        return mode_of(self.model, self.memory.numbers.get(self.model.mode_register, 0))

    def _quantity(self, name: str) -> float:
        return self.model.registers[name].quantity(self.memory.numbers[name])

    def _counts(self, name: str, value: float) -> int:
        """Convert a quantity to counts, clipped to the range of the register."""
        register = self.model.registers[name]
        lower, upper = register.span
        return min(upper, max(lower, round(value / register.scale) + register.zero))

    def _position_count(self) -> int:
        register = self.model.registers["present_position"]
        noise = self.noise * self._rng.standard_normal() if self.noise else 0.0
        count = round(float(self.state.position) / register.scale + noise) + register.zero
        offset = self.memory.numbers.get("homing_offset", 0)
        if register.encoding == "signed":
            return count + offset
        count -= offset
        whole = int(self.model.resolution)
        return count % whole if whole == 4096 else min(1023, max(0, count))

    def _mean_velocity(self) -> float:
        positions = self._positions
        steps = len(positions) - 1
        return (positions[-1] - positions[0]) / (steps * self.joint.dt) if steps else 0.0

    def _moving(self) -> int:
        threshold = self._quantity("moving_threshold") if "moving_threshold" in self.model.registers else 0.25
        return int(abs(self._mean_velocity()) > threshold)
