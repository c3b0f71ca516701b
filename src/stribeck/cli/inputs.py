"""Shared input and output of the verbs: recordings, parameter files, ``name=value`` pairs, warnings, JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from stribeck.cli.options import ParameterFileOptions, RecordingOptions
from stribeck.errors import ConfigError, OutputError, RecordingError
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.files.drives import read_drive
from stribeck.files.folders import check_writable, save_json
from stribeck.files.schema import convert
from stribeck.model.actuator import Actuator
from stribeck.model.control_laws import Gains, VoltageControl
from stribeck.model.electrics import duty_ratio
from stribeck.model.joint import Drive
from stribeck.model.log import Log, common_value
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.bench import SETUP_KEYS, Benches, BenchFile, BenchValues
from stribeck.recordings.signals.run_units import oddities, overload
from stribeck.recordings.signals.sources import load_signals
from stribeck.recordings.sources import read_recordings

LOW_SUPPLY = 0.5
"""Share of the rated supply voltage below which the recorded one is doubted."""

DUTY_DIFFERENCE = 0.1
"""Relative difference of reported and computed duty from which on there is a warning."""


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
    return read_recordings(
        options.logdir,
        signals=None if options.signals is None else load_signals(options.signals),
        joint=options.joint,
        bench=None if options.bench is None else benches_of(options.bench, actuator),
        arm_mass=options.arm_mass,
        actuator=actuator,
        note=note or warn,
        damaged=damaged,
    )


def benches_of(text: str, actuator: str | None = None) -> Benches:
    """The descriptions given by ``--bench``: of a bench file, or ``key=value`` pairs for all recordings.

    :param actuator: the servo's name or YAML file, unless the descriptions name one.
    :raises ConfigError: for an invalid file, other text, and missing or unknown keys.
    """
    if "=" not in text:
        return Benches.read(Path(text), actuator)
    words: dict[str, object] = dict(assignments(text.split(","), "--bench"))
    for key in SETUP_KEYS:
        if key in words:
            words[key] = as_number(str(words[key]), f"--bench {key}")
    benches = Benches(BenchFile(defaults=convert(words, BenchValues, "--bench")), "--bench", actuator)
    try:
        benches.describe(Path("recording"))
    except RecordingError as error:
        raise ConfigError(str(error).replace("--bench: recording", "--bench")) from None
    return benches


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
    servo = None if options.actuator is None else load_actuator(options.actuator)
    files = [(path, read_drive(path, servo)) for path in options.params]
    for path, file in files:
        if servo is not None:
            check_servo(path, file, servo)
        warn_of_friction(path, file)
    return files


def check_servo(path: Path, file: Drive, servo: Actuator) -> None:
    """Refuse a file of another servo than ``--actuator`` names."""
    if file.actuator.name != servo.name:
        raise ConfigError(f"{path} is of {file.actuator.name!r}, --actuator is {servo.name!r}")


def warn_of_friction(path: Path | str, file: Drive) -> None:
    """Warn of constant friction above the servo's stall torque: it could never turn."""
    stall, friction = file.actuator.datasheet_torque, file.values.get("friction_base", 0.0)
    if stall and friction > stall:
        warn(
            f"{path}: friction_base {friction:g} N m exceeds the stall torque of {stall:g} N m of {file.actuator.title}: "
            "is it in mN m?"
        )


def actuator_for(option: str | None, logs: Sequence[Log]) -> Actuator:
    """The servo that ``--actuator`` names, otherwise that of the recordings.

    :raises ConfigError: for an unknown servo.
    """
    if option is None and (recorded := common_value(logs, "actuator")) not in actuator_names():
        raise ConfigError(
            f"the recordings are of {recorded!r}, which is not among {', '.join(actuator_names())}: give the YAML file "
            "that describes it with --actuator FILE"
        )
    return load_actuator(option or common_value(logs, "actuator"))


def check_actuators(logs: Sequence[Log], files: Sequence[tuple[Path, Drive]]) -> None:
    """Refuse parameter files of a servo other than the recorded one; warn of what contradicts the set-up of the runs."""
    for path, file in files:
        others = sorted({log.actuator for log in logs} - {file.actuator.name})
        if others:
            raise ConfigError(
                f"{path} is of {file.actuator.name!r}, the recordings are of {', '.join(map(repr, others))}"
            )
    heavy = overload(logs, files[0][1].actuator)
    for text in filter(None, (heavy, *(line for log in logs for line in oddities(log)))):
        warn(text)


