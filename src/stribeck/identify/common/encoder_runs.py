"""Recordings of encoders on both sides of transmissions, and the signals of a joint that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import signal

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array

TRAVELS = tuple(np.radians((0.003, 0.01, 0.03, 0.1, 0.3)))
"""Candidates of the travel r [rad]."""

FILTER = 10.0
"""Cut-off of the zero-phase filter of motion, twist and torque [Hz]."""

APART = 0.1
"""Distance in time of torques that are instruments of each other [s]."""

SHORTEST = 2.0
"""Duration of the shortest run [s]."""

ROUNDING = 1e-9
"""Smaller steps, relative to the travel, are rounding."""

Source = Literal["motion", "torque"]
"""Where the instruments of the torque come from."""


@dataclass(frozen=True, eq=False)
class EncoderRun:
    """Positions on both sides of the transmissions of J joints at the link's side, and torque.

    :param motor, link: (T, J) [rad].
    :param torque: motor torque times ratio (T, J) [N m].
    :param inertia: of the rotor, times the square of the ratio (J,) [kg m²].
    :param load: torque of the links by a model (T, J) [N m], if there is one.
    """

    name: str
    dt: float
    motor: Array
    link: Array
    torque: Array
    inertia: Array
    load: Array | None = None

    def __post_init__(self) -> None:
        shapes = {part.shape for part in (self.motor, self.link, self.torque)}
        if len(shapes) > 1 or self.inertia.shape != self.motor.shape[1:]:
            raise RecordingError(f"{self.name}: motor, link and torque need equal shapes, found {shapes}")
        if len(self.motor) * self.dt < SHORTEST:
            raise RecordingError(f"{self.name} lasts less than 2 s; record longer runs")
        if not all(np.isfinite(part).all() for part in (self.motor, self.link, self.torque)):
            raise RecordingError(
                f"{self.name} contains NaN or infinite values in the chosen columns: remove these rows"
            )


@dataclass(frozen=True, eq=False)
class TwistSignals:
    """Filtered signals of one joint in a run, (T,) each.

    :param twist: motor minus link position.
    :param track: unfiltered motor position, along which hysteresis develops.
    :param torque: measured, without the rotor's inertia.
    :param load: torque of the links by a model, if there is one.
    :param steps: resolution of both encoders [rad].
    """

    dt: float
    position: Array
    velocity: Array
    acceleration: Array
    twist: Array
    track: Array
    torque: Array
    load: Array | None
    steps: tuple[float, float]

    @classmethod
    def of(cls, run: EncoderRun, joint: int) -> TwistSignals:
        """Those of a joint, by number."""

        def smooth(values: Array) -> Array:
            return smoothed(values, run.dt)

        motor, link = run.motor[:, joint], run.link[:, joint]
        position = smooth(motor)
        velocity = np.gradient(position, run.dt)
        acceleration = np.gradient(velocity, run.dt)
        return cls(
            run.dt,
            position,
            velocity,
            acceleration,
            smooth(motor - link),
            motor,
            smooth(run.torque[:, joint]) - run.inertia[joint] * acceleration,
            None if run.load is None else smooth(run.load[:, joint]),
            (resolution_of(motor), resolution_of(link)),
        )

    def instruments(self, source: Source) -> Array:
        """Instruments of the torque (T, k)."""
        if source == "motion":
            own = [self.acceleration, np.sin(self.position), np.cos(self.position)]
            return np.stack(own if self.load is None else [self.load], axis=1)
        rows = max(round(APART / self.dt), 1)
        padded = np.pad(self.torque, rows, mode="edge")
        return np.stack([padded[: -2 * rows], padded[2 * rows :]], axis=1)

    @cached_property
    def states(self) -> dict[float, Array]:
        """Hysteresis by travel, filtered as the twist is."""
        return {travel: smoothed(hysteresis_state(self.track, travel), self.dt) for travel in TRAVELS}

    def exogenous(self, travel: float, slow: float) -> Array:
        """Hysteresis, velocity, one, and the part of the hysteresis that velocities above ``slow`` [rad/s] do not have (T, 4)."""
        state, velocity = self.states[travel], self.velocity
        at_rest = state * np.exp(-((velocity / max(slow, 1e-12)) ** 2))
        return np.stack([state, velocity, np.ones(len(state)), at_rest], axis=1)


def smoothed(values: Array, dt: float) -> Array:
    """Signal (T,) after the filter, if it is slower than the samples."""
    if 2.0 * FILTER * dt >= 0.9:
        return values
    return np.asarray(signal.filtfilt(*signal.butter(4, 2.0 * FILTER * dt), values))


def resolution_of(position: Array) -> float:
    """Smallest step between readings of an encoder that changes in steps [rad]; of one that is smoothed, hardly anything."""
    steps = np.diff(np.unique(position))
    steps = steps[steps > ROUNDING * np.ptp(position)]
    return float(steps.min()) if len(steps) else np.inf


def hysteresis_state(position: Array, travel: float) -> Array:
    """The state z of the module's docstring, from 0 (T,)."""
    state, dragged = np.empty_like(position), float(position[0])
    for k, value in enumerate(position.tolist()):
        dragged = min(max(dragged, value - travel), value + travel)
        state[k] = (value - dragged) / travel
    return state
