r"""Friction that changes over the position, :math:`s\delta + c\delta^2` with :math:`\delta = \theta - \theta_c`.

Together with Coulomb friction it is at least zero. The centre :math:`\theta_c` and the reach :math:`r` follow from the
recorded positions: beyond them, where :math:`|\delta| > r`, friction stays as it is at :math:`|\delta| = r`.
"""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, FrictionParameter, RobotSearch, Term, Units

_ROBOT = RobotSearch(0.0, -20.0, 20.0, 0.3)


def _formula(x: Conditions, xp: Any, slope: Any, curve: Any, centre: Any, reach: Any) -> Any:
    away = xp.maximum(xp.minimum(x.position - centre, reach), -reach)
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
        FrictionParameter(
            "friction_reach", "r", Units("rad", "m"), (0.0, 1000.0), sign="nonnegative", thermal=False, value=1000.0, free=False
        ),
    ),
    _formula,
)  # fmt: skip
