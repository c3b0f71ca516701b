"""Export of the friction of a joint as a parameter file, which the live compensation loads."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import numpy as np

from stribeck.files.versions import versions
from stribeck.identify.joint.identify import JointResult
from stribeck.identify.joint.model import LENGTH, PER_KELVIN, SECOND_FRICTION, SECOND_LENGTH
from stribeck.identify.joint.uncertainty import search_bounds
from stribeck.model.actuator import Actuator
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.joint import CorrelationMatrix, Drive
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord, Spread
from stribeck.model.terms.ripple import RIPPLE, SECOND_RIPPLE

ACTUATOR = "torque_joint"
"""The actuator of the file: a joint that is driven by torque."""

WAVES = (RIPPLE, SECOND_RIPPLE)
"""Terms for the harmonics of a ripple."""

WAVE_PARAMETERS = {
    f"ripple_{part}_{k}": f"{term.name}_{part}"
    for k, term in enumerate(WAVES, start=1)
    for part in ("cosine", "sine")
}
"""Names in the file, by those of the fit."""


def joint_file(result: JointResult, actuator: Actuator) -> Drive:
    """The law of a result with units, intervals and provenance; the remainder of the rigid torque is no part of it.

    :param actuator: :data:`ACTUATOR`.
    """
    fit, structure = result.fit, result.fit.structure
    waves = _waves(result)
    law = structure.law.with_parameters((*structure.law.parameter_names, *waves))
    estimates: dict[str, Estimate] = {
        "ratio": fixed(1.0, "1"),
        "q_offset": fixed(0.0, "rad"),
        "armature": result.uncertainty.estimates.get("inertia", fixed(0.0, "kg m^2")),
    }
    estimates |= {
        name: one
        for name, one in result.uncertainty.estimates.items()
        if name in structure.law.parameter_names
    } | waves
    if structure.thermal:
        actuator = actuator.with_effects([*actuator.active_effects, "temperature"])
        estimates[PER_KELVIN] = result.uncertainty.estimates[PER_KELVIN]
        estimates["reference_temperature"] = fixed(fit.frame.temperature, "degC")
    values = {name: one.value for name, one in estimates.items()}
    bounds = {name: search_bounds(fit, name) for name in estimates if name in fit.values}
    squares, rows = [one.rms**2 for one in result.train], [one.rows for one in result.train]
    errors = [one.rms for one in result.validation]
    return Drive(
        actuator,
        law,
        values,
        stated=estimates,
        bounds={name: ends for name, ends in bounds.items() if ends is not None and np.isfinite(ends).all()},
        correlation=_correlation(result, waves),
        temperatures=_temperatures(result),
        statements=_statements(result),
        verdict=result.verdict,
        loss=ModelErrors(
            "root mean square of torque",
            "N m",
            float(np.sqrt(np.average(squares, weights=rows))),
            float(np.sqrt(np.mean(np.square(errors)))) if errors else None,
        ),
        provenance=Provenance(
            runs=Runs(
                "as given",
                tuple(one.file for one in result.train),
                tuple(one.file for one in result.validation),
            ),
            search=SearchRecord(
                method="identify-joint", settings={"presliding": result.fit.values.get(LENGTH)}
            ),
            versions=versions("numpy", "scipy"),
        ),
    )


def _waves(result: JointResult) -> dict[str, Estimate]:
    r"""The ripple, which the motor has to overcome, as the torque :math:`\tau_0` that acts beside it."""
    if "ripple" not in result.fit.structure.rest:
        return {}
    found = {term.names[0]: fixed(k * result.fit.frame.wave, "1") for k, term in enumerate(WAVES, start=1)}
    return found | {
        new: _reversed(result.uncertainty.estimates[name]) for name, new in WAVE_PARAMETERS.items()
    }


def _reversed(one: Estimate) -> Estimate:
    """The estimate of the negative quantity."""
    ends = None if one.interval is None else (-one.interval[1], -one.interval[0])
    return replace(one, value=-one.value, interval=ends)


def _correlation(result: JointResult, waves: Container[str]) -> CorrelationMatrix | None:
    """Correlation of the estimates, under their names and signs in the file."""
    given = result.uncertainty.correlation
    if given is None or not waves:
        return given
    names = tuple(WAVE_PARAMETERS.get(name, name) for name in given.names)
    sign = np.array([-1.0 if name in waves else 1.0 for name in names])
    matrix = sign[:, None] * np.array(given.matrix) * sign
    return CorrelationMatrix(names, tuple(map(tuple, (matrix + 0.0).tolist())))


def _temperatures(result: JointResult) -> Spread | None:
    heat = [run.temperature for run in result.runs if run.temperature is not None]
    if len(heat) != len(result.runs):
        return None
    lowest, highest = (float(end(np.concatenate(heat))) for end in (np.min, np.max))
    return Spread(mean=result.fit.frame.temperature, min=lowest, max=highest)


def _statements(result: JointResult) -> tuple[str, ...]:
    """What the file does not hold."""
    structure, values = result.fit.structure, result.fit.values
    rest = [name for name in structure.rest if name not in ("inertia", "ripple")]
    said = []
    if rest:
        said.append(
            f"parts of the torque that are not friction ({', '.join(rest)}) were identified too, but are not in this file"
        )
    if structure.presliding > 1:
        said.append(
            f"{values[SECOND_FRICTION]:.3g} N m of the Coulomb friction develops over "
            f"{values[SECOND_LENGTH]:.3g} rad after a reversal, the rest over the presliding length"
        )
    return tuple(said)
