"""Sessions in virtual time: joints that follow, and what was sent to them."""

import math
from dataclasses import dataclass, field

import numpy as np

from stribeck.model.trajectories import Trajectory, trajectory_named
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint
from stribeck.session.session import Session

DT = 0.005
WIDE = Limits(-2.0, 2.0, 12.5, 150.0)
SHORT = Trajectory("short", "a short oscillation", 0.6, lambda t: 0.5 * np.sin(6.0 * t))
DROP = Trajectory("drop", "a short drop", 0.8, lambda t: -0.5 * np.minimum(t / 0.4, 1.0), torque_until=0.4)

TROUBLES = {
    "stale": ({"state_age": 0.3}, "0.3 s old"),
    "never": ({"state_age": math.nan}, "old"),
    "nan": ({"positions": [math.nan]}, "reports impossible values: position nan"),
    "infinite": ({"velocities": [math.inf]}, "velocity inf"),
    "hot": ({"temperatures": [66.0]}, "66 °C"),
    "outside": ({"positions": [2.4]}, "2.4 rad"),
    "limp": ({"torque": [0.0]}, "switched its torque off"),
}
"""What goes wrong: changed arguments of an update, and what is said of it."""


class Follower:
    """Joints that are where their goals are, and fall to 0 rad within 0.3 s of no torque."""

    def __init__(self, start):
        self.position = np.array(start, dtype=float)

    def advance(self, goals, dt):
        """One cycle under goals."""
        falling = self.position * math.exp(-dt / 0.05)
        self.position = np.where(np.isfinite(goals), goals, falling)


@dataclass
class Trace:
    """What a session sent: times (n,), goals (n, J), phases, and events with the index of their cycle."""

    time: list = field(default_factory=list)
    goals: list = field(default_factory=list)
    phases: list = field(default_factory=list)
    events: list = field(default_factory=list)
    directives: list = field(default_factory=list)

    def of(self, kind):
        """The events of a kind, in order."""
        return [event for _, event in self.events if isinstance(event, kind)]

    def cycle(self, kind, which=0):
        """The cycle in which an event of a kind came."""
        return [k for k, event in self.events if isinstance(event, kind)][which]


def drive(session, plant, *, cycles=None, dt=DT, measure=None, at_cycle=None, longest=200.0, extra=40):
    """Run a session until it is over and ``extra`` cycles more.

    :param cycles: lengths of cycles [s], ``dt`` after they are used up.
    :param measure: changes the arguments of an update, given cycle and arguments.
    :param at_cycle: called before every update with cycle and session.
    """
    trace, now, k = Trace(), 100.0, 0
    while extra > 0:
        assert now < 100.0 + longest, f"not over after {longest} s, in phase {session.phase}"
        arguments = {"positions": plant.position}
        if measure:
            arguments = measure(k, arguments)
        if at_cycle:
            at_cycle(k, session)
        directive = session.update(now, **arguments)
        trace.time.append(now)
        trace.goals.append(directive.goals)
        trace.phases.append(directive.phase)
        trace.events += [(k, event) for event in directive.events]
        trace.directives.append(directive)
        length = cycles[k] if cycles is not None and k < len(cycles) else dt
        plant.advance(directive.goals, length)
        now, k, extra = now + length, k + 1, extra - session.over
    trace.time, trace.goals = np.array(trace.time), np.array(trace.goals)
    return trace


def session_of(names=(SHORT,), limits=WIDE, *, kp=200.0, releases_torque=True, joints=1, **options):
    """A session of trajectories, by name or as they are, on equal joints."""
    plays = [Play(trajectory_named(n) if isinstance(n, str) else n, kp) for n in names]
    return Session(
        plays,
        [SessionJoint(f"joint{j}", limits) for j in range(joints)],
        releases_torque=releases_torque,
        options=SessionOptions(**options),
    )
