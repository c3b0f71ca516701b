r"""Draws of a drive for randomised simulation: as wide as the model's error, of one more unit, as a poorer law holds them.

The posterior of a fit describes how well the recordings fix the parameters of a law that is right. No law is: the motion that it
simulates misses the recorded one by more than its parameters leave open. Draws for simulations therefore have further factors on friction and
motor torque (:mod:`stribeck.evaluate.draws`), whose relative standard deviation :math:`\varepsilon` is the smallest one with which the spread of
the simulated motion is that of the band of the fit (:mod:`stribeck.identify.servo.prediction`),

.. math:: \overline{var(y(t;\theta_\varepsilon))} = \overline{\kappa^2 (var(y(t;\theta)) + \sigma^2)}

with the mean over the samples of all runs, the error :math:`\sigma` of the model and its factor :math:`\kappa` for the conditions of
each run. With recordings it is the smallest one with which the middle 90 % of the drawn motions contain 90 % of the
samples of one more run (:mod:`stribeck.exports.draw_width`).

A poorer law gets, for each draw, those of its parameters whose motion differs from that of its estimate as the motion of the drawn source
law from that of the source's estimate: least squares by Gauss–Newton steps with the derivatives at the estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Stepping, stepping_of
from stribeck.evaluate.draws import deviation_of, draws_of, uncertain_of
from stribeck.exports.draw_width import Recorded, sizes_for
from stribeck.exports.left_out_runs import errors_of_one_more
from stribeck.exports.runs import batch_of_source, bench_runs, usual_gain
from stribeck.identify.common.quantiles import population_of
from stribeck.identify.servo.prediction import COVERAGE, QUANTILE, half_widths, model_of, motions
from stribeck.model.arrays import Array, Mask
from stribeck.model.joint import STIFFNESS, Drive
from stribeck.model.log import Batch, Log

TRIALS = 256
"""Draws from which the spread of a motion is computed."""

LARGEST = 0.5
"""Largest relative standard deviation of friction and motor torque."""

FIRST, ROUNDS, CLOSE = 0.1, 6, 0.03
"""First trial, most trials and relative accuracy of the search for a spread, whose square grows with that of the error."""

STEPS, CHUNK = 2, 256
"""Gauss–Newton steps of a projection, and draws that are projected together."""

STEP = 0.01
"""Relative change of a parameter for derivatives."""

RIDGE = 1e-4
"""Weight of unchanged parameters in a projection, relative to the largest derivative."""

ROOT_MEAN_SQUARE = "root mean square of position"
"""Error by which a file without a distribution of motions states that of its model."""


@dataclass(frozen=True)
class Width:
    """How wide draws are.

    :param error: relative standard deviation of friction and motor torque for what the law lacks.
    :param posterior: spread of the motion with the posterior alone, root mean square over the samples [rad]; ``None`` for joints of a robot.
    :param reached: that of the draws; likewise.
    :param wanted: that of the band of the fit; ``None`` with recordings, and if the file does not state the error of its model.
    :param coverage: share of the recorded samples within the middle 90 % of the draws, of a robot those of its fit; ``None`` without recordings.
    :param share: of the standard deviations of the posterior that is drawn from.
    :param stated: whether the file of the drive states error and share; they are those of independent parameters.
    """

    error: float
    posterior: float | None
    reached: float | None
    wanted: float | None = None
    coverage: float | None = None
    share: float = 1.0
    stated: bool = False

    def drawn(
        self,
        drive: Drive,
        count: int,
        seed: int | Sequence[int],
        scatter: Mapping[str, float] | None = None,
    ) -> dict[str, Array]:
        """Random values of all parameters of a drive (count,) each, of this width.

        :param scatter: see :func:`stribeck.evaluate.draws.draws_of`.
        """
        return draws_of(
            drive,
            count,
            seed,
            error=self.error,
            share=self.share,
            scatter=scatter,
            correlated=not self.stated,
        )

    def line(self, count: int) -> str:
        """The width in one line."""
        if self.posterior is None or self.reached is None:
            return self._of_robot(count)
        text = (
            f"{count} draws, friction and motor torque ± {100 * self.error:.2g} %: the spread of the motion "
            f"is {1e3 * self.reached:.3g} mrad, {1e3 * self.posterior:.3g} due to the posterior alone"
        )
        if self.share < 1.0:
            text += f", whose standard deviations are reduced to {100 * self.share:.0f} %"
        if self.coverage is not None:
            return f"{text}; the central {100 * COVERAGE:g} % contains {100 * self.coverage:.0f} % of the recorded samples"
        if self.wanted is None:
            return f"{text}; the file states no model error in rad, so none is added"
        return f"{text}, and {1e3 * self.wanted:.3g} in the band of the fit"

    def _of_robot(self, count: int) -> str:
        if not self.stated:
            return (
                f"{count} draws of the parameters' uncertainty alone, which contain far less than 90 % of a recorded motion; "
                "the file states no width of draws: identify the robot again, with three or more runs"
            )
        text = (
            f"{count} draws, friction and motor torque ± {100 * self.error:.2g} %, standard deviations of the parameters × {self.share:.2g}: "
            "chosen by the identification"
        )
        if self.coverage is not None:
            text += (
                f"; the central {100 * COVERAGE:g} % contains {100 * self.coverage:.0f} % of the fitted runs"
            )
        if self.error >= LARGEST:
            text += f"; the largest width, with which less than {100 * COVERAGE:g} % of one more run may be contained"
        return text


def explained(widths: Sequence[Width]) -> str:
    """What the percentages in the lines of widths are; empty if none is drawn."""
    if not any(width.error > 0.0 for width in widths):
        return ""
    text = "± of draws: standard deviation of a log-normal factor (half of its 95 % interval is about twice as wide)"
    if any(width.stated for width in widths):
        text += f"; it was chosen such that simulated motions contain {100 * COVERAGE:g} % of one more run"
    return text


def check_uncertain(drive: Drive, where: object) -> None:
    """Raise :class:`ConfigError` for a drive whose file does not state how uncertain its parameters are."""
    if not np.any(np.diag(uncertain_of(drive).covariance) > 0.0):
        raise ConfigError(
            f"{where} states no intervals, from which parameters could be drawn: identify the drive with at least two runs, or remove the option `draws`"
        )


def motions_of(drive: Drive, drawn: Mapping[str, Array], runs: Batch, stepping: Stepping) -> Array:
    """Positions (T, R, S) [rad] of a drive with drawn values (S,) by parameter; those of other parameters are the drive's."""
    known = drive.actuator.parameters(drive.law)
    names = [name for name, values in drawn.items() if name in known and np.ptp(values) > 0.0]
    model = model_of(drive, runs, stepping.integrator, stepping.reset_period, names)
    points = np.stack([drawn[name] for name in model.parameters.free_names], axis=1)
    return motions(model, points)


