"""The parameter file: what a fit found, for people, nodes and other programs.

Flat JSON with the keys that programs of the method know (``kt``, ``friction_base``, …, ``model``,
``actuator``), so that they read it unchanged, and one block ``stribeck`` that says where the numbers
come from and how sure they are. Files without the block are read as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from stribeck.core.actuator import EFFECT_PARAMETERS, Actuator
from stribeck.core.friction import FrictionLaw, law_named
from stribeck.errors import ConfigError, ParameterFileError
from stribeck.estimates.estimate import Estimate, Status, at_bound, estimates_to_json, fixed
from stribeck.io import strict
from stribeck.io.actuators import load_actuator
from stribeck.io.files import write_atomically
from stribeck.io.schema import convert

SCHEMA = 1
BLOCK = "stribeck"

OPTIONAL = ("correlation", "minima", "convergence", "estimates")
"""What a block may lack, because the first ones did."""

_POSITIVE = ("kt", "R", "ratio", "alpha", "dtheta_stribeck", "current_limit")
_SIGNED = ("q_offset", "torque_offset", "friction_stribeck")


@dataclass(frozen=True)
class Provenance:
    """Where identified parameters come from, and how sure they are. Every field is plain JSON.

    :param units: unit of each parameter.
    :param bounds: search bounds of each free parameter.
    :param fixed: parameters that were not identified.
    :param intervals: confidence interval of each parameter that has one, wide ones included.
    :param confidence: level of the intervals.
    :param not_determined: parameters known loosely or not at all, and why.
    :param at_bounds: parameters at a search bound: ``lower`` or ``upper``.
    :param statements: what these data cannot tell, in words.
    :param loss: the loss that was minimised, and errors in rad.
    :param split: which runs were fitted and which held out.
    :param simulation: time step, integrator, reset period.
    :param effects: effects beyond the paper that are on.
    :param supply_voltage: nominal supply of the recordings [V].
    :param temperature: of the servo during the recordings [°C]: ``mean`` over the runs' means (the first
        files had none), ``min`` and ``max``.
    :param data: fingerprint, number of runs and the digest of each.
    :param search: method, seed, evaluations, how the search ended.
    :param versions: of everything that had a part in it.
    :param correlation: ``names`` of n estimated parameters and the ``matrix`` (n, n); the first files did
        not have it, nor the following two.
    :param minima: the best point and the minima that fit as well: ``error`` [rad] and ``values``.
    :param estimates: all parameters with unit, interval and status.
    :param convergence: evaluations and equivalent error [rad] at the improvements of the search.
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
    temperature: Mapping[str, float] | None
    data: Mapping[str, Any]
    search: Mapping[str, Any]
    versions: Mapping[str, str]
    correlation: Mapping[str, Any] | None = None
    minima: tuple[Mapping[str, Any], ...] | None = None
    convergence: tuple[tuple[float, float], ...] | None = None
    estimates: Mapping[str, Estimate] | None = None


@dataclass(frozen=True)
class ParameterFile:
    """Identified parameters of one servo and law.

    :param actuator: the servo, with the effects of the file switched on.
    :param law: the friction law, with the terms that the file has.
    :param values: every parameter's value by name.
    :param provenance: the block ``stribeck``, if the file has one.
    """

    actuator: Actuator
    law: FrictionLaw
    values: Mapping[str, float]
    provenance: Provenance | None = None

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All values as estimates; of files that do not list them, as their intervals and lists say."""
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
        """Temperature of the servo at which the parameters hold [°C], where the file says."""
        found = self.provenance.temperature if self.provenance is not None else None
        if not found:
            return None
        return found["mean"] if "mean" in found else 0.5 * (found["min"] + found["max"])


def _estimate(name: str, value: float, told: Provenance) -> Estimate:
    """An estimate from the lists of a file without a block ``estimates``."""
    unit, interval = told.units.get(name, ""), told.intervals.get(name)
    if name in told.fixed:
        return fixed(value, unit)
    if name in told.at_bounds:
        return at_bound(value, unit, "lower" if told.at_bounds[name] == "lower" else "upper")
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
    """Values with which friction is cancelled cautiously: its torques at a low quantile of their intervals.

    :param quantile: 0.5 leaves the values as they are; lower ones take less of all friction torques and load terms, as if
        they were normal with the file's intervals. What an interval does not tell stays. Terms are lowered all together,
        which is more cautious than a quantile of their sum. A term of no fixed sign (``torque_offset``) stays. A negative
        Stribeck term shrinks with the term that it is taken from, and the load terms of motor and external torque, of
        which a difference counts, shrink alike: at no velocity and load there is more friction, nor less than none.
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
        if name in values and "friction" in name and values[name] > 0.0:
            values[name] = max(values[name] + share * (upper - lower), 0.0)
    for pair in DIFFERENCES:
        _shrink_alike(values, content.values, pair)
    _keep_dissipative(values, content.values)
    return values


