"""Recordings in the BAM JSON format: one run per file, raw and irregular, or resampled by its authors.

Peculiarities of the format and how they are handled:

- ``load`` is a raw register. If the servo's YAML file says that it is the PWM, it wraps around as an
  unsigned integer; it is unwrapped here and never interpolated. Resampled files (with ``dt``) hold
  interpolated registers, which are meaningless and ignored.
- A missing rod mass (``arm_mass``) has to be given by the caller; it is never assumed to be zero.
- Units are not stated. Degrees, milliseconds, decivolts and rev/min are detected by their magnitude and refused.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import field

from stribeck.errors import ConfigError, RecordingError, located
from stribeck.files.actuators import load_actuator
from stribeck.files.schema import Schema, read_json
from stribeck.model.actuator import Actuator, PwmRegister
from stribeck.model.arrays import Array
from stribeck.model.log import Log, Series, Setup
from stribeck.recordings.signals.run_units import check_units


class BamEntry(Schema):
    """One sample.

    :param timestamp: [s].
    :param position: [rad].
    :param goal_position: [rad].
    :param torque_enable: true or false, 1 or 0.
    :param speed: [rad/s].
    :param load: raw register; the PWM if the servo's YAML file states this.
    :param input_volts: measured supply [V].
    :param temp: [°C].
    :param control: not read.
    """

    timestamp: float
    position: float
    goal_position: float
    torque_enable: bool | Literal[0, 1]
    speed: float | None = None
    load: float | None = None
    input_volts: float | None = None
    temp: float | None = None
    control: Any = None


class BamFile(Schema):
    """A recording in the BAM JSON format.

    :param mass: load at the end of the rod [kg].
    :param length: length of the rod [m].
    :param kp: firmware gain.
    :param motor: name of the servo.
    :param trajectory: name of the trajectory.
    :param entries: the samples, all with the same keys.
    :param arm_mass: mass of the rod [kg].
    :param arm_mass_dashed: the same, in files that write the key with a dash.
    :param vin: nominal supply [V]; default: the servo's.
    :param dt: time step of resampled files [s].
    :param ki: firmware gain.
    :param kd: firmware gain.
    :param damping: of the control law; has to equal that of the servo's YAML file.
    :param filename: not read.
    """

    mass: float
    length: float
    kp: float
    motor: str
    trajectory: str
    entries: tuple[BamEntry, ...]
    arm_mass: float | None = None
    arm_mass_dashed: float | None = field(default=None, name="arm-mass")
    vin: float | None = None
    dt: float | None = None
    ki: float = 0.0
    kd: float = 0.0
    damping: float | None = None
    filename: Any = None


SIGNALS = ("timestamp", "position", "goal_position", "torque_enable", "speed", "load", "input_volts", "temp")

NAMES = {"time": "timestamp", "goal": "goal_position", "velocity": "speed", "supply_voltage": "input_volts"}
"""Names of our signals in the format, where they differ."""


def read_bam_json(path: Path, *, actuator: str | None = None, arm_mass: float | None = None) -> Log:
    """Read one recording.

    :param actuator: name of the servo, if it differs from the file's ``motor``.
    :param arm_mass: rod mass [kg], if the file has none.
    :raises RecordingError: for a damaged file, missing or unknown keys, wrong units, or samples that
        do not form a valid run.
    """
    recording = read_json(path, BamFile, RecordingError)
    try:
        servo = load_actuator(actuator or recording.motor)
    except ConfigError as error:
        if actuator:
            raise
        raise RecordingError(f"{path}: motor: {error}") from None
    columns = _columns(recording.entries, path)
    time = columns["timestamp"]
    setup = _setup(recording, servo, arm_mass, path)
    with located(path, RecordingError):
        log = Log(
            name=path.stem,
            actuator=servo.name,
            trajectory=recording.trajectory,
            setup=setup,
            position=Series(time, columns["position"], held=False),
            velocity=Series(time, _velocity(columns), held=False),
            goal=Series(time, columns["goal_position"], held=True),
            torque_enable=Series(time, columns["torque_enable"], held=True),
            supply_voltage=_measured(columns, "input_volts"),
            temperature=_measured(columns, "temp"),
            pwm=None if recording.dt is not None else _pwm(columns, servo.pwm_register),
        )
    check_units(log, str(path), names=NAMES, advice="convert it")
    return log


def _columns(entries: Sequence[BamEntry], path: Path) -> dict[str, Array]:
    if not entries:
        raise RecordingError(f"{path}: no entries")
    columns = {}
    for key in SIGNALS:
        values = [getattr(entry, key) for entry in entries]
        present = values[0] is not None
        odd = next((k for k, value in enumerate(values) if (value is not None) != present), None)
        if odd is not None:
            raise RecordingError(
                f"{path}: all entries must have the same keys, but {odd} is {'missing' if present else 'given'} in entries[{odd}], unlike in entries[0]"
            )
        if present:
            columns[key] = np.array(values, dtype=np.float64)
    return columns


def _setup(recording: BamFile, servo: Actuator, arm_mass: float | None, path: Path) -> Setup:
    masses = (recording.arm_mass_dashed, recording.arm_mass, arm_mass)
    rod = next((mass for mass in masses if mass is not None), None)
    if rod is None:
        raise RecordingError(
            f"{path} states no rod mass (arm_mass): weigh the rod, and give `arm_mass` in kg (0 for a rod without mass)"
        )
    damping = getattr(servo.control, "damping", None)
    if recording.damping is not None and recording.damping != damping:
        raise RecordingError(
            f"{path}: recorded with damping {recording.damping}, but the control law of {servo.name} has "
            f"{damping}: copy its YAML file, set the damping, and give the copy as `servo`"
        )
    with located(path, RecordingError):
        return Setup(
            mass=recording.mass,
            length=recording.length,
            arm_mass=rod,
            supply_voltage=servo.supply.nominal if recording.vin is None else recording.vin,
            kp=recording.kp,
            ki=recording.ki,
            kd=recording.kd,
        )


def _velocity(columns: Mapping[str, Array]) -> Array:
    """Measured velocity; if the servo did not report it, the slope of the position."""
    if "speed" in columns:
        return columns["speed"]
    if len(columns["timestamp"]) < 2:
        raise RecordingError("one entry is not a run: at least two are needed")
    if np.any(np.diff(columns["timestamp"]) <= 0.0):
        return np.zeros_like(columns["position"])  # Series then reports the invalid times
    return np.gradient(columns["position"], columns["timestamp"])


def _measured(columns: Mapping[str, Array], key: str) -> Series | None:
    return Series(columns["timestamp"], columns[key], held=False) if key in columns else None


def _pwm(columns: Mapping[str, Array], register: PwmRegister | None) -> Series | None:
    """The duty in [-1, 1] from an unsigned register that wraps around."""
    if register is None or "load" not in columns:
        return None
    raw = columns["load"]
    modulus = 1 << register.bits
    if np.any((raw != np.round(raw)) | (raw < 0) | (raw >= modulus)):
        raise RecordingError(
            f"load must contain only unsigned {register.bits}-bit integers: was the file resampled? Import the original recording"
        )
    signed = np.where(raw >= modulus // 2, raw - modulus, raw)
    if np.max(np.abs(signed)) > register.full_scale:
        raise RecordingError(
            f"load reaches {np.max(np.abs(signed)):g}, more than full duty ({register.full_scale})"
        )
    return Series(columns["timestamp"], signed / register.full_scale, held=True)
