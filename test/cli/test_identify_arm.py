"""`stribeck identify-arm` from the command line: files in, files out, one line for what cannot be."""

import json

import numpy as np
import pytest

from bags import Bag, joint_state
from moving_arms import FRICTION, JOINTS, ROBOT, motion, saved_arm, urdf
from stribeck.cli.compensation_file import write_compensation
from stribeck.cli.main import main
from stribeck.files.drives import read_drive
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import load_arm
from stribeck.live.direction.motion import Tuning
from stribeck.live.parameters import CompensationParameters, GuardParameters
from stribeck.live.setup import compensated_joints, compensator_of, learning_of
from stribeck.model.verdict import Reason, Verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot file, a URDF that is wrong, and two runs of the true arm."""
    folder = tmp_path_factory.mktemp("robot")
    saved_arm(folder)
    return folder


def identify(folder, *words, data="train.csv"):
    return main(
        [
            "identify-arm",
            "--config",
            str(folder / "robot.yaml"),
            "--data",
            str(folder / data),
            "--quiet",
            *words,
        ]
    )


def test_all_fits_to_files(folder, tmp_path, capsys):
    """Errors by set, row and joint; a URDF and parameter files that other verbs and the node read; pictures."""
    out = tmp_path / "out"
    words = [
        "--validate",
        str(folder / "other.csv"),
        "--output",
        str(out),
        "--json",
        str(tmp_path / "f.json"),
    ]
    assert identify(folder, *words, "--plots", str(tmp_path / "plots")) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["schema"] == 1
    assert list(found["fits"]) == ["ols", "asymmetric", "weighted", "consistent", "full"]
    for fit in found["fits"].values():
        assert fit["parameters"] == {name: one["value"] for name, one in fit["estimates"].items()}
        assert all(one["unit"] and one["status"] for one in fit["estimates"].values())
        for part in ("train", "validation"):
            for rows in ("moving", "every_row"):
                assert len(fit[part][rows]["per_joint"]) == 3
                assert 0.0 < fit[part][rows]["all"] < 0.05
    assert (
        len(found["base_parameters"]) == 15 + 3 * 4 - 2
    )  # rotors of the first two joints turn with the links
    new = load_arm(out / "little.urdf", JOINTS)
    assert (consistency(new.inertials.reshape(-1, 10)) > 0.0).all()
    for joint, coulomb in zip(JOINTS, (3.0, 2.0, 1.0), strict=True):
        file = read_drive(out / "little.json", joint=joint)
        assert file.actuator.name == "torque_joint"
        budget = file.values["friction_base"]
        assert budget == pytest.approx(coulomb, rel=0.15)
        lower, upper = file.intervals["friction_base"]
        assert lower < budget < upper
    pictures = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"errors.png", "friction.png", "torque_train_train.png", "torque_validation_other.png"} <= pictures
    told = capsys.readouterr().out
    assert "relative error of torque [%], rows with motion" in told
    assert str(out / "little.urdf") in told
    assert f"ros2 launch stribeck compensate.launch.py params_file:={out / 'compensation.yaml'}" in told
    compensated(out, tmp_path)


def compensated(out, folder):
    """The parameters beside the files load as they are, in the node, its guard and `stribeck compensate`."""
    path = out / "compensation.yaml"
    parameters = CompensationParameters.read(path, "compensation")
    assert GuardParameters.read(path, "guard").joints == list(JOINTS)
    joints = compensated_joints(parameters)
    fastest = np.max([np.abs(motion(seed=seed)[2]).max(axis=0) for seed in (0, 5)], axis=0)
    friction = np.array(FRICTION["friction_base"]) + np.array(FRICTION["friction_viscous"]) * fastest
    limits = [joint.model.max_torque for joint in joints]
    assert limits == pytest.approx((1.3 * friction).tolist(), rel=0.05)  # far below the 60 N m of the URDF
    assert all(joint.model.enabled for joint in joints)
    learning = learning_of(parameters, joints)
    assert learning.dynamics is not None
    assert compensator_of(parameters, joints, learning.dynamics).names == JOINTS
    time, position, velocity, _ = motion(2.0, seed=3)
    recorded = Bag()
    for k, stamp in enumerate(time):
        state = joint_state(1.0 + stamp, list(JOINTS), position[k], velocity[k])
        state.effort = np.zeros(3)
        recorded.add(1.0 + stamp, "/joint_states", state)
    words = ["--states", str(recorded.write(folder / "bag")), "--json", str(folder / "c.json")]
    assert main(["compensate", "--config", str(path), *words]) == 0
    summary = json.loads((folder / "c.json").read_text())
    assert [entry["joint"] for entry in summary["joints"]] == list(JOINTS)
    assert all(entry["largest"] > 0.1 for entry in summary["joints"])


def test_parameters_that_were_changed_by_hand_are_kept(tmp_path, capsys):
    """Beside the new ones, with a number; equal ones are not written twice."""
    path = tmp_path / "compensation.yaml"
    words = {"joints": ["base"], "drives": tmp_path / "arm.json", "urdf": None, "rate": 100.0}
    words |= {
        "limits": np.array([60.0]),
        "tunings": [Tuning()],
        "verdict": Verdict(),
        "units": ["rad"],
        "command": "identify-arm",
    }
    write_compensation(path, **words)
    write_compensation(path, **words)
    assert capsys.readouterr().err == ""
    assert list(tmp_path.iterdir()) == [path]
    path.write_text(path.read_text().replace("gain: 0.4", "gain: 0.9"))
    write_compensation(path, **words)
    kept = tmp_path / "compensation_001.yaml"
    assert f"compensation.yaml already existed; the old file is now {kept}" in capsys.readouterr().err
    assert "gain: 0.9" in kept.read_text()
    assert "gain: 0.4" in path.read_text()


def test_joints_that_may_not_be_used_are_off_and_limits_follow_the_friction(tmp_path):
    """1.3 times the friction, at most the effort limit, at least a thousandth of it; reasons on the whole switch no joint off."""
    path, joints = tmp_path / "compensation.yaml", ["a", "b", "c", "d"]
    reasons = (
        Reason("friction_unknown", "doubtful", "b: not determined", "b"),
        Reason("implausible", "unusable", "c: too large", "c"),
        Reason("no_rotor_inertia", "doubtful", "d: zero", "d"),
        Reason("effort_unit", "unusable", "all"),
    )
    write_compensation(
        path,
        joints,
        tmp_path / "arm.json",
        None,
        np.array([330.0, 20.0, 10.0, 50.0]),
        [Tuning()] * 4,
        100.0,
        ["rad"] * 4,
        Verdict(reasons, tuple(joints)),
        "identify arm",
        friction=np.array([30.0, 18.0, 0.0, 10.0]),
    )
    read = CompensationParameters.read(path, "compensation").by_joint
    assert [read[name].enabled for name in joints] == [True, False, False, True]
    assert [read[name].max_torque for name in joints] == [39.0, 20.0, 0.01, 13.0]
    assert "1.3 times the largest identified friction" in path.read_text()


@pytest.mark.ci
def test_a_new_urdf_predicts_better(folder, tmp_path):
    """Torques of the rigid arm, by the URDF that came out and the one that went in, against the truth."""
    assert identify(folder, "--fits", "consistent", "--output", str(tmp_path)) == 0
    _, *states = motion(2.0, seed=9)
    (tmp_path / "true").mkdir()
    truth, given, new = (
        load_arm(path, JOINTS).inverse_dynamics(*states)
        for path in (urdf(tmp_path / "true"), folder / "arm.urdf", tmp_path / "little.urdf")
    )
    # offsets and gravity of the first joint cannot be told apart; the rest can
    errors = [np.linalg.norm((found - truth)[:, 1:]) for found in (given, new)]
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fits", "consistent", "--json", "{folder}/train.csv"], "is also an input"),
        (["--urdf", "{folder}/none.urdf"], "no such file"),
        (["--validate", "{folder}/none.csv"], "no such file"),
    ],
)
def test_what_cannot_be(folder, words, said, capsys):
    """Exit code 1, one line on stderr, nothing lost."""
    before = (folder / "train.csv").read_bytes()
    assert identify(folder, *(word.format(folder=folder) for word in words)) == 1
    told = capsys.readouterr().err
    assert told.startswith("stribeck: ")
    assert said in told
    assert told.count("\n") == 1
    assert (folder / "train.csv").read_bytes() == before


def test_base_parameters_are_printed(folder, capsys):
    """As expressions, with values and the condition number."""
    assert identify(folder, "--fits", "ols", "--base-parameters") == 0
    told = capsys.readouterr().out
    assert "condition number" in told
    assert "mx_shoulder + 0.3*m_elbow" in told


def test_unknown_machines_are_named_with_those_there_are(capsys):
    assert main(["identify-arm", "--config", "r2d2", "--data", "x.csv"]) == 1
    assert "unknown robot 'r2d2'; valid: emps, " in capsys.readouterr().err


def test_a_machine_without_urdf_leaves_consistent_out(folder, tmp_path, capsys):
    """Left out when nobody asks for it, refused when somebody does."""
    lines = [line for line in ROBOT.splitlines() if not line.startswith("urdf")]
    (tmp_path / "robot.yaml").write_text("\n".join(lines))
    words = [
        "identify-arm",
        "--config",
        str(tmp_path / "robot.yaml"),
        "--data",
        str(folder / "train.csv"),
        "--quiet",
    ]
    assert main([*words, "--fits", "consistent"]) == 1
    assert "names none" in capsys.readouterr().err
    assert main([*words, "--fits", "ols,weighted", "--json", str(tmp_path / "f.json")]) == 0
    assert list(json.loads((tmp_path / "f.json").read_text())["fits"]) == ["ols", "weighted"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda table: table * np.repeat([1.0, 60.0, 60.0, 1.0], [1, 3, 3, 3]), "that of the motor"),
        (lambda table: table * np.repeat([1.0, 1.0, 1.0, 1e-2], [1, 3, 3, 3]), "torques of the motor"),
        (lambda table: table * np.repeat([1.0, 1.0, 1.0, 1e3], [1, 3, 3, 3]), "N mm, or a current"),
    ],
    ids=["positions", "motor torques", "N mm"],
)
def test_units_that_the_urdf_gives_away(folder, tmp_path, spoil, said, capsys):
    """Another side of the gears, or other units."""
    table = np.loadtxt(folder / "train.csv", delimiter=",")
    np.savetxt(folder / "spoilt.csv", spoil(table), delimiter=",")
    assert identify(folder, data="spoilt.csv") == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.slow
def test_the_verdict_decides_the_exit_code_if_that_is_asked_for(folder, tmp_path, capsys):
    """In words, in the summary, and with --strict by exit code 2; a sound fit passes."""
    summary = tmp_path / "f.json"
    words = ["--fits", "ols,consistent", "--json", str(summary)]
    assert identify(folder, *words, "--strict") == 0
    assert json.loads(summary.read_text())["verdict"] == "usable"
    table = np.loadtxt(folder / "train.csv", delimiter=",")
    np.savetxt(folder / "flipped.csv", table * np.repeat([1.0, 1.0, -1.0], [7, 2, 1]), delimiter=",")
    assert identify(folder, *words, data="flipped.csv") == 0
    found = json.loads(summary.read_text())
    assert found["verdict"] == "unusable"
    assert "effort_sign" in [reason["key"] for reason in found["reasons"]]
    assert "verdict: unusable" in capsys.readouterr().out
    assert identify(folder, *words, "--strict", data="flipped.csv") == 2
