"""Parameter files: results of fits, in JSON.

The top-level keys (``kt``, ``friction_base``, …, ``model``, ``actuator``) are those of other implementations of the
method, which can read the file unchanged. The block ``stribeck`` contains provenance and uncertainty of the values;
files without it are read as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, NotRequired, TypedDict

from stribeck.errors import ConfigError, ParameterFileError
from stribeck.files.actuators import (
    ActuatorFile,
    actuator_names,
    actuator_of,
    as_described,
    description_of,
    load_actuator,
)
from stribeck.files.folders import save_json
from stribeck.files.schema import Positive, Schema, check_keys, convert, read_json
from stribeck.model.actuator import EFFECT_PARAMETERS, Actuator
from stribeck.model.estimate import Estimate, Side, Status, at_bound, estimates_to_json, fixed
from stribeck.model.law import FrictionLaw, law_named
from stribeck.model.temperature import TEMPERATURE_PARAMETERS
from stribeck.model.terms import COULOMB_PARAMETERS, PAIRS, with_sign

SCHEMA = 1
BLOCK = "stribeck"
HEAD = ("model", "actuator", BLOCK)

_POSITIVE = ("kt", "R", "ratio", "current_limit", *with_sign("positive"))
_SIGNED = ("q_offset", *with_sign("static", "any"), *TEMPERATURE_PARAMETERS)


class Temperature(TypedDict):
    """Temperatures of a servo over all recordings [°C]; the oldest files have no mean.

    :param min, max: of all samples.
    :param mean: over the recordings.
    """

    min: float
    max: float
    mean: NotRequired[float]


class CorrelationEntry(TypedDict):
    """Names of n estimated parameters, and their correlation matrix (n, n).

    :param names: of the rows and columns.
    :param matrix: rows.
    """

    names: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]


class MinimumEntry(TypedDict):
    """A minimum of the search.

    :param error: of the motion [rad].
    :param values: of all free parameters.
    """

    error: float
    values: dict[str, float]


class PredictionEntry(TypedDict):
    """Predictive distribution of motions (:mod:`stribeck.identify.servo.prediction`).

    :param names: uncertain parameters.
    :param covariance: of these, in their units (n, n).
    :param deviation: standard deviation of the model's error [rad].
    :param correlation_time: of that error [s].
    :param factors: on the standard deviation: under recorded conditions, and under a new one of each kind.
    :param conditions: recorded conditions of each kind.
    """

    names: tuple[str, ...]
    covariance: tuple[tuple[float, ...], ...]
    deviation: float
    correlation_time: float
    factors: dict[str, float]
    conditions: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Provenance:
    """The block ``stribeck``: provenance and uncertainty of identified parameters.

    :param units: unit of each parameter.
    :param bounds: search bounds of each free parameter.
    :param fixed: parameters that were not identified.
    :param intervals: confidence interval of each parameter that has one, including wide ones.
    :param confidence: level of the intervals.
    :param not_determined: parameters that are determined poorly or not at all, and why.
    :param at_bounds: parameters at a search bound: ``lower`` or ``upper``.
    :param statements: conclusions that these data do not allow, as text.
    :param loss: the loss that was minimised; ``train_mae`` and ``validation_mae`` [rad].
    :param split: which runs were fitted (``train``) and which held out (``validation``).
    :param simulation: time step ``dt`` [s], integrator, ``reset_period`` [s].
    :param effects: effects beyond the paper that are on.
    :param supply_voltage: nominal supply of the recordings [V].
    :param temperature: of the servo during the recordings: mean over the runs, smallest and largest [°C].
    :param data: fingerprint, number of runs and the digest of each.
    :param search: method, seed, evaluations, how the search ended.
    :param versions: versions of all software involved.
    :param correlation: of the estimates; the oldest files have neither this nor the following two.
    :param minima: the best point and the minima that fit equally well.
    :param convergence: evaluations and equivalent error [rad] at the improvements of the search.
    :param estimates: all parameters with unit, interval and status; files of version 0.1 do not have it.
    :param selection: of the law by conditions left out: ``expected_error`` under a new condition of each kind [rad], and
        the errors of all candidates.
    :param prediction: predictive distribution of motions.
    """

    units: Mapping[str, str]
    bounds: Mapping[str, tuple[float, float]]
    fixed: tuple[str, ...]
    intervals: Mapping[str, tuple[float, float]]
    confidence: float
    not_determined: Mapping[str, str]
    at_bounds: Mapping[str, str]
    statements: tuple[str, ...]
    loss: Mapping[str, Any]
    split: Mapping[str, Any]
    simulation: Mapping[str, Any]
    effects: tuple[str, ...]
    supply_voltage: Mapping[str, float] | None
    temperature: Mapping[str, Any] | None
    data: Mapping[str, Any]
    search: Mapping[str, Any]
    versions: Mapping[str, str]
    correlation: Mapping[str, Any] | None = None
    minima: tuple[Mapping[str, Any], ...] | None = None
    convergence: tuple[tuple[float, float], ...] | None = None
    estimates: Mapping[str, Estimate] | None = None
    selection: Mapping[str, Any] | None = None
    prediction: PredictionEntry | None = None

    def __post_init__(self) -> None:
        for key in ("bounds", "intervals"):
            for name, (lower, upper) in getattr(self, key).items():
                if lower > upper:
                    raise ValueError(f"{key}: {name}: {lower:g} is above {upper:g}")
        if self.correlation is not None:
            count, matrix = len(self.correlation["names"]), self.correlation["matrix"]
            square = len(matrix) == count and all(len(row) == count for row in matrix)
            if not square or any(abs(number) > 1.0 for row in matrix for number in row):
                raise ValueError(
                    f"correlation: expected {count} rows of as many numbers between -1 and 1, found {len(matrix)} rows"
                )


@dataclass(frozen=True, kw_only=True)
class ProvenanceBlock(Provenance):
    """The block ``stribeck`` as stored in files.

    :param schema: version of the block.
    :param actuator: the servo as its file described it at the time of the fit, without published parameters; the oldest
        files do not have it.
    """

    schema: Literal[1]
    actuator: ActuatorFile | None = None
    temperature: Temperature | None
    correlation: CorrelationEntry | None = None
    minima: tuple[MinimumEntry, ...] | None = None


class FileHead(Schema):
    """The keys of a parameter file besides the parameters.

    :param model: friction law, ``m1`` to ``m6``.
    :param actuator: servo family.
    :param stribeck: provenance of the parameters, see the block ``stribeck``.
    """

    model: str
    actuator: str
    stribeck: ProvenanceBlock | None = None


CHECKED: tuple[tuple[str, str, Any], ...] = (
    ("split", "train", tuple[str, ...]),
    ("split", "validation", tuple[str, ...]),
    ("data", "digests", dict[str, str] | None),
    ("loss", "train_mae", float | None),
    ("loss", "validation_mae", float | None),
    ("simulation", "dt", Positive | None),
    ("simulation", "reset_period", Positive | None),
)
"""Types of the entries that are read from the loosely typed parts of the block."""


@dataclass(frozen=True)
class ParameterFile:
    """Identified parameters of one servo and law.

    :param actuator: the servo, with the effects of the file switched on.
    :param law: the friction law, with the terms of the file.
    :param values: value of every parameter by name.
    :param provenance: the block ``stribeck``, if the file has one.
    """

    actuator: Actuator
    law: FrictionLaw
    values: Mapping[str, float]
    provenance: Provenance | None = None

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All values as estimates; derived from intervals and lists if the file has no estimates."""
        if self.provenance is None:
            unknown = "the file gives a value and nothing else"
            return {
                name: Estimate(v, "", "not determined", reason=unknown) for name, v in self.values.items()
            }
        if self.provenance.estimates is not None:
            return {**self.provenance.estimates}
        return {name: _estimate(name, value, self.provenance) for name, value in self.values.items()}

    @property
    def temperature(self) -> float | None:
        """Temperature of the servo at which the parameters are valid [°C], if the file states it."""
        if "reference_temperature" in self.values:
            return self.values["reference_temperature"]
        stated = self.provenance.temperature if self.provenance is not None else None
        return float(stated.get("mean", 0.5 * (stated["min"] + stated["max"]))) if stated else None


