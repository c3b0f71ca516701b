r"""Friction that changes over the position, :math:`s(\theta - \theta_c) + c(\theta - \theta_c)^2`.

Together with Coulomb friction it is at least zero. The centre :math:`\theta_c` is not identified.
"""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, FrictionParameter, RobotSearch, Term, Units

_ROBOT = RobotSearch(0.0, -20.0, 20.0, 0.3)


def _formula(x: Conditions, xp: Any, slope: Any, curve: Any, centre: Any) -> Any:
    away = x.position - centre
    return away * (slope + away * curve)


POSITION = Term(
    "position",
    "friction that depends on the position",
    "dry",
    (
        FrictionParameter(
            "friction_slope", "s", Units("N m/rad", "N/m"), (-0.1, 0.1), sign="any", robot=_ROBOT
        ),
        FrictionParameter(
            "friction_curve", "c", Units("N m/rad^2", "N/m^2"), (-0.1, 0.1), sign="any", robot=_ROBOT
        ),
        FrictionParameter(
            "friction_centre", "theta_c", Units("rad", "m"), (-10.0, 10.0), sign="any", thermal=False, free=False
        ),
    ),
    _formula,
)  # fmt: skip
