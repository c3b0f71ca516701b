"""Progress and tables of ``--bayes``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from stribeck.cli.table import print_table
from stribeck.identify.posterior.diagnostics import Summary, worst
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate

PERIOD = 1.0
"""Minimum time between two lines of progress [s]."""


class SamplerProgress:
    """Prints the progress of a sampler on stderr: stage, R-hat and effective sample size so far.

    :param quiet: print nothing.
    :param natural: maps coordinates (C, S, d) to parameters (C, S, P).
    :param wanted: effective sample size of every parameter at which to stop; ``None``: take all draws.
    """

    def __init__(self, quiet: bool, natural: Callable[[Array], Array], wanted: int | None) -> None:
        self._quiet, self._natural, self._wanted = quiet, natural, wanted
        self._started = self._said = time.perf_counter()
        self._stage = ""

    def __call__(self, stage: str, done: int, of: int, draws: Array | None) -> None:
        """Print a line, at most one per :data:`PERIOD` and stage."""
        now = time.perf_counter()
        if self._quiet or (stage == self._stage and now - self._said < PERIOD):
            return
        self._said, self._stage = now, stage
        text = f"{stage} {done}/{of}"
        if draws is not None and draws.shape[2] >= 8:
            rhat, effective = worst(self._natural(draws[0]))
            text += f", R-hat at most {rhat:.3f}, effective samples at least {effective:.0f}"
        sys.stderr.write(f"{now - self._started:6.1f} s  {text}\n")
        sys.stderr.flush()

    def enough(self, draws: Array) -> bool:
        """Whether every parameter has the required effective sample size and the chains agree."""
        if self._wanted is None or draws.shape[2] < 100:
            return False
        rhat, effective = worst(self._natural(draws[0]))
        return rhat < 1.01 and effective >= self._wanted


def print_summary(summary: Summary, estimates: Mapping[str, Estimate], seconds: float) -> None:
    """Print a table of all parameters, and which of them are not determined."""
    rows = []
    for k, name in enumerate(summary.names):
        values = [f"{value:.4g}" for value in (summary.mean[k], *summary.interval[k])]
        status = "" if estimates[name].status == "determined" else estimates[name].status
        rows.append([name, *values, f"{summary.rhat[k]:.3f}", f"{summary.effective[k]:.0f}", status])
    print_table(["parameter", "mean", "2.5 %", "97.5 %", "R-hat", "effective samples", ""], rows)
    state = "all chains agree" if summary.converged else "the chains have not converged: give more --draws"
    print(f"{state}; {seconds:.1f} s")
