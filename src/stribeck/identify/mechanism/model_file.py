"""Reads model files: YAML descriptions of mechanisms, the columns of their recordings and estimation settings.

The subclasses of :class:`~stribeck.files.schema.Schema` declare the format; docs/multibody.md shows an example. A
:data:`Number` is a number or an affine expression of parameters such as ``-l2`` or ``0.0935 + 0.5 l2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from stribeck import strict
from stribeck.errors import ConfigError, check_valid
from stribeck.files.folders import included_file
from stribeck.files.schema import Count, Positive, Schema, check_keys, convert
from stribeck.identify.mechanism.affine import AffineNumbers, Number, index_of
from stribeck.identify.mechanism.contact_file import ContactSection, StartSection, contact_of
from stribeck.identify.mechanism.formulas import Formula
from stribeck.identify.mechanism.mechanism import (
    UNMOVED,
    JointKind,
    Mechanism,
    MechanismJoint,
    Motor,
    Regularization,
    Ripple,
    Sensor,
    shapes,
)
from stribeck.identify.mechanism.plausibility import check_mechanism
from stribeck.model.arrays import Array
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.parameters import Parameter, ParameterSet
from stribeck.recordings.signals.sources import SignalSource
from stribeck.recordings.signals.units import SIGNAL_UNITS, UNITS

Vector = Annotated[tuple[Number, Number, Number], Meta(description="x, y, z in the zero pose [m]")]


class ParameterSection(Schema):
    """A parameter; free ones are estimated within their bounds.

    :param value: start of the search, or the value if it is not free.
    :param unit: its unit, for tables.
    :param lower, upper: bounds of the search.
    :param free: whether it is estimated.
    """

    value: float
    unit: str
    lower: float | None = None
    upper: float | None = None
    free: bool = True

    def __post_init__(self) -> None:
        missing = [key for key in ("lower", "upper") if getattr(self, key) is None]
        if self.free and missing:
            raise ValueError(
                f"{', '.join(missing)} missing: a free parameter needs both bounds of its search"
            )

    def parameter(self, name: str) -> Parameter:
        """Convert to a fit parameter."""
        lower = self.value - 1.0 if self.lower is None else self.lower
        upper = self.value + 1.0 if self.upper is None else self.upper
        return Parameter(name, self.unit, self.value, lower, upper, self.free)


class InertiaSection(Schema):
    """Inertia about the centre of mass [kg m²].

    :param xx, yy, zz: moments of inertia.
    :param xy, xz, yz: products of inertia, as in a URDF.
    """

    xx: Number
    yy: Number
    zz: Number
    xy: Number = 0.0
    xz: Number = 0.0
    yz: Number = 0.0


class BodySection(Schema):
    """A rigid body."""

    mass: Annotated[Number, Meta(description="[kg]")]
    com: Vector
    inertia: InertiaSection


class RippleSection(Schema):
    """A periodic torque over a joint's angle (cogging)."""

    order: Annotated[Count, Meta(description="waves per turn")]
    cos: Annotated[Number, Meta(description="[N m]")]
    sin: Annotated[Number, Meta(description="[N m]")]


class JointSection(Schema):
    """A joint between two bodies, or between ``world`` and a body.

    :param kind: its freedom.
    :param parent, child: the bodies that it connects.
    :param axis: of rotation or translation, in the zero pose; needed unless it is fixed.
    :param coulomb: dry friction [N m or N].
    :param viscous: viscous friction [N m s/rad or N s/m].
    :param compliance: of its constraints, beyond the regularization [m/N]; of rotations divided by its length squared.
    :param damping: relaxation time of its constraints, beyond the regularization [time steps].
    :param slack: standard deviation of the deviations of its constraints, which are then estimated [m].
    """

    kind: JointKind
    parent: str
    child: str
    point: Vector
    axis: tuple[float, float, float] | None = None
    coulomb: Number | None = None
    viscous: Number | None = None
    compliance: Number | None = None
    damping: Number | None = None
    slack: Positive | None = None
    ripple: list[RippleSection] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if self.child in (self.parent, "world"):
            raise ValueError("a joint must connect a body or the world with another body")
        if self.ripple and self.kind != "revolute":
            raise ValueError("ripple: only a revolute joint has a torque that repeats with each turn")
        if self.kind in UNMOVED and not (self.coulomb is None and self.viscous is None):
            raise ValueError(f"a {self.kind} joint cannot have friction")
        if self.kind not in UNMOVED and self.axis is None:
            raise ValueError("axis missing")
        if self.axis is not None and np.linalg.norm(self.axis) < 1e-9:
            raise ValueError("axis must not be zero")


