"""Reads and writes all servos of one serial bus in every cycle, in SI units and servo coordinates.

A cycle sends all goals in one packet (sync write) and requests all measurements in another (sync read if all
servos have the same layout, otherwise bulk read). Position, velocity, current or load, duty, voltage and
temperature are in one contiguous block. Use a bus from one thread only.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stribeck.errors import ServoError
from stribeck.model.arrays import Array, Mask
from stribeck.servo.answers import Answer, Counters, Pending
from stribeck.servo.checks import (
    COOLEST_LIMIT,
    CYCLE,
    SIGNALS,
    ConnectionReport,
    check_presence,
    check_rate,
    check_servos,
    prepare,
)
from stribeck.servo.lengths import LONGEST_DELAY
from stribeck.servo.link import Link
from stribeck.servo.port import SLOW_PATIENCE, Port
from stribeck.servo.registers import Register
from stribeck.servo.remote import RemoteServo, ServoSpec, error_words

ALERT = 0x80
"""Bit of a status packet's error byte (protocol 2): the servo has a hardware error."""

WARM_UP = 20
"""Cycles read when connecting, to estimate the delay of answers."""

CONFIRM_TIME = 0.008
"""Time for all servos to confirm torque off while a cycle waits for it [s]."""

FENCE_TIME = 1.2 * LONGEST_DELAY
"""Time for all servos to confirm torque off when nothing else has to be done [s]: an answer that is as late as the
longest assumed delay is still in time."""

BUDGET = 0.075
"""Default of :attr:`Bus.budget` [s]."""

JUMP = 0.02
"""Largest difference between the goal that was written before torque goes on and the one read back [rad]: a servo
may follow its own position with it."""

REBOOT_TIME = 3.0
"""Maximum time for a servo to answer after a reboot [s]."""

REBOOTS = 8
"""Attempts to clear an error by a reboot: an instruction may be lost."""

STATE = ("torque_enable", "hardware_error_status", "bus_watchdog")
"""Registers that show whether a servo changed its state by itself."""


@dataclass(frozen=True)
class Reading:
    """Samples of one cycle in servo coordinates, one entry per servo; NaN where there is no value.

    :param valid: whether each servo answered.
    :param times: when each servo read its registers, steady clock [s] (see :mod:`stribeck.servo.link`).
    :param position: [rad], 0 at the model's center.
    :param velocity: [rad/s].
    :param current: [A].
    :param load: fraction of the maximum load, for servos that do not measure current.
    :param pwm: duty in [-1, 1].
    :param voltage: [V].
    :param temperature: [°C].
    """

    valid: Mask
    times: Array
    position: Array
    velocity: Array
    current: Array
    load: Array
    pwm: Array
    voltage: Array
    temperature: Array


@dataclass(frozen=True)
class ServoState:
    """Status of a servo.

    :param errors: description of hardware errors.
    :param watchdog_expired: whether the Bus Watchdog stopped the servo.
    """

    torque_enable: bool
    errors: str
    watchdog_expired: bool


class _Write(NamedTuple):
    """A register to write, the counts, and the largest difference from what the servo then holds [counts]."""

    register: Register
    number: int
    tolerance: int = 0


