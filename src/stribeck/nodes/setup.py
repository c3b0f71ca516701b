"""From the parameters of a node to the objects that do its work. No ROS here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stribeck.core.compensation import JointModel, Tuning
from stribeck.core.compensator import Compensator, Settings
from stribeck.core.joint_map import JointMap
from stribeck.errors import ConfigError
from stribeck.io.parameter_file import ParameterFile, cautious_values, read_parameter_file
from stribeck.nodes.compiled import compiled


class CompensatedJoint(NamedTuple):
    """One joint with what its group of parameters says."""

    model: JointModel
    map: JointMap
    file: ParameterFile
    p_gain: float
    supply_voltage: float

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
    file = read_parameter_file(path if base is None or path.is_absolute() else base / path)
    limit = own("max_torque") or 0.5 * file.actuator.datasheet.get("stall_torque", 0.0)
    if not limit > 0.0:
        raise ConfigError(
            f"the datasheet of {file.actuator.name} gives no stall torque: set {name}.max_torque"
        )
    cautious = cautious_values(file, values.get("friction_quantile", 0.5))
    model = JointModel(name, file.actuator, file.law, cautious, limit, source=str(path))
    try:
        mapped = JointMap(own("sign"), own("ratio"), own("offset"))
    except ConfigError as error:
        raise ConfigError(f"joint {name!r}: {error}") from None
    return CompensatedJoint(model, mapped, file, own("p_gain"), own("supply_voltage"))


def compensator_of(values: Mapping[str, Any], joints: list[CompensatedJoint]) -> Compensator:
    """The compensator that the parameters of the compensation node describe."""
    tuning = Tuning(
        deadband=values["deadband"],
        error_width=values["error_width"],
        command_velocity=values["command_velocity"],
        moving_velocity=values["moving_velocity"],
    )
    settings = Settings(
        mode=values["output_mode"],
        effort_meaning=values["effort_meaning"],
        gain=values["gain"],
        state_timeout=values["state_timeout"],
        command_timeout=values["command_timeout"],
        ramp_time=values["ramp_time"],
        slew=values["slew_limit"],
        other_joints=values["other_joints"],
        tuning=tuning,
    )
    return _with_known_supply(settings, joints)


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


def _with_known_supply(settings: Settings, joints: list[CompensatedJoint]) -> Compensator:
    compensator = Compensator(
        [joint.model for joint in joints], [joint.map for joint in joints], settings, compiled
    )
    for joint in joints:
        known = {"kp": joint.p_gain, "supply_voltage": joint.supply_voltage}
        compensator.on_telemetry(
            joint.model.name, **{key: value for key, value in known.items() if value > 0.0}
        )
    return compensator
