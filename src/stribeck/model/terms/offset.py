r"""A constant torque :math:`\tau_0` beside motor and external torque.

If only Coulomb friction is asymmetric, the offset and the asymmetry are equivalent: one of them is fixed to zero.
"""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, FrictionParameter, RobotSearch, Term, Units


def _formula(x: Conditions, xp: Any, offset: Any) -> Any:
    return offset


OFFSET = Term(
    "offset",
    "the offset torque",
    "offset",
    (
        FrictionParameter(
            "torque_offset", "tau_0", Units("N m", "N"), (-0.1, 0.1), sign="any", thermal=False,
            robot=RobotSearch(0.0, -5.0, 5.0, 0.5),
        ),
    ),
    _formula,
)  # fmt: skip
