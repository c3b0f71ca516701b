"""Creates the objects of the compensation from the parameters of node and guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.drives import Drives, read_drives
from stribeck.live.caution import LEAST_LEFT, cautious_values, share_left
from stribeck.live.compensator import Compensator
from stribeck.live.compiled import compiled
from stribeck.live.direction.motion import Tuning
from stribeck.live.friction import EffortMeaning, JointModel
from stribeck.live.learning.file import Identified, digest_of
from stribeck.live.parameters import CompensatedJointParameters, CompensationParameters, InterfaceParameters
from stribeck.live.settings import Settings, Timing
from stribeck.model.arrays import Array
from stribeck.model.bench import Pendulum
from stribeck.model.joint import Drive
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import Dynamics, PendulumModel
from stribeck.rigid.payload import payload_of
from stribeck.rigid.rigid_body import GRAVITY
from stribeck.rigid.tree import BASE
from stribeck.rigid.urdf import read_urdf

PASSED_ON = ("gain", "other_joints", "control", "adapt", "certain_fraction", "learned_gain")
"""Parameters that become settings of the compensator with the same name."""

TUNED = ("deadband", "error_width", "command_velocity", "moving_velocity", "overshoot_fraction", "presliding")
"""Parameters of a joint that become fields of its :class:`Tuning`."""


class CompensatedJoint(NamedTuple):
    """A joint with its parameter file and its node parameters."""

    model: JointModel
    map: JointMap
    file: Drive
    p_gain: float
    supply_voltage: float
    identified: Identified


def compensated_joints(parameters: InterfaceParameters, base: Path | None = None) -> list[CompensatedJoint]:
    """The joints named in ``joints``, with their parameter files.

    :param base: folder to which relative file names refer.
    :raises ConfigError: for a joint without a file or without a torque limit.
    :raises ParameterFileError: for an invalid file.
    """
    read = cache(read_drives)  # a file may have the drives of many joints
    return [_compensated_joint(parameters, name, base, read) for name in parameters.joints]


def _compensated_joint(
    parameters: InterfaceParameters, name: str, base: Path | None, read: Callable[[Path], Drives]
) -> CompensatedJoint:
    joint = parameters.by_joint[name]
    given = joint.parameter_file or parameters.drives_file
    if not given:
        raise ConfigError(
            f"joint {name!r} has no parameter file: set {name}.parameter_file, or drives_file for all joints"
        )
    path = Path(given).expanduser()
    absolute = _beside(base, path)
    quantile = getattr(parameters, "friction_quantile", 0.5)
    file = read(absolute).drive(name, absolute)
    per_kelvin = file.estimates.get("friction_per_kelvin")
    limit = joint.max_torque or 0.5 * (file.actuator.datasheet_torque or 0.0)
    if not limit > 0.0:
        raise ConfigError(
            f"joint {name!r}: its torque limit is unknown, because there is no datasheet of {file.actuator.title}: set {name}.max_torque [N m], for a robot "
            "to its effort limit; in a replay or in your own loop set `max_torque`"
        )
    try:
        joint_map = JointMap(joint.sign, joint.ratio, joint.offset)
    except ConfigError as error:
        raise ConfigError(f"joint {name!r}: {error}") from None
    model = JointModel(
        name,
        file.actuator,
        file.law,
        cautious_values(file, quantile),
        limit,
        str(path),
        _tuning(parameters, joint, file, joint_map),
        file.temperature,
        per_kelvin.value if per_kelvin is not None and per_kelvin.known else None,
        joint.enabled,
    )
    identified = Identified(name, file.law.name, digest_of(absolute, quantile))
    return CompensatedJoint(model, joint_map, file, joint.p_gain, joint.supply_voltage, identified)


def _tuning(
    parameters: InterfaceParameters,
    joint: CompensatedJointParameters,
    file: Drive,
    joint_map: JointMap,
) -> Tuning:
    """The tuning of a joint: per-joint values, otherwise values for all joints, otherwise automatic ones."""
    values = {key: getattr(joint, key) or getattr(parameters, key, 0.0) for key in TUNED}
    return Tuning.of_resolution(file.actuator.resolution).with_joint_values(
        joint_map.ratio, **{key: value for key, value in values.items() if value}
    )


def _beside(base: Path | None, path: Path) -> Path:
    return path if base is None or path.is_absolute() else base / path


class Learning(NamedTuple):
    """Dynamics used to learn the current friction.

    :param dynamics: dynamics of the joints; ``None`` if unknown.
    :param words: remarks for the log, one line each.
    :param gap: why nothing is learned; empty if something is.
    """

    dynamics: Dynamics | None
    words: tuple[str, ...]
    gap: str


def learning_of(
    parameters: CompensationParameters, joints: list[CompensatedJoint], base: Path | None = None
) -> Learning:
    """The dynamics of the joints: from a URDF, or from inertia or load of each joint.

    :param base: folder to which relative file names refer.
    :raises ConfigError: for a URDF that does not match, or if only some of the joints have loads.
    """
    off = [joint.model.name for joint in joints if not joint.model.enabled]
    out = _too_cautious(joints)
    if off:
        out = (f"not compensated, because <joint>.enabled is false: {', '.join(off)}", *out)
    if not parameters.adapt:
        return Learning(None, out, "adapt is false")
    dynamics, words = dynamics_of(parameters, joints, base)
    mode, gap = parameters.output_mode, ""
    if dynamics is None:
        gap = "there is no urdf, and neither inertia nor load of the joints is set"
    elif mode != "sum" and parameters.effort_meaning != "motor":
        gap = f"the motor torque is unknown, because effort_meaning is {parameters.effort_meaning}"
    elif not parameters.goal_topic and mode == "sum" and parameters.command_type == "array":
        gap = "no goals are received: set goal_topic"
    words = (*out, *words, *([f"the current friction is not learnt: {gap}"] if gap else []))
    return Learning(dynamics, words, gap)


def _too_cautious(joints: list[CompensatedJoint]) -> tuple[str, ...]:
    """A remark on joints of which ``friction_quantile`` leaves next to nothing, because it lowers correlated parameters one by one."""
    shares = {
        joint.model.name: share_left(joint.file, joint.model.values)
        for joint in joints
        if joint.model.enabled and joint.file.correlation is not None
    }
    named = [f"{name} {100.0 * share:.2g} %" for name, share in shares.items() if share < LEAST_LEFT]
    if not named:
        return ()
    return (
        f"friction_quantile leaves little of the identified friction: {', '.join(named)}. It lowers each parameter by its own interval, and these are "
        "correlated, so their sum is better known: leave friction_quantile at 0.5, and lower gain instead",
    )


def dynamics_of(
    parameters: CompensationParameters, joints: list[CompensatedJoint], base: Path | None = None
) -> tuple[Dynamics | None, tuple[str, ...]]:
    """The dynamics of the joints, if they are known, and remarks on them; errors as :func:`learning_of`."""
    if parameters.payload and not parameters.urdf:
        raise ConfigError("payload needs a urdf: give one, or remove the payload")
    if parameters.urdf:
        return _of_urdf(parameters, joints, base)
    return _of_loads(parameters, joints), ()


def _of_urdf(
    parameters: CompensationParameters, joints: list[CompensatedJoint], base: Path | None
) -> tuple[Dynamics, tuple[str, ...]]:
    path = Path(parameters.urdf).expanduser()
    robot = read_urdf(_beside(base, path))
    names = [joint.model.name for joint in joints]
    if parameters.payload:
        robot = robot.with_payload(
            payload_of(parameters.payload, parameters.payload_link or names[-1], "payload")
        )
    if len(gravity := parameters.gravity or GRAVITY) != 3:
        raise ConfigError(f"gravity: expected three numbers, found {len(gravity)}")
    locked = [name for name in robot.movable if name not in names]
    words = [f"{path}: joints that are not compensated are assumed to be locked at 0: {', '.join(locked)}"]
    words = words if locked else []
    return robot.model(names, gravity=gravity, armature=_rotors(joints)), (*words, *robot.doubts)


def base_link_of(parameters: CompensationParameters) -> str:
    """The root link of the URDF, in whose frame wrenches are."""
    frames = read_urdf(Path(parameters.urdf).expanduser()).tree.frames
    return next((name for name, (body, _) in frames.items() if body == BASE), "")


def _rotors(joints: list[CompensatedJoint]) -> list[float]:
    """Rotor inertia of each joint, reflected to the joint [kg m²]."""
    return [float(joint.map.inertia(joint.model.values.get("armature", 0.0))) for joint in joints]


def _of_loads(parameters: CompensationParameters, joints: list[CompensatedJoint]) -> Dynamics | None:
    """Joints without dynamic coupling; ``None`` if neither inertia nor load of any joint is given."""

    def of_each(key: str) -> Array:
        return np.array([getattr(parameters.by_joint[joint.model.name], key) for joint in joints])

    load = Pendulum(of_each("load_mass"), of_each("load_length"), of_each("rod_mass"))
    for joint, mass, length in zip(joints, load.mass + load.arm_mass, load.length, strict=True):
        if (mass > 0.0) != (length > 0.0):
            present, missing = (
                ("a mass", "load_length") if mass > 0.0 else ("load_length", "load_mass or rod_mass")
            )
            raise ConfigError(
                f"{joint.model.name}: the load has {present} but no {missing}: give both, or neither"
            )
    given = (of_each("inertia") > 0.0) | ((load.length > 0.0) & ((load.mass > 0.0) | (load.arm_mass > 0.0)))
    if not given.any():
        return None
    if not given.all():
        lacking = [joint.model.name for joint, is_given in zip(joints, given, strict=True) if not is_given]
        raise ConfigError(
            f"inertia or load is given for some joints only: give it also for {', '.join(lacking)}, or give a urdf"
        )
    hangs = [joint.map.position(-joint.model.values.get("q_offset", 0.0)) for joint in joints]
    return PendulumModel(load, of_each("inertia") + np.array(_rotors(joints)), -np.array(hangs))


def compensator_of(
    parameters: CompensationParameters, joints: list[CompensatedJoint], dynamics: Dynamics | None = None
) -> Compensator:
    """The compensator described by the parameters of the compensation node.

    :param dynamics: dynamics used to learn friction (:func:`learning_of`).
    """
    if parameters.goal_topic.lstrip("/") == "joint_states":
        raise ConfigError(
            "goal_topic: /joint_states contains measurements, not goals: give the topic of the controller's reference"
        )
    if parameters.goal_topic and parameters.output_mode == "goal_offset":
        raise ConfigError(
            "goal_topic: in output_mode goal_offset the goals are the commands: leave goal_topic empty"
        )
    settings = Settings(
        mode=parameters.output_mode,
        effort_meaning=cast(EffortMeaning, parameters.effort_meaning),
        slew=parameters.slew_limit,
        timing=Timing(**{time.name: getattr(parameters, time.name) for time in fields(Timing)}),
        **{key: getattr(parameters, key) for key in PASSED_ON},
    )
    return _compensator(settings, joints, dynamics)


def check_heartbeat(parameters: InterfaceParameters) -> None:
    """Check that a paused node stops compensating before its guard takes over; otherwise both would publish.

    :raises ConfigError: if the pause limit is not shorter than the heartbeat timeout.
    """
    pause, timeout = parameters.pause_limit, parameters.heartbeat_timeout
    if not pause < timeout:
        raise ConfigError(
            f"pause_limit must be shorter than heartbeat_timeout, found {pause:g} s and {timeout:g} s: set "
            "both under /**, so that node and guard have the same values"
        )


def passthrough_of(parameters: InterfaceParameters, joints: list[CompensatedJoint]) -> Compensator:
    """A compensator that is never enabled, so it passes the controller's command through."""
    settings = Settings(
        mode=parameters.output_mode,
        effort_meaning="none",
        timing=Timing(command_timeout=parameters.command_timeout),
        slew=parameters.slew_limit,
    )
    return _compensator(settings, joints)


def _compensator(
    settings: Settings, joints: list[CompensatedJoint], dynamics: Dynamics | None = None
) -> Compensator:
    models, maps = [joint.model for joint in joints], [joint.map for joint in joints]
    compensator = Compensator(models, maps, settings, compiled, dynamics)
    for joint in joints:
        known = joint.file.gains
        gain = joint.p_gain or (0.0 if known is None else known.kp)
        recorded = None if joint.file.provenance is None else joint.file.provenance.supply_voltage
        stated = 0.0 if recorded is None else recorded.nominal or 0.0
        fixed = {"kp": gain, "supply_voltage": joint.supply_voltage or stated}
        compensator.on_telemetry(
            joint.model.name, **{key: value for key, value in fixed.items() if value > 0.0}
        )
    return compensator
