"""Servo families: ``config/actuators/*.yaml`` to :class:`~stribeck.core.actuator.Actuator`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

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
from stribeck.io import strict
from stribeck.io.files import shared_directory

CONTROLS: dict[str, type[Control]] = {
    "voltage": VoltageControl,
    "current": CurrentControl,
    "torque": TorqueControl,
}


def actuator_names() -> list[str]:
    """The names of the servo families of this installation."""
    return sorted(path.stem for path in (shared_directory("config") / "actuators").glob("*.yaml"))


@cache
def load_actuator(name: str) -> Actuator:
    """A servo family by name, or from a YAML file of the user's by its path.

    :raises ConfigError: for a name that is not known or a file that is not valid.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        if name not in actuator_names():
            raise ConfigError(
                f"unknown actuator {name!r}; valid: {', '.join(actuator_names())}, or the path of a YAML file"
            )
        path = shared_directory("config") / "actuators" / f"{name}.yaml"
    return read_actuator(path)


def read_actuator(path: Path) -> Actuator:
    """Read one servo family from a YAML file.

    :raises ConfigError: for a file that is not valid.
    """
    data = strict.mapping(
        strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError), str(path), ConfigError
    )
    strict.check_keys(
        data,
        ("name", "title", "units", "control", "supply", "resolution", "bounds"),
        ("effects", "datasheet_bounds", "datasheet_prior", "datasheet", "published", "pwm_register"),
        str(path),
        ConfigError,
    )
    units = data["units"]
    if units not in ("rotary", "linear"):
        raise ConfigError(f"{path}: units must be rotary or linear, found {units!r}")
    control = _control(data["control"], f"{path}: control")
    bounds = _ranges(data["bounds"], f"{path}: bounds")
    known = {*control.motor_parameters, "q_offset", *FRICTION_PARAMETERS}
    strict.check_keys(
        bounds, (*control.required_parameters, "q_offset"), known, f"{path}: bounds", ConfigError
    )
    return Actuator(
        name=strict.text(data["name"], f"{path}: name", ConfigError),
        title=strict.text(data["title"], f"{path}: title", ConfigError),
        units=units,
        control=control,
        supply=Supply(**_numbers(data["supply"], f"{path}: supply", ("nominal", "rated_min", "rated_max"))),
        resolution=strict.number(data["resolution"], f"{path}: resolution", ConfigError),
        bounds=bounds,
        effects=_effects(data.get("effects", {}), f"{path}: effects"),
        datasheet_bounds=_ranges(data.get("datasheet_bounds", {}), f"{path}: datasheet_bounds"),
        datasheet_prior=_normals(data.get("datasheet_prior", {}), f"{path}: datasheet_prior"),
        datasheet=_numbers(data.get("datasheet", {}), f"{path}: datasheet"),
        published={
            law: _numbers(values, f"{path}: published: {law}")
            for law, values in strict.mapping(
                data.get("published", {}), f"{path}: published", ConfigError
            ).items()
        },
        pwm_register=_pwm_register(data.get("pwm_register"), f"{path}: pwm_register"),
    )


def _control(value: Any, what: str) -> Control:
    data = dict(strict.mapping(value, what, ConfigError))
    kind = data.pop("kind", None)
    if not isinstance(kind, str) or kind not in CONTROLS:
        raise ConfigError(f"{what}: kind must be one of {', '.join(CONTROLS)}, found {kind!r}")
    chosen = CONTROLS[kind]
    names = [field.name for field in fields(chosen)]
    optional = ("integral_gain", "derivative_gain", "goal_speed", "bridge")
    strict.check_keys(
        data, [n for n in names if n not in optional], [n for n in names if n in optional], what, ConfigError
    )
    bridge = data.pop("bridge", "brake")
    if bridge not in ("brake", "coast"):
        raise ConfigError(f"{what}: bridge must be brake or coast, found {bridge!r}")
    arguments: dict[str, Any] = {
        key: strict.number(item, f"{what}: {key}", ConfigError) for key, item in data.items()
    }
    return chosen(**arguments, bridge=bridge) if chosen is VoltageControl else chosen(**arguments)


def _numbers(value: Any, what: str, names: tuple[str, ...] | None = None) -> dict[str, float]:
    data = strict.mapping(value, what, ConfigError)
    if names is not None:
        strict.check_keys(data, names, (), what, ConfigError)
    return {key: strict.number(item, f"{what}: {key}", ConfigError) for key, item in data.items()}


def _triples(value: Any, what: str, length: int) -> dict[str, tuple[float, ...]]:
    found = {}
    for key, item in strict.mapping(value, what, ConfigError).items():
        if not isinstance(item, list) or len(item) != length:
            raise ConfigError(f"{what}: {key}: expected {length} numbers in brackets, found {item!r}")
        found[key] = tuple(strict.number(part, f"{what}: {key}", ConfigError) for part in item)
    return found


def _ranges(value: Any, what: str) -> dict[str, tuple[float, float]]:
    found = {}
    for key, (lower, upper) in _triples(value, what, 2).items():
        if not lower < upper:
            raise ConfigError(f"{what}: {key}: lower bound {lower:g} is not below upper bound {upper:g}")
        found[key] = (lower, upper)
    return found


def _normals(value: Any, what: str) -> dict[str, tuple[float, float]]:
    found = {}
    for key, (mean, deviation) in _triples(value, what, 2).items():
        if not deviation > 0.0:
            raise ConfigError(f"{what}: {key}: the standard deviation must be positive, found {deviation:g}")
        found[key] = (mean, deviation)
    return found


def _effects(value: Any, what: str) -> Mapping[str, tuple[float, float, float]]:
    by_parameter = {parameter: effect for effect, parameter in EFFECT_PARAMETERS.items()}
    found = {}
    for key, (default, lower, upper) in _triples(value, what, 3).items():
        if key not in by_parameter:
            raise ConfigError(f"{what}: unknown key {key!r}; valid: {', '.join(by_parameter)}")
        found[by_parameter[key]] = (default, lower, upper)
    return found


def _pwm_register(value: Any, what: str) -> PwmRegister | None:
    if value is None:
        return None
    numbers = _numbers(value, what, ("full_scale", "bits"))
    return PwmRegister(full_scale=int(numbers["full_scale"]), bits=int(numbers["bits"]))
