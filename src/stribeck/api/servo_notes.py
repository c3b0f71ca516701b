"""What recordings of a servo say against the description of the servo: other servos, supply, control law."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from stribeck.errors import ConfigError
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.model.actuator import Actuator
from stribeck.model.control_laws import Gains, VoltageControl
from stribeck.model.electrics import duty_ratio
from stribeck.model.joint import Drive
from stribeck.model.log import Log, common_actuator
from stribeck.recordings.signals.run_units import oddities, overload

LOW_SUPPLY = 0.5
"""Share of the rated supply voltage below which the recorded one is doubted."""

DUTY_DIFFERENCE = 0.1
"""Relative difference of reported and computed duty from which on there is a note."""


def actuator_for(given: str | None, logs: Sequence[Log]) -> Actuator:
    """The given servo, otherwise that of the recordings.

    :param given: name, or YAML file.
    :raises ConfigError: for an unknown servo.
    """
    if given is None and (recorded := common_actuator(logs)) not in actuator_names():
        raise ConfigError(
            f"the recordings are of the servo {recorded!r}, which is unknown; valid: {', '.join(actuator_names())}, or a YAML file given as `servo`"
        )
    return load_actuator(given or common_actuator(logs))


def check_actuators(logs: Sequence[Log], drives: Sequence[tuple[str, Drive]]) -> list[str]:
    """Refuse drives of a servo other than the recorded one; returns what contradicts the set-up of the runs.

    :param drives: with their files, for messages.
    :raises ConfigError: for drives of another servo.
    """
    for where, drive in drives:
        others = sorted({log.actuator for log in logs} - {drive.actuator.name})
        if others:
            raise ConfigError(
                f"{where} belongs to the servo {drive.actuator.name!r}, but the recordings are of {', '.join(map(repr, others))}"
            )
    heavy = overload(logs, drives[0][1].actuator)
    return [text for text in (heavy, *(line for log in logs for line in oddities(log))) if text]


def supply_notes(logs: Sequence[Log], actuator: Actuator) -> list[str]:
    """Recorded supply voltages that are not in volts, or above the servo's rated one."""
    highest = max(log.setup.supply_voltage for log in logs)
    measured = [float(log.supply_voltage.value.mean()) for log in logs if log.supply_voltage is not None]
    highest = (
        max(measured) if measured and max(measured) < LOW_SUPPLY * highest else max([highest, *measured])
    )
    notes = []
    if highest < LOW_SUPPLY * actuator.supply.rated_min:
        notes.append(
            f"the recorded supply is {highest:.3g} V, far below the rated {actuator.supply.rated_min:g} V of {actuator.title}: is it in volts?"
        )
    if highest > actuator.supply.rated_max * 1.005:
        notes.append(
            f"the recorded supply is {highest:.3g} V, above the rated {actuator.supply.rated_max:g} V of "
            f"{actuator.title}: the servo may be damaged, and its parameters may differ at rated supply"
        )
    return notes


def control_notes(logs: Sequence[Log], actuator: Actuator) -> list[str]:
    """Contradictions of recordings and the servo's control law: other gains, or another duty than it would apply."""
    notes = [line for log in logs for line in oddities(log)]
    lacking = {name for log in logs for name in actuator.lacks_gains(Gains(1.0, log.setup.ki, log.setup.kd))}
    if lacking:
        notes.append(
            f"recorded with {' and '.join(sorted(lacking))}, but the control law of {actuator.name} has no "
            "such gain: add integral_gain or derivative_gain under control: in its YAML file"
        )
    if not isinstance(actuator.control, VoltageControl):
        return notes
    found = [duty_ratio(log, actuator.control) for log in logs]
    ratio = median([one for one in found if one is not None] or [1.0])
    if abs(ratio - 1.0) > DUTY_DIFFERENCE:
        gain = actuator.control.gain
        notes.append(
            f"the duty that the servo reports is {ratio:.2f} times that of the control law of {actuator.name}: set gain: {ratio * gain:.4g} under control: in "
            f"its YAML file, instead of {gain:.4g}"
        )
    return notes
