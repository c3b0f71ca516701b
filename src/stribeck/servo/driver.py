"""Joints on a servo bus, safely: what the servo node and ``stribeck record`` share.

States: ``off`` (torque off), ``on`` (goals are obeyed; a joint is energised from its first finite goal on)
and ``fault`` (torque off, and it stays off until :meth:`Driver.clear`). Torque goes off by itself when
commands stop, a servo reports an error, its supply breaks down, it gets too hot, leaves its limits or
falls silent, and when the port is lost. Then the bus falls silent, and the Bus Watchdog of the servos
that have one stops them; the others stay energised.

Nothing is printed or logged here: what happened comes as events with the next sample, each said once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError, ServoError
from stribeck.servo.bus import Bus, Reading, without_watchdog
from stribeck.servo.checks import ConnectionReport
from stribeck.servo.config import DriverConfig
from stribeck.servo.link import Counters
from stribeck.servo.port import PortLostError
from stribeck.servo.remote import ServoSpec
from stribeck.servo.safety import Envelope, SafetyMonitor
from stribeck.servo.sample import (
    DriverSample,
    DriverState,
    Event,
    JointReading,
    Kind,
    goals_to_joints,
    goals_to_servos,
    motion_of,
)

__all__ = ["Driver", "DriverSample", "DriverState", "Event"]

FloatArray = npt.NDArray[np.float64]

BUDGET = 2.0
"""Cycles in which lost packets are asked for again: a late sample is better than none, and most are early."""

LONGEST_CYCLE = 4.0
"""Cycles that one without an answer may count for."""

CATCH_UP = 4.0
"""A loop that is late by more cycles than this leaves them out instead of making up for them."""

GAP_CYCLES = 2.5
"""A sample that comes so many cycles after the one before it has a gap before it."""

CHECK_PERIOD = 0.1
"""How often a servo is asked, one after the other, whether it still is as it was left [s]."""

VOLTAGE_SHARE = 0.95
"""Share of a servo's lowest rated voltage below which torque goes off, unless configured."""


