"""Servos on one serial bus, in SI and in their own coordinates: what is read and written in every cycle.

A cycle is one packet with all goals (sync write) and one that asks for everything (sync read where all
servos have the same layout, else bulk read). Position, velocity, current or load, duty, voltage and
temperature come in one contiguous block. One thread uses a bus.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.errors import ServoError
from stribeck.servo.checks import (
    SIGNALS,
    ConnectionReport,
    block_of,
    check_presence,
    check_rate,
    check_servos,
    prepare,
)
from stribeck.servo.link import Answer, Counters, Link
from stribeck.servo.port import Port
from stribeck.servo.registers import Register
from stribeck.servo.remote import RemoteServo, ServoSpec, error_words

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ALERT = 0x80
"""Bit of a status packet's error (protocol 2): something ails the servo."""

WARM_UP = 20
"""Cycles read at connect, to learn how long answers take."""

CONFIRM_TIME = 0.008
"""How long servos are asked in a row whether their torque is off [s]."""

REBOOT_TIME = 3.0
"""A servo that does not answer this long after a reboot [s] does not come back."""

STATE = ("torque_enable", "hardware_error_status", "bus_watchdog")
"""Registers that say whether a servo still is as it was left."""


@dataclass(frozen=True)
class Reading:
    """One cycle's samples in servo coordinates, an entry for each servo; NaN where there is none.

    :param valid: who answered.
    :param time: when each servo read its registers, steady clock [s] (see :mod:`stribeck.servo.link`).
    :param position: [rad], 0 at the model's center.
    :param velocity: [rad/s].
    :param current: [A].
    :param load: share of the largest load, of servos that measure no current.
    :param pwm: duty in [-1, 1].
    :param voltage: [V].
    :param temperature: [°C].
    """

    valid: BoolArray
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    current: FloatArray
    load: FloatArray
    pwm: FloatArray
    voltage: FloatArray
    temperature: FloatArray


@dataclass(frozen=True)
class ServoState:
    """What a servo says of itself beside its measurements.

    :param torque_enable: whether it drives its motor.
    :param errors: hardware errors in words.
    :param watchdog_expired: whether it stopped because the bus fell silent.
    """

    torque_enable: bool
    errors: str
    watchdog_expired: bool


@dataclass(frozen=True)
class _Field:
    """Where a signal stands in a servo's answer."""

    row: int
    start: int
    stop: int
    register: Register


