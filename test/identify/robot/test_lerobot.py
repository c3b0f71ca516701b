"""LeRobot data sets by their folder: versions, units, episodes, times, and what is refused."""

import json
import os
import subprocess

import numpy as np
import pytest

import stribeck as sb
from helpers import refusal
from lerobot_made import RANGES, calibration, data_set, numbers
from stribeck.cli.main import main
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree
from swinging_leg import DT, goals, recorded, write_model

UNITS = ("degrees", "shares", "radians")
LEROBOT = "STRIBECK_LEROBOT"


@pytest.fixture(scope="module")
def leg(tmp_path_factory):
    """Model, and two episodes of positions and goals."""
    folder = tmp_path_factory.mktemp("leg")
    episodes = []
    for k, phase in enumerate((0.3, 0.9)):
        run = np.load(recorded(folder, f"run{k}", phase))
        episodes.append((run["dof_pos"], run["des_dof_pos"]))
    return write_model(folder), episodes


def arguments(unit, folder):
    """What has to be said about the unit of a data set."""
    return {
        "degrees": unit == "degrees",
        "calibration": calibration(folder / "arm.json") if unit == "shares" else None,
    }


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_data_set_is_read_by_its_folder_in_every_unit(leg, tmp_path, version, unit):
    """Degrees, shares of the range and radians are the same positions and goals, in each episode."""
    model, episodes = leg
    folder = data_set(tmp_path / "set", episodes, 1.0 / DT, unit, version=version)
    runs = read_runs([folder], load_tree(model), **arguments(unit, tmp_path))
    assert [run.name for run in runs] == ["set-episode-0", "set-episode-1"]
    for run, (position, goal) in zip(runs, episodes, strict=True):
        np.testing.assert_allclose(run.position, position, atol=3e-7)
        np.testing.assert_allclose(run.goal, goal, atol=3e-7)
        assert run.nominal
        assert run.dt == pytest.approx(DT, rel=1e-12)


@pytest.mark.slow
def test_the_friction_is_the_same_in_every_unit(leg, tmp_path):
    """To 1 %, each parameter of each joint."""
    model, episodes = leg
    found = {}
    for unit in UNITS:
        (tmp_path / unit).mkdir()
        folder = data_set(tmp_path / unit / "set", episodes, 1.0 / DT, unit)
        fit = sb.identify_robot(
            folder, model, polish=False, progress=False, **arguments(unit, tmp_path / unit)
        )
        found[unit] = {
            (joint, name): value
            for joint, drive in fit.drives.items()
            for name, value in drive.values.items()
        }
    for unit in UNITS[1:]:
        for key, value in found[unit].items():
            assert value == pytest.approx(found["degrees"][key], rel=0.01, abs=1e-9), (unit, key)


def test_columns_have_the_order_of_their_names(leg, tmp_path):
    """Joints are found by name, with the prefix and suffix of LeRobot, in whatever order."""
    model, episodes = leg
    swapped = [(position[:, ::-1], goal[:, ::-1]) for position, goal in episodes]
    folder = data_set(tmp_path / "set", swapped, 200.0, "radians", names=("main_knee", "main_hip"))
    np.testing.assert_allclose(read_runs([folder], load_tree(model))[0].position, episodes[0][0], atol=3e-7)


def test_a_folder_of_the_hub_is_its_newest_snapshot(leg, tmp_path):
    """``datasets--owner--name/snapshots/<commit>`` is found from above."""
    model, episodes = leg
    data_set(tmp_path / "datasets--me--leg/snapshots/0123", episodes[:1], 200.0, "radians")
    (run,) = read_runs([tmp_path / "datasets--me--leg"], load_tree(model))
    assert run.name == "0123-episode-0"


@pytest.mark.slow
def test_times_of_long_episodes_stay_counted(leg, tmp_path):
    """Ten minutes of float32 time stamps: rows are 5 ms apart to the last digit; npz files likewise."""
    model = leg[0]
    wanted = goals(120_000, 0.0) % 0.5
    folder = data_set(tmp_path / "set", [(np.roll(wanted, 4, axis=0), wanted)], 200.0, "radians")
    (run,) = read_runs([folder], load_tree(model))
    assert (run.nominal, run.dt) == (True, pytest.approx(DT, rel=1e-9))
    stamps = (np.arange(120_000) * DT).astype(np.float32)
    np.savez(tmp_path / "run.npz", time=stamps, dof_pos=np.roll(wanted, 4, axis=0), des_dof_pos=wanted)
    assert read_runs([tmp_path / "run.npz"], load_tree(model))[0].nominal


