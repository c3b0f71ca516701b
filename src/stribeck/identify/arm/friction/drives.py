"""Identified joints of an arm as drives, which the compensation node loads, and their torque limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stribeck.files.torque_drives import parameter_unit, torque_drive
from stribeck.files.versions import versions
from stribeck.identify.arm.friction.element_torque import parameter_names
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.common.clusters import correlation_of
from stribeck.identify.common.quantiles import normal_estimate
from stribeck.model.actuator import Actuator, JointUnits
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, Interval
from stribeck.model.joint import Drive
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord


def joint_drives(
    fit: FullFit, actuators: Sequence[Actuator], runs: Runs, errors: Mapping[str, Any]
) -> dict[str, Drive]:
    """The drive of each joint, by joint name.

    :param actuators: :func:`~stribeck.files.torque_drives.torque_actuator` of each joint: prismatic joints have N and kg, others N m and kg m².
    :param runs: names of the recordings, for the provenance.
    :param errors: scores by set.
    """
    provenance = _provenance(fit, runs)
    found = {}
    for k, (joint, actuator) in enumerate(zip(fit.machine.joints, actuators, strict=True)):
        error = {name: scores["moving"]["per_joint"][k] for name, scores in errors.items()}
        found[joint] = torque_drive(
            actuator,
            fit.laws[k],
            element_estimates(fit, joint, actuator.units),
            bounds=search_bounds(fit, k),
            correlation=correlation_of(tuple(fit.values(joint)), fit.covariances[k]),
            statements=_statements(fit, joint),
            loss=ModelErrors("relative error of torque", "1", error["train"], error.get("validation")),
            provenance=provenance,
        )
    return found


def element_estimates(fit: FullFit, element: str, units: JointUnits) -> dict[str, Estimate]:
    """The identified parameters of a joint or coupling."""
    values, k = fit.values(element), fit.machine.elements.index(element)
    estimates = {}
    for (name, value), deviation, bounds in zip(
        values.items(), fit.sigma[k].tolist(), fit.bounds[k].tolist(), strict=True
    ):
        unit, ends = parameter_unit(name, units), (bounds[0], bounds[1])
        estimates[name] = normal_estimate(value, unit, deviation, bounds=ends)
    return estimates


def search_bounds(fit: FullFit, element: int) -> dict[str, Interval]:
    """Search bounds of the parameters that have both."""
    ends = zip(parameter_names(fit.laws[element]), fit.bounds[element].tolist(), strict=True)
    return {name: (lower, upper) for name, (lower, upper) in ends if math.isfinite(upper - lower)}


def _provenance(fit: FullFit, runs: Runs) -> Provenance:
    choice = fit.choice
    return Provenance(
        runs=runs,
        search=SearchRecord(
            method="identify-arm",
            status=fit.status.value,
            settings={
                "prior": choice.prior,
                "correlated_rows": choice.correlated,
                "delay": choice.delay,
                "presliding": choice.presliding,
            },
        ),
        versions=versions("numpy", "scipy", "jax", "pin", "casadi"),
    )


def _statements(fit: FullFit, joint: str) -> tuple[str, ...]:
    index = fit.machine.joints.index(joint)
    return (
        "load-dependent friction was identified with these links, without additional payload",
        *(
            f"the friction of the coupling {name}, which also acts on this joint, is not in this file"
            for name, weights in fit.machine.couplings.items()
            if weights[index] != 0.0
        ),
    )


def largest_friction(fit: FullFit, motions: Sequence[ProcessedMotion]) -> Array:
    """Largest identified friction of each joint in the recordings (n,) [N m or N], its share of couplings included."""
    parts = [fit.torques(motion) for motion in motions]
    largest = [np.maximum(part.budget, np.abs(part.friction)).max(axis=0) for part in parts]
    return np.asarray(np.max(largest, axis=0))


def torque_limits(arm: ArmModel | None, given: Sequence[float] | None, runs: Sequence[ArmRecording]) -> Array:
    """Largest torque of each joint (n,) [N m or N]: as given, else the URDF's effort limit, else the largest recorded one."""
    largest = np.max([np.abs(run.effort).max(axis=0) for run in runs], axis=0)
    limits = np.array(given) if given is not None else largest * 0.0 if arm is None else arm.effort_limits
    return np.asarray(np.where(limits > 0.0, limits, largest))
