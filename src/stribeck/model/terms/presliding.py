r"""Friction that develops over a distance after a reversal (Dahl 1968, exponent 1).

The share of the dry friction that has developed is a state :math:`z \in [-1, 1]`,

.. math:: \frac{dz}{d\theta} = \frac{1 - z\,sign(\dot\theta)}{\delta}

with the presliding length :math:`\delta`: over a movement :math:`\Delta` in one direction d it is exactly
:math:`z \to d + (z - d)\,e^{-|\Delta|/\delta}`. Dry friction is z times the budget; a joint that stops keeps it.
For arms, :func:`~stribeck.identify.arm.signals.linear_presliding` (exponent 0) is linear in the movement and complete after
:math:`2\delta`: its length is another quantity than this one.
"""

from __future__ import annotations

from typing import Any

from stribeck.model.terms.term import Conditions, FrictionParameter, Term, Units


def _formula(x: Conditions, xp: Any, length: Any) -> Any:
    return 0.0


def _advance(developed: Any, moved: Any, xp: Any, length: Any) -> Any:
    direction = xp.sign(moved)
    return direction + (developed - direction) * xp.exp(-xp.abs(moved) / length)


PRESLIDING = Term(
    "presliding",
    "friction that develops over a distance after a reversal",
    "state",
    (
        FrictionParameter(
            "presliding_length", "delta", Units("rad", "m"), (1e-5, 0.1), sign="positive", thermal=False, value=1e-3, free=False
        ),
    ),
    _formula,
    advance=_advance,
)  # fmt: skip
