r"""Predictive distribution of a motion: uncertain parameters, and the model's error.

Around the simulated motion :math:`y(t;\hat\theta)` the measured one has the variance

.. math:: s^2(t) = \kappa^2 (s_\theta^2(t) + s_m^2(t) + \sigma^2)

with :math:`s_m` the spread of the motions of other fits that predict about as well, if a comparison of laws has kept some: then
:math:`y` is the mean of all (:mod:`stribeck.identify.servo.averaging`); :math:`s_\theta` the spread of motions whose parameters are drawn from :math:`N(\hat\theta, C)` within their bounds,
and an error of the model that is a first-order autoregressive process with the standard deviation :math:`\sigma` and the
correlation time of the residuals of the fit. The factor :math:`\kappa` is that with which the bands cover
:data:`COVERAGE` of the samples: of the fitted runs for recorded conditions, of one more gain, load or trajectory for new
ones (:func:`factor_of_one_more`). A gain or load above the recorded ones has a factor of its own, from fits to lower ones
only, that grows with the distance (:func:`factor_of`). For the latter, the runs of each known condition are predicted by fits without them: by
the whole fits of the choice of the law where there was one, otherwise by damped Newton steps from the optimum with the
derivatives of the runs that remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.identify.common.correlation import correlation_time
from stribeck.identify.servo.conditions import KINDS, kinds_of, one_more
from stribeck.identify.servo.objective import smooth_absolute
from stribeck.model.actuator import Actuator
from stribeck.model.arrays import Array, Mask
from stribeck.model.joint import Drive, Member, Prediction
from stribeck.model.law import FrictionLaw, law_named
from stribeck.model.log import Batch, Log
from stribeck.model.parameters import ParameterSet
from stribeck.model.step import Integrator, simulate

if TYPE_CHECKING:
    from stribeck.identify.servo.prior import Prior
    from stribeck.identify.servo.rollout import Scores


class Mixed(NamedTuple):
    """Mean (T, R) [rad] and variance (T, R) [rad²] of the positions of some fits."""

    mean: Array
    variance: Array

    def about(self, position: Array) -> Array:
        """Mean squared distance from a position (T, R) [rad²]."""
        return np.asarray(self.variance + (self.mean - position) ** 2)


def mixed(best: Array, others: Array, weights: Array) -> Mixed:
    """Mean and variance of motions.

    :param best: positions of the best fit (T, R) [rad], with the weight that the others leave.
    :param others: those of the other fits (T, R, M).
    :param weights: of these (M,).
    """
    rest = 1.0 - float(np.sum(weights))
    mean = rest * best + others @ weights
    variance = rest * (best - mean) ** 2 + (others - mean[:, :, None]) ** 2 @ weights
    return Mixed(np.asarray(mean), np.asarray(variance))


def alike(members: Sequence[Member]) -> list[list[int]]:
    """Indices of members with the same law, effects and delay, which are simulated together."""

    def kind(index: int) -> tuple[str, tuple[str, ...], float]:
        one = members[index]
        return one.model, one.effects, one.values.get("command_delay", 0.0)

    return [list(group) for _, group in groupby(sorted(range(len(members)), key=kind), key=kind)]


FloatArray = npt.NDArray[np.float64]

COVERAGE = 0.9
"""Share of samples within a band."""

QUANTILE = NormalDist().inv_cdf(0.5 + 0.5 * COVERAGE)

DRAWS = 24
"""Motions from which the spread due to the parameters is computed."""

SAMPLES = 4_000_000
"""Positions that are simulated together at most, unless :data:`DRAWS` motions have more: 32 MB for each signal."""

FAR = 1e100
"""Position [rad] of a motion that diverges; its square is a number."""

LeftOut = Mapping[str, Sequence[FloatArray]]
"""Equally good minima (M, n) in the unit cube of whole fits without each condition of a kind, by kind."""

LEVELS = (np.arange(100) + 0.5) / 100.0
"""Probabilities by whose quantiles distributions are represented."""

SHARES = (1.0, 0.5, 0.25, 0.1, 0.0)
"""Parts of a Newton step that are tried."""


class Model(NamedTuple):
    """Runs and what simulates them; the free parameters are uncertain."""

    batch: Batch
    actuator: Actuator
    law: FrictionLaw
    parameters: ParameterSet
    integrator: Integrator
    reset_period: float | None


def prediction_of(
    model: Model,
    unit: FloatArray,
    residual: FloatArray,
    scores: Scores,
    covariance: FloatArray,
    prior: Prior | None = None,
    left_out: LeftOut | None = None,
    members: Sequence[Member] = (),
) -> Prediction:
    """The distribution of motions around those of an optimum, or of all members of an average that it belongs to.

    :param unit: the optimum in the unit cube (n,).
    :param residual: simulated minus measured position there (T, R) [rad].
    :param scores: contributions to the derivatives at the optimum.
    :param covariance: of the parameters in the unit cube (n, n); zero for those held at a bound.
    :param left_out: whole fits without the conditions.
    :param members: the other fits of the average.
    """
    parameters, batch = model.parameters, model.batch
    between = _mixed(members, batch.position + residual, model)
    widths = parameters.upper - parameters.lower
    matrix = covariance * np.outer(widths, widths)
    valid = batch.weight > 0.0
    deviation = float(np.sqrt(np.mean(residual[valid] ** 2)))
    drawn = _drawn(parameters.from_unit(unit), matrix, parameters.lower, parameters.upper)
    spread = np.sqrt(np.var(motions(model, drawn), axis=2) + between.variance + deviation**2)
    residual = between.mean - batch.position
    factors = {"recorded": _factor(_relative(residual, spread, valid))}
    for kind in kinds_of(batch.logs):
        known = (left_out or {}).get(kind.name)
        if known is None:
            errors = _without(model, unit, residual, scores, kind.masks, covariance, prior)
        else:
            errors = _errors(model, known)
        missed = [_relative(e, spread, valid & mask) for e, mask in zip(errors, kind.masks, strict=True)]
        fitted = [_relative(residual, spread, valid & mask) for mask in kind.masks]
        factors[kind.name] = max(factor_of_one_more(missed, fitted), factors["recorded"])
        beyond = None if kind.beyond is None else (left_out or {}).get(kind.beyond)
        if kind.beyond is not None and beyond:
            above = zip(_errors(model, beyond), kind.masks[1:], strict=True)
            missed = [_relative(e, spread, valid & mask) for e, mask in above]
            factors[kind.beyond] = max(factor_of_one_more(missed), factors[kind.name])
    return Prediction(
        names=parameters.free_names,
        covariance=tuple(tuple(row) for row in matrix.tolist()),
        deviation=deviation,
        correlation_time=0.5 * batch.dt * correlation_time(residual.T, centred=False),
        factors=factors,
        conditions={
            name: tuple(sorted({str(value(log)) for log in batch.logs})) for name, _, value, _ in KINDS
        },
        members=tuple(members),
    )


def _relative(residual: FloatArray, spread: FloatArray, valid: Mask) -> FloatArray:
    """Valid residuals (T, R, …) over their spread (T, R), without sign, in one row."""
    with np.errstate(invalid="ignore", divide="ignore"):  # at rest neither residual nor spread: unknown
        return np.asarray(np.abs(residual[valid].T) / spread[valid]).ravel()


def _factor(relative: FloatArray) -> float:
    """Factor on the spread with which bands cover :data:`COVERAGE` of the samples (N,)."""
    return float(np.quantile(relative, COVERAGE)) / QUANTILE


def factor_of_one_more(missed: Sequence[FloatArray], fitted: Sequence[FloatArray] | None = None) -> float:
    r"""Factor with which bands cover :data:`COVERAGE` of the samples of one more condition, on average.

    Every condition has a factor :math:`\kappa_i`, the errors divided by it have one distribution, and the factors have a
    log-normal one (:func:`~stribeck.identify.servo.conditions.one_more`). Fits without a condition know one less than the fit that
    the bands belong to: with L conditions and p parameters of a linear model, the squared error is :math:`1 - p/L` times
    the noise where fitted, :math:`1 + p/(L-1)` where left out, and :math:`1 + p/L` under one more, so that

    .. math:: \kappa_i^2 = \kappa_{in,i}^2 + \frac{2(L-1)}{2L-1} (\kappa_{out,i}^2 - \kappa_{in,i}^2).

    This is the bias of cross-validation with few folds (Burman 1989, 10.1093/biomet/76.3.503).

    :param missed: errors of fits without each condition on its samples, over their spread (N,).
    :param fitted: those of the fit to all of them; ``None`` to count the errors of the fits without each as they are.
    """
    from scipy.special import stdtrit  # not at the top: predictions with the bands of a file need no SciPy

    count = len(missed)
    out, within = (
        np.array([_factor(one) for one in errors])
        for errors in (missed, missed if fitted is None else fitted)
    )
    share = 2.0 * (count - 1) / (2.0 * count - 1.0)
    scatter = one_more(0.5 * np.log(within**2 + share * (out**2 - within**2)))
    factors = np.exp(scatter.mean + scatter.scale * stdtrit(scatter.freedom, LEVELS))
    shapes = np.concatenate([np.quantile(one, LEVELS) / k for one, k in zip(missed, out, strict=True)])
    return _factor(np.outer(factors, shapes))


def _drawn(mean: FloatArray, matrix: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Parameters (DRAWS, n) from a normal distribution, in pairs about its mean, within bounds."""
    values, axes = np.linalg.eigh(matrix)
    normal = np.random.default_rng(0).standard_normal((DRAWS // 2, len(mean)))
    moved = (normal * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    return np.asarray(np.clip(mean + np.concatenate([moved, -moved]), lower, upper))


def _repeated(batch: Batch, count: int) -> Batch:
    """A batch whose runs are repeated ``count`` times, run by run."""
    many: dict[str, Any] = {
        name: np.repeat(value, count, axis=1)
        for name, value in vars(batch).items()
        if isinstance(value, np.ndarray) and value.ndim == 2
    }
    return replace(batch, logs=tuple(log for log in batch.logs for _ in range(count)), **many)


def motions(model: Model, points: FloatArray) -> FloatArray:
    """Positions (T, R, S) [rad] with parameters (S, n) in their units, in float64."""
    most = max(DRAWS, SAMPLES // model.batch.position.size)
    return np.concatenate([_moved(model, points[k : k + most]) for k in range(0, len(points), most)], axis=2)


def _moved(model: Model, points: FloatArray) -> FloatArray:
    batch, parameters = model.batch, model.parameters
    values: dict[str, Any] = {p.name: np.float64(p.value) for p in parameters} | {
        name: np.tile(column, len(batch.logs))
        for name, column in zip(parameters.free_names, points.T, strict=True)
    }
    if "command_delay" in parameters.free_names:
        values["command_delay"] = float(np.mean(values["command_delay"]))
    with np.errstate(all="ignore"):
        position = simulate(
            _repeated(batch, len(points)),
            model.actuator,
            model.law,
            values,
            integrator=model.integrator,
            reset_period=model.reset_period,
        ).position
    position = np.clip(np.nan_to_num(position), -FAR, FAR)
    return position.reshape(len(batch.time), len(batch.logs), len(points))


def _errors(model: Model, sets: Sequence[FloatArray]) -> list[FloatArray]:
    """Errors (T, R, S) [rad] at each of some sets of points (S, n) in the unit cube.

    They are simulated together, for a time step of numpy takes as long for many; with a free delay one by one.
    """
    parameters, points = model.parameters, np.concatenate(sets)
    alone = "command_delay" in parameters.free_names
    moved = [
        motions(model, parameters.from_unit(part))
        for part in (np.split(points, len(points)) if alone else [points])
    ]
    errors = np.concatenate(moved, axis=2) - model.batch.position[:, :, None]
    return np.split(errors, np.cumsum([len(part) for part in sets])[:-1], axis=2)


def _without(
    model: Model,
    unit: FloatArray,
    residual: FloatArray,
    scores: Scores,
    masks: Mask,
    covariance: FloatArray,
    prior: Prior | None,
) -> list[FloatArray]:
    """Errors (T, R, 1) [rad] of fits without some of the runs, for each of the sets of these (L, R)."""
    weight = model.batch.weight
    loss = float(np.sum(weight * smooth_absolute(residual)))
    sets = [_shares(unit, loss, scores, ~mask, covariance, prior) for mask in masks]
    best = []
    for points, errors, mask in zip(sets, _errors(model, sets), masks, strict=True):
        kept = ~mask
        losses = np.sum(weight[:, kept, None] * smooth_absolute(errors[:, kept]), axis=(0, 1))
        if prior is not None:
            losses = losses * np.exp(prior.exponent(points))
        best.append(errors[:, :, [int(np.argmin(losses))]])
    return best


def _shares(
    unit: FloatArray, loss: float, scores: Scores, kept: Mask, covariance: FloatArray, prior: Prior | None
) -> FloatArray:
    """Points in the unit cube (S, n) on the way to the optimum of the runs that are kept, by a damped Newton step."""
    inner = np.diag(covariance) > 0.0
    gradient = np.sum(scores.gradient[0][:, kept], axis=(0, 1))
    hessian = np.sum(scores.curvature[0][:, kept], axis=(0, 1))
    if prior is not None:
        gradient, hessian = gradient + loss * prior.gradient(unit[None])[0], hessian + loss * prior.hessian
    gradient, hessian = gradient[inner], hessian[inner][:, inner]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-30))
    step = np.zeros(len(unit))
    damped = hessian * np.outer(scale, scale) + 1e-4 * np.eye(len(hessian))
    step[inner] = -scale * np.linalg.solve(damped, scale * gradient)
    return np.asarray(np.clip(unit + np.array(SHARES)[:, None] * step, 0.0, 1.0))


def factor_of(prediction: Prediction, log: Log) -> float:
    r"""Factor on the spread for the conditions of a run: the largest of those that are new in it.

    Beyond the recorded gains or loads v₁ < … < v_L it is :math:`\kappa + (\kappa_b - \kappa) \max(1, d)`, with the factors
    :math:`\kappa` of recorded ones and :math:`\kappa_b` of the next step, and the number of steps
    :math:`d = (L - 1) \ln(v/v_L) / \ln(v_L/v_1)`.
    """
    factors, seen = prediction.factors, prediction.conditions
    recorded, found = factors["recorded"], [factors["recorded"]]
    largest = max(factors.values())
    for name, beyond, value, _ in KINDS:
        if str(value(log)) in seen.get(name, ()):
            continue
        known = sorted(float(one) for one in seen.get(name, ())) if beyond in factors else []
        if beyond is None or len(known) < 2 or value(log) <= known[-1]:
            found.append(factors.get(name, largest))
            continue
        steps = 1.0
        if known[0] > 0.0:
            steps = (len(known) - 1) * float(np.log(value(log) / known[-1]) / np.log(known[-1] / known[0]))
        found.append(recorded + (factors[beyond] - recorded) * max(1.0, steps))
    return max(found)


def model_of(
    file: Drive,
    batch: Batch,
    integrator: Integrator,
    reset_period: float | None,
    names: Sequence[str] | None = None,
) -> Model:
    """A file's simulation of a batch of runs; its uncertain parameters are free, or those called ``names``."""
    if names is None:
        names = file.prediction.names if file.prediction is not None else ()
    parameters = file.actuator.parameters(file.law).freed(names)
    parameters = parameters.fixed({name: file.values[name] for name in parameters.names if name not in names})
    return Model(batch, file.actuator, file.law, parameters, integrator, reset_period)


def _mixed(members: Sequence[Member], best: FloatArray, model: Model) -> Mixed:
    """Mean and variance of the motions of the best fit, with positions (T, R) [rad], and of members of its average."""
    others = np.empty((*best.shape, len(members)))
    for index in alike(members):
        one = members[index[0]]
        law, actuator = (
            law_named(one.model).with_parameters(one.values),
            model.actuator.with_effects(one.effects),
        )
        names = [name for name in one.values if len({members[k].values[name] for k in index}) > 1]
        parameters = actuator.parameters(law).fixed(one.values).freed(names)
        points = np.array([[members[k].values[name] for name in parameters.free_names] for k in index])
        others[:, :, index] = motions(
            model._replace(actuator=actuator, law=law, parameters=parameters), points
        )
    return mixed(best, others, np.array([one.weight for one in members]))


def averaged(
    file: Drive, batch: Batch, integrator: Integrator, reset_period: float | None, best: FloatArray
) -> Mixed:
    """Mean and variance of the motions of all fits in a file, with the positions (T, R) [rad] of its own."""
    members = () if file.prediction is None else file.prediction.members
    return _mixed(members, best, model_of(file, batch, integrator, reset_period, ()))


def half_widths(
    file: Drive,
    batch: Batch,
    integrator: Integrator,
    reset_period: float | None,
    between: FloatArray | None = None,
) -> FloatArray:
    """Half-widths (T, R) [rad] of the bands of a file on a batch of runs; NaN if the file has no prediction.

    :param between: mean squared distance of the motions of its fits from the middle of the band (T, R) [rad²]; by default their
        variance, for a band about their mean.
    """
    prediction = file.prediction
    if prediction is None:
        return np.full_like(batch.position, np.nan)
    model = model_of(file, batch, integrator, reset_period)
    parameters = model.parameters
    mean = np.array([file.values[name] for name in parameters.free_names])
    drawn = _drawn(mean, np.array(prediction.covariance), parameters.lower, parameters.upper)
    moved = motions(model, np.vstack([drawn, mean]))
    if between is None:
        between = averaged(file, batch, integrator, reset_period, moved[:, :, -1]).variance
    spread = np.sqrt(np.var(moved[:, :, :-1], axis=2) + between + prediction.deviation**2)
    return np.asarray(QUANTILE * spread * [factor_of(prediction, log) for log in batch.logs])


def coverage_of(residual: FloatArray, widths: FloatArray, batch: Batch) -> list[float]:
    """Share of each run's samples within its band (R,)."""
    valid = batch.weight > 0.0
    inside = (np.abs(residual) <= widths) & valid
    shares: list[float] = (np.sum(inside, axis=0) / np.sum(valid, axis=0)).tolist()
    return shares
