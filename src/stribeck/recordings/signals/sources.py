r"""Sources of signals: where a recording holds each signal, and how it is converted to SI units.

A source is a topic of a bag, a column of a text file, a variable of a MAT or NPZ file, or a constant. The same class
declares the sources of signal tables (``--signals FILE``) and those in the recordings section of a robot's file:

.. code-block:: yaml

    position: {topic: /motor, names: name, values: position, unit: counts, counts_per_turn: 4096, offset: -2048}
    goal: {column: target, unit: deg, sign: -1}
    torque_enable: {constant: 1}

A reading :math:`x` becomes :math:`s\,u\,(k x + o)`, with ``sign`` s, the factor u of ``unit``, ``scale`` k and ``offset`` o.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Meta
from msgspec.structs import asdict

from stribeck import strict
from stribeck.errors import ConfigError, RecordingError
from stribeck.files.commented_yaml import check_filled_in
from stribeck.files.folders import shared_directory
from stribeck.files.schema import Name, Positive, Schema, convert
from stribeck.model.arrays import Array
from stribeck.recordings.signals.units import SCALED, SIGNAL_UNITS, UNITS, Unit

REQUIRED_SIGNALS = ("position", "goal", "torque_enable")

PLACES = (
    ("topic", "names", "values"), ("topic", "interface"), ("topic", "values", "order"), ("column",), ("columns",),
    ("variable",), ("rate",), ("constant",),
)  # fmt: skip
"""Valid combinations of the keys that say where a signal is."""

CONVERSION = ("scale", "unit", "counts_per_turn", "sign", "offset")

Index = Annotated[int, Meta(ge=0)]
Sign = Literal[1, -1]


class SignalSource(Schema):
    """Where a recording contains a signal, of one joint or of several, and in which unit.

    :param topic: topic of a bag.
    :param names: field of the message with the joint names.
    :param values: field with one number for each joint.
    :param interface: name of an interface in a control_msgs/DynamicJointState, or of a key in a
        diagnostic_msgs/DiagnosticArray whose statuses are named after the joints.
    :param order: the joints in the order of ``values``, for messages without names (without a header, their time is the
        log time), or in the order of the columns of ``variable``.
    :param joint: the joint in the messages, for the sensors and motors of mechanisms.
    :param file: name of the file, if the signals of a run are in several files of one folder.
    :param column: column of a text file: its name, in which ``{joint}`` stands for the joint's, or its index from 0.
    :param columns: columns of several joints: first and one beyond the last, or their names.
    :param variable: name of a variable in a MAT or NPZ file.
    :param rate: sampling rate of a file without times, for the signal ``time`` [Hz].
    :param constant: the same number at all times, in SI units.
    :param scale: factor of the readings: one number, one for each joint, or the name of a variable.
    :param unit: unit after ``scale`` and ``offset``; SI if there is none.
    :param counts_per_turn: counts of an encoder per turn, for the unit ``counts``.
    :param sign: 1 or -1, or one for each joint.
    :param offset: added to the scaled readings, in their unit: one number, or one for each joint.
    """

    topic: str = ""
    names: str = ""
    values: str = ""
    interface: str = ""
    order: tuple[str, ...] = ()
    joint: Name | None = None
    file: Name | None = None
    column: Index | Name | None = None
    columns: tuple[Index | Name, ...] = ()
    variable: Name | None = None
    rate: Positive | None = None
    constant: float | None = None
    scale: float | tuple[float, ...] | str | None = None
    unit: Unit | None = None
    counts_per_turn: Positive | None = None
    sign: Sign | tuple[Sign, ...] | None = None
    offset: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        given = {name for name, value in asdict(self).items() if value not in ("", (), None)}
        place = given - {"file", "joint", *CONVERSION}
        if place:
            own = place - {"order"} if "variable" in place else place
            fitting = next((keys for keys in reversed(PLACES) if keys[-1] in own), PLACES[0])
            missing = [key for key in fitting if key not in place]
            if missing:
                raise ValueError(f"{', '.join(sorted(given))} also needs {', '.join(missing)}: add it")
            valid = {*fitting, "joint" if "topic" in fitting else "file"}
            valid |= {"order"} if fitting[-1] == "variable" else set()
            valid |= set() if fitting[-1] in ("constant", "rate") else set(CONVERSION)
            if surplus := sorted(given - valid):
                raise ValueError(
                    f"{', '.join(map(repr, surplus))} cannot be combined with {fitting[-1]}: remove it"
                )
        if self.columns and not self._is_range and not all(isinstance(name, str) for name in self.columns):
            found = ", ".join(map(str, self.columns))
            raise ValueError(f"columns: expected [first, last + 1], or names; found [{found}]")
        if isinstance(self.scale, str) and place and self.variable is None:
            raise ValueError(
                f"scale: {self.scale!r} is the name of a variable, but this source has no `variable`: give a number"
            )
        if self.scale == 0.0:
            raise ValueError("scale: must not be 0")
        if (self.unit == "counts") != (self.counts_per_turn is not None):
            raise ValueError("counts_per_turn is required for the unit counts, and not allowed for others")

    @property
    def _is_range(self) -> bool:
        return len(self.columns) == 2 and all(isinstance(index, int) for index in self.columns)

    @property
    def place(self) -> Literal["bag", "table", "constant", "none"]:
        """Where the signal is."""
        if self.constant is not None:
            return "constant"
        if self.topic:
            return "bag"
        held = self.column is not None or self.columns or self.variable is not None or self.rate is not None
        return "table" if held else "none"

    @property
    def column_range(self) -> tuple[int, int] | None:
        """Index of the first column and one beyond the last; ``None`` for columns that are named."""
        if isinstance(self.column, int):
            return self.column, self.column + 1
        if self._is_range:
            first, end = self.columns
            return int(first), int(end)
        return None

    def checked(self, signal: str) -> SignalSource:
        """The source, if its unit suits the signal.

        :raises ValueError: for a unit of another quantity, and for currents, voltages or shares as efforts without a scale.
        """
        valid = SIGNAL_UNITS[signal]
        if self.unit is not None and self.unit not in valid:
            raise ValueError(f"{signal}: unit: expected {' or '.join(valid) or 'none'}, found {self.unit!r}")
        if signal == "effort" and self.unit in SCALED and self.scale is None:
            raise ValueError(
                f"effort: {self.unit} is not a unit of torque: give the drive gain as scale, in N m (or N) "
                f"per {self.unit.removeprefix('m') if self.unit != 'percent' else '100 percent'}"
            )
        return self

    def in_si(
        self, readings: npt.ArrayLike, joint: int | None = None, scale: npt.ArrayLike | None = None
    ) -> Array:
        r"""Readings in SI units: :math:`s\,u\,(k x + o)`.

        :param readings: x, (N,) of one joint, or (N, n).
        :param joint: index of the joint of (N,) readings, for values that are given by joint.
        :param scale: k, where ``scale`` is the name of a variable.
        """

        def of_joint(value: Any) -> Any:
            return value[joint] if isinstance(value, tuple) and joint is not None else np.asarray(value)

        values = np.asarray(readings, dtype=np.float64)
        if scale is not None or self.scale is not None:
            values = values * (np.asarray(scale) if scale is not None else of_joint(self.scale))
        if self.offset is not None:
            values = values + of_joint(self.offset)
        unit = 2.0 * math.pi / self.counts_per_turn if self.counts_per_turn else UNITS[self.unit or "rad"]
        return np.asarray(values * unit if self.sign is None else values * (unit * of_joint(self.sign)))

    def check_width(self, joints: int, where: str) -> None:
        """Refuse values by joint that are not as many as the joints.

        :raises RecordingError: for these; the message begins with ``where``.
        """
        for key in ("scale", "sign", "offset"):
            value = getattr(self, key)
            if isinstance(value, tuple) and len(value) != joints:
                raise RecordingError(
                    f"{where}: {key}: found {len(value)} values, expected one for all joints, or one for each of {joints}"
                )

    def samples(self, message: Any) -> Iterator[tuple[str, float]]:
        """Joint names and readings in a message; NaN of an interface, whose value is not known yet, is skipped."""
        if self.interface:
            yield from interface_samples(message, self.interface)
            return
        names = self.order or _field(message, self.names)
        values = _field(message, self.values)
        for name, value in zip(names, values, strict=False):
            yield name, float(value)


Sources = SignalSource | tuple[SignalSource, ...]


class SignalFile(Schema):
    """The signals of recordings, each with one source, or with several of which the first that is there is used.

    :param position: measured joint position [rad].
    :param goal: goal position [rad]; held between samples.
    :param torque_enable: 1 while torque is on, else 0.
    :param velocity: measured joint velocity [rad/s]; the slope of the position if there is none.
    :param effort: measured torque of the motor [N m].
    :param supply_voltage: measured supply voltage [V].
    :param temperature: of the servo [°C].
    :param pwm: duty in [-1, 1].
    :param time: of the rows of a file [s]; messages of a bag have their stamps.
    """

    position: Sources
    goal: Sources
    torque_enable: Sources
    velocity: Sources | None = None
    effort: Sources | None = None
    supply_voltage: Sources | None = None
    temperature: Sources | None = None
    pwm: Sources | None = None
    time: Sources | None = None

    def __post_init__(self) -> None:
        for signal, sources in self.table().items():
            for source in sources:
                if source.place == "none":
                    raise ValueError(f"{signal}: topic, column, variable or constant missing")
                source.checked(signal)

    def table(self) -> SignalTable:
        """The sources of each signal, in the order of preference."""
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {
            signal: sources if isinstance(sources, tuple) else (sources,)
            for signal, sources in found.items()
            if sources is not None
        }


SignalTable = Mapping[str, tuple[SignalSource, ...]]
"""Sources of each signal, in the order of preference."""


def load_signals(path: Path | None = None) -> SignalTable:
    """Read the table of a YAML file, or of a bench file that has one; without a file, return the table of our own bags.

    :raises ConfigError: for an invalid file.
    """
    path = path or shared_directory("config") / "signals.yaml"
    data = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    if isinstance(data, dict) and "signals" in data:
        check_filled_in({"signals": data["signals"]}, path)
        return convert(data["signals"], SignalFile, f"{path}: signals").table()
    return convert(data, SignalFile, str(path)).table()


def _field(message: Any, path: str) -> Any:
    return reduce(getattr, path.split("."), message)


def float_or_nan(text: str) -> float:
    """The number in a text, NaN if there is none."""
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
            (status.name, float_or_nan(pair.value))
            for status in message.status
            for pair in status.values
            if pair.key == interface
        )
    return ((joint, value) for joint, value in found if not math.isnan(value))
