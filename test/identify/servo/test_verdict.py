"""Verdicts on fits of a servo: a sound one, and the same with one fault each."""

from dataclasses import replace

import numpy as np
import pytest

from recovery import Bench, truth_of, virtual_logs
from stribeck.files.actuators import load_actuator
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import Errors, FitSettings
from stribeck.identify.servo.task import task_for
from stribeck.identify.servo.verdict import judge_result
from stribeck.model.law import law_named
from virtual import Encoder

STEP = 2.0 * np.pi / 4096.0
BENCH = Bench("mx106", (0.5, 1.5), 0.15, 0.05, (8.0, 32.0), 15.0)


@pytest.fixture(scope="module")
def sound():
    """Law M1 from simulated runs that follow it."""
    logs = virtual_logs(BENCH, truth_of(BENCH, "m1"), "m1", Encoder(STEP, STEP))
    split, servo = split_runs(logs, validation_kp=32), load_actuator("mx106")
    return identify(task_for(split, servo, law_named("m1"), FitSettings(trials=2_000, refine=False)))


def keys(result):
    return {reason.key for reason in judge_result(result).reasons}


@pytest.mark.slow
def test_a_sound_fit_is_usable(sound):
    """Without any reason."""
    assert judge_result(sound).use == "usable"
    assert not keys(sound)


@pytest.mark.slow
def test_errors_as_large_as_the_motion_make_a_fit_unusable(sound):
    """Half of the mean deviation of the positions is the limit; held-out runs show what does not carry over."""
    wild = Errors(dict.fromkeys(sound.train.by_run, 10.0))
    assert "large_error" in keys(replace(sound, train=wild))
    triple = Errors(dict.fromkeys(sound.validation.by_run, 3.0 * sound.train.mean))
    worse = replace(sound, validation=triple)
    assert keys(worse) == {"does_not_carry_over"}
    assert judge_result(worse).use == "doubtful"


def test_loads_in_grams_are_noticed(sound):
    """No servo moves them."""
    heavy = tuple(
        replace(log, setup=replace(log.setup, mass=1e3 * log.setup.mass)) for log in sound.split.train
    )
    found = judge_result(replace(sound, split=replace(sound.split, train=heavy)))
    assert found.use == "unusable"
    assert "masses in grams" in found.reasons[0].text


def test_bounds_and_intervals_without_a_width_are_reasons(sound):
    """A rotor inertia at its bound; a friction term at zero may just be absent."""
    estimates = dict(sound.uncertainty.estimates)
    for name, key in (("armature", {"at_bound"}), ("friction_viscous", set())):
        at = replace(estimates[name], status="at bound", interval=None, side="lower")
        changed = replace(sound.uncertainty, estimates={**estimates, name: at})
        assert keys(replace(sound, uncertainty=changed)) == key
    exact = {
        name: replace(one, interval=(one.value, one.value)) if one.interval else one
        for name, one in estimates.items()
    }
    assert keys(replace(sound, uncertainty=replace(sound.uncertainty, estimates=exact))) == {"zero_intervals"}


def test_searches_that_did_not_end_are_reasons(sound):
    """Interrupted: doubtful; diverged: unusable."""
    assert keys(replace(sound, uncertainty=None, search=replace(sound.search, outcome="interrupted"))) == {
        "unfinished"
    }
    assert (
        judge_result(replace(sound, search=replace(sound.search, descent=SolverStatus.DIVERGED))).use
        == "unusable"
    )


def test_friction_that_no_run_determines_is_unusable(sound):
    """What happened: a recording at rest gave 0.00 mrad and "verdict: usable". Torque that is off throughout is told, too."""
    estimates = {
        name: replace(one, status="not determined", interval=None)
        for name, one in sound.uncertainty.estimates.items()
    }
    unknown = replace(sound, uncertainty=replace(sound.uncertainty, estimates=estimates))
    assert judge_result(unknown).use == "unusable"
    assert "check that the joint moves" in judge_result(unknown).reasons[0].text
    estimates["friction_base"] = replace(estimates["friction_base"], status="at bound", side="upper")
    known = replace(sound, uncertainty=replace(sound.uncertainty, estimates=estimates))
    assert "friction_unknown" not in keys(known), "a term at its bound is known to be large"
    off = tuple(
        replace(log, torque_enable=replace(log.torque_enable, value=0.0 * log.torque_enable.value))
        for log in sound.split.train
    )
    assert keys(replace(sound, split=replace(sound.split, train=off))) == {"torque_off"}
