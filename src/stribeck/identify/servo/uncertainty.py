"""Uncertainty of a fit, and what its data do not determine; equally good minima, and the parameters on which they disagree.

The loss is a mean absolute error, and most of the residual is smooth model error that repeats within a run. Samples are
therefore not independent. Runs are, or, if there are few runs, long blocks of them. The covariance is the sandwich over
these clusters (:mod:`stribeck.identify.common.clusters`): the bias-reduced form CR2 over runs if there are at least
:data:`RUNS_PER_PARAMETER` runs per parameter, else the leave-one-out form CR3 over blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stribeck.identify.common.clusters import ClusterCovariance, bias_reduced, leave_one_out
from stribeck.identify.common.correlation import correlation_time
from stribeck.identify.common.quantiles import estimate_about
from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.objective import EQUALLY_GOOD, equivalent_error
from stribeck.identify.servo.prediction import LeftOut, Model, prediction_of
from stribeck.identify.servo.prior import Prior
from stribeck.identify.servo.rollout import Rollout, Scores
from stribeck.model.arrays import Array, Mask
from stribeck.model.estimate import CONFIDENCE, Estimate, Interval, disagreements
from stribeck.model.joint import CorrelationMatrix, Member, Prediction
from stribeck.model.log import Batch, Log, TemperatureRange
from stribeck.model.parameters import ParameterSet
from stribeck.model.provenance import Minimum
from stribeck.model.step import batch_for
from stribeck.model.terms import CONSTANT_PARAMETERS, LOAD_PARAMETERS

RUNS_PER_PARAMETER = 3
"""With fewer runs per free parameter than this, the clusters are blocks of runs."""

SHORTEST_BLOCK = 1.0
"""Shortest length of a block [s]."""

HELD_BEYOND = 2.0
"""A parameter at a bound counts as fixed if it would otherwise exceed the bound by this many standard deviations."""


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of identified parameters.

    :param estimates: estimates of the free parameters.
    :param statements: what these data do not determine, in words.
    :param clusters: the unit assumed to be independent, in words.
    :param correlation: correlation of the parameters that are neither held at a bound nor rank-deficient.
    :param step_errors: error of each parameter due to the time step, in its unit (:func:`step_errors`).
    :param covariance: of the free parameters in the unit cube (n, n), zero for those held at a bound.
    :param prediction: predictive distribution of motions.
    """

    estimates: Mapping[str, Estimate]
    statements: tuple[str, ...]
    clusters: str
    correlation: CorrelationMatrix | None = None
    step_errors: Mapping[str, float] = field(default_factory=dict)
    covariance: Array | None = field(default=None, compare=False)
    prediction: Prediction | None = None

    @property
    def step_share(self) -> float:
        """Largest error due to the time step as a share of the half-width of the parameter's interval."""
        shares = [0.0]
        for name, (lower, upper) in self.intervals.items():
            value = self.estimates[name].value
            half = max(value - lower, upper - value)  # intervals of magnitudes end at 0
            if name in self.step_errors and half > 0.0:
                shares.append(abs(self.step_errors[name]) / half)
        return max(shares)

    @property
    def intervals(self) -> dict[str, Interval]:
        """Confidence interval of each parameter that has one, including wide ones."""
        return {name: one.interval for name, one in self.estimates.items() if one.interval is not None}

    @property
    def not_determined(self) -> dict[str, str]:
        """Parameters within their bounds that are loosely or not determined, with the reasons."""
        doubtful = ("loosely determined", "not determined")
        return {name: one.reason for name, one in self.estimates.items() if one.status in doubtful}

    @property
    def at_bounds(self) -> dict[str, str]:
        """Parameters at a search bound, with the side: ``lower`` or ``upper``."""
        return {name: one.side for name, one in self.estimates.items() if one.side is not None}


