r"""How sure a fit is, and what its data cannot tell.

The loss is a mean absolute error and what is left of it is smooth model error that repeats within a
run. Samples are therefore not independent; runs are (or, with few runs, long blocks of them). The
covariance is the sandwich

.. math:: C = \sum_g d_g d_g^T, \qquad d_g = A_g^{-1} s_g

over clusters g, with the score :math:`s_g` and curvature :math:`B_g` that cluster g contributes to
the loss that was minimised, and :math:`H = \sum_g B_g`:

- clusters of runs, with at least three runs per parameter: the bias-reduced form CR2,
  :math:`d_g = H^{-1/2}(I - M_g)^{-1/2}H^{-1/2}s_g`, :math:`M_g = H^{-1/2}B_gH^{-1/2}`, and
  Student's t with the degrees of freedom of Bell and McCaffrey per parameter;
- blocks of runs otherwise: leave one block out (CR3), :math:`A_g = H - B_g`, and Student's t with as
  many degrees of freedom as there are blocks more than parameters.

Sources: Bell and McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage
samples", Survey Methodology 28 (2002); Pustejovsky and Tipton, "Small-sample methods for
cluster-robust variance estimation", JBES 36 (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from stribeck.core.friction import CONSTANT_TERMS, LOAD_TERMS
from stribeck.core.log import Batch
from stribeck.core.parameters import Parameter, ParameterSet, loosest
from stribeck.fit.rollout import Rollout, Scores

FloatArray = npt.NDArray[np.float64]

CONFIDENCE = 0.95
"""Level of the intervals."""

RUNS_PER_PARAMETER = 3
"""With fewer runs per free parameter, blocks of runs are the clusters."""

SHORTEST_BLOCK = 1.0
"""Blocks are at least this long [s]."""

AT_BOUND = 1e-3
"""A parameter closer to a search bound than this share of the range sits at it."""

HELD_BEYOND = 2.0
"""A parameter at a bound counts as fixed if it would go beyond it by so many standard deviations."""

RANKLESS = 1e-7
"""Directions whose scaled curvature is below this share of the largest one have no rank."""


@dataclass(frozen=True)
class Uncertainty:
    """What is known about identified parameters.

    :param intervals: confidence interval of each parameter that has one, wide ones included.
    :param not_determined: free parameters within their bounds that are known loosely or not at all, and
        why.
    :param at_bounds: parameters at a search bound: ``lower`` or ``upper``.
    :param statements: what these data cannot tell, in words.
    :param clusters: what was taken as independent, in words.
    :param correlation: of the parameters that the data neither hold at a bound nor leave without rank.
    """

    intervals: Mapping[str, tuple[float, float]]
    not_determined: Mapping[str, str]
    at_bounds: Mapping[str, str]
    statements: tuple[str, ...]
    clusters: str
    correlation: Correlation | None = None


@dataclass(frozen=True)
class Correlation:
    """Correlation of n estimated parameters, (n, n)."""

    names: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of n parameters in the unit cube.

    :param matrix: (n, n).
    :param freedom: degrees of freedom of Student's t per parameter (n,).
    :param rankless: whether a parameter takes part in a direction without rank (n,).
    """

    matrix: FloatArray
    freedom: FloatArray
    rankless: npt.NDArray[np.bool_]

    def half_widths(self, confidence: float) -> FloatArray:
        """Half-widths of the intervals in the unit cube (n,); infinite without rank."""
        quantile = stats.t.ppf(0.5 * (1.0 + confidence), self.freedom)
        width = quantile * np.sqrt(np.diag(self.matrix))
        return np.where(self.rankless, np.inf, width)

    def correlation(self, names: Sequence[str]) -> Correlation | None:
        """Correlation of the parameters (n,) that have a variance; none of fewer than two."""
        variance = np.diag(self.matrix)
        kept = np.flatnonzero((variance > 0.0) & ~self.rankless)
        if len(kept) < 2:
            return None
        deviation = np.sqrt(variance[kept])
        matrix = np.clip(self.matrix[np.ix_(kept, kept)] / np.outer(deviation, deviation), -1.0, 1.0)
        return Correlation(
            tuple(names[k] for k in kept.tolist()), tuple(tuple(row) for row in np.round(matrix, 4).tolist())
        )


