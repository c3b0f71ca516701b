"""Torques of a recorded motion of an arm by a file of drives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from stribeck.errors import ConfigError, ParameterFileError, RecordingError
from stribeck.files.drives import Drives
from stribeck.files.robots import RobotConfig
from stribeck.identify.arm.config import IdentificationConfig, identification_config
from stribeck.identify.arm.friction.element_torque import parameter_names
from stribeck.identify.arm.friction.full_fit import FullFit, coupled_law
from stribeck.identify.arm.friction.selection import ModelChoice
from stribeck.identify.arm.model import INERTIALS, load_arm
from stribeck.identify.arm.motion import MovingJoints, motion_of, usable_parts
from stribeck.identify.arm.recordings import ArmRecording, read_arm_recordings
from stribeck.identify.arm.regressor import Machine, machine_of
from stribeck.identify.common.machine_motion import MachineMotion
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array
from stribeck.recordings.readable import read_usable


def predict_arm(
    content: Drives,
    robot: RobotConfig,
    model: Path | None,
    paths: Sequence[Path],
    note: Callable[[str], None],
) -> list[MachineMotion]:
    """Torques of all joints with a drive, from their motion; other joints have to stand still.

    :param model: URDF; by default the one that the machine's file names. Inertial parameters are those of the drives.
    :param note: receives a line for each recording that is cut or left out.
    :raises ConfigError: for drives that are not of this machine.
    :raises RecordingError: if no recording can be used.
    """
    config = identification_config(robot)
    urdf = model or robot.find_urdf(paths)
    names = robot.joints or (() if urdf is None else load_arm(urdf).joints)
    strange = [joint for joint in content.joints if joint not in names]
    if strange or not content.joints:
        raise ConfigError(
            f"the file contains drives of {', '.join(content.joints) or 'no joint'}, but {robot.path} has the joints {', '.join(names)}"
        )
    joints = tuple(joint for joint in names if joint in content.joints)
    runs = read_usable(
        paths, lambda some: read_arm_recordings(some, config.recording, names, robot.units), note
    )
    parts, lines = usable_parts(runs, config.protocol)
    for line in lines:
        note(line)
    found = []
    for run in parts:
        at = np.median(run.position, axis=0).tolist()
        moving = MovingJoints(
            joints, {name: place for name, place in zip(names, at, strict=True) if name not in joints}
        )
        if astray := moving.astray(run):
            note(f"{run.name} is not used: {', '.join(astray)} moves in it, but the file has no drive of it")
            continue
        found.append(_predicted(content, robot, config, urdf, moving, run))
    if not found:
        raise RecordingError(
            "no recording can be used: in each of them a joint moves that has no drive in the file"
        )
    return found


def _predicted(
    content: Drives,
    robot: RobotConfig,
    config: IdentificationConfig,
    urdf: Path | None,
    moving: MovingJoints,
    run: ArmRecording,
) -> MachineMotion:
    joints = moving.joints
    arm = None if urdf is None else load_arm(urdf, joints, moving.held)
    couplings = {
        name: weights
        for name, weights in config.couplings.items()
        if sum(joint in joints for joint in weights) > 1
    }
    machine = machine_of(joints, arm, couplings)
    fit = full_fit_of(content, machine, config.protocol.rest)
    motion = motion_of(moving.of(run), config.protocol, fit.choice.delay)
    units = machine.units(robot.units)
    return MachineMotion(
        run.name,
        joints,
        "torque",
        tuple("N m" if units[joint] == "rotary" else "N" for joint in joints),
        motion.time,
        motion.torque,
        fit.predict(motion),
        motion.moving,
    )


def full_fit_of(content: Drives, machine: Machine, rest: float) -> FullFit:
    """The fit of an arm that wrote a file of drives: its inertial parameters, laws and values; intervals stay in the file.

    :param rest: velocity below which a joint has no direction of motion [rad/s or m/s].
    :raises ParameterFileError: if parameters of the machine are missing.
    """
    settings = {} if content.provenance is None else content.provenance.search.settings
    drives = [content.joints[joint] for joint in machine.joints]
    length = settings.get("presliding")
    choice = ModelChoice(
        drives[0].law,
        delay=float(settings.get("delay") or 0.0),
        presliding=None if length is None else float(length),
    )
    of_machine = {name: one.value for name, one in content.machine.estimates.items()}
    laws = tuple(drive.law for drive in drives) + (coupled_law(choice.law),) * len(machine.couplings)
    parameters = [
        _chosen(drive.values, parameter_names(law)) for drive, law in zip(drives, laws, strict=False)
    ]
    parameters += [
        _chosen(of_machine, [f"{name}_{coupling}" for name in parameter_names(laws[-1])])
        for coupling in machine.couplings
    ]
    inertials = np.zeros((0, INERTIALS))
    if machine.arm is not None:
        inertials = _chosen(of_machine, machine.arm.parameter_names).reshape(-1, INERTIALS)
    count = len(machine.joints)
    return FullFit(
        machine=machine,
        choice=choice,
        inertials=inertials,
        laws=laws,
        parameters=tuple(parameters),
        bounds=tuple(np.tile([-np.inf, np.inf], (len(one), 1)) for one in parameters),
        inertial_sigma=np.full_like(inertials, np.nan),
        covariances=tuple(np.full((len(one), len(one)), np.nan) for one in parameters),
        noise=np.full(count, np.nan),
        rest=rest,
        status=SolverStatus.CONVERGED,
    )


def _chosen(values: Mapping[str, float], names: Sequence[str]) -> Array:
    missing = [name for name in names if name not in values]
    if missing:
        raise ParameterFileError(
            f"the file of drives lacks {', '.join(missing[:4])}{' …' * (len(missing) > 4)}: it belongs to "
            "another machine, or an earlier version wrote it: identify again"
        )
    return np.array([values[name] for name in names])