def test_a_stated_unit_is_believed(leg, tmp_path):
    """A data set that says degrees needs no option."""
    model, episodes = leg
    folder = data_set(tmp_path / "set", episodes[:1], 200.0, "degrees", feature={"unit": "deg"})
    np.testing.assert_allclose(read_runs([folder], load_tree(model))[0].position, episodes[0][0], atol=3e-7)


def test_shares_without_a_calibration_are_refused(leg, tmp_path, capsys):
    """In one line that names both options; nothing is taken for degrees in silence."""
    model, episodes = leg
    folder = data_set(tmp_path / "set", episodes, 200.0, "shares")
    assert main(["identify", "robot", "--model", str(model), str(folder)]) == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "--degrees" in said
    assert "--calibration" in said


def test_what_cannot_be_is_refused(leg, tmp_path):
    """Degrees with a calibration, joints without one, other versions, folders without data."""
    model, episodes = leg
    tree = load_tree(model)
    large = [(3.0 * position, 3.0 * goal) for position, goal in episodes]
    degrees = data_set(tmp_path / "degrees", large, 200.0, "degrees")
    arm = calibration(tmp_path / "arm.json")
    refusal(
        lambda: read_runs([degrees], tree, calibration=arm), "the values are in degrees", "give `degrees`"
    )
    shares = data_set(tmp_path / "shares", episodes, 200.0, "shares")
    other = calibration(tmp_path / "other.json", {"hip": RANGES["hip"]})
    refusal(lambda: read_runs([shares], tree, calibration=other), "no joint knee", "hip")
    empty = calibration(tmp_path / "empty.json", {"hip": (3, 3), "knee": (0, 4095)})
    refusal(lambda: read_runs([shares], tree, calibration=empty), "range_min 3", "calibrate the arm again")
    (tmp_path / "none.json").write_text("[1, 2]")
    refusal(
        lambda: read_runs([shares], tree, calibration=tmp_path / "none.json"),
        "not a calibration file of LeRobot",
    )
    info = json.loads((shares / "meta/info.json").read_text())
    (shares / "meta/info.json").write_text(json.dumps(info | {"codebase_version": "v1.6"}))
    refusal(lambda: read_runs([shares], tree), "v1.6", "v2.1")
    (shares / "meta/info.json").write_text(json.dumps(info))
    for file in (shares / "data").rglob("*.parquet"):
        file.unlink()
    refusal(lambda: read_runs([shares], tree), "no data/**/*.parquet")


def test_reversed_joints_and_grippers_count_as_lerobot_does(tmp_path):
    """``drive_mode`` 1 turns the sign; a gripper counts from its lower end."""
    from stribeck.recordings.tables.lerobot import read_calibration, read_data_set

    ranges = {"hip": (700, 3300), "gripper": (2000, 3000)}
    angle = np.linspace([-0.5, -0.3], [0.5, 0.3], 50)
    values = numbers(angle, "shares", ranges)
    values[:, 1] = 50.0 + 0.5 * values[:, 1]
    folder = data_set(tmp_path / "set", [(values, values)], 50.0, "radians", names=("hip.pos", "gripper.pos"))
    known = read_calibration(calibration(tmp_path / "arm.json", ranges))
    (table,) = read_data_set(folder, calibration=known)
    np.testing.assert_allclose(table.array("position"), angle, atol=1e-6)
    reverse = read_calibration(calibration(tmp_path / "back.json", ranges, drive_mode=1))
    (table,) = read_data_set(folder, calibration=reverse)
    np.testing.assert_allclose(table.array("position"), -angle, atol=1e-6)


WRITER = """
import sys
import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

feature = {"dtype": "float32", "shape": (2,), "names": ["hip.pos", "knee.pos"]}
made = LeRobotDataset.create(
    "me/leg", 200, {"observation.state": feature, "action": feature}, root=sys.argv[1], use_videos=False
)
for _ in range(2):
    content = np.load(sys.argv[2])
    for state, action in zip(content["state"], content["action"]):
        made.add_frame({"observation.state": state, "action": action, "task": "swing"})
    made.save_episode()
made.finalize()
"""


@pytest.mark.skipif(LEROBOT not in os.environ, reason=f"${LEROBOT} names no interpreter with lerobot")
def test_a_data_set_that_lerobot_wrote_is_read(leg, tmp_path):
    """The current version of the library, in degrees."""
    model, episodes = leg
    position, goal = (np.degrees(values).astype(np.float32) for values in episodes[0])
    np.savez(tmp_path / "run.npz", state=position, action=goal)
    command = [os.environ[LEROBOT], "-c", WRITER, str(tmp_path / "set"), str(tmp_path / "run.npz")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=True)
    runs = read_runs([tmp_path / "set"], load_tree(model), degrees=True)
    assert len(runs) == 2
    np.testing.assert_allclose(runs[1].position, episodes[0][0], atol=3e-7)
