"""``stribeck record --dry-run``: what is checked, said and drawn before hardware moves."""

import json

import pytest

from exciting import record_yaml, robot_yaml
from small_arm import URDF
from stribeck.cli import dry_run
from stribeck.cli.main import main

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install '.[fit]'")


def dry(capsys, config, *options):
    """Exit code, and what is said on both streams."""
    code = main(["record", str(config), "--dry-run", *map(str, options)])
    return code, *capsys.readouterr()


def test_limits_and_picture_without_a_bus(tmp_path, capsys):
    """The port does not exist and is not looked for; figures of each trajectory, and where the picture is."""
    config = record_yaml(tmp_path / "r.yaml", "/nowhere/servo", trajectories=("sin_sin", "up_and_down"))
    code, out, err = dry(capsys, config)
    assert (code, err) == (0, "")
    assert "no bus is opened, nothing moves" in out
    assert "-1.76 to 1.76" in out
    assert "limits: satisfied in all 2 motions" in out
    assert "self-collisions: not checked, because no URDF is given" in out
    picture = tmp_path / "bags" / "dry_run.png"
    assert f"picture: {picture}" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list((tmp_path / "bags").iterdir()) == [picture]


@pytest.mark.parametrize(
    ("joint", "said"),
    [
        ({"position_limits": [-1.0, 1.0]}, "would move from"),
        ({"limits": {"velocity": 1.0, "acceleration": 300.0}}, "rad/s, but its limit is 1 rad/s"),
        ({"limits": {"velocity": 20.0, "acceleration": 2.0}}, "but its limit is 2 rad/s²"),
    ],
)
def test_what_exceeds_a_limit_is_refused(tmp_path, capsys, joint, said):
    """Position, speed, acceleration: one line, exit code 1, no picture."""
    config = record_yaml(tmp_path / "r.yaml", "/nowhere/servo", joint=joint)
    code, _, err = dry(capsys, config)
    assert code == 1
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "bags").exists()


def test_a_load_beyond_the_stall_torque_is_said(tmp_path, capsys):
    """It is no error, as goals that cannot be followed saturate a servo on purpose."""
    heavy = {"bench": {"mass": 1.0, "length": 0.1, "arm_mass": 0.02}}
    code, _, err = dry(capsys, record_yaml(tmp_path / "r.yaml", "/nowhere/servo", joint=heavy))
    assert code == 0
    assert "more than the stall torque" in err
    assert "sin_sin (j1)" in err


def test_other_options_without_a_dry_run_are_refused(tmp_path, capsys):
    """Before anything is opened."""
    config = record_yaml(tmp_path / "r.yaml", "/nowhere/servo")
    assert main(["record", str(config), "--model", "arm.urdf"]) == 1
    assert "--dry-run" in capsys.readouterr().err


def arm_session(folder, *, center, scale, joints=("shoulder", "elbow")):
    """A session of the small arm, and its URDF."""
    path = robot_yaml(folder / "arm.yaml", len(joints))
    content = json.loads(path.read_text())
    found = zip(joints, content["joints"].values(), center, scale, strict=True)
    content["joints"] = {
        name: {**joint, "position_limits": [-2.6, 2.6], "center": middle, "scale": size}
        for name, joint, middle, size in found
    }
    path.write_text(json.dumps(content))
    urdf = folder / "small.urdf"
    urdf.write_text(URDF)
    return path, urdf


def test_self_collisions_and_torques_by_the_urdf(tmp_path, capsys):
    """A stretched arm collides with nothing; the torques of gravity are within the URDF's limits."""
    pytest.importorskip("coal", reason="collisions need coal: pip install '.[arm]'")
    config, urdf = arm_session(tmp_path, center=(0.0, 0.2), scale=(0.1, 0.1))
    code, out, err = dry(capsys, config, "--model", urdf)
    assert code == 0, err
    assert "torques computed from the URDF, sin_sin: shoulder" in out
    assert "of 30" in out
    assert "self-collisions: none at" in out


def test_an_arm_that_folds_onto_itself_is_refused(tmp_path, capsys):
    """Both joints swing to 2.3 rad: lower link and base meet; the links and the time are named."""
    pytest.importorskip("coal", reason="collisions need coal: pip install '.[arm]'")
    config, urdf = arm_session(tmp_path, center=(1.2, 1.2), scale=(0.5, 0.7))
    code, out, err = dry(capsys, config, "--model", urdf)
    assert code == 1
    assert "would collide" in err
    assert "s after the start" in err
    assert "self-collisions: none" not in out


def test_torques_beyond_the_urdf_are_refused(tmp_path, capsys):
    """The shoulder's limit of 30 N m becomes 3."""
    pytest.importorskip("coal", reason="collisions need coal: pip install '.[arm]'")
    config, urdf = arm_session(tmp_path, center=(0.0, 0.2), scale=(0.1, 0.1))
    urdf.write_text(URDF.replace('effort="30"', 'effort="3"'))
    code, _, err = dry(capsys, config, "--model", urdf)
    assert code == 1
    assert "more torque than the URDF allows for joint shoulder" in err


def test_joints_that_the_urdf_lacks_are_named(tmp_path, capsys):
    """Nothing is guessed from the order."""
    pytest.importorskip("coal", reason="collisions need coal: pip install '.[arm]'")
    config, urdf = arm_session(tmp_path, center=(0.0, 0.2), scale=(0.1, 0.1), joints=("shoulder", "wrist"))
    code, _, err = dry(capsys, config, "--model", urdf)
    assert code == 1
    assert "wrist" in err


def test_missing_packages_are_said_in_one_line(tmp_path, capsys, monkeypatch):
    """Without coal collisions are not checked, without matplotlib nothing is drawn; the limits are."""
    monkeypatch.setattr(dry_run, "find_spec", lambda _: None)
    config, urdf = arm_session(tmp_path, center=(0.0, 0.2), scale=(0.1, 0.1))
    code, out, _ = dry(capsys, config, "--model", urdf)
    assert code == 0
    assert (
        "self-collisions: not checked, because they need pinocchio and coal: pip install 'stribeck[arm]'"
        in out
    )
    assert "picture: not drawn, because matplotlib is not installed: pip install 'stribeck[fit]'" in out
    assert "limits: satisfied" in out
