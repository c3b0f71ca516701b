"""Friction and resistance as functions of the servo's temperature, for the effect ``temperature``."""

from __future__ import annotations

from typing import Any

from stribeck.model.namespace import array_namespace
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.terms.term import Values

TEMPERATURE_PARAMETERS = {
    "friction_per_kelvin": ("1/K", 0.0, -0.05, 0.05),
    "resistance_per_kelvin": ("1/K", 0.0, -0.02, 0.02),
    "reference_temperature": ("degC", 25.0, -50.0, 150.0),
}
"""Unit, value and search bounds of the parameters of the effect ``temperature``; the last one is never identified."""

FRICTION_TORQUES = frozenset(name for name, one in FRICTION_PARAMETERS.items() if one.thermal)
"""Parameters to which the friction budget is proportional."""


def at_temperature(p: Values, temperature: Any) -> Values:
    r"""Values at a temperature T, with the effect ``temperature``; otherwise unchanged.

    All friction torques times :math:`e^{-a(T - T_0)}`, resistance times :math:`1 + b(T - T_0)`, with
    a ``friction_per_kelvin``, b ``resistance_per_kelvin`` and :math:`T_0` ``reference_temperature``.

    :param temperature: T [°C]; unchanged values for ``None``, and where it is NaN.
    """
    if temperature is None or "friction_per_kelvin" not in p:
        return p
    xp = array_namespace(temperature, *p.values())
    warmer = xp.where(xp.isfinite(temperature), temperature - p["reference_temperature"], 0.0)
    factor = xp.exp(-p["friction_per_kelvin"] * warmer)
    found = {name: value * factor if name in FRICTION_TORQUES else value for name, value in p.items()}
    if "resistance_per_kelvin" in p:
        found["R"] = p["R"] * (1.0 + p["resistance_per_kelvin"] * warmer)
    return found
