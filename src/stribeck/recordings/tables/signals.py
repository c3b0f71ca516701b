"""Signals in tables (text, MAT and NPZ files): columns and variables, in SI units, and runs of a servo made of them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array
from stribeck.model.log import Log
from stribeck.recordings.bench import BenchDescription
from stribeck.recordings.signals.sources import REQUIRED_SIGNALS, SignalSource, SignalTable
from stribeck.recordings.signals.tracks import Track, log_of_tracks
from stribeck.recordings.tables.readers import Table


def table_signal(table: Table, signal: str, source: SignalSource, joints: Sequence[str]) -> Array:
    """A signal of some joints in SI units (N, n), NaN where a field is empty.

    :param joints: names of the joints, in the order of the columns; one for a signal that is not of joints.
    :raises RecordingError: for missing columns, and columns or values that are not one for each joint.
    """
    values = _readings(table, signal, source, joints)
    if values.shape[1] != len(joints):
        raise RecordingError(
            f"{table.path}: {signal} has {values.shape[1]} columns, expected {len(joints)}, one for each joint"
        )
    source.check_width(len(joints), f"{table.path}: {signal}")
    return source.in_si(values, scale=table.array(source.scale) if isinstance(source.scale, str) else None)


def _readings(table: Table, signal: str, source: SignalSource, joints: Sequence[str]) -> Array:
    """The columns of a signal, as they are in the file (N, k)."""
    if source.variable is not None:
        values = table.array(source.variable)
        if source.order:
            return _of_joints(table, values, source, joints)
        single = len(joints) == 1 and values.size == max(values.shape, default=0)
        return values.reshape(-1, 1) if single or values.ndim == 1 else values
    if source.column_range is not None:
        return table.columns(*source.column_range)
    if isinstance(source.column, str):
        names = [source.column.replace("{joint}", joint) for joint in joints]
        names = list(dict.fromkeys(names))
    else:
        names = [str(name) for name in source.columns]
    if not names:
        raise RecordingError(f"{table.path}: {signal}: column, columns or variable missing")
    return np.stack([table.column(name) for name in names], axis=1)


def _of_joints(table: Table, values: Array, source: SignalSource, joints: Sequence[str]) -> Array:
    """The columns of some joints of an array whose joints are listed."""
    if values.ndim != 2 or values.shape[1] != len(source.order):
        raise RecordingError(
            f"{table.path}: {source.variable} has shape {values.shape}, expected one column for each of {', '.join(source.order)}"
        )
    unknown = [joint for joint in joints if joint not in source.order]
    if unknown:
        raise RecordingError(
            f"{table.path}: {source.variable}: {', '.join(unknown)} missing in order, which lists {', '.join(source.order)}"
        )
    return values[:, [source.order.index(joint) for joint in joints]]


def has(table: Table, source: SignalSource, joint: str) -> bool:
    """Whether a table has the columns of a source."""
    if source.column_range is not None:
        return source.column_range[1] <= len(table.names)
    if source.variable is not None:
        return source.variable in table.arrays
    if source.column is not None:
        return str(source.column).replace("{joint}", joint) in table.arrays
    return bool(source.columns) and all(name in table.arrays for name in source.columns)


def files_of(sources: Iterable[SignalSource]) -> set[str]:
    """Names of the files that the sources name, empty if the signals of a run are in one file."""
    return {source.file for source in sources if source.file is not None}


def read_table_run(
    path: Path, tables: Mapping[str | None, Table], signals: SignalTable, bench: BenchDescription
) -> Log:
    """A run of a servo from a file, or from several, see :func:`read_table_tracks`.

    :raises RecordingError: for missing columns, and signals that make no valid run.
    """
    return log_of_tracks(read_table_tracks(path, tables, signals, bench.joint, REQUIRED_SIGNALS), bench, path)


def read_table_tracks(
    path: Path,
    tables: Mapping[str | None, Table],
    signals: SignalTable,
    joint: str,
    required: Sequence[str],
) -> dict[str, Track]:
    """Samples of the signals of a joint from a file, or from several, in SI units.

    Rows without a value of a signal are none of its samples, so commands may have other rates than states.

    :param path: the file or folder, for messages.
    :param tables: by the names of the files in the sources; ``None`` is the only file.
    :raises RecordingError: for missing columns of signals that are required.
    """
    chosen = {
        signal: source
        for signal, sources in signals.items()
        if signal != "time"
        and (source := _chosen(path, signal, sources, tables, joint, signal in required)) is not None
    }
    tracks = {}
    for signal, source in chosen.items():
        if source.constant is None:
            table = tables[source.file]
            value = table_signal(table, signal, source, (joint,))[:, 0]
            times = [one for one in signals.get("time", ()) if one.file in (None, source.file)]
            tracks[signal] = Track(_times(table, times, len(value)), value).known()
    if empty := [signal for signal in required if signal in tracks and not len(tracks[signal].time)]:
        raise RecordingError(f"{path}: {', '.join(empty)} without any value")
    if "position" not in tracks:
        raise RecordingError(f"{path}: the position cannot be a constant")
    start = tracks["position"].time[:1]
    return tracks | {
        signal: Track(start, np.array([source.constant]))
        for signal, source in chosen.items()
        if source.constant is not None
    }


def _chosen(
    path: Path,
    signal: str,
    sources: Sequence[SignalSource],
    tables: Mapping[str | None, Table],
    joint: str,
    required: bool,
) -> SignalSource | None:
    """The first source of a signal that is there; ``None`` for an optional signal that is not."""
    here = [one for one in sources if one.place in ("table", "constant")]
    for source in here:
        if source.constant is not None or (source.file in tables and has(tables[source.file], source, joint)):
            return source
    if not required:
        return None
    if not here:
        raise RecordingError(
            f"{path} is not a bag, but the table of signals has no column for {signal}: add it"
        )
    wanted = " or ".join(
        str(one.variable or (one.column if one.column is not None else list(one.columns))) for one in here
    )
    if elsewhere := [one.file for one in here if one.file is not None and one.file not in tables]:
        raise RecordingError(
            f"{path}: the table of signals takes {signal} from the file {elsewhere[0]}: name the folder that contains all files"
        )
    found = ", ".join(name for table in tables.values() for name in table.arrays)
    joints = f" (joint {joint!r})" if "{joint}" in wanted else ""
    raise RecordingError(f"{path} has no numeric column {wanted}{joints} for {signal}; found: {found}")


def _times(table: Table, sources: Sequence[SignalSource], rows: int) -> Array:
    """Times of the rows of a table (N,) [s], from the first of its sources that is there."""
    for source in sources:
        if source.rate is not None:
            return np.arange(rows) / source.rate
        if has(table, source, ""):
            return table_signal(table, "time", source, ("time",))[:, 0]
    if named := [str(source.column if source.column is not None else source.variable) for source in sources]:
        raise RecordingError(
            f"{table.path} has no numeric column {' or '.join(named)} for time; found: {', '.join(table.arrays)}"
        )
    raise RecordingError(
        f"{table.path}: the column of the time is not known: give time: {{column: NAME}}, or time: {{rate: "
        f"HZ}}, in the table of `signals`; columns: {', '.join(table.arrays)}"
    )
