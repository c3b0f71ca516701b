"""Identification of an arm: machine, recordings, fits, verdict, drives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from stribeck.api.arm_payload import CarriedPayload, carried_payload
from stribeck.api.choices import ARM_FITS
from stribeck.api.fit import Fit
from stribeck.api.machines import Sources
from stribeck.api.recordings import Given, PathLike, Recordings, as_recordings, paths_of, warn
from stribeck.api.stages import StageLine
from stribeck.errors import ConfigError, check_valid
from stribeck.files.commented_yaml import Commented, commented_yaml
from stribeck.files.drives import Drives, MachineParameters
from stribeck.files.robots import MachineFile, RobotConfig, read_robot, robot_of
from stribeck.files.schema import convert
from stribeck.files.torque_drives import torque_actuator
from stribeck.identify.arm.config import IdentificationConfig, Protocol, identification_config
from stribeck.identify.arm.elasticity import Elasticity, elastic_joints, with_elasticity
from stribeck.identify.arm.friction.drives import joint_drives
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.identify import NEED_URDF, USUAL, Identification, Scored, arm_of
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.motion import MovingJoints, held_out, moving_joints, usable_parts
from stribeck.identify.arm.plausibility import check_positions, check_torques
from stribeck.identify.arm.recordings import ArmRecording, read_arm_recordings
from stribeck.identify.arm.regressor import Machine, machine_of
from stribeck.identify.arm.survey.machine import RECORDINGS, survey
from stribeck.identify.arm.verdict import judge_filters, judge_fits
from stribeck.model.actuator import Actuator
from stribeck.model.law import optional_parts
from stribeck.model.provenance import Runs
from stribeck.model.verdict import Reason, Verdict
from stribeck.recordings.readable import read_usable
from stribeck.recordings.tables.readers import find_tables
from stribeck.strict import parse_yaml

HELD_OUT = 1.0 / 3.0
"""Last part of each recording that is not fitted, where neither a machine's file nor recordings for validation are given."""


@dataclass(frozen=True, kw_only=True)
class ArmQuestion:
    """What is to be identified of an arm, and from what.

    :param recordings, validate: to fit, and to predict only.
    :param machine: its name or file, if one was given rather than written from URDF and recordings.
    :param model: URDF; by default the one that the machine's file names.
    :param hold_out: last share of each recording that is predicted only; by default 0, or :data:`HELD_OUT` without a machine's
        file and recordings for validation.
    :param payload: carried in all recordings: ``MASS``, ``MASS,X,Y,Z`` or ``identify``.
    :param payload_link: that carries it.
    :param fits: of :data:`~stribeck.api.choices.ARM_FITS`; by default the usual ones that the machine supports.
    :param terms: terms that the friction of the full fit has in any case.
    """

    recordings: tuple[Path, ...]
    validate: tuple[Path, ...] = ()
    machine: str | None = None
    model: Path | None = None
    hold_out: float | None = None
    payload: str | None = None
    payload_link: str | None = None
    fits: tuple[str, ...] | None = None
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ArmTask:
    """Machine, recordings and fits of a question.

    :param runs, others: recordings that are fitted, and those that are predicted only.
    :param names: of all of them.
    :param chosen: names of the fits.
    :param held: joints that never move, and are left out, with their positions [rad or m].
    """

    robot: RobotConfig
    config: IdentificationConfig
    work: Identification
    carried: CarriedPayload | None
    runs: Sequence[ArmRecording]
    others: Sequence[ArmRecording]
    names: tuple[str, ...]
    chosen: tuple[str, ...]
    held: Mapping[str, float]

    def fits(self) -> dict[str, Scored]:
        """The fits by name; after Ctrl-C those that are complete.

        :raises KeyboardInterrupt: if none is.
        """
        fits: dict[str, Scored] = {}
        with threadpool_limits(limits=1, user_api="blas"):
            try:
                for name in self.chosen:
                    fits[name] = self.work.fit(name)
            except KeyboardInterrupt:
                if not fits:
                    raise
        return fits

    def verdict(self, fits: Mapping[str, Scored]) -> Verdict:
        """The verdict on the fits."""
        if len(fits) < len(self.chosen):
            return Verdict((Reason("unfinished", "doubtful", f"interrupted after {', '.join(fits)}"),))
        train, near = self.work.motions()["train"], self.config.neighbourhood
        verdict = judge_fits(fits, train, near, self.robot.units)
        return verdict.with_reasons(judge_filters(self.runs, self.config.protocol))

    def actuators(self) -> list[Actuator]:
        """The actuator of each joint: a torque or a force."""
        units = self.work.machine.units(self.robot.units)
        return [torque_actuator(units[joint]) for joint in self.work.machine.joints]

    def elasticity(self, fits: Mapping[str, Scored]) -> dict[str, Elasticity]:
        """Elasticity of the joints with encoders on both sides, beside the last fit that tells their rotor inertias."""
        known = [scored.fit for scored in fits.values() if arm_of(scored.fit) is not None]
        fit = known[-1] if known else list(fits.values())[-1].fit
        return elastic_joints(fit, self.runs, self.others, self.config.protocol)

    def drives(
        self, fits: Mapping[str, Scored], verdict: Verdict, elastic: Mapping[str, Elasticity] | None = None
    ) -> Drives:
        """Joints of the full fit, and inertial parameters and couplings; without a full fit, parameters of the last fit alone."""
        scored = fits.get("full") or list(fits.values())[-1]
        estimates = scored.estimates(self.robot.units)
        if not isinstance(scored.fit, FullFit):
            return Drives({}, MachineParameters(self.robot.name, estimates), verdict)
        names = {part: tuple(run.name for run in motions) for part, motions in scored.motions.items()}
        runs = Runs("as given", names["train"], names.get("validation", ()))
        joints = joint_drives(scored.fit, self.actuators(), runs, scored.errors)
        of_joints = {f"{name}_{joint}" for joint, drive in joints.items() for name in drive.stated}
        others = {name: one for name, one in estimates.items() if name not in of_joints}
        provenance = next(iter(joints.values())).provenance
        joints = {name: replace(drive, verdict=verdict.of(name)) for name, drive in joints.items()}
        joints |= {name: with_elasticity(joints[name], one) for name, one in (elastic or {}).items()}
        return Drives(joints, MachineParameters(self.robot.name, others), verdict, provenance)