class MotorSection(Schema):
    """A DC motor driven by a voltage."""

    joint: Annotated[str, Meta(description="that it drives")]
    kt: Annotated[Number, Meta(description="torque constant at the joint, including the gear ratio [N m/A]")]
    resistance: Annotated[Number, Meta(description="[ohm]")]
    voltage_offset: Annotated[Number, Meta(description="added to the command [V]")] = 0.0


class SensorSection(Schema):
    """A sensor of a joint's coordinate or velocity, or of an expression of the motion.

    :param joint: that it measures.
    :param quantity: what it measures of the joint.
    :param expression: what it measures otherwise (:mod:`stribeck.identify.mechanism.formulas`).
    :param unit: of the expression.
    """

    joint: str | None = None
    quantity: Literal["position", "velocity"] = "position"
    expression: str | None = None
    unit: Literal["m", "rad", "m/s", "rad/s", "m/s²", "N", "N m", "1"] | None = None
    sign: Annotated[
        Literal[1, -1], Meta(description="-1 if the sensor counts in the direction opposite to the axis")
    ] = 1
    offset: Annotated[Number, Meta(description="unit of the signal")] = 0.0
    lag: Annotated[Number, Meta(description="[s]")] = 0.0
    deviation: Annotated[Positive, Meta(description="standard deviation of the noise")] = 1.0

    def __post_init__(self) -> None:
        if (self.joint is None) == (self.expression is None):
            raise ValueError("either joint or expression is needed, and not both")
        if (self.expression is None) != (self.unit is None):
            raise ValueError("unit is required for an expression, and not allowed for a joint")


class BaseSection(Schema):
    """Tilt of the base [rad].

    :param tilt_x, tilt_y: angle about the horizontal axis.
    """

    tilt_x: Number = 0.0
    tilt_y: Number = 0.0


class DataSection(Schema):
    """Sources of the signals in recordings, or their columns; without a unit they are in SI units."""

    time: str | SignalSource
    sensors: dict[str, str | SignalSource]
    motors: dict[str, str | SignalSource] = msgspec.field(default_factory=dict)
    clamped: Annotated[
        dict[str, dict[str, Positive]],
        Meta(description="for each recording, the friction of brakes that hold joints [N m or N]"),
    ] = msgspec.field(default_factory=dict)
    release: Annotated[
        dict[str, float], Meta(description="positions before release from rest, by sensor")
    ] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class EstimationSettings:
    """Settings of an estimation.

    :param step: time step h [s].
    :param ratio: weight of the inverse dynamics relative to the observations, see :mod:`stribeck.identify.mechanism.problem`.
    """

    step: Positive = 0.005
    ratio: Positive = 1000.0


class MechanismFile(Schema):
    """A model file."""

    schema: Annotated[Literal[1], Meta(description="version of the format")]
    name: Annotated[str, Meta(description="of the mechanism, used in results")]
    title: Annotated[str | None, Meta(description="full name, for figures")] = None
    parameters: dict[str, ParameterSection] = msgspec.field(default_factory=dict)
    bodies: dict[str, BodySection] = msgspec.field(default_factory=dict)
    joints: dict[str, JointSection] = msgspec.field(default_factory=dict)
    motors: dict[str, MotorSection] = msgspec.field(default_factory=dict)
    sensors: dict[str, SensorSection] = msgspec.field(default_factory=dict)
    contacts: dict[str, ContactSection] = msgspec.field(default_factory=dict)
    start: dict[str, StartSection] = msgspec.field(default_factory=dict)
    base: BaseSection = BaseSection()
    gravity: Annotated[float, Meta(description="acceleration of gravity along -z of the world [m/s²]")] = (
        STANDARD_GRAVITY
    )
    regularization: Regularization = Regularization()
    data: DataSection | None = None
    estimation: EstimationSettings = EstimationSettings()

    def __post_init__(self) -> None:
        if not self.bodies or not self.joints:
            raise ValueError("a mechanism needs at least one body and one joint")
        if "world" in self.bodies:
            raise ValueError("bodies: the name world is reserved for the base: give the body another name")


