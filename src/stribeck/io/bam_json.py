"""Recordings in the BAM JSON format: one run per file, raw and irregular, or resampled by its authors.

Traps of the format, and what is done about them:

- ``load`` is a raw register. Where the servo's YAML says that it is the PWM, it wraps around as an
  unsigned integer; it is unwrapped here and never interpolated. Resampled files (with ``dt``) hold
  interpolated registers, which mean nothing and are left out.
- A rod mass (``arm_mass``) that is missing is asked for, never assumed to be zero.
- Units are not written down. Degrees, milliseconds, decivolts and rev/min are noticed by their size
  and refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stribeck.core.actuator import Actuator, PwmRegister
from stribeck.core.log import Log, Series, Setup
from stribeck.errors import ConfigError, RecordingError
from stribeck.io import strict
from stribeck.io.actuators import load_actuator

FloatArray = npt.NDArray[np.float64]

HEAD_REQUIRED = ("mass", "length", "kp", "motor", "trajectory", "entries")
HEAD_OPTIONAL = ("arm_mass", "arm-mass", "vin", "dt", "ki", "kd", "damping", "filename")
ENTRY_REQUIRED = ("timestamp", "position", "goal_position", "torque_enable")
ENTRY_OPTIONAL = ("speed", "load", "input_volts", "temp", "control")

LARGEST_POSITION = 4 * np.pi
"""A pendulum beyond two turns [rad] is a position in degrees."""


def read_bam_json(path: Path, *, actuator: str | None = None, arm_mass: float | None = None) -> Log:
    """Read one recording.

    :param actuator: name of the servo, where the file's ``motor`` is not it.
    :param arm_mass: rod mass [kg], where the file has none.
    :raises RecordingError: for a damaged file, missing or unknown keys, wrong units, or samples that
        make no run.
    """
    data = strict.mapping(
        strict.parse_json(strict.read_text(path, RecordingError), path, RecordingError),
        str(path),
        RecordingError,
    )
    strict.check_keys(data, HEAD_REQUIRED, HEAD_OPTIONAL, str(path), RecordingError)
    servo = load_actuator(actuator) if actuator else _servo(data["motor"], path)
    columns = _columns(data["entries"], path)
    time = columns["timestamp"]
    _check_units(columns, path)
    resampled = "dt" in data
    setup = _setup(data, servo, arm_mass, path)
    trajectory = strict.text(data["trajectory"], f"{path}: trajectory", RecordingError)
    try:
        return Log(
            name=path.stem,
            actuator=servo.name,
            trajectory=trajectory,
            setup=setup,
            position=Series(time, columns["position"], held=False),
            velocity=Series(time, _velocity(columns), held=False),
            goal=Series(time, columns["goal_position"], held=True),
            torque_enable=Series(time, columns["torque_enable"], held=True),
            supply_voltage=_measured(columns, "input_volts"),
            temperature=_measured(columns, "temp"),
            pwm=None if resampled else _pwm(columns, servo.pwm_register),
        )
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from None


def _servo(motor: Any, path: Path) -> Actuator:
    name = strict.text(motor, f"{path}: motor", RecordingError)
    try:
        return load_actuator(name)
    except ConfigError as error:
        raise RecordingError(f"{path}: motor: {error}") from None


def _columns(entries: Any, path: Path) -> dict[str, FloatArray]:
    """The entries as one array per key."""
    if not isinstance(entries, list) or not entries:
        raise RecordingError(f"{path}: no entries")
    first = strict.mapping(entries[0], f"{path}: entry 0", RecordingError)
    strict.check_keys(first, ENTRY_REQUIRED, ENTRY_OPTIONAL, f"{path}: entry 0", RecordingError)
    keys = [key for key in first if key != "control"]
    columns = {key: np.empty(len(entries)) for key in keys}
    for k, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.keys() != first.keys():
            raise RecordingError(f"{path}: entry {k} does not have the keys of entry 0 ({', '.join(first)})")
        for key in keys:
            value = entry[key]
            if key == "torque_enable":
                if value not in (0, 1):
                    raise RecordingError(
                        f"{path}: entry {k}: torque_enable must be true or false, found {value!r}"
                    )
            elif isinstance(value, bool) or not isinstance(value, int | float):
                raise RecordingError(f"{path}: entry {k}: {key}: expected a number, found {value!r}")
            try:
                columns[key][k] = value
            except OverflowError:
                raise RecordingError(f"{path}: entry {k}: {key}: expected a finite number") from None
    return columns


def _setup(data: Mapping[str, Any], servo: Actuator, arm_mass: float | None, path: Path) -> Setup:
    def optional(key: str, default: float) -> float:
        return strict.number(data.get(key, default), f"{path}: {key}", RecordingError)

    for key in ("arm_mass", "arm-mass"):
        if key in data:
            arm_mass = strict.number(data[key], f"{path}: {key}", RecordingError)
    if arm_mass is None:
        raise RecordingError(
            f"{path} gives no rod mass (arm_mass): weigh the rod and say --arm-mass KG (0 for a rod without mass)"
        )
    damping = getattr(servo.control, "damping", None)
    if "damping" in data and optional("damping", 0.0) != damping:
        raise RecordingError(
            f"{path}: recorded with damping {data['damping']}, but the control law of {servo.name} has {damping}: "
            "give a copy of its YAML file with that damping as --actuator"
        )
    numbers = {key: optional(key, 0.0) for key in ("mass", "length", "kp", "ki", "kd")}
    supply = optional("vin", servo.supply.nominal)
    try:
        return Setup(arm_mass=arm_mass, supply_voltage=supply, **numbers)
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from None


def _velocity(columns: Mapping[str, FloatArray]) -> FloatArray:
    """Measured velocity; where the servo told none, the slope of the position."""
    if "speed" in columns:
        return columns["speed"]
    if len(columns["timestamp"]) < 2:
        raise RecordingError("a single entry is no run")
    if np.any(np.diff(columns["timestamp"]) <= 0.0):
        return np.zeros_like(columns["position"])  # refused by Series, which says where
    return np.gradient(columns["position"], columns["timestamp"])


def _measured(columns: Mapping[str, FloatArray], key: str) -> Series | None:
    return Series(columns["timestamp"], columns[key], held=False) if key in columns else None


def _pwm(columns: Mapping[str, FloatArray], register: PwmRegister | None) -> Series | None:
    """The duty in [-1, 1] from an unsigned register that wraps around."""
    if register is None or "load" not in columns:
        return None
    raw = columns["load"]
    modulus = 1 << register.bits
    if np.any((raw != np.round(raw)) | (raw < 0) | (raw >= modulus)):
        raise RecordingError(
            f"load is not an unsigned {register.bits}-bit integer throughout: was this file resampled? "
            "Import the raw recording"
        )
    signed = np.where(raw >= modulus // 2, raw - modulus, raw)
    if np.max(np.abs(signed)) > register.full_scale:
        raise RecordingError(
            f"load reaches {np.max(np.abs(signed)):g}, beyond full duty ({register.full_scale})"
        )
    return Series(columns["timestamp"], signed / register.full_scale, held=True)


def _check_units(columns: Mapping[str, FloatArray], path: Path) -> None:
    """Refuse values that only make sense in other units than the format's."""
    for key in ("position", "goal_position"):
        largest = float(np.max(np.abs(columns[key])))
        if largest > LARGEST_POSITION:
            raise RecordingError(
                f"{path}: {key} reaches {largest:.1f} rad; is it in degrees? Radians are expected"
            )
    interval = float(np.median(np.diff(columns["timestamp"]))) if len(columns["timestamp"]) > 1 else 0.0
    if interval > 0.2:
        raise RecordingError(
            f"{path}: samples are {interval:g} s apart; are timestamps in milliseconds? Seconds are expected"
        )
    if "input_volts" in columns and float(np.median(columns["input_volts"])) > 60.0:
        raise RecordingError(
            f"{path}: input_volts is around {float(np.median(columns['input_volts'])):g} V; is it in tenths of a volt?"
        )
    ratio = _velocity_ratio(columns)
    if ratio is not None and not 0.4 < ratio < 2.5:
        raise RecordingError(
            f"{path}: speed is {ratio:.3g} times the slope of position; is it in rev/min or raw counts? "
            "rad/s is expected"
        )


def _velocity_ratio(columns: Mapping[str, FloatArray]) -> float | None:
    """Measured velocity over the slope of the position, by least squares; None without clear motion."""
    time = columns["timestamp"]
    if "speed" not in columns or len(time) < 20 or np.any(np.diff(time) <= 0.0):
        return None
    stride = 5
    slope = (columns["position"][stride:] - columns["position"][:-stride]) / (time[stride:] - time[:-stride])
    measured = columns["speed"][stride // 2 : stride // 2 + len(slope)]
    if np.sqrt(np.mean(slope**2)) < 0.3:
        return None
    return float(np.sum(slope * measured) / np.sum(slope**2))


def raw_pwm(duty: npt.ArrayLike, register: PwmRegister) -> npt.NDArray[np.int64]:
    """The raw register of a duty in [-1, 1]: the exact inverse of reading it."""
    signed = np.round(np.asarray(duty, dtype=np.float64) * register.full_scale).astype(np.int64)
    return np.where(signed < 0, signed + (1 << register.bits), signed)
