"""Progress of a fit: a bar for users, JSON lines for programs."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from typing import Any, Protocol, Self

from tqdm import tqdm

from stribeck.api.stages import same_stage

JSON_PERIOD = 0.3
"""Minimum time between two JSON lines [s]."""

LINE_PERIOD = 0.5
"""Time between two updates of a :class:`StageLine` [s]."""


class Progress(Protocol):
    """Receives the progress of a fit; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, evaluations: int, error: float | None) -> None:
        """Report the number of evaluations and the error of the best point so far [rad], if any."""


class Bar:
    """A progress bar on stderr.

    :param trials: maximum number of evaluations.
    :param quiet: show nothing.
    """

    def __init__(self, law: str, trials: int, quiet: bool = False) -> None:
        self._bar = tqdm(
            total=trials,
            desc=law.upper(),
            unit=" trials",
            disable=quiet,
            mininterval=0.3 if sys.stderr.isatty() else 5.0,
            leave=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

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


def progress_of(kind: str, law: str, trials: int) -> Progress:
    """Create the progress display selected by ``--progress``: ``bar``, ``json`` or ``none``."""
    return JsonLines(law, trials) if kind == "json" else Bar(law, trials, quiet=kind == "none")


class StageLine:
    """One line on stderr with the stage of a computation and the elapsed time, which a thread keeps up to date.

    Where stderr is not a terminal, a line for each new stage.

    :param quiet: show nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet, self._started = quiet, time.perf_counter()
        self._stage, self._width, self._due = "", 0, 0.0
        self._lock, self._over = threading.Lock(), threading.Event()
        self._renewed = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if not self._quiet and self._renewed:
            threading.Thread(target=self._renew, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over.set()
            if self._width and self._renewed:
                self._write(" " * self._width + "\r")

    def tell(self, stage: str) -> None:
        """Report the present stage, for example ``consistent: IPOPT iteration 12``."""
        is_new = same_stage(stage) != same_stage(self._stage)
        self._stage = stage
        if not self._quiet and (is_new or (self._renewed and time.perf_counter() >= self._due)):
            self._show()

    def _renew(self) -> None:
        while not self._over.wait(LINE_PERIOD):
            self._show()

    def _show(self) -> None:
        with self._lock:
            if self._stage and not self._over.is_set():
                now = time.perf_counter()
                text = f"{self._stage}, {now - self._started:.0f} s"
                self._due, self._width = now + LINE_PERIOD, max(self._width, len(text))
                self._write(text.ljust(self._width) if self._renewed else text)

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text if self._renewed else text + "\n")
        sys.stderr.flush()
