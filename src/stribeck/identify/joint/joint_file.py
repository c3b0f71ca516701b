"""Export of the friction of a joint as a parameter file, which the live compensation loads."""

from __future__ import annotations

from typing import Any

from stribeck.files.parameter_file import ParameterFile, Provenance
from stribeck.files.versions import versions
from stribeck.identify.joint.identify import JointResult
from stribeck.identify.joint.model import LENGTH, PER_KELVIN
from stribeck.model.actuator import Actuator
from stribeck.model.estimate import CONFIDENCE, Estimate, fixed

ACTUATOR = "torque_joint"
"""The actuator of the file: a joint that is driven by torque."""


def joint_file(result: JointResult, actuator: Actuator) -> ParameterFile:
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
    return ParameterFile(actuator, structure.law, values, _provenance(result, estimates))


def _provenance(result: JointResult, estimates: dict[str, Estimate]) -> Provenance:
    heat = [run.temperature for run in result.runs if run.temperature is not None]
    temperature: dict[str, Any] | None = None
    if len(heat) == len(result.runs):
        temperature = {
            "min": min(float(one.min()) for one in heat),
            "max": max(float(one.max()) for one in heat),
            "mean": result.fit.frame.temperature,
        }
    content = result.to_json()
    correlation = result.uncertainty.correlation
    return Provenance(
        units={name: one.unit for name, one in estimates.items()},
        bounds={},
        fixed=tuple(name for name, one in estimates.items() if one.status == "fixed"),
        intervals={name: one.interval for name, one in estimates.items() if one.interval is not None},
        confidence=CONFIDENCE,
        not_determined={name: one.reason for name, one in estimates.items() if one.reason},
        at_bounds={name: one.side for name, one in estimates.items() if one.side is not None},
        statements=_statements(result),
        loss={
            "name": "root mean square of torque",
            "train": content["train"],
            "validation": content["validation"],
            "left_out": content["left_out"],
            "unit": "N m",
        },
        split={
            "rule": "as given",
            "train": [one.file for one in result.train],
            "validation": [one.file for one in result.validation],
        },
        simulation={"inverse_dynamics": True, "presliding": result.fit.values.get(LENGTH)},
        effects=("temperature",) * result.fit.structure.thermal,
        supply_voltage=None,
        temperature=temperature,
        data={"runs": len(result.runs)},
        search={"method": "identify-joint", "verdict": result.verdict.use},
        versions=versions("numpy", "scipy"),
        correlation=None if correlation is None else vars(correlation),
        estimates=estimates,
    )


def _statements(result: JointResult) -> tuple[str, ...]:
    """What the file does not hold."""
    rest = [name for name in result.fit.structure.rest if name != "inertia"]
    said = [reason.text for reason in result.verdict.reasons]
    if rest:
        said.append(
            f"the torque had parts that are no friction ({', '.join(rest)}): they were identified beside it and are not in this file"
        )
    return tuple(said)
