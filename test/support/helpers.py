"""What several tests share: the recordings, runs made by hand, and what a clear error looks like."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stribeck.errors import StribeckError
from stribeck.files.actuators import load_actuator
from stribeck.model.actuator import Actuator
from stribeck.model.log import Batch, Log, Series, Setup, batch_of
from stribeck.model.trajectories import trajectory_named

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"
DATA = Path(os.environ.get("STRIBECK_DATA", SHARED / "data"))
XL330 = DATA / "xl330"
STS3250 = DATA / "sts3250"
REFERENCE = SHARED / "reference" / "actuators.json"

needs_xl330 = pytest.mark.skipif(not XL330.is_dir(), reason="the recordings of the XL330 are not here")
needs_sts3250 = pytest.mark.skipif(not STS3250.is_dir(), reason="the recordings of the STS3250 are not here")
needs_reference = pytest.mark.skipif(not REFERENCE.is_file(), reason="the published parameters are not here")

FRICTIONLESS = {
    "kt": 0.4,
    "R": 3.0,
    "armature": 0.0,
    "q_offset": 0.0,
    "friction_base": 0.0,
    "friction_viscous": 0.0,
}
"""Law M1 on a joint that nothing slows down."""

PUBLISHED = [
    (name, law)
    for name in ("erob80_50", "erob80_100", "mx64", "mx106", "xl320", "xl330")
    for law in ("m1", "m2", "m3", "m4", "m5", "m6")
]
"""Servos and laws with published parameters."""

SETUP = Setup(mass=0.5, length=0.1, arm_mass=0.05, supply_voltage=5.0, kp=200.0)


def published(name: str, law: str) -> dict[str, float]:
    """The published parameters of a servo, with what the effects and the bench need."""
    return {"q_offset": 0.0, "R": 1.0, **load_actuator(name).published[law]}


def log_of(
    time: Sequence[float] | np.ndarray,
    position: Any = 0.0,
    *,
    velocity: Any = 0.0,
    goal: Any = 0.0,
    torque_enable: Any = 1.0,
    setup: Setup = SETUP,
    name: str = "run",
    actuator: str = "xl330",
    trajectory: str = "sin_sin",
    **measured: Any,
) -> Log:
    """A log whose signals share their times; numbers stand for constant signals."""
    times = np.asarray(time, dtype=np.float64)

    def series(value: Any, held: bool) -> Series:
        return Series(times, np.broadcast_to(np.asarray(value, dtype=np.float64), times.shape), held)

    return Log(
        name=name,
        actuator=actuator,
        trajectory=trajectory,
        setup=setup,
        position=series(position, False),
        velocity=series(velocity, False),
        goal=series(goal, True),
        torque_enable=series(torque_enable, True),
        **{key: series(value, key == "pwm") for key, value in measured.items()},
    )


def full_log(name: str = "run", *, duration: float = 1.2, seed: int = 1, **changes: Any) -> Log:
    """A log with every signal, sampled irregularly with about 20 samples in a second."""
    rng = np.random.default_rng(seed)
    count = int(20 * duration) + 2
    time = np.cumsum(rng.uniform(0.04, 0.06, count)) * duration / (0.05 * count) + 0.1
    signals: dict[str, Any] = {
        "position": np.sin(time),
        "velocity": np.cos(time),
        "goal": np.sin(time + 0.05),
        "torque_enable": (time < time[-1] - 0.3).astype(np.float64),
        "supply_voltage": 5.0 + 0.1 * rng.standard_normal(count),
        "temperature": 30.0 + np.arange(count) // 5,
        "pwm": rng.integers(-885, 886, count) / 885,
    }
    return log_of(time, name=name, **{**signals, **changes})


def free_swings(amplitudes: Sequence[float], duration: float, setup: Setup = SETUP) -> Batch:
    """Runs with torque off, released at rest at some angles, on a grid of 5 ms."""
    time = 0.005 * np.arange(round(duration / 0.005) + 1)
    logs = [
        log_of(time, angle, torque_enable=0.0, setup=setup, trajectory="nothing", name=f"{angle}")
        for angle in amplitudes
    ]
    return batch_of([log.resample(0.005) for log in logs])


def driven(
    actuator: Actuator, trajectories: Sequence[str], setup: Setup | None = None, duration: float = 6.0
) -> Batch:
    """Runs of some trajectories, from rest, at a gain that neither saturates nor sleeps."""
    setup = setup or setup_for(actuator)
    logs = []
    for name in trajectories:
        trajectory = trajectory_named(name)
        time = 0.005 * np.arange(round(duration / 0.005) + 1)
        goal, enable = trajectory.goal(time), trajectory.torque_enable(time)
        logs.append(log_of(time, goal=goal, torque_enable=enable, setup=setup, trajectory=name, name=name))
    return batch_of([log.resample(0.005) for log in logs])


def setup_for(actuator: Actuator) -> Setup:
    """A load and a gain that suit a servo."""
    if actuator.control.kind == "voltage":
        small = actuator.name in ("xl320", "xl330")
        kp = 400.0 if actuator.name == "xl330" else 32.0
        load = Setup(0.5, 0.1, 0.05, actuator.supply.nominal, kp)
        return load if small else replace(load, mass=1.1, length=0.15)
    return Setup(8.0, 0.5, 1.0, actuator.supply.nominal, 80.0)


def bam_recording(**changes: Any) -> dict[str, Any]:
    """A recording in the BAM JSON format: 1.5 s of an XL330 at 100 Hz. ``None`` leaves a key out."""
    time = 0.01 * np.arange(151) + 0.0035
    entries = [
        {
            "timestamp": float(t),
            "position": float(0.4 * np.sin(4 * t)),
            "speed": float(1.6 * np.cos(4 * t)),
            "load": round(300 * np.sin(5 * t)) % 65536,
            "input_volts": 7.3,
            "temp": 28,
            "goal_position": float(0.5 * np.sin(4 * t)),
            "torque_enable": bool(t < 1.4),
        }
        for t in time
    ]
    head = {"mass": 0.49, "length": 0.1, "arm_mass": 0.02, "kp": 200, "vin": 7.4, "motor": "xl330"}
    content = {**head, "trajectory": "sin_sin", "entries": entries, **changes}
    return {key: value for key, value in content.items() if value is not None}


def with_entries(change: Callable[[int, dict[str, Any]], dict[str, Any]], **head: Any) -> dict[str, Any]:
    """The recording of :func:`bam_recording` with every entry changed."""
    content = bam_recording(**head)
    return {**content, "entries": [change(k, dict(entry)) for k, entry in enumerate(content["entries"])]}


def write_json(path: Path, content: Any) -> Path:
    """Write JSON, also what the standard does not allow (NaN)."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def assert_clear(error: BaseException, *parts: object) -> None:
    """An error of ours, in one line, that says all of ``parts``."""
    message = str(error)
    assert isinstance(error, StribeckError), f"{type(error).__name__}: {message}"
    assert message, "the message is empty"
    assert len(message.splitlines()) == 1, f"the message has several lines: {message!r}"
    for part in parts:
        assert str(part) in message, f"{part!s} is not in {message!r}"


def refusal(action: Callable[[], Any], *parts: object) -> str:
    """The message with which ``action`` is refused, which says all of ``parts``."""
    with pytest.raises(StribeckError) as caught:
        action()
    assert_clear(caught.value, *parts)
    return str(caught.value)


def assert_same_log(found: Log, wanted: Log) -> None:
    """Two logs with equal values to the last bit, and times equal to 1 ns."""
    for name in ("name", "actuator", "trajectory", "setup"):
        assert getattr(found, name) == getattr(wanted, name)
    for name in ("position", "velocity", "goal", "torque_enable", "supply_voltage", "temperature", "pwm"):
        one, other = getattr(found, name), getattr(wanted, name)
        if other is None:
            assert one is None, name
            continue
        assert one is not None, name
        assert one.held == other.held, name
        assert one.value.tobytes() == other.value.tobytes(), name
        # Stamps are whole nanoseconds: half of one is lost to rounding, and as much again to the
        # float that holds seconds.
        np.testing.assert_allclose(one.time, other.time, rtol=0.0, atol=1e-9)