def width_for(drive: Drive, runs: Batch, stepping: Stepping) -> Width:
    """How wide draws of a drive are without recordings.

    :param runs: with the motion of the drive.
    """
    alone = spread_of(_trial(drive, 0.0, runs, stepping), runs)
    wanted = _wanted(drive, alone, runs, stepping)
    if wanted is None or wanted <= alone:
        return Width(0.0, alone, alone, wanted)
    error, reached = 0.0, alone
    next_error = FIRST
    for _ in range(ROUNDS):
        error = min(next_error, LARGEST)
        reached = spread_of(_trial(drive, error, runs, stepping), runs)
        if abs(reached / wanted - 1.0) < CLOSE or (error == LARGEST and reached < wanted):
            break
        next_error = error * ((wanted**2 - alone**2) / max(reached**2 - alone**2, 1e-6 * wanted**2)) ** 0.5
    return Width(error, alone, reached, wanted)


def width_of_robot(drive: Drive) -> Width:
    """How wide draws of a joint of a robot are: as its file states (:mod:`stribeck.exports.robot_draws`), otherwise as its posterior."""
    error, share = drive.loss.draw_error, drive.loss.draw_share
    if error is None or share is None:
        return Width(0.0, None, None)
    return Width(error, None, None, coverage=drive.loss.draw_coverage, share=share, stated=True)


