"""Which topic and field of a bag holds which signal: a small table in YAML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.files import shared_directory

REQUIRED_SIGNALS = ("position", "goal", "torque_enable")
OPTIONAL_SIGNALS = ("velocity", "supply_voltage", "temperature", "pwm")


@dataclass(frozen=True)
class Source:
    """Where one signal comes from; see ``config/signals.yaml`` for what the fields mean."""

    topic: str = ""
    names: str = ""
    values: str = ""
    interface: str = ""
    order: tuple[str, ...] = ()
    constant: float | None = None

    def samples(self, message: Any) -> Iterator[tuple[str, float]]:
        """Joint names and values in a message; telemetry that a driver does not know yet, NaN, is skipped."""
        if self.interface:
            yield from ((name, value) for name, value in self._interface_samples(message) if value == value)
            return
        names = self.order or _field(message, self.names)
        values = _field(message, self.values)
        for name, value in zip(names, values, strict=False):
            yield name, float(value)

    def _interface_samples(self, message: Any) -> Iterator[tuple[str, float]]:
        if hasattr(message, "interface_values"):
            for name, found in zip(message.joint_names, message.interface_values, strict=False):
                for interface, value in zip(found.interface_names, found.values, strict=False):
                    if interface == self.interface:
                        yield name, float(value)
            return
        for status in message.status:
            for pair in status.values:
                if pair.key == self.interface:
                    yield status.name, _float_or_nan(pair.value)


SignalTable = Mapping[str, tuple[Source, ...]]
"""Sources of each signal, in the order of preference."""


def load_signals(path: Path | None = None) -> SignalTable:
    """The table of a YAML file; without one, the table of our own bags.

    :raises ConfigError: for a file that is not valid.
    """
    path = path or shared_directory("config") / "signals.yaml"
    data = strict.mapping(
        strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError), str(path), ConfigError
    )
    strict.check_keys(data, REQUIRED_SIGNALS, OPTIONAL_SIGNALS, str(path), ConfigError)
    return {
        signal: tuple(
            _source(entry, f"{path}: {signal}") for entry in (value if isinstance(value, list) else [value])
        )
        for signal, value in data.items()
    }


def _source(value: Any, what: str) -> Source:
    data = strict.mapping(value, what, ConfigError)
    if "constant" in data:
        strict.check_keys(data, ("constant",), (), what, ConfigError)
        return Source(constant=strict.number(data["constant"], what, ConfigError))
    if "interface" in data:
        strict.check_keys(data, ("topic", "interface"), (), what, ConfigError)
    elif "order" in data:
        strict.check_keys(data, ("topic", "values", "order"), (), what, ConfigError)
    else:
        strict.check_keys(data, ("topic", "names", "values"), (), what, ConfigError)
    order = data.pop("order", [])
    if not isinstance(order, list) or not all(isinstance(name, str) for name in order):
        raise ConfigError(f"{what}: order must be a list of joint names")
    texts: dict[str, Any] = {
        key: strict.text(item, f"{what}: {key}", ConfigError) for key, item in data.items()
    }
    return replace(Source(order=tuple(order)), **texts)


def _field(message: Any, path: str) -> Any:
    return reduce(getattr, path.split("."), message)


def _float_or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
