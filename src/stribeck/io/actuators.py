"""Servo families: reads ``config/actuators/*.yaml`` as :class:`~stribeck.core.actuator.Actuator`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import field
from msgspec.structs import asdict

from stribeck.core.actuator import (
    EFFECT_PARAMETERS,
    Actuator,
    Control,
    CurrentControl,
    PwmRegister,
    Supply,
    TorqueControl,
    VoltageControl,
)
from stribeck.core.friction import FRICTION_PARAMETERS
from stribeck.errors import ConfigError
from stribeck.io.files import included_file, included_names
from stribeck.io.schema import Schema, check_keys, convert, read_yaml

CONTROLS: dict[str, type[Control]] = {
    "voltage": VoltageControl,
    "current": CurrentControl,
    "torque": TorqueControl,
}

Pairs = dict[str, tuple[float, float]]


class ActuatorFile(Schema):
    """One servo family.

    :param name: key in parameter files and on the command line.
    :param title: full name of the servo.
    :param units: ``rotary`` (N m, rad) or ``linear`` (N, m).
    :param control: the firmware's control law: ``kind`` (voltage, current or torque) and the keys of that law.
    :param supply: supply voltages.
    :param resolution: smallest step of the measured position [rad].
    :param bounds: search bounds ``[lower, upper]`` of motor parameters and ``q_offset``, and of friction parameters whose
        bounds differ from the defaults.
    :param effects: value and search bounds ``[value, lower, upper]`` of the parameters that effects beyond the paper add.
    :param datasheet_bounds: bounds of motor parameters while the current limit is on.
    :param datasheet_prior: mean and standard deviation of motor parameters while the current limit is on.
    :param datasheet: the manufacturer's figures, for reports and priors.
    :param published: published identified parameters, by law.
    :param pwm_register: how recordings hold the duty as a raw integer.
    """

    name: str
    title: str
    units: Literal["rotary", "linear"]
    control: dict[str, Any]
    supply: Supply
    resolution: float
    bounds: Pairs
    effects: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    datasheet_bounds: Pairs = field(default_factory=dict)
    datasheet_prior: Pairs = field(default_factory=dict)
    datasheet: dict[str, float] = field(default_factory=dict)
    published: dict[str, dict[str, float]] = field(default_factory=dict)
    pwm_register: PwmRegister | None = None

    def __post_init__(self) -> None:
        for key in ("bounds", "datasheet_bounds"):
            for name, (lower, upper) in getattr(self, key).items():
                if not lower < upper:
                    raise ValueError(
                        f"{key}: {name}: lower bound {lower:g} is not below upper bound {upper:g}"
                    )
        for name, (_, deviation) in self.datasheet_prior.items():
            if not deviation > 0.0:
                raise ValueError(
                    f"datasheet_prior: {name}: the standard deviation must be positive, found {deviation:g}"
                )


def actuator_names() -> list[str]:
    """Names of the installed servo families."""
    return included_names("actuators")


@cache
def load_actuator(name: str) -> Actuator:
    """Load a servo family by name, or from the path of a YAML file.

    :raises ConfigError: for an unknown name or an invalid file.
    """
    return read_actuator(included_file("actuators", "actuator", name))


def read_actuator(path: Path) -> Actuator:
    """Read one servo family from a YAML file.

    :raises ConfigError: for an invalid file.
    """
    content = read_yaml(path, ActuatorFile)
    control = _control(dict(content.control), f"{path}: control")
    optional = {*control.motor_parameters, "q_offset", *FRICTION_PARAMETERS}
    check_keys(content.bounds, (*control.required_parameters, "q_offset"), optional, f"{path}: bounds")
    effect_of = {parameter: effect for effect, parameter in EFFECT_PARAMETERS.items()}
    check_keys(content.effects, (), effect_of, f"{path}: effects")
    effects = {effect_of[name]: values for name, values in content.effects.items()}
    return Actuator(**{**asdict(content), "control": control, "effects": effects})


def _control(section: dict[str, Any], where: str) -> Control:
    kind = section.pop("kind", None)
    if not isinstance(kind, str) or kind not in CONTROLS:
        raise ConfigError(f"{where}: kind must be one of {', '.join(CONTROLS)}, found {kind!r}")
    return convert(section, CONTROLS[kind], where)
