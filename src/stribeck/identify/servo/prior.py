r"""Prior knowledge of motor constants and load terms, weighted against the data.

With the current limit on, a fit should hold at gains that were not recorded, but a law with many load terms can trade
them against the motor constants without any effect at the recorded gains. Two facts are known in advance: the motor
constants of the datasheet, and that a gearbox loses nearly the same power in both directions. Both enter as normal
distributions,

.. math:: L\,\exp\Big(\frac{1}{2 n} \sum_i \big((a_i^T\theta - \mu_i)/\sigma_i\big)^2\Big),

whose minimum is the posterior mode for Laplace-distributed errors of unknown scale and n independent samples. The
residual is smooth model error, so n counts only a few samples per run; if every sample counted as independent, the
prior would have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.identify.common.minimise import NormalEquations
from stribeck.identify.servo.rollout import Rollout
from stribeck.model.actuator import Actuator
from stribeck.model.arrays import Array
from stribeck.model.parameters import ParameterSet
from stribeck.model.terms import PAIRS

SAMPLES_PER_RUN = 3.0
"""Independent samples in a run: runs take 6 s, and the correlation time of the residual is about two seconds."""

DIRECTION_SPREAD = 0.1
"""Standard deviation of the difference within a pair; in published servo models it is 0 to 0.25."""


@dataclass(frozen=True, eq=False)
class Prior:
    r"""Normal distributions of linear combinations of the free parameters, in the unit cube.

    :param rows: :math:`a_i/\sigma_i` (m, n).
    :param offsets: :math:`-\mu_i/\sigma_i` (m,).
    :param samples: number n of independent samples in the data.
    """

    rows: Array
    offsets: Array
    samples: float

    def exponent(self, unit: Array) -> Array:
        """Exponent of the factor on the loss at points (S, n), shape (S,)."""
        distance = unit @ self.rows.T + self.offsets
        return np.asarray(0.5 * np.sum(distance**2, axis=1) / self.samples)

    def gradient(self, unit: Array) -> Array:
        """Gradient of :meth:`exponent` (S, n)."""
        return np.asarray((unit @ self.rows.T + self.offsets) @ self.rows / self.samples)

    @property
    def hessian(self) -> Array:
        """Second derivative of :meth:`exponent` (n, n)."""
        return self.rows.T @ self.rows / self.samples


def prior_for(actuator: Actuator, parameters: ParameterSet, runs: float) -> Prior | None:
    """The prior of a fit; ``None`` unless the current limit is on.

    :param runs: number of runs, divided by the strength of the prior.
    """
    if "current-limit" not in actuator.active_effects:
        return None
    rise = {"kt": actuator.rise_of_constant}
    terms: list[tuple[dict[str, float], float, float]] = [
        ({name: 1.0}, mean * rise.get(name, 1.0), spread * rise.get(name, 1.0))
        for name, (mean, spread) in actuator.datasheet.prior.items()
    ]
    terms += [({motor: 1.0, external: -1.0}, 0.0, DIRECTION_SPREAD) for motor, external in PAIRS]
    rows, offsets = [], []
    for weights, mean, spread in terms:
        if not all(name in parameters.free_names for name in weights):
            continue
        row = np.array([weights.get(name, 0.0) for name in parameters.free_names])
        rows.append(row * (parameters.upper - parameters.lower) / spread)
        offsets.append((row @ parameters.lower - mean) / spread)
    if not rows:
        return None
    return Prior(np.stack(rows), np.array(offsets), SAMPLES_PER_RUN * runs)


@dataclass(frozen=True, eq=False)
class WithPrior:
    """A rollout with a prior in its loss; a :class:`~stribeck.identify.servo.incumbent.SearchProblem`."""

    rollout: Rollout
    prior: Prior

    @property
    def dimension(self) -> int:
        """Number of free parameters."""
        return self.rollout.dimension

    def with_reset_period(self, reset_period: float | None) -> WithPrior:
        """The problem with another reset period."""
        return WithPrior(self.rollout.with_reset_period(reset_period), self.prior)

    def losses(self, unit: npt.ArrayLike) -> Array:
        """Losses with the prior at points (C, n), shape (C,)."""
        points = np.asarray(unit, dtype=np.float64)
        return self.rollout.losses(points) * np.exp(self.prior.exponent(points))

    def normal_equations(self, unit: npt.ArrayLike) -> NormalEquations:
        """Local least-squares problems at points (S, n)."""
        points = np.asarray(unit, dtype=np.float64)
        loss, gradient, hessian = self.rollout.normal_equations(points)
        factor = np.exp(self.prior.exponent(points))
        gradient = gradient + loss[:, None] * self.prior.gradient(points)
        hessian = hessian + loss[:, None, None] * self.prior.hessian
        return NormalEquations(loss * factor, gradient * factor[:, None], hessian * factor[:, None, None])
