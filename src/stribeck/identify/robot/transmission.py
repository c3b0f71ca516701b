r"""Stiffness and hysteresis of transmissions, from encoders on both sides.

The twist of a joint, motor minus link position at the link's side, is

.. math:: q_m - q_l = \frac{\tau_t}{k} + h\,z + \delta\,\dot q_m + c, \quad \tau_t = n\,\tau_m - n^2 I_r\,\ddot q_m,

with stiffness k [N m/rad], ratio n, rotor inertia :math:`I_r` [kg m²], half the height h [rad] of the hysteresis, the time
:math:`\delta` [s] by which the link is measured earlier than the motor, and an offset c [rad]. The state z of the
hysteresis follows the motor within :math:`\pm 1` over a travel of 2 r (play operator): :math:`z = (q_m - p)/r`, where p is
dragged along by :math:`|q_m - p| \le r`. With a small r it is the direction of motion. Friction between motor and gear, which
the motor's torque contains, makes h smaller, or negative.
Source: Visintin, "Differential models of hysteresis", Springer, 1994, ch. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear

from stribeck.errors import RecordingError
from stribeck.identify.common.clusters import bias_reduced
from stribeck.identify.common.quantiles import estimate_about
from stribeck.identify.robot.problem import motion_of
from stribeck.model.estimate import Estimate

Array = npt.NDArray[np.float64]

TRAVELS = tuple(np.radians((0.003, 0.01, 0.03, 0.1, 0.3)))
"""Candidates of the travel r [rad]."""

FOLDS = 5
"""Parts of equal length of which each is predicted from the others to choose the travel."""

FILTER = 10.0
"""Cut-off of the zero-phase filter of motion and torque [Hz]."""

UNITS = {"compliance": "µrad/(N m)", "hysteresis": "rad", "skew": "s", "offset": "rad"}


@dataclass(frozen=True, eq=False)
class EncoderRun:
    """Positions on both sides of the transmissions of J joints at the link's side, and torque.

    :param motor, link: (T, J) [rad].
    :param torque: motor torque times ratio (T, J) [N m].
    :param inertia: of the rotor, times the square of the ratio (J,) [kg m²].
    """

    name: str
    dt: float
    motor: Array
    link: Array
    torque: Array
    inertia: Array

    def __post_init__(self) -> None:
        shapes = {part.shape for part in (self.motor, self.link, self.torque)}
        if len(shapes) > 1 or self.inertia.shape != self.motor.shape[1:]:
            raise RecordingError(f"{self.name}: motor, link and torque need equal shapes, found {shapes}")
        if len(self.motor) * self.dt < 2.0:
            raise RecordingError(f"{self.name} lasts less than 2 s; record longer runs")
        if not all(np.isfinite(part).all() for part in (self.motor, self.link, self.torque)):
            raise RecordingError(
                f"{self.name} contains NaN or infinite values in the chosen columns: remove these rows"
            )


@dataclass(frozen=True, eq=False)
class Transmission:
    """The transmission of one joint.

    :param travel: r [rad].
    :param estimates: of compliance 1/k [µrad/(N m)], hysteresis h, skew and offset.
    :param left_out: rms error of parts that were predicted from the others [rad].
    """

    travel: float
    estimates: dict[str, Estimate]
    left_out: float

    @property
    def stiffness(self) -> float | None:
        """Stiffness k [N m/rad], None if the data show no compliance."""
        compliance = self.estimates["compliance"]
        return 1e6 / compliance.value if compliance.value > 0.0 and compliance.known else None

    def predict(self, run: EncoderRun, joint: int) -> Array:
        """Twist (T,) [rad]."""
        values = np.array([self.estimates[name].value for name in UNITS])
        return np.asarray(_regressors(run, joint, self.travel) @ values)


def hysteresis_state(position: Array, travel: float) -> Array:
    """The state z of the module's docstring, from 0 (T,)."""
    state, dragged = np.empty_like(position), float(position[0])
    for k, value in enumerate(position):
        dragged = min(max(dragged, value - travel), value + travel)
        state[k] = (value - dragged) / travel
    return state


def identify_transmission(runs: Sequence[EncoderRun], joint: int) -> Transmission:
    """Fit the twist of a joint by least squares; the travel is chosen by parts left out.

    Intervals count each part as one independent piece (CR2).
    """
    twist = np.concatenate([run.motor[:, joint] - run.link[:, joint] for run in runs])
    parts = np.concatenate([np.arange(len(run.motor)) * FOLDS // len(run.motor) for run in runs])
    owners = np.repeat(np.arange(len(runs)), [len(run.motor) for run in runs])
    errors, matrices = [], []
    for travel in TRAVELS:
        matrix = np.concatenate([_regressors(run, joint, travel) for run in runs])
        error = np.empty_like(twist)
        for part in range(FOLDS):
            out = parts == part
            error[out] = twist[out] - matrix[out] @ _least_squares(matrix[~out], twist[~out])
        errors.append(float(np.sqrt(np.mean(error**2))))
        matrices.append(matrix)
    best = int(np.argmin(errors))
    matrix = matrices[best]
    values = _least_squares(matrix, twist)
    residual = matrix @ values - twist
    pieces = [
        np.flatnonzero((parts == part) & (owners == run)) for run in range(len(runs)) for part in range(FOLDS)
    ]
    scores = np.array([matrix[rows].T @ residual[rows] for rows in pieces])
    widths = bias_reduced(scores, np.array([matrix[rows].T @ matrix[rows] for rows in pieces])).half_widths()
    estimates = {
        name: estimate_about(value, unit, width)
        for (name, unit), value, width in zip(UNITS.items(), values, widths, strict=True)
    }
    return Transmission(TRAVELS[best], estimates, errors[best])


def _regressors(run: EncoderRun, joint: int, travel: float) -> Array:
    """Columns of compliance, hysteresis, skew and offset (T, 4)."""
    _, velocity, acceleration = motion_of(run.motor[:, [joint]], run.dt, FILTER)
    torque = motion_of(run.torque[:, [joint]], run.dt, FILTER)[0] - run.inertia[joint] * acceleration
    state = hysteresis_state(run.motor[:, joint], travel)
    return np.stack([1e-6 * torque[:, 0], state, velocity[:, 0], np.ones(len(state))], axis=1)


def _least_squares(matrix: Array, values: Array) -> Array:
    """Values of the columns, a compliance of at least 0."""
    size = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    lower = [0.0, -np.inf, -np.inf, -np.inf]
    return np.asarray(lsq_linear(matrix / size, values, (lower, np.inf)).x / size)
