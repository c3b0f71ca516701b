"""Measured drive and backdrive torques: they are those of the true law, and shorten the intervals of a fit."""

import json

import numpy as np
import pytest

from stribeck.cli.main import main
from stribeck.errors import ConfigError
from stribeck.evaluate.diagram_update import updated
from stribeck.evaluate.measured_diagram import expected_friction, measured_points
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.model.estimate import Estimate
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.log import Setup
from stribeck.model.trajectories import BREAKAWAY, trajectory_named
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder, record

pytestmark = pytest.mark.slow

LOAD = ("load_friction_motor", "load_friction_external_stribeck")
"""Load terms of M5 that the published servo has."""


def truth(law):
    """The published XL330 without a mounting offset."""
    servo = load_actuator("xl330")
    return servo, law_named(law), {**servo.published[law], "q_offset": 0.0}


def recorded(law, seed, masses=(0.1, 0.2)):
    """Runs of the trajectory with an encoder of 12 bits and noise, without noise of other kinds."""
    servo, form, p = truth(law)
    encoder = Encoder(servo.resolution, noise=0.3 * servo.resolution)
    plays = [(Setup(mass, 0.1, 0.02, 5.0, 400.0), BREAKAWAY) for mass in masses]
    return record(servo, form, p, plays, encoder, np.random.default_rng(seed))


@pytest.mark.parametrize("law", ["m3", "m4", "m5"])
def test_measured_torques_cover_those_of_the_true_law(law):
    """95 % intervals hold the friction of the true law in 90 to 99 % of the snapshots, driven and backdriven, before and in
    motion; every load has both."""
    servo, form, p = truth(law)
    drive = Drive(servo, form, p)
    points = [point for seed in range(3) for point in measured_points(recorded(law, seed), drive)]
    far = np.array([(one.friction - expected_friction(one, drive, p)) / one.deviation for one in points])
    assert 0.90 <= np.mean(np.abs(far) < 1.96) <= 0.99
    for kind in ("drive", "backdrive"):
        at_rest = np.array([one.kind == kind and one.speed == 0.0 for one in points])
        assert at_rest.sum() >= 20
        assert abs(np.mean(far[at_rest])) < 1.0, "hardly any bias"
        assert sum(one.kind == kind and one.speed > 0.0 for one in points) > 100


def test_points_shorten_the_intervals_of_the_load_terms():
    """A fit with ± 30 % on all friction terms and a load term that is 20 % wrong: with the points the load terms are right within
    their intervals, which are at least three times as short."""
    servo, form, p = truth("m5")
    stated = {
        name: Estimate(p[name], "", "loosely determined", (0.7 * p[name], 1.3 * p[name]), 0.95, "")
        for name in form.parameter_names
    }
    wrong = {**p, LOAD[0]: 0.8 * p[LOAD[0]]}
    drive = Drive(servo, form, wrong, stated={name: one for name, one in stated.items() if name in p})
    logs = recorded("m5", 5)
    result = updated(drive, measured_points(logs, drive), logs)
    for name in LOAD:
        lower, upper = result.drive.stated[name].interval
        assert lower <= p[name] <= upper
        assert result.shorter[name] > 3.0
    assert result.drive.correlation is not None


def test_the_command_draws_points_and_writes_a_file(tmp_path, capsys):
    """Bags to a picture with points, and to a parameter file that other commands read."""
    servo, form, p = truth("m4")
    write_bag(tmp_path / "bag", recorded("m4", 1))
    stated = {
        name: Estimate(p[name], "N m", "determined", (0.9 * p[name], 1.1 * p[name]), 0.95, "")
        for name in LOAD4
    }
    write_drive(tmp_path / "m4.json", Drive(servo, form, p, stated=stated))
    words = ["evaluate", tmp_path / "bag", "--params", tmp_path / "m4.json", "--diagram", tmp_path / "d.png"]
    assert main([str(word) for word in (*words, "--output", tmp_path / "new.json")]) == 0
    said = capsys.readouterr().out
    assert "before motion, backdrive" in said
    assert "interval shorter by" in said
    assert (tmp_path / "d.png").stat().st_size > 10_000
    new = read_drive(tmp_path / "new.json")
    assert json.loads((tmp_path / "new.json").read_text())["model"] == "m4"
    assert new.intervals[LOAD4[0]][0] > stated[LOAD4[0]].interval[0]


LOAD4 = ("load_friction_base", "friction_viscous")


def test_without_snapshots_or_intervals_there_is_nothing_to_fit():
    """One line says what to record, or that the file has no intervals."""
    servo, form, p = truth("m4")
    with pytest.raises(ConfigError, match="breakaway"):
        updated(
            Drive(
                servo,
                form,
                p,
                stated={"friction_base": Estimate(1.0, "", "determined", (0.5, 1.5), 0.95, "")},
            ),
            [],
            [],
        )
    with pytest.raises(ConfigError, match="no intervals"):
        updated(Drive(servo, form, p), [], [])


def test_the_trajectory_is_slow_and_visits_several_loads():
    """Goals within the quarter turn, never faster than a bench allows, ending at its last place."""
    trajectory = trajectory_named("breakaway")
    time = np.linspace(0.0, trajectory.duration, 77501)
    goal = trajectory.goal(time)
    assert goal[0] == 0.0
    assert np.abs(np.diff(goal)).max() / 0.001 < 0.5
    assert 1.4 < goal.max() < 1.7
