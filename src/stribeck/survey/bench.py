"""Survey of foreign recordings of a servo on a pendulum bench: signals, units, rates, and what only the user knows.

Units are found from magnitudes, from names, and from slopes: a measured velocity is the derivative of the position, and the
position follows its goal. :func:`survey_bench` returns the entries of a bench file with their reasons.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.errors import RecordingError
from stribeck.files.actuators import actuator_names
from stribeck.files.commented_yaml import TODO, Commented, open_keys
from stribeck.model.actuator import Actuator
from stribeck.model.arrays import Array
from stribeck.recordings.bench import recording_name
from stribeck.recordings.signals.run_units import LARGEST_POSITION, LARGEST_VOLTAGE, STRIDE
from stribeck.recordings.signals.tracks import Track
from stribeck.recordings.signals.units import DEGREE, UNITS
from stribeck.survey.sources import Candidate, candidates_of

TWELVE_BITS = 4096
NEAR = 0.12
"""Largest relative difference of a velocity's slope from that of a unit."""

STEPS = {"s": (5e-4, 0.1), "ms": (0.5, 100.0), "us": (500.0, 1e5), "ns": (5e5, 1e8)}
"""Steps of times from row to row in each unit, of recordings with 10 Hz to 2 kHz."""

REGISTERS = {"0.229 rev/min": 0.229, "0.111 rev/min": 0.111, "0.732 rev/min": 0.732}
"""Steps of the velocity registers of Dynamixel X, of Dynamixel AX and MX, and of Feetech servos [rev/min]."""

USUAL_VOLTAGE = 10.0
FULL_DUTY = 885.0
HANGING = 0.15
"""A hanging pendulum is at zero, within this [rad]; fits find smaller offsets."""

AWAY = 0.5
"""A goal this far from the position in the median [rad] has another zero."""

FROM_NAME = {
    "mass": r"(?<![a-z0-9.])m?(\d+(?:\.\d+)?) ?(kg|g)(?![a-z])|(?<![a-z])m(\d+\.\d+)(?![a-z])",
    "length": r"(?<![a-z0-9.])l?(\d+(?:\.\d+)?) ?(cm|mm)(?![a-z])|(?<![a-z])l(\d+\.\d+)(?![a-z])",
    "kp": r"(?<![a-z])kp[_=-]?(\d+(?:\.\d+)?)()",
}
"""Values in names of recordings, such as ``m200g_kp400``."""

FACTORS = {"kg": 1.0, "g": 1e-3, "cm": 1e-2, "mm": 1e-3}

KNOWN = {
    "mass": "mass of the load at the end of the rod [kg]; enter values that differ between recordings under "
    '`runs`, for example `runs: {"heavy_*": {mass: 0.5}}`',
    "length": "length of the rod, from the shaft to the load [m]",
    "arm_mass": "mass of the rod itself [kg]; 0 if it is negligible",
    "kp": "position gain of the firmware, in the units of its register",
}


@dataclass
class BenchSurvey:
    """Entries of a bench file, with notes on what looks wrong."""

    entries: list[Commented] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, section: str, key: str, value: Any, reason: str) -> None:
        """Add an entry."""
        self.entries.append(Commented((section, key), value, reason))

    @property
    def open_keys(self) -> tuple[str, ...]:
        """Keys whose value has to be filled in by hand."""
        return open_keys((".".join(one.key), one.value) for one in self.entries)


@dataclass
class _Reading:
    """A signal in SI units: the source that is written, and its tracks."""

    source: dict[str, Any]
    tracks: list[Track]
    reason: str


