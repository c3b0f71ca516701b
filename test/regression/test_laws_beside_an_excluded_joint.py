"""A robot with a joint that is not identified, and a law with a Stribeck speed."""

import numpy as np
import pytest

from stribeck.identify.robot.identify import score
from stribeck.identify.robot.problem import problem_of
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.model.law import LAWS
from swinging_leg import recorded, write_model


@pytest.mark.parametrize("law", ["m2", "m4"])
def test_a_joint_left_out_has_no_friction(law, tmp_path):
    """What happened: its Stribeck speed was 0, and "the simulation diverges" at its first rest. What must happen: it is simulated."""
    tree = load_tree(write_model(tmp_path))
    runs = read_runs([recorded(tmp_path, "run", 0.0, seconds=4.0)], tree)
    problem = problem_of(tree, runs, [0], LAWS[law], free=("armature", "bias", "delay"))
    held = problem.drives(problem.start(), 0, len(tree.names))
    assert held["dtheta_stribeck"][1] > 0.0
    assert held["friction_base"][1] == 0.0
    assert np.isfinite(score(tree, problem, problem.start(), runs[0], 0).squares).all()
