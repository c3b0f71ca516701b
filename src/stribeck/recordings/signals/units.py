"""Units of recorded signals, and their factors to SI."""

import math
from typing import Literal, get_args

Unit = Literal[
    "rad", "deg", "turn", "counts", "m", "mm", "rad/s", "deg/s", "rpm", "m/s", "mm/s", "N m", "mN m", "N", "A", "mA",
    "V", "mV", "percent", "s", "ms", "us", "ns",
]  # fmt: skip
"""Units that a recording may have."""

DEGREE = math.pi / 180.0

UNITS: dict[str, float] = {
    "rad": 1.0, "deg": DEGREE, "turn": 2.0 * math.pi, "m": 1.0, "mm": 1e-3, "rad/s": 1.0, "deg/s": DEGREE,
    "rpm": math.pi / 30.0, "m/s": 1.0, "mm/s": 1e-3, "N m": 1.0, "mN m": 1e-3, "N": 1.0, "A": 1.0, "mA": 1e-3,
    "V": 1.0, "mV": 1e-3, "percent": 1e-2, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9,
}  # fmt: skip
"""Factors from units to SI. Those of ``counts`` are 2π/``counts_per_turn``."""

_POSITIONS = ("rad", "deg", "turn", "counts", "m", "mm")
_RATES = ("rad/s", "deg/s", "rpm", "m/s", "mm/s", *_POSITIONS)
_EFFORTS = ("N m", "mN m", "N", "A", "mA", "V", "mV", "percent", "rad")

SIGNAL_UNITS: dict[str, tuple[str, ...]] = {
    "time": ("s", "ms", "us", "ns"),
    "position": _POSITIONS,
    "motor_position": _POSITIONS,
    "goal": _POSITIONS,
    "velocity": _RATES,
    "effort": _EFFORTS,
    "supply_voltage": ("V", "mV"),
    "pwm": ("percent",),
    "torque_enable": (),
    "temperature": (),
}
"""Valid units by signal. A velocity in ``deg`` is in deg/s; ``rad`` stands for every SI unit."""

SCALED = ("A", "mA", "V", "mV", "percent")
"""Units of an effort that only a drive gain converts to N m or N."""

assert set(UNITS) | {"counts"} == set(get_args(Unit))  # noqa: S101
