"""Progress of a fit: a bar for users, JSON lines for programs."""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any, Self

from tqdm import tqdm

JSON_PERIOD = 0.3
"""Minimum time between two JSON lines [s]."""


class TqdmDisplay:
    """A bar of tqdm on stderr, which disappears at the end of the context.

    :param period: minimum time between two updates where stderr is not a terminal [s].
    :param options: of tqdm.
    """

    def __init__(self, total: float, quiet: bool, period: float = 5.0, **options: Any) -> None:
        rate = 0.3 if sys.stderr.isatty() else period
        self._bar = tqdm(total=total, disable=quiet, mininterval=rate, leave=False, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


class Bar(TqdmDisplay):
    """A progress bar of a fit."""

    def update(self, evaluations: int, error: float | None) -> None:
        """Update the bar."""
        if error is not None:
            self._bar.set_postfix_str(f"best {1e3 * error:.2f} mrad", refresh=False)
        self._bar.update(evaluations - self._bar.n)


class JsonLines:
    """Prints one JSON object per line on stderr: ``{"model", "evaluations", "trials", "error", "seconds"}``.

    ``error`` is the mean absolute error of the best point so far [rad], null if there is none yet; ``seconds`` is the
    time since the search began. The search may end before ``trials`` evaluations.

    :param trials: maximum number of evaluations.
    """

    def __init__(self, law: str, trials: int) -> None:
        self._state: dict[str, Any] = {"model": law, "evaluations": 0, "trials": trials, "error": None}
        self._started = time.perf_counter()
        self._due = self._started

    def __enter__(self) -> Self:
        self._write()
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def update(self, evaluations: int, error: float | None) -> None:
        """Write a line, unless the last one was written too recently."""
        best = None if error is None or not math.isfinite(error) else float(error)
        self._state |= {"evaluations": int(evaluations), "error": best}
        if time.perf_counter() >= self._due:
            self._write()

    def _write(self) -> None:
        now = time.perf_counter()
        self._due = now + JSON_PERIOD
        sys.stderr.write(json.dumps({**self._state, "seconds": round(now - self._started, 3)}) + "\n")
        sys.stderr.flush()


Progress = Bar | JsonLines
"""The progress of a fit; a context manager."""


def progress_of(kind: str, law: str, trials: int) -> Progress:
    """Create the progress display selected by ``--progress``: ``bar``, ``json`` or ``none``."""
    if kind == "json":
        return JsonLines(law, trials)
    return Bar(trials, kind == "none", desc=law.upper(), unit=" trials")
