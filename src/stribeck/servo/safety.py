"""Safety checks on the samples while torque is on, without I/O and clock."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.errors import ServoError
from stribeck.model.arrays import Array, Mask
from stribeck.servo.bus import ServoState, without_watchdog
from stribeck.servo.config import DriverConfig
from stribeck.servo.port import NoAnswerError
from stribeck.servo.remote import ServoSpec
from stribeck.servo.sample import JointReading

CONFIRM_TIME = 0.02
"""Time that a limit violation must persist [s] (one to three samples): with the 8-bit checksum of protocol 1,
one corrupt packet in 256 is accepted."""

LATE_REMEDY = (
    "The computer or the bus was late: end other programs, or allow more time (silence_timeout, command_timeout, watchdog and "
    "state_timeout in the file of the servos), in which a servo moves without control; emulated servos are never late with "
    "`stribeck emulate --simulated`"
)
"""What to do when torque went off because of timing alone."""

VOLTAGE_SHARE = 0.95
"""Default voltage below which torque goes off, as a fraction of the servo's lowest rated voltage."""


@dataclass(frozen=True)
class Envelope:
    """Allowed values in joint coordinates, one entry per joint.

    :param lower, upper: positions including the margin [rad].
    :param min_voltage: [V].
    :param max_temperature: [°C].
    :param silence: maximum time without an answer [s].
    """

    names: Sequence[str]
    lower: Array
    upper: Array
    min_voltage: Array
    max_temperature: Array
    silence: float


class SafetyMonitor:
    """Checks every sample, and counts consecutive occurrences of each kind of problem.

    :param rate: samples per second [Hz].
    """

    def __init__(self, envelope: Envelope, rate: float) -> None:
        self.envelope = envelope
        self.confirm = min(3, max(1, int(CONFIRM_TIME * rate)))
        self._counts: dict[tuple[int, str], int] = {}

    def forget(self) -> None:
        """Reset all counts."""
        self._counts.clear()

    def silence(self, silent_for: Array) -> str | None:
        """The joint whose servo has not answered for too long, or ``None``.

        :param silent_for: time since the last answer of each servo [s].
        """
        for name, silent in zip(self.envelope.names, silent_for, strict=True):
            if silent > self.envelope.silence:
                return f"joint {name!r}: its servo has not answered for {1e3 * silent:.0f} ms"
        return None

    def problem(
        self, motion: JointReading, silent_for: Array, errors: Sequence[str], energised: Mask
    ) -> str | None:
        """Reason why torque must go off, or ``None``.

        Silence first, see :meth:`silence`.

        :param motion: the sample; only servos that answered are checked.
        :param silent_for: time since the last answer of each servo [s].
        :param errors: description of hardware errors, empty for none.
        :param energised: joints that must stay within their limits; the others may be moved by hand.
        """
        if silence := self.silence(silent_for):
            return silence
        for index, name in enumerate(self.envelope.names):
            if not motion.valid[index]:
                continue
            problems = self._problems(index, motion, errors[index])
            if not energised[index]:
                problems["position"] = ""
            for kind, text in problems.items():
                count = self._counts.get((index, kind), 0) + 1 if text else 0
                self._counts[index, kind] = count
                if count >= self.confirm:
                    return f"joint {name!r}: {text}"
        return None

    def _problems(self, index: int, motion: JointReading, errors: str) -> dict[str, str]:
        """Description of each kind of problem in a sample; empty where there is none."""
        envelope = self.envelope
        position, voltage = float(motion.position[index]), float(motion.voltage[index])
        temperature = float(motion.temperature[index])
        lower, upper = float(envelope.lower[index]), float(envelope.upper[index])
        lowest, hottest = float(envelope.min_voltage[index]), float(envelope.max_temperature[index])
        problems = dict.fromkeys(("error", "voltage", "temperature", "position"), "")
        if errors:
            problems["error"] = f"its servo reports: {errors} (at {voltage:.1f} V, {temperature:.0f} °C)"
        if voltage < lowest:
            problems["voltage"] = f"supply voltage of {voltage:.1f} V, below {lowest:.2f} V"
        if temperature >= hottest:
            problems["temperature"] = f"temperature of {temperature:.0f} °C; the limit is {hottest:.0f} °C"
        if not lower <= position <= upper:
            problems["position"] = f"at {position:.3f} rad, outside {lower:.3f} to {upper:.3f} rad"
        return problems


def envelope_of(config: DriverConfig, temperature_limits: npt.ArrayLike) -> Envelope:
    """The envelope of a driver's configuration.

    :param temperature_limits: stored in the servos [°C], used where the configuration gives none.
    """
    lowest = [VOLTAGE_SHARE * joint.servo.model.rated_min for joint in config.joints]
    limits = np.array([joint.position_limits for joint in config.joints])

    def configured(value: float | None, default: npt.ArrayLike) -> Array:
        return np.array(default) if value is None else np.full(len(config.joints), value)

    return Envelope(
        names=config.names,
        lower=limits[:, 0] - config.position_margin,
        upper=limits[:, 1] + config.position_margin,
        min_voltage=configured(config.min_voltage, lowest),
        max_temperature=configured(config.max_temperature, temperature_limits),
        silence=config.silence_timeout,
    )


def check_before_torque(envelope: Envelope, motion: JointReading, errors: Sequence[str]) -> None:
    """Require a valid sample of every joint, within all limits, before torque is switched on.

    :param errors: what the servos report.
    :raises NoAnswerError: without one.
    :raises ServoError: outside a limit.
    """
    if not motion.valid.all():
        silent = [name for name, valid in zip(envelope.names, motion.valid, strict=True) if not valid]
        raise NoAnswerError(f"torque stays off: no answer from the servo of {', '.join(silent)}")
    monitor, count = SafetyMonitor(envelope, rate=1.0), len(envelope.names)  # without confirmation
    problem = monitor.problem(motion, np.zeros(count), errors, np.ones(count, dtype=bool))
    if problem is not None:
        advice = "; remove the cause and clear the fault first" if any(errors) else ""
        raise ServoError(f"torque stays off: {problem}{advice}")


def unexpected_state(state: ServoState, energised: bool) -> str:
    """What is wrong with the state of a servo; empty if nothing is.

    :param energised: whether its torque should be on.
    """
    if state.watchdog_expired:
        return "its servo was stopped by the watchdog, because this program was late and sent it no packets for too long"
    if state.errors:
        return f"its servo reports: {state.errors}"
    if energised and not state.torque_enable:
        return "its servo switched torque off, probably because it restarted: check its supply"
    return ""


def torque_off_consequence(unconfirmed: Sequence[ServoSpec], watchdog: float) -> str:
    """What switching torque off has led to, given the servos that did not confirm it.

    :param watchdog: time after which servos with a Bus Watchdog stop [s].
    """
    if not unconfirmed:
        return "; torque is off"
    parts = []
    watched = [f"servo {servo.identity}" for servo in unconfirmed if servo.model.has_watchdog]
    if watched:
        parts.append(f"the watchdog stops {', '.join(watched)} within {1e3 * watchdog:.0f} ms")
    if text := without_watchdog(unconfirmed):
        parts.append(text)
    return f"; torque off could not be confirmed: {'; '.join(parts)}"