@dataclass(frozen=True)
class DataFormat:
    """Format of the recordings of a mechanism.

    :param sensors: sources by sensor name.
    :param motors: sources by motor name; commands are held between rows.
    :param clamped: torque or force of brakes by joint, for each recording (file name without extension).
    :param release: position sensor readings at the start of recordings that begin with a release from rest.
    """

    time: SignalSource
    sensors: Mapping[str, SignalSource]
    motors: Mapping[str, SignalSource]
    clamped: Mapping[str, Mapping[str, float]]
    release: Mapping[str, float]


@dataclass(frozen=True)
class MechanismModel:
    """The content of a model file.

    :param start: velocities and angular velocities of the bodies at the beginning of a simulation (nb, 6).
    """

    path: Path
    title: str
    mechanism: Mechanism
    data: DataFormat | None = None
    settings: EstimationSettings = field(default_factory=EstimationSettings)
    start: Array | None = None


def read_model(name: str) -> MechanismModel:
    """Read an included mechanism by name, or a YAML file.

    :raises ConfigError: for unknown names and invalid files.
    """
    path = included_file("mechanisms", "mechanism", name)
    return model_of(strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError), path)


def model_of(data: Any, path: Path) -> MechanismModel:
    """Build the model from a parsed file.

    :raises ConfigError: if it is invalid.
    """
    content = convert(data, MechanismFile, str(path))
    mechanism = _mechanism(content, path)
    check_mechanism(mechanism, str(path))
    form = None if content.data is None else _format(content.data, mechanism, f"{path}: data")
    start = np.zeros((len(mechanism.bodies), 6))
    for name, motion in content.start.items():
        start[index_of(name, mechanism.bodies, f"{path}: start")] = (*motion.velocity, *motion.spin)
    return MechanismModel(path, content.title or content.name, mechanism, form, content.estimation, start)


SCALARS = {
    "bodies": ("mass",),
    "joints": ("coulomb", "viscous", "compliance", "damping"),
    "motors": ("kt", "resistance", "voltage_offset"),
    "sensors": ("offset", "lag"),
    "contacts": ("grip",),
}
"""Keys that are one :data:`Number`, by section."""


def _numbers(
    content: MechanismFile, ripples: Sequence[tuple[Ripple, RippleSection]], path: Path
) -> AffineNumbers:
    parts: tuple[Sized, ...] = (
        content.bodies,
        content.joints,
        content.motors,
        content.sensors,
        ripples,
        content.contacts,
    )
    numbers = AffineNumbers(list(content.parameters), shapes(*map(len, parts)))
    for section, keys in SCALARS.items():
        for k, (name, entry) in enumerate(getattr(content, section).items()):
            for key in keys:
                numbers.put(key, k, getattr(entry, key), f"{path}: {section}: {name}: {key}")
    for k, (name, body) in enumerate(content.bodies.items()):
        where = f"{path}: bodies: {name}"
        numbers.put_all("com", k, body.com, f"{where}: com")
        numbers.put_all("inertia", k, msgspec.structs.astuple(body.inertia), f"{where}: inertia")
    for k, (name, joint) in enumerate(content.joints.items()):
        numbers.put_all("point", k, joint.point, f"{path}: joints: {name}: point")
    for k, (name, contact) in enumerate(content.contacts.items()):
        numbers.put_all("spot", k, contact.point, f"{path}: contacts: {name}: point")
    for k, (ripple, wave) in enumerate(ripples):
        name = list(content.joints)[ripple.joint]
        numbers.put_all("ripple", k, (wave.cos, wave.sin), f"{path}: joints: {name}: ripple: {ripple.order}")
    for k, value in enumerate((content.base.tilt_x, content.base.tilt_y)):
        numbers.put("tilt", k, value, f"{path}: base")
    return numbers


