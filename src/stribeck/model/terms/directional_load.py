r"""Friction by direction of power, :math:`|K_m\tau_m - K_e\tau_e|`, and its fading part. Paper, eq. (9)."""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, RobotSearch, Term, fading, share_parameter

_ROBOT = RobotSearch(0.01, 0.0, 0.9, 0.05)


def _formula(x: Conditions, xp: Any, of_motor: Any, of_external: Any) -> Any:
    return xp.abs(of_motor * x.motor - of_external * x.external)


DIRECTIONAL_LOAD = Term(
    "directional_load",
    "friction that grows with the load",
    "dry",
    (
        share_parameter("load_friction_motor", "K_m", 0.5, robot=_ROBOT, like="load_friction_base"),
        share_parameter("load_friction_external", "K_e", 0.5, robot=_ROBOT, like="load_friction_base"),
    ),
    _formula,
    alike=True,
)

FADING_DIRECTIONAL_LOAD = fading(
    DIRECTIONAL_LOAD,
    "fading_directional_load",
    DIRECTIONAL_LOAD.title,
    share_parameter(
        "load_friction_motor_stribeck", "K_m^s", 1.0, robot=_ROBOT, like="load_friction_stribeck"
    ),
    share_parameter(
        "load_friction_external_stribeck", "K_e^s", 1.0, robot=_ROBOT, like="load_friction_stribeck"
    ),
)
