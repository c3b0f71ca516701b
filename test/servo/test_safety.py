"""What a driver lets go for, without a bus."""

import math
from typing import Any

import numpy as np
import pytest

from stribeck.servo.safety import Envelope, SafetyMonitor
from stribeck.servo.sample import JointReading

ENVELOPE = Envelope(
    names=("a", "b"),
    lower=np.array([-1.0, -1.0]),
    upper=np.array([1.0, 1.0]),
    min_voltage=np.array([3.5, 3.5]),
    max_temperature=np.array([60.0, 60.0]),
    silence=0.075,
)


def motion(**changes: Any) -> JointReading:
    """Two joints at rest, at 5 V and 30 °C; changes are of joint ``b``."""
    values = {"position": 0.0, "voltage": 5.0, "temperature": 30.0, "valid": True, **changes}
    nothing = np.full(2, math.nan)

    def pair(name: str, usual: float) -> np.ndarray:
        return np.array([usual, values[name]])

    return JointReading(
        stamp=0.0,
        times=np.zeros(2),
        valid=np.array([True, values["valid"]]),
        position=pair("position", 0.0),
        velocity=np.zeros(2),
        effort=nothing,
        current=nothing,
        load=nothing,
        pwm=nothing,
        voltage=pair("voltage", 5.0),
        temperature=pair("temperature", 30.0),
    )


def looked(
    watch: SafetyMonitor, sample: JointReading, silent: float = 0.0, error: str = "", energised: bool = True
) -> str | None:
    """What a watch says of a sample; the arguments are of joint ``b``."""
    return watch.problem(sample, np.array([0.0, silent]), ["", error], np.array([True, energised]))


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"position": 1.2}, ("'b'", "1.200 rad", "-1.000 to 1.000")),
        ({"position": -1.2}, ("'b'", "outside")),
        ({"voltage": 3.2}, ("'b'", "3.2 V", "3.50 V")),
        ({"temperature": 60.0}, ("'b'", "60 °C")),
    ],
)
def test_a_measurement_counts_when_it_is_confirmed(changes: dict[str, float], parts: tuple[str, ...]) -> None:
    """Two wrong samples in a row change nothing, the third does, and names joint, value and limit."""
    watch = SafetyMonitor(ENVELOPE, rate=200.0)
    for sample in (motion(**changes), motion(**changes), motion(), motion(**changes), motion(**changes)):
        assert looked(watch, sample) is None
    text = looked(watch, motion(**changes)) or ""
    assert all(part in text for part in parts), text


def test_slow_loops_do_not_wait_for_three_samples() -> None:
    """At 20 Hz a sample counts at once: three would take longer than letting go may take."""
    assert looked(SafetyMonitor(ENVELOPE, rate=20.0), motion(voltage=3.0)) is not None


def test_hardware_errors_are_said_with_voltage_and_temperature() -> None:
    """The servo's words come with what it measures."""
    watch = SafetyMonitor(ENVELOPE, rate=20.0)
    assert (
        looked(watch, motion(), error="overload")
        == "joint 'b': its servo reports: overload (at 5.0 V, 30 °C)"
    )


def test_silence_counts_at_once_and_says_how_long() -> None:
    """A servo that did not answer for longer than it may is a reason by itself; 50 ms are none."""
    watch = SafetyMonitor(ENVELOPE, rate=200.0)
    assert looked(watch, motion(valid=False), silent=0.05) is None
    assert "its servo has not answered for 80 ms" in (looked(watch, motion(valid=False), silent=0.08) or "")


def test_what_did_not_answer_and_what_is_limp_is_not_looked_at() -> None:
    """Old values of a silent servo count for nothing, and a joint without torque may be moved by hand."""
    watch = SafetyMonitor(ENVELOPE, rate=20.0)
    assert looked(watch, motion(valid=False, voltage=0.0, position=9.0)) is None
    assert looked(watch, motion(position=9.0), energised=False) is None
    assert looked(watch, motion(position=9.0)) is not None


def test_what_a_servo_does_not_measure_is_no_reason() -> None:
    """NaN voltage and temperature pass; a position that is not a number does not."""
    watch = SafetyMonitor(ENVELOPE, rate=20.0)
    assert looked(watch, motion(voltage=math.nan, temperature=math.nan)) is None
    assert looked(watch, motion(position=math.nan)) is not None
