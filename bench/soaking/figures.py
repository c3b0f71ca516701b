"""What the kernel says about a process."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """Memory [MB], open files, processor time [s], time since the start of the process [s]."""

    memory: float
    files: int
    processor: float
    age: float

    def share(self, before: Usage) -> float:
        """Share of a core since an earlier look."""
        return (self.processor - before.processor) / max(self.age - before.age, 1e-9)


def usage_of(pid: int) -> Usage | None:
    """Of a process; None when it is gone."""
    place = Path("/proc") / str(pid)
    try:
        fields = (place / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        resident = int((place / "statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = len(list((place / "fd").iterdir()))
        up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, IndexError):
        return None
    return Usage(
        resident / 1e6, files, (int(fields[11]) + int(fields[12])) / TICKS, up - int(fields[19]) / TICKS
    )


def waiting_of(pid: int) -> dict[int, float]:
    """By thread of a process, how long the kernel has let it wait for a processor [s]; empty when it is gone."""
    found = {}
    try:
        for task in (Path("/proc") / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError, IndexError):
                found[int(task.name)] = 1e-9 * int(
                    (task / "schedstat").read_text(encoding="ascii").split()[1]
                )
    except OSError:
        return {}
    return found


def percentile(values: object, q: float) -> float:
    """Percentile without the NaN, NaN of nothing."""
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    return float(np.percentile(found, q)) if found.size else math.nan
