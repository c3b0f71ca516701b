"""Mechanisms as YAML: bodies, joints, motors, sensors, parameters, and where recordings hold the signals.

See docs/multibody.md for the format. Numbers may be affine expressions of parameters, as ``-l2`` or ``0.0935 + 0.5 l2``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.core.bench import STANDARD_GRAVITY
from stribeck.core.parameters import Parameter, ParameterSet
from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.files import shared_directory
from stribeck.multibody.mechanism import (
    KINDS,
    Joint,
    Mechanism,
    Motor,
    Regularization,
    Ripple,
    Sensor,
    shapes,
)
from stribeck.multibody.plausibility import check_mechanism

INERTIA = ("xx", "yy", "zz", "xy", "xz", "yz")
SECTIONS = (
    "title", "parameters", "bodies", "joints", "motors", "sensors", "base", "gravity", "regularization", "data",
    "estimation",
)  # fmt: skip
TERM = re.compile(r"([+-]?)\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*\*?\s*)?([A-Za-z_]\w*)?\s*")


@dataclass(frozen=True)
class Column:
    """Where recordings hold a signal.

    :param column: name of a column or a MAT variable.
    :param unit: ``rad``, ``deg``, ``m``, ``mm``, ``V``, ``rad/s``, ``deg/s``, ``m/s`` or ``s``.
    """

    column: str
    unit: str


@dataclass(frozen=True)
class DataFormat:
    """How recordings of a mechanism are read.

    :param time: column of time.
    :param sensors: by the names of sensors.
    :param motors: by the names of motors; commands are held between rows.
    :param clamped: torque or force of the brake on joints that a recording held, by the stem of its file's name.
    :param release: what position sensors show at the start of recordings that begin with a release from rest.
    """

    time: Column
    sensors: Mapping[str, Column]
    motors: Mapping[str, Column]
    clamped: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    release: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """Method parameters of an estimation.

    :param step: time step h [s].
    :param ratio: weight of the inverse dynamics against observations (see :mod:`stribeck.multibody.problem`).
    """

    step: float = 0.005
    ratio: float = 1000.0


@dataclass(frozen=True)
class Model:
    """What a model file holds."""

    path: Path
    title: str
    mechanism: Mechanism
    data: DataFormat | None = None
    settings: Settings = field(default_factory=Settings)


class _Numbers:
    """Collects the affine expressions of all numbers."""

    def __init__(self, parameters: ParameterSet, sizes: Mapping[str, tuple[int, ...]]) -> None:
        self.names = parameters.names
        self.constant = {name: np.zeros(shape) for name, shape in sizes.items()}
        self.matrix = {name: np.zeros((*shape, len(self.names))) for name, shape in sizes.items()}

    def put(self, field_name: str, index: tuple[int, ...], value: Any, what: str) -> None:
        constant, row = affine(value, self.names, what)
        self.constant[field_name][index] = constant
        self.matrix[field_name][index] = row

    def flat(self) -> tuple[Any, Any]:
        constant = np.concatenate([part.reshape(-1) for part in self.constant.values()])
        matrix = np.concatenate([part.reshape(-1, len(self.names)) for part in self.matrix.values()])
        return constant, matrix


def affine(value: Any, names: tuple[str, ...], what: str) -> tuple[float, Any]:
    """Constant and coefficients (p,) of a number or an affine expression of parameters.

    :raises ConfigError: for anything else, and unknown names.
    """
    row = np.zeros(len(names))
    if not isinstance(value, str):
        return strict.number(value, what, ConfigError), row
    constant, position = 0.0, 0
    while position < len(value.strip()):
        match = TERM.match(value.strip(), position)
        sign, factor, name = match.groups() if match else ("", None, None)
        if match is None or (factor is None and name is None) or (position > 0 and not sign):
            raise ConfigError(
                f"{what}: {value!r} is neither a number nor a sum of parameters, as '0.1 - 0.5 l2'"
            )
        number = (-1.0 if sign == "-" else 1.0) * float(factor or 1.0)
        if name is None:
            constant += number
        elif name in names:
            row[names.index(name)] += number
        else:
            raise ConfigError(f"{what}: unknown parameter {name!r}; valid: {', '.join(names) or 'none'}")
        position = match.end()
    return constant, row


def model_names() -> list[str]:
    """The mechanisms that come with the project."""
    return sorted(path.stem for path in (shared_directory("config") / "mechanisms").glob("*.yaml"))


def read_model(name: str) -> Model:
    """The mechanism called ``name``, or that of a YAML file.

    :raises ConfigError: for unknown names and files that are not valid.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name).expanduser()
    else:
        path = shared_directory("config") / "mechanisms" / f"{name}.yaml"
        if not path.is_file():
            raise ConfigError(
                f"unknown mechanism {name!r}; valid: {', '.join(model_names())}, or the path of a YAML file"
            )
    return model_of(strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError), path)


