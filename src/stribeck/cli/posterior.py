"""``stribeck posterior``: what prior knowledge and few measurements say of an arm or a servo."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.bayes.diagnostics import Summary, worst
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, OutputError
from stribeck.io.files import check_writable

Array = npt.NDArray[np.float64]

PERIOD = 1.0
"""Least time between two lines of progress [s]."""


def run(arguments: argparse.Namespace) -> int:
    """An arm or a servo."""
    if (arguments.config is None) == (arguments.logdir is None):
        raise ConfigError(
            "name an arm (--config ROBOT) or recordings of a servo (--logdir BAGS), one of them"
        )
    _check_kind(arguments)
    _check_outputs(arguments)
    # Each kind needs libraries that the other does not.
    if arguments.config is not None:
        from stribeck.cli.posterior_arm import run_arm

        return run_arm(arguments)
    from stribeck.cli.posterior_servo import run_servo

    return run_servo(arguments)


def _check_kind(arguments: argparse.Namespace) -> None:
    """Nothing that was asked for is left out in silence."""
    own, other = ("config", "logdir") if arguments.config is not None else ("logdir", "config")
    for name, default in arguments.options_of[other].items():
        if getattr(arguments, name) != default:
            option = "--" + name.replace("_", "-")
            raise ConfigError(f"{option} goes with --{other}, not with --{own}")
    if own == "config" and arguments.output is not None:
        raise ConfigError("--output is a servo's parameter file; of an arm give --json or --netcdf")


def _check_outputs(arguments: argparse.Namespace) -> None:
    given = [
        arguments.urdf,
        arguments.table,
        arguments.inertias,
        arguments.logdir,
        *arguments.data,
        *arguments.test,
    ]
    inputs = {path.resolve() for path in given if path is not None}
    outputs = [arguments.output, arguments.netcdf, arguments.json]
    if arguments.plots is not None:
        outputs.append(arguments.plots / "posterior.png")
    named: set[Path] = set()
    for path in (path for path in outputs if path is not None):
        if path.resolve() in inputs | named:
            raise OutputError(f"{path} is an input or another output of this command; name another file")
        check_writable(path)
        named.add(path.resolve())


class Watch:
    """Says how far a sampler is: stage, R-hat and effective samples so far, on stderr.

    :param quiet: say nothing.
    :param natural: from coordinates (C, S, d) to parameters (C, S, P).
    :param wanted: effective samples of every parameter that are enough; ``None`` for all draws.
    """

    def __init__(self, quiet: bool, natural: Callable[[Array], Array], wanted: int | None) -> None:
        self._quiet, self._natural, self._wanted = quiet, natural, wanted
        self._started = self._said = time.perf_counter()
        self._stage = ""

    def __call__(self, stage: str, done: int, of: int, draws: Array | None) -> None:
        """Write a line, if the last one is old enough or of another stage."""
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
        """Whether every parameter has the effective samples that were asked for, and chains agree."""
        if self._wanted is None or draws.shape[2] < 100:
            return False
        rhat, effective = worst(self._natural(draws[0]))
        return rhat < 1.01 and effective >= self._wanted


def print_summary(summary: Summary, seconds: float) -> None:
    """A table of all parameters."""
    rows = [
        [
            name,
            f"{summary.mean[k]:.4g}",
            f"{summary.interval[k, 0]:.4g}",
            f"{summary.interval[k, 1]:.4g}",
            f"{summary.rhat[k]:.3f}",
            f"{summary.effective[k]:.0f}",
        ]
        for k, name in enumerate(summary.names)
    ]
    print_table(["parameter", "mean", "2.5 %", "97.5 %", "R-hat", "effective samples"], rows)
    state = "all chains agree" if summary.converged else "chains do not agree yet: give more --draws"
    print(f"{state}; {seconds:.1f} s")