def estimate_uncertainty(rollout: Rollout, unit: Array, residual: Array) -> Uncertainty:
    """Confidence intervals at an optimum, parameters at bounds, and statements about what the data do not determine.

    :param unit: the optimum in the unit cube of the free parameters (n,).
    :param residual: simulated minus measured position there (T, R) [rad].
    """
    length = cluster_length(rollout, unit, residual)
    scores = rollout.scores(unit[None], length)
    found = estimated(rollout, unit, scores, 0, length)
    return replace(found, step_errors=_step_errors(rollout, unit, residual, scores, length))


def with_prediction(
    uncertainty: Uncertainty,
    rollout: Rollout,
    unit: Array,
    residual: Array,
    prior: Prior | None,
    left_out: LeftOut | None = None,
    members: Sequence[Member] = (),
) -> Uncertainty:
    """The uncertainty with the predictive distribution of motions around an optimum, or of an average (:mod:`stribeck.identify.servo.prediction`)."""
    if uncertainty.covariance is None:
        return uncertainty
    scores = rollout.scores(unit[None], cluster_length(rollout, unit, residual))
    model = Model(
        rollout.batch,
        rollout.actuator,
        rollout.law,
        rollout.parameters,
        rollout.integrator,
        rollout.reset_period,
    )
    prediction = prediction_of(
        model, unit, residual, scores, uncertainty.covariance, prior, left_out, members
    )
    if not np.all(np.isfinite([*prediction.factors.values()])):  # of a joint at rest
        return uncertainty
    return replace(uncertainty, prediction=prediction)


def _step_errors(
    rollout: Rollout, unit: Array, residual: Array, scores: Scores, length: float
) -> dict[str, float]:
    r"""Error of each parameter within its bounds due to the time step (found minus true), in the parameter's unit.

    With the motion at half the step and the same parameters in place of the simulated one, the gradient g of the loss
    changes by :math:`\Delta g`, and the optimum moves by :math:`-H^{-1}\Delta g`. A step of second order has 4/3 of that
    as its whole error, one of first order twice that.
    """
    parameters, batch = rollout.parameters, rollout.batch
    halved = batch_for(batch.logs, 0.5 * batch.dt, rollout.integrator)
    finer = rollout.motion(unit, halved).position[::2]
    change = finer - (batch.position + residual)
    moved = rollout.scores(unit[None], length, (batch.position - change)[None])
    bounded = parameters.sides(parameters.from_unit(unit))
    inner = np.array([name not in bounded for name in parameters.free_names])
    gradient = np.sum(moved.gradient[0] - scores.gradient[0], axis=(0, 1))[inner]
    hessian = np.sum(scores.curvature[0], axis=(0, 1))[inner][:, inner]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-30))
    shift = scale * (np.linalg.pinv(hessian * np.outer(scale, scale), rcond=1e-9) @ (scale * gradient))
    order = 4.0 / 3.0 if rollout.integrator == "exponential" else 2.0
    widths = (parameters.upper - parameters.lower)[inner]
    names = [name for name, free in zip(parameters.free_names, inner, strict=True) if free]
    return dict(zip(names, (order * shift * widths).tolist(), strict=True))


def cluster_length(rollout: Rollout, unit: Array, residual: Array) -> float:
    """Length of the clusters [s]: that of whole runs if there are enough of them."""
    batch = rollout.batch
    free = len(unit) - len(rollout.parameters.sides(rollout.parameters.from_unit(unit)))
    if len(batch.logs) >= RUNS_PER_PARAMETER * free:
        return len(batch.time) * batch.dt
    half = 0.5 * len(batch.time) * batch.dt
    return min(max(SHORTEST_BLOCK, batch.dt * correlation_time(residual.T)), half)