def check_outputs(
    outputs: Sequence[Path | None], inputs: Sequence[Path | None], logdir: Path | None = None
) -> None:
    """Refuse outputs that cannot be written, or would overwrite each other, an input, or part of a recording.

    :raises OutputError: for the first of them.
    """
    check_distinct(outputs, inputs, logdir)
    for output in outputs:
        if output is not None:
            check_writable(output)


def warn_of_seen(data: Sequence[Path], validate: Sequence[Path]) -> None:
    """Warn of recordings for validation that are also fitted: named twice, or within a folder of the others."""
    fitted, unseen = ([path.resolve() for path in paths] for paths in (data, validate))
    for path, whole in zip(validate, unseen, strict=True):
        if any(whole == one or whole in one.parents or one in whole.parents for one in fitted):
            warn(f"{path} is both in --data and in --validate: its error is not that of a run left out")


def write_json(path: Path | None, content: Mapping[str, Any], *, allow_nan: bool = True) -> None:
    """Write the summary for scripts, if requested."""
    if path is not None:
        save_json(path, content, allow_nan=allow_nan)


def check_distinct(
    outputs: Sequence[Path | None], inputs: Sequence[Path | None], logdir: Path | None
) -> None:
    """Refuse outputs that would overwrite each other, an input, or part of a recording.

    :raises OutputError: for the first of them.
    """
    taken = {path.resolve(): "an input" for path in inputs if path is not None}
    for output in (path for path in outputs if path is not None):
        resolved = output.resolve()
        if resolved in taken:
            raise OutputError(f"{output} is {taken[resolved]} of this command; name another file")
        if is_bag(resolved) or is_bag(resolved.parent):
            raise OutputError(f"{output} is a recording, or would lie in one; name another file")
        if logdir is not None and resolved.is_file() and resolved == logdir.resolve():
            raise OutputError(f"{output} is the recording; name another file")
        taken[resolved] = "another output"


def warn(message: str) -> None:
    """Print a warning on stderr."""
    print(f"stribeck: warning: {message}", file=sys.stderr)


def warn_of_supply(logs: Sequence[Log], actuator: Actuator, note: Callable[[str], None] = warn) -> None:
    """Warn of recordings made above the servo's rated supply voltage."""
    highest = max(log.setup.supply_voltage for log in logs)
    measured = [float(log.supply_voltage.value.mean()) for log in logs if log.supply_voltage is not None]
    highest = (
        max(measured) if measured and max(measured) < LOW_SUPPLY * highest else max([highest, *measured])
    )
    if highest < LOW_SUPPLY * actuator.supply.rated_min:
        note(
            f"recorded at {highest:.3g} V, far below the rated {actuator.supply.rated_min:g} V of {actuator.title}: is it in volts?"
        )
    if highest > actuator.supply.rated_max * 1.005:
        note(
            f"recorded at {highest:.3g} V, above the rated {actuator.supply.rated_max:g} V of {actuator.title}: "
            "the servo may be damaged, and its parameters may differ at rated supply"
        )


def warn_of_control(logs: Sequence[Log], actuator: Actuator, note: Callable[[str], None] = warn) -> None:
    """Warn if the recordings contradict the control law of the servo: other gains, or another duty than it would apply."""
    for text in (line for log in logs for line in oddities(log)):
        note(text)
    lacking = {name for log in logs for name in actuator.lacks_gains(Gains(1.0, log.setup.ki, log.setup.kd))}
    if lacking:
        note(
            f"recorded with {' and '.join(sorted(lacking))}, which the control law of {actuator.name} ignores: add "
            "integral_gain or derivative_gain under control: in its YAML file"
        )
    if not isinstance(actuator.control, VoltageControl):
        return
    found = [duty_ratio(log, actuator.control) for log in logs]
    ratio = median([one for one in found if one is not None] or [1.0])
    if abs(ratio - 1.0) > DUTY_DIFFERENCE:
        gain = actuator.control.gain
        note(
            f"the servo reports {ratio:.2f} of the duty that the control law of {actuator.name} gives: its YAML file should "
            f"say gain: {ratio * gain:.4g} under control:, not {gain:.4g}"
        )


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