def survey_bench(paths: Sequence[Path], actuator: Actuator | None, joint: str | None) -> BenchSurvey:
    """Find what a bench file says of recordings.

    :param actuator: the servo, if it is known, with its resolution and supply.
    :raises RecordingError: for recordings without a position that moves.
    """
    candidates, joint = candidates_of(paths, joint)
    found, chosen = BenchSurvey(), dict[str, Candidate]()
    for one in candidates:
        if one.signal is not None and len(one.values) and (one.signal != "time" or one.label == "time"):
            first = chosen.setdefault(one.signal, one)
            if first is not one and one.signal in ("position", "goal") and "topic" not in one.source:
                found.notes.append(f"{one.signal} is taken from {first.label}; {one.label} is not used")
    there = ", ".join(one.label for one in candidates)
    if "position" not in chosen:
        raise RecordingError(
            f"{paths[0]}: no column or field has a name that means position; found: {there or 'no numbers'}. "
            "Write a table of signals by hand, see docs/recordings.md"
        )
    bag = "topic" in chosen["position"].source
    step = 1.0 if bag else _add_time(found, chosen.get("time"), there)
    for name, one in chosen.items():
        chosen[name] = one._replace(
            tracks=[Track(step * track.time, track.value).known() for track in one.tracks]
        )
    enable, enable_entry = _torque_enable(chosen.get("torque_enable"))
    position = _position(chosen["position"], chosen.get("velocity"), actuator)
    _set_zero(position, enable, found)
    found.add("signals", "position", position.source, position.reason)
    _add_goal(found, chosen.get("goal"), position, enable, there)
    _add_velocity(found, chosen.get("velocity"), position)
    found.entries.append(enable_entry)
    volts = _add_others(found, chosen, actuator)
    _add_bench(found, paths, actuator, joint if bag else None, volts)
    return found


def _rate(track: Track) -> float:
    return 1.0 / float(np.median(np.diff(track.time))) if len(track.time) > 1 else math.nan


def _add_time(found: BenchSurvey, time: Candidate | None, there: str) -> float:
    """Add the source of the times of a table; returns their factor to seconds."""
    if time is None:
        reason = f"no column increases from row to row, as time does (found: {there}): enter the sampling rate as {{rate: HZ}}"
        found.add("signals", "time", TODO, reason)
        return 0.01
    step = float(np.median(np.diff(time.tracks[0].value)))
    fitting = [unit for unit, (low, high) in STEPS.items() if low < step <= high]
    unit = fitting[0] if fitting else "s"
    reason = f"increases by {step:.6g} from row to row: taken as {unit}, a sampling rate of {1.0 / (UNITS[unit] * step):.4g} Hz"
    if not fitting:
        found.notes.append(
            f"time increases by {step:.6g} from row to row, which suits none of the known units: check its unit"
        )
    found.add("signals", "time", {**time.source, "unit": unit}, reason)
    return UNITS[unit]


def _torque_enable(one: Candidate | None) -> tuple[Candidate | None, Commented]:
    """The source of torque_enable; a constant if nothing that is called so switches between 0 and 1."""
    if one is not None and set(np.unique(one.values)) <= {0.0, 1.0}:
        return one, Commented(("signals", "torque_enable"), one.source, "is 0 or 1")
    reason = "no signal states when torque was on: assumed to be on throughout. If the joint is released in some recordings, name the signal"
    return None, Commented(("signals", "torque_enable"), {"constant": 1}, reason)


def _position(one: Candidate, velocity: Candidate | None, actuator: Actuator | None) -> _Reading:
    """Unit of the position, by its name, by whole numbers and size, and by the velocity."""
    values = one.values
    if not len(values) or np.ptp(values) == 0.0:
        raise RecordingError(
            f"the position ({one.label}) does not change in any recording: record a motion, or name the column of the position"
        )
    largest, whole = float(np.abs(values).max()), bool(np.all(values == np.round(values)))
    slope = None if velocity is None else _velocity_ratio(one.tracks, velocity.tracks)
    reason = f"range {values.min():.6g} to {values.max():.6g}, {_rate(one.tracks[0]):.4g} Hz"
    text = one.label.lower()
    if re.search(r"count|tick|raw|step", text) or (whole and largest > 360.0):
        per_turn, why = _counts_per_turn(values, actuator)
        source = {**one.source, "unit": "counts", "counts_per_turn": per_turn}
        factor = 2.0 * math.pi / (TWELVE_BITS if per_turn == TODO else float(per_turn))
        reason = f"whole numbers, {reason}: counts of an encoder, {why}"
    else:
        by_slope = slope is not None and abs(slope / DEGREE - 1.0) < 0.3
        degrees = largest > LARGEST_POSITION or by_slope or re.search(r"deg|°", text) is not None
        unit = "deg" if degrees and not re.search(r"\brad", text) else "rad"
        source, factor = {**one.source, "unit": unit}, UNITS[unit]
        reason += "; the measured velocity is π/180 of its derivative" if by_slope else ""
    return _Reading(source, [Track(track.time, factor * track.value) for track in one.tracks], reason)