def _mechanism(content: MechanismFile, path: Path) -> Mechanism:
    joints, bodies = list(content.joints), ["world", *content.bodies]
    ripples = [
        (Ripple(j, wave.order), wave) for j, at in enumerate(content.joints.values()) for wave in at.ripple
    ]
    constant, matrix = _numbers(content, ripples, path).flat()
    return Mechanism(
        content.name,
        tuple(content.bodies),
        tuple(_joint(name, at, bodies, f"{path}: joints: {name}") for name, at in content.joints.items()),
        tuple(
            Motor(name, index_of(at.joint, joints, f"{path}: motors: {name}: joint"))
            for name, at in content.motors.items()
        ),
        tuple(
            _sensor(name, at, bodies, joints, content, f"{path}: sensors: {name}")
            for name, at in content.sensors.items()
        ),
        ParameterSet(section.parameter(name) for name, section in content.parameters.items()),
        constant,
        matrix,
        content.regularization,
        content.gravity,
        _brakes(content.data, joints, path),
        tuple(ripple for ripple, _ in ripples),
        tuple(
            contact_of(name, at, bodies, f"{path}: contacts: {name}") for name, at in content.contacts.items()
        ),
    )


def _joint(name: str, section: JointSection, bodies: list[str], where: str) -> MechanismJoint:
    parent, child = (
        index_of(getattr(section, key), bodies, f"{where}: {key}") for key in ("parent", "child")
    )
    axis = np.array(section.axis or (0.0, 0.0, 1.0), dtype=np.float64)
    x, y, z = (axis / np.linalg.norm(axis)).tolist()
    return MechanismJoint(name, section.kind, parent, child, (x, y, z), section.slack or 0.0)


def _sensor(
    name: str,
    section: SensorSection,
    bodies: list[str],
    joints: list[str],
    content: MechanismFile,
    where: str,
) -> Sensor:
    sign, deviation = float(section.sign), section.deviation
    if section.joint is not None:
        joint = index_of(section.joint, joints, f"{where}: joint")
        return Sensor(name, joint, section.quantity, sign, deviation)
    formula = Formula(section.expression or "", tuple(bodies), tuple(joints), tuple(content.parameters))
    formula.check(f"{where}: expression")
    return Sensor(name, -1, "expression", sign, deviation, formula, section.unit or "")


def _brakes(data: DataSection | None, joints: list[str], path: Path) -> tuple[int, ...]:
    """Indices of joints that are clamped in a recording."""
    clamped = {} if data is None else data.clamped
    indices = {
        index_of(joint, joints, f"{path}: data: clamped: {stem}")
        for stem, brakes in clamped.items()
        for joint in brakes
    }
    return tuple(sorted(indices))


def _format(data: DataSection, mechanism: Mechanism, where: str) -> DataFormat:
    """Columns and units by the sensors and motors of the mechanism."""
    sensors = {sensor.name: _units(mechanism, sensor) for sensor in mechanism.sensors}
    motors = dict.fromkeys((motor.name for motor in mechanism.motors), ("V", "mV", "percent"))
    check_keys(data.sensors, sensors, (), f"{where}: sensors", ConfigError)
    check_keys(data.motors, motors, (), f"{where}: motors", ConfigError)
    if data.release:
        positions = [sensor.name for sensor in mechanism.sensors if sensor.quantity == "position"]
        check_keys(data.release, positions, (), f"{where}: release", ConfigError)
    return DataFormat(
        _source(data.time, SIGNAL_UNITS["time"], f"{where}: time"),
        {name: _source(data.sensors[name], sensors[name], f"{where}: sensors: {name}") for name in sensors},
        {name: _source(data.motors[name], motors[name], f"{where}: motors: {name}") for name in motors},
        data.clamped,
        data.release,
    )


def _source(value: str | SignalSource, units: tuple[str, ...], where: str) -> SignalSource:
    source = SignalSource(column=value) if isinstance(value, str) else value
    if source.place not in ("table", "bag"):
        raise ConfigError(f"{where}: column, variable or topic missing")
    if source.place == "bag" and source.joint is None:
        raise ConfigError(f"{where}: joint is missing: name it as the messages do")
    if source.unit is not None:
        check_valid(source.unit, units, f"{where}: unknown unit")
    return source


def _units(mechanism: Mechanism, sensor: Sensor) -> tuple[str, ...]:
    """Units in which recordings may have the signal of a sensor; turns and counts are those of a joint alone."""
    of_joint = {} if sensor.formula is not None else {"rad": ("turn", "counts"), "rad/s": ("rpm",)}
    unit = mechanism.unit(sensor)
    same = (one for one in UNITS if one.replace("mm", "m").replace("deg", "rad") == unit)
    return (*same, *of_joint.get(unit, ()))
