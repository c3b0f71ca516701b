"""Output and options of a session: events, directives, plans, speeds and times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.session.limits import Play

FloatArray = npt.NDArray[np.float64]

Phase = Literal[
    "waiting", "enabling", "gain", "approaching", "settling", "running", "braking", "returning", "resting",
    "swinging", "finished", "aborted",
]  # fmt: skip


@dataclass(frozen=True)
class SessionOptions:
    """How a session moves between runs, and how long it waits.

    :param soft_speed: largest speed of a goal between runs [rad/s].
    :param soft_acceleration: its largest acceleration [rad/s²].
    :param rest_speed: a slower joint is at rest [rad/s].
    :param rest_distance: a joint that leaves a range of this width is not [rad].
    :param rest_time: joints must be at rest for this long before a run [s].
    :param settle_timeout: a run begins after this at the latest [s].
    :param swing_time: with torque off, joints must be at rest for this long [s].
    :param swing_timeout: torque goes on again after this at the latest [s].
    :param enable_time: how long the measured position is held when torque goes on [s].
    :param gain_time: pause after a new gain that no servo confirms [s].
    :param gain_timeout: a gain that differs from the reported one after this stops the session [s].
    :param start_timeout: joint states that have not arrived after this stop the session [s].
    :param state_timeout: older joint states, or cycles further apart, stop the session [s].
    :param following_time: a following error, or lost torque, that lasts longer stops the session [s].
    :param alarm_time: an impossible position, one beyond the limits, or a high temperature must last longer than
        this to stop the session, because single packets may be corrupt [s].
    :param position_margin: how far beyond its limits a joint may swing [rad].
    :raises ConfigError: for values that are not positive and finite.
    """

    soft_speed: float = 1.0
    soft_acceleration: float = 4.0
    rest_speed: float = 0.05
    rest_distance: float = 0.02
    rest_time: float = 0.2
    settle_timeout: float = 5.0
    swing_time: float = 0.3
    swing_timeout: float = 20.0
    enable_time: float = 0.1
    gain_time: float = 0.1
    gain_timeout: float = 2.0
    start_timeout: float = 5.0
    state_timeout: float = 0.2
    following_time: float = 0.5
    alarm_time: float = 0.03
    position_margin: float = 0.3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < math.inf:
                raise ConfigError(f"session: {name} must be positive and finite, found {value}")


@dataclass(frozen=True)
class RunStarted:
    """The goals of this directive are the first of a run."""

    play: Play
    index: int


@dataclass(frozen=True)
class RunEnded:
    """The goals of this directive no longer belong to the run; ``reason`` tells why it was cut short, if so."""

    play: Play
    index: int
    reason: str | None


@dataclass(frozen=True)
class Finished:
    """All plays were made."""


@dataclass(frozen=True)
class Aborted:
    """The session is over before its end."""

    reason: str


SessionEvent = RunStarted | RunEnded | Finished | Aborted


@dataclass(frozen=True, eq=False)
class Directive:
    """What to do now.

    :param goals: goal positions (J,) [rad]; NaN means torque off, or, while the session still waits
        for states, nothing to send.
    :param kp: firmware gain of all joints, in firmware units.
    :param events: since the previous directive, in order.
    :param phase: of the session.
    :param play: index of the current play.
    :param progress: completed share of the session, in [0, 1], never falling.
    :param remaining: estimated time until the end [s].
    :param segment: number of the current piece of motion, for commanders that send them whole
        (:meth:`Session.plan`).
    """

    goals: FloatArray
    kp: float
    events: tuple[SessionEvent, ...]
    phase: Phase
    play: int
    progress: float
    remaining: float
    segment: int


class Plan(NamedTuple):
    """A piece of motion as points.

    :param start: when it begins, on the clock of :meth:`Session.update` [s].
    :param time: times since then (n,), the last one its duration [s].
    :param position: goals (n, J) [rad].
    :param velocity: their velocities (n, J) [rad/s].
    """

    start: float
    time: FloatArray
    position: FloatArray
    velocity: FloatArray
