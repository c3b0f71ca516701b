"""``stribeck data describe``: the file of an arm, or of a servo on a bench, from recordings, with what each value was guessed from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stribeck.cli.inputs import check_outputs, warn
from stribeck.cli.options import declared, option
from stribeck.errors import ConfigError, RecordingError
from stribeck.files.actuators import load_actuator
from stribeck.files.commented_yaml import TODO, Commented, commented_yaml
from stribeck.files.folders import write_keeping
from stribeck.files.schema import convert
from stribeck.recordings.bench import Benches, BenchFile, BenchValues
from stribeck.recordings.signals.run_units import oddities
from stribeck.recordings.signals.sources import SignalFile
from stribeck.recordings.sources import recorded_runs, recordings_below
from stribeck.recordings.tables.readers import find_tables
from stribeck.survey.bench import survey_bench
from stribeck.survey.sampling import samplings

if TYPE_CHECKING:
    from stribeck.identify.arm.survey.machine import Survey


@declared
class DescribeOptions:
    """Options: the URDF of an arm or the name of a servo, recordings, and the file to write."""

    model: Path | None = option("URDF of the arm; omit it for recordings of a servo on a pendulum bench")
    recordings: tuple[Path, ...] = option(
        "bags with joint states, .csv, .txt, .mat and .npz files, or folders of them",
        metavar="RECORDING",
        positional=True,
    )
    servo: str | None = option("the servo's name or YAML file, for recordings of a servo")
    joint: str | None = option("joint of the servo, for bags in which several joints move")
    plot: Path | None = option("picture to write: histogram of the intervals between samples")
    output: Path | None = option("file to write (default: machine.yaml for an arm, bench.yaml for a servo)")


def run(options: DescribeOptions) -> int:
    """Survey, write the file, and say how the recordings were sampled."""
    check_outputs([options.plot], [path for path in options.recordings if path.is_file()])
    if options.model is None:
        _describe_bench(options)
    elif options.servo is not None or options.joint is not None:
        raise ConfigError(
            "--model describes an arm, --servo and --joint describe a servo on a bench: remove one or the other"
        )
    else:
        output = options.output or Path("machine.yaml")
        found = describe_machine(options.model, options.recordings, output)
        words = f"stribeck identify arm {' '.join(map(str, options.recordings))} --machine {output}"
        _print_next(found.open_keys, words)
    _tell_sampling(options.recordings, options.plot)
    return 0


def _tell_sampling(recordings: Sequence[Path], picture: Path | None) -> None:
    """Print rate and jitter of each recording, and draw the intervals."""
    paths = [path for given in recordings for path in recordings_below(given, tables=True)]
    found = samplings([path for path in paths if path.suffix != ".json"])
    print("sampling:", *(f"  {one.line()}" for one in found), sep="\n")
    if picture is not None:
        from stribeck.report.sampling import draw_sampling
        from stribeck.report.style import save

        save(draw_sampling(found), picture)
        print(picture)


def describe_machine(urdf: Path, data: Sequence[Path], output: Path) -> Survey:
    """Write a machine's file, and tell its place; an older file with other content is kept under another name."""
    from stribeck.identify.arm.survey.machine import RECORDINGS, survey

    check_outputs([output], [urdf, *(path for path in data if path.is_file())])
    bags = find_tables(data, RECORDINGS, ignore=(".urdf",))
    found = survey(urdf, bags)
    entries = [Commented(one.key, one.value, one.reason) for one in found.findings]
    kept = _write(output, entries, [urdf, *bags], found.notes)
    print(f"{output}: {len(found.joints)} joints: {', '.join(found.joints)}{kept}")
    return found


def _describe_bench(options: DescribeOptions) -> None:
    """Survey, write the bench file, and read the recordings with it."""
    output = options.output or Path("bench.yaml")
    check_outputs([output], [path for path in options.recordings if path.is_file()])
    paths = _recordings(options.recordings)
    actuator = None if options.servo is None else load_actuator(options.servo)
    found = survey_bench(paths, actuator, options.joint)
    if options.servo is not None and options.servo.endswith((".yaml", ".yml")):
        named = str(Path(options.servo).expanduser().resolve())
        found.entries = [
            one._replace(value=named) if one.key == ("defaults", "actuator") else one for one in found.entries
        ]
    kept = _write(output, found.entries, options.recordings, found.notes)
    _read_back(found.entries, paths)
    print(f"{output}: {len(paths)} recording{'s' if len(paths) > 1 else ''}{kept}")
    words = ["data", "import", *map(str, options.recordings), "--bench", str(output), "--output", "my_bags"]
    _print_next(found.open_keys, shlex.join(["stribeck", *words]))


def _recordings(data: Sequence[Path]) -> list[Path]:
    """The recordings to survey: bags and tables.

    :raises RecordingError: if there are none.
    """
    for path in data:
        if not path.exists():
            raise RecordingError(f"{path}: no such file or folder")
    found = [path for folder in data for path in recordings_below(folder, tables=True)]
    paths = [path for path in found if path.suffix != ".json"]
    if not paths:
        more = (
            ": recordings in the BAM JSON format need no description; use them as they are" if found else ""
        )
        expected = "expected bags, .csv, .txt, .mat or .npz"
        raise RecordingError(f"no recordings in {', '.join(map(str, data))}, {expected}{more}")
    return paths


def _read_back(entries: Sequence[Commented], paths: Sequence[Path]) -> None:
    """Read the recordings with the signals that were found, and warn of what contradicts them."""
    signals = {one.key[1]: one.value for one in entries if one.key[0] == "signals"}
    if TODO in [*signals.values(), *(one.get("counts_per_turn") for one in signals.values() if one != TODO)]:
        return
    table = convert(signals, SignalFile, "signals").table()
    joint = next((one.value for one in entries if one.key == ("defaults", "joint")), None)
    any_load = BenchValues(
        mass=1.0, length=1.0, arm_mass=0.0, supply_voltage=10.0, kp=1.0, actuator="any", joint=joint
    )
    for path in paths:
        try:
            for _, logs in recorded_runs(
                path, signals=table, bench=Benches(BenchFile(defaults=any_load), "survey")
            ):
                for text in (line for log in logs for line in oddities(log)):
                    warn(text)
        except RecordingError as error:
            warn(f"{error}")


def _write(output: Path, entries: Sequence[Commented], sources: Sequence[Path], notes: Sequence[str]) -> str:
    """Write a file with comments, and warn of the notes; returns a line on where an older, different file is."""
    head = f"Written by `stribeck data describe` from {', '.join(map(str, sources))}. Comments state where the values come from; docs/files.md explains all keys."
    kept = write_keeping(output, commented_yaml(head, entries))
    for note in notes:
        warn(note)
    return "" if kept is None else f"\nthe old {output.name} is now {kept}"


def _print_next(open_keys: Sequence[str], command: str) -> None:
    """Say what to fill in, and which command is next."""
    if open_keys:
        print(f"enter the values of {', '.join(open_keys)}, then run:")
    print(command)
