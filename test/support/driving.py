"""What tests of bus and driver share: emulated servos, configurations for them, and loops of cycles."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.joint import published_parameters
from stribeck.emulator.served_line import ServedLine
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.files.schema import convert
from stribeck.servo.bus import Bus
from stribeck.servo.config import BusFile, DriverConfig, driver_of
from stribeck.servo.driver import Driver, DriverSample, Event
from stribeck.servo.port import Port
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named

BAUD = 1_000_000


def emulated(*models: str, **options: Any) -> list[EmulatedServo]:
    """Emulated servos with the IDs 1, 2, …, without noise."""
    return [emulated_one(model, index + 1, **options) for index, model in enumerate(models)]


def emulated_one(model: str, servo_id: int, **options: Any) -> EmulatedServo:
    """An emulated servo; one of which nothing was published has the motor of an MX-64."""
    published = model if model in actuator_names() and load_actuator(model).published else "mx64"
    parameters = published_parameters(published)
    return EmulatedServo(model, parameters, servo_id=servo_id, **{"noise": 0.0, **options})


@contextmanager
def emulator_process(link: Path, *arguments: str) -> Iterator[str]:
    """``stribeck emulate`` as a user runs it, in a process of its own; the path of its port."""
    command = [sys.executable, "-m", "stribeck", "emulate", "--link", str(link), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), "the emulator did not start"
        yield str(link)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=100)


@contextmanager
def served_here(servos: Sequence[EmulatedServo]) -> Iterator[ServedLine]:
    """Emulated servos served by a thread of this process, for tests that look inside."""
    ended = threading.Event()
    with ServedLine(servos) as line:

        def serve() -> None:
            while not ended.is_set():
                line.turn()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield line
        finally:
            ended.set()
            thread.join()


def expected(*models: str, mode: str = "position") -> list[ServoSpec]:
    """What a bus expects that holds servos of :func:`emulated`."""
    return [ServoSpec(index + 1, model_named(model), mode) for index, model in enumerate(models)]


def bus_for(path: str, *models: str, mode: str = "position", baud: int = BAUD) -> Bus:
    """A bus for servos of :func:`emulated`, not yet connected."""
    return Bus(Port(path, baud), expected(*models, mode=mode))


def config_for(
    path: str, *models: str, rate: float = 200.0, joint: Any = None, **options: Any
) -> DriverConfig:
    """A driver's configuration: joints ``j1``, ``j2``, … within ±2 rad.

    :param joint: what the joints' entries say beside.
    """
    joints = {
        f"j{index + 1}": {"id": index + 1, "model": model, "position_limits": [-2.0, 2.0], **(joint or {})}
        for index, model in enumerate(models)
    }
    keys = {"port": path, "baud_rate": BAUD, "rate": rate, "joints": joints, **options}
    return driver_of(convert(keys, BusFile, "test"), "test")


def drive(
    driver: Driver,
    duration: float,
    goal: Callable[[float], float | Sequence[float]] | None = None,
    until: Callable[[DriverSample], bool] | None = None,
) -> list[DriverSample]:
    """Cycles at the driver's rate for a time [s], or until a sample is as wanted.

    :param goal: goal of all joints (or one for each) at a time since the start; none: nothing is commanded.
    """
    samples: list[DriverSample] = []
    start = driver.clock.now()

    def each(sample: DriverSample) -> bool:
        samples.append(sample)
        now = driver.clock.now()
        if goal is not None:
            driver.set_goals(np.broadcast_to(goal(now - start), (len(driver.joints),)), now)
        return now - start < duration and not (until is not None and until(sample))

    driver.run(each)
    return samples


def events(samples: Sequence[DriverSample], kind: str = "fault") -> list[Event]:
    """All events of a kind."""
    return [event for sample in samples for event in sample.events if event.kind == kind]


def valid_samples(samples: Sequence[DriverSample]) -> int:
    """Samples in which every joint answered."""
    return sum(bool(sample.valid.all()) for sample in samples)


def wait_for(condition: Callable[[], bool], what: str, timeout: float = 60.0) -> None:
    """Wait until something is so.

    :raises AssertionError: if it is not so in time.
    """
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {timeout} s"
        time.sleep(0.002)
