r"""Online adaptation of the identified friction: one Kalman filter per joint, updated while the joint moves.

The residual torque of a moving joint is modelled as :math:`r = -(s_c\,\varphi_c + s_v\,\varphi_v + o\,b) + w`.
:math:`\varphi_v` is the viscous part of the identified friction at the measured motion and :math:`\varphi_c` the rest
of it, both filtered like r; b is the identified friction at rest. The scales :math:`s_c, s_v` drift slowly; the
offset o, which also absorbs model errors, may change faster. All states are bounded, and residuals that do not look
like friction are ignored. The bound of the offset is :data:`MODEL_ERROR` of the modelled weight wider: of a joint whose friction is small beside its
weight, the residual is the error of that weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stribeck.model.arrays import Array, Mask

STATES = 3
"""Coulomb scale, viscous scale, offset."""

MODEL_ERROR = 0.1
"""Relative error of the modelled weight that the offset may hold beside errors of the friction [1]."""


@dataclass(frozen=True)
class AdaptationSettings:
    """How fast and how far friction may change.

    :param scale_lower: lower bound of both scales [1].
    :param scale_upper: upper bound of both scales [1].
    :param offset_limit: bound of the offset, as a fraction of the friction at rest, without an error of the model [1].
    :param prior: standard deviation of the scales before any motion [1].
    :param drift: standard deviation of the change of a scale after one second of motion [1/√s].
    :param together: correlation of both scales before any motion [1].
    :param wander: standard deviation of the change of the offset after one second of motion, as a fraction of
        the friction at rest [1/√s].
    :param noise: standard deviation of a residual, as a fraction of the friction at rest [1].
    """

    scale_lower: float = 0.05
    scale_upper: float = 2.2
    offset_limit: float = 0.6
    prior: float = 0.5
    together: float = 0.8
    drift: float = 0.05
    wander: float = 0.3
    noise: float = 0.15


class ScaleFilter:
    """Kalman filters of the scales and offsets of n joints with friction b = ``level`` at rest, (n,) [N m]."""

    def __init__(self, level: Array, settings: AdaptationSettings) -> None:
        n = len(level)
        self.settings = settings
        self._level = level
        self._lower = np.array([settings.scale_lower, settings.scale_lower, -settings.offset_limit])
        self._upper = np.array([settings.scale_upper, settings.scale_upper, settings.offset_limit])
        self.state: Array = np.tile([1.0, 1.0, 0.0], (n, 1))
        self.covariance: Array = np.zeros((n, STATES, STATES))
        self.covariance[:, 0, 0] = self.covariance[:, 1, 1] = settings.prior**2
        self.covariance[:, 0, 1] = self.covariance[:, 1, 0] = settings.together * settings.prior**2
        self.covariance[:, 2, 2] = 0.1**2
        self._growth = np.diag([settings.drift**2, settings.drift**2, settings.wander**2])
        self.deviation: Array = np.full(n, settings.prior)
        """Relative standard deviation of the friction at the last motion used for learning, (n,)."""

    def restrict(self) -> None:
        """Clip the states to their bounds."""
        self.state = np.clip(self.state, self._lower, self._upper)

    def _regressors(self, coulomb: Array, viscous: Array) -> Array:
        regressors = np.ones_like(self.state)
        regressors[:, 0], regressors[:, 1] = coulomb / self._level, viscous / self._level
        return regressors

    def variance(self, coulomb: Array, viscous: Array) -> Array:
        """Variance of the friction by its scales, as a fraction of that at rest squared, (n,)."""
        x, y, cov = coulomb / self._level, viscous / self._level, self.covariance
        return np.asarray(x * x * cov[:, 0, 0] + 2.0 * x * y * cov[:, 0, 1] + y * y * cov[:, 1, 1])

    def innovation(self, residual: Array, coulomb: Array, viscous: Array) -> Array:
        """Residual minus its prediction, as a fraction of the friction at rest, (n,)."""
        return self._innovation(residual, self._regressors(coulomb, viscous))

    def _innovation(self, residual: Array, regressors: Array) -> Array:
        return np.asarray(-residual / self._level - (regressors * self.state).sum(axis=1))

    def update(
        self,
        residual: Array,
        coulomb: Array,
        viscous: Array,
        moving: Mask,
        smoothing: Array,
        dt: float,
        offset_limit: Array | None = None,
    ) -> Mask:
        """Update the filters with a residual; returns which joints learnt from it.

        :param residual: r [N m], (n,).
        :param coulomb: φ_c [N m], with the sign of the motion.
        :param viscous: φ_v [N m].
        :param moving: joints whose motion allows learning friction.
        :param smoothing: time constant of the residual [s]; errors within it are correlated.
        :param dt: time since the last step [s].
        :param offset_limit: bounds of the offsets in this motion, per friction at rest, (n,); by default that of the settings.
        """
        if True not in moving.tolist():
            return moving
        regressors = self._regressors(coulomb, viscous)
        innovation = self._innovation(residual, regressors)
        cov = self.covariance + self._growth * (dt * moving)[:, None, None]
        product = (cov @ regressors[:, :, None])[:, :, 0]
        variance = (product * regressors).sum(axis=1)
        noise = self.settings.noise**2 * np.maximum(smoothing / max(dt, 1e-6), 1.0)
        total = variance + noise
        gain = product * (moving / total)[:, None]
        state = self.state + gain * innovation[:, None]
        lower, upper = self._lower, self._upper
        if offset_limit is not None:
            most = np.where(moving, offset_limit, np.inf)
            lower, upper = np.tile(lower, (len(most), 1)), np.tile(upper, (len(most), 1))
            lower[:, 2], upper[:, 2] = -most, most
        self.state = np.minimum(np.maximum(state, lower), upper)
        self.covariance = cov - gain[:, :, None] * product[:, None, :]
        whole = np.maximum(np.abs(regressors[:, 0] + regressors[:, 1]), 0.3)
        self.deviation = np.where(moving, np.sqrt(variance * noise / total) / whole, self.deviation)
        return moving
