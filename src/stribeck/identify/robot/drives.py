"""Identified joints of a robot as drives, which everything else reads."""

from __future__ import annotations

import mujoco
import numpy as np

from stribeck.files.drives import Drives, MachineParameters
from stribeck.files.torque_drives import parameter_unit, torque_actuator, torque_drive
from stribeck.files.versions import versions
from stribeck.identify.common.noise import resolutions
from stribeck.identify.robot.identify import RobotFit, RunScore
from stribeck.identify.robot.problem import FIXED, UNKNOWNS
from stribeck.model.actuator import JointUnits
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.joint import DERIVATIVE, ROBOT_METHOD, STIFFNESS
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord
from stribeck.model.verdict import Verdict

UNITS: dict[JointUnits, tuple[str, str, str]] = {
    "rotary": ("rad", "N m/rad", "N m s/rad"),
    "linear": ("m", "N/m", "N s/m"),
}
"""Units of positions and gains."""


def robot_drives(fit: RobotFit, verdict: Verdict) -> Drives:
    """The drive of each identified joint by name with the verdict on it, and the parameters of the base.

    The actuator has gains of 1 N m/rad and 1 N m s/rad; the estimates ``stiffness`` and ``derivative`` are the gains of the recordings, if
    they are the same in all of them, or ``stiffness`` is that of the fit. Its largest torque is that of the model, its resolution that of the recorded positions.
    """
    problem, law = fit.problem, fit.problem.kind.law
    steps = resolutions([run.position for run in problem.runs])
    given = dict(zip(problem.kind.names, problem.fixed, strict=True))
    joints = {}
    for k, joint in enumerate(problem.joints):
        name = fit.tree.names[joint]
        slides = fit.tree.model.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_SLIDE)
        units: JointUnits = "linear" if slides else "rotary"
        position = UNITS[units][0]
        actuator = torque_actuator(
            units, largest=float(fit.tree.limits[joint]), resolution=float(steps[joint]), derivative_gain=1.0
        )
        estimates = _gains(fit, joint, units) | fit.estimates[name]
        estimates |= {
            key: fixed(float(given[key][k]), parameter_unit(key, units))
            for key in law.parameter_names
            if key in FIXED
        }
        loss = ModelErrors(
            "root mean square of position", position, _rms(fit.train, k), _rms(fit.validation, k)
        )
        bounds = {key: (UNKNOWNS[key].lower, UNKNOWNS[key].upper) for key in fit.estimates[name]}
        joints[name] = torque_drive(
            actuator,
            law,
            estimates,
            bounds=bounds,
            correlation=fit.correlations.get(name),
            verdict=verdict.of(name),
            loss=loss,
        )
    return Drives(joints, MachineParameters(fit.tree.path.name, fit.base), verdict, _provenance(fit))


def _gains(fit: RobotFit, joint: int, units: JointUnits) -> dict[str, Estimate]:
    """The gains of the recordings, if all have the same."""
    given = [(run.stiffness, run.derivative) for run in fit.problem.runs]
    pairs = [(kp[joint], kd[joint]) for kp, kd in given if kp is not None and kd is not None]
    if not pairs or not np.allclose(pairs, pairs[0], rtol=1e-6):
        return {}
    _, *names = UNITS[units]
    return {
        name: fixed(float(gain), unit)
        for name, gain, unit in zip((STIFFNESS, DERIVATIVE), pairs[0], names, strict=True)
    }


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
            method=ROBOT_METHOD,
            settings={
                "each_joint_alone": fit.decoupled,
                "time_step": fit.problem.runs[0].dt / (fit.problem.kind.substeps * fit.problem.finer),
            },
        ),
        versions=versions("numpy", "scipy", "jax", "mujoco"),
    )
