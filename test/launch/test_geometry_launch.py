"""`ros2 launch stribeck geometry.launch.py`: poses are chosen, visited and recorded, and the arm is calibrated."""

import numpy as np
import pytest
import yaml
from ros_graph import Graph, wait_for

from calibrating import MACHINE, NOISE, Tracker, session
from fake_robot import FakeRobot
from launching import Launched, needs_launch
from simulated_arms import MARKERS, irb120, true_arm
from stribeck.identify.geometry.result_file import read_calibration_file

pytestmark = [needs_launch, pytest.mark.real_time, pytest.mark.slow, pytest.mark.timeout(500)]

COUNT = 30


def launch_words(folder, **changes):
    """The command for an arm whose files are in a folder."""
    poses = folder / "poses.yaml"
    topics = [f"/tracker/{name} geometry_msgs/msg/PointStamped" for name in MARKERS]
    excitation = {"/**/excitation": {"ros__parameters": {"commander": "forward", "topics": topics}}}
    (folder / "excitation.yaml").write_text(yaml.safe_dump(excitation))
    (folder / "irb120.yaml").write_text(MACHINE)
    rng = np.random.default_rng(3)
    np.savetxt(folder / "candidates.txt", rng.uniform(-110.0, 110.0, (300, 6)))
    given = {
        "bench_file": session(folder, poses),
        "machine": folder / "irb120.yaml",
        "candidates": folder / "candidates.txt",
        "poses": poses,
        "count": COUNT,
        "speed": 3.0,
        "acceleration": 20.0,
        "rest": 0.9,
        "params_file": folder / "excitation.yaml",
        "bags": folder / "bags",
        "output": folder / "result",
        **changes,
    }
    words = [f"{key}:={value}" for key, value in given.items()]
    return ["ros2", "launch", "stribeck", "geometry.launch.py", *words]


def test_one_launch_chooses_visits_records_and_calibrates(environment, tmp_path):
    """It ends by itself; the calibrated arm predicts hidden poses within 1.2 times the mean length of the tracker's noise."""
    arm = true_arm()
    command = launch_words(tmp_path)
    with (
        Graph() as graph,
        FakeRobot(graph, irb120().names, "forward"),
        Launched(command, environment, tmp_path / "output") as running,
    ):
        tracker = Tracker(graph, arm)
        wait_for(lambda: running.over, "the end of the launch", timeout=400.0)
        assert running.wait(1.0) == 0, running.output
        assert tracker._count > 1000
    result = read_calibration_file(tmp_path / "result" / "calibration.json")
    hidden = arm.measure(60, 11, NOISE)
    away = np.linalg.norm(result.predict(hidden.positions) - hidden.points, axis=2)
    assert away.mean() <= 1.2 * NOISE * np.sqrt(8.0 / np.pi), "the mean length of the tracker's noise"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"candidates": "nowhere.txt"}, "nowhere.txt"),
        ({"rest": "-1"}, "--set rest: expected a positive number, found -1"),
    ],
)
def test_what_fails_ends_the_launch_with_its_reason(environment, tmp_path, changes, said):
    """One line says what was found."""
    command = launch_words(tmp_path, **changes)
    with Launched(command, environment, tmp_path / "output") as running:
        wait_for(lambda: running.over, "the end of the launch", timeout=100.0)
        assert running.wait(1.0) == 1
        assert "design_poses-1 has failed with exit code 1" in running.output
        assert said in running.output
