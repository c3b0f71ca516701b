"""Shared input and output of the commands: recordings, parameter files, ``name=value`` pairs, warnings, JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stribeck.api.recordings import Described, Reading
from stribeck.api.servo_notes import check_actuators, supply_notes
from stribeck.cli.options import ParameterFileOptions, RecordingOptions
from stribeck.errors import ConfigError, OutputError, RecordingError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.files.folders import check_writable, save_json
from stribeck.files.schema import convert
from stribeck.model.actuator import Actuator
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.bench import SETUP_KEYS
from stribeck.recordings.sources import check_names

if TYPE_CHECKING:
    from stribeck.evaluate.assessment import Simulator
    from stribeck.model.step import Integrator


def recordings_of(
    options: RecordingOptions,
    actuator: str | None,
    note: Callable[[str], None] | None = None,
    damaged: Callable[[RecordingError], None] | None = None,
) -> list[Log]:
    """The recordings selected by the options.

    :param actuator: the servo's name or YAML file, if given.
    :param note, damaged: see :func:`stribeck.recordings.sources.read_recordings`; by default notes are warnings.
    """
    bench = None if options.bench is None else described(options.bench)
    reading = Reading(joint=options.joint, signals=options.signals, bench=bench, arm_mass=options.arm_mass)
    logs = [log for path in options.recordings for log in reading.logs(path, actuator, note or warn, damaged)]
    check_names(logs, ", ".join(map(str, options.recordings)))
    return logs


def described(text: str) -> Described:
    """What ``--bench`` says: a bench file, or ``key=value`` pairs for all recordings.

    :raises ConfigError: for other text.
    """
    if "=" not in text:
        return Path(text)
    words: dict[str, float | str] = dict(assignments(text.split(","), "--bench"))
    return words | {key: as_number(str(words[key]), f"--bench {key}") for key in SETUP_KEYS if key in words}


def assignments(pairs: Sequence[str], option: str) -> dict[str, str]:
    """Parse ``name=value`` texts to a mapping.

    :raises ConfigError: for other text, or a name given twice.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise ConfigError(f"{option}: expected name=value, found {pair!r}")
        if name in values:
            raise ConfigError(f"{option}: {name} is given twice")
        values[name] = value
    return values


def words_of(given: Sequence[str]) -> tuple[str, ...]:
    """Words that are separated by commas or blanks."""
    return tuple(word for text in given for word in text.split(",") if word)


def as_number(text: str, what: str) -> float:
    """Parse a finite number.

    :raises ConfigError: for any other text.
    """
    try:
        return convert(float(text), float, what)
    except ValueError:
        raise ConfigError(f"{what}: expected a number, found {text!r}") from None


def parameter_files_of(options: ParameterFileOptions) -> list[tuple[Path, Drive]]:
    """The parameter files that ``--params`` names."""
    servo = None if options.servo is None else load_actuator(options.servo)
    files = [
        (path, read_drive(path, servo, getattr(options, "file_joint", None) or "")) for path in options.params
    ]
    for path, file in files:
        if servo is not None:
            check_servo(path, file, servo)
        warn_of_friction(path, file)
    return files


def engine_of(integrator: str | None) -> tuple[Integrator | None, Simulator | None]:
    """The integrator of the grid, and the simulator if it is not ours but MuJoCo."""
    if integrator != "mujoco":
        return cast("Integrator | None", integrator), None
    from stribeck.mujoco.bench import simulate_in_mujoco

    return "exponential", simulate_in_mujoco


def check_servo(path: Path, file: Drive, servo: Actuator) -> None:
    """Refuse a file of another servo than ``--servo`` names."""
    if file.actuator.name != servo.name:
        raise ConfigError(
            f"{path} belongs to the servo {file.actuator.name!r}, but --servo is {servo.name!r}"
        )


def warn_of_friction(path: Path | str, file: Drive) -> None:
    """Warn of constant friction above the servo's stall torque: it could never turn."""
    stall, friction = file.actuator.datasheet_torque, file.values.get("friction_base", 0.0)
    if stall and friction > stall:
        warn(
            f"{path}: friction_base {friction:g} N m exceeds the stall torque of {stall:g} N m of {file.actuator.title}: "
            "is it in mN m?"
        )


def check_recorded(logs: Sequence[Log], files: Sequence[tuple[Path, Drive]], supply: bool = True) -> None:
    """Refuse parameter files of a servo other than the recorded one; warn of what contradicts the set-up of the runs.

    :param supply: whether to warn of the supply voltage as well.
    """
    drives = [(str(path), file) for path, file in files]
    for text in check_actuators(logs, drives):
        warn(text)
    for text in supply_notes(logs, files[0][1].actuator) if supply else ():
        warn(text)


def check_outputs(
    outputs: Sequence[Path | None], inputs: Sequence[Path | None], recordings: Sequence[Path] = ()
) -> None:
    """Refuse outputs that cannot be written, or would overwrite each other, an input, or part of a recording.

    :raises OutputError: for the first of them.
    """
    check_distinct(outputs, inputs, recordings)
    for output in outputs:
        if output is not None:
            check_writable(output)


def warn_of_seen(data: Sequence[Path], validate: Sequence[Path]) -> None:
    """Warn of recordings for validation that are also fitted: named twice, or within a folder of the others."""
    fitted, unseen = ([path.resolve() for path in paths] for paths in (data, validate))
    for path, whole in zip(validate, unseen, strict=True):
        if any(whole == one or whole in one.parents or one in whole.parents for one in fitted):
            warn(f"{path} is both fitted and in --validate, so its error says nothing about new runs")


def write_json(path: Path | None, content: Mapping[str, Any], *, allow_nan: bool = True) -> None:
    """Write the summary for scripts, if requested, with the version of its keys unless it states one."""
    if path is not None:
        save_json(path, {"schema": 1, **content}, allow_nan=allow_nan)


def check_distinct(
    outputs: Sequence[Path | None], inputs: Sequence[Path | None], recordings: Sequence[Path] = ()
) -> None:
    """Refuse outputs that would overwrite each other, an input, or part of a recording.

    :raises OutputError: for the first of them.
    """
    taken = {path.resolve(): "an input" for path in inputs if path is not None}
    for output in (path for path in outputs if path is not None):
        resolved = output.resolve()
        if resolved in taken:
            raise OutputError(f"{output} is also {taken[resolved]} of this command: name another file")
        if is_bag(resolved) or is_bag(resolved.parent):
            raise OutputError(f"{output} is a recording, or a file inside one: name another file")
        if resolved.is_file() and any(resolved == path.resolve() for path in recordings):
            raise OutputError(f"{output} is one of the recordings: name another file")
        taken[resolved] = "another output"


def warn(message: str) -> None:
    """Print a warning on stderr."""
    print(f"stribeck: warning: {message}", file=sys.stderr)


def display_name(path: Path, others: Sequence[Path]) -> str:
    """A short name of a parameter file: its name, with enough folders to distinguish it from the others."""
    if any(other != path and other.with_suffix("") == path.with_suffix("") for other in others):
        return path.name  # they differ by their ending alone
    names = [other.with_suffix("").parts for other in others]
    parts = path.with_suffix("").parts
    for depth in range(1, len(parts) + 1):
        if sum(name[-depth:] == parts[-depth:] for name in names) < 2:
            return str(Path(*parts[-depth:]))
    return str(path.with_suffix(""))


def result_path(output: Path | None, name: str) -> Path | None:
    """The file for ``--output``: a .json, .txt or .yaml file, or a file of this name in a folder."""
    return output if output is None or output.suffix in (".json", ".txt", ".yaml") else output / name
