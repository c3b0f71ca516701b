"""Recordings by their paths, read when they are needed: as bench runs of a servo, or by the engine that identifies from them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

from stribeck.errors import ConfigError, RecordingError
from stribeck.files.schema import convert
from stribeck.model.log import Log
from stribeck.recordings.bench import Benches, BenchFile, BenchValues
from stribeck.recordings.signals.sources import load_signals
from stribeck.recordings.sources import check_names, read_recordings

PathLike = str | Path

_PACKAGE = str(Path(__file__).parents[1])

Described = str | Path | Mapping[str, float | str]
"""A bench file, or its values for all recordings: ``{"mass": 0.1, "length": 0.1, "kp": 400, …}``."""


class StribeckWarning(UserWarning):
    """Something about the data or a result that should be looked at; the computation goes on."""


def warn(text: str) -> None:
    """Warn the caller of the API: the place shown is the first outside this package, through however many functions."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, StribeckWarning, stacklevel=level)


def benches_of(given: Described, actuator: str | None = None) -> Benches:
    """Descriptions of the bench of recordings that do not describe themselves.

    :param actuator: the servo's name or YAML file, unless the descriptions name one.
    :raises ConfigError: for an invalid file, and missing or unknown keys.
    """
    if not isinstance(given, Mapping):
        return Benches.read(Path(given), actuator)
    benches = Benches(BenchFile(defaults=convert(dict(given), BenchValues, "bench")), "bench", actuator)
    try:
        benches.describe(Path("recording"))
    except RecordingError as error:
        raise ConfigError(str(error).replace("bench: recording", "bench")) from None
    return benches


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How bench recordings are read.

    :param joint: to read from bags with several joints; ``*`` reads all as one servo.
    :param signals: YAML table that maps signals to topics or columns, for bags of other robots and tables.
    :param bench: description of recordings without ``/bench``.
    :param arm_mass: mass of the rod for JSON recordings that give none [kg].
    """

    joint: str | None = None
    signals: PathLike | None = None
    bench: Described | None = None
    arm_mass: float | None = None

    def logs(
        self,
        folder: Path,
        actuator: str | None,
        note: Callable[[str], None],
        damaged: Callable[[RecordingError], None] | None = None,
    ) -> list[Log]:
        """The runs below a folder, see :func:`stribeck.recordings.sources.read_recordings`."""
        return read_recordings(
            folder,
            signals=None if self.signals is None else load_signals(Path(self.signals)),
            joint=self.joint,
            bench=None if self.bench is None else benches_of(self.bench, actuator),
            arm_mass=self.arm_mass,
            actuator=actuator,
            note=note,
            damaged=damaged,
        )


class Recordings(Sequence[Log]):
    """Recordings by their paths. As a sequence, the runs of a servo on a bench that they hold, read on first use.

    The engines for joints, arms, robots and mechanisms read the same paths in their own way.

    :param paths: files, folders of them, or bags.
    :param reading: how bench runs are read.
    :param actuator: the servo's name or YAML file, if recordings do not name it.
    :param logs: the runs, where they have been read.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        reading: Reading | None = None,
        actuator: str | None = None,
        logs: Sequence[Log] | None = None,
    ) -> None:
        self.paths, self.reading, self.actuator = tuple(paths), reading or Reading(), actuator
        if logs is not None:
            self.__dict__["logs"] = tuple(logs)

    @cached_property
    def logs(self) -> tuple[Log, ...]:
        """The bench runs.

        :raises RecordingError: for recordings that hold none, or cannot be read.
        """
        runs = [log for path in self.paths for log in self.reading.logs(path, self.actuator, warn)]
        check_names(runs, ", ".join(map(str, self.paths)))
        return tuple(runs)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bench runs."""
        return tuple(log.name for log in self.logs)

    def __len__(self) -> int:
        return len(self.logs)

    def __iter__(self) -> Iterator[Log]:
        return iter(self.logs)

    @overload
    def __getitem__(self, index: int) -> Log: ...

    @overload
    def __getitem__(self, index: slice) -> Recordings: ...

    def __getitem__(self, index: int | slice) -> Log | Recordings:
        """A run, or some of them as recordings of their own."""
        if isinstance(index, slice):
            return Recordings(self.paths, self.reading, self.actuator, self.logs[index])
        return self.logs[index]

    def where(self, keep: Callable[[Log], bool]) -> Recordings:
        """The runs for which a function returns true: ``runs.where(lambda run: run.setup.kp == 400)``."""
        return Recordings(self.paths, self.reading, self.actuator, [log for log in self.logs if keep(log)])

    def __repr__(self) -> str:
        places = ", ".join(map(str, self.paths))
        read = self.__dict__.get("logs")
        return f"Recordings({places})" if read is None else f"Recordings({places}: {len(read)} runs)"


Given = Recordings | PathLike | Iterable[PathLike] | Iterable[Log]
"""Recordings as functions take them."""


def load(
    paths: PathLike | Iterable[PathLike],
    *,
    joint: str | None = None,
    signals: PathLike | None = None,
    bench: Described | None = None,
    arm_mass: float | None = None,
    servo: str | None = None,
) -> Recordings:
    """Name recordings: bags, CSV, MAT, NPZ, Parquet (LeRobot) and JSON files, or folders of them.

    Paths are checked at once; the content is read when it is needed.

    :param joint: joint to read from bench recordings of several joints; ``*`` reads all as one servo.
    :param signals: YAML table that maps signals to topics or columns, for bench recordings of other robots.
    :param bench: description of bench recordings that do not describe themselves: a bench file, or a mapping with the keys
        ``mass`` [kg], ``length`` [m], ``arm_mass`` [kg], ``kp``, ``supply_voltage`` [V], ``actuator``.
    :param arm_mass: mass of the rod for JSON recordings that give none [kg].
    :param servo: its name or YAML file, where recordings do not name it.
    :raises RecordingError: for a path that does not exist.
    """
    found = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not found:
        raise RecordingError("no recordings given: name a file, a folder, or several of them")
    for path in found:
        if not path.exists():
            raise RecordingError(f"{path}: no such file or folder")
    return Recordings(found, Reading(joint=joint, signals=signals, bench=bench, arm_mass=arm_mass), servo)


def as_recordings(given: Given) -> Recordings:
    """Recordings from what functions take: recordings, paths, or runs.

    :raises RecordingError: for a path that does not exist.
    """
    if isinstance(given, Recordings):
        return given
    if isinstance(given, str | Path):
        return load(given)
    parts = list(given)
    logs = [part for part in parts if isinstance(part, Log)]
    if logs and len(logs) == len(parts):
        return Recordings((), logs=logs)
    return load([part for part in parts if isinstance(part, str | Path)])


def paths_of(given: Given | None) -> tuple[Path, ...]:
    """The paths of recordings, for engines that read them in their own way.

    :raises RecordingError: for runs without paths.
    """
    if given is None:
        return ()
    found = as_recordings(given)
    if not found.paths:
        raise RecordingError("these runs were already read: give the paths of the recordings")
    return found.paths
