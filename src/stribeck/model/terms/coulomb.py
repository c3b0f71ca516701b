r"""Coulomb friction :math:`K_c`, and the part :math:`K_c^s` of it that fades with velocity. Paper, eqs. (3), (7)."""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, RobotSearch, Term, fading, torque_parameter


def _formula(x: Conditions, xp: Any, coulomb: Any) -> Any:
    return coulomb


COULOMB = Term(
    "coulomb",
    "Coulomb friction",
    "dry",
    (torque_parameter("friction_base", "K_c", 0.2, robot=RobotSearch(0.2, 0.0, 20.0, 0.3)),),
    _formula,
)

FADING_COULOMB = fading(
    COULOMB,
    "fading_coulomb",
    "the Stribeck effect (friction that falls with speed)",
    torque_parameter(
        "friction_stribeck", "K_c^s", 0.2, sign="static", robot=RobotSearch(0.02, 0.0, 20.0, 0.3)
    ),
)
