"""Tables of numbers from text, MAT, NPZ, Parquet and PyTorch files, and from the joint states of bags.

:func:`read_table` chooses the reader by the suffix, :func:`find_tables` collects the files of folders. All readers
return a :class:`Table`, whose error messages are the same for all file types.
"""

import csv
import io
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stribeck import strict
from stribeck.errors import MissingDependencyError, RecordingError
from stribeck.files.goal_messages import (
    CONTROLLER_STATE,
    FORWARD_COMMAND,
    TRAJECTORY,
    controller_goals,
    forward_goals,
    trajectory_goals,
)
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import DYNAMIC_JOINT_STATES, JOINT_COMMANDS, JOINT_STATES, Topic
from stribeck.recordings.bags.signals import decode
from stribeck.recordings.bags.storage import is_bag, read_messages
from stribeck.recordings.signals.sources import interface_samples
from stribeck.recordings.tables.torch_files import read_torch_arrays

TEXT_SUFFIXES = (".csv", ".txt")


@dataclass(frozen=True, eq=False)
class Table:
    """Named arrays of a file.

    :param names: all names in the order of the file; columns of a text file without a header are ``"0"``, ``"1"`` …
    :param arrays: (N,) or (N, k) by name, NaN where a field is empty; columns of text are missing.
    """

    path: Path
    names: tuple[str, ...]
    arrays: Mapping[str, Array]

    def array(self, name: str) -> Array:
        """The array called ``name`` as in the file, (N,) or (N, k).

        :raises RecordingError: if there is none.
        """
        if name not in self.arrays:
            raise RecordingError(
                f"{self.path} has no numeric column {name!r}; found: {', '.join(self.arrays) or 'none'}"
            )
        return self.arrays[name]

    def column(self, name: str) -> Array:
        """The array called ``name`` as one column (N,); a row (1, N) counts as a column.

        :raises RecordingError: if there is none, or it has several columns.
        """
        values = self.array(name)
        if values.size != max(values.shape, default=0):
            raise RecordingError(f"{self.path}: {name} has {values.shape[1]} columns, expected one")
        return values.reshape(-1)

    def columns(self, first: int, end: int) -> Array:
        """The columns of a text file from index ``first`` up to ``end`` (N, end - first).

        :raises RecordingError: if the file has fewer, or one of them is text.
        """
        if end > len(self.names):
            raise RecordingError(
                f"{self.path} has {len(self.names)} columns, but columns {first} to {end - 1} are needed (counted from 0)"
            )
        return np.stack([self.column(name) for name in self.names[first:end]], axis=1)


