r"""Priors of a servo's parameters, from its datasheet and from published parameters of other servos.

==================  ==============================================================================================
k_t                 normal within the search bounds, around the datasheet's prior where there is one; otherwise around stall
                    torque over stall current (20 %, because it includes the losses of the gearbox)
R                   normal within the search bounds, around supply over stall current (20 %)
armature            published values of this servo or of others, scaled by stall torque over squared no-load speed; standard
                    deviation: a factor of 2
friction torques    half-normal; standard deviation: root mean square of published values relative to stall torque
viscous friction    the same, relative to stall torque over no-load speed
load terms          half-normal; standard deviation: root mean square of published values
v_s, α              truncated normal: mean and standard deviation of published values, within the search bounds
q_offset            normal, 0.03 rad, the accuracy of mounting by hand
current limit       normal around the datasheet, 10 %
==================  ==============================================================================================

The load terms of the two directions are nearly equal, as in :mod:`stribeck.identify.servo.prior`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.identify.posterior.densities import Density, HalfNormal, LogNormal, Normal, TruncatedNormal
from stribeck.identify.servo.prior import DIRECTION_SPREAD
from stribeck.model.actuator import Actuator
from stribeck.model.arrays import Array
from stribeck.model.law import FrictionLaw
from stribeck.model.parameters import Parameter, ParameterSet
from stribeck.model.terms import FRICTION_PARAMETERS, PAIRS

BY_DATASHEET = 0.2
"""Relative standard deviation of motor constants computed from stall torque and current."""

LIMIT = 0.1
OFFSET = 0.03
ARMATURE = 2.0


@dataclass(frozen=True, eq=False)
class ServoPrior:
    """Independent densities of parameters, and pairs of nearly equal parameters.

    :param densities: by name, in the order of the parameters.
    :param alike: indices of the pairs.
    """

    densities: Mapping[str, Density]
    alike: tuple[tuple[int, int], ...] = ()

    def values(self, x: Any) -> Any:
        """Parameters at coordinates (…, d)."""
        columns = [density.value(x[..., k]) for k, density in enumerate(self.densities.values())]
        return jnp.stack(columns, axis=-1)

    def log_density(self, x: Any) -> Any:
        """Log density of coordinates (…, d) up to a constant."""
        values = self.values(x)
        parts = [
            density.log_density(values[..., k]) + density.log_jacobian(x[..., k])
            for k, density in enumerate(self.densities.values())
        ]
        return jnp.sum(jnp.stack(parts, axis=-1), axis=-1) + self._likeness(values)

    def _likeness(self, values: Any) -> Any:
        return -0.5 * sum(((values[..., i] - values[..., j]) / DIRECTION_SPREAD) ** 2 for i, j in self.alike)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Coordinates of draws (count, d)."""
        accepted = np.empty((0, len(self.densities)))
        while len(accepted) < count:
            values = np.stack([density.draw(rng, 4 * count) for density in self.densities.values()], axis=-1)
            keep = np.log(rng.uniform(size=len(values))) < self._likeness(values)
            accepted = np.concatenate([accepted, values[keep]])
        columns = zip(self.densities.values(), accepted[:count].T, strict=True)
        return np.stack([density.coordinate(column) for density, column in columns], axis=-1)


def servo_prior(actuator: Actuator, law: FrictionLaw, parameters: ParameterSet) -> ServoPrior:
    """The prior of the free parameters.

    :raises ConfigError: if the datasheet lacks a value that a prior needs.
    """
    names = parameters.free_names
    pairs = [pair for pair in PAIRS if set(pair) <= set(names)]
    return ServoPrior(
        {parameter.name: _prior(actuator, law, parameter) for parameter in parameters.free},
        tuple((names.index(a), names.index(b)) for a, b in pairs),
    )


