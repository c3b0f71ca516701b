"""Recordings played at any pace, in a loop, by a clock that ticks at 40 Hz: the torque is that of the recording."""

import math

import numpy as np
import pytest

from compensating import Driven
from stribeck.live.states.incoming import SimulatedTime

DURATION = 0.6
BEGIN = 1_700_000_000.0
TICK = 0.025
"""Of the clock that ``ros2 bag play --clock`` publishes, on the steady clock [s]."""
PAUSED, PAUSE = 0.11, 0.02
"""Period and length of pauses of the process, on the steady clock [s]."""


def recording(period):
    """Log times with stamps and what was recorded: a goal before each state."""
    for k in range(round(DURATION / period)):
        t = k * period
        goal, at, speed = math.sin(4.0 * t), 0.8 * math.sin(4.0 * t - 0.3), 3.2 * math.cos(4.0 * t - 0.3)
        yield t + 0.0002, t - 0.3 * period, "command", goal, 0.0
        yield t + 0.0004, t, "state", at, speed


def played(period, rate, loops, *, clock=SimulatedTime):
    """Torques of the states; they arrive up to 1 ms late, or all those of 20 ms at once, goals first; checks for silence come every 10 ms."""
    random = np.random.default_rng(0)
    messages = [(loop * DURATION + log, *rest) for loop in range(loops) for log, *rest in recording(period)]
    due = np.array([log for log, *_ in messages]) / rate + random.uniform(0.0, 0.001, len(messages))
    due = np.where(due % PAUSED < PAUSE, due // PAUSED * PAUSED + PAUSE, due)
    events = [
        (arrival, kind, stamp, at, speed)
        for arrival, (_, stamp, kind, at, speed) in zip(np.maximum.accumulate(due), messages, strict=True)
    ]
    end = loops * DURATION / rate
    events += [(t, "tick", t * rate % DURATION, 0.0, 0.0) for t in np.arange(0.003, end, TICK)]
    events += [(t, "check", 0.0, 0.0, 0.0) for t in np.arange(0.0, end, 0.01)]
    driven, time, tick, torques = Driven(ramp_time=0.2, slew=0.0, adapt=False), clock(), 0.0, []
    compensator = driven.compensator
    for arrival, kind, stamp, at, speed in sorted(events, key=lambda e: (e[0], e[1] != "command")):
        now = time.at(arrival, BEGIN + tick, BEGIN + stamp if kind == "state" else -math.inf)
        if kind == "tick":
            tick = stamp
        elif kind == "check":
            compensator.expire(arrival, now)
        elif kind == "command":
            compensator.on_command(arrival, BEGIN + stamp, ["a"], [at], [], [], now)
        else:
            torque = compensator.on_state(arrival, BEGIN + stamp, ["a"], [at], [speed], [], now)
            torques.append(torque[0])
    return np.array(torques), compensator


def as_recorded(period):
    """Torques with the stamps as arrival times, as `stribeck compensate` has them."""
    driven, torques = Driven(ramp_time=0.2, slew=0.0, adapt=False), []
    for _, stamp, kind, at, speed in recording(period):
        if kind == "command":
            driven.compensator.on_command(BEGIN + stamp, BEGIN + stamp, ["a"], [at], [], [])
        else:
            torque = driven.compensator.on_state(BEGIN + stamp, BEGIN + stamp, ["a"], [at], [speed], [])
            torques.append(torque[0])
    return np.array(torques)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("period", [0.02, 0.005, 0.001])
@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0, 4.0])
def test_the_pace_changes_nothing(period, rate):
    """States of 50 Hz to 1 kHz at half to four times their pace, three times round; what is learnt from a round would count in the next."""
    expected = as_recorded(period)
    assert np.abs(expected).max() > 0.01
    found, compensator = played(period, rate, 3)
    np.testing.assert_allclose(found, np.tile(expected, 3), atol=1e-12)
    assert compensator.notice is None


def test_ticks_alone_are_too_coarse():
    """At four times the pace a tick is 0.1 s: without interpolation states seemed late."""

    class LastTick:
        def at(self, _, clock, stamp):
            return clock

    found, _ = played(0.005, 4.0, 3, clock=LastTick)
    assert np.abs(found - np.tile(as_recorded(0.005), 3)).max() > 1e-4


def test_a_clock_that_jumps_is_not_followed_beyond():
    """At a pause time stands one tick after the last at most; a jump is followed at once, and a stamp has come."""
    time = SimulatedTime()
    assert time.at(0.0, 10.0) == 10.0
    assert time.at(0.1, 10.0) == 10.0
    assert time.at(0.2, 10.4) == 10.4
    assert time.at(0.3, 10.4) == pytest.approx(10.6)
    assert time.at(5.0, 10.4) == pytest.approx(10.8), "a pause"
    assert time.at(5.0, 10.4, 11.0) == time.at(5.1, 10.4) == 11.0, "a stamp"
    assert time.at(5.1, 3.0) == 3.0, "a jump back"
    assert time.at(5.2, 3.0) == pytest.approx(3.2)
    assert time.at(5.2, 3.0, 9.0) == 9.0
    assert time.at(5.2, 3.0, 7.0) == 7.0, "stamps jump before the clock does"


def test_silence_counts_on_both_clocks():
    """While simulated time stands still, the torque stays for a second; where it passes, for the timeout."""
    driven = Driven()
    for _ in range(5):
        driven.state()
    compensator, arrival = driven.compensator, driven.time + 0.001
    assert not compensator.expire(arrival + 0.9, driven.time)
    assert compensator.expire(arrival + 1.1, driven.time)
    driven.state()
    arrival = driven.time + 0.001
    assert compensator.expire(arrival + 0.05, driven.time + 0.05)


def test_commands_that_waited_while_simulated_time_went_on():
    """They count for the states that they precede, all of them, are not passed on, and are no sign of another clock."""
    driven = Driven(state_lag=1.0)
    compensator, offset = driven.compensator, BEGIN

    def state(stamp, now):
        return compensator.on_state(stamp, offset + stamp, ["a"], [0.0], [0.0], [], offset + now)[0]

    def command(stamp, now):
        compensator.on_command(stamp, offset + stamp, ["a"], [stamp], [1.0], [], offset + now)

    command(0.000, 0.0)
    state(0.005, 0.005)
    for k in range(5):
        command(0.006 + 0.005 * k, 0.2)
    assert compensator.wishes.latest(0.03) is None
    for k in range(5):
        found, _, _ = compensator.wishes.before(offset + 0.010 + 0.005 * k, 0.03)
        assert found.position[0] == pytest.approx(0.006 + 0.005 * k)
    assert compensator.notice is None