class Bus:
    """Servos on a serial port.

    :param port: the port, not open yet.
    :param servos: the expected servos, in the order of all arrays.
    :param rate: cycle rate that the bus must support [Hz], ``None`` to skip the check.
    :param budget: longest time that a servo may be silent or a write may take while servos move [s].
    :ivar counters: events on the bus so far.
    :ivar errors: description of the last reported hardware errors, empty for none.
    :raises ConfigError: for servos that cannot share a bus, or a baud rate too slow for ``rate``.
    """

    def __init__(
        self, port: Port, servos: Sequence[ServoSpec], rate: float | None = None, budget: float = BUDGET
    ) -> None:
        check_servos(servos, port.baudrate)
        if rate is not None:
            check_rate(servos, port.baudrate, rate)
        self.servos = tuple(servos)
        self.port, self.link = port, Link(port, servos[0].model.dialect)
        self.counters: Counters = self.link.counters
        self._remotes = [RemoteServo(self.link, servo) for servo in servos]
        self.budget = budget
        self._regions = {servo.identity: servo.region(CYCLE) for servo in servos}
        self.link.cyclic_lengths = frozenset().union(*(r.usual_lengths for r in self._regions.values()))
        self._states = [servo.region(STATE) for servo in servos]
        self._torques = {servo.identity: servo.region(["torque_enable"]) for servo in servos}
        self._fields = [self._fields_of(servo) for servo in servos]
        self._spans = [(0, 0)] * len(servos)
        self.temperature_limits = np.full(len(servos), np.inf)
        self.errors = [""] * len(servos)

    @property
    def is_open(self) -> bool:
        """Whether the port is open."""
        return bool(self.port.is_open)

    # Connecting.

    def connect(self) -> ConnectionReport:
        """Open the port, find every servo, switch its torque off and apply its settings.

        :raises ServoError: if the port cannot be opened, or a servo is missing, is of another model, or
            rejects a setting.
        """
        port = self.port
        port.openPort()
        try:
            report = ConnectionReport()
            port.settle(SLOW_PATIENCE)  # answers to a program that ran before
            self.link.forget_clocks()
            check_presence(self.link, self.servos, port.baudrate)
            for index, remote in enumerate(self._remotes):
                prepare(remote, report)
                self._read_limits(index)
            report.cycle_time = self._warm_up()
        except BaseException:
            self.close()
            raise
        if not port.low_latency:
            report.notes.append(
                f"{port.port_name} has no low-latency setting, which only USB adapters need; reading all servos takes "
                f"{1e3 * report.cycle_time:.1f} ms"
            )
        return report

    def close(self) -> None:
        """Close the port without changing the servos."""
        self.port.closePort()

    def _read_limits(self, index: int) -> None:
        servo, remote = self.servos[index], self._remotes[index]
        lower, upper = servo.goal_register.limits
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
            hottest = remote.value("temperature_limit")
            if hottest < COOLEST_LIMIT:
                raise ServoError(
                    f"temperature_limit of {servo} is {hottest:g} °C, but must be at least {COOLEST_LIMIT:g} °C: set it to a higher value"
                )
            self.temperature_limits[index] = hottest

    def _warm_up(self) -> float:
        """Read a few cycles and return their median duration [s]."""
        clock, times = self.port.clock, []
        for _ in range(WARM_UP):
            start = clock.now()
            self.read(start)
            times.append(clock.now() - start)
        return statistics.median(times)

    # In every cycle.

    def read(self, until: float) -> Reading:
        """Read all servos, and retry those that do not answer as long as time permits.

        :param until: deadline, steady clock [s].
        :raises PortLostError: if the port is lost.
        """
        answers = self.link.read_many(self._regions, until)
        values = np.full((len(SIGNALS), len(self.servos)), np.nan)
        times = np.full(len(self.servos), np.nan)
        for index, servo in enumerate(self.servos):
            answer = answers.get(servo.identity)
            if answer is None:
                continue
            times[index] = answer.time
            data, first = answer.data, answer.address
            for row, start, end, register in self._fields[index]:
                raw = register.from_bytes(data[start - first : end - first])
                values[row, index] = register.decode(raw)
            self.errors[index] = self._errors_of(index, answer)
        return Reading(np.isfinite(times), times, *values)

    def write_goals(self, goals: Array) -> Array:
        """Send goals in one packet: [rad], [A] or duty, depending on each servo's mode; NaN skips a servo.

        :return: the goals as sent, clipped to the limits stored in the servos and rounded to counts.
        :raises PortLostError: if the port is lost.
        """
        sent = np.full(len(self.servos), np.nan)
        numbers = {}
        for index, servo in enumerate(self.servos):
            if not math.isnan(goals[index]):
                register = servo.goal_register
                number = register.counts(float(goals[index]), *self._spans[index])
                sent[index] = register.quantity(number)
                numbers[servo.identity] = (register, number)
        self._write_many(numbers)
        return sent

    def _write_many(self, numbers: Mapping[int, tuple[Register, int]]) -> None:
        """Write registers of several servos, given by ID, in one packet per address."""
        packets: dict[tuple[int, int], dict[int, bytes]] = {}
        for identity, (register, number) in numbers.items():
            packet = packets.setdefault((register.address, register.size), {})
            packet[identity] = register.to_bytes(register.raw(number))
        for (address, size), raws in packets.items():
            self.link.write_many(address, size, raws)

    # Occasionally.

    def hold(self, positions: Mapping[int, float], until: float | None = None) -> None:
        """Before torque goes on, set the goals of servos to ``positions`` [rad], by index, or to zero current or duty.

        :param until: deadline [s]; default: after :attr:`budget`.
        :raises ServoError: if a servo does not confirm the goal in time or rejects it.
        """
        writes = {}
        for index, position in positions.items():
            servo = self.servos[index]
            register, follows = servo.goal_register, servo.follows_position
            number = register.counts(position if follows else 0.0, *self._spans[index])
            writes[index] = _Write(register, number, int(JUMP / register.scale) if follows else 0)
        self._confirm(writes, self._deadline(until))

    def set_torque(self, indices: Sequence[int], on: bool, until: float | None = None) -> None:
        """Switch the torque of servos on or off.

        :param until: deadline [s]; default: after :attr:`budget`.
        :raises ServoError: if a servo does not confirm it in time or rejects the command.
        """
        registers = {index: self.servos[index].model.register("torque_enable") for index in indices}
        self._confirm(
            {i: _Write(register, int(on)) for i, register in registers.items()}, self._deadline(until)
        )

    def _confirm(self, writes: Mapping[int, _Write], until: float | None) -> None:
        """Write a register of each of several servos in one packet and read all of them back in one request; where one holds
        another value, or does not answer, it is written again by itself.

        :param until: deadline [s], ``None`` for as long as a disturbed bus needs.
        """
        identities = {index: self.servos[index].identity for index in writes}
        self._write_many({identities[index]: (one.register, one.number) for index, one in writes.items()})
        regions = {
            identities[index]: self.servos[index].region([one.register.name]) for index, one in writes.items()
        }
        answers = self.link.read_once(regions, {}, self.link.latency.patience)
        for index, one in writes.items():
            answer = answers.get(identities[index])
            found = None if answer is None else one.register.number(answer.raw(one.register))
            if found is None or abs(found - one.number) > one.tolerance:
                self._remotes[index].write(one.register.name, one.number, until, one.tolerance)

    def torque_off(self, timeout: float = CONFIRM_TIME) -> list[ServoSpec]:
        """Switch torque off on all servos at once, then again on those that have not confirmed it in time.

        Only the register, read after the command with an answer length of its own, is a confirmation.

        :param timeout: time for the confirmation [s]; there is at least one attempt.
        :return: the servos that did not confirm.
        :raises PortLostError: if the port is lost.
        """
        clock, pending = self.port.clock, Pending()
        silent = {servo.identity: servo for servo in self.servos}
        until, patience = clock.now() + timeout, self.link.latency.patience
        while True:
            registers = {identity: silent[identity].model.registers["torque_enable"] for identity in silent}
            self._write_many({identity: (register, 0) for identity, register in registers.items()})
            regions = {identity: self._torques[identity] for identity in silent}
            for identity, answer in self.link.read_once(regions, pending, patience).items():
                if answer.raw(registers[identity]) == 0:
                    del silent[identity]
            rest = until - clock.now()
            if not silent or rest <= 0.0:
                return list(silent.values())
            patience = min(2.0 * patience, LONGEST_DELAY, rest)

    def set_gains(self, gains: Mapping[int, int], until: float | None = None) -> None:
        """Set the P gains of servos, by index, in firmware units.

        :param until: deadline [s], infinity for as long as a disturbed bus needs; default: after :attr:`budget`.
        :raises ConfigError: for a gain that a servo does not support.
        :raises ServoError: if one does not confirm the gain in time or rejects it.
        """
        writes = {
            i: _Write(self.servos[i].model.register("position_p_gain"), gain) for i, gain in gains.items()
        }
        self._confirm(writes, None if until == math.inf else self._deadline(until))

    def _deadline(self, until: float | None) -> float:
        """When a write must be confirmed while servos move [s]."""
        return self.port.clock.now() + self.budget if until is None else until

    def set_watchdog(self, timeout: float) -> None:
        """Arm the Bus Watchdog of the servos that have one, in steps of 20 ms; 0 disarms and clears it.

        :raises ServoError: if a servo does not answer or rejects the value.
        """
        for remote in self._remotes:
            if remote.servo.model.has_watchdog:
                register = remote.servo.model.register("bus_watchdog")
                # Rounded down: stopping too early is safe, too late is not.
                number = max(1, int(timeout / register.scale + 1e-9)) if timeout > 0.0 else 0
                remote.write("bus_watchdog", number)

    def state_of(self, index: int) -> ServoState | None:
        """Read the status of a servo; ``None`` if its answer is lost."""
        servo, region = self.servos[index], self._states[index]
        answer = self.link.read(servo.identity, region, attempts=1)
        if answer is None:
            return None
        numbers: dict[str, int] = {}
        for name in STATE:
            if servo.has(name):
                register = servo.model.registers[name]
                numbers[name] = register.number(answer.raw(register))
        return ServoState(
            bool(numbers["torque_enable"]),
            error_words(servo.model, numbers.get("hardware_error_status", 0)),
            numbers.get("bus_watchdog", 0) < 0,
        )

    def reset(self, index: int) -> None:
        """Clear a servo's hardware error by a reboot, or with protocol 1 by restoring its torque limit.

        :raises ServoError: if the error persists or the servo does not come back.
        """
        servo, remote, clock = self.servos[index], self._remotes[index], self.port.clock
        if servo.model.protocol == 2.0:
            for _ in range(REBOOTS):
                self.link.reboot(servo.identity)
                until = clock.now() + REBOOT_TIME
                while (state := self.state_of(index)) is None:
                    if clock.now() > until:
                        raise ServoError(f"{servo} does not answer after a reboot: check its power supply")
                if not state.errors:
                    break
        prepare(remote, ConnectionReport())
        self._read_limits(index)
        errors = remote.hardware_errors()
        if errors:
            raise ServoError(f"{servo} still reports: {errors}; remove the cause, then clear the fault again")
        self.errors[index] = ""

    def _errors_of(self, index: int, answer: Answer) -> str:
        """Describe hardware errors: in every answer with protocol 1, otherwise requested after an alert."""
        servo = self.servos[index]
        if servo.model.protocol == 1.0:
            return error_words(servo.model, answer.error & sum(servo.model.error_bits.values()))
        if not answer.error & ALERT:
            return ""
        state = self.state_of(index) if not self.errors[index] else None
        return state.errors or "an alert without a known reason" if state else self.errors[index]

    def _fields_of(self, servo: ServoSpec) -> list[tuple[int, int, int, Register]]:
        """Row in a reading, first and last address, and register of each signal."""
        fields = []
        for row, name in enumerate(SIGNALS.values()):
            if servo.has(name):
                register = servo.model.registers[name]
                fields.append((row, register.address, register.address + register.size, register))
        return fields


def without_watchdog(servos: Sequence[ServoSpec]) -> str:
    """One-sentence warning about servos without a watchdog; empty if all have one."""
    named = [str(servo) for servo in servos if not servo.model.has_watchdog]
    if not named:
        return ""
    stays = "stays" if len(named) == 1 else "stay"
    return f"{', '.join(named)} {stays} energised if this program ends unexpectedly: keep a power switch within reach"
