"""Prediction error of an arm's posterior and of least squares as a function of the amount of training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.errors import ConfigError, RecordingError
from stribeck.identify.arm.config import Protocol
from stribeck.identify.arm.least_squares import fit_linear, fit_rows
from stribeck.identify.arm.motion import ProcessedMotion, motion_of
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.regressor import Machine, design, structural_base
from stribeck.identify.arm.residuals import scores
from stribeck.identify.posterior.arm import ArmDraws, infer
from stribeck.identify.posterior.likelihood import torque_posterior
from stribeck.identify.posterior.measures import mean_torque
from stribeck.identify.posterior.network import link_frames
from stribeck.identify.posterior.prior import ArmPrior
from stribeck.model.arrays import Array

ROUNDS = 30


@dataclass(frozen=True)
class FewData:
    """Relative torque errors on the moving rows of the remaining recording.

    :param seconds: duration of the training data [s].
    :param posterior: error of the posterior mean torque.
    :param least_squares: error of weighted least squares.
    :param plain: whether the motion excited all base parameters; otherwise least squares has minimum norm.
    :param train, test: the motions.
    """

    seconds: float
    posterior: float
    least_squares: float
    plain: bool
    draws: ArmDraws
    train: ProcessedMotion
    test: ProcessedMotion


def few_data(
    prior: ArmPrior,
    machine: Machine,
    run: ArmRecording,
    protocol: Protocol,
    seconds: Sequence[float],
    seed: int,
    *,
    draws: int = 300,
    rotors_known: bool = False,
    done: Callable[[float], None] = lambda length: None,
) -> list[FewData]:
    """For each of several durations, train on the start of a run and predict the rest.

    :raises ConfigError: for a machine without a URDF, or durations that leave nothing to predict.
    """
    if machine.arm is None:
        raise ConfigError(
            "no URDF found; the posterior of an arm needs one: give `model`, or name it in the machine file"
        )
    results = []
    for length in seconds:
        cut = int(np.searchsorted(run.time, run.time[0] + length))
        if not 0 < cut < len(run.time):
            raise ConfigError(
                f"{run.name} lasts {run.time[-1] - run.time[0]:.3g} s, so {length:g} s of training leave nothing to predict: use a shorter part"
            )
        train, test = (
            motion_of(part, protocol) for part in (run.between(0, cut), run.between(cut, len(run.time)))
        )
        posterior = torque_posterior(
            prior,
            link_frames(machine.arm),
            machine,
            [train],
            protocol.rest,
            lambda motion: fit_rows(motion, protocol),
            rotors_known=rotors_known,
        )
        posterior_draws = infer(posterior, None, draws, seed)
        mean = mean_torque(posterior_draws, machine, test, protocol.rest)
        least, plain = weighted_least_squares(machine, train, test, protocol)
        results.append(
            FewData(length, _error(test, mean), _error(test, least), plain, posterior_draws, train, test)
        )
        done(length)
    return results


def weighted_least_squares(
    machine: Machine, train: ProcessedMotion, test: ProcessedMotion, protocol: Protocol
) -> tuple[Array, bool]:
    """Predicted torques of a test motion, and whether the training motion excited all base parameters.

    If it did not, the minimum-norm solution is used, with columns scaled to unit length.
    """
    try:
        return fit_linear(machine, [train], protocol, "weighted").predict(test), True
    except RecordingError:
        pass
    base = structural_base(machine, protocol.rest, "symmetric")
    used = fit_rows(train, protocol)
    rows = base.reduce(design(machine, train.states, protocol.rest).columns)[used]
    torque, joint = train.torque[used], np.nonzero(used)[1]
    scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-12)
    weights = np.ones(len(rows))
    for _ in range(ROUNDS):
        values = np.linalg.lstsq(rows * weights[:, None] / scale, torque * weights, rcond=1e-10)[0] / scale
        residual = torque - rows @ values
        sizes = [
            np.sqrt(np.mean(residual[joint == j] ** 2)) if np.any(joint == j) else 1.0
            for j in range(used.shape[1])
        ]
        weights = 1.0 / np.maximum(np.array(sizes), 1e-9)[joint]
    return base.reduce(design(machine, test.states, protocol.rest).columns) @ values, False


def _error(motion: ProcessedMotion, torque: Array) -> float:
    return float(scores([motion], [torque])["moving"]["all"])
