r"""What the samples tell of the parameters: covariance with model error, and directions they cannot tell.

At the optimum the states follow the parameters, :math:`\delta x = X\,\delta\chi` (:mod:`stribeck.multibody.chain`), so that every
weighted residual answers by :math:`D_k = A_kX_k + N_kX_{k+1} + P_k`, and :math:`S = \sum D_k^TD_k`. The errors of the
parameters are :math:`S^{-1}\sum_k u_k`, :math:`u_k = D_k^Tz_k`.

**Model error** is smooth: residuals go the same way for a while, and :math:`JJ^T` with independent samples would
promise far too much. The covariance is the sandwich :math:`S^{-1}\Gamma S^{-1}` with the long-run covariance of the scores,

.. math:: \Gamma = \sum_{|i-j| < L} (1 - |i-j|/L)\, u_iu_j^T

(Newey and West, Econometrica 55, 1987) within runs, with L :data:`LAGS` times the longest integrated correlation time of a parameter's
scores, and of the residuals of a run's signal that tells at least :data:`TELLS` of what is known of some parameter, found
by Sokal's self-consistent window. With white residuals L is one step. If the correlation time is more than :data:`CLEARLY` samples, L is at least :data:`SHARE` of each run,
since what a model misses may last longer than any such time shows: at an optimum scores add up to zero, and slow ones hide in that. So long a window is itself uncertain and too small by
:math:`1 - b + b^2/3`, :math:`b = L/N`, which is made good; the quantile is Student's t of 1.5 degrees of freedom for each L (for one run
together that of Kiefer and Vogelsang, Econometric Theory 21, 2005, Bartlett's kernel), or of as many as there are correlation times less
the parameters, if these are fewer.

**Directions.** In units of the values themselves, the eigenvectors of S whose predicted deviation exceeds
:data:`NOT_TOLD` are named. A parameter with a part in one of them, or with an interval wider than :data:`DETERMINED`
of its value, is called not identifiable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from stribeck.core.parameters import ParameterSet
from stribeck.multibody.chain import StateChain, Flags, eliminate, response
from stribeck.multibody.mechanism import Array
from stribeck.multibody.problem import Point, EstimationProblem, GridSamples

CONFIDENCE = 0.95
DETERMINED = 0.1
"""An identifiable parameter's interval has at most this half-width, as a share of its value."""

NOT_TOLD = 1.0
"""A direction along which parameters may change by this share of their values is not told by the samples."""

ROUNDING = 1e-13
"""Eigenvalues below this share of the largest are zero but for rounding."""

TAKES_PART = 0.1
"""A parameter takes part in such a direction if its component is at least this large."""

LAGS = 3.0
"""L in correlation times."""

CLEARLY = 2.5
"""Residuals that are correlated over more samples are those of a model that misses something; less is chance."""

SHARE = 0.2
"""L is then at least this share of a run."""

TELLS = 0.05
"""A signal of a run with less of the information about every parameter says nothing of how sure they are."""

LEAKS = 0.01
"""A function of the parameters is told if such directions change it by less than this share of what their parts alone do."""

AT_BOUND = 1e-6
"""A parameter nearer to a bound than this share of its range sits there, and counts as fixed."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How sure the parameters of an estimation are.

    :param covariance: of the free parameters (p, p); NaN for those at bounds.
    :param intervals: confidence intervals by names; those at bounds have none.
    :param identifiable: names of the parameters that the samples determine.
    :param directions: in words, what they cannot tell.
    :param at_bounds: ``lower`` or ``upper`` by names.
    :param correlation_steps: L.
    :param freedom: degrees of freedom of Student's t.
    :param told: covariance without the directions that samples cannot tell (p, p); zero for those at bounds.
    :param loose: these directions, as changes of the parameters (p, l).
    """

    covariance: Array
    intervals: Mapping[str, tuple[float, float]]
    identifiable: tuple[str, ...]
    directions: tuple[str, ...]
    at_bounds: Mapping[str, str]
    correlation_steps: int
    freedom: float
    told: Array
    loose: Array

    def half_width(self, slope: Array, confidence: float = CONFIDENCE) -> float:
        """Half the interval of a function of the parameters with these derivatives (p,).

        NaN if a direction that the samples cannot tell changes it. Parameters that are not told may form a function that is.
        """
        if np.any(np.abs(slope @ self.loose) > LEAKS * (np.abs(slope) @ np.abs(self.loose))):
            return float("nan")
        variance = max(float(slope @ self.told @ slope), 0.0)
        return _quantile(confidence, self.freedom) * float(np.sqrt(variance))