def _estimate(name: str, value: float, told: Provenance) -> Estimate:
    """Estimate of one parameter in a file without a block ``estimates``."""
    unit, interval = told.units.get(name, ""), told.intervals.get(name)
    if name in told.fixed:
        return fixed(value, unit)
    if name in told.at_bounds:
        side: Side = "lower" if told.at_bounds[name] == "lower" else "upper"
        return at_bound(value, unit, side, told.bounds.get(name))
    if name in told.not_determined:
        reason = told.not_determined[name]
        status: Status = "loosely determined" if reason.startswith("loosely") else "not determined"
        return Estimate(value, unit, status, interval, told.confidence, reason)
    if interval is None:
        return Estimate(
            value, unit, "not determined", None, told.confidence, "the file has no interval for it"
        )
    return Estimate(value, unit, "determined", interval, told.confidence)


def cautious_values(content: ParameterFile, quantile: float) -> dict[str, float]:
    """Values for cautious cancellation of friction: its torques at a low quantile of their intervals.

    :param quantile: 0.5 keeps the values. Lower quantiles reduce all friction torques and load terms, treated as
        normally distributed with the file's intervals; values without an interval stay. All terms are lowered at once,
        which is more cautious than a quantile of their sum. A term without fixed sign (``torque_offset``) stays. A negative
        Stribeck term shrinks with its Coulomb term, and the load terms of motor and external torque, whose
        difference counts, shrink by the same factor. Friction thus never increases or becomes negative at any velocity
        and load.
    :raises ParameterFileError: for a file without intervals.
    """
    values = dict(content.values)
    if quantile == 0.5:
        return values
    if content.provenance is None or not content.provenance.intervals:
        raise ParameterFileError(
            "a cautious quantile needs a parameter file with intervals: fit again, or leave friction_quantile at 0.5"
        )
    normal = NormalDist()
    share = normal.inv_cdf(quantile) / (2.0 * normal.inv_cdf(0.5 * (1.0 + content.provenance.confidence)))
    for name, (lower, upper) in content.provenance.intervals.items():
        torque = name in with_sign("nonnegative", "static")
        if name in values and torque and values[name] > 0.0:
            width = max(upper - lower, 2.0 * (upper - values[name]))  # intervals of magnitudes end at 0
            values[name] = max(values[name] + share * width, 0.0)
    for pair in PAIRS:
        _shrink_alike(values, content.values, pair)
    _keep_dissipative(values, content.values)
    return values


