"""Progress and summary of ``stribeck identify fleet``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Self

from tqdm import tqdm

from stribeck.cli.table import print_table
from stribeck.fleet.fits import Fit, best_of, by_servo, left_out_of
from stribeck.identify.common.jobs import Ended


class FleetProgress:
    """Prints a line for each finished fit on stderr, and below them a bar with the running jobs.

    :param fits: number of fits to do.
    :param quiet: show only warnings.
    """

    def __init__(self, fits: int, quiet: bool) -> None:
        self._bar = tqdm(
            total=fits,
            unit=" fits",
            disable=quiet,
            mininterval=0.3 if sys.stderr.isatty() else 30.0,
            leave=False,
            bar_format="{n}/{total} fits |{bar:20}| {elapsed}, about {remaining} left{postfix}",
        )
        self._quiet = quiet
        self._failed = 0
        self._running: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def running(self, names: Collection[str]) -> None:
        """Show the names of the running jobs."""
        self._running = tuple(names)
        self._show()

    def read(self, servo: str, ended: Ended) -> None:
        """Print warnings about a servo's recordings."""
        if ended.failure:
            self._say(f"stribeck: warning: {servo}: {ended.failure}")
            return
        for reason in ended.value.left_out:
            self._say(f"stribeck: warning: {servo}: not used: {reason}")
        for note in ended.value.notes:
            self._say(f"stribeck: warning: {servo}: {note}")

    def fitted(self, fit: Fit, ended: Ended) -> None:
        """Count a fit."""
        self._failed += bool(fit.failure)
        if ended.failure and ended.attempts:  # otherwise it was printed when the recordings were read
            self._say(f"stribeck: warning: {fit.servo} {fit.law}: {ended.failure}")
        elif not (fit.failure or self._quiet):
            self._say(f"{fit.servo} {fit.law}: {_errors(fit)} mrad, {ended.seconds:.1f} s")
        self._bar.update()
        self._show()

    def _say(self, line: str) -> None:
        with tqdm.external_write_mode(file=sys.stderr):
            print(line, file=sys.stderr, flush=True)

    def _show(self) -> None:
        failed = f"{self._failed} failed; " if self._failed else ""
        self._bar.set_postfix_str(f"{failed}running: {', '.join(self._running) or 'none'}", refresh=False)
        self._bar.update(0)


def print_summary(fits: Sequence[Fit], output: Path) -> None:
    """Print errors of all servos and laws, the best law of each servo, and failures."""
    laws = list(dict.fromkeys(fit.law for fit in sorted(fits, key=lambda fit: fit.law)))
    held_out = any(fit.validation is not None for fit in fits)
    rows = []
    for servo, own in by_servo(fits).items():
        best, cells = best_of(own), {fit.law: _errors(fit) for fit in own}
        runs = {fit.runs for fit in own if fit.runs is not None}
        rows.append(
            [
                servo,
                next((fit.actuator for fit in own if fit.actuator), ""),
                *(cells.get(law, "") for law in laws),
                best.law.upper() if best else "",
                ",".join(map(str, sorted(runs))),
                str(len(left_out_of(own)) or ""),
            ]
        )
    print(f"\nMean absolute error [mrad]{', fitted / held out' if held_out else ''}:\n")
    header = ["servo", "actuator", *(law.upper() for law in laws), "best", "runs", "not used"]
    print_table(header, rows, left=2)
    _print_troubles(fits)
    done = sum(not fit.failure for fit in fits)
    print(f"\n{done} of {len(fits)} fits are finished, in {output} with fleet.json and fleet.csv")


def _print_troubles(fits: Sequence[Fit]) -> None:
    lines = []
    for servo, own in by_servo(fits).items():
        lines += [f"{servo}: not used: {reason}" for reason in left_out_of(own)]
        for reason in dict.fromkeys(fit.failure for fit in own if fit.failure):
            laws = ", ".join(fit.law for fit in own if fit.failure == reason)
            lines.append(f"{servo}: {laws}: {reason}")
    if lines:
        print("\nWhat went wrong:")
        for line in lines:
            print(f"- {line}")


def _errors(fit: Fit) -> str:
    if fit.train is None:
        return "–"
    held_out = "" if fit.validation is None else f" / {1e3 * fit.validation:.2f}"
    return f"{1e3 * fit.train:.2f}{held_out}"
