r"""Friction that has changed since it was identified: one Kalman filter per joint, while it moves.

The residual torque of a moving joint is :math:`r = -(s_c\,\varphi_c + s_v\,\varphi_v + o\,b) + w`, with the
identified friction at the measured motion, :math:`\varphi_c` all of it but the viscous part and
:math:`\varphi_v` the viscous part, both filtered as r is, and its level b at rest. The scales
:math:`s_c, s_v` wander slowly; the offset o is what is left of it, model errors included, and follows fast
(an observer of bounded bandwidth) or slowly. States stay within bounds; whatever does not look like
friction changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

STATES = 3
"""Coulomb scale, viscous scale, offset."""


@dataclass(frozen=True)
class AdaptationSettings:
    """How fast friction may change, and how far.

    :param scale_lower: bounds of both scales [1].
    :param scale_upper: upper bounds.
    :param offset_limit: bound of the offset, as a share of the friction at rest [1].
    :param prior: standard deviation of the scales before any motion [1].
    :param drift: by how much a scale may have changed after one second of motion [1/√s].
    :param together: correlation of both scales before any motion [1].
    :param wander: by how much the offset may have changed after one second of motion, as a share of the
        friction at rest [1/√s].
    :param noise: standard deviation of a residual, as a share of the friction at rest [1].
    """

    scale_lower: float = 0.25
    scale_upper: float = 2.2
    offset_limit: float = 0.6
    prior: float = 0.5
    together: float = 0.8
    drift: float = 0.05
    wander: float = 0.3
    noise: float = 0.15


class ScaleFilter:
    """Scales and offset of n joints.

    :param level: friction of each joint at rest b, (n,) [N m].
    """

    def __init__(self, level: FloatArray, settings: AdaptationSettings) -> None:
        n = len(level)
        self.settings = settings
        self._level = level
        self._lower = np.array([settings.scale_lower, settings.scale_lower, -settings.offset_limit])
        self._upper = np.array([settings.scale_upper, settings.scale_upper, settings.offset_limit])
        self.state: FloatArray = np.tile([1.0, 1.0, 0.0], (n, 1))
        self.covariance: FloatArray = np.zeros((n, STATES, STATES))
        self.covariance[:, 0, 0] = self.covariance[:, 1, 1] = settings.prior**2
        self.covariance[:, 0, 1] = self.covariance[:, 1, 0] = settings.together * settings.prior**2
        self.covariance[:, 2, 2] = 0.1**2
        self._growth = np.diag([settings.drift**2, settings.drift**2, settings.wander**2])
        self.deviation: FloatArray = np.full(n, settings.prior)
        """Standard deviation of the friction at the last motion that was learnt from, as a share of it, (n,)."""

    def restrict(self) -> None:
        """Bring the states within their bounds."""
        self.state = np.clip(self.state, self._lower, self._upper)

    def _regressors(self, coulomb: FloatArray, viscous: FloatArray) -> FloatArray:
        regressors = np.ones_like(self.state)
        regressors[:, 0], regressors[:, 1] = coulomb / self._level, viscous / self._level
        return regressors

    def innovation(self, residual: FloatArray, coulomb: FloatArray, viscous: FloatArray) -> FloatArray:
        """What a residual has beyond the prediction, as a share of the friction at rest, (n,)."""
        return self._innovation(residual, self._regressors(coulomb, viscous))

    def _innovation(self, residual: FloatArray, regressors: FloatArray) -> FloatArray:
        return np.asarray(-residual / self._level - (regressors * self.state).sum(axis=1))

    def update(
        self,
        residual: FloatArray,
        coulomb: FloatArray,
        viscous: FloatArray,
        moving: BoolArray,
        smoothing: FloatArray,
        dt: float,
    ) -> BoolArray:
        """Take in a residual; which joints learnt from it.

        :param residual: r [N m], (n,).
        :param coulomb: φ_c [N m], with the sign of the motion.
        :param viscous: φ_v [N m].
        :param moving: where the motion tells friction.
        :param smoothing: time constant of the residual [s]: errors within it are correlated.
        :param dt: time since the last step [s].
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
        self.state = np.minimum(np.maximum(state, self._lower), self._upper)
        self.covariance = cov - gain[:, :, None] * product[:, None, :]
        whole = np.maximum(np.abs(regressors[:, 0] + regressors[:, 1]), 0.3)
        self.deviation = np.where(moving, np.sqrt(variance * noise / total) / whole, self.deviation)
        return moving
