"""`stribeck setup-robot`: a machine's file from a URDF and recordings, and what `identify-arm` does with it."""

import json

import numpy as np
import pytest
import yaml

from moving_arms import JOINTS, arm, recording, urdf
from stribeck.cli.main import main
from stribeck.io.messages import JOINT_STATES, RawMessage, joint_state
from stribeck.io.storage import write_messages


def write_bag(path, run, *, extra=(), scale=1.0, position=None, velocity=True):
    """Joint states of a run, in another order than the URDF's, with joints that stand still."""
    names = [*extra, *run.joints[::-1]]
    still = [0.3] * len(extra)
    position = run.position if position is None else position
    messages = []
    for k, time in enumerate(run.time):
        stamp = round(1e9 * (100.0 + time))
        states = [[*still, *part[k, ::-1]] for part in (position, run.velocity, scale * run.effort)]
        if not velocity:
            states[1] = [np.nan] * len(names)
        messages.append(RawMessage(JOINT_STATES, stamp, joint_state(stamp, names, *states)))
    write_messages(path, [JOINT_STATES], messages)
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
    assert "finger is left out: it does not exist in the URDF" in told.err
    assert "# " in text.split("joints:")[0].splitlines()[-1]


def test_identify_arm_without_a_machine_file(run, tmp_path, capsys):
    """The file is written as by setup-robot, its place is said, and a second run leaves one file."""
    urdf(tmp_path, mass=2.6)
    write_bag(tmp_path / "bag", run, velocity=False)
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
    assert "neither --config nor --urdf" in capsys.readouterr().err


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
