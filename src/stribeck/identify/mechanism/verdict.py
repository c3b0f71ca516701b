"""Verdict on the estimation of a mechanism's parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stribeck.identify.common.judging import Evidence, Misfit, judge, misfits_of
from stribeck.identify.mechanism.estimation import MechanismEstimate
from stribeck.model.verdict import Verdict

Errors = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Errors of each signal of each run, see :meth:`~stribeck.identify.mechanism.estimation.Simulator.errors`."""


def judge_mechanism(estimation: MechanismEstimate, fitted: Errors, held_out: Errors) -> Verdict:
    """The verdict on an estimation.

    :param fitted, held_out: errors of the motion simulated from the first sample, by run.
    """
    return judge(
        Evidence(
            "simulated signals",
            _misfits(fitted, held_out=False) + _misfits(held_out, held_out=True),
            {"": estimation.estimates},
            status=estimation.solution.status,
            kinks=False,
            friction=estimation.mechanism.friction_names,
        )
    )


def _misfits(errors: Errors, held_out: bool) -> tuple[Misfit, ...]:
    """Root mean square over the signals of their relative errors, of all runs and of each; signals that are zero have none."""
    if not errors:
        return ()
    squares = {
        run: [one["rel"] ** 2 for one in signals.values() if np.isfinite(one["rel"])]
        for run, signals in errors.items()
    }
    by_file = {run: float(np.sqrt(np.mean(found))) for run, found in squares.items() if found}
    whole = float(np.sqrt(np.mean([square for found in squares.values() for square in found] or [np.nan])))
    return misfits_of(whole, by_file=by_file, held_out=held_out)
