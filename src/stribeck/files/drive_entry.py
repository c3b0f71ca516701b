"""One joint in a file of drives: the flat keys of its values, and the block that says what is known of them.

The flat keys (``kt``, ``friction_base``, …, ``model``, ``actuator``) are those of other implementations of the method.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, replace
from typing import Any

import msgspec

from stribeck.errors import ConfigError, ParameterFileError, located
from stribeck.files.actuators import (
    ActuatorFile,
    actuator_names,
    actuator_of,
    as_described,
    description_of,
    load_actuator,
)
from stribeck.files.schema import Schema, check_keys, convert
from stribeck.model.actuator import EFFECT_PARAMETERS, Actuator
from stribeck.model.estimate import Estimate, Interval, estimates_to_json, fixed
from stribeck.model.joint import CorrelationMatrix, Drive, Prediction
from stribeck.model.law import FrictionLaw, law_named
from stribeck.model.provenance import ModelErrors, Spread
from stribeck.model.temperature import TEMPERATURE_PARAMETERS
from stribeck.model.terms import COULOMB_PARAMETERS, FRICTION_PARAMETERS, with_sign
from stribeck.model.verdict import Reason, Use, Verdict

BLOCK = "stribeck"
HEAD = ("model", "actuator", BLOCK)

_POSITIVE = ("kt", "R", "ratio", "current_limit", *with_sign("positive"))
_SIGNED = ("q_offset", *with_sign("static", "any"), *TEMPERATURE_PARAMETERS)

LATER = ("friction_reach",)
"""Parameters of friction that files of earlier versions lack; they are not identified."""

NAMES_OF_TODAY = {"play": "backlash"}
"""Parameters that files of earlier versions call otherwise."""


class VerdictEntry(Schema):
    """A verdict.

    :param use: ``usable``, ``doubtful`` or ``unusable``.
    :param reasons: against the result.
    """

    use: Use
    reasons: tuple[Reason, ...] = ()


class DriveBlock(Schema):
    """What a file says of a joint besides the values.

    :param actuator: as its file described it at the time of the fit, without published parameters.
    :param terms: of the friction law.
    :param effects: effects beyond the paper that are on.
    :param estimates: value, unit, status, interval, confidence and reason of each parameter; also of those of the joint
        beyond actuator and law.
    :param bounds: search bounds of each free parameter.
    :param correlation: of the estimates.
    :param prediction: predictive distribution of motions.
    :param temperature: of the servo during the recordings [°C].
    :param statements: conclusions that the recordings do not allow.
    :param verdict: whether the result may be used.
    :param loss: errors on the recordings.
    """

    actuator: ActuatorFile | None = None
    terms: tuple[str, ...] | None = None
    effects: tuple[str, ...] = ()
    estimates: dict[str, Estimate] = msgspec.field(default_factory=dict)
    bounds: dict[str, Interval] = msgspec.field(default_factory=dict)
    correlation: CorrelationMatrix | None = None
    prediction: Prediction | None = None
    temperature: Spread | None = None
    statements: tuple[str, ...] = ()
    verdict: VerdictEntry | None = None
    loss: ModelErrors = ModelErrors()


class FlatHead(Schema):
    """The keys of a joint besides its values.

    :param model: friction law, ``m1`` to ``m6``.
    :param actuator: servo family.
    """

    model: str
    actuator: str


def take_head(content: dict[str, Any], where: str) -> FlatHead:
    """Law and servo of a joint; takes them and the block from ``content``, which then holds the values alone."""
    content.pop(BLOCK, None)
    head = {key: content.pop(key) for key in HEAD if key in content}
    return convert(head, FlatHead, where, ParameterFileError)


def drive_of(
    head: FlatHead, content: dict[str, Any], block: DriveBlock, given: Actuator | None, where: str
) -> Drive:
    """The drive of a joint.

    :param content: the values.
    :param given: the servo, if the block neither describes it nor it is an installed one.
    :raises ParameterFileError: for missing, unknown or impossible values, and contradictions.
    """
    with located(where, ConfigError, ParameterFileError):
        law = law_named(head.model)
        actuator = _actuator(head, block, given)
        if block.effects:
            actuator = actuator.with_effects(block.effects)
    values = convert(content, dict[str, float], where, ParameterFileError)
    law = law.with_parameters(values)
    stated, bounds = (with_names_of_today(one) for one in (block.estimates, block.bounds))
    if stated:
        stated |= {
            name: fixed(value, FRICTION_PARAMETERS[name].unit(actuator.units))
            for name, value in _later(law, stated)
        }
    correlation = block.correlation and replace(
        block.correlation, names=tuple(with_names_of_today(dict.fromkeys(block.correlation.names)))
    )
    values |= _later(law, values)
    _check_values(values, actuator, law, where)
    terms = tuple(term.name for term in law.terms)
    if block.terms is not None and set(block.terms) != set(terms):
        raise ParameterFileError(
            f"{where}: terms lists {', '.join(block.terms)}, but the values belong to {', '.join(terms)}"
        )
    verdict = None if block.verdict is None else Verdict(block.verdict.reasons)
    members = []
    for number, member in enumerate(() if block.prediction is None else block.prediction.members):
        place = f"{where}: prediction: members[{number}]"
        with located(place, ConfigError, ParameterFileError):
            other, servo = law_named(member.model), actuator.with_effects(member.effects)
        other = other.with_parameters(member.values)
        members.append(replace(member, values=dict(member.values) | dict(_later(other, member.values))))
        _check_values(members[-1].values, servo, other, place)
    prediction = block.prediction and replace(block.prediction, members=tuple(members))
    return Drive(
        actuator,
        law,
        {"q_offset": 0.0, **values},
        stated=stated,
        bounds=bounds,
        correlation=correlation,
        prediction=prediction,
        temperatures=block.temperature,
        statements=block.statements,
        verdict=verdict,
        loss=block.loss,
    )


def flat_of(drive: Drive) -> dict[str, Any]:
    """The flat keys of a drive."""
    flat: dict[str, Any] = {name: float(value) for name, value in drive.values.items()}
    return flat | {"model": drive.law.name, "actuator": drive.actuator.name}


def block_of(drive: Drive) -> dict[str, Any]:
    """The keys of :class:`DriveBlock`, without empty ones."""
    known = {
        "effects": sorted(drive.actuator.active_effects),
        "estimates": estimates_to_json(drive.stated),
        "bounds": {name: list(pair) for name, pair in drive.bounds.items()},
        "correlation": plain_of(drive.correlation),
        "prediction": plain_of(drive.prediction),
        "temperature": plain_of(drive.temperatures),
        "statements": list(drive.statements),
        "verdict": verdict_to_json(drive.verdict),
        "loss": plain_of(drive.loss),
    }
    described = {
        "actuator": description_of(drive.actuator),
        "terms": [term.name for term in drive.law.terms],
    }
    return described | {name: value for name, value in known.items() if value}


def verdict_to_json(verdict: Verdict | None) -> dict[str, Any] | None:
    """The keys of :class:`VerdictEntry`."""
    if verdict is None:
        return None
    return {"use": verdict.use, "reasons": [reason.to_json() for reason in verdict.reasons]}


def plain_of(value: Any) -> dict[str, Any] | None:
    """The keys of a dataclass and of those in it that differ from their defaults; ``None`` for ``None``."""
    if value is None:
        return None
    found = {}
    for one in fields(value):
        item = getattr(value, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if item != default:
            inner = hasattr(item, "__dataclass_fields__")
            found[one.name] = plain_of(item) if inner else _json_of(item)
    return found


def _json_of(item: Any) -> Any:
    if hasattr(item, "__dataclass_fields__"):
        return asdict(item)
    if isinstance(item, Mapping):
        return {name: _json_of(one) for name, one in item.items()}
    return [_json_of(one) for one in item] if isinstance(item, list | tuple) else item


def _actuator(head: FlatHead, block: DriveBlock, given: Actuator | None) -> Actuator:
    """The servo of a file: as the file describes it, otherwise as given or installed under its name."""
    others = [given] if given is not None and given.name == head.actuator else []
    if block.actuator is None:
        return others[0] if others else load_actuator(head.actuator)
    own = actuator_of(block.actuator, f"{BLOCK}: actuator")
    if own.name != head.actuator:
        raise ConfigError(
            f"the servo is {head.actuator!r} under actuator, but {own.name!r} in the block {BLOCK}"
        )
    if others and others[0].control != own.control:
        raise ConfigError(
            f"the drive was identified with a control law of {own.name!r} that differs from that in the given file: remove `servo`, or identify again"
        )
    if own.name in actuator_names():
        others.append(load_actuator(own.name))
    return next((other for other in others if as_described(other) == own), own)


def with_names_of_today(found: Mapping[str, Any]) -> dict[str, Any]:
    """What is found of parameters, by their names of today."""
    return {NAMES_OF_TODAY.get(name, name): one for name, one in found.items()}


def _later(law: FrictionLaw, found: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The parameters of a law of :data:`LATER` that are not found, with their usual values."""
    missing = [name for name in LATER if name in law.parameter_names and name not in found]
    return [(name, FRICTION_PARAMETERS[name].value) for name in missing]


def _check_values(values: Mapping[str, float], actuator: Actuator, law: FrictionLaw, where: str) -> None:
    control = actuator.control
    required = (*control.required_parameters, *law.parameter_names)
    optional = [name for name in (*control.motor_parameters, "q_offset") if name not in required]
    effects = [EFFECT_PARAMETERS[e] for e in sorted(actuator.active_effects) if e in EFFECT_PARAMETERS]
    effects += actuator.temperature_parameters
    check_keys(values, (*required, *effects), optional, where, ParameterFileError)
    for name, value in values.items():
        check_possible(name, value, where)
    # A negative Stribeck term alone is valid: friction that grows with speed.
    for fading in with_sign("static"):
        for name in COULOMB_PARAMETERS:
            rest = values.get(name, math.inf) + values.get(fading, 0.0)
            if rest < -1e-9:
                raise ParameterFileError(
                    f"{where}: {name} + {fading}, the friction at rest, must not be negative, found {rest:g}"
                )


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
        raise ParameterFileError(f"{what}: {name} is too large to be possible, found {value:g}")
