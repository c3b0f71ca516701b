"""Identified friction of the joints of an arm as parameter files, which the compensation node loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import stribeck
from stribeck.core.actuator import MOTOR_UNITS, Actuator
from stribeck.core.friction import FRICTION_PARAMETERS
from stribeck.dynamics.friction.full_fit import FullFit
from stribeck.dynamics.identify import friction_intervals
from stribeck.dynamics.recordings import ArmRecording
from stribeck.io.parameter_file import ParameterFile, Provenance

CONFIDENCE = 0.95
ACTUATORS = {"rotary": "torque_joint", "linear": "force_axis"}
"""Actuator of the parameter files, by the units of the machine."""

LARGEST_HALF_WIDTH = 0.5
"""Parameters whose interval is wider than ± this share of the value are called not determined."""


def joint_files(
    fit: FullFit, actuator: Actuator, runs: Sequence[ArmRecording], errors: Mapping[str, Any]
) -> dict[str, ParameterFile]:
    """A parameter file for each joint, by its name.

    :param actuator: of :data:`ACTUATORS`.
    :param runs: what was fitted, for the record.
    :param errors: scores by set.
    """
    return {
        joint: ParameterFile(
            actuator=actuator,
            law=fit.laws[k],
            values={"ratio": 1.0, "q_offset": 0.0, **fit.values(joint)},
            provenance=_provenance(fit, joint, actuator, runs, errors),
        )
        for k, joint in enumerate(fit.machine.joints)
    }


def _provenance(
    fit: FullFit, joint: str, actuator: Actuator, runs: Sequence[ArmRecording], errors: Mapping[str, Any]
) -> Provenance:
    intervals = friction_intervals(fit, joint)
    values = fit.values(joint)
    index = fit.machine.joints.index(joint)
    return Provenance(
        units=_units(values, actuator),
        bounds={},
        fixed=("ratio", "q_offset"),
        intervals=intervals,
        confidence=CONFIDENCE,
        not_determined={
            name: "its interval is wider than half its value"
            for name, (lower, upper) in intervals.items()
            if 0.5 * (upper - lower) > LARGEST_HALF_WIDTH * abs(values[name])
        },
        at_bounds={},
        statements=_statements(fit, joint),
        loss={
            "name": "relative error of torque",
            "train": errors["train"]["moving"]["per_joint"][index],
            "validation": errors["validation"]["moving"]["per_joint"][index]
            if "validation" in errors
            else None,
            "unit": "1",
        },
        split={"rule": "as given", "train": [run.name for run in runs], "validation": []},
        simulation={"inverse_dynamics": True, "delay": fit.choice.delay, "presliding": fit.choice.presliding},
        effects=(),
        supply_voltage=None,
        temperature=None,
        data={"runs": len(runs)},
        search={
            "method": "identify-arm",
            "prior": fit.choice.prior,
            "correlated_rows": fit.choice.correlated,
        },
        versions=_versions(),
    )


def _units(values: Mapping[str, float], actuator: Actuator) -> dict[str, str]:
    found = {name: MOTOR_UNITS[name][actuator.units] for name in ("ratio", "q_offset", "armature")}
    for name in values:
        if name in FRICTION_PARAMETERS:
            known = FRICTION_PARAMETERS[name]
            found[name] = known.rotary_unit if actuator.units == "rotary" else known.linear_unit
    return found


def _statements(fit: FullFit, joint: str) -> tuple[str, ...]:
    found = ["friction under load is that of the links as they were, without other payload"]
    found += [
        f"the coupling {name} acts on this joint too; its friction is not in this file"
        for name, weights in fit.machine.couplings.items()
        if weights[fit.machine.joints.index(joint)] != 0.0
    ]
    return tuple(found)


def _versions() -> dict[str, str]:
    found = {"stribeck": stribeck.__version__}
    for name in ("numpy", "scipy", "jax", "pin", "casadi"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