DIFFERENCES = (
    ("load_friction_motor", "load_friction_external"),
    ("load_friction_motor_stribeck", "load_friction_external_stribeck"),
)
"""Coefficients of which the friction takes a difference."""


def _share_left(values: Mapping[str, float], whole: Mapping[str, float], names: Iterable[str]) -> float:
    return min((values[name] / whole[name] for name in names if whole.get(name, 0.0) > 0.0), default=1.0)


def _shrink_alike(values: dict[str, float], whole: Mapping[str, float], names: Iterable[str]) -> None:
    """Lower coefficients to the least share that is left of one of them."""
    share = min(_share_left(values, whole, names), 1.0)
    for name in names:
        if name in values and share < 1.0:
            values[name] = share * whole[name]


def _keep_dissipative(values: dict[str, float], whole: Mapping[str, float]) -> None:
    r"""Shrink a negative Stribeck term as the Coulomb terms that it is taken from.

    :math:`0 \le K_c' + sK_c^{s\prime} \le K_c + sK_c^s` holds for all weights s in [0, 1] where it does at both ends.
    """
    bases = [name for name in ("friction_base", "friction_base_negative") if name in values]
    share, fading = _share_left(values, whole, bases), "friction_stribeck"
    if not (values.get(fading, 0.0) < 0.0 and share < 1.0):
        return
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
        block = {
            name: value
            for name, value in vars(content.provenance).items()
            if value is not None or name not in OPTIONAL
        }
        if content.provenance.estimates is not None:
            block["estimates"] = estimates_to_json(content.provenance.estimates)
        flat[BLOCK] = {"schema": SCHEMA, **block}
    write_atomically(path, json.dumps(flat, indent=1, allow_nan=False) + "\n")


def read_parameter_file(path: Path, actuator: Actuator | None = None) -> ParameterFile:
    """Read a parameter file, of ours or of a program that knows the flat keys only.

    Search bounds do not bind what is read. Friction keys ``*_negative`` and ``torque_offset`` switch
    the law's terms on; ``q_offset`` may be missing and is then zero.

    :param actuator: the servo, where the file names one that this installation does not have.
    :raises ParameterFileError: for a file that is damaged, has missing or unknown keys, or values
        that are not finite, negative where nothing can be, or otherwise impossible.
    """
    what = str(path)
    text = strict.read_text(path, ParameterFileError)
    data = strict.mapping(strict.parse_json(text, path, ParameterFileError), what, ParameterFileError)
    for key in ("model", "actuator"):
        if key not in data:
            raise ParameterFileError(f"{what}: {key} missing")
    try:
        law = law_named(strict.text(data["model"], f"{what}: model", ParameterFileError))
        name = strict.text(data["actuator"], f"{what}: actuator", ParameterFileError)
        if actuator is None or actuator.name != name:
            actuator = load_actuator(name)
        provenance = _provenance(data[BLOCK], f"{what}: {BLOCK}") if BLOCK in data else None
        if provenance is not None:
            actuator = actuator.with_effects(provenance.effects)
    except ConfigError as error:
        raise ParameterFileError(f"{what}: {error}") from None
    flat = {key: value for key, value in data.items() if key not in ("model", "actuator", BLOCK)}
    law = law.with_terms(
        asymmetric=any(key.endswith("_negative") for key in flat), offset="torque_offset" in flat
    )
    values = _values(flat, actuator, law, what)
    return ParameterFile(actuator, law, values, provenance)