def estimated(rollout: Rollout, unit: Array, scores: Scores, point: int, length: float) -> Uncertainty:
    """The uncertainty at an optimum (n,), with the scores there.

    :param scores: at several points, of which it is the one with the index ``point``.
    :param length: of the clusters [s].
    """
    parameters, batch = rollout.parameters, rollout.batch
    at_bounds = parameters.sides(parameters.from_unit(unit))
    runs = len(batch.logs)
    by_run = length >= len(batch.time) * batch.dt
    clusters = f"{runs} runs" if by_run else f"blocks of {length:.2f} s of {runs} runs"
    bounded = np.array([name in at_bounds for name in parameters.free_names])
    inner, covariance = _covariance(scores, point, bounded, bias_reduced if by_run else leave_one_out)
    widths = np.zeros(len(bounded))
    widths[inner] = covariance.half_widths(CONFIDENCE)[: int(np.sum(inner))]
    whole = np.zeros((len(inner), len(inner)))
    whole[np.ix_(inner, inner)] = covariance.matrix
    held = bounded & ~(inner & np.array([at_bounds.get(name) == "upper" for name in parameters.free_names]))
    estimates = _estimates(parameters, unit, widths, held, together_in(batch.logs, parameters), clusters)
    chosen = [name for name, varies in zip(parameters.free_names, inner, strict=True) if varies]
    return Uncertainty(
        estimates=estimates,
        statements=_statements(batch, parameters, estimates),
        clusters=clusters,
        correlation=covariance.correlation(chosen) if chosen else None,
        covariance=whole,
    )


def _covariance(
    scores: Scores, point: int, bounded: Mask, covariance_of: Callable[[Array, Array], ClusterCovariance]
) -> tuple[Mask, ClusterCovariance]:
    """Mask of the parameters not held at a bound (n,), and their covariance.

    A parameter at a bound is held only if it would exceed the bound by more than :data:`HELD_BEYOND` standard
    deviations. Others may be there by chance, and the intervals of all parameters have to allow for that.
    """
    inner = np.ones(len(bounded), dtype=bool)
    gradient, curvature = clusters_of(scores, point, inner)
    covariance = covariance_of(gradient, curvature)
    if np.any(bounded):
        beyond = np.abs(np.linalg.pinv(np.sum(curvature, axis=0)) @ np.sum(gradient, axis=0))
        inner = ~(bounded & (beyond > HELD_BEYOND * np.sqrt(np.diag(covariance.matrix))))
        covariance = covariance_of(*clusters_of(scores, point, inner)) if np.any(inner) else covariance
    return inner, covariance


def clusters_of(scores: Scores, point: int, inner: Mask) -> tuple[Array, Array]:
    """Scores (G, n) and curvatures (G, n, n) of all clusters at one point, for the chosen parameters."""
    gradient, curvature = scores.gradient[point], scores.curvature[point]
    size = gradient.shape[-1]
    gradient = gradient.reshape(-1, size)[:, inner]
    curvature = curvature.reshape(-1, size, size)[:, inner][:, :, inner]
    present = np.any(gradient != 0.0, axis=1)
    present |= not present.any()  # no parameter moves anything
    return gradient[present], curvature[present]


def one_load(logs: Sequence[Log]) -> bool:
    """Whether all runs have the same load."""
    return len({round(log.setup.load, 6) for log in logs}) < 2


def together_in(logs: Sequence[Log], parameters: ParameterSet) -> frozenset[str]:
    """Constant and load-dependent friction, which runs of one load determine only together; empty if they carry several."""
    split = {name for name in parameters.free_names if name in (*CONSTANT_PARAMETERS, *LOAD_PARAMETERS)}
    return frozenset() if split.isdisjoint(LOAD_PARAMETERS) or not one_load(logs) else frozenset(split)


def _estimates(
    parameters: ParameterSet, unit: Array, widths: Array, held: Mask, together: frozenset[str], clusters: str
) -> dict[str, Estimate]:
    """Estimates of the free parameters.

    :param widths: half-widths of the intervals in the unit cube (n,).
    :param held: parameters at a bound of which the interval says nothing (n,): those that would exceed it by more than chance
        explains, and terms at their lower bound, which may be absent.
    """
    estimates = {}
    values = parameters.from_unit(unit).tolist()
    each = zip(parameters.free, widths.tolist(), held.tolist(), values, strict=True)
    for parameter, width, stays, value in each:
        name, bounds = parameter.name, (parameter.lower, parameter.upper)
        half = width * (parameter.upper - parameter.lower)
        reason = f"some combination of it with others has no effect on the motion ({clusters})"
        if name in together:
            half = np.inf
            reason = "one load only: constant and load-dependent friction cannot be distinguished"
        estimates[name] = estimate_about(
            value, parameter.unit, half, bounds=bounds, confidence=CONFIDENCE, reason=reason, held=stays
        )
    return estimates


