"""Export of the friction of a joint as a parameter file, which the live compensation loads."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stribeck.files.versions import versions
from stribeck.identify.joint.identify import JointResult
from stribeck.identify.joint.model import LENGTH, PER_KELVIN, SECOND_FRICTION, SECOND_LENGTH
from stribeck.identify.joint.uncertainty import search_bounds
from stribeck.model.actuator import Actuator
from stribeck.model.estimate import Estimate, Interval, fixed
from stribeck.model.joint import Drive
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord, Spread

ACTUATOR = "torque_joint"
"""The actuator of the file: a joint that is driven by torque."""


def joint_file(result: JointResult, actuator: Actuator) -> Drive:
    """The law of a result with units, intervals and provenance; the remainder of the rigid torque is no part of it.

    :param actuator: :data:`ACTUATOR`.
    """
    fit, structure = result.fit, result.fit.structure
    estimates: dict[str, Estimate] = {
        "ratio": fixed(1.0, "1"),
        "q_offset": fixed(0.0, "rad"),
        "armature": result.uncertainty.estimates.get("inertia", fixed(0.0, "kg m^2")),
    }
    estimates |= {
        name: one
        for name, one in result.uncertainty.estimates.items()
        if name in structure.law.parameter_names
    }
    if structure.thermal:
        actuator = actuator.with_effects([*actuator.active_effects, "temperature"])
        estimates[PER_KELVIN] = result.uncertainty.estimates[PER_KELVIN]
        estimates["reference_temperature"] = fixed(fit.frame.temperature, "degC")
    values = {name: one.value for name, one in estimates.items()}
    errors = [one.rms for one in result.validation]
    return Drive(
        actuator,
        structure.law,
        values,
        stated=estimates,
        bounds=_bounds(result, estimates),
        correlation=result.uncertainty.correlation,
        temperatures=_temperatures(result),
        statements=_statements(result),
        verdict=result.verdict,
        loss=ModelErrors(
            "root mean square of torque",
            "N m",
            float(
                np.sqrt(
                    np.average(
                        [one.rms**2 for one in result.train], weights=[one.rows for one in result.train]
                    )
                )
            ),
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


def _bounds(result: JointResult, names: Iterable[str]) -> dict[str, Interval]:
    """Search bounds of the parameters that have both."""
    found = {name: search_bounds(result.fit, name) for name in names if name in result.fit.values}
    return {name: ends for name, ends in found.items() if ends is not None and np.isfinite(ends).all()}


def _temperatures(result: JointResult) -> Spread | None:
    heat = [run.temperature for run in result.runs if run.temperature is not None]
    if len(heat) != len(result.runs):
        return None
    lowest, highest = (float(end(np.concatenate(heat))) for end in (np.min, np.max))
    return Spread(mean=result.fit.frame.temperature, min=lowest, max=highest)


def _statements(result: JointResult) -> tuple[str, ...]:
    """What the file does not hold."""
    structure, values = result.fit.structure, result.fit.values
    rest = [name for name in structure.rest if name != "inertia"]
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
