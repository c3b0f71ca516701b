"""Intervals of a robot's parameters: cells of velocity and position, and what files say of correlations."""

import numpy as np
import pytest

from stribeck.files.drives import read_drives, write_drives
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import identify_robot
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


@pytest.mark.slow
def test_intervals_hold_the_drives_of_a_leg_and_files_their_correlation(leg, tmp_path):
    """True friction and armature are inside; Coulomb and viscous friction of a joint depend on each other, and a file says how."""
    tree, runs = leg
    fit = identify_robot(tree, runs, law="m1")
    for joint, truth in TRUE.items():
        for name, value in truth.items():
            lower, upper = fit.estimates[joint][name].interval
            assert lower < value < upper
            assert upper - lower < 0.3 * value
    write_drives(tmp_path / "robot.json", robot_drives(fit, judge_robot(fit)))
    for drive in read_drives(tmp_path / "robot.json").joints.values():
        names = drive.correlation.names
        pair = names.index("friction_base"), names.index("friction_viscous")
        assert set(names) >= {"armature", "friction_base", "friction_viscous", "delay"}
        assert drive.correlation.matrix[pair[0]][pair[1]] < -0.3
