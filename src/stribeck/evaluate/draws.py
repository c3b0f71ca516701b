r"""Random parameters of a drive, as uncertain as the fit left them, and the band of its friction over speed.

Uncertain parameters are drawn from the normal distribution :math:`N(\hat\theta, C + diag(\tau^2))` that is cut off at the bounds. The
correlation in C is that which the file states; the standard deviations are those of its intervals. :math:`\tau` is the standard deviation
between units. A Stribeck term that may be negative is drawn not below minus the Coulomb friction, so that friction at rest is never negative.

What the law itself lacks is drawn as two further factors, :math:`e^{\varepsilon u}` and :math:`e^{\varepsilon v}` with standard normal u and v,
on all friction and on the torque of the motor (the resistance of a voltage bridge, the torque constant of a current controller, the ratio of a
torque controller), cut off where a parameter would leave its bounds. :math:`\varepsilon` is 0 for the posterior.
Most draws are normal ones that happen to lie within the bounds. Where hardly any do, the others are moved there by Gibbs
sampling, one coordinate after another from its conditional distribution (Geweke 1991, "Efficient simulation from the
multivariate normal and Student-t distributions subject to linear constraints").

Draws that stand for what a law lacks are independent of each other where their size is chosen by the motion (joints of robots,
:mod:`stribeck.exports.robot_draws`): combinations of parameters that correlations leave open are those that hardly move it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.torque_drives import ACTUATORS, CONSTANTS
from stribeck.identify.common.quantiles import normal_quantile
from stribeck.model.arrays import Array, Indices
from stribeck.model.estimate import Estimate
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget
from stribeck.model.terms import COULOMB_PARAMETERS, FRICTION_PARAMETERS, with_sign

ATTEMPTS = 64
"""Batches of normal draws, each as large as the number of wanted ones."""

SWEEPS = 50
"""Of Gibbs sampling."""

LEAST = 1e-4
"""Least eigenvalue of a correlation matrix of which an inverse is needed: files round its elements to four digits, so that smaller ones may be negative."""


STATIC = with_sign("static")
"""Friction beside Coulomb friction that may be negative, but not their sum."""

CENTRE = "friction_centre"
"""A position, no friction."""


class Uncertain(NamedTuple):
    """Uncertain parameters.

    :param mean: (n,).
    :param covariance: (n, n).
    :param lower, upper: bounds (n,).
    :param sums: pairs of indices of parameters whose sum is not negative.
    """

    names: tuple[str, ...]
    mean: Array
    covariance: Array
    lower: Array
    upper: Array
    sums: tuple[tuple[int, int], ...] = ()


def uncertain_of(drive: Drive) -> Uncertain:
    """The parameters of a drive that its file does not know exactly, with their covariance.

    Standard deviations are those of the intervals, where there are some, so that draws are as wide as what is stated.
    """
    names, covariance = _covariance(drive)
    values = {name: one.value for name, one in drive.stated.items()} | dict(drive.values)
    ends = np.array([_bounds(drive, name, values[name], values[name]) for name in names]).reshape(-1, 2).T
    mean, lower, sums = np.array([values[name] for name in names]), ends[0].copy(), []
    for name in (name for name in names if name in STATIC):
        k = names.index(name)
        for base in (one for one in COULOMB_PARAMETERS if one in drive.law.parameter_names and one in values):
            if base in names and mean[k] + mean[names.index(base)] >= 0.0:
                sums.append((k, names.index(base)))
            elif base not in names:  # known exactly
                lower[k] = max(lower[k], min(mean[k], -values[base]))
    return Uncertain(names, mean, covariance, lower, ends[1], tuple(sums))


def _bounds(drive: Drive, name: str, lowest: float, highest: float) -> tuple[float, float]:
    """Bounds of a parameter, wider where its values lie outside: those of the fit, or where the file states none the default ones.

    Default bounds are those of small servos: of a joint that is known by torque alone they give the sign only.
    """
    parameters = drive.actuator.parameters(drive.law)
    known = (parameters[name].lower, parameters[name].upper) if name in parameters else None
    if known is not None and name not in CONSTANTS and drive.actuator.name in ACTUATORS.values():
        known = (0.0 if known[0] >= 0.0 else -math.inf), (0.0 if known[1] <= 0.0 else math.inf)
    lower, upper = drive.bounds.get(name, known or _sign_of(drive.stated.get(name)))
    return min(lower, lowest), max(upper, highest)


def _covariance(drive: Drive) -> tuple[tuple[str, ...], Array]:
    """Names of the uncertain parameters, and their covariance (n, n)."""
    if drive.prediction is None:
        names = tuple(name for name, one in drive.stated.items() if one.interval is not None)
        correlation = np.eye(len(names)) if drive.correlation is None else drive.correlation.between(names)
        rest = np.zeros(len(names))
    else:
        names = drive.prediction.names
        matrix = np.array(drive.prediction.covariance, dtype=float).reshape(len(names), len(names))
        rest = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        scale = np.where(rest > 0.0, rest, 1.0)
        correlation = matrix / np.outer(scale, scale)
    stated = [drive.stated.get(name) for name in names]
    sigma = [
        other if one is None or one.interval is None else deviation_of(one)
        for one, other in zip(stated, rest.tolist(), strict=True)
    ]
    return names, np.asarray(correlation * np.outer(sigma, sigma))


def deviation_of(estimate: Estimate) -> float:
    """Standard deviation that belongs to an interval; of one that ends at 0, that of its upper side."""
    if estimate.interval is None:
        return 0.0
    lower, upper = estimate.interval
    half = max(upper - estimate.value, estimate.value - lower) if lower == 0.0 else 0.5 * (upper - lower)
    return half / normal_quantile(estimate.confidence)


def _sign_of(estimate: Estimate | None) -> tuple[float, float]:
    """Bounds of a parameter that states none: its sign where the interval does not leave it open."""
    if estimate is None or estimate.interval is None:
        return -math.inf, math.inf
    lower, upper = estimate.interval
    return (0.0 if lower >= 0.0 else -math.inf), (0.0 if upper <= 0.0 else math.inf)


def draws_of(
    drive: Drive,
    count: int,
    seed: int | Sequence[int],
    *,
    error: float = 0.0,
    share: float = 1.0,
    scatter: Mapping[str, float] | None = None,
    correlated: bool = True,
) -> dict[str, Array]:
    """Random values of all parameters of a drive (count,) each; those that are known exactly are constant.

    :param error: relative standard deviation of friction and motor torque beyond the posterior, for what the law lacks.
    :param share: of the standard deviations of the posterior, where recordings show that these are too large.
    :param scatter: standard deviation between units of uncertain parameters, in their units.
    :param correlated: whether parameters are drawn with the correlations of the fit, or independently.
    :raises ConfigError: for a negative number of draws.
    """
    if count < 1:
        raise ConfigError(f"expected at least one draw, found {count}")
    known: Mapping[str, float] = {name: one.value for name, one in drive.estimates.items()}
    uncertain = uncertain_of(drive)
    between = np.array([(scatter or {}).get(name, 0.0) for name in uncertain.names])
    covariance = uncertain.covariance if correlated else np.diag(np.diag(uncertain.covariance))
    uncertain = uncertain._replace(covariance=share**2 * covariance + np.diag(between**2))
    rng = np.random.default_rng(seed)
    points = _within(uncertain, count, rng)
    drawn = dict(zip(uncertain.names, points.T, strict=True))
    values = {name: drawn.get(name, np.full(count, value)) for name, value in known.items()}
    if error > 0.0:
        friction = [
            name
            for name in drive.law.parameter_names
            if "friction" in name and FRICTION_PARAMETERS[name].free
        ]
        for names in (friction, [drive.actuator.control.scaled_by]):
            values |= _scaled(drive, {name: values[name] for name in names if name in values}, error, rng)
    return values


def _scaled(
    drive: Drive, values: Mapping[str, Array], error: float, rng: np.random.Generator
) -> dict[str, Array]:
    """Values (S,) of some parameters, all multiplied by one log-normal factor (S,) within the bounds of each."""
    count = len(next(iter(values.values()), ()))
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    for name, value in values.items():
        ends = _bounds(drive, name, float(np.min(value)), float(np.max(value)))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.sort(np.array(ends)[:, None] / value, axis=0)
            logs = np.log(np.maximum(ratios, 0.0))
        used = value != 0.0
        low = np.where(used, np.maximum(low, logs[0]), low)
        high = np.where(used, np.minimum(high, logs[1]), high)
    factor = np.exp(error * _cut_off_normal(low / error, high / error, rng.random(count)))
    return {name: value * factor for name, value in values.items()}


def _within(uncertain: Uncertain, count: int, rng: np.random.Generator) -> Array:
    """Draws (count, n) within bounds."""
    mean, lower, upper = uncertain.mean, uncertain.lower, uncertain.upper
    values, axes = np.linalg.eigh(uncertain.covariance)
    root = axes * np.sqrt(np.maximum(values, 0.0))

    def normal() -> Array:
        return np.asarray(mean + rng.standard_normal((count, len(mean))) @ root.T)

    kept = np.empty((0, len(mean)))
    for _ in range(ATTEMPTS):
        batch = normal()
        inside = np.all((batch >= lower) & (batch <= upper), axis=1)
        for i, j in uncertain.sums:
            inside &= batch[:, i] + batch[:, j] >= 0.0
        kept = np.concatenate([kept, batch[inside]])
        if len(kept) >= count:
            return kept[:count]
    start = np.clip(normal()[len(kept) :], lower, upper)
    for i, j in uncertain.sums:
        start[:, i] = np.maximum(start[:, i], -start[:, j])
    moved = _gibbs(uncertain, start, rng)
    return np.concatenate([kept, moved])


def _gibbs(uncertain: Uncertain, points: Array, rng: np.random.Generator) -> Array:
    """Points (S, n) within bounds after :data:`SWEEPS` sweeps, each coordinate given the others."""
    sigma = np.sqrt(np.diag(uncertain.covariance))
    varying = np.flatnonzero(sigma > 0.0)
    if not varying.size:
        return points
    scale = sigma[varying]
    correlation = uncertain.covariance[np.ix_(varying, varying)] / np.outer(scale, scale)
    size, axes = np.linalg.eigh(correlation)
    precision = (axes / np.maximum(size, LEAST)) @ axes.T
    mean = uncertain.mean[varying]
    lower, upper = (np.asarray(end[varying] - mean) / scale for end in (uncertain.lower, uncertain.upper))
    state = (points[:, varying] - mean) / scale
    partners = _partners(uncertain.sums, varying)
    width = 1.0 / np.sqrt(np.diag(precision))
    for _ in range(SWEEPS):
        for k in range(len(varying)):
            others = state @ precision[k] - state[:, k] * precision[k, k]
            centre = -others / precision[k, k]
            least = np.full(len(state), lower[k])
            for other in partners[k]:
                least = np.maximum(
                    least, -(mean[other] + scale[other] * state[:, other] + mean[k]) / scale[k]
                )
            low, high = (least - centre) / width[k], (upper[k] - centre) / width[k]
            drawn = centre + width[k] * _cut_off_normal(low, high, rng.random(len(state)))
            state[:, k] = np.clip(drawn, least, upper[k])
    moved = points.copy()
    moved[:, varying] = mean + scale * state
    return moved


def _partners(sums: Sequence[tuple[int, int]], varying: Indices) -> dict[int, list[int]]:
    """Parameters with which each one has a sum that is not negative, all as places in ``varying``."""
    place = {int(one): k for k, one in enumerate(varying.tolist())}
    found: dict[int, list[int]] = {k: [] for k in place.values()}
    for i, j in sums:
        if i in place and j in place:
            found[place[i]].append(place[j])
            found[place[j]].append(place[i])
    return found


def _cut_off_normal(low: Array, high: Array, level: Array) -> Array:
    """Quantiles (S,) of the standard normal distribution between two ends (S,), for levels from 0 to 1.

    Computed on the side where the distribution function is small, so that an interval far from zero has values at its near end.
    """
    from scipy.special import ndtr, ndtri  # not at the top: files are read where SciPy is missing

    mirrored = low > -high
    first, last = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    below, above = ndtr(first), ndtr(last)
    found = np.where(above > 0.0, ndtri(below + level * (above - below)), last)
    return np.asarray(np.where(mirrored, -1.0, 1.0) * np.clip(found, first, last))


POINTS, DRAWS, LEVEL = 200, 400, 0.95
"""Speeds of a curve, draws for its band, and the level of the band."""

FASTEST = {"rotary": 5.0, "linear": 1.0}
"""Largest speed where the law has no speed of its own [rad/s, m/s]."""

STRIBECK = 3.0
"""Largest speed as a multiple of the Stribeck speed."""


class DriveFriction(NamedTuple):
    """Friction against motion in positive direction, without load.

    :param speed: (N,) [rad/s or m/s].
    :param budget: (N,) [N m or N].
    :param low, high: ends of the band (N,), ``None`` if no parameter has an interval.
    """

    speed: Array
    budget: Array
    low: Array | None
    high: Array | None


def drive_friction(drive: Drive) -> DriveFriction:
    """Friction of a drive over speed; where it depends on the position, at the position around which it varies."""
    fastest = FASTEST[drive.actuator.units]
    if "dtheta_stribeck" in drive.values:
        fastest = max(fastest, STRIBECK * drive.values["dtheta_stribeck"])
    speed = np.linspace(0.0, fastest, POINTS)
    place = drive.values.get(CENTRE, 0.0)
    budget = np.asarray(friction_budget(drive.law, drive.values, 0.0, 0.0, speed, place)[0] + 0.0 * speed)
    try:
        drawn = draws_of(drive, DRAWS, 0)
    except ConfigError:
        return DriveFriction(speed, budget, None, None)
    values = {name: np.asarray(drawn.get(name, value))[..., None] for name, value in drive.values.items()}
    curves = np.asarray(friction_budget(drive.law, values, 0.0, 0.0, speed, place)[0] + 0.0 * speed)
    if curves.ndim < 2 or not np.ptp(curves, axis=0).any():
        return DriveFriction(speed, budget, None, None)
    rest = 0.5 * (1.0 - LEVEL)
    low, high = np.quantile(curves, [rest, 1.0 - rest], axis=0)
    return DriveFriction(speed, budget, low, high)
