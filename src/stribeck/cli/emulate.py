"""``stribeck emulate``: servos that are not there, behind a pseudo-terminal."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import TypeVar

import numpy as np

from stribeck.cli.inputs import as_number, assignments, warn
from stribeck.core.bench import Pendulum
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.emulator import EmulatedBus
from stribeck.emulator.faults import parse_fault
from stribeck.emulator.joint import BARE, published_parameters
from stribeck.errors import ConfigError
from stribeck.io.actuators import actuator_names, load_actuator
from stribeck.io.parameter_file import ParameterFile, read_parameter_file
from stribeck.servo.tables import model_named

T = TypeVar("T")

LOAD = ("mass", "length", "arm_mass")
"""What ``--bench`` says of a load, in SI."""


def run(arguments: argparse.Namespace) -> int:
    """Emulate until SIGINT or SIGTERM."""
    servos = servos_of(arguments)
    faults = [parse_fault(text) for text in arguments.fault]
    bus = EmulatedBus(servos, faults, arguments.link, seed=arguments.seed)
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    # The handlers stand before the port does, so that whoever sees the port can end the program.
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with bus:
            for servo in servos:
                print(
                    f"{servo.model.title}, ID {servo.id}, protocol {servo.model.protocol:g}: {bus.path}",
                    flush=True,
                )
            while not ended.wait(0.2) and bus.alive:
                continue
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def servos_of(arguments: argparse.Namespace) -> list[EmulatedServo]:
    """The servos that the options describe."""
    ids = arguments.id
    models = [model_named(name) for name in _for_each(arguments.servo, ids, "--servo")]
    files = _for_each(arguments.params or [None], ids, "--params")
    loads = _for_each([load_of(text) for text in arguments.bench] or [BARE], ids, "--bench")
    own = None if arguments.actuator is None else load_actuator(arguments.actuator)
    registers = registers_of(arguments.register)
    servos = []
    for k, (servo_id, model, path, load) in enumerate(zip(ids, models, files, loads, strict=True)):
        parameters = published_parameters(model.name) if path is None else read_parameter_file(path, own)
        if model.name in actuator_names() and parameters.actuator.name != model.name:
            warn(f"{path} is of {parameters.actuator.name!r}, emulated as {model.title}")
        if arguments.position_offset is not None:
            parameters = _mounted(parameters, arguments.position_offset)
        voltage = model.nominal_voltage if arguments.voltage is None else arguments.voltage
        if voltage > model.rated_max:
            warn(f"{model.title} is rated for {model.rated_max:g} V at most, found {voltage:g} V")
        servos.append(
            EmulatedServo(
                model,
                parameters,
                load,
                servo_id=servo_id,
                voltage=voltage,
                supply_resistance=arguments.supply_resistance,
                temperature=arguments.temperature,
                noise=arguments.noise,
                baud=arguments.baud,
                registers=registers,
                dt=arguments.dt,
                rng=np.random.default_rng((arguments.seed, k)),
            )
        )
    return servos


def load_of(text: str) -> Pendulum:
    """A load from ``mass=KG,length=M[,arm_mass=KG]``.

    :raises ConfigError: for anything else.
    """
    words = assignments(text.split(","), "--bench")
    unknown = [name for name in words if name not in LOAD]
    if unknown or "mass" not in words or "length" not in words:
        raise ConfigError(f"--bench: expected mass=KG,length=M[,arm_mass=KG], found {text!r}")
    found = {name: as_number(value, f"--bench {name}") for name, value in words.items()}
    for name, value in found.items():
        if value < 0.0:
            raise ConfigError(f"--bench: {name} must not be negative, found {value:g}")
    return Pendulum(found["mass"], found["length"], found.get("arm_mass", 0.0))


def registers_of(pairs: Sequence[str]) -> dict[str, int]:
    """Counts of registers from ``NAME=COUNTS``.

    :raises ConfigError: for anything else.
    """
    found = {}
    for name, text in assignments(pairs, "--register").items():
        try:
            found[name] = int(text)
        except ValueError:
            raise ConfigError(
                f"--register {name}: expected a whole number of counts, found {text!r}"
            ) from None
    return found


def _for_each(values: Sequence[T], ids: Sequence[int], option: str) -> list[T]:
    """One value for each servo; a single one is for all."""
    if len(values) == 1:
        return [values[0]] * len(ids)
    if len(values) != len(ids):
        raise ConfigError(
            f"{option}: give one for all or one for each of {len(ids)} servos, found {len(values)}"
        )
    return list(values)


def _mounted(parameters: ParameterFile, offset: float) -> ParameterFile:
    return replace(parameters, values={**parameters.values, "q_offset": offset})