def _prior(actuator: Actuator, law: FrictionLaw, parameter: Parameter) -> Density:
    name = parameter.name
    if name in actuator.datasheet.prior:
        mean, deviation = actuator.datasheet.prior[name]
        return TruncatedNormal(mean, deviation, parameter.lower, parameter.upper)
    if name == "q_offset":
        return Normal(0.0, OFFSET)
    if name in ("current_limit", "command_delay", "torque_saturation", "ratio"):
        return TruncatedNormal(parameter.value, max(LIMIT * parameter.value, 1e-3), 0.0)
    if name in ("kt", "R"):
        mean = _by_stall(actuator, name)
        return TruncatedNormal(mean, BY_DATASHEET * mean, parameter.lower, parameter.upper)
    if name == "armature":
        return LogNormal.of_factor(_armature(actuator), ARMATURE)
    values = np.array([value / scale for value, scale in _published(law, name)])
    if not len(values):
        raise ConfigError(
            f"no published servo has the parameter {name}, so there is no prior for it: fix its value"
        )
    if FRICTION_PARAMETERS[name].shape:
        return TruncatedNormal(values.mean(), values.std(), parameter.lower, parameter.upper)
    width = float(np.sqrt(np.mean(values**2))) * _scale(actuator, name)
    if FRICTION_PARAMETERS[name].signed:
        return Normal(0.0, width)
    return HalfNormal(width)


def _by_stall(actuator: Actuator, name: str) -> float:
    sheet = actuator.datasheet.figures
    if not {"voltage", "stall_torque", "stall_current"} <= sheet.keys():
        raise ConfigError(
            f"the datasheet of {actuator.name} lacks voltage, stall_torque or stall_current, which the prior "
            f"of {name} needs: add them to the YAML file of the servo, or fix the value of {name}"
        )
    whole = sheet["stall_torque"] if name == "kt" else sheet["voltage"]
    return whole / sheet["stall_current"]


def _armature(actuator: Actuator) -> float:
    """Geometric mean of the published armatures of this servo or of others, scaled [kg m²]."""
    published = [values["armature"] for values in actuator.published.values()]
    if published:
        return float(np.exp(np.mean(np.log(published))))
    others = [
        values["armature"] / _inertia_scale(other)
        for other in _servos()
        for values in other.published.values()
        if _has_scale(other)
    ]
    return float(np.exp(np.mean(np.log(others)))) * _inertia_scale(actuator)


def _inertia_scale(actuator: Actuator) -> float:
    torque, speed = _stall_and_speed(actuator)
    return torque / speed**2


def _stall_and_speed(actuator: Actuator) -> tuple[float, float]:
    if not _has_scale(actuator):
        raise ConfigError(
            f"the datasheet of {actuator.name} lacks stall torque or no-load speed, by which friction is scaled: add them to the YAML file of the servo"
        )
    return actuator.datasheet.figures["stall_torque"], actuator.datasheet.figures["no_load_speed"]


def _published(law: FrictionLaw, name: str) -> Iterator[tuple[float, float]]:
    """Published values of a parameter and their scales, preferably of the same law."""
    servos = [servo for servo in _servos() if _has_scale(servo)]
    same = any(name in servo.published.get(law.name, {}) for servo in servos)
    for servo in servos:
        for law_name, values in servo.published.items():
            key = FRICTION_PARAMETERS[name].opposite or name
            if key in values and (law_name == law.name or not same):
                yield abs(values[key]), _scale(servo, name)


def _scale(actuator: Actuator, name: str) -> float:
    """Scale factor of a friction parameter for servos of different sizes."""
    kind = FRICTION_PARAMETERS[name].units.rotary
    if kind == "1" or FRICTION_PARAMETERS[name].shape:
        return 1.0
    torque, speed = _stall_and_speed(actuator)
    return {"N m": torque, "N m s/rad": torque / speed, "1/(N m)": 1.0 / torque}[kind]


def _has_scale(actuator: Actuator) -> bool:
    sheet: Mapping[str, float] = actuator.datasheet.figures
    return "stall_torque" in sheet and "no_load_speed" in sheet


def _servos() -> list[Actuator]:
    return [load_actuator(name) for name in actuator_names()]
