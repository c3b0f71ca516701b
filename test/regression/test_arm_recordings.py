"""Recordings of arms as they are: rest after the motion, gaps, single values that are missing."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from moving_arms import NEAR, RATE, arm, linear_friction, low_pass, motion, protocol, recording
from small_arm import JOINTS as SMALL
from small_arm import small_robot
from stribeck.errors import TooShortError
from stribeck.files.torque_drives import torque_actuator
from stribeck.identify.arm.config import IdentificationConfig, RecordingFormat
from stribeck.identify.arm.friction.drives import joint_drives
from stribeck.identify.arm.identify import Identification
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.motion import motion_of, segments, time_blocks
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.arm.residuals import explain
from stribeck.identify.arm.survey.machine import _bandwidth
from stribeck.model.provenance import Runs

FILTERED = protocol(position_filter=low_pass(20.0), effort_filter=low_pass(20.0), every=10, fit="moving")


def identification(model, runs, rules=FILTERED):
    machine = machine_of(model.joints, model, {})
    return Identification(machine, IdentificationConfig(RecordingFormat("bag"), rules, {}, NEAR), runs)


def slowed_to_rest(model, moving=10.0, resting=15.0):
    """A motion that slows down in its last second and rests, with linear friction, and gravity alone at rest."""
    time, *states = motion(moving + 1.0)
    spline = CubicSpline(time, states[0])
    later = np.arange(0.0, moving + resting, 1.0 / RATE)
    phase = np.clip(later - (moving - 1.0), 0.0, 1.0)
    at = np.minimum(later, moving - 1.0) + 0.5 * (phase + np.sin(np.pi * phase) / np.pi)
    speed, change = 0.5 * (1.0 + np.cos(np.pi * phase)), -0.5 * np.pi * np.sin(np.pi * phase)
    speed[later >= moving] = change[later >= moving] = 0.0
    speed, change = speed[:, None], change[:, None]
    position, velocity = spline(at), spline(at, 1) * speed
    acceleration = spline(at, 2) * speed**2 + spline(at, 1) * change
    effort = model.inverse_dynamics(position, velocity, acceleration) + linear_friction(
        velocity, acceleration
    )
    effort += 0.1 * np.random.default_rng(1).normal(size=effort.shape)
    return ArmRecording("run", model.joints, later, position, velocity, effort)


@pytest.mark.slow
def test_more_rest_than_motion(tmp_path):
    """Blocks of time without a moving row made the choice of friction terms fail (cannot reshape array of size 0)."""
    model = arm(tmp_path)
    work = identification(model, [slowed_to_rest(model)])
    assert work.choice[1]["all"] <= 1.0
    assert work.fit("full").errors["train"]["moving"]["all"] < 0.02


def with_gap(run, first=2000, end=3000):
    """Without some of its rows."""
    kept = np.r_[0:first, end : len(run.time)]
    return replace(
        run,
        time=run.time[kept],
        position=run.position[kept],
        velocity=run.velocity[kept],
        effort=run.effort[kept],
    )


def test_a_gap_cuts_a_recording(tmp_path):
    """A gap of 2 s was answered by "set protocol: resample", which interpolates across it (OLS 2.7 instead of 18.6 %)."""
    model = arm(tmp_path)
    run = recording(model, noise=0.1)
    parts = segments(with_gap(run), FILTERED)
    assert [part.name for part in parts] == ["run part 1", "run part 2"]
    assert [len(part.time) for part in parts] == [2000, 2000]
    whole, cut = (identification(model, one).fit("ols").errors for one in ([run], parts))
    assert cut["train"]["moving"]["all"] < 1.2 * whole["train"]["moving"]["all"]


def test_rows_of_the_protocol_come_before_gaps(tmp_path):
    """Row numbers are those of the recording, and a gap outside of them does not matter."""
    run = with_gap(recording(arm(tmp_path)))
    assert segments(run, replace(FILTERED, rows={"run": (0, 1500)})) == [run]
    first, second = segments(run, replace(FILTERED, rows={"run": (500, 4000)}))
    assert len(first.time) == 1500
    assert len(second.time) == 2000


def test_gaps_that_leave_nothing(tmp_path):
    """A recording in pieces of a few rows is refused in one line."""
    run = recording(arm(tmp_path), seconds=2.0)
    kept = np.arange(len(run.time)) % 100 < 50
    pieces = replace(
        run,
        time=run.time[kept],
        position=run.position[kept],
        velocity=run.velocity[kept],
        effort=run.effort[kept],
    )
    with pytest.raises(TooShortError, match="between its 9 gaps, at most 50 consecutive rows"):
        segments(pieces, FILTERED)


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("late", [-0.02, 0.0, 0.02])
def test_the_sign_of_a_delay(tmp_path, late):
    """Torques that are late are states that come early: a delay below zero; without one, none is found."""
    model = arm(tmp_path)
    run = recording(model, noise=0.1)
    shifted = [np.interp(run.time - late, run.time, column) for column in run.effort.T]
    choice = identification(model, [replace(run, effort=np.stack(shifted, axis=1))]).choice[0]
    assert choice.delay == pytest.approx(-late, abs=0.003)


def test_noise_after_the_torque_filter(tmp_path):
    """The residual of the true model is noise: it was called slow (95 %), since the filter had left no high frequencies."""
    model = arm(tmp_path)
    scored = identification(model, [recording(model, noise=0.5)]).fit("weighted")
    for shares in explain(scored.motions["train"][0], scored.predictions["train"][0]):
        assert shares["noise"] > 0.8
        assert shares["slow"] < 0.1


def test_repeated_motion_is_held_out_as_a_whole(tmp_path):
    """Two periods of a motion: a block of rows holds the same phases of both, else what is held out was also fitted."""
    run = recording(arm(tmp_path), seconds=20.0)
    motion = motion_of(run, FILTERED)
    blocks = time_blocks(motion, 5)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(motion.time)))
    first = motion.time[blocks[0]]
    assert {float(np.floor(time / 10.0)) for time in first} == {0.0, 1.0}
    assert np.ptp(first % 10.0) < 2.1
    once = motion_of(recording(arm(tmp_path), seconds=10.0), FILTERED)
    assert [np.ptp(block) + 1 == len(block) for block in time_blocks(once, 5)] == [True] * 5


@pytest.mark.ci
def test_units_of_a_slide(tmp_path):
    """A prismatic joint among revolute ones has N and kg; its file said N m and kg m²."""
    small_robot(tmp_path)
    model = load_arm(tmp_path / "small.urdf", SMALL)
    run = recording(model, noise=0.05)
    scale = np.array([1.0, 1.0, 0.06])
    states = [scale * part for part in motion(10.0)[1:]]
    effort = model.inverse_dynamics(*states) + linear_friction(*states[1:])
    run = replace(run, position=states[0], velocity=states[1], effort=effort)
    scored = identification(model, [run], replace(FILTERED, moving=0.01, every=20)).fit("full")
    machine = scored.fit.machine
    actuators = [torque_actuator(units) for units in machine.units("rotary").values()]
    files = joint_drives(scored.fit, actuators, Runs("as given", ("run",)), scored.errors)
    units = [{name: one.unit for name, one in files[joint].stated.items()} for joint in SMALL]
    assert [found["armature"] for found in units] == ["kg m^2", "kg m^2", "kg"]
    assert [found["friction_base"] for found in units] == ["N m", "N m", "N"]


def test_the_quieter_of_positions_and_measured_velocities_is_used(tmp_path):
    """Drives report differences of coarse positions: an arm came out at 1.4 % error with these, 0.9 % from its positions."""
    model = arm(tmp_path)
    run = recording(model, noise=0.1)
    rate = (len(run.time) - 1) / run.time[-1]
    noise = np.random.default_rng(0).normal(size=run.position.shape)
    coarse = replace(run, velocity=run.velocity + 0.03 * noise, position=run.position + 3e-5 * noise)
    width, reason = _bandwidth([coarse], rate)
    assert width.order == 2
    assert "from positions" in reason
    assert _bandwidth([replace(run, position=run.position + 3e-3 * noise)], rate)[1] == ""
    plain, from_positions = (
        motion_of(coarse, replace(FILTERED, velocity=velocity)) for velocity in ("measured", "differentiated")
    )
    exact = motion_of(run, FILTERED).states.acceleration
    errors = [np.std(found.states.acceleration - exact) for found in (plain, from_positions)]
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.ci
def test_friction_that_a_larger_effect_hides_is_found(tmp_path):
    """Stribeck friction gained less than the threshold while load-dependent friction of 30 % was not yet in the model."""
    model = arm(tmp_path)
    run = recording(model, noise=0.1, friction=lambda velocity, acceleration: 0.0 * velocity)
    sign = np.sign(run.velocity)
    extra = 0.3 * np.abs(run.effort) + 0.3 * np.exp(-np.abs(run.velocity) / 0.1)
    found = identification(model, [replace(run, effort=run.effort + sign * extra)])
    assert found.choice[0].law.name == "m4"
    assert found.choice[1]["stribeck"] == 1.0
