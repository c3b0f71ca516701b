"""Safe operation of joints on a servo bus, for the servo node and ``stribeck record``.

States: ``off`` (torque off), ``on`` (goals are executed; the first finite goal energises a joint) and
``fault`` (torque off until :meth:`Driver.clear`). The driver switches torque off when commands stop; when a
servo reports an error, has too low a supply voltage, overheats, leaves its limits or stops answering; and
when the port is lost. In the last case the Bus Watchdog stops the servos that have one; the others stay
energised. Faults of timing (:attr:`Driver.disturbed`), which say nothing about servos and joints, may be cleared by the
program that commands the driver.

The driver prints and logs nothing. It reports every event once, with the next sample.
"""

import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError, ServoError
from stribeck.model.arrays import Array
from stribeck.servo.bus import CONFIRM_TIME, FENCE_TIME, Bus, Reading, without_watchdog
from stribeck.servo.checks import ConnectionReport
from stribeck.servo.config import DriverConfig
from stribeck.servo.port import NoAnswerError, Port, PortLostError, port_named
from stribeck.servo.remote import ServoSpec
from stribeck.servo.safety import (
    SafetyMonitor,
    check_before_torque,
    envelope_of,
    torque_off_consequence,
    unexpected_state,
)
from stribeck.servo.sample import (
    DriverSample,
    DriverState,
    Event,
    JointReading,
    Kind,
    goals_to_joints,
    goals_to_servos,
    reading_of_joints,
)
from stribeck.session.timing import PeriodicLoop, SteadyClock

__all__ = ["Driver", "DriverSample", "DriverState", "Event"]

BUDGET = 2.0
"""Deadline for retries of lost packets [cycles]: a late sample is better than none, and most samples are early."""

LONGEST_CYCLE = 4.0
"""Maximum time that one cycle without an answer counts as silence [cycles]."""

CATCH_UP = 4.0
"""Maximum number of missed cycles that a loop makes up for."""

GAP_CYCLES = 2.5
"""Minimum time between two samples that counts as a gap [cycles]."""

CHECK_PERIOD = 0.1
"""Period at which servos are checked, in turn, for changes of their state [s]."""


