"""A stopped chain of controllers kept its last effort on the hardware, and the arm went on in motion."""

import numpy as np
import pytest

from cpp_compensator import CppCompensator
from cpp_controller import PERIOD, Arm, CppController, default_settings, joint
from stribeck.model.joint_map import JointMap


class Moving:
    """Two joints under PD along a cosine, through the C++ controller; the hardware keeps what was written last."""

    def __init__(self):
        self.controller = CppController([joint("a"), joint("b")], default_settings(ramp_time=0.05))
        self.controller.enable()
        self.arm, self.written, self.time = Arm(2), np.zeros(2), 0.0

    def run(self, count, broken=()):
        """Efforts on the hardware after each update; NaN as the references of broken joints."""
        efforts = []
        for _ in range(count):
            self.time += PERIOD
            goal, rate = 0.5 * (1.0 - np.cos(2.0 * self.time)), np.sin(2.0 * self.time)
            reference = 20.0 * (goal - self.arm.position) + 2.0 * (rate - self.arm.velocity)
            reference[list(broken)] = np.nan
            found = self.controller.update(
                reference, self.arm.position, self.arm.velocity, goal=goal, goal_velocity=rate
            )
            self.written = np.where(np.isnan(found.command), self.written, found.command)
            self.arm.move(self.written)
            efforts.append(self.written)
        return np.array(efforts)


@pytest.mark.parametrize("broken", [(0,), (0, 1)])
def test_no_effort_is_kept_when_the_commander_ends_in_motion(broken):
    """Within two cycles it is zero, and the arm rests; a joint that still has a commander follows its goal."""
    moving = Moving()
    before = moving.run(700)[-1]
    assert np.all(np.abs(before) > 0.1)
    assert np.all(moving.arm.velocity > 0.5)
    efforts = moving.run(500, broken)
    np.testing.assert_array_equal(efforts[1:, list(broken)], 0.0)
    assert np.all(moving.arm.velocity[list(broken)] == 0.0)
    if broken == (0,):
        assert abs(moving.arm.position[1] - 0.5 * (1.0 - np.cos(2.0 * moving.time))) < 0.02


def test_no_effort_is_kept_when_the_controller_stops_and_starts_in_motion():
    """Zero remains, and stays until a new reference comes; then friction rises at the slew limit."""
    moving = Moving()
    moving.run(700)
    moving.written = np.array([moving.controller.final_command(k, moving.arm.position[k]) for k in range(2)])
    np.testing.assert_array_equal(moving.written, 0.0)
    moving.controller.restart()
    np.testing.assert_array_equal(moving.run(20, broken=(0, 1)), 0.0)
    moving.run(1)
    assert np.max(np.abs(moving.controller.torque)) <= 50.0 * 3.0 * PERIOD + 1e-12


def test_negative_friction_was_configured():
    """Cancelling it would have driven the joint with its own motion, in both languages' terms a negative brake."""
    with pytest.raises(AssertionError, match="friction_base must be zero or positive"):
        CppCompensator([joint(friction_base=-0.1)], [JointMap()], default_settings())
