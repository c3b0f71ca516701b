"""`stribeck setup-robot`: a machine's file from a URDF and recordings, and what `identify-arm` does with it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml

from helpers import DATA
from moving_arms import JOINTS, RATE, arm, recording, urdf
from stribeck.cli.main import main
from stribeck.files.robots import example_robots, read_robot
from stribeck.identify.arm.config import identification_config
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.recordings import read_arm_recordings
from stribeck.identify.arm.signals import ZeroPhase
from stribeck.recordings.bags.messages import JOINT_STATES, RawMessage, Topic, joint_state
from stribeck.recordings.bags.storage import write_messages

UR10 = DATA / "ur10_bag"


def write_bag(path, run, *, extra=(), factors=(1.0, 1.0, 1.0), topic=JOINT_STATES):
    """Joint states of a run, in another order than the URDF's, with joints that stand still.

    :param factors: of positions, velocities and efforts, (n,) or numbers; NaN for what is not reported.
    """
    names = [*extra, *run.joints[::-1]]
    parts = [
        factor * part for factor, part in zip(factors, (run.position, run.velocity, run.effort), strict=True)
    ]
    messages = []
    for k, time in enumerate(run.time):
        stamp = round(1e9 * (100.0 + time))
        states = [[*[0.3] * len(extra), *part[k, ::-1]] for part in parts]
        messages.append(RawMessage(topic, stamp, joint_state(stamp, names, *states)))
    write_messages(path, [topic], messages)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the true arm with torque noise and 16-bit encoders."""
    run = recording(arm(tmp_path_factory.mktemp("true")), noise=0.1)
    quantum = 2.0 * np.pi / 65536
    run.position[:] = quantum * np.round(run.position / quantum)
    return run


def set_up(folder, *words):
    return main(
        ["setup-robot", "--urdf", str(folder / "arm.urdf"), "--output", str(folder / "m.yaml"), *words]
    )


def test_a_complete_file_from_urdf_and_bag(run, tmp_path, capsys):
    """Joints in the order of the URDF, gripper and mimic joints left out with a word, filters and thresholds in range."""
    urdf(tmp_path, mass=2.6)
    write_bag(tmp_path / "bag", run, extra=["finger"])
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 0
    text = (tmp_path / "m.yaml").read_text()
    content = yaml.safe_load(text)
    assert content["joints"] == list(JOINTS)
    protocol = content["identification"]["protocol"]
    assert 5.0 <= protocol["position_filter"]["cutoff"] <= 30.0  # the motion has five harmonics up to 0.5 Hz
    assert 0.001 < protocol["moving"] < 0.2
    assert protocol["rest"] < protocol["moving"]
    told = capsys.readouterr()
    assert "finger is ignored: the URDF has no such joint" in told.err
    assert "# " in text.split("joints:")[0].splitlines()[-1]


@pytest.mark.slow
def test_identify_arm_without_a_machine_file(run, tmp_path, capsys):
    """The file is written as by setup-robot, its place is said, and a second run leaves one file."""
    urdf(tmp_path, mass=2.6)
    write_bag(tmp_path / "bag", run, factors=(1.0, np.nan, 1.0))
    words = ["identify-arm", "--urdf", str(tmp_path / "arm.urdf"), "--data", str(tmp_path / "bag"), "--quiet"]
    words += ["--output", str(tmp_path / "out"), "--json", str(tmp_path / "f.json"), "--fits", "consistent"]
    assert main(words) == 0
    assert str(tmp_path / "out" / "machine.yaml") in capsys.readouterr().out
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["fits"]["consistent"]["train"]["moving"]["all"] < 0.08
    assert main(words) == 0
    assert [path.name for path in (tmp_path / "out").glob("machine*")] == ["machine.yaml"]


def test_neither_machine_nor_urdf(tmp_path, capsys):
    assert main(["identify-arm", "--data", str(tmp_path)]) == 1
    assert "--machine or --model is needed" in capsys.readouterr().err