def model_of(content: Any, path: Path) -> Model:
    """The model that a parsed file describes."""
    data = strict.mapping(content, str(path), ConfigError)
    strict.check_keys(data, ("schema", "name"), SECTIONS, str(path), ConfigError)
    if data["schema"] != 1:
        raise ConfigError(f"{path}: schema {data['schema']!r} is not known; valid: 1")
    parameters = _parameters(_section(data, "parameters", path), path)
    mechanism = _mechanism(data, parameters, path)
    check_mechanism(mechanism, str(path))
    return Model(
        path,
        strict.text(data.get("title", data["name"]), f"{path}: title", ConfigError),
        mechanism,
        _format(data, mechanism, path),
        _settings(data, path),
    )


def _section(data: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    return strict.mapping(data.get(name, {}), f"{path}: {name}", ConfigError)


def _entries(data: Mapping[str, Any], name: str, path: Path) -> dict[str, dict[str, Any]]:
    return {
        key: strict.mapping(value, f"{path}: {name}: {key}", ConfigError)
        for key, value in _section(data, name, path).items()
    }


def _parameters(section: Mapping[str, Any], path: Path) -> ParameterSet:
    found = []
    for name, given in section.items():
        what = f"{path}: parameters: {name}"
        entry = strict.mapping(given, what, ConfigError)
        strict.check_keys(entry, ("value", "unit"), ("lower", "upper", "free"), what, ConfigError)
        value = strict.number(entry["value"], f"{what}: value", ConfigError)
        free = entry.get("free", True)
        if not isinstance(free, bool):
            raise ConfigError(f"{what}: free must be true or false, found {free!r}")
        missing = [key for key in ("lower", "upper") if key not in entry]
        if free and missing:
            raise ConfigError(f"{what}: {', '.join(missing)} missing: a free parameter has search bounds")
        bounds = [
            strict.number(entry.get(key, value + shift), f"{what}: {key}", ConfigError)
            for key, shift in (("lower", -1.0), ("upper", 1.0))
        ]
        unit = strict.text(entry["unit"], f"{what}: unit", ConfigError)
        found.append(Parameter(name, unit, value, bounds[0], bounds[1], free))
    return ParameterSet(found)


def _index(name: Any, names: list[str], what: str) -> int:
    if name not in names:
        raise ConfigError(f"{what}: unknown {name!r}; valid: {', '.join(names)}")
    return names.index(name)


def _vector(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != 3:
        raise ConfigError(f"{what}: expected three numbers [x, y, z], found {value!r}")
    return value


def _mechanism(data: Mapping[str, Any], parameters: ParameterSet, path: Path) -> Mechanism:
    bodies = _entries(data, "bodies", path)
    joints = _entries(data, "joints", path)
    motors, sensors = _entries(data, "motors", path), _entries(data, "sensors", path)
    if not bodies or not joints:
        raise ConfigError(f"{path}: a mechanism needs bodies and joints")
    if "world" in bodies:
        raise ConfigError(f"{path}: bodies: world is the base and is there already; name the body otherwise")
    ripples = _ripples(joints, path)
    sizes = shapes(len(bodies), len(joints), len(motors), len(sensors), len(ripples))
    numbers = _Numbers(parameters, sizes)
    for k, (ripple, amplitudes) in enumerate(ripples):
        what = f"{path}: joints: {list(joints)[ripple.joint]}: ripple: {ripple.order}"
        for end, amplitude in enumerate(amplitudes):
            numbers.put("ripple", (k, end), amplitude, what)
    for b, (name, entry) in enumerate(bodies.items()):
        _body(numbers, b, entry, f"{path}: bodies: {name}")
    names = ["world", *bodies]
    found = [
        _joint(numbers, j, name, entry, names, f"{path}: joints: {name}")
        for j, (name, entry) in enumerate(joints.items())
    ]
    drives = [
        _motor(numbers, m, name, entry, list(joints), f"{path}: motors: {name}")
        for m, (name, entry) in enumerate(motors.items())
    ]
    measured = [
        _sensor(numbers, s, name, entry, list(joints), f"{path}: sensors: {name}")
        for s, (name, entry) in enumerate(sensors.items())
    ]
    base = _section(data, "base", path)
    strict.check_keys(base, (), ("tilt_x", "tilt_y"), f"{path}: base", ConfigError)
    for k, key in enumerate(("tilt_x", "tilt_y")):
        numbers.put("tilt", (k,), base.get(key, 0.0), f"{path}: base: {key}")
    constant, matrix = numbers.flat()
    return Mechanism(
        strict.text(data["name"], f"{path}: name", ConfigError),
        tuple(bodies),
        tuple(found),
        tuple(drives),
        tuple(measured),
        parameters,
        constant,
        matrix,
        _regularization(data, path),
        strict.number(data.get("gravity", STANDARD_GRAVITY), f"{path}: gravity", ConfigError),
        _brakes(data, list(joints), path),
        tuple(ripple for ripple, _ in ripples),
    )


def _ripples(joints: Mapping[str, Mapping[str, Any]], path: Path) -> list[tuple[Ripple, tuple[Any, Any]]]:
    """Waves of torque over the joints' coordinates, with their two amplitudes."""
    found = []
    for j, (name, entry) in enumerate(joints.items()):
        given = entry.get("ripple", [])
        what = f"{path}: joints: {name}: ripple"
        if not isinstance(given, list):
            raise ConfigError(f"{what}: expected a list, as [{{order: 14, cos: 0.001, sin: 0}}]")
        if given and entry.get("kind") != "revolute":
            raise ConfigError(f"{what}: only a revolute joint's torque repeats with each turn")
        for wave in given:
            wave = strict.mapping(wave, what, ConfigError)
            strict.check_keys(wave, ("order", "cos", "sin"), (), what, ConfigError)
            order = strict.number(wave["order"], f"{what}: order", ConfigError)
            if order < 1.0 or order != round(order):
                raise ConfigError(
                    f"{what}: order is waves per turn, a whole number of at least 1; found {order:g}"
                )
            found.append((Ripple(j, round(order)), (wave["cos"], wave["sin"])))
    return found


def _body(numbers: _Numbers, index: int, entry: Mapping[str, Any], what: str) -> None:
    strict.check_keys(entry, ("mass", "com", "inertia"), (), what, ConfigError)
    numbers.put("mass", (index,), entry["mass"], f"{what}: mass")
    for k, value in enumerate(_vector(entry["com"], f"{what}: com")):
        numbers.put("com", (index, k), value, f"{what}: com")
    inertia = strict.mapping(entry["inertia"], f"{what}: inertia", ConfigError)
    strict.check_keys(inertia, INERTIA[:3], INERTIA[3:], f"{what}: inertia", ConfigError)
    for k, key in enumerate(INERTIA):
        numbers.put("inertia", (index, k), inertia.get(key, 0.0), f"{what}: inertia: {key}")


def _joint(
    numbers: _Numbers, index: int, name: str, entry: Mapping[str, Any], bodies: list[str], what: str
) -> Joint:
    required = ("kind", "parent", "child", "point")
    strict.check_keys(entry, required, ("axis", "coulomb", "viscous", "ripple"), what, ConfigError)
    kind = entry["kind"]
    if kind not in KINDS:
        raise ConfigError(f"{what}: unknown kind {kind!r}; valid: {', '.join(KINDS)}")
    parent, child = (_index(entry[key], bodies, f"{what}: {key}") for key in ("parent", "child"))
    if parent == child or child == 0:
        raise ConfigError(f"{what}: a joint leads from a body or the world to another body")
    for k, value in enumerate(_vector(entry["point"], f"{what}: point")):
        numbers.put("point", (index, k), value, f"{what}: point")
    if kind != "fixed" and "axis" not in entry:
        raise ConfigError(f"{what}: axis missing")
    axis = np.array(
        [strict.number(v, f"{what}: axis", ConfigError) for v in _vector(entry.get("axis", [0, 0, 1]), what)]
    )
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise ConfigError(f"{what}: the axis has no direction")
    for key in ("coulomb", "viscous"):
        if kind == "fixed" and key in entry:
            raise ConfigError(f"{what}: a fixed joint has no friction")
        numbers.put(key, (index,), entry.get(key, 0.0), f"{what}: {key}")
    x, y, z = (axis / length).tolist()
    return Joint(name, kind, parent, child, (x, y, z))


def _motor(
    numbers: _Numbers, index: int, name: str, entry: Mapping[str, Any], joints: list[str], what: str
) -> Motor:
    strict.check_keys(entry, ("joint", "kt", "resistance"), ("voltage_offset",), what, ConfigError)
    for key in ("kt", "resistance", "voltage_offset"):
        numbers.put(key, (index,), entry.get(key, 0.0), f"{what}: {key}")
    return Motor(name, _index(entry["joint"], joints, f"{what}: joint"))


def _sensor(
    numbers: _Numbers, index: int, name: str, entry: Mapping[str, Any], joints: list[str], what: str
) -> Sensor:
    strict.check_keys(
        entry, ("joint",), ("quantity", "sign", "offset", "lag", "deviation"), what, ConfigError
    )
    quantity = entry.get("quantity", "position")
    if quantity not in ("position", "velocity"):
        raise ConfigError(f"{what}: quantity must be position or velocity, found {quantity!r}")
    sign = strict.number(entry.get("sign", 1), f"{what}: sign", ConfigError)
    if abs(sign) != 1.0:
        raise ConfigError(f"{what}: sign must be 1 or -1, found {sign:g}")
    deviation = strict.number(entry.get("deviation", 1.0), f"{what}: deviation", ConfigError)
    if deviation <= 0.0:
        raise ConfigError(f"{what}: deviation must be positive, found {deviation:g}")
    for key in ("offset", "lag"):
        numbers.put(key, (index,), entry.get(key, 0.0), f"{what}: {key}")
    joint = _index(entry["joint"], joints, f"{what}: joint")
    return Sensor(name, joint, quantity, sign, deviation)


def _regularization(data: Mapping[str, Any], path: Path) -> Regularization:
    section = _section(data, "regularization", path)
    keys = ("compliance", "damping", "slip", "length")
    strict.check_keys(section, (), keys, f"{path}: regularization", ConfigError)
    values = {
        key: strict.number(value, f"{path}: regularization: {key}", ConfigError)
        for key, value in section.items()
    }
    try:
        return Regularization(**values)
    except ConfigError as problem:
        raise ConfigError(f"{path}: {problem}") from None


def _column(value: Any, what: str, units: tuple[str, ...]) -> Column:
    if isinstance(value, str):
        return Column(value, units[0])
    entry = strict.mapping(value, what, ConfigError)
    strict.check_keys(entry, ("column",), ("unit",), what, ConfigError)
    unit = entry.get("unit", units[0])
    if unit not in units:
        raise ConfigError(f"{what}: unknown unit {unit!r}; valid: {', '.join(units)}")
    return Column(strict.text(entry["column"], f"{what}: column", ConfigError), unit)


def _units(mechanism: Mechanism, sensor: Sensor) -> tuple[str, ...]:
    kind = mechanism.joints[sensor.joint].kind
    units = ("rad", "deg") if kind == "revolute" else ("m", "mm")
    return units if sensor.quantity == "position" else tuple(f"{unit}/s" for unit in units)


def _format(data: Mapping[str, Any], mechanism: Mechanism, path: Path) -> DataFormat | None:
    if "data" not in data:
        return None
    section = _section(data, "data", path)
    what = f"{path}: data"
    strict.check_keys(section, ("time", "sensors"), ("motors", "clamped", "release"), what, ConfigError)
    sensors = {sensor.name: sensor for sensor in mechanism.sensors}
    columns = strict.mapping(section["sensors"], f"{what}: sensors", ConfigError)
    strict.check_keys(columns, sensors, (), f"{what}: sensors", ConfigError)
    motors = strict.mapping(section.get("motors", {}), f"{what}: motors", ConfigError)
    strict.check_keys(motors, [motor.name for motor in mechanism.motors], (), f"{what}: motors", ConfigError)
    return DataFormat(
        _column(section["time"], f"{what}: time", ("s", "ms")),
        {
            name: _column(columns[name], f"{what}: sensors: {name}", _units(mechanism, sensor))
            for name, sensor in sensors.items()
        },
        {name: _column(motors[name], f"{what}: motors: {name}", ("V", "mV")) for name in motors},
        _clamped(section, mechanism, what),
        _release(section, mechanism, what),
    )


def _clamped(
    section: Mapping[str, Any], mechanism: Mechanism, what: str
) -> Mapping[str, Mapping[str, float]]:
    valid = [mechanism.joints[j].name for j in mechanism.brakes]
    found = {}
    for stem, given in strict.mapping(section.get("clamped", {}), f"{what}: clamped", ConfigError).items():
        where = f"{what}: clamped: {stem}"
        entry = strict.mapping(given, where, ConfigError)
        strict.check_keys(entry, (), valid, where, ConfigError)
        found[stem] = {
            joint: strict.number(value, f"{where}: {joint}", ConfigError) for joint, value in entry.items()
        }
        if any(value <= 0.0 for value in found[stem].values()):
            raise ConfigError(f"{where}: a brake's torque must be positive")
    return found


def _release(section: Mapping[str, Any], mechanism: Mechanism, what: str) -> Mapping[str, float]:
    given = strict.mapping(section.get("release", {}), f"{what}: release", ConfigError)
    positions = [sensor.name for sensor in mechanism.sensors if sensor.quantity == "position"]
    if given:
        strict.check_keys(given, positions, (), f"{what}: release", ConfigError)
    return {
        name: strict.number(value, f"{what}: release: {name}", ConfigError) for name, value in given.items()
    }


def _brakes(data: Mapping[str, Any], joints: list[str], path: Path) -> tuple[int, ...]:
    """Joints that some recording holds."""
    clamped = strict.mapping(
        _section(data, "data", path).get("clamped", {}), f"{path}: data: clamped", ConfigError
    )
    found = set()
    for stem, given in clamped.items():
        what = f"{path}: data: clamped: {stem}"
        found |= {_index(joint, joints, what) for joint in strict.mapping(given, what, ConfigError)}
    return tuple(sorted(found))


def _settings(data: Mapping[str, Any], path: Path) -> Settings:
    section = _section(data, "estimation", path)
    strict.check_keys(section, (), ("step", "ratio"), f"{path}: estimation", ConfigError)
    values = {
        key: strict.number(value, f"{path}: estimation: {key}", ConfigError) for key, value in section.items()
    }
    for key, value in values.items():
        if value <= 0.0:
            raise ConfigError(f"{path}: estimation: {key} must be positive, found {value:g}")
    return Settings(**values)
