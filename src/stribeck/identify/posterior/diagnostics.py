"""Summaries of draws (means, intervals, R-hat, effective sample sizes, status), and NetCDF files for ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.files.folders import check_writable
from stribeck.model.arrays import Array
from stribeck.model.estimate import CONFIDENCE, Estimate, Interval, estimate_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ warns of its next version on import
    import arviz


LEVELS = 0.5 * (1.0 - CONFIDENCE), 0.5 * (1.0 + CONFIDENCE)
"""Lower and upper quantile of an interval."""

HIGHEST_RHAT = 1.01
"""Chains with a larger rank-normalised split R-hat have not converged to one distribution (Vehtari et al. 2021)."""


@dataclass(frozen=True)
class Summary:
    """Marginals of parameters, (P,) each.

    :param interval: 95 % intervals, (P, 2).
    :param rhat: rank-normalised split R-hat.
    :param effective: bulk effective sample size.
    :param tail: tail effective sample size.
    """

    names: tuple[str, ...]
    mean: Array
    deviation: Array
    interval: Array
    rhat: Array
    effective: Array
    tail: Array

    @property
    def converged(self) -> bool:
        """Whether R-hat of every parameter is below :data:`HIGHEST_RHAT`."""
        return bool(np.all(self.rhat < HIGHEST_RHAT))

    def estimates(
        self, units: Sequence[str], prior: Array, bounds: Mapping[str, Interval] | None = None
    ) -> dict[str, Estimate]:
        """Means, intervals and status by name; a parameter whose interval is as wide as its prior is not determined.

        :param prior: draws from the prior (S, P).
        :param bounds: search ranges by name, where defined.
        """
        before = np.quantile(prior, LEVELS, axis=0).T.tolist()
        return {
            name: estimate_of(
                float(self.mean[k]),
                units[k],
                (float(self.interval[k, 0]), float(self.interval[k, 1])),
                bounds=(bounds or {}).get(name),
                prior=(before[k][0], before[k][1]),
            )
            for k, name in enumerate(self.names)
        }

    @property
    def json(self) -> dict[str, Any]:
        """Summary by parameter name, for JSON output."""
        return {
            name: {
                "mean": float(self.mean[k]),
                "deviation": float(self.deviation[k]),
                "interval": [float(v) for v in self.interval[k]],
                "rhat": float(self.rhat[k]),
                "effective_samples": float(self.effective[k]),
                "effective_samples_tail": float(self.tail[k]),
            }
            for k, name in enumerate(self.names)
        }


def summarise(names: Sequence[str], draws: Array) -> Summary:
    """Marginals of draws (C, S, P)."""
    flat = draws.reshape(-1, draws.shape[-1])
    columns = [draws[..., k] for k in range(draws.shape[-1])]
    return Summary(
        tuple(names),
        flat.mean(axis=0),
        flat.std(axis=0, ddof=1),
        np.quantile(flat, LEVELS, axis=0).T,
        np.array([float(arviz.rhat(c)) for c in columns]),
        np.array([float(arviz.ess(c)) for c in columns]),
        np.array([float(arviz.ess(c, method="tail")) for c in columns]),
    )


def worst(draws: Array) -> tuple[float, float]:
    """Largest R-hat and smallest effective sample size over the parameters of draws (C, S, P)."""
    columns = [draws[..., k] for k in range(draws.shape[-1])]
    return max(float(arviz.rhat(c)) for c in columns), min(float(arviz.ess(c)) for c in columns)


def write_netcdf(
    path: Path, posterior: Mapping[str, Array], prior: Mapping[str, Array] | None = None
) -> None:
    """Atomically write draws by name, (C, S, …) each, as a NetCDF file for ArviZ.

    :raises OutputError: if it cannot be written.
    """
    check_writable(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # different numbers of draws in the groups
        content = arviz.from_dict(posterior=dict(posterior), prior=None if prior is None else dict(prior))
    beside = path.with_name(f".{path.name}.part")
    try:
        content.to_netcdf(str(beside), engine="h5netcdf")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