def test_an_edited_file_is_kept(run, tmp_path, capsys):
    """An older file with other content gets another name."""
    urdf(tmp_path)
    write_bag(tmp_path / "bag", run)
    (tmp_path / "m.yaml").write_text("by hand\n")
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 0
    assert (tmp_path / "m_001.yaml").read_text() == "by hand\n"
    assert "m_001.yaml" in capsys.readouterr().out


def test_other_joints_are_listed(run, tmp_path, capsys):
    """One line that names the joints of the URDF and of the recording."""
    urdf(tmp_path)
    write_bag(tmp_path / "bag", run)
    text = (tmp_path / "arm.urdf").read_text()
    for name in JOINTS:
        text = text.replace(f'joint name="{name}"', f'joint name="left_{name}"')
    (tmp_path / "arm.urdf").write_text(text)
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "left_elbow" in told
    assert "elbow, shoulder, base" in told


MIRRORED = np.array([1.0, -1.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factors", "sources"),
    [
        ((180.0 / np.pi, 1.0, 1.0), ({"unit": "deg"}, {"unit": "rad/s"}, {"unit": "N m"})),
        ((1.0, 30.0 / np.pi, 1e3), ({"unit": "rad"}, {"unit": "rpm"}, {"unit": "mN m"})),
        (
            (MIRRORED, MIRRORED, MIRRORED),
            (
                {"unit": "rad", "sign": [1, -1, 1]},
                {"unit": "rad/s", "sign": [1, -1, 1]},
                {"unit": "N m", "sign": [1, -1, 1]},
            ),
        ),
        ((1.0, 1.0, -1.0), ({"unit": "rad"}, {"unit": "rad/s"}, {"unit": "N m", "sign": [-1, -1, -1]})),
    ],
    ids=["degrees", "rpm and mN m", "a mirrored joint", "efforts against motion"],
)
def test_units_and_signs(run, tmp_path, factors, sources):
    """What the reader makes of the file is the motion in SI units and in the directions of the URDF."""
    urdf(tmp_path)
    write_bag(tmp_path / "bag", run, factors=factors)
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 0
    robot = read_robot(str(tmp_path / "m.yaml"))
    found = robot.section("identification")["recording"]
    assert (found["position"], found["velocity"], found["effort"]) == sources
    (read,) = read_arm_recordings(
        [tmp_path / "bag"], identification_config(robot).recording, JOINTS, "rotary"
    )
    for name in ("position", "velocity", "effort"):
        assert np.allclose(getattr(read, name), getattr(run, name))


def test_currents_need_drive_gains(run, tmp_path, capsys):
    """The gain is a TODO with a hint; identify-arm refuses it in one line that names the key, and takes the list."""
    urdf(tmp_path)
    gains = np.array([20.0, 15.0, 10.0])
    write_bag(tmp_path / "bag", run, factors=(1.0, 1.0, 1.0 / gains))
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 0
    assert "enter the values of identification.recording.effort.scale" in capsys.readouterr().out
    text = (tmp_path / "m.yaml").read_text()
    hint = re.search(r"masses of the URDF: \[([^]]*)\]", text.replace("\n    # ", " "))
    assert [float(word) for word in hint[1].split(",")][1:] == pytest.approx(gains[1:].tolist(), rel=0.1)
    words = [
        "identify-arm",
        "--config",
        str(tmp_path / "m.yaml"),
        "--data",
        str(tmp_path / "bag"),
        "--fits",
        "ols",
    ]
    assert main(words) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "identification: recording: effort: scale is still TODO" in told
    (tmp_path / "m.yaml").write_text(text.replace("TODO", str(gains.tolist())))
    assert main(words) == 0


def test_joint_states_on_another_topic(run, tmp_path):
    """The topic with the joints of the URDF is found, and stands in the file."""
    urdf(tmp_path)
    write_bag(tmp_path / "bag", run, topic=Topic("/robot/states", JOINT_STATES.type))
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 0
    words = [
        "identify-arm",
        "--config",
        str(tmp_path / "m.yaml"),
        "--data",
        str(tmp_path / "bag"),
        "--fits",
        "ols",
    ]
    assert main(words) == 0


@pytest.mark.slow
def test_a_driver_without_velocities_reports_zeros(run, tmp_path):
    """Velocities of zero count as not measured."""
    urdf(tmp_path)
    write_bag(tmp_path / "bag", run, factors=(1.0, 0.0, 1.0))
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 0
    robot = read_robot(str(tmp_path / "m.yaml"))
    (read,) = read_arm_recordings(
        [tmp_path / "bag"], identification_config(robot).recording, JOINTS, "rotary"
    )
    assert read.velocity is None


def test_torques_that_were_filtered_before(run, tmp_path):
    """The cut-off is that of the driver's filter, so that predicted friction is smoothed as the measured one was."""
    urdf(tmp_path)
    effort = ZeroPhase(4, 3.0)(run.effort, RATE)
    write_bag(tmp_path / "bag", replace(run, effort=effort))
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 0
    robot = read_robot(str(tmp_path / "m.yaml"))
    assert 2.5 < robot.section("identification")["protocol"]["effort_filter"]["cutoff"] < 5.0
    assert "torques were filtered before" in (tmp_path / "m.yaml").read_text().replace("\n    # ", " ")


@pytest.mark.slow
def test_the_last_third_is_held_out(run, tmp_path, capsys):
    """Without a machine's file and without recordings for validation; --hold-out 0 fits everything."""
    urdf(tmp_path)
    write_bag(tmp_path / "bag", run)
    words = [
        "identify-arm",
        "--urdf",
        str(tmp_path / "arm.urdf"),
        "--data",
        str(tmp_path / "bag"),
        "--fits",
        "ols",
    ]
    words += ["--quiet", "--output", str(tmp_path / "out"), "--json", str(tmp_path / "f.json")]
    assert main(words) == 0
    (scores,) = json.loads((tmp_path / "f.json").read_text())["fits"].values()
    assert scores["validation"]["moving"]["all"] < 0.2
    assert main([*words, "--hold-out", "0"]) == 0
    (scores,) = json.loads((tmp_path / "f.json").read_text())["fits"].values()
    assert "validation" not in scores
    assert main([*words, "--hold-out", "1"]) == 1
    assert "at least 0 and less than 1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not UR10.is_dir(), reason="the recording of the UR10 is not here")
def test_a_real_bag_and_a_stock_urdf(tmp_path, capsys):
    """A UR10 of which nothing else is known: a model with a verdict, whose error on the last third is small."""
    (path,) = example_robots("ur10_robot.urdf")
    words = ["identify-arm", "--urdf", str(path), "--data", str(UR10), "--output", str(tmp_path), "--quiet"]
    assert main([*words, "--json", str(tmp_path / "f.json")]) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    errors = {name: fit["validation"]["moving"]["all"] for name, fit in found["fits"].items()}
    assert errors["full"] < 0.035
    assert errors["full"] < 0.5 * errors["ols"]
    assert "verdict: " in capsys.readouterr().out
    new = load_arm(tmp_path / "ur10_robot.urdf", found["joints"])
    assert (consistency(new.inertials.reshape(-1, 10)) > 0.0).all()


@pytest.mark.parametrize("signal", ["position", "effort"])
def test_missing_samples_are_named(run, tmp_path, capsys, signal):
    """What happened: a traceback from a solver, for one NaN. What must happen: one line with the first row."""
    urdf(tmp_path)
    values = getattr(run, signal).copy()
    values[500, 1] = np.nan
    write_bag(tmp_path / "bag", replace(run, **{signal: values}))
    assert set_up(tmp_path, "--data", str(tmp_path / "bag")) == 1
    assert f"{signal} is missing or not finite in row 500" in capsys.readouterr().err
