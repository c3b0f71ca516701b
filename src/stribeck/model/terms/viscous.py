r"""Viscous friction :math:`K_v|\dot\theta|`. Paper, eq. (3)."""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, FrictionParameter, RobotSearch, Term, Units


def _formula(x: Conditions, xp: Any, viscous: Any) -> Any:
    return viscous * x.speed


VISCOUS = Term(
    "viscous",
    "viscous friction",
    "viscous",
    (
        FrictionParameter(
            "friction_viscous",
            "K_v",
            Units("N m s/rad", "N s/m"),
            (0.0, 1.0),
            robot=RobotSearch(0.1, 0.0, 20.0, 0.5),
        ),
    ),
    _formula,
)