def _values(flat: Mapping[str, Any], actuator: Actuator, law: FrictionLaw, what: str) -> dict[str, float]:
    control = actuator.control
    required = (*control.required_parameters, *law.parameter_names)
    optional = [name for name in (*control.motor_parameters, "q_offset") if name not in required]
    effects = [EFFECT_PARAMETERS[e] for e in sorted(actuator.active_effects) if e in EFFECT_PARAMETERS]
    strict.check_keys(flat, (*required, *effects), optional, what, ParameterFileError)
    values = {
        name: strict.number(value, f"{what}: {name}", ParameterFileError) for name, value in flat.items()
    }
    for name, value in values.items():
        check_possible(name, value, what)
    _check_static(values, what)
    return {"q_offset": 0.0, **values}


def check_possible(name: str, value: float, what: str) -> None:
    """Refuse a value that no servo can have.

    :raises ParameterFileError: for it.
    """
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
    """Friction that grows with velocity has a negative Stribeck term; its budget at rest is none the less positive."""
    stribeck = values.get("friction_stribeck", 0.0)
    for name in ("friction_base", "friction_base_negative"):
        if name in values and values[name] + stribeck < -1e-9:
            raise ParameterFileError(
                f"{what}: {name} + friction_stribeck, the friction at rest, must not be negative, found "
                f"{values[name] + stribeck:g}"
            )


def _provenance(value: Any, what: str) -> Provenance:
    data = strict.mapping(value, what, ParameterFileError)
    if data.get("schema") != SCHEMA:
        raise ParameterFileError(
            f"{what}: schema {data.get('schema')!r} is not known, this version reads {SCHEMA}: update stribeck"
        )
    names = [name for name in Provenance.__dataclass_fields__ if name not in OPTIONAL]
    strict.check_keys(data, ("schema", *names), OPTIONAL, what, ParameterFileError)
    mappings = [name for name in names if name not in ("fixed", "statements", "effects", "confidence")]
    for name in mappings:
        if data[name] is not None or name not in ("supply_voltage", "temperature"):
            strict.mapping(data[name], f"{what}: {name}", ParameterFileError)
    _check_contents(data, what)
    if data["temperature"] is not None:
        _check_temperature(data["temperature"], f"{what}: temperature")
    for name in ("fixed", "statements", "effects"):
        if not isinstance(data[name], list) or not all(isinstance(item, str) for item in data[name]):
            raise ParameterFileError(f"{what}: {name}: expected a list of texts")
    return Provenance(
        **{name: data[name] for name in mappings if name not in ("bounds", "intervals")},
        bounds=_ranges(data["bounds"], f"{what}: bounds"),
        intervals=_ranges(data["intervals"], f"{what}: intervals"),
        confidence=strict.number(data["confidence"], f"{what}: confidence", ParameterFileError),
        fixed=tuple(data["fixed"]),
        statements=tuple(data["statements"]),
        effects=tuple(data["effects"]),
        correlation=_correlation(data.get("correlation"), f"{what}: correlation"),
        minima=_minima(data.get("minima"), f"{what}: minima"),
        convergence=_pairs(data.get("convergence"), f"{what}: convergence"),
        estimates=convert(data["estimates"], dict[str, Estimate], f"{what}: estimates", ParameterFileError)
        if data.get("estimates") is not None
        else None,
    )


