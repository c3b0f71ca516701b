"""Signal tables: topic and field of each signal in a bag, in YAML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from stribeck.io.files import shared_directory
from stribeck.io.schema import Schema, read_yaml

REQUIRED_SIGNALS = ("position", "goal", "torque_enable")

KEYS = (("topic", "names", "values"), ("topic", "interface"), ("topic", "values", "order"), ("constant",))
"""Valid combinations of keys in a source."""


class Source(Schema):
    """Source of one signal: a topic with names and values, with an interface, or with values and order; or a constant.

    :param topic: the topic.
    :param names: field of the message with the joint names.
    :param values: field with one number for each joint.
    :param interface: name of an interface in a control_msgs/DynamicJointState, or of a key in a
        diagnostic_msgs/DiagnosticArray whose statuses are named after the joints.
    :param order: the joints in the order of ``values``, for messages without names; their time is the log time.
    :param constant: the same number at all times.
    """

    topic: str = ""
    names: str = ""
    values: str = ""
    interface: str = ""
    order: tuple[str, ...] = ()
    constant: float | None = None

    def __post_init__(self) -> None:
        given = {name for name, value in asdict(self).items() if value not in ("", (), None)}
        fitting = next((keys for keys in reversed(KEYS) if keys[-1] in given), KEYS[0])
        missing = [key for key in fitting if key not in given]
        if missing:
            raise ValueError(f"{', '.join(missing)} missing beside {', '.join(sorted(given)) or 'nothing'}")
        surplus = sorted(given - set(fitting))
        if surplus:
            raise ValueError(f"{', '.join(map(repr, surplus))} cannot stand beside {fitting[-1]}")

    def samples(self, message: Any) -> Iterator[tuple[str, float]]:
        """Joint names and values in a message; NaN of an interface, whose value is not known yet, is skipped."""
        if self.interface:
            yield from interface_samples(message, self.interface)
            return
        names = self.order or _field(message, self.names)
        values = _field(message, self.values)
        for name, value in zip(names, values, strict=False):
            yield name, float(value)


Sources = Source | tuple[Source, ...]


class SignalFile(Schema):
    """The signals of a bag, each with one source, or with several of which the first with a topic in the bag is used.

    :param position: measured joint position [rad].
    :param goal: goal position [rad].
    :param torque_enable: 1 while torque is on, else 0.
    :param velocity: measured joint velocity [rad/s]; the slope of the position if there is none.
    :param supply_voltage: measured supply voltage [V].
    :param temperature: of the servo [°C].
    :param pwm: duty in [-1, 1].
    """

    position: Sources
    goal: Sources
    torque_enable: Sources
    velocity: Sources | None = None
    supply_voltage: Sources | None = None
    temperature: Sources | None = None
    pwm: Sources | None = None


SignalTable = Mapping[str, tuple[Source, ...]]
"""Sources of each signal, in the order of preference."""


def load_signals(path: Path | None = None) -> SignalTable:
    """Read the table of a YAML file; without one, return the table of our own bags.

    :raises ConfigError: for an invalid file.
    """
    content = asdict(read_yaml(path or shared_directory("config") / "signals.yaml", SignalFile))
    return {
        signal: sources if isinstance(sources, tuple) else (sources,)
        for signal, sources in content.items()
        if sources is not None
    }


def _field(message: Any, path: str) -> Any:
    return reduce(getattr, path.split("."), message)


def _float_or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def interface_samples(message: Any, interface: str) -> Iterator[tuple[str, float]]:
    """Joint names and values of one interface in a DynamicJointState or a DiagnosticArray; NaN is skipped."""
    found: Iterator[tuple[str, float]]
    if hasattr(message, "interface_values"):
        found = (
            (joint, float(value))
            for joint, interfaces in zip(message.joint_names, message.interface_values, strict=False)
            for name, value in zip(interfaces.interface_names, interfaces.values, strict=False)
            if name == interface
        )
    else:
        found = (
            (status.name, _float_or_nan(pair.value))
            for status in message.status
            for pair in status.values
            if pair.key == interface
        )
    return ((joint, value) for joint, value in found if not math.isnan(value))