def arm_task(
    question: ArmQuestion, robot: RobotConfig, tell: Callable[[str], None], note: Callable[[str], None]
) -> ArmTask:
    """Read the recordings and prepare the fits.

    :param robot: the machine's file.
    :param tell: receives the stages of the computation.
    :param note: receives what the user should know.
    :raises ConfigError: for contradictions of question and machine.
    :raises RecordingError: for recordings that cannot be used.
    """
    config = identification_config(robot)
    machine = _machine(question, robot, config)
    runs, others = _recordings(question, config, machine.joints, robot.units, note)
    moving = moving_joints(runs, config.protocol)
    if moving.held:
        robot = robot.of_joints(machine.joints, moving.joints)
        machine = _machine(question, robot, config, moving.held)
        runs, others = _of_moving(moving, runs, others, note)
    work, carried = _with_payload(
        question, Identification(machine, config, runs, others, tell, question.terms)
    )
    machine = work.machine
    if machine.arm is not None:
        check_positions([*runs, *others], machine.arm)
        check_torques([motion for motions in work.motions().values() for motion in motions], machine.arm)
    chosen = question.fits or tuple(name for name in USUAL if work.applies(name))
    unfit = [name for name in chosen if not work.applies(name)]
    if unfit:
        raise ConfigError(
            f"the fits {', '.join(unfit)} need a URDF ({', '.join(NEED_URDF)}), but {robot.path} names none: add `urdf`, or choose other fits"
        )
    names = tuple(run.name for run in (*runs, *others))
    return ArmTask(robot, config, work, carried, runs, others, names, chosen, moving.held)


def _machine(
    question: ArmQuestion,
    robot: RobotConfig,
    config: IdentificationConfig,
    held: Mapping[str, float] | None = None,
) -> Machine:
    """The machine; what couples joints of which all but one are held belongs to that one."""
    path = question.model or robot.find_urdf(question.recordings)
    arm = None if path is None else load_arm(path, robot.joints, held)
    joints = robot.joints or (() if arm is None else arm.joints)
    if not joints:
        raise ConfigError(f"{robot.path}: joints missing: list them under `joints`, or give a URDF")
    couplings = {
        name: weights
        for name, weights in config.couplings.items()
        if sum(joint in joints for joint in weights) > 1
    }
    return machine_of(joints, arm, couplings)


def _recordings(
    question: ArmQuestion,
    config: IdentificationConfig,
    joints: Sequence[str],
    units: str,
    note: Callable[[str], None],
) -> tuple[list[ArmRecording], list[ArmRecording]]:
    """Recordings to fit, and to predict only, without their gaps."""

    def read(paths: Sequence[Path]) -> list[ArmRecording]:
        return read_arm_recordings(paths, config.recording, joints, units)

    runs = read(question.recordings)
    others = read_usable(question.validate, read, note) if question.validate else []
    share = question.hold_out
    if share is None:
        share = 0.0 if question.machine or question.validate else HELD_OUT
    if share > 0.0:
        parts = [held_out(run, config.protocol, share) for run in runs]
        runs, others = [first for first, _ in parts], [*others, *(last for _, last in parts)]
    return _parts(runs, config.protocol, note), _parts(others, config.protocol, note) if others else []


def _of_moving(
    moving: MovingJoints,
    runs: Sequence[ArmRecording],
    others: Sequence[ArmRecording],
    note: Callable[[str], None],
) -> tuple[list[ArmRecording], list[ArmRecording]]:
    """Recordings of the joints that move; those to predict in which others leave their place are left out."""
    for joint, position in moving.held.items():
        note(f"{joint} is not identified: it stays at {position:.4g} in all fitted recordings")
    kept = []
    for run in others:
        if astray := moving.astray(run):
            note(
                f"{run.name} is not predicted: {', '.join(astray)} moves in it, but in none of the fitted recordings"
            )
        else:
            kept.append(run)
    return [moving.of(run) for run in runs], [moving.of(run) for run in kept]