def sensitivity(
    problem: EstimationProblem, point: Point, samples: GridSamples, chain: StateChain, confidence: float = CONFIDENCE
) -> Sensitivity:
    """Covariance and intervals at an optimum, around which the problem is ``chain``."""
    parameters = problem.mechanism.parameters
    at_bounds = bounds_reached(parameters, point.chi)
    inner = np.array([name not in at_bounds for name in parameters.free_names], bool)
    seen, pushed = answers(chain)
    scores = np.einsum("ksp,ks->kp", seen, chain.sample[..., -1]) + np.einsum(
        "kep,ke->kp", pushed, chain.offset
    )
    scores = scores[:, inner]
    information = np.einsum("ksp,ksr->pr", seen, seen) + np.einsum("kep,ker->pr", pushed, pushed)
    length = max(
        correlation_steps(scores, samples.linked),
        residual_steps(chain.sample[..., -1], seen[..., inner], samples),
    )
    scale = np.where(point.chi == 0.0, parameters.upper - parameters.lower, np.abs(point.chi))[inner]
    values, vectors = np.linalg.eigh(information[np.ix_(inner, inner)] * np.outer(scale, scale))
    noise = float(np.sqrt(np.mean(chain.sample[..., -1][samples.count > 0] ** 2)))
    loose = values * NOT_TOLD**2 < np.maximum(noise**2, ROUNDING * values.max(initial=1e-300))
    firm = vectors[:, ~loose]
    inverse = (firm / values[~loose]) @ firm.T * np.outer(scale, scale)
    meat, freedom = _spread(scores, samples, length, len(values))
    names = np.array(parameters.free_names)[inner]
    told, directions = np.zeros((len(inner), len(inner))), np.zeros((len(inner), int(loose.sum())))
    told[np.ix_(inner, inner)], directions[inner] = (
        inverse @ meat @ inverse,
        vectors[:, loose] * scale[:, None],
    )
    unknown = ~inner
    unknown[inner] = np.any(np.abs(vectors[:, loose]) >= TAKES_PART, axis=1)
    covariance = np.where(unknown | unknown[:, None], np.nan, told)
    half = _quantile(confidence, freedom) * np.sqrt(np.diag(covariance))
    ends = {
        name: (float(value - width), float(value + width))
        for name, value, width in zip(parameters.free_names, point.chi, half, strict=True)
        if np.isfinite(width)
    }
    words = tuple(_in_words(vectors[:, k], names) for k in np.flatnonzero(loose))
    narrow = tuple(name for name, (low, high) in ends.items() if high - low <= DETERMINED * abs(high + low))
    return Sensitivity(covariance, ends, narrow, words, at_bounds, length, freedom, told, directions)


def _quantile(confidence: float, freedom: float) -> float:
    return float(stats.t.ppf(0.5 + 0.5 * confidence, freedom))


def _spread(scores: Array, samples: GridSamples, length: int, parameters: int) -> tuple[Array, float]:
    """Long-run covariance of scores (N, p) that are correlated over at most ``length`` steps, and its degrees of freedom."""
    sizes = [run.stop - run.start for run in _runs(samples.linked)]
    apart = samples.count.size / max(float(np.sum(samples.count > 0)), 1.0)
    clear = length > CLEARLY * LAGS * apart
    windows = [max(length, round(SHARE * size)) if clear else length for size in sizes]
    share = min(max(windows) / len(scores), 1.0)
    left = min(float(np.sum(samples.count > 0)), len(scores) / max(length / LAGS, 1.0))
    freedom = max(left - parameters, 1.0)
    found = long_run(scores, samples.linked, windows) * (left / freedom) / (1.0 - share + share**2 / 3.0)
    return found, min(freedom, 1.5 * sum(size / window for size, window in zip(sizes, windows, strict=True)))


