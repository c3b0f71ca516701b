r"""Stiffness, backlash and hysteresis of transmissions, from encoders on both sides.

The twist of a joint, motor minus link position at the link's side, is

.. math:: q_m(t) - q_l(t - \delta) = \frac{1}{k}\Big(\tau_l - \frac{d}{k}\,\dot\tau_l\Big) + p\,s(\tau_l) + h\,z + \delta\,\dot q_m - \frac{\delta^2}{2}\,\ddot q_m + c

with stiffness k [N m/rad], damping d [N m s/rad], the torque :math:`\tau_l` that links and load ask of the transmission, half the
backlash p [rad] with the side s = ±1 on which the gear is in contact, half the height h [rad] of the hysteresis, the time
:math:`\delta` [s] by which the link is measured earlier than the motor, and an offset c [rad]. The state z follows the motor within
:math:`\pm 1` over a travel of 2 r (play operator): :math:`z = (q_m - p)/r`, where p is dragged along by :math:`|q_m - p| \le r`. With
a small r it is the direction of motion. Friction behind the transmission is part of h and :math:`\delta`.

The measured torque :math:`\tau = n\,\tau_m - n^2 I_r\,\ddot q_m` differs from :math:`\tau_l` by the friction of motor and gear and
by noise, :math:`\tau = \tau_l + e`. Least squares on it would find :math:`\frac{1}{k}\,\frac{var(\tau_l)}{var(\tau_l) + var(e)}`,
too stiff a transmission; on the twist, as the regressor, too large a compliance by the noise of the encoders. Instrumental variables w
are free of both (two-stage least squares): the first stage is

.. math:: \tau = w^T\gamma + h' z + h'' z\,e^{-(\dot q_m/v_s)^2} + \delta'\dot q_m + c' + e, \qquad \tau_l = w^T\gamma

and the second the equation of the twist. The instruments w are the torque by a model of the links where there is one, else
:math:`\ddot q_m, \sin q_m, \cos q_m`; where they explain less than half of what direction and velocity leave of the torque (the load is
another machine), the torque itself, :data:`APART` earlier and later, with which white noise does not correlate. The interval is that of
the residual with the measured torque, which contains the errors of both stages: blocks of time that are longer than its
correlation, and what differs between cells of velocity and position (:mod:`stribeck.identify.common.clusters`). If the first stage does
not determine the torque of the links, there is none.

Where a load changes sides of the backlash, the twist moves by its own dynamics; these rows are left out where there is backlash.

Sources: Spong 1987; Theil 1953; Visintin, "Differential models of hysteresis", Springer, 1994, ch. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from stribeck.identify.common.clusters import between_conditions, leave_one_out
from stribeck.identify.common.correlation import independent_blocks
from stribeck.identify.common.encoder_runs import TRAVELS, EncoderRun, Source, TwistSignals, smoothed
from stribeck.identify.common.quantiles import estimate_about
from stribeck.model.arrays import Array, Mask
from stribeck.model.estimate import LOOSE, Estimate, estimate_of

FOLDS = 5
"""Parts of equal length of which each is predicted from the others to choose the travel, and whether there are backlash and damping."""

GAIN = 0.05
"""Relative decrease of the error of parts left out for which backlash or damping is assumed."""

EXPLAINED = 0.5
"""Share of the torque beyond direction and velocity that the motion must explain to be its instrument."""

CONTACT, NEAR = 0.1, 0.05
"""Share of the largest torque within which the gear changes sides of its backlash, and time before and after it [s]."""

SLOW = 0.1
"""Velocity v_s of the second hysteresis, in root mean squares of the velocity."""

BOTH_SIDES = 0.05
"""Smallest share of the rows on either side of the backlash."""

AT_REST = 4
"""Column of the hysteresis of low velocities; compliance, hysteresis, skew and offset are before, backlash and damping behind it."""

CELLS = 2
"""Cells of velocities, and of positions, for each parameter."""

UNITS = {"compliance": "µrad/(N m)", "hysteresis": "rad", "skew": "s", "offset": "rad"}
"""Units of the values that every model has."""

Optional = Literal["backlash", "damping"]


@dataclass(frozen=True, eq=False)
class TwistModel:
    """The equation of the twist, and its values.

    :param travel: r [rad].
    :param slow: velocity v_s [rad/s].
    :param optional: of backlash and damping, those that the model has.
    :param gamma: values of the instruments in the first stage.
    :param source: the instruments.
    :param size: largest torque of the links [N m].
    :param skew: δ [s].
    :param values: of the regressors.
    """

    travel: float
    slow: float
    optional: tuple[Optional, ...]
    source: Source
    gamma: Array
    size: float
    skew: float
    values: Array

    def load(self, signals: TwistSignals) -> Array:
        """Torque of the links (T,) [N m]."""
        return signals.instruments(self.source) @ self.gamma

    def columns(self, signals: TwistSignals) -> Array:
        """Regressors of the twist: measured torque, exogenous ones, and those of backlash and damping (T, 5 to 7)."""
        load = self.load(signals)
        side = np.clip(load / max(CONTACT * self.size, 1e-300), -1.0, 1.0)
        more = {"backlash": smoothed(side, signals.dt), "damping": -1e-6 * np.gradient(load, signals.dt)}
        parts = [1e-6 * signals.torque[:, None], signals.exogenous(self.travel, self.slow)]
        return np.concatenate([*parts, *(more[name][:, None] for name in self.optional)], axis=1)

    def twist(self, signals: TwistSignals) -> Array:
        """Twist without the second order of the skew (T,) [rad]."""
        return signals.twist + 0.5 * self.skew**2 * signals.acceleration

    def in_contact(self, signals: TwistSignals) -> Mask:
        """Rows in which the load does not change sides of the backlash (T,)."""
        changing = np.abs(self.load(signals)) < CONTACT * self.size
        width = 2 * round(NEAR / signals.dt) + 1
        return np.asarray(np.convolve(changing, np.ones(width), "same")[: len(changing)] == 0.0)

    def predict(self, run: EncoderRun, joint: int) -> Array:
        """Twist (T,) [rad]."""
        signals = TwistSignals.of(run, joint)
        return np.asarray(self.columns(signals) @ self.values + signals.twist - self.twist(signals))


@dataclass(frozen=True, eq=False)
class Transmission:
    """The transmission of one joint.

    :param model: that predicts the twist.
    :param estimates: of compliance 1/k [µrad/(N m)], hysteresis h, skew and offset; of backlash (both sides, 2 p) and damping if the model has them.
    :param stiffness: k with its interval [N m/rad]; ``None`` if it is not identifiable.
    :param at_least: lower end of the interval of k [N m/rad], also of one that has no upper end.
    :param reason: why the stiffness is not identifiable; empty if it is.
    :param left_out: rms error of parts that were predicted from the others [rad].
    """

    model: TwistModel
    estimates: dict[str, Estimate]
    stiffness: Estimate | None
    at_least: float
    reason: str
    left_out: float

    def stiffness_to_json(self) -> dict[str, Any]:
        """The stiffness, its interval and lower end [N m/rad], and why it is not identifiable; ``None`` for what is not known."""
        known = self.stiffness
        return {
            "stiffness": None if known is None else known.value,
            "stiffness_interval": None if known is None or known.interval is None else list(known.interval),
            "stiffness_at_least": self.at_least or None,
            "reason": self.reason,
        }


def identify_transmission(runs: Sequence[EncoderRun], joint: int) -> Transmission:
    """Fit the twist of a joint by two-stage least squares; travel, backlash and damping are chosen by parts left out."""
    parts = [TwistSignals.of(run, joint) for run in runs]
    slow = SLOW * float(np.sqrt(np.mean(np.concatenate([one.velocity for one in parts]) ** 2)))
    source = _source_of(parts, slow)
    both = _touches_both_sides(parts, _first_stage(parts, source, TRAVELS[0], slow, ()))
    best: tuple[float, _Stage] | None = None
    candidates: tuple[tuple[Optional, ...], ...] = ((), ("backlash",), ("damping",), ("backlash", "damping"))
    for optional, travel in product(candidates, TRAVELS):
        if "backlash" in optional and not both:
            continue
        stage = _Stage.of(parts, _first_stage(parts, source, travel, slow, optional))
        if not np.all(stage.solved()[AT_REST + 1 :] > 0.0):
            continue
        rms = stage.left_out(stage.contact if both else np.ones_like(stage.contact))
        if best is None or rms < best[0] * (1.0 if best[1].model.optional == optional else 1.0 - GAIN):
            best = rms, stage
    assert best is not None  # noqa: S101 - the model without backlash and damping is always possible
    return _identified(best[1], best[0])


def _identified(stage: _Stage, left_out: float) -> Transmission:
    """Values, intervals, and the judgement of the stiffness."""
    columns, projected, twist = (stage.kept(part) for part in (stage.columns, stage.projected, stage.twist))
    compliance = float(_instrumental(columns, projected, twist)[0])
    by_load = stage.kept(stage.by_load)
    by_load[:, AT_REST] = 0.0
    of_load = _least_squares(by_load, twist)
    width = stage.half_widths(twist - columns @ _instrumental(columns, projected, twist))[0]
    if not stage.half_widths(columns[:, 0] - projected[:, 0], by_time=True)[0] < LOOSE:
        width = np.inf
    widths = stage.half_widths(twist - by_load @ of_load)
    low, high = compliance - width, compliance + width
    at_least = 1e6 / high if 0.0 < high < np.inf else 0.0
    reason = _against(stage, (low, compliance, high))
    stiffness = None if reason else estimate_of(1e6 / compliance, "N m/rad", (at_least, 1e6 / low))
    model = replace(stage.model, values=stage.solved())
    estimates = _estimates(model.optional, of_load, widths)
    ends = (low, high) if np.isfinite(high) else None
    estimates["compliance"] = estimate_of(
        max(compliance, 0.0), UNITS["compliance"], ends, bounds=(0.0, np.inf), held=False
    )
    return Transmission(model, estimates, stiffness, at_least, reason, left_out)


def _source_of(parts: Sequence[TwistSignals], slow: float) -> Source:
    """The instruments: the motion, if it explains most of the torque beyond direction and velocity."""
    torque = np.concatenate([one.torque for one in parts])
    exogenous = np.concatenate([one.exogenous(TRAVELS[0], slow) for one in parts])
    whole = np.concatenate([np.concatenate([one.instruments("motion") for one in parts]), exogenous], axis=1)
    left, rest = (torque - matrix @ _least_squares(matrix, torque) for matrix in (exogenous, whole))
    return "motion" if rest @ rest <= (1.0 - EXPLAINED) * (left @ left) else "torque"


def _first_stage(
    parts: Sequence[TwistSignals], source: Source, travel: float, slow: float, optional: tuple[Optional, ...]
) -> TwistModel:
    """The torque of the links, and the skew, of a model without values."""
    torque, twist = (np.concatenate([getattr(one, name) for one in parts]) for name in ("torque", "twist"))
    instruments = np.concatenate([one.instruments(source) for one in parts])
    exogenous = np.concatenate([one.exogenous(travel, slow) for one in parts])
    gamma = _least_squares(np.concatenate([instruments, exogenous], axis=1), torque)[: instruments.shape[1]]
    load = instruments @ gamma
    skew = float(_least_squares(np.concatenate([load[:, None], exogenous], axis=1), twist)[2])
    largest, none = float(np.abs(load).max()), np.zeros(AT_REST + 1 + len(optional))
    return TwistModel(travel, slow, optional, source, gamma, largest, skew, none)


def _touches_both_sides(parts: Sequence[TwistSignals], model: TwistModel) -> bool:
    """Whether the load presses on either side of the backlash in enough rows."""
    load = np.concatenate([model.load(one) for one in parts])
    contact = np.concatenate([model.in_contact(one) for one in parts])
    return float(min(np.mean(contact & (load > 0.0)), np.mean(contact & (load < 0.0)))) >= BOTH_SIDES


@dataclass(frozen=True, eq=False)
class _Stage:
    """Second stage of a model, of all runs one after the other.

    :param columns: regressors X (N, p).
    :param projected: the same with the torque that instruments and other regressors explain (N, p).
    :param by_load: the same with the torque of the links (N, p).
    :param twist: (N,).
    :param contact: rows in which the load does not change sides (N,).
    """

    parts: Sequence[TwistSignals]
    model: TwistModel
    columns: Array
    projected: Array
    by_load: Array
    twist: Array
    contact: Mask

    @classmethod
    def of(cls, parts: Sequence[TwistSignals], model: TwistModel) -> _Stage:
        columns = np.concatenate([model.columns(one) for one in parts])
        instruments = np.concatenate([one.instruments(model.source) for one in parts])
        contact = np.concatenate([model.in_contact(one) for one in parts])
        used = contact if "backlash" in model.optional else np.ones_like(contact)
        known = np.concatenate([instruments, columns[:, 1:]], axis=1)
        projected, by_load = columns.copy(), columns.copy()
        projected[:, 0] = known @ _least_squares(known * used[:, None], columns[:, 0] * used)
        by_load[:, 0] = 1e-6 * (instruments @ model.gamma)
        twist = np.concatenate([model.twist(one) for one in parts])
        return cls(parts, model, columns, projected, by_load, twist, contact)

    def kept(self, values: Array) -> Array:
        """Values of the rows (N, …), zero where the model is not fitted."""
        return (values.T * self.contact).T if "backlash" in self.model.optional else values.copy()

    def solved(self) -> Array:
        """Values for predictions (p,)."""
        return _solved(*(self.kept(part) for part in (self.columns, self.projected, self.twist)))

    def left_out(self, rows: Mask) -> float:
        """Error of parts of each run predicted from the others [rad], of some rows (N,)."""
        folds = np.concatenate([np.arange(len(one.twist)) * FOLDS // len(one.twist) for one in self.parts])
        columns, projected, twist = (self.kept(part) for part in (self.columns, self.projected, self.twist))
        error = np.empty_like(twist)
        for fold in range(FOLDS):
            out = folds == fold
            error[out] = self.columns[out] @ _solved(columns[~out], projected[~out], twist[~out])
        return float(np.sqrt(np.mean((self.twist - error)[rows] ** 2)))

    def half_widths(self, residual: Array, by_time: bool = False) -> Array:
        """Half-widths of the intervals of the values (p,).

        :param residual: (N,).
        :param by_time: without what differs between cells of velocity and position.
        """
        projected = self.kept(self.projected)
        size = np.maximum(np.abs(projected).max(axis=0), 1e-300)
        scaled, count = projected / size, projected.shape[1]
        ends = np.cumsum([len(one.twist) for one in self.parts])[:-1]
        blocks = independent_blocks(np.split(residual, ends), count)
        covariance = leave_one_out(
            np.array([scaled[rows].T @ residual[rows] for rows in blocks]),
            np.array([scaled[rows].T @ scaled[rows] for rows in blocks]),
        )
        if not by_time:
            conditions = np.concatenate(
                [np.stack([one.velocity, one.position], axis=1) for one in self.parts]
            )
            cells = CELLS * count
            lacking = between_conditions([(scaled, residual, conditions)], count=cells)
            covariance = covariance.beyond(lacking, cells - count)
        return np.asarray(covariance.half_widths() / size)


def _least_squares(matrix: Array, values: Array) -> Array:
    """Least squares with columns of equal size."""
    size = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    return np.asarray(np.linalg.lstsq(matrix / size, values, rcond=None)[0] / size)


def _instrumental(columns: Array, projected: Array, twist: Array) -> Array:
    r"""Values of the columns X with the projected ones Z, :math:`(Z^TX)^{-1}Z^Ty`."""
    size = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    scaled = projected / size
    solution = np.linalg.lstsq(scaled.T @ (columns / size), scaled.T @ twist, rcond=None)[0]
    return np.asarray(solution / size)


def _solved(columns: Array, projected: Array, twist: Array) -> Array:
    """Values of the columns for predictions; compliance, backlash and damping are at least 0, and there is no hysteresis of low velocities."""
    values = np.zeros(columns.shape[1])
    kept = np.arange(len(values)) != AT_REST
    while True:
        values[:] = 0.0
        values[kept] = _instrumental(columns[:, kept], projected[:, kept], twist)
        negative = values < 0.0
        negative[1 : len(UNITS)] = False
        if not negative.any():
            return values
        kept &= ~negative


def _estimates(optional: tuple[Optional, ...], values: Array, widths: Array) -> dict[str, Estimate]:
    """The values of the equation with the torque of the links, with their intervals."""
    found = {
        name: estimate_about(value, unit, width)
        for name, unit, value, width in zip(UNITS, UNITS.values(), values.tolist(), widths, strict=False)
    }
    for k, name in enumerate(optional, AT_REST + 1):
        factor, unit = 2.0, "rad"
        if name == "damping":  # the column is that of d / k²
            factor, unit = 1e6 / values[0] ** 2, "N m s/rad"
        value, width = factor * values[k], factor * widths[k]
        found[name] = estimate_about(value, unit, width, bounds=(0.0, np.inf))
    return found


def _against(stage: _Stage, compliance: tuple[float, float, float]) -> str:
    """Why the stiffness is not identifiable; empty if it is.

    :param compliance: lower end, estimate and upper end [µrad/(N m)].
    """
    low, value, high = compliance
    if not 0.0 < high < np.inf:
        return "the load does not change independently of direction and velocity: record poses in which gravity differs, or quick reversals"
    least = f"at least {1e6 / high:.3g} N m/rad"
    if not low > 0.0:
        return f"the twist that follows the torque is not larger than its error; the stiffness is {least}"
    elastic, resolution = 2e-6 * value * stage.model.size, max(max(one.steps) for one in stage.parts)
    if elastic < resolution:
        return f"the torque twists the joint by {elastic:.2g} rad, less than the resolution of the encoders, {resolution:.2g} rad; the stiffness is {least}"
    if 0.5 * (high - low) > LOOSE * value:
        return f"the stiffness is between {1e6 / high:.3g} and {1e6 / low:.3g} N m/rad: record longer, or with a larger load"
    return ""