def _counts_per_turn(values: Array, actuator: Actuator | None) -> tuple[float | str, str]:
    if actuator is not None:
        per_turn = 2.0 * math.pi / actuator.resolution
        return float(f"{per_turn:.7g}"), f"{per_turn:.6g} per turn, the resolution of {actuator.name}"
    if 1023.0 < values.max() < TWELVE_BITS and values.min() >= 0.0:
        return TWELVE_BITS, f"{TWELVE_BITS} per turn, as the values fit into 12 bits"
    return TODO, (
        "enter the number of counts per turn from the servo's manual (or name the servo with `servo`)"
    )


def _set_zero(position: _Reading, enable: Candidate | None, found: BenchSurvey) -> None:
    """Add the offset with which a hanging pendulum is at zero."""
    unit = position.source["unit"]
    per_turn = position.source.get("counts_per_turn")
    factor = UNITS.get(unit) or 2.0 * math.pi / (
        per_turn if isinstance(per_turn, float | int) else TWELVE_BITS
    )
    hanging = _hanging(position, enable)
    middle, values = 0.0, np.concatenate([track.value for track in position.tracks])
    if unit == "counts" and values.min() >= 0.0:
        middle = 2.0 ** (round(math.log2(2.0 * math.pi / factor)) - 1)
        reason = f"; the pendulum is assumed to hang straight down at {middle:g}, the middle of the range"
    else:
        if values.min() > 0.0 and abs(np.median(values) - math.pi) < AWAY:
            middle = float(f"{math.pi / factor:.6g}")
        reason = f"; the pendulum is assumed to hang straight down at {middle:g}"
    if hanging is not None and abs(hanging - factor * middle) > HANGING:
        middle = float(f"{hanging / factor:.4g}")
        reason = f"; with torque off the pendulum comes to rest at {middle:g}, taken as straight down"
    elif hanging is not None:
        reason += ", and comes to rest there with torque off"
    if middle:
        position.source["offset"] = -middle
        position.tracks = [Track(track.time, track.value - factor * middle) for track in position.tracks]
    position.reason += reason
    reach = max(float(np.abs(track.value).max()) for track in position.tracks)
    if reach > math.pi:
        found.notes.append(
            f"the position reaches {reach:.3g} rad from straight down, more than half a turn: check its unit and offset"
        )


def _hanging(position: _Reading, enable: Candidate | None) -> float | None:
    """Where the joint is at rest with torque off [rad], before the offset; ``None`` if it never is for half a second."""
    places = []
    for track, on in zip(position.tracks, [] if enable is None else enable.tracks, strict=False):
        off = _held(on, track.time) < 0.5
        slow = np.abs(np.gradient(track.value, track.time)) < 0.05
        if np.sum(off & slow) / _rate(track) > 0.5:
            places.append(float(np.median(track.value[off & slow])))
    return float(np.median(places)) if places else None


