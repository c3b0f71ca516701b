r"""The term Q of M6, which fades with velocity. Paper, eq. (10).

:math:`Q = K_e^q\tau_e^2` if :math:`|\tau_m| > |\tau_e|`, :math:`K_m^q\tau_m^2` if :math:`|\tau_m| < |\tau_e|`. The paper
does not define Q for torques that act in the same direction; here, as in its authors' program, Q counts only when they
oppose each other (:math:`\tau_m\tau_e < 0`).
"""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, FrictionParameter, RobotSearch, Term, Units

_ROBOT = RobotSearch(0.001, 0.0, 0.5, 0.01)


def _formula(x: Conditions, xp: Any, of_motor: Any, of_external: Any) -> Any:
    motor, external = xp.abs(x.motor), xp.abs(x.external)
    by_external = of_external * x.external * x.external
    by_motor = of_motor * x.motor * x.motor
    quadratic = xp.where(motor > external, by_external, xp.where(motor < external, by_motor, 0.0))
    return xp.where(x.motor * x.external < 0.0, quadratic, 0.0)


QUADRATIC_LOAD = Term(
    "quadratic_load",
    "the quadratic load term",
    "fading",
    (
        FrictionParameter(
            "load_friction_motor_quad", "K_m^q", Units("1/(N m)", "1/N"), (0.0, 0.01), robot=_ROBOT
        ),
        FrictionParameter(
            "load_friction_external_quad", "K_e^q", Units("1/(N m)", "1/N"), (0.0, 0.01), robot=_ROBOT
        ),
    ),
    _formula,
)
