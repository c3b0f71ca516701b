"""Output of a session (events, directives, plans) and its options (speeds, times)."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.session.limits import Play

Phase = Literal[
    "waiting", "enabling", "gain", "approaching", "settling", "running", "braking", "returning", "resting",
    "swinging", "recovering", "finished", "aborted",
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
    :param state_timeout: a run is disturbed if joint states are older or cycles further apart than this [s].
    :param following_time: the session stops if a following error or lost torque persists this long [s].
    :param alarm_time: the session stops if an invalid position, a violated position limit or a high temperature
        persists this long [s]; single packets may be corrupt.
    :param position_margin: how far beyond its limits a joint may swing [rad].
    :param recovery_time: after a disturbance, the session goes on when states have arrived in time for this long [s].
    :param recovery_timeout: the session stops if they do not within this time [s].
    :param repetitions: how often a run is repeated whose timing was disturbed; then the session stops.
    :raises ConfigError: for times and speeds that are not positive and finite, or a negative number of repetitions.
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
    recovery_time: float = 0.5
    recovery_timeout: float = 5.0
    repetitions: int = 3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name == "repetitions":
                if value < 0:
                    raise ConfigError(f"session: repetitions must not be negative, found {value}")
            elif not 0.0 < value < math.inf:
                raise ConfigError(f"session: {name} must be positive and finite, found {value}")


@dataclass(frozen=True)
class RunStarted:
    """A run starts with the goals of this directive."""

    play: Play
    index: int


@dataclass(frozen=True)
class RunEnded:
    """The run ended before the goals of this directive.

    :param reason: why it was cut short, ``None`` if it is complete.
    :param disturbed: whether late states or lost answers cut it short; such a run is not for readers.
    """

    play: Play
    index: int
    reason: str | None
    disturbed: bool = False


Recorded = Literal["given up", "not begun", "kept"]
"""What becomes of the recording of a run when the timing is disturbed: during it, before it, and after it."""

FATE: dict[Recorded, tuple[str, str]] = {
    "given up": ("its recording is given up", " and the run is repeated"),
    "not begun": ("its recording had not begun, so nothing is lost", "; the run begins again"),
    "kept": ("its recording is complete and kept", "; the session continues"),
}
"""What is said of it, and of the run if the session goes on."""


@dataclass(frozen=True)
class Disturbed:
    """The timing was disturbed; the session goes on when it is in order again.

    :param reason: what happened.
    :param repetition: number of this disturbance within the play, from 1.
    :param allowed: number of disturbances after which the session still goes on.
    :param recording: what becomes of the recording of this run.
    """

    play: Play
    index: int
    reason: str
    repetition: int
    allowed: int
    recording: Recorded

    @property
    def text(self) -> str:
        """One line for the user: the run, what happened, and what becomes of it."""
        count = f"disturbance {self.repetition} of this run, at most {self.allowed} are allowed"
        return f"{self._start}{FATE[self.recording][1]} ({count})"

    @property
    def last_text(self) -> str:
        """The line of a disturbance that ends the session."""
        count = "1 time" if self.repetition == 1 else f"{self.repetition} times"
        return (
            f"{self._start}; the session stops, because this run was disturbed {count} and at most {self.allowed} "
            "are allowed"
        )

    @property
    def _start(self) -> str:
        what = f"{self.play.trajectory.name}, gain {self.play.kp:g}"
        return f"run {self.index + 1} ({what}): {self.reason}; {FATE[self.recording][0]}"


@dataclass(frozen=True)
class Finished:
    """All plays are complete."""


@dataclass(frozen=True)
class Aborted:
    """The session ended early.

    :param late: whether only the timing was disturbed, too often or for too long.
    """

    reason: str
    late: bool = False


SessionEvent = RunStarted | RunEnded | Disturbed | Finished | Aborted


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