def width_of_recorded(drive: Drive, recorded: Batch, stepping: Stepping) -> Width:
    """How wide draws of a drive are that contain recordings and one more run (:mod:`stribeck.exports.draw_width`).

    :param recorded: the runs with the measured motion.
    """
    valid, runs = recorded.weight > 0.0, np.arange(len(recorded.logs))
    alone = spread_of(_trial(drive, 0.0, recorded, stepping), recorded)
    estimate = stepping.motion(drive, recorded).position
    like_new = estimate - errors_of_one_more(drive, recorded, stepping)
    sizes = sizes_for(
        lambda errors, shares: _trial(drive, errors[0], recorded, stepping, shares[0]),
        estimate - recorded.position,
        Recorded(like_new, valid, runs, np.zeros_like(runs)),
    )
    error, share = float(sizes.errors[0]), float(sizes.shares[0])
    found = _trial(drive, error, recorded, stepping, share)
    within = covered(found, recorded.position, valid)
    return Width(error, alone, spread_of(found, recorded), coverage=within, share=share)


def _trial(drive: Drive, error: float, runs: Batch, stepping: Stepping, share: float = 1.0) -> Array:
    drawn = with_stiffness(drive, draws_of(drive, TRIALS, 0, error=error, share=share))
    return motions_of(drive, drawn, runs, stepping)


def with_stiffness(drive: Drive, drawn: Mapping[str, Array]) -> dict[str, Array]:
    """Draws in which the stiffness of a position controller, where it was identified, is part of the scale of its torque."""
    found = dict(drawn)
    if STIFFNESS in drawn and "ratio" in drawn:
        found["ratio"] = drawn["ratio"] * drawn[STIFFNESS] / drive.stated[STIFFNESS].value
    return found


def covered(motion: Array, measured: Array, valid: Mask) -> float:
    """Share of the measured samples (T, R) within the middle :data:`COVERAGE` of motions (T, R, S)."""
    low, high = np.quantile(motion, [0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE], axis=2)
    return float(np.mean(((measured >= low) & (measured <= high))[valid]))


def spread_of(motion: Array, runs: Batch) -> float:
    """Root mean square over samples of the standard deviation of motions (T, R, S) [rad]."""
    return float(np.sqrt(np.sum(runs.weight * np.var(motion, axis=2))))


def width_of(drive: Drive, logs: Sequence[Log] = ()) -> Width:
    """How wide draws of a drive are in recordings, or else on the bench trajectories by which exports are judged.

    :raises ConfigError: if nothing is uncertain, or neither recordings nor the file say how wrong the model is.
    """
    check_uncertain(drive, "the fit")
    if drive.of_robot:
        width = width_of_robot(drive)
        if not width.stated:
            raise ConfigError(
                "the file states no width of draws: identify the robot again, with three or more runs, or remove `model_error`"
            )
        return width
    stepping = stepping_of(drive)
    if logs:
        return width_of_recorded(drive, batch_of_source(drive, logs, stepping)[0], stepping)
    benches = bench_runs(drive, usual_gain(drive), drive.actuator.supply.nominal)
    width = width_for(drive, batch_of_source(drive, benches, stepping)[1], stepping)
    if width.wanted is None:
        raise ConfigError(
            "the fit states no model error in rad, which is needed to widen draws: remove `model_error`"
        )
    return width


def _wanted(drive: Drive, alone: float, runs: Batch, stepping: Stepping) -> float | None:
    """Spread [rad] of the band of a fit; ``None`` if the file states no error of its model.

    :param alone: spread with the posterior alone [rad].
    """
    if drive.prediction is not None:
        band = half_widths(drive, runs, stepping.integrator, stepping.reset_period)
        return float(np.sqrt(np.sum(runs.weight * (band / QUANTILE) ** 2)))
    error = drive.loss.train
    if error is None or drive.loss.name != ROOT_MEAN_SQUARE:
        return None
    return float(np.hypot(alone, error))