class Driver:
    """Joints behind servos on one bus. All methods may be called from any thread; one at a time runs.

    :param config: joints, port, limits.
    :raises ConfigError: for servos that cannot share a bus, or a baud rate too slow for the rate.
    """

    def __init__(self, config: DriverConfig) -> None:
        self.config = config
        self.joints = config.names
        self.bus = Bus(
            config.port, config.baud_rate, [joint.servo for joint in config.joints], rate=config.rate
        )
        self.state: DriverState = "off"
        self.reason = ""
        count = len(config.joints)
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._command: tuple[FloatArray, float] | None = None
        self._energised = np.zeros(count, dtype=bool)
        self._unconfirmed: list[ServoSpec] = []
        self._gains = np.array([joint.p_gain for joint in config.joints], dtype=np.float64)
        self._new_gains: FloatArray | None = None
        self._position = np.full(count, np.nan)
        self._answered = np.full(count, np.nan)
        self._silent_for = np.zeros(count)
        self._noted = 0.0
        self._last_cycle = self._next_check = 0.0
        self._turn = 0
        self._watch = SafetyMonitor(self._envelope(), config.rate)

    # From outside.

    def connect(self) -> ConnectionReport:
        """Open the bus and check every servo; torque is off afterwards.

        :raises ServoError: if the port or a servo is not as expected.
        """
        with self._lock:
            report = self.bus.connect()
            for index in range(len(self.joints)):
                self.bus.set_gain(index, int(self._gains[index]))
            self._forget()
            self._watch = SafetyMonitor(self._envelope(), self.config.rate)
            if report.errors:
                texts = (f"servo {identity} reports {text}" for identity, text in report.errors.items())
                self._fail("; ".join(texts))
            period = 1.0 / self.config.rate
            if report.cycle_time > period:
                report.warnings.append(
                    f"reading all servos takes {1e3 * report.cycle_time:.1f} ms, longer than a cycle at "
                    f"{self.config.rate:g} Hz: lower the rate, or the latency timer of the adapter"
                )
            return report

    def close(self) -> None:
        """Torque off, watchdogs off, port closed. Never raises for a port that is lost."""
        with self._lock:
            if not self.bus.is_open:
                return
            self.disable()
            if self.state == "fault" and self.bus.is_open:
                try:
                    if not self._let_go():
                        self.bus.set_watchdog(0.0)
                except ServoError as problem:
                    self._say("warning", str(problem))
            self.bus.close()

    def set_goals(self, goals: npt.ArrayLike, arrival: float | None = None) -> None:
        """Goals of all joints, obeyed from the next cycle on.

        :param goals: [rad], [A] or duty by each joint's mode; NaN: torque off for that joint.
        :param arrival: when the command came, steady clock [s]; default: now.
        :raises ConfigError: for another number of goals than of joints, or infinite ones.
        """
        found = np.array(goals, dtype=np.float64)
        if found.shape != (len(self.joints),) or np.isinf(found).any():
            raise ConfigError(
                f"expected {len(self.joints)} goals ({', '.join(self.joints)}), finite or NaN; found {found}"
            )
        self._command = (found, time.monotonic() if arrival is None else arrival)

    def set_gain(self, gain: float | Sequence[float]) -> None:
        """P gains from the next cycle on, one for all joints or one for each, in firmware units.

        :raises ConfigError: for a gain that a servo does not have.
        """
        gains = np.broadcast_to(np.asarray(gain, dtype=np.float64), (len(self.joints),))
        for joint, value in zip(self.config.joints, gains, strict=True):
            joint.check_gain(float(value))
        self._new_gains = np.array(gains)

    def enable(self) -> None:
        """Obey goals from now on. A joint is energised by its first finite goal, from where it is.

        :raises ServoError: while there is a fault, a servo does not answer, or a joint is not where or how
            it may be.
        """
        with self._lock:
            if self.state == "on":
                return
            if self.state == "fault":
                raise ServoError(
                    f"torque stays off: {self.reason}; remove the cause and clear the fault first"
                )
            if not self.bus.is_open:
                raise ServoError(f"{self.config.port} is not open: connect first")
            self._watch.forget()
            self._check_before_torque()
            self.bus.set_watchdog(self.config.watchdog)
            self._command = None
            self._last_cycle = time.monotonic()
            self._answered[:] = np.nan  # nobody need have read until now
            self._silent_for[:] = 0.0
            self.state = "on"

    def disable(self, reason: str = "") -> None:
        """Torque off, now. Never raises: a servo that does not confirm it is a fault."""
        with self._lock:
            self._command = None
            if self.state == "fault" or not self.bus.is_open:
                return
            try:
                if self._let_go():
                    self._fail(reason or "torque was to go off")
                    return
                self.bus.set_watchdog(0.0)
            except ServoError as problem:
                self._fail(str(problem), lost=isinstance(problem, PortLostError))
                return
            self.state = "off"
            if reason:
                self._say("info", f"torque off: {reason}")

    def clear(self) -> None:
        """Leave a fault, when its cause is gone: as if connected anew, and servos with errors are rebooted.

        :raises ServoError: if the cause is still there; then the fault stays.
        """
        with self._lock:
            if self.state != "fault":
                return
            self.bus.close()
            report = self.bus.connect()
            for index, servo in enumerate(self.bus.servos):
                if servo.identity in report.errors:
                    self.bus.reset(index)
                self.bus.set_gain(index, int(self._gains[index]))
            self._forget()
            self.state, self.reason = "off", ""
            self._say("info", "fault cleared; torque is off")

    @property
    def counters(self) -> Counters:
        """What happened on the bus so far."""
        return self.bus.counters

    @property
    def stays_energised(self) -> str:
        """Which servos stay energised when this program dies, in a sentence; empty for none."""
        return without_watchdog(self.bus.servos)

    def run(self, each: Callable[[DriverSample], bool]) -> None:
        """Cycles at the configured rate, until ``each`` says ``False``; what is late by a few cycles catches up."""
        period = 1.0 / self.config.rate
        due = time.monotonic()
        while each(self.cycle()):
            due += period
            late = time.monotonic() - due
            if late > CATCH_UP * period:
                due += late
            time.sleep(max(0.0, -late))

    def cycle(self, now: float | None = None) -> DriverSample:
        """Send goals, read all servos, let go if something is wrong. Never raises for what the bus does.

        :param now: steady clock [s]; default: now.
        """
        with self._lock:
            now = time.monotonic() if now is None else now
            sent, sent_at = np.full(len(self.joints), np.nan), now
            reading: Reading | None = None
            if self.bus.is_open:
                try:
                    self._adopt_gains()
                    if self.state == "on":
                        sent, sent_at = self._obey(now), self.bus.link.port.sent_at
                    elif self._unconfirmed:
                        self._let_go()
                    reading = self.bus.read(now + BUDGET / self.config.rate)
                except ServoError as problem:
                    self._fail(str(problem), lost=isinstance(problem, PortLostError))
            return self._sample(now, reading, sent, sent_at)

    # Inside.

    def _obey(self, now: float) -> FloatArray:
        """Carry out the last command; the goals as sent."""
        nothing = np.full(len(self.joints), np.nan)
        if self._command is None:
            return nothing
        goals, arrival = self._command
        if now - arrival > self.config.command_timeout:
            self._fail(f"commands stopped: none for {1e3 * (now - arrival):.0f} ms")
            return nothing
        for index, goal in enumerate(goals):
            if np.isnan(goal) and self._energised[index]:
                self.bus.set_torque(index, False)
                self._energised[index] = False
            elif not np.isnan(goal) and not self._energised[index]:
                self._energise(index)
        if np.isnan(goals).all():
            return nothing
        return goals_to_joints(
            self.config.joints, self.bus.write_goals(goals_to_servos(self.config.joints, goals))
        )

    def _energise(self, index: int) -> None:
        """Torque on, where the joint is now: no error, no jump. The goal is acknowledged before torque goes on."""
        joint = self.config.joints[index]
        self.bus.hold(index, joint.joint_map.servo_position(self._position[index]))
        self._energised[index] = True  # if the next answer is lost, the servo may have obeyed
        self.bus.set_torque(index, True)

    def _sample(self, now: float, reading: Reading | None, sent: FloatArray, sent_at: float) -> DriverSample:
        """A reading in joint coordinates, after the watch has looked at it."""
        motion = motion_of(self.config.joints, reading, now)
        gap = self._note(now, motion)
        if self.state == "on":
            self._look(now, motion)
        self._last_cycle = now
        events, self._events = tuple(self._events), []
        return DriverSample(
            **vars(motion),
            torque_enable=self._energised.astype(np.float64),
            p_gain=self._gains.copy(),
            gap=gap,
            goal=sent,
            goal_stamp=sent_at,
            state=self.state,
            reason=self.reason,
            events=events,
        )

    def _note(self, now: float, motion: JointReading) -> FloatArray:
        """Remember who answered and where it was; how long each was silent before this sample [s], or 0.

        A servo is silent while it is asked and does not answer. A cycle counts for no longer than it may
        take: this process may have slept, of which the servo knows nothing.
        """
        valid, end = motion.valid, time.monotonic()
        since = np.where(valid, motion.times, end) - self._answered
        took = min(end - max(now, self._noted), LONGEST_CYCLE / self.config.rate)
        self._silent_for = np.where(valid, 0.0, self._silent_for + took)
        self._noted = end
        self._position[valid] = motion.position[valid]
        self._answered[valid] = motion.times[valid]
        known = since[valid & np.isfinite(since)]
        if known.size:
            self.counters.longest_gap = max(self.counters.longest_gap, float(known.max()))
        return np.where(since > GAP_CYCLES / self.config.rate, since, 0.0)

    def _look(self, now: float, motion: JointReading) -> None:
        """Let go if a sample says so, or a servo is not as it was left."""
        problem = self._watch.problem(motion, self._silent_for, self.bus.errors, self._energised)
        # After a silence of ours any servo may have stopped; otherwise they are looked at one after the other.
        paused = now - self._last_cycle > 0.5 * self.config.watchdog
        if problem is None and (paused or now >= self._next_check):
            self._next_check = now + CHECK_PERIOD
            self._turn = (self._turn + 1) % len(self.joints)
            try:
                problem = self._changed(range(len(self.joints)) if paused else [self._turn])
            except PortLostError as lost:
                self._fail(str(lost), lost=True)
                return
        if problem is not None:
            self._fail(problem)

    def _changed(self, indices: Sequence[int]) -> str | None:
        """Whether a servo is not as it was left, in words; asked twice before it is believed."""
        for index in indices:
            texts = set()
            for _ in range(2):
                found = self.bus.state_of(index)
                text = ""
                if found is not None and found.watchdog_expired:
                    text = "its servo stopped by its watchdog: the bus was silent for too long"
                elif found is not None and found.errors:
                    text = f"its servo reports: {found.errors}"
                elif found is not None and self._energised[index] and not found.torque_enable:
                    text = "its servo lost its torque: it rebooted, look at its supply"
                texts.add(text)
                if not text:
                    break
            if "" not in texts:
                return f"joint {self.joints[index]!r}: {texts.pop()}"
        return None

    def _let_go(self) -> list[ServoSpec]:
        """Torque off; the servos that did not confirm it, which are asked again in every cycle."""
        self._unconfirmed = self.bus.torque_off()
        silent = {servo.identity for servo in self._unconfirmed}
        self._energised &= np.array([joint.servo.identity in silent for joint in self.config.joints])
        return self._unconfirmed

    def _fail(self, reason: str, lost: bool = False) -> None:
        """Torque off, and stay so until told otherwise; the reason is said once."""
        if self.state == "fault":
            if lost:
                self.bus.close()
            return
        self.state, self._command = "fault", None
        was_on = [joint.servo for joint, on in zip(self.config.joints, self._energised, strict=True) if on]
        left: list[ServoSpec] = []
        if not lost:
            try:
                left = self._let_go()
            except ServoError as problem:
                lost, reason = True, f"{reason}; {problem}"
        if lost:
            self.bus.close()
            left = was_on
        self.reason = reason + (self._fate(left) if was_on else "")
        self._say("fault", self.reason)

    def _fate(self, left: Sequence[ServoSpec]) -> str:
        """What becomes of servos that could not be told to let go."""
        if not left:
            return "; torque is off"
        watched = [f"servo {servo.identity}" for servo in left if servo.model.has_watchdog]
        parts = []
        if watched:
            parts.append(
                f"the watchdog stops {', '.join(watched)} within {1e3 * self.config.watchdog:.0f} ms"
            )
        parts += [text] if (text := without_watchdog(left)) else []
        return f"; torque off could not be confirmed: {'; '.join(parts)}"

    def _check_before_torque(self) -> None:
        """One good sample of every joint, within all limits.

        :raises ServoError: if there is none.
        """
        now = time.monotonic()
        motion = motion_of(self.config.joints, self.bus.read(now + self.config.silence_timeout), now)
        self._position[motion.valid] = motion.position[motion.valid]
        if not motion.valid.all():
            silent = [name for name, valid in zip(self.joints, motion.valid, strict=True) if not valid]
            raise ServoError(f"torque stays off: no answer from the servo of {', '.join(silent)}")
        watch = SafetyMonitor(self._watch.envelope, rate=1.0)  # at once
        everyone = np.ones(len(self.joints), dtype=bool)
        problem = watch.problem(motion, np.zeros(len(self.joints)), self.bus.errors, everyone)
        if problem is not None:
            raise ServoError(f"torque stays off: {problem}")

    def _adopt_gains(self) -> None:
        gains, self._new_gains = self._new_gains, None
        if gains is None:
            return
        for index, gain in enumerate(gains):
            if gain != self._gains[index]:
                self.bus.set_gain(index, int(gain))
                self._gains[index] = gain

    def _forget(self) -> None:
        """What was known before a connection or a fault."""
        self._answered[:] = np.nan
        self._silent_for[:] = 0.0
        self._position[:] = np.nan
        self._energised[:] = False
        self._unconfirmed = []
        self._watch.forget()

    def _envelope(self) -> Envelope:
        config = self.config
        margin = config.position_margin
        models = [joint.servo.model for joint in config.joints]
        lowest = [
            VOLTAGE_SHARE * m.rated_min if config.min_voltage is None else config.min_voltage for m in models
        ]
        hottest = (
            self.bus.temperature_limits
            if config.max_temperature is None
            else np.full(len(models), config.max_temperature)
        )
        return Envelope(
            names=self.joints,
            lower=np.array([joint.position_limits[0] - margin for joint in config.joints]),
            upper=np.array([joint.position_limits[1] + margin for joint in config.joints]),
            min_voltage=np.array(lowest),
            max_temperature=hottest.copy(),
            silence=config.silence_timeout,
        )

    def _say(self, kind: Kind, text: str) -> None:
        self._events.append(Event(kind, text, time.monotonic()))
