r"""Friction that grows with the transmitted torque, :math:`K_l|\tau_m - \tau_e|`, and its fading part. Paper, eqs. (8), (9)."""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, RobotSearch, Term, fading, share_parameter


def _formula(x: Conditions, xp: Any, share: Any) -> Any:
    return share * xp.abs(x.motor - x.external)


SYMMETRIC_LOAD = Term(
    "symmetric_load",
    "friction that grows with the load",
    "dry",
    (share_parameter("load_friction_base", "K_l", 0.5, robot=RobotSearch(0.01, 0.0, 0.9, 0.05)),),
    _formula,
)

FADING_SYMMETRIC_LOAD = fading(
    SYMMETRIC_LOAD,
    "fading_symmetric_load",
    SYMMETRIC_LOAD.title,
    share_parameter("load_friction_stribeck", "K_l^s", 1.0, robot=RobotSearch(0.01, 0.0, 0.9, 0.05)),
)
