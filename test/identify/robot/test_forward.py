"""The motion of all joints together, against the same drives at a much smaller step."""

import numpy as np
import pytest

from stribeck.identify.robot.forward import held_goals, simulate_robot
from stribeck.identify.robot.rollout import mean_goals
from stribeck.identify.robot.tree import load_tree
from stribeck.model.law import LAWS
from swinging_leg import goals, write_model

DELAY = np.full(2, 0.0123)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A leg of two links."""
    return load_tree(write_model(tmp_path_factory.mktemp("leg")))


def moved(tree, every, **other):
    """The leg's motion with steps of 5 ms / ``every``, with law M1."""
    p = {name: np.zeros(2) for name in ("torque_offset", "tilt_x", "tilt_y", "backlash", "bias")}
    p |= {"armature": np.array([0.02, 0.03]), "stiffness": np.full(2, 30.0), "derivative": np.full(2, 0.2)}
    p |= {"friction_base": np.array([0.3, 0.5]), "friction_viscous": np.array([0.1, 0.2])}
    p |= {"limit": np.full(2, 1e4)} | {name: np.full(2, value) for name, value in other.items()}
    wanted = goals(400, 0.4)
    held = held_goals(wanted, DELAY, every, 0.005)
    return simulate_robot(tree, LAWS["m1"], p, held, wanted[0], 0.005 / every, every)


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [{"friction_base": 0.0}, {"friction_base": 0.0, "limit": 1.0}, {}, {"limit": 1.0}],
    ids=["links alone", "limited torque", "dry friction", "both"],
)
def test_error_falls_with_the_square_of_the_step(tree, other):
    """Of links that move each other, of torques that reach their limit as a goal jumps, and of joints that turn round."""
    exact = moved(tree, 64, **other)
    errors = [float(np.sqrt(np.mean((moved(tree, every, **other) - exact)[200:] ** 2))) for every in (2, 8)]
    assert errors[0] < 1e-4
    assert errors[1] < errors[0] / 8.0


def test_held_goals_have_the_means_of_the_fit():
    """For any delay, before the first row and within the rows."""
    wanted = np.random.default_rng(0).normal(size=(40, 3))
    delay = np.array([0.0131, 0.0, -0.007])
    for every in (3, 4, 8):
        found = held_goals(wanted, delay, every, 0.02).mean
        expected = mean_goals(wanted, delay + 0.5 * 0.02 / every, every, 0.02)
        assert found == pytest.approx(expected, abs=1e-9)


def test_error_of_the_step_is_of_second_order(tmp_path):
    """At 1.25 ms within 0.1 mrad of the motion at 0.08 ms, at 2.5 ms within 0.01; with h² half the step leaves a quarter. Below 2 µrad, where
    instants at which joints stick count, two halvings leave no more than twice a half."""
    tree = load_tree(write_model(tmp_path))
    law, wanted = LAWS["m1"], goals(400, 0.4)
    p = {name: np.zeros(2) for name in ("torque_offset", "tilt_x", "tilt_y", "backlash", "bias")}
    p |= {"limit": np.full(2, 1e4)}
    p |= {"armature": np.array([0.02, 0.03]), "stiffness": np.full(2, 30.0), "derivative": np.full(2, 1.0)}
    p |= {"friction_base": np.array([0.3, 0.5]), "friction_viscous": np.array([0.1, 0.2])}

    def motion(every):
        step = 0.005 / every
        held = held_goals(wanted, np.full(2, 0.012), every, 0.005)
        return simulate_robot(tree, law, p, held, wanted[0], step, every)

    exact = motion(64)
    errors = [float(np.sqrt(np.mean((motion(every) - exact) ** 2))) for every in (2, 4, 8)]
    assert errors[1] < 1e-4
    assert errors[0] < 1e-5
    assert errors[1] < 0.3 * errors[0]
    assert errors[2] < 0.5**2 * errors[0]