def _add_goal(
    found: BenchSurvey, goal: Candidate | None, position: _Reading, enable: Candidate | None, there: str
) -> None:
    """Add the goal, in the unit in which the position follows it."""
    if goal is None or np.ptp(goal.values) == 0.0:
        reason = f"no signal with a name that means goal changes; found: {there}. Enter the source of the goal, in the form of that of the position"
        found.add("signals", "goal", TODO, reason)
        return
    held, moved = _with_torque(goal, position, enable)
    share = float(np.cov(held, moved)[0, 1] / max(np.var(held, ddof=1), 1e-300))
    conversion: dict[str, Any] = {
        key: position.source[key] for key in ("unit", "counts_per_turn") if key in position.source
    }
    per_turn = conversion.get("counts_per_turn")
    own = 2.0 * math.pi / (per_turn if isinstance(per_turn, float | int) else TWELVE_BITS)
    factors = {**({"counts": own} if "counts" in conversion.values() else {}), "rad": 1.0, "deg": DEGREE}
    unit = min(factors, key=lambda name: abs(math.log(max(abs(share), 1e-9) / factors[name])))
    source: dict[str, Any] = {**goal.source, **(conversion if unit == conversion["unit"] else {"unit": unit})}
    factor = factors[unit]
    reason = (
        f"the position moves {share / factor:.3g} times as far as this signal, {_rate(goal.tracks[0]):.4g} Hz"
    )
    if share < 0.0:
        source["sign"] = -1
        reason += ", in the opposite direction"
    if unit == conversion["unit"]:
        source |= {"offset": position.source["offset"]} if "offset" in position.source else {}
    elif abs(away := float(np.median(moved - math.copysign(factor, share) * held))) > AWAY:
        source["offset"] = float(f"{away / math.copysign(factor, share):.3g}")
        reason += "; the offset is the median difference between position and goal"
    if not 0.2 < abs(share / factor) < 2.0:
        found.notes.append(f"goal: {reason}: check its unit, and that it is the goal of this joint")
    found.add("signals", "goal", source, reason)


def _with_torque(goal: Candidate, position: _Reading, enable: Candidate | None) -> tuple[Array, Array]:
    """The goal that holds and the position, at the samples with torque on (N,)."""
    held, moved = [], []
    for k, (one, track) in enumerate(zip(goal.tracks, position.tracks, strict=False)):
        on = (
            np.ones(len(track.time), dtype=bool)
            if enable is None
            else _held(enable.tracks[k], track.time) > 0.5
        )
        held.append(_held(one, track.time)[on])
        moved.append(track.value[on])
    return np.concatenate(held), np.concatenate(moved)


def _add_velocity(found: BenchSurvey, velocity: Candidate | None, position: _Reading) -> None:
    """Add the velocity, in the unit in which it is the derivative of the position."""
    ratio = None if velocity is None else _velocity_ratio(position.tracks, velocity.tracks)
    if velocity is None or ratio is None:
        return
    if abs(ratio) < 1e-9:
        found.notes.append(f"{velocity.label} is ignored: it is 0 while the position moves")
        return
    own = position.source.get("counts_per_turn")
    units: dict[str, tuple[float, dict[str, Any]]] = {
        unit: (UNITS[unit], {"unit": unit}) for unit in ("rad/s", "deg/s", "rpm")
    }
    units |= {name: (UNITS["rpm"] * step, {"unit": "rpm", "scale": step}) for name, step in REGISTERS.items()}
    if isinstance(own, float | int):
        units["counts/s"] = (2.0 * math.pi / own, {"unit": "counts", "counts_per_turn": own})
    size = abs(ratio)
    name = min(units, key=lambda unit: abs(math.log(size * units[unit][0])))
    source = dict(units[name][1])
    if abs(math.log(size * units[name][0])) > NEAR:
        name, source = (
            "no known unit, so a scale is given",
            {"unit": "rad/s", "scale": float(f"{1.0 / size:.4g}")},
        )
    if ratio < 0.0:
        source["sign"] = -1
    reason = f"{ratio:.4g} times the derivative of the position in rad/s, unit: {name}"
    found.add("signals", "velocity", {**velocity.source, **source}, reason)


def _velocity_ratio(position: Sequence[Track], velocity: Sequence[Track]) -> float | None:
    """Velocities relative to the derivative of the position; ``None`` without clear motion or without agreement."""
    slopes, measured = [np.zeros(0)], [np.zeros(0)]
    for track, rate in zip(position, velocity, strict=False):
        if len(track.time) > 2 * STRIDE and len(rate.time) > 1:
            time, value = track.time, track.value
            slopes.append((value[STRIDE:] - value[:-STRIDE]) / (time[STRIDE:] - time[:-STRIDE]))
            middle = 0.5 * (time[STRIDE:] + time[:-STRIDE])
            measured.append(np.interp(middle, rate.time, rate.value))
    slope, rates = np.concatenate(slopes), np.concatenate(measured)
    if len(slope) < 2 or not np.any(slope):
        return None
    if not np.any(rates):
        return 0.0
    agreement = float(slope @ rates / math.sqrt(float(slope @ slope) * float(rates @ rates)))
    return float(slope @ rates / (slope @ slope)) / agreement**2 if abs(agreement) > 0.7 else None