def read_table(path: Path) -> Table:
    """Read a ``.csv``, ``.txt``, ``.mat``, ``.npz``, ``.parquet`` or ``.pt`` file, or a bag (see :func:`read_joint_states`).

    :raises RecordingError: for another suffix, or a file that is missing, damaged or holds no numbers.
    """
    if is_bag(path):
        return read_joint_states(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise RecordingError(f"{path}: expected {' or '.join(READERS)}, or a bag")
    if not path.exists():
        raise RecordingError(f"{path}: no such file")
    strict.check_regular(path, RecordingError)
    return reader(path)


def find_tables(
    paths: Sequence[Path], suffixes: Sequence[str] | None = None, *, ignore: Sequence[str] = ()
) -> list[Path]:
    """Files and bags among ``paths`` and directly in folders among them, each once.

    Where bags are accepted, storage files in folders of such a folder count, too: their folder may lack metadata.yaml. Of these
    folders those that cannot be read are left out; they are named if nothing else is found.

    :param suffixes: accepted suffixes, by default all that :func:`read_table` reads. ``".mcap"`` stands for bags.
    :param ignore: suffixes of files that are skipped silently.
    :raises RecordingError: for paths that do not exist, files with another suffix, and if there is no file at all.
    """
    wanted = tuple(suffixes or (*READERS, ".mcap"))
    bags = ".mcap" in wanted
    expected = " or ".join(
        [*(suffix for suffix in wanted if suffix != ".mcap"), *(["a bag"] if bags else [])]
    )
    files: list[Path] = []
    closed: list[Path] = []
    for path in paths:
        if not path.exists():
            raise RecordingError(f"{path}: no such file")
        if path.is_dir() and not is_bag(path):
            inside = sorted(path.iterdir())
            files += [file for file in inside if not file.is_dir() and _counts(file, wanted, bags)]
            for folder in (file for file in inside if bags and file.is_dir()):
                try:
                    files += [folder] if is_bag(folder) else filter(is_bag, sorted(folder.iterdir()))
                except PermissionError:
                    closed.append(folder)
        elif _counts(path, wanted, bags):
            files.append(path)
        elif path.suffix.lower() not in ignore:
            raise RecordingError(f"{path}: expected {expected}")
    if not files:
        without = f"; {', '.join(map(str, closed))} cannot be read" if closed else ""
        raise RecordingError(f"no recordings in {', '.join(map(str, paths))}: expected {expected}{without}")
    return list(dict.fromkeys(files))


def _counts(path: Path, suffixes: Sequence[str], bags: bool) -> bool:
    return (bags and is_bag(path)) or (path.is_file() and path.suffix.lower() in suffixes)


def read_text_table(path: Path) -> Table:
    """Read columns separated by commas, semicolons or whitespace, with or without a header line.

    Blank lines and lines that begin with ``#`` are skipped; empty fields are NaN. Where semicolons separate columns,
    decimals may have a comma.

    :raises RecordingError: for a file that cannot be read, without numbers, or with rows of different length.
    """
    content = strict.read_text(path, RecordingError)
    lines = [
        (number, line)
        for number, line in enumerate(content.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise RecordingError(f"{path} is empty")
    first = lines[0][1]
    delimiter = ";" if ";" in first else "," if "," in first else None
    if (
        delimiter == ";" and "," in lines[-1][1]
    ):  # decimals have a comma where columns are separated by semicolons
        lines[1:] = [(number, line.replace(",", ".")) for number, line in lines[1:]]
        first = first.replace(",", ".") if _is_number(_fields(first, ";")[0].replace(",", ".")) else first
        lines[0] = lines[0][0], first
    head = _fields(first, delimiter)
    has_names = not all(_is_number(word) for word in head)
    body = lines[1:] if has_names else lines
    if not body:
        raise RecordingError(f"{path} has no rows of data")
    if delimiter is not None:
        head, body = _without_last_delimiters(head, body, delimiter)
    width = len(_fields(body[0][1], delimiter))
    if has_names and len(head) != width and delimiter is None:
        has_names = False  # names with blanks cannot be separated
    names = tuple(head) if has_names else tuple(str(k) for k in range(width))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RecordingError(f"{path} has two columns named {twice!r}: rename one")
    arrays = _parsed_columns(path, body, names, delimiter)
    if not arrays:
        raise RecordingError(
            f"{path} has no numeric column; it begins with {first[:60]!r}. Columns must be separated by commas, semicolons or blanks, below one line of names"
        )
    return Table(path, names, arrays)


def _without_last_delimiters(
    head: list[str], body: list[tuple[int, str]], delimiter: str
) -> tuple[list[str], list[tuple[int, str]]]:
    """The header and rows without the delimiter that every row ends with, if its column has no name."""
    ends = all(line.rstrip().endswith(delimiter) for _, line in body)
    width = len(_fields(body[0][1], delimiter))
    if not ends or (len(head) == width and head[-1]):
        return head, body
    stripped = [(number, line.rstrip().removesuffix(delimiter)) for number, line in body]
    return (head[:-1] if head and not head[-1] else head), stripped


def _parsed_columns(
    path: Path, body: Sequence[tuple[int, str]], names: tuple[str, ...], delimiter: str | None
) -> dict[str, Array]:
    """Columns of numbers: all at once where every field is a number, otherwise field by field."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            matrix = np.loadtxt([line for _, line in body], delimiter=delimiter, comments=None, ndmin=2)
    except (ValueError, UserWarning, DeprecationWarning):
        matrix = None
    if matrix is not None and matrix.shape[1] == len(names):
        return {name: matrix[:, k] for k, name in enumerate(names)}
    rows = [(number, _fields(line, delimiter)) for number, line in body]
    for number, row in rows:
        if len(row) != len(names):
            raise RecordingError(f"{path}: row {number} has {len(row)} fields, expected {len(names)}")
    arrays = {}
    for k, name in enumerate(names):
        fields = [row[k] for _, row in rows]
        if all(not field or _is_number(field) for field in fields):
            arrays[name] = np.array([float(field) if field else np.nan for field in fields])
    return arrays


def _fields(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return [field.strip() for field in next(csv.reader(io.StringIO(line), delimiter=delimiter))]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_mat_table(path: Path) -> Table:
    """Read the real arrays of a MAT file; a field of a structure is called ``structure.field``.

    :raises RecordingError: for a file that cannot be read, such as MAT files of version 7.3.
    :raises MissingDependencyError: without SciPy.
    """
    try:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError
    except ImportError:
        raise MissingDependencyError(f"{path}: reading MAT files needs SciPy: pip install scipy") from None
    try:
        content = loadmat(path)
    except (OSError, ValueError, TypeError, NotImplementedError, MatReadError) as error:
        raise RecordingError(f"{path} is not a MAT file that can be read: {error}") from None
    fields: dict[str, object] = {}
    for name, value in content.items():
        if name[:2] != "__":
            _flatten(name, value, fields)
    return _table_of_arrays(path, fields)


def _flatten(name: str, value: object, fields: dict[str, object]) -> None:
    """Add an array, or the fields of a structure as ``name.field``."""
    names = getattr(getattr(value, "dtype", None), "names", None)
    if isinstance(value, np.ndarray) and names and value.size == 1:
        for field in names:
            _flatten(f"{name}.{field}", value[field].item(), fields)
    else:
        fields[name] = value


def read_npz_table(path: Path) -> Table:
    """Read the real arrays of an NPZ file.

    :raises RecordingError: for a file that cannot be read, or holds pickled objects.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            return _table_of_arrays(path, {name: content[name] for name in content.files})
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise RecordingError(f"{path} is not an NPZ file that can be read: {error}") from None


def read_torch_table(path: Path) -> Table:
    """Read the tensors of a dictionary that ``torch.save`` wrote, without PyTorch.

    :raises RecordingError: for other content, and files that are damaged.
    """
    return _table_of_arrays(path, read_torch_arrays(path))


def _table_of_arrays(path: Path, content: Mapping[str, object]) -> Table:
    arrays = {
        name: np.asarray(value, dtype=np.float64)
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim in (1, 2)
    }
    if not arrays:
        raise RecordingError(f"{path} contains no numeric arrays")
    return Table(path, tuple(arrays), arrays)


def _goal_row(time: float, goals: Mapping[str, float]) -> dict[str, float]:
    return {"time": time, **{f"{joint}/position_command": value for joint, value in goals.items()}}


def read_joint_states(
    path: Path, topics: Sequence[Topic] = (JOINT_STATES, JOINT_COMMANDS), goal_joints: Sequence[str] = ()
) -> Table:
    """Read joint states and commands of a bag, one row for each message, with header stamps as times.

    Columns: ``time`` [s]; ``<joint>/position``, ``<joint>/velocity`` and ``<joint>/effort`` of states; ``<joint>/current`` [A] of the
    telemetry of servos, where :data:`DYNAMIC_JOINT_STATES` is among the topics, at the times of the states;
    ``<joint>/position_command``, ``<joint>/velocity_command`` and ``<joint>/effort_command`` of commands. Values
    missing in a message are NaN. Goals are also taken from the states of a trajectory controller, and without these from
    trajectories or arrays of a forward controller (:mod:`stribeck.files.goal_messages`).

    :param goal_joints: joints of these arrays; by default those of the joint states.
    :raises RecordingError: for a damaged bag, or one without joint states.
    """
    content = read_messages(path)
    rows: list[dict[str, float]] = []
    trajectories: list[tuple[float, Any]] = []
    arrays: dict[str, list[tuple[float, Any]]] = {}
    names = tuple(goal_joints)
    telemetry: list[tuple[float, dict[str, float]]] = []
    for message in content.messages:
        kind, log_time = message.topic.type, 1e-9 * message.log_time
        if JOINT_COMMANDS in topics and kind in (CONTROLLER_STATE, TRAJECTORY, FORWARD_COMMAND):
            found = decode(path, message, content.typestore)
            if kind == CONTROLLER_STATE:
                rows.append(_goal_row(*controller_goals(found)))
            elif kind == TRAJECTORY:
                trajectories.append((log_time, found))
            else:
                arrays.setdefault(message.topic.name, []).append((log_time, found.data))
        if message.topic not in topics:
            continue
        state = decode(path, message, content.typestore)
        if message.topic == DYNAMIC_JOINT_STATES:
            stamp = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
            telemetry.append((stamp, dict(interface_samples(state, "current"))))
            continue
        suffix = "_command" if message.topic == JOINT_COMMANDS else ""
        if not suffix:
            names = names or tuple(state.name)
        row = {"time": state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec}
        for quantity in ("position", "velocity", "effort"):
            for joint, value in zip(state.name, getattr(state, quantity), strict=False):
                row[f"{joint}/{quantity}{suffix}"] = value
        rows.append(row)
    if not any(name.endswith("/position_command") for row in rows for name in row):
        goals = list(trajectory_goals(trajectories)) or forward_goals(arrays, names)
        rows += [_goal_row(time, wanted) for time, wanted in goals]
    if not rows:
        raise RecordingError(f"{path}: no messages on {topics[0].name}")
    rows.sort(key=lambda row: row["time"])
    _add_currents(rows, telemetry)
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return Table(path, columns, {name: np.array([row.get(name, np.nan) for row in rows]) for name in columns})


def _add_currents(
    rows: Sequence[dict[str, float]], telemetry: Sequence[tuple[float, dict[str, float]]]
) -> None:
    """Currents of servos at the times of the states, interpolated within the time in which they were recorded."""
    for joint in dict.fromkeys(name for _, values in telemetry for name in values):
        known = sorted((time, values[joint]) for time, values in telemetry if joint in values)
        times, currents = np.array(known).T
        at = np.interp([row["time"] for row in rows], times, currents, np.nan, np.nan)
        for row, current in zip(rows, at.tolist(), strict=True):
            row[f"{joint}/current"] = current


def read_parquet_table(path: Path) -> Table:
    """Read the numeric columns of a Parquet file; a column of lists of one length, as in LeRobot data sets, is (N, k).

    :raises RecordingError: for a file that cannot be read.
    :raises MissingDependencyError: without PyArrow.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingDependencyError(
            f"{path}: reading Parquet files needs PyArrow: pip install 'stribeck[lerobot]'"
        ) from None
    try:
        content = parquet.read_table(path)
    except (OSError, ArrowException) as error:
        pointer = path.is_file() and path.read_bytes()[:24] == b"version https://git-lfs."
        reason = "it is a pointer of Git LFS: run git lfs pull in its folder" if pointer else error
        raise RecordingError(f"{path} is not a Parquet file that can be read: {reason}") from None
    columns: dict[str, object] = {}
    for name in content.column_names:
        try:
            columns[name] = np.array(content[name].to_pylist(), dtype=np.float64)
        except (TypeError, ValueError):  # text, images, lists of different lengths
            continue
    return _table_of_arrays(path, columns)


READERS: dict[str, Callable[[Path], Table]] = {
    **dict.fromkeys(TEXT_SUFFIXES, read_text_table),
    ".mat": read_mat_table,
    ".npz": read_npz_table,
    ".parquet": read_parquet_table,
    ".pt": read_torch_table,
}
"""Readers by the suffix of the file."""
