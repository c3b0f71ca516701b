"""Recordings in other units than SI are noticed, by what can be told from the signals alone."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import full_log, log_of, refusal
from stribeck.model.log import Log, Series
from stribeck.recordings.signals.run_units import check_units, oddities

TIME = np.arange(200) / 50


def moved(angle: float = 1.0, goal: float = 1.1, velocity: float = 1.0, **more) -> Log:
    """A swing of half a radian at 0.3 Hz, with factors of its signals."""
    phase = 2.0 * TIME
    return log_of(
        TIME,
        0.5 * angle * np.sin(phase - 0.2),
        velocity=velocity * np.cos(phase - 0.2),
        goal=0.5 * goal * np.sin(phase),
        **more,
    )


@pytest.mark.parametrize(
    ("log", "parts"),
    [
        (moved(57.3, 63.0, 57.3), ["position reaches 28.6 rad", "degrees or counts"]),
        (moved(652.0, 717.0, 652.0), ["position reaches 326.0 rad", "`signals`"]),
        (moved(10.0, 1.1, 57.3), ["velocity is 5.7"]),
        (moved(velocity=-1.0), ["velocity is -1 times", "wrong sign"]),
        (moved(velocity=0.0), ["velocity is always 0", "remove velocity"]),
        (moved(23.0, 0.9, 23.0), ["position moves 24", "as far as goal"]),
        (moved(1.0, 23.0), ["position moves 0.04", "as far as goal"]),
        (moved(1.0, -1.1), ["moves in the opposite direction to goal", "sign: -1"]),
        (moved(supply_voltage=50 * np.ones(200) * 2), ["around 100 V", "tenths"]),
        (moved(pwm=40.0 * np.sin(TIME)), ["pwm reaches", "percent"]),
    ],
)
def test_other_units_and_signs_are_refused(log, parts):
    """The message names the run, the signal, and what to do."""
    refusal(lambda: check_units(log, "bag: run 'x'"), "run 'x'", *parts)


def test_small_motion_in_degrees_is_noticed_by_its_speed():
    """A swing of 11 degrees looks like two turns at most, but no servo turns so fast."""
    fast = 0.5 * 20 * np.sin(8.0 * TIME)
    log = log_of(TIME, fast, velocity=np.gradient(fast, TIME), goal=fast)
    refusal(lambda: check_units(log, "run"), "position moves at", "degrees")


def test_times_in_milliseconds_are_refused():
    """Samples a second or more apart are no motion of a servo."""
    log = log_of(1e3 * TIME, np.sin(TIME), goal=np.sin(TIME))
    refusal(lambda: check_units(log, "run"), "20 s apart", "milliseconds")


def test_a_unit_that_was_given_is_believed():
    """Magnitudes are not doubted then; contradictions are."""
    far = moved(57.3, 63.0, 57.3)
    check_units(far, "run", declared={"position", "goal"})
    refusal(lambda: check_units(moved(57.3, 63.0, 1.0), "run", declared={"position", "goal"}), "velocity")


@pytest.mark.parametrize(
    "log",
    [
        moved(),
        moved(0.3, 1.0, 0.3),
        full_log(),
        log_of(TIME, 1e-4 * np.random.default_rng(0).standard_normal(200), velocity=0.0, goal=0.0),
        replace(moved(), goal=Series(TIME[:1], np.zeros(1), held=True)),
    ],
    ids=["follows", "weak", "random", "at rest", "one goal"],
)
def test_recordings_in_si_units_are_accepted(log):
    """Also those that say little: weak servos, noise at rest, a single goal."""
    if log.name == "run" and log.supply_voltage is not None:
        log = replace(log, velocity=Series(log.position.time, np.cos(log.position.time), held=False))
    check_units(log, "run")


def test_what_contradicts_a_set_up_is_told():
    """A goal and a position in each other's place, and a gain of zero; the same signals in order are none."""
    log = moved()
    assert oddities(log) == []
    swapped = replace(log, position=replace(log.goal, held=False), goal=replace(log.position, held=True))
    (line,) = oddities(swapped)
    assert "moves 100 ms before its goal" in line
    (line,) = oddities(replace(log, goal=replace(log.position, held=True)))
    assert "goal and position are equal" in line
    (line,) = oddities(replace(log, setup=replace(log.setup, kp=0.0)))
    assert "kp is 0" in line


def test_angles_that_start_again_after_a_turn_are_refused():
    """What happened: with a unit given, jumps of 360 degrees went into the fit; without, "is it in degrees?"."""
    wrapped = moved(8.0, 8.8, 8.0)
    wrapped = replace(
        wrapped,
        position=replace(wrapped.position, value=(wrapped.position.value + np.pi) % (2.0 * np.pi) - np.pi),
    )
    for declared in ((), ("position", "goal")):
        assert "jumps by a whole turn" in refusal(
            lambda given=declared: check_units(wrapped, "run", declared=given)
        )


def test_velocities_of_something_else_are_refused():
    """Not correlated with the slope of the position."""
    log = moved()
    other = replace(log, velocity=replace(log.velocity, value=np.sin(17.0 * TIME)))
    assert "is not the derivative" in refusal(lambda: check_units(other, "run"))


def test_fast_motion_is_no_turn():
    """Steps of whole turns between all samples, as of thousandths of a degree, have no turns to unwrap."""
    wild = moved(400.0, 440.0, 400.0)
    check_units(wild, "run", declared=("position", "goal"))
