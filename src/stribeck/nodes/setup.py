"""From the parameters of a node to the objects that do its work. No ROS here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stribeck.core.bench import Pendulum
from stribeck.core.compensation import JointModel
from stribeck.core.compensator import Compensator
from stribeck.core.direction import Tuning
from stribeck.core.dynamics import Dynamics, PendulumModel
from stribeck.core.joint_map import JointMap
from stribeck.core.rigid_body import GRAVITY
from stribeck.core.settings import Settings
from stribeck.errors import ConfigError
from stribeck.io.learned_file import Identified, digest_of
from stribeck.io.parameter_file import ParameterFile, cautious_values, read_parameter_file
from stribeck.io.urdf import read_urdf
from stribeck.nodes.compiled import compiled

TUNED = ("deadband", "error_width", "command_velocity", "moving_velocity", "away", "presliding")
"""Parameters of a joint that are fields of its tuning."""


class CompensatedJoint(NamedTuple):
    """One joint with what its group of parameters says."""

    model: JointModel
    map: JointMap
    file: ParameterFile
    p_gain: float
    supply_voltage: float
    identified: Identified

    @property
    def temperature(self) -> float | None:
        """Temperature at which the friction was identified [°C], where the file says."""
        return self.file.temperature


def compensated_joints(values: Mapping[str, Any], base: Path | None = None) -> list[CompensatedJoint]:
    """The joints of ``joints`` with their parameter files.

    :param base: folder that relative file names start from.
    :raises ConfigError: for a joint without a file, or without a torque limit.
    :raises ParameterFileError: for a file that is not valid.
    """
    return [_compensated_joint(values, name, base) for name in values["joints"]]


def _compensated_joint(values: Mapping[str, Any], name: str, base: Path | None) -> CompensatedJoint:
    def own(key: str) -> Any:
        return values[f"{name}.{key}"]

    if not own("parameter_file"):
        raise ConfigError(f"joint {name!r} has no parameter_file: set {name}.parameter_file")
    path = Path(own("parameter_file")).expanduser()
    found = _beside(base, path)
    file, quantile = read_parameter_file(found), values.get("friction_quantile", 0.5)
    identified = Identified(name, file.law.name, digest_of(found, quantile))
    limit = own("max_torque") or 0.5 * file.actuator.datasheet.get("stall_torque", 0.0)
    if not limit > 0.0:
        raise ConfigError(
            f"the datasheet of {file.actuator.name} gives no stall torque: set {name}.max_torque"
        )
    try:
        mapped = JointMap(own("sign"), own("ratio"), own("offset"))
    except ConfigError as error:
        raise ConfigError(f"joint {name!r}: {error}") from None
    said = {key: own(key) or values.get(key, 0.0) for key in TUNED}
    tuning = Tuning.of_resolution(file.actuator.resolution).told(
        mapped.ratio, **{key: value for key, value in said.items() if value}
    )
    cautious = cautious_values(file, quantile)
    model = JointModel(name, file.actuator, file.law, cautious, limit, str(path), tuning, file.temperature)
    return CompensatedJoint(model, mapped, file, own("p_gain"), own("supply_voltage"), identified)


def _beside(base: Path | None, path: Path) -> Path:
    return path if base is None or path.is_absolute() else base / path


class Learning(NamedTuple):
    """What the friction that there is now is learnt from.

    :param dynamics: of the joints, ``None`` if they are not known.
    :param words: what to say of it, one line each.
    :param gap: why nothing is learnt, empty if something is.
    """

    dynamics: Dynamics | None
    words: tuple[str, ...]
    gap: str


def learning_of(
    values: Mapping[str, Any], joints: list[CompensatedJoint], base: Path | None = None
) -> Learning:
    """The dynamics of the joints: of a URDF, or of what is said of each joint.

    :param base: folder that relative file names start from.
    :raises ConfigError: for a URDF that does not fit, or for loads of some of the joints alone.
    """
    if not values["adapt"]:
        return Learning(None, (), "adapt is false")
    dynamics, words = _of_urdf(values, joints, base) if values["urdf"] else (_of_loads(values, joints), ())
    gap = ""
    if dynamics is None:
        gap = "neither a urdf, nor inertia or load of the joints is given"
    elif values["output_mode"] != "sum" and values["effort_meaning"] != "motor":
        gap = f"the torque of the motors is not known: effort_meaning is {values['effort_meaning']}"
    elif not values["goal_topic"] and values["output_mode"] == "sum" and values["command_type"] == "array":
        gap = "no goals are heard: set goal_topic"
    return Learning(dynamics, words, gap)


def _of_urdf(
    values: Mapping[str, Any], joints: list[CompensatedJoint], base: Path | None
) -> tuple[Dynamics, tuple[str, ...]]:
    path = Path(values["urdf"]).expanduser()
    robot = read_urdf(_beside(base, path))
    names = [joint.model.name for joint in joints]
    if len(gravity := values["gravity"] or GRAVITY) != 3:
        raise ConfigError(f"gravity: expected three numbers, found {len(gravity)}")
    locked = [name for name in robot.movable if name not in names]
    words = [f"{path}: locked at 0, as they are not compensated: {', '.join(locked)}"] if locked else []
    return robot.model(names, gravity=gravity, armature=_rotors(joints)), (*words, *robot.doubts)


def _rotors(joints: list[CompensatedJoint]) -> list[float]:
    """Inertia of each joint's rotor, at the joint [kg m²]."""
    return [float(joint.map.inertia(joint.model.values.get("armature", 0.0))) for joint in joints]