def estimate_uncertainty(
    rollout: Rollout, unit: FloatArray, residual: FloatArray, confidence: float = CONFIDENCE
) -> Uncertainty:
    """Intervals at an optimum, what sits at a bound, and what the data cannot tell.

    :param unit: the optimum in the unit cube of the free parameters (n,).
    :param residual: simulated minus measured position there (T, R) [rad].
    """
    length = _cluster_length(rollout, unit, residual)
    return _estimated(rollout, unit, rollout.scores(unit[None], length), 0, length, confidence)


def estimate_at_points(
    rollout: Rollout, points: FloatArray, measured: FloatArray, confidence: float = CONFIDENCE
) -> list[Uncertainty]:
    """Uncertainties of many fits to recordings of the same commands, side by side.

    :param points: the optima (S, n).
    :param measured: the measured positions of each (S, T, R) [rad].
    """
    length = _cluster_length(rollout, points[0], measured[0] - np.mean(measured, axis=0))
    scores = rollout.scores(points, length, measured)
    return [_estimated(rollout, point, scores, k, length, confidence) for k, point in enumerate(points)]


def _by_run(rollout: Rollout, unit: FloatArray) -> bool:
    free = len(unit) - len(found_at_bounds(rollout.parameters, unit))
    return len(rollout.batch.logs) >= RUNS_PER_PARAMETER * free


def _cluster_length(rollout: Rollout, unit: FloatArray, residual: FloatArray) -> float:
    """Length of the clusters [s]: whole runs where there are enough of them."""
    batch = rollout.batch
    if _by_run(rollout, unit):
        return len(batch.time) * batch.dt
    half = 0.5 * len(batch.time) * batch.dt
    return min(max(SHORTEST_BLOCK, correlation_time(residual, batch.dt)), half)


def _estimated(
    rollout: Rollout, unit: FloatArray, scores: Scores, point: int, length: float, confidence: float
) -> Uncertainty:
    parameters, batch = rollout.parameters, rollout.batch
    at_bounds = found_at_bounds(parameters, unit)
    runs = len(batch.logs)
    by_run = length >= len(batch.time) * batch.dt
    clusters = f"{runs} runs" if by_run else f"blocks of {length:.2f} s of {runs} runs"
    bounded = np.array([name in at_bounds for name in parameters.free_names])
    inner, covariance = _covariance(scores, point, bounded, bias_reduced if by_run else leave_one_out)
    widths = np.zeros(len(bounded))
    widths[inner] = covariance.half_widths(confidence)[: int(np.sum(inner))]
    intervals, not_determined = _sorted(parameters, unit, widths, at_bounds, _one_load(batch), clusters)
    return Uncertainty(
        intervals=intervals,
        not_determined=not_determined,
        at_bounds=at_bounds,
        statements=_statements(batch, parameters, not_determined, at_bounds),
        clusters=clusters,
        correlation=covariance.correlation(
            [name for name, varies in zip(parameters.free_names, inner, strict=True) if varies]
        )
        if np.any(inner)
        else None,
    )


def _covariance(
    scores: Scores,
    point: int,
    bounded: npt.NDArray[np.bool_],
    covariance_of: Callable[[FloatArray, FloatArray], Covariance],
) -> tuple[npt.NDArray[np.bool_], Covariance]:
    """The parameters that the data do not hold at a bound (n,), and the covariance of those.

    Of the parameters at a bound only those are held that would go beyond it by more than
    :data:`HELD_BEYOND` standard deviations. Chance alone may have put the others there; the intervals
    of all others then have to allow for it.
    """
    inner = np.ones(len(bounded), dtype=bool)
    gradient, curvature = clusters_of(scores, point, inner)
    covariance = covariance_of(gradient, curvature)
    if np.any(bounded):
        beyond = np.abs(np.linalg.pinv(np.sum(curvature, axis=0)) @ np.sum(gradient, axis=0))
        inner = ~(bounded & (beyond > HELD_BEYOND * np.sqrt(np.diag(covariance.matrix))))
        covariance = covariance_of(*clusters_of(scores, point, inner)) if np.any(inner) else covariance
    return inner, covariance