def _share_left(values: Mapping[str, float], whole: Mapping[str, float], names: Iterable[str]) -> float:
    return min((values[name] / whole[name] for name in names if whole.get(name, 0.0) > 0.0), default=1.0)


def _shrink_alike(values: dict[str, float], whole: Mapping[str, float], names: Iterable[str]) -> None:
    """Scale coefficients by the smallest ratio of new to original value among them."""
    share = min(_share_left(values, whole, names), 1.0)
    for name in names:
        if name in values and share < 1.0:
            values[name] = share * whole[name]


def _keep_dissipative(values: dict[str, float], whole: Mapping[str, float]) -> None:
    r"""Shrink terms that may be negative together with the Coulomb terms that they are subtracted from.

    A Stribeck term stays if it is positive. If it is negative, :math:`0 \le K_c' + sK_c^{s\prime} \le K_c + sK_c^s` holds for all weights s in [0, 1] if it holds at both ends.
    """
    bases = [name for name in COULOMB_PARAMETERS if name in values]
    share = min(_share_left(values, whole, bases), 1.0)
    for fading in with_sign("static"):
        if values.get(fading, 0.0) < 0.0 and share < 1.0:
            values[fading] = share * whole[fading]
            for name in bases:
                values[name] = max(min(values[name], whole[name] + (1.0 - share) * whole[fading]), 0.0)


def write_parameter_file(path: Path, content: ParameterFile) -> None:
    """Write a parameter file atomically.

    :raises OutputError: if it cannot be written.
    """
    flat: dict[str, Any] = {name: float(value) for name, value in content.values.items()}
    flat |= {"model": content.law.name, "actuator": content.actuator.name}
    if content.provenance is not None:
        optional = {field.name for field in fields(Provenance) if field.default is None}
        block = {
            key: value
            for key, value in vars(content.provenance).items()
            if value is not None or key not in optional
        }
        if content.provenance.estimates is not None:
            block["estimates"] = estimates_to_json(content.provenance.estimates)
        flat[BLOCK] = {"schema": SCHEMA, "actuator": description_of(content.actuator), **block}
    save_json(path, flat)


