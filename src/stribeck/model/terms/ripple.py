r"""A torque that repeats with the angle, such as the cogging of a motor, beside motor and external torque.

.. math:: \tau_0(\theta) = a\cos n\theta + b\sin n\theta

with n periods per 2π rad at the output shaft. Two waves can be added to a law; a wave of order 0 is a constant torque.
The orders are not identified.
"""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, FrictionParameter, RobotSearch, Term, Units

_TORQUE = Units("N m", "N")
_ROBOT = RobotSearch(0.0, -5.0, 5.0, 0.5)


def _formula(x: Conditions, xp: Any, order: Any, cosine: Any, sine: Any) -> Any:
    angle = order * x.position
    return cosine * xp.cos(angle) + sine * xp.sin(angle)


def _wave(name: str, title: str) -> Term:
    return Term(
        name,
        title,
        "offset",
        (
            FrictionParameter(
                f"{name}_order",
                "n",
                Units("1", "rad/m"),
                (0.0, 1000.0),
                thermal=False,
                free=False,
                given=True,
            ),
            FrictionParameter(
                f"{name}_cosine", "a", _TORQUE, (-0.1, 0.1), sign="any", thermal=False, robot=_ROBOT
            ),
            FrictionParameter(
                f"{name}_sine", "b", _TORQUE, (-0.1, 0.1), sign="any", thermal=False, robot=_ROBOT
            ),
        ),
        _formula,
    )


RIPPLE = _wave("ripple", "the torque ripple")
SECOND_RIPPLE = _wave("second_ripple", "the second torque ripple")
