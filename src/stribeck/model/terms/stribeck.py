r"""Stribeck weight :math:`s(\dot\theta) = \exp(-|\dot\theta/v_s|^\alpha)` of the fading terms. Paper, eq. (6)."""

from __future__ import annotations

from typing import Any

from stribeck.model.namespace import array_namespace
from stribeck.model.terms.term import ArmShape, Conditions, FrictionParameter, RobotSearch, Term, Units

SMALLEST_RATIO = 1e-30
"""Velocities below this share of the Stribeck velocity count as rest."""

SMALLEST_RATIO_OF_SLOPE = 1e-9
"""The same for the slope of the weight, whose derivatives contain the square of the ratio in float32."""


def stribeck_weight(velocity: Any, dtheta_stribeck: Any, alpha: Any) -> Any:
    r"""Stribeck weight :math:`s(\dot\theta) = \exp(-|\dot\theta / v_s|^\alpha)`, 1 at rest.

    :param velocity: joint velocity [rad/s].
    :param dtheta_stribeck: Stribeck velocity :math:`v_s > 0` [rad/s].
    :param alpha: curvature :math:`\alpha > 0` [1].

    At rest :math:`|x|^\alpha` has no derivative in :math:`\alpha`. The ratio is therefore kept
    above :data:`SMALLEST_RATIO`, so that values and gradients are finite everywhere and the weight at
    rest is exactly 1. Paper, eq. (6).
    """
    xp = array_namespace(velocity, dtheta_stribeck, alpha)
    return _weight(xp.abs(velocity), xp, dtheta_stribeck, alpha)


def stribeck_slope(velocity: Any, dtheta_stribeck: Any, alpha: Any, weight: Any) -> Any:
    r"""Derivative of the Stribeck weight with respect to speed :math:`-\frac{\alpha}{v_s} r^{\alpha-1} s` [s/rad].

    :param weight: :math:`s` of :func:`stribeck_weight` at this velocity; :math:`r = |\dot\theta| / v_s`.
    """
    xp = array_namespace(velocity, dtheta_stribeck, alpha)
    ratio = xp.maximum(xp.abs(velocity) / dtheta_stribeck, SMALLEST_RATIO_OF_SLOPE)
    return -alpha * weight * xp.exp(alpha * xp.log(ratio)) / (ratio * dtheta_stribeck)


def _weight(speed: Any, xp: Any, dtheta_stribeck: Any, alpha: Any) -> Any:
    ratio = xp.maximum(speed / dtheta_stribeck, SMALLEST_RATIO)
    return xp.exp(-xp.exp(alpha * xp.log(ratio)))


def _formula(x: Conditions, xp: Any, dtheta_stribeck: Any, alpha: Any) -> Any:
    return _weight(x.speed, xp, dtheta_stribeck, alpha)


STRIBECK = Term(
    "stribeck",
    "the Stribeck effect (friction that falls with speed)",
    "weight",
    (
        FrictionParameter(
            "dtheta_stribeck", "v_s", Units("rad/s", "m/s"), (0.1, 3.0), sign="positive", thermal=False,
            shape=ArmShape(0.005, 2.0, 0.1, 1.0, 1.0, of_speed=True),
            robot=RobotSearch(0.3, 0.02, 3.0, 0.2), value=1.0,
        ),
        FrictionParameter(
            "alpha", "alpha", Units("1", "1"), (1.0, 10.0), sign="positive", thermal=False, value=1.0,
            shape=ArmShape(0.5, 3.0, 0.3, 1.0, 0.3),
        ),
    ),
    _formula,
)  # fmt: skip
