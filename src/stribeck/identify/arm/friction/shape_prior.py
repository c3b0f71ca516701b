"""Weak priors on the shape of a law: on parameters that shape terms, on load terms, and on differences between directions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stribeck.identify.arm.friction.element_torque import parameter_names
from stribeck.model.arrays import Array
from stribeck.model.law import FrictionLaw
from stribeck.model.terms import COULOMB_PARAMETERS, FRICTION_PARAMETERS, LOAD_PARAMETERS, with_sign

ALIKE = 0.5
"""Prior standard deviation of the difference between two directions, relative to their mean."""

NEGATIVE = 1e-3
"""Prior standard deviation of a negative budget at rest, relative to Coulomb friction."""

LOADED = 0.1
"""Prior standard deviation of load-dependent terms about zero [1]."""


def shape_prior(law: FrictionLaw, parameters: Array, guesses: Mapping[str, float]) -> tuple[Array, Array]:
    """Jacobian (r, k) and residuals (r,) of the priors on the shape of a law.

    :param guesses: first guesses of the parameters that shape terms.
    """
    names = parameter_names(law)
    values = dict(zip(names, parameters, strict=True))
    rows, residuals = [], []

    def add(residual: float, slopes: Mapping[str, float]) -> None:
        residuals.append(residual)
        rows.append([slopes.get(name, 0.0) for name in names])

    known = {name: FRICTION_PARAMETERS[name] for name in law.parameter_names}
    for name, one in known.items():
        scale = 1.0 if one.shape is None else 1.0 / one.shape.deviation
        if one.shape is not None and one.shape.of_speed:
            add(scale * np.log(values[name] / guesses[name]), {name: scale / values[name]})
        elif one.shape is not None:
            add(scale * (values[name] - one.shape.mean), {name: scale})
    for name in filter(values.__contains__, LOAD_PARAMETERS):
        add(values[name] / LOADED, {name: 1.0 / LOADED})
    for fading in with_sign("static").intersection(names):
        for name in COULOMB_PARAMETERS:
            static = values.get(name, np.inf) + values[fading]
            if static < 0.0:  # penalise negative budgets at rest
                scale = 1.0 / (NEGATIVE * max(values[name], 1e-9))
                add(scale * static, {name: scale, fading: scale})
    for other, one in known.items():
        if one.opposite is not None:
            mean = max(0.5 * (values[one.opposite] + values[other]), 1e-9)
            scale = 1.0 / (ALIKE * mean)
            add(scale * (values[one.opposite] - values[other]), {one.opposite: scale, other: -scale})
    return np.array(rows).reshape(-1, len(names)), np.array(residuals)
