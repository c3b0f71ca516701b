"""From options to recordings, servos and parameter files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from stribeck.core.actuator import Actuator
from stribeck.core.log import Log
from stribeck.errors import ConfigError, OutputError, RecordingError
from stribeck.io.actuators import load_actuator
from stribeck.io.bag import BenchDescription
from stribeck.io.parameter_file import ParameterFile, read_parameter_file
from stribeck.io.recordings import read_recordings
from stribeck.io.signals import load_signals
from stribeck.io.storage import is_bag
from stribeck.io.strict import number

BENCH_NUMBERS = ("mass", "length", "arm_mass", "supply_voltage", "kp", "ki", "kd")


def recordings_of(
    arguments: argparse.Namespace,
    note: Callable[[str], None] | None = None,
    damaged: Callable[[RecordingError], None] | None = None,
) -> list[Log]:
    """The recordings that the options name.

    :param note, damaged: see :func:`stribeck.io.recordings.read_recordings`; notes are warnings otherwise.
    """
    return read_recordings(
        arguments.logdir,
        signals=None if arguments.signals is None else load_signals(arguments.signals),
        joint=arguments.joint,
        bench=None if arguments.bench is None else bench_of(arguments.bench, arguments.joint),
        arm_mass=arguments.arm_mass,
        actuator=arguments.actuator,
        note=note or warn,
        damaged=damaged,
    )


def bench_of(text: str, joint: str | None) -> BenchDescription:
    """The description of ``--bench``.

    :raises ConfigError: for text that is not ``key=value`` pairs, or missing or unknown keys.
    """
    words = assignments(text.split(","), "--bench")
    content: dict[str, object] = {
        "run_id": "run",
        "trajectory": "unknown",
        "joint": joint or "joint",
        **words,
    }
    for key in BENCH_NUMBERS:
        if key in words:
            content[key] = as_number(words[key], f"--bench {key}")
    try:
        return BenchDescription.from_mapping(content, "--bench")
    except RecordingError as error:
        raise ConfigError(str(error)) from None


def assignments(pairs: Sequence[str], option: str) -> dict[str, str]:
    """``name=value`` texts as a mapping.

    :raises ConfigError: for anything else, or a name given twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise ConfigError(f"{option}: expected name=value, found {pair!r}")
        if name in found:
            raise ConfigError(f"{option}: {name} is given twice")
        found[name] = value
    return found


def as_number(text: str, what: str) -> float:
    """Text as a finite number.

    :raises ConfigError: for any other text.
    """
    try:
        return number(float(text), what, ConfigError)
    except ValueError:
        raise ConfigError(f"{what}: expected a number, found {text!r}") from None


def parameter_files_of(arguments: argparse.Namespace) -> list[tuple[Path, ParameterFile]]:
    """The parameter files that ``--params`` names."""
    servo = None if arguments.actuator is None else load_actuator(arguments.actuator)
    files = [(path, read_parameter_file(path, servo)) for path in arguments.params]
    for path, file in files:
        if servo is not None and file.actuator.name != servo.name:
            raise ConfigError(f"{path} is of {file.actuator.name!r}, --actuator is {servo.name!r}")
    return files


def check_actuators(logs: Sequence[Log], files: Sequence[tuple[Path, ParameterFile]]) -> None:
    """Refuse parameter files of another servo than the recordings'."""
    for path, file in files:
        others = sorted({log.actuator for log in logs} - {file.actuator.name})
        if others:
            raise ConfigError(
                f"{path} is of {file.actuator.name!r}, the recordings are of {', '.join(map(repr, others))}"
            )


def check_distinct(outputs: Sequence[Path | None], inputs: Sequence[Path | None], logdir: Path) -> None:
    """Refuse outputs that would replace each other, an input, or a part of a recording.

    :raises OutputError: for the first of them.
    """
    taken = {path.resolve(): "an input" for path in inputs if path is not None}
    for output in (path for path in outputs if path is not None):
        found = output.resolve()
        if found in taken:
            raise OutputError(f"{output} is {taken[found]} of this command; name another file")
        if is_bag(found) or is_bag(found.parent):
            raise OutputError(f"{output} is a recording, or would lie in one; name another file")
        if found.is_file() and found == logdir.resolve():
            raise OutputError(f"{output} is the recording; name another file")
        taken[found] = "another output"


def warn(message: str) -> None:
    """Say something on stderr that is worth knowing, and go on."""
    print(f"stribeck: warning: {message}", file=sys.stderr)


def warn_of_supply(logs: Sequence[Log], actuator: Actuator, note: Callable[[str], None] = warn) -> None:
    """Warn of recordings made above the servo's rated supply."""
    highest = max(log.setup.supply_voltage for log in logs)
    measured = [float(log.supply_voltage.value.mean()) for log in logs if log.supply_voltage is not None]
    highest = max([highest, *measured])
    if highest > actuator.supply.rated_max * 1.005:
        note(
            f"recorded at {highest:.3g} V, above the rated {actuator.supply.rated_max:g} V of {actuator.title}: "
            "the servo may be damaged, and its parameters may differ at rated supply"
        )


def display_name(path: Path, others: Sequence[Path]) -> str:
    """A short name of a parameter file: as many of its last folders as tell it from the others."""
    names = [other.with_suffix("").parts for other in others]
    own = path.with_suffix("").parts
    for depth in range(1, len(own) + 1):
        if sum(name[-depth:] == own[-depth:] for name in names) < 2:
            return str(Path(*own[-depth:]))
    return str(path.with_suffix(""))