def _with_payload(
    question: ArmQuestion, work: Identification
) -> tuple[Identification, CarriedPayload | None]:
    """The identification of the arm with its payload, known or identified, as part of the link that carries it."""
    if question.payload is None:
        if question.payload_link is not None:
            raise ConfigError(
                "`payload_link` needs `payload`: give the mass (and centre) of the payload, or `identify`"
            )
        return work, None
    arm = work.machine.arm
    if arm is None:
        raise ConfigError(
            "`payload` needs a URDF, and the machine's file names none: add `urdf`, or give `model`"
        )
    carried = carried_payload(question.payload, question.payload_link, work, arm)
    return work.of(carried.machine), carried


def _parts(
    runs: Sequence[ArmRecording], protocol: Protocol, note: Callable[[str], None]
) -> list[ArmRecording]:
    """Recordings, cut at their gaps."""
    parts, lines = usable_parts(runs, protocol)
    for line in lines:
        note(line)
    return parts


def _surveyed(model: Path, data: Sequence[Path], note: Callable[[str], None]) -> RobotConfig:
    """A machine as URDF and recordings tell it."""
    found = survey(model, find_tables(data, RECORDINGS, ignore=(".urdf",)))
    for text in found.notes:
        note(text)
    entries = [Commented(one.key, one.value, one.reason) for one in found.findings]
    content = parse_yaml(commented_yaml("", entries), model, ConfigError)
    return robot_of(convert(content, MachineFile, str(model)), model)


def identify_arm(
    runs: Given,
    model: PathLike | None = None,
    *,
    machine: str | None = None,
    validate: Given | None = None,
    hold_out: float | None = None,
    payload: str | None = None,
    payload_link: str | None = None,
    fits: Iterable[str] | None = None,
    terms: Iterable[str] = (),
    progress: bool = True,
) -> Fit:
    """Identify dynamics and joint friction of an arm from its motion and the torques of its joints.

    :param runs: files, folders of them, or bags.
    :param model: URDF of the arm; needed without ``machine``, otherwise by default the one that the machine's file names.
    :param machine: a machine by name, for example ``tx40``, or its YAML file; by default what URDF and recordings tell.
    :param validate: recordings that are predicted only.
    :param hold_out: last share of each recording that is predicted only; by default 0, or 1/3 without ``machine`` and ``validate``.
    :param payload: carried in all recordings: mass [kg] as text, mass and centre ``"2,0,0,0.1"`` [m] in the frame of its link, or
        ``"identify"``.
    :param payload_link: link that carries it; by default the one behind the last joint.
    :param fits: of ``ols``, ``asymmetric``, ``weighted``, ``robust``, ``consistent``, ``log-cholesky``, ``full``; by default all but
        ``robust`` and ``log-cholesky``. The drives are those of ``full``.
    :param terms: terms that the friction of ``full`` has in any case, for example ``position``.
    :param progress: show the stages of the computation.
    :raises RecordingError: for recordings that cannot be used.
    :raises ConfigError: for arguments that are not valid, or contradict each other.
    """
    given = as_recordings(runs)
    question = ArmQuestion(
        recordings=paths_of(given),
        validate=paths_of(validate),
        machine=machine,
        model=None if model is None else Path(model),
        hold_out=hold_out,
        payload=payload,
        payload_link=payload_link,
        fits=None if fits is None else tuple(fits),
        terms=tuple(terms),
    )
    return _answer(question, given, progress)


def _answer(question: ArmQuestion, given: Recordings, progress: bool) -> Fit:
    check_valid(question.terms, optional_parts(), "unknown terms")
    check_valid(question.fits or (), ARM_FITS, "unknown fit")
    if question.hold_out is not None and not 0.0 <= question.hold_out < 1.0:
        raise ConfigError(f"hold_out must be at least 0 and less than 1, found {question.hold_out:g}")
    machine = question.machine
    if machine is None and question.model is None:
        raise ConfigError("`machine` or `model` is needed: name a machine, or give the URDF of the arm")
    with StageLine(not progress) as stages:
        robot = (
            read_robot(machine)
            if machine is not None
            else _surveyed(question.model or Path(), question.recordings, warn)
        )
        task = arm_task(question, robot, stages.tell, warn)
        found = task.fits()
        verdict = task.verdict(found)
    content = task.drives(found, verdict, task.elasticity(found))
    write = None if "full" in found else _refuse
    sources = Sources(question.model, robot)
    return Fit(content, runs=given, result=found, title=robot.title, write=write, sources=sources)


def _refuse(_: Path) -> None:
    raise ConfigError("only the fit `full` identifies drives that can be saved: add `full` to the fits")
