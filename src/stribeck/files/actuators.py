"""Servo families: reads ``config/actuators/*.yaml`` as :class:`~stribeck.model.actuator.Actuator`."""

from dataclasses import asdict as fields_of
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import field
from msgspec.structs import asdict

from stribeck.errors import ConfigError
from stribeck.files.folders import included_file, included_names
from stribeck.files.schema import Schema, check_keys, convert, read_yaml
from stribeck.model.actuator import EFFECT_PARAMETERS, Actuator, Datasheet, JointUnits, PwmRegister, Supply
from stribeck.model.control_laws import Control, CurrentControl, TorqueControl, VoltageControl
from stribeck.model.terms import FRICTION_PARAMETERS

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
    :param pwm_register: format of the duty in recordings, a raw integer.
    """

    name: str
    title: str
    units: JointUnits
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
        if not self.name or self.name.endswith((".yaml", ".yml")):
            raise ValueError(f"name: expected a name such as xm430, found {self.name!r}")
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

    :raises ConfigError: for an invalid file, or one that gives another servo the name of an included one.
    """
    actuator = actuator_of(read_yaml(path, ActuatorFile), f"{path}")
    if actuator.name in actuator_names():
        included = included_file("actuators", "actuator", actuator.name)
        if path.resolve() != included.resolve() and actuator != load_actuator(actuator.name):
            raise ConfigError(
                f"{path}: name: {actuator.name!r} is the name of the included servo {load_actuator(actuator.name).title}, from which this file differs: give "
                "your servo another name"
            )
    return actuator


def actuator_of(content: ActuatorFile, where: str) -> Actuator:
    """The servo that the content of a file describes.

    :param where: file and key, put before error messages.
    :raises ConfigError: for a control law, bounds or effects that do not exist.
    """
    control = _control(dict(content.control), f"{where}: control")
    optional = {*control.motor_parameters, "q_offset", *FRICTION_PARAMETERS}
    check_keys(content.bounds, (*control.required_parameters, "q_offset"), optional, f"{where}: bounds")
    effect_of = {parameter: effect for effect, parameter in EFFECT_PARAMETERS.items()}
    check_keys(content.effects, (), effect_of, f"{where}: effects")
    effects = {effect_of[name]: values for name, values in content.effects.items()}
    known = asdict(content) | {"control": control, "effects": effects}
    sheet = Datasheet(known.pop("datasheet"), known.pop("datasheet_bounds"), known.pop("datasheet_prior"))
    return Actuator(**known, datasheet=sheet)


def description_of(actuator: Actuator) -> dict[str, Any]:
    """The content of a file that describes the servo, without its published parameters and without active effects."""
    content = fields_of(as_described(actuator))
    content["control"] = {"kind": actuator.control.kind} | {
        key: value for key, value in content["control"].items() if value is not None
    }
    content["effects"] = {EFFECT_PARAMETERS[name]: values for name, values in actuator.effects.items()}
    sheet = actuator.datasheet
    content |= {"datasheet": sheet.figures, "datasheet_bounds": sheet.bounds, "datasheet_prior": sheet.prior}
    return {key: content[key] for key in ActuatorFile.__struct_fields__ if content[key]}


def as_described(actuator: Actuator) -> Actuator:
    """The servo as parameter files describe it: without published parameters and active effects."""
    return replace(actuator, published={}, active_effects=frozenset())


def _control(section: dict[str, Any], where: str) -> Control:
    kind = section.pop("kind", None)
    if not isinstance(kind, str) or kind not in CONTROLS:
        raise ConfigError(f"{where}: kind must be one of {', '.join(CONTROLS)}, found {kind!r}")
    return convert(section, CONTROLS[kind], where)