def found_at_bounds(parameters: ParameterSet, unit: FloatArray) -> dict[str, str]:
    """Free parameters that sit at a search bound: ``lower`` or ``upper``."""
    return {
        name: "lower" if position < 0.5 else "upper"
        for name, position in zip(parameters.free_names, unit.tolist(), strict=True)
        if min(position, 1.0 - position) < AT_BOUND
    }


def clusters_of(scores: Scores, point: int, inner: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Scores (G, n) and curvatures (G, n, n) of all clusters at one point, of the chosen parameters."""
    gradient, curvature = scores.gradient[point], scores.curvature[point]
    size = gradient.shape[-1]
    gradient = gradient.reshape(-1, size)[:, inner]
    curvature = curvature.reshape(-1, size, size)[:, inner][:, :, inner]
    present = np.any(gradient != 0.0, axis=1)
    return gradient[present], curvature[present]


def leave_one_out(scores: FloatArray, curvatures: FloatArray) -> Covariance:
    """CR3 covariance: how far the optimum moves when one cluster after the other is left out.

    :param scores: s (G, n).
    :param curvatures: B (G, n, n).
    """
    groups, size = scores.shape
    if groups <= size:
        return Covariance(np.zeros((size, size)), np.ones(size), np.ones(size, dtype=bool))
    whitening = _Whitening.of(curvatures)
    variance, axes = np.linalg.eigh(whitening.leverage)
    moved = np.einsum("gij,gj,gkj,gk->gi", axes, _kept(variance) ** -1.0, axes, whitening.scores(scores))
    matrix = (groups - 1) / groups * moved.T @ moved
    freedom = np.full(size, float(groups - size))
    return Covariance(whitening.back(matrix), np.maximum(freedom, 1.0), whitening.rankless)


def bias_reduced(scores: FloatArray, curvatures: FloatArray) -> Covariance:
    """CR2 covariance with the degrees of freedom of Bell and McCaffrey.

    :param scores: s (G, n).
    :param curvatures: B (G, n, n).
    """
    whitening = _Whitening.of(curvatures)
    variance, axes = np.linalg.eigh(whitening.leverage)
    kept = _kept(variance)
    moved = np.einsum("gij,gj,gkj,gk->gi", axes, kept**-0.5, axes, whitening.scores(scores))
    # Per parameter c: a_g with a_g'a_g = c'(I - M_g)^-1 M_g c and X_g'a_g = M_g (I - M_g)^-1/2 c.
    contrast = whitening.contrasts
    along = np.einsum("gki,kc->gic", axes, contrast)
    norms = np.einsum("gic,gi,gic->cg", along, variance / kept, along)
    shared = np.einsum("gik,gk,gkc->cgi", axes, variance * kept**-0.5, along)
    overlap = -np.einsum("cgi,chi->cgh", shared, shared)
    groups = np.arange(len(scores))
    overlap[:, groups, groups] += norms
    # The ratio has no scale; a parameter next to no rank has figures whose squares would overflow.
    overlap /= np.maximum(np.abs(overlap).max(axis=(1, 2), keepdims=True), 1e-300)
    trace = np.einsum("cgg->c", overlap)
    freedom = trace**2 / np.maximum(np.einsum("cgh,cgh->c", overlap, overlap), 1e-300)
    return Covariance(whitening.back(moved.T @ moved), np.maximum(freedom, 1.0), whitening.rankless)


@dataclass(frozen=True, eq=False)
class _Whitening:
    """Coordinates in which the whole curvature H is the identity, without directions of no rank.

    :param forward: H^{-1/2} restricted to directions with rank (k, n).
    :param leverage: M_g (G, k, k).
    :param rankless: parameters that take part in a direction without rank (n,).
    """

    forward: FloatArray
    leverage: FloatArray
    rankless: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, curvatures: FloatArray) -> _Whitening:
        total = np.sum(curvatures, axis=0)
        scale = np.sqrt(np.maximum(np.diag(total), 1e-300))
        values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
        ranked = values > RANKLESS * values[-1]
        forward = (vectors[:, ranked] / np.sqrt(values[ranked])).T / scale
        blind = np.diag(total) <= 0.0
        rankless = np.any(np.abs(vectors[:, ~ranked]) > 0.1, axis=1) | blind
        leverage = np.einsum("ki,gij,lj->gkl", forward, curvatures, forward)
        return cls(forward, leverage, rankless)

    def scores(self, scores: FloatArray) -> FloatArray:
        return scores @ self.forward.T

    @property
    def contrasts(self) -> FloatArray:
        """Each parameter's direction (k, n)."""
        return self.forward

    def back(self, matrix: FloatArray) -> FloatArray:
        """A covariance in the parameters' own coordinates (n, n)."""
        return self.forward.T @ matrix @ self.forward


def _kept(leverage: FloatArray) -> FloatArray:
    """What a cluster leaves to the others, 1 - leverage, bounded away from nothing."""
    return np.maximum(1.0 - leverage, 1e-6)


def correlation_time(residual: FloatArray, dt: float) -> float:
    """Time within which residuals (T, R) are alike [s]: twice the integral of their autocorrelation up
    to its first zero.
    """
    centred = residual - np.mean(residual, axis=0)
    length = len(centred)
    spectrum = np.fft.rfft(centred, n=2 * length, axis=0)
    correlation = np.sum(np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:length], axis=1)
    if correlation[0] <= 0.0:
        return 0.0
    negative = np.flatnonzero(correlation <= 0.0)
    end = int(negative[0]) if negative.size else length
    return float(2.0 * dt * np.sum(correlation[:end]) / correlation[0])


