"""``stribeck emulate``: emulated servos on a pseudo-terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np

from stribeck.cli.inputs import as_number, assignments, warn
from stribeck.cli.options import (
    Count,
    NotNegative,
    Positive,
    Seed,
    TimeStep,
    celsius,
    declared,
    finite,
    group,
    option,
)
from stribeck.cli.stop import signals_to
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import parse_fault
from stribeck.emulator.joint import BARE, published_parameters
from stribeck.emulator.served_line import ServedLine
from stribeck.emulator.simulated import SimulationServer
from stribeck.errors import ConfigError
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.files.drives import read_drive
from stribeck.model.bench import Pendulum
from stribeck.servo.tables import MODELS, model_named

T = TypeVar("T")

LOAD = ("mass", "length", "arm_mass")
"""Keys of ``--bench``, in SI units."""

_servo = group("type of each servo: one value for all of --id, or one for each")
_supply = group("supply and bus")


@declared
class EmulateOptions:
    """Options: emulated servos, their loads, and the bus."""

    link: Path = option("symbolic link to create, which points to the port", metavar="PATH")
    simulated: bool = option(
        "simulate time as fast as the computer allows; the link is then a socket, to be given as `port` of "
        "`stribeck record` and the servo node, and as `lockstep` of all nodes"
    )
    nodes: tuple[str, ...] = option(
        "with --simulated: nodes that must connect before simulated time starts, for example /servo /excitation",
        (),
        "NODE",
    )
    servo: tuple[str, ...] = _servo(
        f"servo model (default: xl330); valid: {', '.join(MODELS)}",
        ("xl330",),
        "MODEL",
        choices=tuple(MODELS),
    )
    id: tuple[int, ...] = _servo("IDs of the servos (default: 1)", (1,), "N")
    params: tuple[Path, ...] = _servo(
        "parameter files (default: the published M6 values, without mounting offset)", ()
    )
    actuator: str | None = _servo(
        "YAML file of the servo in --params, if the servo is not an included one", hidden=True
    )
    bench: tuple[str, ...] = _servo(
        "load; repeat the option for several servos (default: none)",
        (),
        "mass=KG,length=M[,arm_mass=KG]",
        repeated=True,
    )
    position_offset: Annotated[float, finite] | None = _servo(
        "mounting offset (default: as in the parameter file)", metavar="RAD"
    )
    noise: NotNegative = _servo("standard deviation of the encoder noise (default: 0.3)", 0.3, "COUNTS")
    temperature: Annotated[float, celsius] = _servo("temperature of the motor (default: 25)", 25.0, "°C")
    register: tuple[str, ...] = _servo(
        "initial value of a register, for example shutdown=52", (), "NAME=COUNTS", repeated=True
    )
    voltage: Positive | None = _supply("supply voltage (default: nominal, 5 for an XL330)", metavar="V")
    supply_resistance: NotNegative = _supply(
        "resistance of the supply and its wires (default: 0.1)", 0.1, "OHM"
    )
    baud: Count | None = _supply("baud rate at which the servos answer (default: any)", metavar="RATE")
    fault: tuple[str, ...] = _supply(
        "fault to inject: lost:p=0.05, silence:every=2,for=0.05, push:after=3,torque=0.05,for=0.1, …",
        (),
        "KIND:KEY=VALUE,…",
        repeated=True,
    )
    step: TimeStep = _supply("time step (default: 0.001)", 0.001, "S")
    seed: Seed = _supply("seed of noise and faults (default: 0)", 0)


def run(options: EmulateOptions) -> int:
    """Emulate until SIGINT or SIGTERM."""
    servos = servos_of(options)
    faults = [parse_fault(text) for text in options.fault]
    if options.nodes and not options.simulated:
        raise ConfigError("--nodes is for simulated time only: add --simulated")
    ended = threading.Event()
    # Install handlers before the port exists, as a program that sees the port may stop this process at once.
    with signals_to(ended.set, (signal.SIGINT, signal.SIGTERM)):
        if options.simulated:
            nodes = [f"/{name.lstrip('/')}" for name in options.nodes]
            with SimulationServer(options.link, servos, faults, nodes, options.seed, warn) as server:
                _introduce(servos, str(options.link))
                server.serve(ended.is_set)
            return 0
        with ServedLine(servos, faults, options.link, seed=options.seed) as line:
            _introduce(servos, line.path)
            while not ended.is_set():
                line.turn()
    if line.delay > 0.0:
        print(
            f"The emulated servos were suspended {line.counts['pauses']} times, for {line.delay:.3g} s in all "
            f"and {line.latest:.3g} s at most, because the operating system did not run this program"
        )
    return 0


def _introduce(servos: Sequence[EmulatedServo], path: str) -> None:
    for servo in servos:
        print(f"{servo.model.title}, ID {servo.id}, protocol {servo.model.protocol:g}: {path}", flush=True)


def servos_of(options: EmulateOptions) -> list[EmulatedServo]:
    """The servos that the options describe."""
    ids = options.id
    models = [model_named(name) for name in _for_each(options.servo, ids, "--servo")]
    files = _for_each(options.params or [None], ids, "--params")
    loads = _for_each([load_of(text) for text in options.bench] or [BARE], ids, "--bench")
    actuator = None if options.actuator is None else load_actuator(options.actuator)
    registers = registers_of(options.register)
    servos = []
    for k, (servo_id, model, path, load) in enumerate(zip(ids, models, files, loads, strict=True)):
        parameters = published_parameters(model.name) if path is None else read_drive(path, actuator)
        if model.name in actuator_names() and parameters.actuator.name != model.name:
            warn(
                f"{path} belongs to the servo {parameters.actuator.name!r}, but the emulated servo is {model.title}"
            )
        if options.position_offset is not None:
            values = {**parameters.values, "q_offset": options.position_offset}
            parameters = replace(parameters, values=values)
        voltage = model.nominal_voltage if options.voltage is None else options.voltage
        if voltage > model.rated_max:
            warn(f"{model.title} is rated for at most {model.rated_max:g} V, found {voltage:g} V")
        servos.append(
            EmulatedServo(
                model,
                parameters,
                load,
                servo_id=servo_id,
                voltage=voltage,
                supply_resistance=options.supply_resistance,
                temperature=options.temperature,
                noise=options.noise,
                baud=options.baud,
                registers=registers,
                dt=options.step,
                rng=np.random.default_rng((options.seed, k)),
            )
        )
    return servos


def load_of(text: str) -> Pendulum:
    """Parse a load from ``mass=KG,length=M[,arm_mass=KG]``.

    :raises ConfigError: for any other text.
    """
    words = assignments(text.split(","), "--bench")
    unknown = [name for name in words if name not in LOAD]
    if unknown or "mass" not in words or "length" not in words:
        raise ConfigError(f"--bench: expected mass=KG,length=M[,arm_mass=KG], found {text!r}")
    load = {name: as_number(value, f"--bench {name}") for name, value in words.items()}
    for name, value in load.items():
        if value < 0.0:
            raise ConfigError(f"--bench: {name} must not be negative, found {value:g}")
    return Pendulum(load["mass"], load["length"], load.get("arm_mass", 0.0))


def registers_of(pairs: Sequence[str]) -> dict[str, int]:
    """Parse register counts from ``NAME=COUNTS``.

    :raises ConfigError: for any other text.
    """
    registers = {}
    for name, text in assignments(pairs, "--register").items():
        try:
            registers[name] = int(text)
        except ValueError:
            raise ConfigError(
                f"--register {name}: expected a whole number of counts, found {text!r}"
            ) from None
    return registers


def _for_each(values: Sequence[T], ids: Sequence[int], option: str) -> list[T]:
    """One value per servo, from one each or a single value for all."""
    if len(values) == 1:
        return [values[0]] * len(ids)
    if len(values) != len(ids):
        raise ConfigError(
            f"{option}: give one value for all servos, or one for each of {len(ids)}; found {len(values)}"
        )
    return list(values)
