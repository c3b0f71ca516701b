"""Times at which recordings were sampled: rate, jitter and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.bags.signals import decode
from stribeck.recordings.bags.storage import is_bag, read_messages
from stribeck.recordings.tables.readers import Table, read_table

TIMES = ("time", "t", "timestamp", "stamp", "time_s", "seconds")
"""Names of columns with times, in lower case."""

SPREAD = (0.01, 0.99)
"""Quantiles of the intervals that are stated."""

MISSED = 1.5
"""Intervals longer than so many usual ones miss samples."""


@dataclass(frozen=True, eq=False)
class Sampling:
    """Intervals between the samples of one recording.

    :param name: of the recording, with the topic if a bag has several.
    :param intervals: (N - 1,) [s], or in the unit of the table.
    """

    name: str
    intervals: Array

    @property
    def usual(self) -> float:
        """The median interval."""
        return float(np.median(self.intervals))

    @property
    def relative(self) -> Array:
        """Intervals as shares of the usual one (N - 1,)."""
        return self.intervals / self.usual

    @property
    def missed(self) -> int:
        """Number of intervals that miss samples."""
        return int(np.count_nonzero(self.relative > MISSED))

    def line(self) -> str:
        """Rate, jitter and gaps in words."""
        low, high = np.quantile(self.relative, SPREAD)
        gaps = (
            f", {self.missed} intervals without samples, the longest {np.max(self.intervals):.3g} s"
            if self.missed
            else ""
        )
        return (
            f"{self.name}: {1.0 / self.usual:.4g} Hz; {100 * (SPREAD[1] - SPREAD[0]):g} % of the intervals "
            f"between samples are {100 * low:.3g} to {100 * high:.3g} % of the median{gaps}"
        )


def samplings(paths: Sequence[Path]) -> list[Sampling]:
    """The sampling of each recording whose times are known by their topic or the name of their column.

    :raises RecordingError: for damaged recordings.
    """
    found: list[Sampling] = []
    for path in paths:
        times = _of_bag(path) if is_bag(path) else _of_table(path, read_table(path))
        for name, stamps in times.items():
            intervals = np.diff(stamps)
            intervals = intervals[intervals > 0.0]
            if len(intervals) > 1:
                found.append(Sampling(name, intervals))
    return found


def _of_bag(path: Path) -> dict[str, Array]:
    """Header stamps of the joint states, by topic."""
    bag, stamps = read_messages(path), dict[str, list[float]]()
    for message in bag.messages:
        if message.topic.type == JOINT_STATES.type:
            header = decode(path, message, bag.typestore).header
            stamps.setdefault(message.topic.name, []).append(header.stamp.sec + 1e-9 * header.stamp.nanosec)
    several = len(stamps) > 1
    return {
        f"{path.name} {topic}" if several else path.name: np.sort(times) for topic, times in stamps.items()
    }


def _of_table(path: Path, table: Table) -> dict[str, Array]:
    for name in table.names:
        if name.rpartition("/")[2].lower() in TIMES:
            try:
                return {path.name: np.sort(table.column(name))}
            except RecordingError:
                continue
    return {}