def _add_others(
    found: BenchSurvey, chosen: Mapping[str, Candidate], actuator: Actuator | None
) -> float | None:
    """Add supply voltage, temperature and duty; returns the median voltage [V]."""
    volts = None
    if (one := chosen.get("supply_voltage")) is not None and (typical := float(np.median(one.values))) > 0.0:
        usual = USUAL_VOLTAGE if actuator is None else actuator.supply.nominal
        factor = min((1.0, 0.1, 1e-3), key=lambda scale: abs(math.log(scale * typical / usual)))
        volts = factor * typical
        if volts < LARGEST_VOLTAGE:
            source = {**one.source, **({} if factor == 1.0 else {"scale": factor})}
            reason = f"median {typical:.4g}, taken as {volts:.3g} V"
            found.add("signals", "supply_voltage", source, reason)
    if (one := chosen.get("temperature")) is not None:
        found.add("signals", "temperature", one.source, "in °C")
    if (one := chosen.get("pwm")) is not None:
        largest = float(np.abs(one.values).max())
        scales: list[tuple[float, dict[str, Any]]] = [
            (1.001, {}),
            (100.0, {"unit": "percent"}),
            (FULL_DUTY, {"scale": float(f"{1.0 / FULL_DUTY:.7g}")}),
        ]
        fitting = next((keys for limit, keys in scales if largest <= limit), None)
        if fitting is None or largest == 0.0:
            found.notes.append(
                f"{one.label} is ignored: it reaches {largest:g}, and the value that stands for full duty is not known"
            )
        else:
            reason = (
                f"reaches {largest:g}; full duty is 1, 100 or, in registers of Dynamixel X, {FULL_DUTY:g}"
            )
            found.add("signals", "pwm", {**one.source, **fitting}, reason)
    if (one := chosen.get("effort")) is not None:
        found.notes.append(f"{one.label} is ignored: the identification of a servo does not use effort")
    return volts


def _add_bench(
    found: BenchSurvey,
    paths: Sequence[Path],
    actuator: Actuator | None,
    joint: str | None,
    volts: float | None,
) -> None:
    """Add the load, gain and servo: from the names of the recordings, or to be filled in."""
    names = [recording_name(path) for path in paths]
    told = {key: {name: _from_name(key, name) for name in names} for key in FROM_NAME}
    servo: Any = TODO if actuator is None else actuator.name
    reason = (
        f"enter the servo: {', '.join(actuator_names())}, or the path of its YAML file, see docs/actuators.md"
    )
    found.add("defaults", "actuator", servo, reason if actuator is None else "")
    if joint is not None:
        found.add("defaults", "joint", joint, "the joint that was given, or the only one that moves")
    reason = "measured" if volts is not None else "supply [V]"
    if volts is None and actuator is not None:
        reason += f", rated for {actuator.supply.rated_min:g} to {actuator.supply.rated_max:g}"
    supply = TODO if volts is None else float(f"{volts:.3g}")
    found.add("defaults", "supply_voltage", supply, reason)
    by_run: dict[str, dict[str, float]] = {name: {} for name in names}
    for key, reason in KNOWN.items():
        values = told.get(key, {})
        if values and all(value is not None for value in values.values()):
            for name, value in values.items():
                by_run[name][key] = float(value or 0.0)
        else:
            found.add("defaults", key, TODO, reason)
    for name, given in by_run.items():
        if given:
            first = name == names[0]
            found.add("runs", name, given, "from the names of the recordings" if first else "")


def _from_name(key: str, name: str) -> float | None:
    """A value in the name of a recording, in SI units."""
    match = re.search(FROM_NAME[key], name.lower().replace("_", " "))
    if match is None:
        return None
    number, unit, *plain = match.groups()
    return float(plain[0]) if number is None else float(f"{float(number) * FACTORS.get(unit, 1.0):.6g}")


def _held(track: Track, times: Array) -> Array:
    """Values of a command, each until the next one."""
    return track.value[np.clip(np.searchsorted(track.time, times, side="right") - 1, 0, len(track.time) - 1)]