def _statements(batch: Batch, parameters: ParameterSet, estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    statements, together = [], together_in(batch.logs, parameters)
    setups = [log.setup for log in batch.logs]
    if one_load(batch.logs):
        statements.append(
            f"All runs have the same load ({setups[0].load:.4g} kg m): the division into constant and "
            "load-dependent friction is not determined. Record a second mass or rod length."
        )
    if len({setup.kp for setup in setups}) < 2:
        statements.append(
            f"All runs have the same gain ({setups[0].kp:g}): errors at other gains are unknown. Record further gains."
        )
    measured = TemperatureRange.of(batch.logs)
    if "friction_per_kelvin" in parameters and measured and not measured.varies:
        statements.append(
            f"{measured.words}: changes with temperature are not determined. Record a cold and a warm servo."
        )
    for status in ("not determined", "loosely determined"):
        reasons = [
            f"{name} ({one.reason.removeprefix('loosely, ')})"
            for name, one in estimates.items()
            if one.status == status and name not in together
        ]
        if reasons:
            statements.append(f"{status.capitalize()}: {'; '.join(reasons)}.")
    for name, one in estimates.items():
        if one.side is not None:
            parameter = parameters[name]
            reason = (
                "this term may be absent"
                if (parameter.lower if one.side == "lower" else parameter.upper) == 0.0
                else "the best value may lie beyond the bound, or the law lacks a term"
            )
            statements.append(f"{name} is {one.reason}: {reason}.")
    return tuple(statements)


DISTINCT = 1e-3
"""Points of the unit cube closer than this along every axis count as the same."""

MOST_MINIMA = 12
"""Largest number of minima kept."""


def equally_good(parameters: ParameterSet, best: Array, incumbent: Incumbent) -> tuple[Minimum, ...]:
    """The best point (n,) of the unit cube, then the other minima that fit as well, the better first.

    Searches that ran out of evaluations have no minima; then the result is the best point alone.
    """
    kept = [best]
    losses = [incumbent.loss]
    for loss, point in sorted(incumbent.minima, key=lambda found: found[0]):
        if loss > incumbent.loss * (1.0 + EQUALLY_GOOD) or len(kept) == MOST_MINIMA:
            break
        if np.min(np.max(np.abs(np.stack(kept) - point), axis=1)) > DISTINCT:
            kept.append(point)
            losses.append(loss)
    return tuple(
        Minimum(
            error=float(equivalent_error(loss)),
            values=dict(zip(parameters.free_names, parameters.from_unit(point).tolist(), strict=True)),
        )
        for loss, point in zip(losses, kept, strict=True)
    )


def with_minima(uncertainty: Uncertainty, parameters: ParameterSet, minima: Sequence[Minimum]) -> Uncertainty:
    """The uncertainty, with all parameters on which equally good minima disagree marked as doubtful.

    An interval around one minimum does not cover another one elsewhere.
    """
    bounds = {parameter.name: (parameter.lower, parameter.upper) for parameter in parameters.free}
    reasons = {
        name: f"minima with the same error lie between {lowest:.3g} and {highest:.3g} {parameters[name].unit}"
        for name, (lowest, highest) in disagreements(bounds, [minimum.values for minimum in minima]).items()
        if uncertainty.estimates[name].known
    }
    if not reasons:
        return uncertainty
    undetermined = {
        name: uncertainty.estimates[name].undetermined(reason) for name, reason in reasons.items()
    }
    listed = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
    return replace(
        uncertainty,
        estimates={**uncertainty.estimates, **undetermined},
        statements=(*uncertainty.statements, f"Not determined, although the interval is narrow: {listed}."),
    )
