"""The terms of friction laws, one module each, and the table of them."""

from __future__ import annotations

from stribeck.model.terms.asymmetric import ASYMMETRIC
from stribeck.model.terms.coulomb import COULOMB, FADING_COULOMB
from stribeck.model.terms.directional_load import DIRECTIONAL_LOAD, FADING_DIRECTIONAL_LOAD
from stribeck.model.terms.offset import OFFSET
from stribeck.model.terms.position import POSITION
from stribeck.model.terms.quadratic_load import QUADRATIC_LOAD
from stribeck.model.terms.ripple import RIPPLE, SECOND_RIPPLE
from stribeck.model.terms.stribeck import STRIBECK
from stribeck.model.terms.symmetric_load import FADING_SYMMETRIC_LOAD, SYMMETRIC_LOAD
from stribeck.model.terms.term import FrictionParameter, Sign, Term
from stribeck.model.terms.viscous import VISCOUS

TERMS: dict[str, Term] = {
    term.name: term
    for term in (
        COULOMB,
        FADING_COULOMB,
        SYMMETRIC_LOAD,
        FADING_SYMMETRIC_LOAD,
        DIRECTIONAL_LOAD,
        FADING_DIRECTIONAL_LOAD,
        QUADRATIC_LOAD,
        STRIBECK,
        VISCOUS,
        ASYMMETRIC,
        OFFSET,
        POSITION,
        RIPPLE,
        SECOND_RIPPLE,
    )
}
"""All terms by name, in the order of a law's parameters."""

FRICTION_PARAMETERS: dict[str, FrictionParameter] = {
    parameter.name: parameter for term in TERMS.values() for parameter in term.parameters
}
"""Every friction parameter, by its key in parameter files."""

PAIRS: tuple[tuple[str, ...], ...] = tuple(term.names for term in TERMS.values() if term.alike)
"""Nearly equal parameters for torques of the motor and from outside, whose difference determines the friction."""

LOAD_PARAMETERS = tuple(name for term in TERMS.values() if term.loaded for name in term.names)
"""Parameters of friction that grows with the load."""

_CONSTANT = [
    name
    for term in TERMS.values()
    if term.kind in ("dry", "fading") and not term.inputs
    for name in term.names
]

CONSTANT_PARAMETERS = tuple(
    name for name, one in FRICTION_PARAMETERS.items() if name in _CONSTANT or one.opposite in _CONSTANT
)
"""Parameters of friction that depends neither on the load nor on the position."""


COULOMB_PARAMETERS = tuple(
    name for name, one in FRICTION_PARAMETERS.items() if {name, one.opposite} & set(COULOMB.names)
)
"""Coulomb friction, and that of negative motion."""


def with_sign(*signs: Sign) -> frozenset[str]:
    """Names of the parameters with one of these signs."""
    return frozenset(name for name, one in FRICTION_PARAMETERS.items() if one.sign in signs)


def term_named(name: str) -> Term:
    """The term called ``name``."""
    return TERMS[name]
