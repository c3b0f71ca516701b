"""Recordings of arms as they are: rest after the motion, gaps, single values that are missing."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from moving_arms import NEAR, RATE, arm, linear_friction, low_pass, motion, protocol, recording
from stribeck.dynamics.identify import Identification
from stribeck.dynamics.motion import motion_of, segments
from stribeck.dynamics.recordings import ArmRecording
from stribeck.dynamics.regressor import machine_of
from stribeck.dynamics.survey.machine import _bandwidth
from stribeck.errors import TooShortError
from stribeck.io.identification_config import IdentificationConfig, RecordingFormat

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
    with pytest.raises(TooShortError, match="9 gaps leave at most 50 rows in a row"):
        segments(pieces, FILTERED)


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
