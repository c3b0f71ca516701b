r"""Coulomb and viscous friction of negative motion, :math:`K_c^-` and :math:`K_v^-`.

They take the place of :math:`K_c` and :math:`K_v` in the budget against negative motion.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stribeck.model.terms.coulomb import COULOMB
from stribeck.model.terms.term import Conditions, FrictionParameter, Term
from stribeck.model.terms.viscous import VISCOUS


def _negative(parameter: FrictionParameter) -> FrictionParameter:
    name, symbol = f"{parameter.name}_negative", f"{parameter.symbol}^-"
    return replace(parameter, name=name, symbol=symbol, robot=None, opposite=parameter.name)


def _formula(x: Conditions, xp: Any, *values: Any) -> Any:
    return 0.0


ASYMMETRIC = Term(
    "asymmetric",
    "friction that differs by direction",
    "sides",
    tuple(_negative(parameter) for term in (COULOMB, VISCOUS) for parameter in term.parameters),
    _formula,
)