def read_parameter_file(path: Path, actuator: Actuator | None = None) -> ParameterFile:
    """Read a parameter file, of this program or of one that knows only the flat keys.

    Values may lie outside the search bounds. Keys of optional terms switch these on; ``q_offset`` may be missing and is then zero.

    :param actuator: the servo, if the file neither describes it nor names an installed one.
    :raises ParameterFileError: for a file that is damaged, has missing or unknown keys, or values
        that are not finite, negative where they must not be, or otherwise impossible.
    """
    where, error = str(path), ParameterFileError
    data = read_json(path, dict[str, Any], error)
    head = convert({key: data.pop(key) for key in HEAD if key in data}, FileHead, where, error)
    provenance = None if head.stribeck is None else _provenance(head.stribeck, f"{where}: {BLOCK}")
    try:
        law = law_named(head.model)
        actuator = _actuator(head, actuator)
        if provenance is not None:
            actuator = actuator.with_effects(provenance.effects)
    except ConfigError as problem:
        raise ParameterFileError(f"{where}: {problem}") from None
    values = convert(data, dict[str, float], where, error)
    law = law.with_parameters(values)
    _check_values(values, actuator, law, where)
    return ParameterFile(actuator, law, {"q_offset": 0.0, **values}, provenance)


def _actuator(head: FileHead, given: Actuator | None) -> Actuator:
    """The servo of a file: as the file describes it, otherwise as given or installed under its name."""
    others = [given] if given is not None and given.name == head.actuator else []
    if head.stribeck is None or head.stribeck.actuator is None:
        return others[0] if others else load_actuator(head.actuator)
    own = actuator_of(head.stribeck.actuator, f"{BLOCK}: actuator")
    if own.name != head.actuator:
        raise ConfigError(f"actuator: {head.actuator!r}, but the block {BLOCK} describes {own.name!r}")
    if others and others[0].control != own.control:
        raise ConfigError(
            f"identified with another control law of {own.name!r} than the given file describes: leave --actuator out, "
            "or fit again"
        )
    if own.name in actuator_names():
        others.append(load_actuator(own.name))
    return next((other for other in others if as_described(other) == own), own)


def _check_values(values: Mapping[str, float], actuator: Actuator, law: FrictionLaw, where: str) -> None:
    control = actuator.control
    required = (*control.required_parameters, *law.parameter_names)
    optional = [name for name in (*control.motor_parameters, "q_offset") if name not in required]
    effects = [EFFECT_PARAMETERS[e] for e in sorted(actuator.active_effects) if e in EFFECT_PARAMETERS]
    effects += actuator.temperature_parameters
    check_keys(values, (*required, *effects), optional, where, ParameterFileError)
    for name, value in values.items():
        check_possible(name, value, where)
    _check_static(values, where)


def check_possible(name: str, value: float, what: str) -> None:
    """Raise :class:`ParameterFileError` unless a value is physically possible."""
    if name in _POSITIVE and value <= 0.0:
        raise ParameterFileError(f"{what}: {name} must be positive, found {value:g}")
    if name not in _SIGNED and value < 0.0:
        raise ParameterFileError(f"{what}: {name} must not be negative, found {value:g}")
    if name == "q_offset" and abs(value) > math.pi:
        raise ParameterFileError(
            f"{what}: q_offset must be within ±pi rad, found {value:g}; is it in degrees?"
        )
    if abs(value) > 1e6:
        raise ParameterFileError(f"{what}: {name} is impossibly large, found {value:g}")


def _check_static(values: Mapping[str, float], what: str) -> None:
    """Refuse negative friction at rest; a negative Stribeck term alone is valid (friction that grows with speed)."""
    for fading in with_sign("static"):
        for name in COULOMB_PARAMETERS:
            rest = values.get(name, math.inf) + values.get(fading, 0.0)
            if rest < -1e-9:
                raise ParameterFileError(
                    f"{what}: {name} + {fading}, the friction at rest, must not be negative, found {rest:g}"
                )


def _provenance(block: ProvenanceBlock, where: str) -> Provenance:
    for section, key, kind in CHECKED:
        entries: Mapping[str, Any] = getattr(block, section)
        if key in entries:
            convert(entries[key], kind, f"{where}: {section}: {key}", ParameterFileError)
    return Provenance(**{field.name: getattr(block, field.name) for field in fields(Provenance)})