def scatter_of(drives: Sequence[Drive]) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and standard deviation between units of each parameter that is uncertain in two of them at least.

    :raises ConfigError: for fewer than two units, or units with different laws.
    """
    if len(drives) < 2:
        raise ConfigError(f"the spread between drives needs at least two of them, found {len(drives)}")
    laws = {drive.law.name for drive in drives}
    if len(laws) > 1 or len({drive.actuator.name for drive in drives}) > 1:
        found = ", ".join(f"{drive.actuator.name} with {drive.law.name.upper()}" for drive in drives)
        raise ConfigError(f"the spread between drives needs equal servos with the same law, found {found}")
    means, scatters = {}, {}
    for name in drives[0].values:
        stated = [drive.stated.get(name) for drive in drives]
        sigma = [0.0 if one is None else deviation_of(one) for one in stated]
        variances = np.array([s**2 if s > 0.0 else np.inf for s in sigma])
        if np.isfinite(variances).sum() >= 2:
            population = population_of(np.array([drive.values[name] for drive in drives]), variances)
            means[name], scatters[name] = population.mean, population.scatter
    return means, scatters


def drawn_as_held(
    source: Drive, held: Drive, drawn: Mapping[str, Array], runs: Batch, stepping: Stepping
) -> dict[str, Array]:
    """Draws (S,) of the parameters that a format holds.

    Where the format has the source's own values, they are the draws of the source; otherwise they are projected.

    :param runs: the runs with the motion of the source law.
    """
    bench = ("q_offset",)
    if all(held.values[name] == source.values.get(name) for name in held.values):
        return {name: values for name, values in drawn.items() if name in held.values and name not in bench}
    known = held.actuator.parameters(held.law)
    names = [
        name for name, value in held.values.items() if name in known and name not in bench and value != 0.0
    ]
    scale = np.array([abs(held.values[name]) for name in names])
    ends = np.array([(known[name].lower, known[name].upper) for name in names]).T
    centre = np.array([held.values[name] for name in names])
    ends = np.stack([np.minimum(ends[0], centre), np.maximum(ends[1], centre)])
    weight = np.sqrt(runs.weight)[:, :, None]

    def moved(points: Array) -> Array:
        found = motions_of(held, dict(zip(names, points.T, strict=True)), runs, stepping)
        return np.asarray((weight * found).reshape(-1, len(points)))

    apart = STEP * np.diag(scale)
    both = moved(np.concatenate([centre + apart, centre - apart, centre[None]]))
    slopes = (both[:, : len(names)] - both[:, len(names) : -1]) / (2.0 * STEP)
    at = both[:, -1:]
    normal = slopes.T @ slopes
    inverse = np.linalg.solve(normal + RIDGE * np.max(np.diag(normal)) * np.eye(len(names)), slopes.T)
    from_source = (weight * runs.position[:, :, None]).reshape(-1, 1)
    count, parts = len(next(iter(drawn.values()))), []
    for first in range(0, count, CHUNK):
        part = {name: values[first : first + CHUNK] for name, values in drawn.items()}
        away = (weight * motions_of(source, part, runs, stepping)).reshape(len(from_source), -1) - from_source
        points = np.tile(centre, (away.shape[1], 1))
        for k in range(STEPS):
            missing = away - (moved(points) - at if k else 0.0)
            points = np.clip(points + scale * (inverse @ missing).T, ends[0], ends[1])
        parts.append(points)
    return dict(zip(names, np.concatenate(parts).T, strict=True))


def held_draw(held: Drive, drawn: Mapping[str, Array], k: int) -> Drive:
    """What a format holds with the values of a draw."""
    return replace(held, values={**held.values, **{name: float(values[k]) for name, values in drawn.items()}})