class Driver:
    """Joints driven by servos on one bus. All methods are thread-safe.

    :param port: the port to use; default: the port of ``config`` (:func:`~stribeck.servo.port.port_named`).
    :ivar counters: events on the bus so far.
    :ivar disturbed: whether the fault is one of timing: commands stopped, a servo did not answer for too long, or its
        watchdog expired.
    :raises ConfigError: for servos that cannot share a bus, or a baud rate too low for the cycle rate.
    """

    def __init__(self, config: DriverConfig, port: Port | None = None) -> None:
        self.config = config
        self.joints = config.names
        port = port_named(config.port, config.baud_rate) if port is None else port
        servos = [joint.servo for joint in config.joints]
        self.bus = Bus(port, servos, rate=config.rate, budget=config.silence_timeout)
        self.clock, self.counters = port.clock, self.bus.counters
        self.state: DriverState = "off"
        self.reason = ""
        self.disturbed = False
        count = len(config.joints)
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._command: tuple[Array, float] | None = None
        self._gains = np.array([joint.p_gain for joint in config.joints], dtype=np.float64)
        self._new_gains: Array | None = None
        self._position = np.full(count, np.nan)
        self._answered = np.full(count, np.nan)
        self._silent_for = np.zeros(count)
        self._energised = np.zeros(count, dtype=bool)
        self._unconfirmed: list[ServoSpec] = []
        self._noted = self._last_cycle = self._next_check = 0.0
        self._turn = 0
        self._monitor = SafetyMonitor(envelope_of(self.config, self.bus.temperature_limits), config.rate)

    # Public methods.

    def connect(self) -> ConnectionReport:
        """Open the bus and check every servo; torque is off afterwards.

        :raises ServoError: if the port cannot be opened or a servo is not as expected.
        """
        with self._lock:
            report = self._reconnect()
            if report.errors:
                self._fail("; ".join(f"servo {one} reports {text}" for one, text in report.errors.items()))
            if report.cycle_time > 1.0 / self.config.rate:
                report.warnings.append(
                    f"reading all servos takes {1e3 * report.cycle_time:.1f} ms, longer than a cycle at "
                    f"{self.config.rate:g} Hz: lower the rate, or the latency timer of the adapter"
                )
            return report

    def _reconnect(self, clear_errors: bool = False) -> ConnectionReport:
        """Open the bus, apply the gains, and reset the recorded state of the servos."""
        report = self.bus.connect()
        for index, servo in enumerate(self.bus.servos):
            if clear_errors and servo.identity in report.errors:
                self.bus.reset(index)
        self.bus.set_gains({index: int(gain) for index, gain in enumerate(self._gains)}, math.inf)
        self._answered[:] = self._position[:] = np.nan
        self._silent_for[:] = 0.0
        self._energised[:] = False
        self._unconfirmed = []
        self._monitor = SafetyMonitor(envelope_of(self.config, self.bus.temperature_limits), self.config.rate)
        return report

    def close(self) -> None:
        """Switch torque and watchdogs off and close the port. Never raises for a lost port."""
        with self._lock:
            if not self.bus.is_open:
                return
            self.disable()
            if self.state == "fault" and self.bus.is_open:
                try:
                    if not self._torque_off(FENCE_TIME):
                        self.bus.set_watchdog(0.0)
                except ServoError as problem:
                    self._report("warning", str(problem))
            self.bus.close()

    def set_goals(self, goals: npt.ArrayLike, arrival: float | None = None) -> None:
        """Set the goals of all joints, effective from the next cycle.

        :param goals: [rad], [A] or duty, depending on each joint's mode; NaN switches a joint's torque off.
        :param arrival: time at which the command arrived, steady clock [s]; default: now.
        :raises ConfigError: for a wrong number of goals, or infinite ones.
        """
        values = np.array(goals, dtype=np.float64)
        if values.shape != (len(self.joints),) or np.isinf(values).any():
            raise ConfigError(
                f"expected {len(self.joints)} goals ({', '.join(self.joints)}), finite or NaN; found {values}"
            )
        self._command = (values, self.clock.now() if arrival is None else arrival)

    def set_gain(self, gain: float | Sequence[float]) -> None:
        """Set one P gain for all joints or one for each, effective from the next cycle, in firmware units.

        :raises ConfigError: for a gain that a servo does not support.
        """
        gains = np.broadcast_to(np.asarray(gain, dtype=np.float64), (len(self.joints),))
        for joint, value in zip(self.config.joints, gains, strict=True):
            joint.check_gain(float(value))
        self._new_gains = np.array(gains)

    def enable(self) -> None:
        """Execute goals from now on. The first finite goal energises a joint, at its present position.

        :raises ServoError: during a fault, if a servo does not answer, or if a joint violates its limits.
        """
        with self._lock:
            if self.state == "on":
                return
            if self.state == "fault":
                raise ServoError(f"torque stays off: {self.reason}; remove the cause and clear the fault")
            if not self.bus.is_open:
                raise ServoError(f"{self.config.port} is not open: connect first")
            self._monitor.forget()
            self._check_before_torque()
            self.bus.set_watchdog(self.config.watchdog)
            self._command = None
            self._last_cycle = self.clock.now()
            self._answered[:] = np.nan  # servos need not be read while torque is off
            self._silent_for[:] = 0.0
            self.state = "on"

    def disable(self, reason: str = "") -> None:
        """Switch torque off now. Never raises; a servo that does not confirm causes a fault."""
        with self._lock:
            self._command = None
            if self.state == "fault" or not self.bus.is_open:
                return
            try:
                if self._torque_off(FENCE_TIME):
                    self._fail(reason or "torque was switched off")
                    return
                self.bus.set_watchdog(0.0)
            except ServoError as problem:
                self._fail(str(problem), lost=isinstance(problem, PortLostError))
                return
            self.state = "off"
            if reason:
                self._report("info", f"torque off: {reason}")

    def stop(self, reason: str) -> None:
        """Emergency stop: switch torque off now, as a fault that keeps it off until :meth:`clear`. Never raises."""
        with self._lock:
            self.disturbed = False
            self._fail(reason)

    def clear(self) -> None:
        """Leave the fault state: reconnect, and reboot servos with errors, also those of servos that were off.

        :raises ServoError: if the cause persists; the driver then stays in the fault state.
        """
        with self._lock:
            if self.state == "on" or (self.state == "off" and not any(self.bus.errors)):
                return
            if self.state == "off":
                self.state, self.reason = (
                    "fault",
                    f"a servo reports {', '.join(filter(None, self.bus.errors))}",
                )
            self.bus.close()
            self._reconnect(clear_errors=True)
            self.state, self.reason, self.disturbed = "off", "", False
            self._report("info", "fault cleared; torque is off")

    def recover(self) -> None:
        """Clear a fault of timing (:attr:`disturbed`) and execute goals again; no other fault, and no error of a servo.

        :raises ServoError: for another fault, if a servo reports an error, or if torque cannot be enabled.
        :raises NoAnswerError: if a servo does not answer yet.
        """
        with self._lock:
            if self.state == "fault":
                if not self.disturbed:
                    raise ServoError(f"torque stays off: {self.reason}; remove the cause and clear the fault")
                self.bus.close()
                if errors := self._reconnect().errors:
                    self.disturbed = False
                    raise ServoError("; ".join(f"servo {one} reports {text}" for one, text in errors.items()))
                self.state, self.reason, self.disturbed = "off", "", False
            try:
                self.enable()
            except ServoError as problem:
                self._fail(str(problem), disturbed=isinstance(problem, NoAnswerError))
                raise

    @property
    def stays_energised(self) -> str:
        """One sentence naming the servos that stay energised if this program dies; empty for none."""
        return without_watchdog(self.bus.servos)

    def run(self, each: Callable[[DriverSample], bool], clock: SteadyClock | None = None) -> None:
        """Run cycles at the configured rate until ``each`` returns ``False``; ``clock``: default the port's."""
        loop = PeriodicLoop(1.0 / self.config.rate, clock or self.clock, CATCH_UP)
        while each(self.cycle()):
            loop.wait()

    def cycle(self, now: float | None = None) -> DriverSample:
        """Send goals, read all servos, and switch torque off if a check fails. Never raises for bus errors.

        :param now: steady clock [s]; default: now.
        """
        with self._lock:
            now = self.clock.now() if now is None else now
            sent, sent_at = np.full(len(self.joints), np.nan), now
            reading: Reading | None = None
            if self.bus.is_open:
                try:
                    self._apply_gains(now)
                    if self.state == "on":
                        sent, sent_at = self._send_goals(now), self.bus.port.sent_at
                    elif self._unconfirmed:
                        self._ask_again()
                    reading = self.bus.read(now + BUDGET / self.config.rate)
                except ServoError as error:
                    self._fail_on(error)
            motion = reading_of_joints(self.config.joints, reading, now)
            gap = self._note(now, motion)
            if self.state == "on":
                self._monitor_sample(now, motion)
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
                disturbed=self.disturbed,
                events=events,
            )

    # One cycle.

    def _apply_gains(self, now: float) -> None:
        gains, self._new_gains = self._new_gains, None
        if gains is not None and (changed := np.flatnonzero(gains != self._gains).tolist()):
            values = {index: int(gains[index]) for index in changed}
            self.bus.set_gains(values, now + self.config.silence_timeout)
            self._gains = gains

    def _send_goals(self, now: float) -> Array:
        nothing = np.full(len(self.joints), np.nan)
        if self._command is None:
            return nothing
        goals, arrival = self._command
        if now - arrival > self.config.command_timeout:
            self._fail(f"no command for {1e3 * (now - arrival):.0f} ms", disturbed=True)
            return nothing
        until, wanted = now + self.config.silence_timeout, ~np.isnan(goals)
        if off := np.flatnonzero(self._energised & ~wanted).tolist():
            self.bus.set_torque(off, False, until)
            self._energised[off] = False
        if on := np.flatnonzero(wanted & ~self._energised).tolist():
            self._energise(on, until)
        if np.isnan(goals).all():
            return nothing
        joints = self.config.joints
        return goals_to_joints(joints, self.bus.write_goals(goals_to_servos(joints, goals)))

    def _energise(self, indices: list[int], until: float) -> None:
        """Switch torque on at the present positions; to avoid a jump, the goals are confirmed first."""
        maps = {index: self.config.joints[index].joint_map for index in indices}
        self.bus.hold({i: one.servo_position(self._position[i]) for i, one in maps.items()}, until)
        self._energised[indices] = True  # even if the confirmation is lost
        self.bus.set_torque(indices, True, until)

    def _note(self, now: float, motion: JointReading) -> Array:
        """Store answers and positions; return how long each servo was silent before this sample [s], or 0.

        A servo is silent while it is polled and does not answer. Each cycle counts for at most its allowed
        duration, because this process may have been suspended.
        """
        valid, end = motion.valid, self.clock.now()
        since = np.where(valid, motion.times, end) - self._answered
        took = min(end - max(now, self._noted), LONGEST_CYCLE / self.config.rate)
        self._silent_for = np.where(valid, 0.0, self._silent_for + took)
        self._noted = end
        self._position[valid] = motion.position[valid]
        self._answered[valid] = motion.times[valid]
        gaps = since[valid & np.isfinite(since)]
        if gaps.size:
            self.counters.longest_gap = max(self.counters.longest_gap, float(gaps.max()))
        return np.where(since > GAP_CYCLES / self.config.rate, since, 0.0)

    def _monitor_sample(self, now: float, motion: JointReading) -> None:
        """Switch torque off if the sample violates a limit or a servo changed its state by itself."""
        if silence := self._monitor.silence(self._silent_for):
            self._fail(silence, disturbed=True)
            return
        problem = self._monitor.problem(motion, self._silent_for, self.bus.errors, self._energised)
        # After a pause of this process any servo may have stopped; otherwise they are checked in turn.
        paused, expired = now - self._last_cycle > 0.5 * self.config.watchdog, False
        if problem is None and (paused or now >= self._next_check):
            self._next_check = now + CHECK_PERIOD
            self._turn = (self._turn + 1) % len(self.joints)
            try:
                problem, expired = self._changed(range(len(self.joints)) if paused else [self._turn])
            except ServoError as error:
                self._fail_on(error)
                return
        if problem is not None:
            self._fail(problem, disturbed=expired)

    def _changed(self, indices: Sequence[int]) -> tuple[str | None, bool]:
        """Describe an unexpected servo state, or ``None``; whether its watchdog expired. Asks twice: answers may be corrupt."""
        for index in indices:
            texts = set()
            for _ in range(2):
                state = self.bus.state_of(index)
                text = "" if state is None else unexpected_state(state, bool(self._energised[index]))
                texts.add(text)
                if not text:
                    break
            if "" not in texts:
                expired = state is not None and state.watchdog_expired
                return f"joint {self.joints[index]!r}: {texts.pop()}", expired
        return None, False

    # Faults.

    def _torque_off(self, timeout: float = CONFIRM_TIME) -> list[ServoSpec]:
        """Switch torque off; return the servos that did not confirm, which are asked again in every cycle."""
        self._unconfirmed = self.bus.torque_off(timeout)
        silent = {servo.identity for servo in self._unconfirmed}
        self._energised &= np.array([joint.servo.identity in silent for joint in self.config.joints])
        return self._unconfirmed

    def _ask_again(self) -> None:
        """Switch torque off again on servos that have not confirmed it; the reason of a fault says what is known since."""
        before = torque_off_consequence(self._unconfirmed, self.config.watchdog)
        after = torque_off_consequence(self._torque_off(), self.config.watchdog)
        self.reason = self.reason.replace(before, after)
        if not self._unconfirmed:
            self._report("info", "torque is off: every servo has confirmed it")

    def _fail_on(self, error: ServoError) -> None:
        """Enter the fault state because of an error on the bus."""
        self._fail(str(error), isinstance(error, PortLostError), disturbed=isinstance(error, NoAnswerError))

    def _fail(self, reason: str, lost: bool = False, *, disturbed: bool = False) -> None:
        """Enter the fault state (torque off until :meth:`clear`) and report the reason once."""
        if self.state == "fault":
            if lost:
                self.bus.close()
            return
        self._command, self.disturbed = None, disturbed
        self.reason, self.state = reason, "fault"  # read by diagnostics while torque off is being confirmed
        was_on = [joint.servo for joint, on in zip(self.config.joints, self._energised, strict=True) if on]
        unconfirmed: list[ServoSpec] = []
        if not lost:
            try:
                unconfirmed = self._torque_off()
            except ServoError as problem:
                lost, reason = True, f"{reason}; {problem}"
        if lost:
            self.bus.close()
            unconfirmed, self.disturbed = was_on, False
        self.reason = reason + (torque_off_consequence(unconfirmed, self.config.watchdog) if was_on else "")
        self._report("fault", self.reason)

    def _check_before_torque(self) -> None:
        """Require one valid sample of every joint, within all limits."""
        now = self.clock.now()
        reading = self.bus.read(now + self.config.silence_timeout)
        motion = reading_of_joints(self.config.joints, reading, now)
        self._position[motion.valid] = motion.position[motion.valid]
        check_before_torque(self._monitor.envelope, motion, self.bus.errors)

    def _report(self, kind: Kind, text: str) -> None:
        self._events.append(Event(kind, text, self.clock.now()))
