"""Bench recordings in folders: bags, files in the BAM JSON format, and tables."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stribeck import strict
from stribeck.errors import AbortedRunError, RecordingError, TooShortError
from stribeck.model.log import Log, Series
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bags.recovery import (
    BeingRecordedError,
    CutOffError,
    Note,
    is_being_recorded,
    is_recovered,
    original_digest,
    unfinished_file,
)
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.bam_json import read_bam_json
from stribeck.recordings.bench import SETUP_KEYS, BenchDescription, Benches, recording_name
from stribeck.recordings.signals.run_units import check_units
from stribeck.recordings.signals.sources import SignalTable
from stribeck.recordings.tables.readers import READERS, Table, read_table
from stribeck.recordings.tables.signals import files_of, read_table_run

LARGEST_RESULT = 1 << 20
"""JSON files larger than this are taken to be recordings [bytes]."""


def read_recordings(
    folder: Path,
    *,
    signals: SignalTable | None = None,
    joint: str | None = None,
    bench: BenchDescription | Benches | None = None,
    arm_mass: float | None = None,
    actuator: str | None = None,
    note: Note | None = None,
    damaged: Callable[[RecordingError], None] | None = None,
) -> list[Log]:
    """Read every run in ``folder`` and its subfolders: bags, recordings in the BAM JSON format, and tables.

    ``folder`` may also be one recording. Runs are in the order of their paths. Of a cut-off bag and its
    recovered copy only one is read. Bags of a folder that are still being recorded, were cut off before their
    first run, or hold only runs that were stopped at once or disturbed, are left out with a note. Runs of one name get the name of
    their recording in front.

    :param signals, joint: see :func:`stribeck.recordings.bags.bag.read_bag`; tables are read if ``signals`` has columns.
    :param bench: describes the recordings that do not describe themselves.
    :param arm_mass: rod mass for JSON recordings without one [kg].
    :param actuator: path of the YAML file of the servo of JSON recordings, if it is not installed.
    :param note: receives one line for each unfinished bag.
    :param damaged: receives the error of each unreadable recording, which is then left out; without it the
        first error is raised.
    :raises RecordingError: for an empty or missing folder, a damaged recording, values in other units than SI, or a
        recording that is there twice.
    """
    runs = recorded_runs(
        folder,
        signals=signals,
        joint=joint,
        bench=bench,
        arm_mass=arm_mass,
        actuator=actuator if actuator is not None and actuator.endswith((".yaml", ".yml")) else None,
        note=note,
        damaged=damaged,
    )
    logs = _distinct([(path, log) for path, found in runs for log in found], folder)
    check_names(logs, f"{folder}")
    return logs


def recorded_runs(
    folder: Path,
    *,
    signals: SignalTable | None = None,
    joint: str | None = None,
    bench: BenchDescription | Benches | None = None,
    arm_mass: float | None = None,
    actuator: str | None = None,
    note: Note | None = None,
    damaged: Callable[[RecordingError], None] | None = None,
) -> list[tuple[Path, list[Log]]]:
    """The recordings below ``folder`` with their runs, see :func:`read_recordings`.

    :param actuator: name or YAML file of the servo of JSON recordings, where they name another.
    """
    if not folder.exists():
        raise RecordingError(f"{folder}: no such file or folder")
    note = note or (lambda _: None)
    if signals is None and isinstance(bench, Benches):
        signals = bench.signals
    runs: list[tuple[Path, list[Log]]] = []
    left_out = ""
    columns = any(one.place == "table" for found in (signals or {}).values() for one in found)
    below = recordings_below(folder, tables=columns, files=_files(signals))
    for path in _without_doubles(below):
        try:
            if path.suffix == ".json":
                if path == folder or not _is_parameter_file(path):
                    runs.append((path, [read_bam_json(path, actuator=actuator, arm_mass=arm_mass)]))
                continue
            logs = _described(path, folder, signals, joint, bench, note)
            declared = {
                name for name, found in (signals or {}).items() if any(one.unit is not None for one in found)
            }
            for log in logs:
                check_units(log, f"{path}: run {log.name!r}", declared=declared)
            runs.append((path, logs))
        except RecordingError as error:
            left_out = f"{error}"
            unfinished = isinstance(error, (AbortedRunError, BeingRecordedError, CutOffError, TooShortError))
            if unfinished and path != folder and path.suffix != ".json":
                note(f"not used: {left_out}")
            elif damaged is not None:
                damaged(error)
            else:
                raise
    if not runs and left_out:
        raise RecordingError(f"{folder} contains no usable recordings: {left_out}")
    if not runs:
        raise RecordingError(
            f"{folder} contains no recordings; valid: bags (folders with metadata.yaml, .mcap, .db3), BAM JSON recordings (.json), and with a table of "
            "signals that names columns also .csv, .txt, .mat or .npz"
        )
    return runs


def _described(
    path: Path,
    folder: Path,
    signals: SignalTable | None,
    joint: str | None,
    bench: BenchDescription | Benches | None,
    note: Note,
) -> list[Log]:
    """The runs of a bag, or the run of a table, with the description of its bench."""
    place = path.relative_to(folder) if path != folder else Path(path.name)
    if is_bag(path):
        return read_bag(path, signals=signals, joint=joint, bench=bench, place=place, note=note)
    if not path.is_dir() and path.suffix.lower() not in READERS:
        known = ", ".join(("folder of a bag", ".mcap", ".db3", ".json", *READERS))
        raise RecordingError(f"{path} is not a recording that can be read; valid: {known}")
    if signals is None:
        raise RecordingError(
            f"{path} is a table: name its columns in a table of `signals`, and give its load and gains as `bench`"
        )
    if bench is None:
        raise RecordingError(
            f"{path}: load and gains of a table are not known: give `bench`: "
            "mass=KG,length=M,arm_mass=KG,kp=GAIN,supply_voltage=V,actuator=NAME, or a bench file"
        )
    description = bench.describe(place, joint) if isinstance(bench, Benches) else bench
    tables: dict[str | None, Table] = (
        {None: read_table(path)}
        if path.is_file()
        else {name: read_table(path / name) for name in sorted(_files(signals))}
    )
    return [read_table_run(path, tables, signals, description)]


def _files(signals: SignalTable | None) -> set[str]:
    return files_of(source for sources in (signals or {}).values() for source in sources)


def _distinct(runs: Sequence[tuple[Path, Log]], folder: Path) -> list[Log]:
    """The runs; of different ones with one name, each gets the name of its recording, or its path, in front."""
    counts = Counter(log.name for _, log in runs)
    by_name = Counter((recording_name(path), log.name) for path, log in runs)
    copies = Counter((log.name, digest_of(log)) for _, log in runs if counts[log.name] > 1)
    logs = []
    for path, log in runs:
        name = recording_name(path)
        if counts[log.name] > 1 and copies[log.name, digest_of(log)] == 1:
            if by_name[name, log.name] > 1 and path != folder:
                name = str(path.relative_to(folder).with_name(name))
            log = replace(log, name=name if name.split("/")[-1] == log.name else f"{name} {log.name}")
        logs.append(log)
    return logs


def check_names(logs: Sequence[Log], where: str) -> None:
    """Raise :class:`RecordingError` unless the names of the runs are unique."""
    names = [log.name for log in logs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RecordingError(
            f"{where} contains several runs named {', '.join(twice)}: was a recording copied? Remove the copy"
        )


def recordings_below(path: Path, *, tables: bool = False, files: Collection[str] = ()) -> list[Path]:
    """Recordings in the order of their paths, with tables if wanted; a folder that holds all ``files`` is one."""
    if not path.is_dir() or is_bag(path):
        return [path]
    if files and all((path / name).is_file() for name in files):
        return [path]
    recordings: list[Path] = []
    for entry in sorted(path.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            recordings += recordings_below(entry, tables=tables, files=files)
        elif (
            entry.suffix == ".json"
            or is_bag(entry)
            or (tables and not files and entry.suffix.lower() in READERS)
        ):
            recordings.append(entry)
    return recordings


class BagFolder(NamedTuple):
    """The bags of a folder and its subfolders whose recording has ended.

    :param finished: bags, including cut-off ones but not their recovered copies.
    :param recording: whether another bag is being recorded right now.
    """

    finished: frozenset[Path]
    recording: bool


def bags_below(folder: Path) -> BagFolder:
    """Find the bags of a folder and its subfolders, without reading them; none if the folder does not exist."""
    finished, recording = set(), False
    for path in recordings_below(folder) if folder.is_dir() else ():
        unfinished = unfinished_file(path)
        if unfinished is not None and is_being_recorded(unfinished):
            recording = True
        elif path.suffix != ".json" and not is_recovered(path):
            finished.add(path)
    return BagFolder(frozenset(finished), recording)


def _without_doubles(paths: Sequence[Path]) -> list[Path]:
    """The recordings without unfinished bags whose recovered copy is among them."""
    unfinished = [path for path in paths if unfinished_file(path) is not None]
    if not unfinished:
        return list(paths)
    copied = {original_digest(path) for path in paths if path not in unfinished}
    return [path for path in paths if path not in unfinished or original_digest(path) not in copied]


def _is_parameter_file(path: Path) -> bool:
    """Whether a JSON file is the result of a fit rather than a recording, judged by size and content."""
    if path.stat().st_size > LARGEST_RESULT:
        return False
    try:
        content = json.loads(strict.read_bytes(path, RecordingError))
    except ValueError:
        return False
    may_be_result = isinstance(content, dict) and "entries" not in content
    return may_be_result and ("model" in content or "fits" in content or "results" in content)


def files_digest(folders: Sequence[Path]) -> str:
    """Digest of the bytes of all recordings in some folders and their subfolders, without decoding them.

    Paths of the folders, fit results, and recovered copies of cut-off bags are not included.
    """
    digest = hashlib.sha256()
    for folder in folders:
        below = recordings_below(folder, tables=True)
        paths = [p for p in below if p.suffix != ".json" or not _is_parameter_file(p)]
        unfinished = {original_digest(path) for path in paths if unfinished_file(path) is not None}
        for path in paths:
            if (
                unfinished_file(path) is None
                and path.suffix != ".json"
                and original_digest(path) in unfinished
            ):
                continue
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    digest.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0".encode())
                    with file.open("rb") as opened:
                        digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()


def fingerprint(logs: Sequence[Log]) -> str:
    """Digest of the samples, ``sha256:…``, equal for a JSON recording and a bag made from it.

    Times are rounded to 1 ns; names and the order of runs have no influence.
    """
    digests = sorted(digest_of(log) for log in logs)
    return "sha256:" + hashlib.sha256("".join(digests).encode()).hexdigest()


def digest_of(log: Log) -> str:
    """SHA-256 of the samples and set-up of one run, in hexadecimal; see :func:`fingerprint`."""
    digest = hashlib.sha256()
    digest.update(repr([float(getattr(log.setup, key)) for key in SETUP_KEYS]).encode())
    for name in ("position", "velocity", "goal", "torque_enable", "supply_voltage", "temperature", "pwm"):
        series: Series | None = getattr(log, name)
        digest.update(name.encode())
        if series is not None:
            digest.update((series.time * 1e9).round().astype("<i8").tobytes())
            digest.update(series.value.astype("<f8").tobytes())
    return digest.hexdigest()
