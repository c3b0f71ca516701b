"""Output of a session (events, directives, plans) and its options (speeds, times)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stribeck.core.arrays import Array
from stribeck.errors import ConfigError
from stribeck.session.limits import Play

Phase = Literal[
    "waiting", "enabling", "gain", "approaching", "settling", "running", "braking", "returning", "resting",
    "swinging", "finished", "aborted",
]  # fmt: skip


@dataclass(frozen=True)
class SessionOptions:
    """How a session moves between runs, and how long it waits.

    :param soft_speed: largest speed of a goal between runs [rad/s].
    :param soft_acceleration: its largest acceleration [rad/s²].
    :param rest_speed: a joint below this speed is at rest [rad/s].
    :param rest_distance: a joint at rest must stay within a range of this width [rad].
    :param rest_time: how long joints must be at rest before a run [s].
    :param settle_timeout: maximum waiting time before a run [s].
    :param swing_time: how long joints must be at rest with torque off [s].
    :param swing_timeout: maximum waiting time with torque off [s].
    :param enable_time: how long the measured position is held when torque goes on [s].
    :param gain_time: pause after a change of the gain if servos do not report gains [s].
    :param gain_timeout: the session stops if servos do not report the new gain within this time [s].
    :param start_timeout: the session stops if no joint states arrive within this time [s].
    :param state_timeout: the session stops if joint states are older or cycles further apart than this [s].
    :param following_time: the session stops if a following error or lost torque persists this long [s].
    :param alarm_time: the session stops if an invalid position, a violated position limit or a high temperature
        persists this long [s]; single packets may be corrupt.
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
    """A run starts with the goals of this directive."""

    play: Play
    index: int


@dataclass(frozen=True)
class RunEnded:
    """The run ended before the goals of this directive; ``reason`` says why if it was cut short."""

    play: Play
    index: int
    reason: str | None


@dataclass(frozen=True)
class Finished:
    """All plays are complete."""


@dataclass(frozen=True)
class Aborted:
    """The session ended early."""

    reason: str


SessionEvent = RunStarted | RunEnded | Finished | Aborted


@dataclass(frozen=True, eq=False)
class Directive:
    """What to do now.

    :param goals: goal positions (J,) [rad]; NaN: torque off or, while the session waits for states, no command.
    :param kp: proportional gain of all joints, in firmware units.
    :param events: since the previous directive, in order.
    :param phase: of the session.
    :param play: index of the current play.
    :param progress: completed fraction of the session, in [0, 1], never decreasing.
    :param remaining: estimated time until the end [s].
    :param segment: number of the current motion segment, for senders of whole segments (:meth:`Session.plan`).
    """

    goals: Array
    kp: float
    events: tuple[SessionEvent, ...]
    phase: Phase
    play: int
    progress: float
    remaining: float
    segment: int


class Plan(NamedTuple):
    """A motion segment as points.

    :param start: start time, on the clock of :meth:`Session.update` [s].
    :param time: times since the start (n,), the last one is the duration [s].
    :param position: goals (n, J) [rad].
    :param velocity: their velocities (n, J) [rad/s].
    """

    start: float
    time: Array
    position: Array
    velocity: Array
