"""Recorded bench runs: validation, and resampling to a common time grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.errors import RecordingError, TooShortError
from stribeck.model.arrays import Array, Indices, Mask
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import Gains

MINIMUM_DURATION = 1.0
"""Runs shorter than this are too short to identify friction [s]."""

LONGEST_GAP = 0.1
"""Gaps between measurements longer than this [s] are not interpolated; samples inside them are ignored."""

GAP_STEPS = 5.0
"""Multiple of the usual interval between samples beyond which an interval is a gap, if it is also long."""

FINER_GRID = 1.5
"""On grids that are finer than the measurement by this factor, only the points nearest to samples are compared."""

LEAST_RANGE = 3.0
"""Smallest range of temperatures over which their effect is identified [K]."""

MOST_SAMPLES = 5_000_000
"""Largest number of steps of a run; more indicate a wrong unit of time."""


def gaps_of(steps: Array, usual: float, longest: float = LONGEST_GAP) -> Indices:
    """Which intervals between samples (N,) [s] are gaps: longer than ``longest`` [s] and :data:`GAP_STEPS` usual ones."""
    return np.flatnonzero(steps > max(longest, GAP_STEPS * usual))


@dataclass(frozen=True, eq=False)
class Series:
    """A sampled signal.

    :param time: sample times (n,), strictly increasing [s].
    :param value: samples (n,), finite.
    :param held: whether it is a command or flag, valid until the next sample; otherwise it is a measurement,
        which may be interpolated.
    :raises RecordingError: for samples that are not finite, times that do not increase, or different lengths.
    """

    time: Array
    value: Array
    held: bool

    def __post_init__(self) -> None:
        for name in ("time", "value"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.time.ndim != 1 or self.time.shape != self.value.shape or self.time.size == 0:
            raise RecordingError(
                f"times and samples must be equal in number, at least one, found {self.time.shape} times and {self.value.shape} samples"
            )
        for name in ("time", "value"):
            bad = np.flatnonzero(~np.isfinite(getattr(self, name)))
            if bad.size:
                raise RecordingError(
                    f"{bad.size} {name}s are not finite, the first is sample {bad[0]}: {getattr(self, name)[bad[0]]}"
                )
        backwards = np.flatnonzero(np.diff(self.time) <= 0.0)
        if backwards.size:
            k = int(backwards[0])
            raise RecordingError(
                f"time does not increase from sample {k} ({self.time[k]:.6f} s) to sample {k + 1} "
                f"({self.time[k + 1]:.6f} s)"
            )

    def at(self, times: npt.ArrayLike) -> Array:
        """Samples at other times: the last value for commands and flags, interpolated for measurements.

        Outside the recording the first or last sample holds.
        """
        wanted = np.asarray(times, dtype=np.float64)
        if not self.held:
            return np.interp(wanted, self.time, self.value)
        # The tolerance lets a grid point that is rounded to just before a sample use that sample; seconds since 1970 are
        # rounded to 0.2 µs.
        tolerance = max(1e-9, 4.0 * float(np.spacing(np.max(np.abs(self.time)))))
        index = np.searchsorted(self.time, wanted + tolerance, side="right") - 1
        return self.value[np.maximum(index, 0)]

    def mean(self, times: npt.ArrayLike, dt: float) -> Array:
        """Means of the held signal over ``[t, t + dt]`` [s]; exactly the sample where it does not change."""
        begin = np.asarray(times, dtype=np.float64)
        end = begin + dt
        area = np.concatenate([[0.0], np.cumsum(self.value[:-1] * np.diff(self.time))])

        def integral(at: Array) -> Array:
            index = np.maximum(np.searchsorted(self.time, at, side="right") - 1, 0)
            return np.asarray(area[index] + self.value[index] * (at - self.time[index]))

        constant = self.at(begin) == self.at(end - 2e-9)
        return np.where(constant, self.at(begin), (integral(end) - integral(begin)) / dt)


@dataclass(frozen=True)
class Setup:
    """Load and rod [kg, m], nominal supply voltage [V], gains in firmware units, and name of the joint of a run.

    Set-ups of joints with different names are equal if all else is.

    :raises RecordingError: for values that are not finite or physically impossible.
    """

    mass: float
    length: float
    arm_mass: float
    supply_voltage: float
    kp: float
    ki: float = 0.0
    kd: float = 0.0
    joint: str = field(default="joint", compare=False)

    def __post_init__(self) -> None:
        for name in ("mass", "length", "arm_mass", "supply_voltage", "kp", "ki", "kd"):
            value = getattr(self, name)
            positive = name in ("length", "supply_voltage")
            if not math.isfinite(value) or value < 0.0 or (positive and value == 0.0):
                raise RecordingError(
                    f"{name} must be {'positive' if positive else 'zero or positive'} and finite, found {value}"
                )
        if self.mass + self.arm_mass == 0.0:
            raise RecordingError("mass and arm_mass are both zero: at least one must be positive")

    @property
    def load(self) -> float:
        """Moment of the load (m + m_a/2) l [kg m], which distinguishes set-ups by load."""
        return (self.mass + 0.5 * self.arm_mass) * self.length


@dataclass(frozen=True, eq=False)
class Log:
    """One recorded run of one joint on the bench, irregularly sampled.

    :param name: name of the run, for messages and tables.
    :param position: measured position [rad].
    :param velocity: measured velocity [rad/s].
    :param goal: goal position as sent [rad], held.
    :param torque_enable: 1 with torque on, held.
    :param supply_voltage: measured supply [V], if the servo reports it.
    :param temperature: measured temperature [°C], if the servo reports it.
    :param pwm: duty that the firmware applied, in [-1, 1], if the servo reports it; held, because the
        firmware works in discrete steps.
    :param effort: torque of the motor [N m], if it was measured; fits do not use it.
    :raises TooShortError: for a run shorter than a second.
    :raises RecordingError: for flags that are neither 0 nor 1.
    """

    name: str
    actuator: str
    trajectory: str
    setup: Setup
    position: Series
    velocity: Series
    goal: Series
    torque_enable: Series
    supply_voltage: Series | None = None
    temperature: Series | None = None
    pwm: Series | None = None
    effort: Series | None = None

    def __post_init__(self) -> None:
        if self.duration < MINIMUM_DURATION:
            raise TooShortError(
                f"run {self.name!r} lasts {self.duration:.3f} s; at least {MINIMUM_DURATION:g} s are needed"
            )
        flags = self.torque_enable.value
        if np.any((flags != 0.0) & (flags != 1.0)):
            raise RecordingError(f"run {self.name!r}: torque_enable may contain only 0 and 1")

    @property
    def start(self) -> float:
        """Time from which on position, velocity and command are all known [s]."""
        return float(
            max(series.time[0] for series in (self.position, self.velocity, self.goal, self.torque_enable))
        )

    @property
    def duration(self) -> float:
        """Time between the first complete sample and the last position [s]."""
        return float(self.position.time[-1]) - self.start

    def resample(self, dt: float, *, mean_commands: bool = False, start: float | None = None) -> Samples:
        """The run on a grid of ``dt`` [s]: commands and flags held, measurements interpolated.

        The grid begins at the first complete sample and never passes the last measurement. Samples
        inside a gap of the measurement (:data:`LONGEST_GAP`) are marked as invalid.

        :param mean_commands: commands and flags as their means over each step instead of their values at its
            beginning, so that a command between two grid points is not late.
        :param start: begin at this time instead [s].
        """
        begin = self.start if start is None else start
        count = math.floor((float(self.position.time[-1]) - begin) / dt + 1e-6) + 1
        if count > MOST_SAMPLES:
            raise RecordingError(
                f"run {self.name!r} of {self.duration:.6g} s needs too many steps of {dt:g} s: are its times in seconds?"
            )
        time = begin + dt * np.arange(count, dtype=np.float64)
        nominal = np.full(count, self.setup.supply_voltage)
        commands = self.goal, self.torque_enable
        goal, enable = (one.mean(time, dt) if mean_commands else one.at(time) for one in commands)
        return Samples(
            log=self,
            dt=dt,
            time=time,
            position=self.position.at(time),
            velocity=self.velocity.at(time),
            goal=goal,
            torque_enable=enable,
            supply_voltage=nominal if self.supply_voltage is None else self.supply_voltage.at(time),
            temperature=np.full(count, np.nan) if self.temperature is None else self.temperature.at(time),
            valid=_outside_gaps(self.position.time, time),
        )


def _outside_gaps(measured: Array, grid: Array) -> Mask:
    index = np.clip(np.searchsorted(measured, grid, side="right"), 1, len(measured) - 1)
    within = (grid > measured[index - 1]) & (grid < measured[index])
    return ~(within & (measured[index] - measured[index - 1] > LONGEST_GAP))


def _near_samples(measured: Array, grid: Array, dt: float) -> Mask:
    """Points of a grid within half a step of a sample; all where samples are less than :data:`FINER_GRID` steps apart.

    Between samples the motion is not the straight line of an interpolation, which would bias a fit.
    """
    index = np.clip(np.searchsorted(measured, grid, side="right"), 1, len(measured) - 1)
    before, after = grid - measured[index - 1], measured[index] - grid
    return (before + after <= FINER_GRID * dt) | (np.minimum(before, after) <= (0.5 + 1e-6) * dt)


@dataclass(frozen=True, eq=False)
class Samples:
    """A run on a uniform grid, (n,) arrays. ``valid`` marks samples that were really measured.

    Without a measured supply it is the nominal one, without a measured temperature NaN [°C].
    """

    log: Log
    dt: float
    time: Array
    position: Array
    velocity: Array
    goal: Array
    torque_enable: Array
    supply_voltage: Array
    temperature: Array
    valid: Mask


@dataclass(frozen=True, eq=False)
class Batch:
    """Several runs on one grid: (T, R) arrays, the shorter runs padded with their last sample.

    :param time: time since the start of each run [s], (T,).
    :param lengths: samples of each run before the padding, (R,).
    :param weight: weight of each sample (T, R): 1/(R n_r) at the :math:`n_r` points where run r was measured, so that a
        weighted sum of errors is the mean over runs of each run's mean; 0 elsewhere.
    """

    logs: tuple[Log, ...]
    dt: float
    time: Array
    lengths: tuple[int, ...]
    position: Array
    velocity: Array
    goal: Array
    torque_enable: Array
    supply_voltage: Array
    temperature: Array
    weight: Array

    @cached_property
    def pendulum(self) -> Pendulum:
        """Load and rod of each run, (R,)."""
        return Pendulum(self._setups("mass"), self._setups("length"), self._setups("arm_mass"))

    @cached_property
    def gains(self) -> Gains:
        """Gains of each run, (R,)."""
        return Gains(self._setups("kp"), self._setups("ki"), self._setups("kd"))

    @cached_property
    def nominal_supply(self) -> Array:
        """Nominal supply voltage of each run, (R,) [V]."""
        return self._setups("supply_voltage")

    def _setups(self, name: str) -> Array:
        return np.array([getattr(log.setup, name) for log in self.logs], dtype=np.float64)

    def supply(self, measured: bool) -> Array:
        """Supply voltage (T, R) [V]: as measured, or the run's nominal one."""
        return self.supply_voltage if measured else np.broadcast_to(self.nominal_supply, self.goal.shape)

    def reset_indices(self, reset_period: float | None) -> frozenset[int]:
        """Steps at which a simulation is reset to the measurement; none without a period."""
        if reset_period is None:
            return frozenset()
        every = max(1, round(min(reset_period, len(self.time) * self.dt) / self.dt))
        return frozenset(range(every, len(self.time), every))

    def mean_absolute_errors(self, position: Array) -> Array:
        """Mean absolute position error of each run (R,) [rad], for simulated positions (T, R)."""
        runs = len(self.logs)
        return np.asarray(np.sum(self.weight * np.abs(position - self.position), axis=0) * runs)

    def block_steps(self, block_length: float) -> int:
        """Samples in a block of about ``block_length`` [s], so that the runs divide into whole blocks.

        The last block may be shorter, by at most as many samples as there are blocks.
        """
        count = max(1, round(len(self.time) * self.dt / block_length))
        return -(-len(self.time) // count)


def batch_of(samples: Sequence[Samples]) -> Batch:
    """Stack runs on a common grid.

    :raises RecordingError: for no runs at all, or different grids.
    """
    if not samples:
        raise RecordingError("no runs to simulate: give at least one")
    if len({run.dt for run in samples}) > 1:
        raise RecordingError(
            f"runs have different time steps: {sorted({run.dt for run in samples})}: resample them to one"
        )
    length = max(len(run.time) for run in samples)
    runs = len(samples)

    def stacked(name: str) -> Array:
        columns = [np.pad(getattr(run, name), (0, length - len(run.time)), mode="edge") for run in samples]
        return np.stack(columns, axis=1).astype(np.float64)

    valid = np.zeros((length, runs))
    for r, run in enumerate(samples):
        if not np.any(run.valid):
            raise RecordingError(
                f"run {run.log.name!r} has no two measurements less than {LONGEST_GAP:g} s apart: record more often"
            )
        valid[: len(run.time), r] = run.valid & _near_samples(run.log.position.time, run.time, run.dt)
    return Batch(
        logs=tuple(run.log for run in samples),
        dt=samples[0].dt,
        time=samples[0].dt * np.arange(length, dtype=np.float64),
        lengths=tuple(len(run.time) for run in samples),
        position=stacked("position"),
        velocity=stacked("velocity"),
        goal=stacked("goal"),
        torque_enable=stacked("torque_enable"),
        supply_voltage=stacked("supply_voltage"),
        temperature=stacked("temperature"),
        weight=valid / (np.sum(valid, axis=0) * runs),
    )


class TemperatureRange(NamedTuple):
    """Servo temperature over the runs that record it: mean of the runs' means, and extremes [°C]."""

    mean: float
    min: float
    max: float

    @classmethod
    def of(cls, logs: Sequence[Log]) -> TemperatureRange | None:
        """That of some runs; ``None`` if none records it."""
        runs = [log.temperature.value for log in logs if log.temperature is not None]
        if not runs:
            return None
        mean = float(np.mean([np.mean(run) for run in runs]))
        return cls(mean, float(min(map(np.min, runs))), float(max(map(np.max, runs))))

    @property
    def varies(self) -> bool:
        """Whether a coefficient per kelvin can be identified; servos report whole degrees."""
        return self.max - self.min >= LEAST_RANGE

    @property
    def words(self) -> str:
        """The range as a sentence."""
        return f"All recordings are at {self.min:.0f} to {self.max:.0f} °C"


def common_actuator(logs: Sequence[Log]) -> str:
    """The actuator of all logs.

    :raises RecordingError: if they differ.
    """
    names = sorted({log.actuator for log in logs})
    if len(names) != 1:
        raise RecordingError(
            f"the recordings belong to different actuators ({', '.join(names)}): fit the recordings of one actuator at a time"
        )
    return names[0]
