"""The motion of all joints together, against the same drives at a much smaller step."""

import numpy as np

from stribeck.identify.robot.forward import simulate_robot
from stribeck.identify.robot.rollout import mean_goals
from stribeck.identify.robot.tree import load_tree
from stribeck.model.law import LAWS
from swinging_leg import goals, write_model


def test_error_of_the_step_is_of_second_order(tmp_path):
    """At 1.25 ms within 0.1 mrad of the motion at 0.08 ms, and at half the step less than half as far."""
    tree = load_tree(write_model(tmp_path))
    law, wanted = LAWS["m1"], goals(400, 0.4)
    p = {name: np.zeros(2) for name in ("torque_offset", "tilt_x", "tilt_y", "play", "bias")}
    p |= {"limit": np.full(2, 1e4)}
    p |= {"armature": np.array([0.02, 0.03]), "stiffness": np.full(2, 30.0), "derivative": np.full(2, 1.0)}
    p |= {"friction_base": np.array([0.3, 0.5]), "friction_viscous": np.array([0.1, 0.2])}

    def motion(every):
        step = 0.005 / every
        held = mean_goals(wanted, np.full(2, 0.012 + 0.5 * step), every, 0.005)
        return simulate_robot(tree, law, p, held, wanted[0], step, every)

    exact = motion(64)
    errors = [float(np.sqrt(np.mean((motion(every) - exact) ** 2))) for every in (4, 8)]
    assert errors[0] < 1e-4
    assert errors[1] < 0.5 * errors[0]