class Bus:
    """Servos on a serial port.

    :param port: its name.
    :param baud_rate: [bit/s].
    :param servos: who is expected; arrays have this order.
    :param rate: cycles in a second that the bus is to carry, ``None`` for no check.
    :ivar errors: hardware errors in words as last reported, empty for none.
    :raises ConfigError: for servos that cannot share a bus, or a baud rate too slow for ``rate``.
    """

    def __init__(
        self, port: str, baud_rate: int, servos: Sequence[ServoSpec], rate: float | None = None
    ) -> None:
        check_servos(servos, baud_rate)
        if rate is not None:
            check_rate(servos, baud_rate, rate)
        self.baud_rate = baud_rate
        self.servos = tuple(servos)
        self.link = Link(Port(port, baud_rate), servos[0].model.protocol)
        names = list(SIGNALS.values())
        self._blocks = {servo.identity: block_of(servo, names) for servo in servos}
        self._states = [block_of(servo, STATE) for servo in servos]
        self._fields = [self._fields_of(servo) for servo in servos]
        self._spans = [(0, 0)] * len(servos)
        self.temperature_limits = np.full(len(servos), np.inf)
        self.errors = [""] * len(servos)

    @property
    def counters(self) -> Counters:
        """What happened on the bus so far."""
        return self.link.counters

    @property
    def is_open(self) -> bool:
        """Whether the port is open."""
        return bool(self.link.port.is_open)

    # Connecting.

    def connect(self) -> ConnectionReport:
        """Open the port, find every servo, bring them, torque off, to known settings.

        :raises ServoError: if the port cannot be opened, or a servo is missing, another model, or cannot
            be set.
        """
        port = self.link.port
        port.openPort()
        try:
            report = ConnectionReport(low_latency=port.low_latency)
            check_presence(self.link, self.servos, self.baud_rate)
            for index, servo in enumerate(self.servos):
                remote = RemoteServo(self.link, servo)
                prepare(remote, report)
                self._learn(index, remote)
            report.cycle_time = self._warm_up()
        except BaseException:
            self.close()
            raise
        if not port.low_latency:
            report.notes.append(
                f"{port.port_name} has no low-latency setting; one cycle of reading takes {1e3 * report.cycle_time:.1f} ms"
            )
        return report

    def close(self) -> None:
        """Close the port; servos stay as they are."""
        self.link.port.closePort()

    def _learn(self, index: int, remote: RemoteServo) -> None:
        """The servo's own limits."""
        servo = remote.servo
        register = servo.model.register(servo.goal_register)
        lower, upper = register.span
        lower = lower if register.minimum is None else register.minimum
        upper = upper if register.maximum is None else register.maximum
        if servo.mode in ("position", "current_position"):
            limits = [remote.read(name) for name in ("min_position_limit", "max_position_limit")]
            if servo.mode == "position" and limits[0] < limits[1]:
                lower, upper = limits
        for mode, name in (("pwm", "pwm_limit"), ("current", "current_limit")):
            if servo.mode == mode and servo.has(name):
                limit = remote.read(name)
                lower, upper = -limit, limit
        self._spans[index] = (lower, upper)
        if servo.has("temperature_limit"):
            self.temperature_limits[index] = remote.value("temperature_limit")

    def _warm_up(self) -> float:
        """Read some cycles; the median of the time they took [s]."""
        times = []
        for _ in range(WARM_UP):
            start = time.monotonic()
            self.read(start)
            times.append(time.monotonic() - start)
        return statistics.median(times)

    # In every cycle.

    def read(self, until: float) -> Reading:
        """Samples of all servos; who is late is asked again as long as there is time.

        :param until: time by which to be done [s].
        :raises PortLostError: if the port is gone.
        """
        answers = self.link.read_many(self._blocks, until)
        values = np.full((len(SIGNALS), len(self.servos)), np.nan)
        times = np.full(len(self.servos), np.nan)
        for index, servo in enumerate(self.servos):
            answer = answers.get(servo.identity)
            if answer is None:
                continue
            times[index] = answer.time
            for field in self._fields[index]:
                raw = int.from_bytes(answer.data[field.start : field.stop], "little")
                values[field.row, index] = field.register.decode(raw)
            self.errors[index] = self._ailment(index, answer)
        return Reading(np.isfinite(times), times, *values)

    def write_goals(self, goals: FloatArray) -> FloatArray:
        """Send goals in one packet: [rad], [A] or duty, by each servo's mode; NaN leaves a servo out.

        :return: what was sent, clipped to the servos' own limits and in whole counts.
        :raises PortLostError: if the port is gone.
        """
        sent = np.full(len(self.servos), np.nan)
        packets: dict[tuple[int, int], dict[int, int]] = {}
        for index, servo in enumerate(self.servos):
            if math.isnan(goals[index]):
                continue
            register = servo.model.registers[servo.goal_register]
            number = self._number(index, register, float(goals[index]))
            sent[index] = (number - register.zero) * register.scale
            packet = packets.setdefault((register.address, register.size), {})
            packet[servo.identity] = register.raw(number)
        for (address, size), raws in packets.items():
            self.link.write_many(address, size, raws)
        return sent

    def _number(self, index: int, register: Register, goal: float) -> int:
        lower, upper = self._spans[index]
        counts = goal / register.scale + register.zero
        return round(min(max(counts, lower), upper))

    # Now and then.

    def hold(self, index: int, position: float) -> None:
        """Goal of one servo that is to be energised, acknowledged: where it is, or no current, or no duty.

        :param position: of the servo [rad].
        :raises ServoError: if it does not answer or refuses.
        """
        servo = self.servos[index]
        register = servo.model.registers[servo.goal_register]
        number = self._number(index, register, position if servo.follows_position else 0.0)
        RemoteServo(self.link, servo).write(servo.goal_register, number, patient=False)

    def set_torque(self, index: int, on: bool) -> None:
        """Torque of one servo on or off, acknowledged.

        :raises ServoError: if it does not answer or refuses.
        """
        RemoteServo(self.link, self.servos[index]).write("torque_enable", int(on), patient=False)

    def torque_off(self) -> list[ServoSpec]:
        """Torque of all servos off: at once, and then confirmed by each as far as time allows.

        :return: the servos that did not confirm it.
        :raises PortLostError: if the port is gone.
        """
        packets: dict[tuple[int, int], dict[int, int]] = {}
        for servo in self.servos:
            register = servo.model.registers["torque_enable"]
            packets.setdefault((register.address, register.size), {})[servo.identity] = 0
        for (address, size), raws in packets.items():
            self.link.write_many(address, size, raws)
        silent, until = list(self.servos), time.monotonic() + CONFIRM_TIME
        while silent and time.monotonic() < until:
            servo = silent.pop(0)
            register = servo.model.registers["torque_enable"]
            if self.link.write(servo.identity, register.address, 0, register.size, 1, patient=False) is None:
                silent.append(servo)
        return silent

    def set_gain(self, index: int, gain: int) -> None:
        """P gain of a servo, in firmware units.

        :raises ConfigError: for a gain that the servo does not have.
        :raises ServoError: if it does not answer or refuses.
        """
        RemoteServo(self.link, self.servos[index]).write("position_p_gain", gain, patient=False)

    def set_watchdog(self, timeout: float) -> None:
        """Arm the Bus Watchdog of the servos that have one, in steps of 20 ms; 0 disarms and clears it.

        :raises ServoError: if a servo does not answer or refuses.
        """
        for servo in self.servos:
            if servo.model.has_watchdog:
                register = servo.model.register("bus_watchdog")
                # Down to a whole step: stopped too early is safe, too late is not.
                number = max(1, int(timeout / register.scale + 1e-9)) if timeout > 0.0 else 0
                RemoteServo(self.link, servo).write("bus_watchdog", number, patient=False)

    def state_of(self, index: int) -> ServoState | None:
        """Whether a servo still is as it was left; ``None`` if its answer got lost."""
        servo, block = self.servos[index], self._states[index]
        answer = self.link.read(servo.identity, block, attempts=1)
        if answer is None:
            return None
        numbers: dict[str, int] = {}
        for name in STATE:
            if servo.has(name):
                register = servo.model.registers[name]
                start = register.address - block.address
                numbers[name] = register.number(
                    int.from_bytes(answer.data[start : start + register.size], "little")
                )
        return ServoState(
            bool(numbers["torque_enable"]),
            error_words(servo.model, numbers.get("hardware_error_status", 0)),
            numbers.get("bus_watchdog", 0) < 0,
        )

    def reset(self, index: int) -> None:
        """Get a servo out of its hardware error: a reboot, or its torque limit back with protocol 1.

        :raises ServoError: if the error stays or the servo does not come back.
        """
        servo = self.servos[index]
        remote = RemoteServo(self.link, servo)
        if servo.model.protocol == 2.0:
            self.link.reboot(servo.identity)
            until = time.monotonic() + REBOOT_TIME
            while self.link.ping(servo.identity, attempts=1) is None:
                if time.monotonic() > until:
                    raise ServoError(f"{servo} does not come back after a reboot: check its power")
        prepare(remote, ConnectionReport())
        self._learn(index, remote)
        errors = remote.hardware_errors()
        if errors:
            raise ServoError(f"{servo} still reports: {errors}; remove the cause, then clear the fault again")
        self.errors[index] = ""

    def _ailment(self, index: int, answer: Answer) -> str:
        """Hardware errors of a servo in words: in every answer with protocol 1, else asked for on alert."""
        servo = self.servos[index]
        if servo.model.protocol == 1.0:
            return error_words(servo.model, answer.error & sum(servo.model.error_bits.values()))
        if not answer.error & ALERT:
            return ""
        state = self.state_of(index) if not self.errors[index] else None
        return state.errors or "an alert without a reason" if state else self.errors[index]

    def _fields_of(self, servo: ServoSpec) -> list[_Field]:
        start = self._blocks[servo.identity].address
        fields = []
        for row, name in enumerate(SIGNALS.values()):
            if servo.has(name):
                register = servo.model.registers[name]
                offset = register.address - start
                fields.append(_Field(row, offset, offset + register.size, register))
        return fields


def without_watchdog(servos: Sequence[ServoSpec]) -> str:
    """What a user must know of servos without a watchdog, in a sentence; empty if there are none."""
    named = [str(servo) for servo in servos if not servo.model.has_watchdog]
    if not named:
        return ""
    verb = "stays" if len(named) == 1 else "stay"
    return f"{', '.join(named)} {verb} energised if this program dies: have a power switch at hand"


def counters_of(counters: Counters) -> Mapping[str, float]:
    """Counters by name, for diagnostics."""
    return {name: float(value) for name, value in vars(counters).items()}
