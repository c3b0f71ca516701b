"""Identified joints of a robot as drives, which everything else reads."""

from __future__ import annotations

import mujoco
import numpy as np

from stribeck.files.drives import Drives, MachineParameters
from stribeck.files.torque_drives import STIFFNESS, torque_actuator, torque_drive
from stribeck.files.versions import versions
from stribeck.identify.common.noise import resolutions
from stribeck.identify.robot.identify import RobotFit, RunScore
from stribeck.identify.robot.problem import CENTRE
from stribeck.model.actuator import JointUnits
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord
from stribeck.model.verdict import Verdict

UNITS: dict[JointUnits, tuple[str, str]] = {"rotary": ("rad", "N m/rad"), "linear": ("m", "N/m")}
"""Units of positions and stiffness."""


def robot_drives(fit: RobotFit, verdict: Verdict) -> Drives:
    """The drive of each identified joint by name with the verdict on it, and the parameters of the base.

    The actuator has gains of 1 N m/rad and 1 N m s/rad; the estimate ``stiffness`` is that of the fit or the gain of the recordings, if it
    is the same in all of them. Its largest torque is that of the model, its resolution that of the recorded positions.
    """
    problem, law = fit.problem, fit.problem.kind.law
    steps = resolutions([run.position for run in problem.runs])
    places = dict(zip(problem.kind.names, problem.fixed, strict=True)).get(CENTRE)
    joints = {}
    for k, joint in enumerate(problem.joints):
        name = fit.tree.names[joint]
        slides = fit.tree.model.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_SLIDE)
        units: JointUnits = "linear" if slides else "rotary"
        position, _ = UNITS[units]
        actuator = torque_actuator(
            units, largest=float(fit.tree.limits[joint]), resolution=float(steps[joint]), derivative_gain=1.0
        )
        estimates = _gain(fit, joint, units) | fit.estimates[name]
        if places is not None and CENTRE in law.parameter_names:
            estimates[CENTRE] = fixed(float(places[k]), position)
        loss = ModelErrors(
            "root mean square of position", position, _rms(fit.train, k), _rms(fit.validation, k)
        )
        joints[name] = torque_drive(actuator, law, estimates, verdict=verdict.of(name), loss=loss)
    return Drives(joints, MachineParameters(fit.tree.path.name, fit.base), verdict, _provenance(fit))


def _gain(fit: RobotFit, joint: int, units: JointUnits) -> dict[str, Estimate]:
    """The proportional gain of the recordings, if all have the same."""
    given = [run.stiffness[joint] for run in fit.problem.runs if run.stiffness is not None]
    if not given or not np.allclose(given, given[0], rtol=1e-6):
        return {}
    return {STIFFNESS: fixed(float(given[0]), UNITS[units][1])}


def _rms(scores: tuple[RunScore, ...], place: int) -> float | None:
    squares = [score.squares[place] for score in scores if not score.run.flaw]
    return float(np.sqrt(np.mean(squares))) if squares else None


def _provenance(fit: RobotFit) -> Provenance:
    return Provenance(
        runs=Runs(
            "as given",
            tuple(score.run.name for score in fit.train),
            tuple(score.run.name for score in fit.validation),
        ),
        search=SearchRecord(
            method="identify-robot",
            settings={
                "each_joint_alone": fit.decoupled,
                "time_step": fit.problem.runs[0].dt / fit.problem.kind.substeps,
            },
        ),
        versions=versions("numpy", "scipy", "jax", "mujoco"),
    )
