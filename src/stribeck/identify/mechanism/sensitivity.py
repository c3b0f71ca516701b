r"""Uncertainty of estimated parameters: covariance with model error, and directions that the samples do not determine.

At the optimum the states depend on the parameters by :math:`\delta x = X\,\delta\chi` (:mod:`stribeck.identify.mechanism.chain`).
Weighted residuals z have the derivatives :math:`D_k = A_kX_k + N_kX_{k+1} + P_k`, and the information matrix is :math:`S = \sum
D_k^TD_k`. Parameter errors are :math:`S^{-1}\sum_k u_k` with the scores :math:`u_k = D_k^Tz_k`.

**Model error** is smooth in time, so that samples are not independent. The covariance is the sandwich :math:`S^{-1}\Gamma
S^{-1}` with the long-run covariance :math:`\Gamma` of the scores (:func:`~stribeck.identify.common.correlation.long_run_covariance`).
Its window L is :data:`LAGS` times the longest correlation time of the scores and of those signal residuals of a run that
contribute at least :data:`INFORMS` of the information about some parameter. White residuals have L = 1. If the correlation time
exceeds :data:`CLEARLY` samples, L is at least the fraction :data:`SHARE` of each run, because scores sum to zero at an optimum,
which hides slow model errors. Such a long window underestimates :math:`\Gamma` by the factor :math:`1 - b + b^2/3`, :math:`b =
L/N`, which is corrected. Intervals use Student's t with 1.5 degrees of freedom per window (for one run those of Kiefer and
Vogelsang 2005, Bartlett kernel), or with the number of correlation times minus the number of parameters, if that is smaller.

**Directions.** Eigenvectors of S, relative to the values, with a predicted standard deviation above :data:`UNDETERMINED` are
reported as undetermined, and so are the parameters that contribute to one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stribeck.identify.common.correlation import correlation_time, long_run_covariance
from stribeck.identify.common.quantiles import estimate_about, half_widths, student_quantile
from stribeck.identify.mechanism.chain import Flags, StateChain, eliminate, response
from stribeck.identify.mechanism.problem import EstimationProblem, GridSamples, Point
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, Interval, Side

UNDETERMINED = 1.0
"""Standard deviation, relative to the parameter values, above which a direction is not determined."""

ROUNDING = 1e-13
"""Eigenvalues below this fraction of the largest are rounding errors."""

TAKES_PART = 0.1
"""A parameter takes part in a direction if its component is at least this large."""

LAGS = 3.0
"""Window L in correlation times."""

CLEARLY = 2.5
"""Correlation times above this number of samples indicate model error; shorter ones are due to chance."""

SHARE = 0.2
"""L is then at least this fraction of a run."""

INFORMS = 0.05
"""Signals of a run with a smaller fraction of the information about every parameter do not affect L."""

LEAKS = 0.01
"""Tolerance for a determined function: largest change by an undetermined direction, relative to its components."""

TOGETHER = "the samples determine only a combination of it with other parameters"
"""Why a parameter has no interval."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Uncertainty of the free parameters of an estimation.

    :param estimates: values, intervals and status by name.
    :param covariance: of the free parameters (p, p); NaN for those at bounds and in undetermined directions.
    :param directions: descriptions of the undetermined directions.
    :param correlation_steps: L.
    :param freedom: degrees of freedom of Student's t.
    :param determined: covariance without the undetermined directions (p, p); zero for parameters at bounds.
    :param loose: the undetermined directions, as changes of the parameters (p, l).
    """

    estimates: Mapping[str, Estimate]
    covariance: Array
    directions: tuple[str, ...]
    correlation_steps: int
    freedom: float
    determined: Array
    loose: Array

    @property
    def intervals(self) -> dict[str, Interval]:
        """Intervals by name, for the parameters that have one."""
        return {name: one.interval for name, one in self.estimates.items() if one.interval is not None}

    @property
    def identifiable(self) -> tuple[str, ...]:
        """Names of the parameters that the samples determine, even if only loosely."""
        return tuple(name for name, one in self.estimates.items() if one.known)

    @property
    def at_bounds(self) -> dict[str, Side]:
        """Active bound, by name, of the parameters at a bound."""
        return {name: one.side for name, one in self.estimates.items() if one.side is not None}

    def half_width(self, slope: Array) -> float:
        """Half-width of the interval of a function of the parameters with derivatives (p,); NaN if undetermined.

        A function of undetermined parameters may itself be determined.
        """
        if np.any(np.abs(slope @ self.loose) > LEAKS * (np.abs(slope) @ np.abs(self.loose))):
            return float("nan")
        variance = max(float(slope @ self.determined @ slope), 0.0)
        return float(student_quantile(self.freedom) * np.sqrt(variance))


def sensitivity(
    problem: EstimationProblem, point: Point, samples: GridSamples, chain: StateChain
) -> Sensitivity:
    """Uncertainty at an optimum ``point``, where ``chain`` is the linearised problem."""
    parameters = problem.mechanism.parameters
    sides = parameters.sides(point.chi)
    inner = np.array([name not in sides for name in parameters.free_names], bool)
    seen, pushed = answers(chain)
    scores = np.einsum("ksp,ks->kp", seen, chain.sample[..., -1])
    scores = (scores + np.einsum("kep,ke->kp", pushed, chain.offset))[:, inner]
    information = np.einsum("ksp,ksr->pr", seen, seen) + np.einsum("kep,ker->pr", pushed, pushed)
    length = max(
        correlation_steps(scores, samples.linked),
        residual_steps(chain.sample[..., -1], seen[..., inner], samples),
    )
    scale = np.where(point.chi == 0.0, parameters.upper - parameters.lower, np.abs(point.chi))[inner]
    values, vectors = np.linalg.eigh(information[np.ix_(inner, inner)] * np.outer(scale, scale))
    noise = float(np.sqrt(np.mean(chain.sample[..., -1][samples.count > 0] ** 2)))
    loose = values * UNDETERMINED**2 < np.maximum(noise**2, ROUNDING * values.max(initial=1e-300))
    firm = vectors[:, ~loose]
    inverse = (firm / values[~loose]) @ firm.T * np.outer(scale, scale)
    meat, freedom = _spread(scores, samples, length)
    determined, directions = np.zeros((len(inner), len(inner))), np.zeros((len(inner), int(loose.sum())))
    determined[np.ix_(inner, inner)] = inverse @ meat @ inverse
    directions[inner] = vectors[:, loose] * scale[:, None]
    unknown = ~inner
    unknown[inner] = np.any(np.abs(vectors[:, loose]) >= TAKES_PART, axis=1)
    covariance = np.where(unknown | unknown[:, None], np.nan, determined)
    names = np.array(parameters.free_names)[inner]
    words = tuple(_in_words(vectors[:, k], names) for k in np.flatnonzero(loose))
    half = half_widths(determined, freedom, unknown)
    estimates = {
        one.name: estimate_about(value, one.unit, width, bounds=(one.lower, one.upper), reason=TOGETHER)
        for one, value, width in zip(parameters.free, point.chi.tolist(), half.tolist(), strict=True)
    }
    return Sensitivity(estimates, covariance, words, length, freedom, determined, directions)


def _spread(scores: Array, samples: GridSamples, length: int) -> tuple[Array, float]:
    """Long-run covariance, and its degrees of freedom, of scores (N, p) correlated over at most ``length`` steps."""
    runs = run_slices(samples.linked)
    sizes = [run.stop - run.start for run in runs]
    apart = samples.count.size / max(float(np.sum(samples.count > 0)), 1.0)
    clear = length > CLEARLY * LAGS * apart
    windows = [max(length, round(SHARE * size)) if clear else length for size in sizes]
    share = min(max(windows) / len(scores), 1.0)
    independent = min(float(np.sum(samples.count > 0)), len(scores) / max(length / LAGS, 1.0))
    freedom = max(independent - scores.shape[1], 1.0)
    total = long_run_covariance(scores, runs, windows)
    total = total * (independent / freedom) / (1.0 - share + share**2 / 3.0)
    return total, min(freedom, 1.5 * sum(size / window for size, window in zip(sizes, windows, strict=True)))


def answers(chain: StateChain) -> tuple[Array, Array]:
    """Derivatives of the weighted residuals of samples (N, ns, p) and impulses (N, e, p) with optimal states."""
    states, pushes = response(chain, eliminate(chain))
    d, e, _ = chain.sizes
    seen = chain.sample[..., :e] @ pushes + chain.sample[..., e : e + d] @ states
    return seen + chain.sample[..., e + d : -1], chain.weight[..., None] * pushes


def correlation_steps(scores: Array, linked: Flags) -> int:
    """Longest window of the scores (N, p) [grid steps]; 1 if they are white."""
    runs = run_slices(linked)
    return max((_window([column[run] for run in runs]) for column in scores.T), default=1)


def residual_steps(residual: Array, seen: Array, samples: GridSamples) -> int:
    """Longest window of the signal residuals (N, ns) [grid steps], at most the length of a run.

    :param seen: derivatives of the residuals with respect to the parameters (N, ns, p).
    """
    total = np.maximum(np.einsum("ksp,ksp->p", seen, seen), 1e-300)
    longest = 1
    for run in run_slices(samples.linked):
        share = np.max(np.einsum("ksp,ksp->sp", seen[run], seen[run]) / total, axis=1, initial=0.0)
        for k in np.flatnonzero(share >= INFORMS):
            here = samples.count[run, k] > 0
            steps = _window([residual[run, k][here]])
            longest = max(longest, min(round(len(here) / here.sum() * steps), len(here)) if steps > 1 else 1)
    return longest


def _window(series: list[Array]) -> int:
    """Window L of a signal in several runs [samples]."""
    lags = LAGS * max(correlation_time(series, "self-consistent", centred=False), 1.0)
    return int(np.ceil(lags)) if lags > 3.5 else 1


def run_slices(linked: Flags) -> list[slice]:
    """Slice of each run, from whether step k + 1 belongs to the same run as step k (N,)."""
    ends = np.flatnonzero(~linked) + 1
    if not len(ends) or ends[-1] < len(linked):
        ends = np.append(ends, len(linked))
    return [slice(first, last) for first, last in zip(np.append(0, ends[:-1]), ends, strict=True)]


def _in_words(vector: Array, names: Array) -> str:
    """Describe a direction as relative changes of parameters."""
    vector = vector * np.sign(vector[np.argmax(np.abs(vector))])
    parts = [(c, n) for c, n in zip(vector, names, strict=True) if abs(c) >= TAKES_PART]
    return " ".join(f"{c:+.2f} {n}" for c, n in sorted(parts, key=lambda part: -abs(part[0])))
