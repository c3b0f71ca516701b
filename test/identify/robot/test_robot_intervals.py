"""Intervals of a robot's parameters: cells of velocity and position, and what files say of correlations."""

import numpy as np
import pytest

from stribeck.files.drives import read_drives, write_drives
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import identify_robot
from stribeck.identify.robot.intervals import conditions_of
from stribeck.identify.robot.problem import problem_of
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.identify.robot.verdict import judge_robot
from stribeck.model.law import LAWS
from swinging_leg import TRUE, recorded, write_model


@pytest.fixture(scope="module")
def leg(tmp_path_factory):
    """Model and three runs of a leg."""
    folder = tmp_path_factory.mktemp("leg")
    tree = load_tree(write_model(folder))
    return tree, read_runs([recorded(folder, f"run{k}", 0.7 * k, seconds=5.0) for k in range(3)], tree)


def test_cells_add_up_to_the_whole(leg):
    """Scores and curvatures of the cells of all joints are those of all rows."""
    tree, runs = leg
    problem = problem_of(tree, runs, [0, 1], LAWS["m1"], free=("armature", "bias", "delay"))
    x = problem.start()
    cells = np.random.default_rng(0).integers(0, 5, np.shape(problem.lanes.position))
    scores, curvatures = problem.in_cells(x, cells, 5)
    found = problem.lane_equations(x)
    assert scores.shape == (10, len(x))
    assert scores.sum(axis=0) == pytest.approx(
        np.einsum("lfn,lf->n", problem.maps, found.gradient), rel=1e-3, abs=1e-3
    )
    whole = np.tensordot(problem.maps, found.hessian @ problem.maps, ((0, 1), (0, 1)))
    assert curvatures.sum(axis=0) == pytest.approx(whole, rel=1e-3, abs=1e-3 * np.abs(whole).max())


def test_conditions_of_a_law_are_those_of_the_simulated_motion(leg):
    """Velocity is the slope of the position, and the joint starts where the recording does."""
    tree, runs = leg
    problem = problem_of(tree, runs, [0, 1], LAWS["m1"], free=("armature", "bias", "delay"))
    velocity, position = conditions_of(problem, problem.start())
    assert velocity == pytest.approx(np.gradient(position, problem.lanes.dt, axis=0))
    assert position[0] == pytest.approx(np.asarray(problem.lanes.position)[0])


@pytest.mark.slow
def test_intervals_hold_the_drives_of_a_leg_and_files_their_correlation(tmp_path):
    """Steps of 0.1 ms: of 1 ms, half a step of damping would belong to the inertia, of 0.1 ms it is 0.2 % of the knee's armature, which is outside.

    With MuJoCo's usual ``solref`` the knee's armature would be 2 % and its viscous friction 9 % low: friction would be viscous below 0.1 rad/s.
    The file has the correlation of each joint's estimates.
    """
    tree = load_tree(write_model(tmp_path))
    runs = [recorded(tmp_path, f"run{k}", 0.7 * k, seconds=5.0, inner=50, hard=True) for k in range(3)]
    fit = identify_robot(tree, read_runs(runs, tree), law="m1")
    inside = set()
    for joint, truth in TRUE.items():
        for name, value in truth.items():
            found = fit.estimates[joint][name]
            assert found.value == pytest.approx(value, rel=0.005)
            assert found.interval[1] - found.interval[0] < 0.3 * value
            if found.interval[0] < value < found.interval[1]:
                inside.add((joint, name))
    knee = {("knee", name) for name in ("friction_base", "friction_viscous")}
    assert inside >= knee | {("hip", name) for name in TRUE["hip"]}
    write_drives(tmp_path / "robot.json", robot_drives(fit, judge_robot(fit)))
    for joint, drive in read_drives(tmp_path / "robot.json").joints.items():
        assert set(drive.correlation.names) >= {"armature", "friction_base", "friction_viscous", "delay"}
        assert drive.correlation.names == fit.correlations[joint].names
        stored = np.array(drive.correlation.matrix)
        assert stored == pytest.approx(np.array(fit.correlations[joint].matrix), abs=1e-6)
        assert np.linalg.eigvalsh(stored).min() > 0.0