def _of_loads(values: Mapping[str, Any], joints: list[CompensatedJoint]) -> Dynamics | None:
    """Joints that do not feel each other; ``None`` if nothing is said of them."""

    def of_each(key: str) -> Any:
        return np.array([values[f"{joint.model.name}.{key}"] for joint in joints], dtype=np.float64)

    load = Pendulum(of_each("load_mass"), of_each("load_length"), of_each("rod_mass"))
    given = (of_each("inertia") > 0.0) | ((load.length > 0.0) & ((load.mass > 0.0) | (load.arm_mass > 0.0)))
    if not given.any():
        return None
    if not given.all():
        lacking = [joint.model.name for joint, known in zip(joints, given, strict=True) if not known]
        raise ConfigError(
            f"inertia or load is given for some joints only: give it for {', '.join(lacking)} too, or a urdf"
        )
    hangs = [joint.map.position(-joint.model.values.get("q_offset", 0.0)) for joint in joints]
    return PendulumModel(load, of_each("inertia") + np.array(_rotors(joints)), -np.array(hangs))


def compensator_of(
    values: Mapping[str, Any], joints: list[CompensatedJoint], dynamics: Dynamics | None = None
) -> Compensator:
    """The compensator that the parameters of the compensation node describe.

    :param dynamics: what friction is learnt from (:func:`learning_of`).
    """
    if values["goal_topic"].lstrip("/") == "joint_states":
        raise ConfigError(
            "goal_topic: /joint_states holds what is measured, and a goal that follows the measurement leads nobody; give "
            "the topic of the controller's reference"
        )
    if values["goal_topic"] and values["output_mode"] == "goal_offset":
        raise ConfigError("goal_topic: in output_mode goal_offset the commands are the goals; leave it empty")
    settings = Settings(
        mode=values["output_mode"],
        effort_meaning=values["effort_meaning"],
        gain=values["gain"],
        state_timeout=values["state_timeout"],
        command_timeout=values["command_timeout"],
        ramp_time=values["ramp_time"],
        slew=values["slew_limit"],
        other_joints=values["other_joints"],
        control=values["control"],
        adapt=values["adapt"],
        sure=values["sure"],
        loop_delay=values["loop_delay"],
        state_lag=values["state_lag"],
        learned_gain=values["learned_gain"],
    )
    return _with_known_supply(settings, joints, dynamics)


def check_lease(values: Mapping[str, Any]) -> None:
    """A node must stand back before its guard takes over: else both would speak.

    :raises ConfigError: for a pause limit that is not shorter than the lease.
    """
    pause, lease = values["pause_limit"], values["lease"]
    if not pause < lease:
        raise ConfigError(
            f"pause_limit must be shorter than lease, found {pause:g} s and {lease:g} s: give both under /**, alike for "
            "node and guard"
        )


def hand_through_of(values: Mapping[str, Any], joints: list[CompensatedJoint]) -> Compensator:
    """A compensator that is never enabled: what the guard passes on is the controller's own command."""
    settings = Settings(
        mode=values["output_mode"],
        effort_meaning="none",
        command_timeout=values["command_timeout"],
        slew=values["slew_limit"],
    )
    return _with_known_supply(settings, joints)


def _with_known_supply(
    settings: Settings, joints: list[CompensatedJoint], dynamics: Dynamics | None = None
) -> Compensator:
    models, maps = [joint.model for joint in joints], [joint.map for joint in joints]
    compensator = Compensator(models, maps, settings, compiled, dynamics)
    for joint in joints:
        known = {"kp": joint.p_gain, "supply_voltage": joint.supply_voltage}
        compensator.on_telemetry(
            joint.model.name, **{key: value for key, value in known.items() if value > 0.0}
        )
    return compensator