def answers(chain: StateChain) -> tuple[Array, Array]:
    """How weighted residuals of samples (N, ns, p) and impulses (N, e, p) answer to parameters, states being optimal."""
    states, pushes = response(chain, eliminate(chain))
    d, e, _ = chain.sizes
    seen = (
        chain.sample[..., :e] @ pushes + chain.sample[..., e : e + d] @ states + chain.sample[..., e + d : -1]
    )
    return seen, chain.weight[..., None] * pushes


def bounds_reached(parameters: ParameterSet, chi: Array) -> dict[str, str]:
    """Which free parameters sit at a bound: ``lower`` or ``upper``."""
    room = AT_BOUND * (parameters.upper - parameters.lower)
    found = {}
    for name, value, low, high, near in zip(
        parameters.free_names, chi, parameters.lower, parameters.upper, room, strict=True
    ):
        if value <= low + near:
            found[name] = "lower"
        elif value >= high - near:
            found[name] = "upper"
    return found


def long_run(scores: Array, linked: Flags, windows: Sequence[int]) -> Array:
    """Bartlett-weighted sum of the covariances of scores (N, p) within runs, up to a lag L for each run."""
    total = np.zeros((scores.shape[1], scores.shape[1]))
    for run, length in zip(_runs(linked), windows, strict=True):
        own = scores[run]
        total += own.T @ own
        for lag in range(1, min(length, len(own))):
            cross = own[lag:].T @ own[:-lag]
            total += (1.0 - lag / length) * (cross + cross.T)
    return total


def correlation_steps(scores: Array, linked: Flags) -> int:
    """Longest of the correlation lengths of the parameters' scores (N, p), in steps of the grid: 1 if they are white."""
    times = [correlation_time([scores[run, k] for run in _runs(linked)]) for k in range(scores.shape[1])]
    return _lag(max(times, default=1.0))


def residual_steps(residual: Array, seen: Array, samples: GridSamples) -> int:
    """Longest of the correlation lengths of signals' residuals (N, ns), in steps of the grid, at most a run's.

    :param seen: how they answer to the parameters (N, ns, p).
    """
    total = np.maximum(np.einsum("ksp,ksp->p", seen, seen), 1e-300)
    longest = 1
    for run in _runs(samples.linked):
        told = np.max(np.einsum("ksp,ksp->sp", seen[run], seen[run]) / total, axis=1, initial=0.0)
        for k in np.flatnonzero(told >= TELLS):
            here = samples.count[run, k] > 0
            apart = len(here) / here.sum()
            steps = _lag(correlation_time([residual[run, k][here]]))
            longest = max(longest, min(round(apart * steps), len(here)) if steps > 1 else 1)
    return longest


def _lag(time: float) -> int:
    return int(np.ceil(LAGS * time)) if LAGS * time > 3.5 else 1


def _runs(linked: Flags) -> list[slice]:
    ends = np.flatnonzero(~linked) + 1
    if not len(ends) or ends[-1] < len(linked):
        ends = np.append(ends, len(linked))
    return [slice(first, last) for first, last in zip(np.append(0, ends[:-1]), ends, strict=True)]


def correlation_time(runs: list[Array]) -> float:
    r"""Integrated correlation time :math:`1 + 2\sum\rho` of runs together, in samples, with Sokal's window of five of it; at least 1."""
    length = max(len(series) for series in runs)
    spectrum = sum(np.abs(np.fft.rfft(series, 2 * length)) ** 2 for series in runs)
    covariance = np.fft.irfft(spectrum)[:length]
    if covariance[0] <= 0.0:
        return 1.0
    sums = 2.0 * np.cumsum(covariance / covariance[0]) - 1.0
    window = np.flatnonzero(np.arange(length) >= 5.0 * sums)
    return float(max(sums[window[0] if len(window) else length - 1], 1.0))


def _in_words(vector: Array, names: Array) -> str:
    """A direction as relative changes of parameters."""
    vector = vector * np.sign(vector[np.argmax(np.abs(vector))])
    parts = [(c, n) for c, n in zip(vector, names, strict=True) if abs(c) >= TAKES_PART]
    return " ".join(f"{c:+.2f} {n}" for c, n in sorted(parts, key=lambda part: -abs(part[0])))
