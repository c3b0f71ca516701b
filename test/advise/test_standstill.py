"""Dead bands from stops: of simulated joints, and of an SO-101 in kinds of motion that were left out."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from sticking import Joint, moved
from stribeck.advise.rest import RestAdvice
from stribeck.cli.main import main
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.standstill import Standstill, standstill_of, stops_of
from stribeck.identify.robot.tree import load_tree

DATA = Path(os.environ.get("STRIBECK_DATA", "../shared/data")) / "so101"
needs_so101 = pytest.mark.skipif(not DATA.exists(), reason="the recordings of the SO-101 are not here")

MASS, LENGTH, DT, COUNT = 0.3, 0.12, 0.02, 2 * np.pi / 4096
LINK = f"""<mujoco><compiler angle="radian"/><worldbody><body><joint name="lift" axis="0 -1 0" range="-2 2"/>
<inertial pos="0 0 {-LENGTH}" mass="{MASS}" diaginertia="1e-5 1e-5 1e-5"/></body></worldbody></mujoco>"""


def stepped(joint, count, seed, runs=10, steps=5):
    """Runs of random steps that rest for 0.8 s, of ``count`` joints at once: goals and positions (count, runs, rows)."""
    rng, rows = np.random.default_rng(seed), round(0.8 / DT)
    goals = np.repeat(rng.uniform(-1.2, 1.2, (count, runs * steps)), rows, axis=1)
    inner = round(DT / 1e-3)
    paths = moved(
        joint,
        np.repeat(goals.T, inner, axis=0),
        dt=1e-3,
        load=lambda q: -MASS * 9.81 * LENGTH * np.sin(q),
        every=inner,
    ).T
    noise = rng.normal(0.0, 0.3 * COUNT, paths.shape)
    measured = np.round((paths + noise) / COUNT) * COUNT
    return goals.reshape(count, runs, -1), measured.reshape(count, runs, -1)


def runs_of(goals, positions):
    return [
        RobotRun(Path(f"{k}"), DT, goal[:, None], position[:, None], None, None)
        for k, (goal, position) in enumerate(zip(goals, positions, strict=True))
    ]


def measured_half(stops, known):
    """Half of the dead band that stops show, with compliance and offset of others [rad]."""
    return np.median([s.direction * (s.error - known.offset - known.compliance * s.holding) for s in stops])


@pytest.mark.slow
def test_dead_bands_of_simulated_joints_are_found_with_their_intervals(tmp_path):
    """Each within 15 % of 2 F / K; at least 90 % of the intervals hold it; the compliance is 1 / K within 15 %."""
    joint, count = Joint(damping=0.9), 40
    (tmp_path / "arm.xml").write_text(LINK)
    tree = load_tree(tmp_path / "arm.xml")
    true, inside = joint.kinetic / joint.stiffness, 0
    for goals, positions in zip(*stepped(joint, count, 3), strict=True):
        found = standstill_of("lift", stops_of(runs_of(goals, positions), tree, [0]))
        assert found.half == pytest.approx(true, rel=0.15)
        assert found.compliance == pytest.approx(1.0 / joint.stiffness, rel=0.15)
        inside += found.half_interval[0] - 0.5 * COUNT <= true <= found.half_interval[1] + 0.5 * COUNT
    assert inside >= 0.9 * count


@pytest.mark.slow
@needs_so101
def test_the_dead_bands_of_an_so101_are_those_of_motions_left_out():
    """Of 44 pairs of joint and kind of motion with five stops or more, 95 % within 30 % of what the other kinds predict."""
    tree = load_tree(DATA / "model" / "so101_new_calib.xml")
    runs = read_runs([DATA], tree, ["gripper"])
    stops, ratios = stops_of(runs, tree, range(5)), []
    for joint in range(5):
        own = [stop for stop in stops if stop.joint == joint]
        for run in sorted({stop.run for stop in own}):
            held_out = [stop for stop in own if stop.run == run]
            if len(held_out) < 5:
                continue
            known = standstill_of("", [stop for stop in own if stop.run != run])
            ratios.append(known.half / measured_half(held_out, known))
    ratios = np.array(ratios)
    assert len(ratios) >= 40
    assert np.mean(np.abs(ratios - 1.0) < 0.3) >= 0.95
    assert np.median(np.abs(ratios - 1.0)) < 0.1


@needs_so101
def test_advise_prints_and_writes_what_the_recordings_say(tmp_path, capsys):
    """Standstill of five joints as table, JSON and page."""
    words = ["--model", str(DATA / "model/so101_new_calib.xml"), "--exclude", "gripper"]
    runs = [
        str(DATA / f"{name}.npz") for name in ("repetitive_motion", "reaching_points", "symmetric_motion")
    ]
    output = ["--json", str(tmp_path / "a.json"), "--report", str(tmp_path / "a.html")]
    assert main(["advise", *runs, *words, *output]) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert set(found["standstill"]) == {
        "shoulder_pan",
        "shoulder_lift",
        "elbow_flex",
        "wrist_flex",
        "wrist_roll",
    }
    assert 0.05 < found["standstill"]["elbow_flex"]["dead_band"] < 0.1
    elbow = found["standstill"]["elbow_flex"]
    assert elbow["error"] == pytest.approx(
        0.5 * elbow["dead_band"] + elbow["compliance"] * abs(elbow["load"])
    )
    assert elbow["compliance_interval"][0] < elbow["compliance"] < elbow["compliance_interval"][1]
    said = capsys.readouterr().out
    assert "dead band [mrad]" in said
    assert "elbow_flex: raise the gain to" in said
    assert "show neither the gain at which the joint hunts" in said
    assert "Joints at rest in the recordings" in (tmp_path / "a.html").read_text()


def test_advice_from_rest_by_hand():
    """A band of ± 20 mrad and 30 mrad/(N m) at 0.5 N m: 35 mrad at most, 3.5 times the gain for 10 mrad, offsets leave 5.5 mrad."""
    standstill = Standstill("lift", 0.02, 0.03, 0.0, (0.018, 0.022), (0.02, 0.04), 30, 1e-3)
    advice = RestAdvice(standstill, load=-0.5, tolerance=0.01)
    assert (advice.sag, advice.error, advice.factor) == pytest.approx((0.015, 0.035, 3.5))
    assert advice.with_offsets == pytest.approx(0.2 * 0.02 + 0.1 * 0.015)
    assert advice.text.startswith("raise the gain to 3.5 times that of the recordings")
    assert advice.text.endswith("reduces the error at rest from 35 to 5.5 mrad")
    assert "from 16 to 56" in RestAdvice(standstill, 0.5, 0.01, kp=16.0).text
    assert RestAdvice(standstill, 0.0, 0.03).text == "no change needed: the error at rest is at most 20 mrad"


def test_what_advice_needs_is_said_in_one_line(tmp_path, capsys):
    """Neither file nor recordings, recordings without a model, unknown settings."""
    for words, parts in (
        ([], ["--params", "--model"]),
        ([str(tmp_path)], ["--model"]),
        (["--params", "x.json", "--set", "speed=1"], ["tolerance"]),
    ):
        assert main(["advise", *words]) == 1
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1
        assert all(part in said for part in parts)
