"""Implements ``stribeck data describe`` for a servo on a pendulum bench, and the writing of files with comments."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from stribeck.cli.data.describe.options import DescribeOptions
from stribeck.cli.inputs import check_outputs, warn
from stribeck.errors import RecordingError
from stribeck.files.actuators import load_actuator
from stribeck.files.commented_yaml import TODO, Commented, commented_yaml
from stribeck.files.folders import write_keeping
from stribeck.files.schema import convert
from stribeck.recordings.bench import Benches, BenchFile, BenchValues
from stribeck.recordings.signals.run_units import oddities
from stribeck.recordings.signals.sources import SignalFile
from stribeck.recordings.sources import recorded_runs, recordings_below
from stribeck.survey.bench import survey_bench


def run_bench_setup(options: DescribeOptions) -> int:
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
    kept = write_commented(output, found.entries, options.recordings)
    for note in found.notes:
        warn(note)
    _read_back(found.entries, paths)
    print(f"{output}: {len(paths)} recording{'s' if len(paths) > 1 else ''}")
    print_kept(output, kept)
    words = shlex.join(
        [
            "stribeck",
            "data",
            "import",
            *map(str, options.recordings),
            "--bench",
            str(output),
            "--output",
            "my_bags",
        ]
    )
    print_next(found.open_keys, words)
    return 0


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


def write_commented(output: Path, entries: Sequence[Commented], sources: Sequence[Path]) -> Path | None:
    """Write a file of `data describe`; an older one with other content is kept under another name, which is returned."""
    head = f"Written by `stribeck data describe` from {', '.join(map(str, sources))}. Comments state where the values come from; docs/files.md explains all keys."
    return write_keeping(output, commented_yaml(head, entries))


def print_kept(output: Path, kept: Path | None) -> None:
    """Say where the older file is."""
    if kept is not None:
        print(f"the old {output.name} is now {kept}")


def print_next(open_keys: Sequence[str], command: str) -> None:
    """Say what to fill in, and which command is next."""
    if open_keys:
        print(f"enter the values of {', '.join(open_keys)}, then run:")
    print(command)