def _correlation(value: Any, what: str) -> Mapping[str, Any] | None:
    if value is None:
        return None
    data = strict.mapping(value, what, ParameterFileError)
    strict.check_keys(data, ("names", "matrix"), (), what, ParameterFileError)
    names, rows = (_list(data[key], f"{what}: {key}") for key in ("names", "matrix"))
    texts = tuple(strict.text(name, f"{what}: names", ParameterFileError) for name in names)
    matrix = tuple(_numbers(row, len(names), f"{what}: matrix") for row in rows)
    if len(matrix) != len(names) or any(abs(number) > 1.0 for row in matrix for number in row):
        raise ParameterFileError(
            f"{what}: expected {len(names)} rows of as many numbers between -1 and 1, found {len(matrix)}"
        )
    return {"names": texts, "matrix": matrix}


def _minima(value: Any, what: str) -> tuple[Mapping[str, Any], ...] | None:
    if value is None:
        return None
    found = []
    for item in _list(value, what):
        data = strict.mapping(item, what, ParameterFileError)
        strict.check_keys(data, ("error", "values"), (), what, ParameterFileError)
        values = strict.mapping(data["values"], f"{what}: values", ParameterFileError)
        numbers = {
            name: strict.number(number, f"{what}: {name}", ParameterFileError)
            for name, number in values.items()
        }
        error = strict.number(data["error"], f"{what}: error", ParameterFileError)
        found.append({"error": error, "values": numbers})
    return tuple(found)


def _pairs(value: Any, what: str) -> tuple[tuple[float, float], ...] | None:
    if value is None:
        return None
    pairs = [_numbers(pair, 2, what) for pair in _list(value, what)]
    return tuple((first, second) for first, second in pairs)


def _numbers(value: Any, count: int, what: str) -> tuple[float, ...]:
    items = _list(value, what)
    if len(items) != count:
        raise ParameterFileError(f"{what}: expected {count} numbers, found {len(items)}")
    return tuple(strict.number(item, what, ParameterFileError) for item in items)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ParameterFileError(f"{what}: expected a list")
    return value


def _check_contents(data: Mapping[str, Any], what: str) -> None:
    """Refuse texts and numbers that are none, where somebody reckons with them."""
    texts = {name: data[name] for name in ("units", "not_determined", "at_bounds", "versions")}
    if data["data"].get("digests") is not None:
        texts["digests"] = strict.mapping(data["data"]["digests"], f"{what}: digests", ParameterFileError)
    for name in ("train", "validation"):
        texts[name] = dict(enumerate(_list(data["split"].get(name, []), f"{what}: split: {name}")))
    for name, named in texts.items():
        for key, value in named.items():
            strict.text(value, f"{what}: {name}: {key}", ParameterFileError)
    for key, value in (data["supply_voltage"] or {}).items():
        strict.number(value, f"{what}: supply_voltage: {key}", ParameterFileError)
    errors = {key: data["loss"].get(key) for key in ("train_mae", "validation_mae")}
    steps = {key: data["simulation"].get(key) for key in ("dt", "reset_period")}
    for key, value in (errors | steps).items():
        found = 1.0 if value is None else strict.number(value, f"{what}: {key}", ParameterFileError)
        if key in steps and found <= 0.0:
            raise ParameterFileError(f"{what}: {key} must be positive, found {value}")


def _check_temperature(value: Mapping[str, Any], what: str) -> None:
    strict.check_keys(value, ("min", "max"), ("mean",), what, ParameterFileError)
    for name, number in value.items():
        strict.number(number, f"{what}: {name}", ParameterFileError)


def _ranges(value: Mapping[str, Any], what: str) -> dict[str, tuple[float, float]]:
    found = {}
    for name, pair in value.items():
        if not isinstance(pair, list) or len(pair) != 2:
            raise ParameterFileError(f"{what}: {name}: expected two numbers")
        lower, upper = (strict.number(item, f"{what}: {name}", ParameterFileError) for item in pair)
        if lower > upper:
            raise ParameterFileError(f"{what}: {name}: {lower:g} is above {upper:g}")
        found[name] = (lower, upper)
    return found