def _one_load(batch: Batch) -> bool:
    return len({round(log.setup.load, 6) for log in batch.logs}) < 2


def _sorted(
    parameters: ParameterSet,
    unit: FloatArray,
    widths: FloatArray,
    at_bounds: Mapping[str, str],
    one_load: bool,
    clusters: str,
) -> tuple[dict[str, tuple[float, float]], dict[str, str]]:
    """Intervals, and the parameters that are not determined with the reasons."""
    split = {name for name in parameters.free_names if name in (*CONSTANT_TERMS, *LOAD_TERMS)}
    unsplit = one_load and not split.isdisjoint(LOAD_TERMS)
    intervals, reasons = {}, {}
    for parameter, width, value in zip(parameters.free, widths, parameters.from_unit(unit), strict=True):
        span = parameter.upper - parameter.lower
        half = float(width) * span
        if parameter.name in at_bounds:
            continue
        if unsplit and parameter.name in split:
            reasons[parameter.name] = "one load only: constant and load-dependent friction are not told apart"
        elif not np.isfinite(half):
            reasons[parameter.name] = f"a direction of it leaves the motion unchanged ({clusters})"
        else:
            intervals[parameter.name] = (float(value) - half, float(value) + half)
            if half > loosest(float(value), span):
                reasons[parameter.name] = _wide(parameter, float(value), half)
    return intervals, reasons


def _wide(parameter: Parameter, value: float, half: float) -> str:
    lower, upper = max(value - half, parameter.lower), min(value + half, parameter.upper)
    if (lower, upper) == (parameter.lower, parameter.upper):
        return "could be anything within its search bounds"
    unit = "" if parameter.unit == "1" else f" {parameter.unit}"
    return f"loosely, between {lower:.3g} and {upper:.3g}{unit}"


def _statements(
    batch: Batch,
    parameters: ParameterSet,
    not_determined: Mapping[str, str],
    at_bounds: Mapping[str, str],
) -> tuple[str, ...]:
    """What these data cannot tell."""
    found = []
    setups = [log.setup for log in batch.logs]
    if _one_load(batch):
        found.append(
            f"All runs carry one load ({setups[0].load:.4g} kg m): the split between constant and load-dependent "
            "friction is not determined. Record a second mass or rod length."
        )
    if len({setup.kp for setup in setups}) < 2:
        found.append(
            f"All runs have one gain ({setups[0].kp:g}): errors at other gains are not known. Record more gains."
        )
    wide = [name for name in not_determined if "one load" not in not_determined[name]]
    if wide:
        found.append(f"Not determined: {_listed(wide, not_determined)}.")
    for name, side in at_bounds.items():
        parameter = parameters[name]
        bound = parameter.lower if side == "lower" else parameter.upper
        reason = (
            "this term may be absent"
            if bound == 0.0
            else "the best value may lie beyond it, or the law lacks something"
        )
        unit = "" if parameter.unit == "1" else f" {parameter.unit}"
        found.append(f"{name} sits at its {side} search bound {bound:g}{unit}: {reason}.")
    return tuple(found)


def _listed(names: Sequence[str], reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name} ({reasons[name]})" for name in names)
