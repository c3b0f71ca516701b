"""Joints that stop dead, and encoders that freeze: what ends the torque, of which joint, and for how long."""

import math
from dataclasses import replace

import numpy as np
import pytest

from compensating import model
from cpp_compensator import CppCompensator
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap

STEP = 0.002


class Stopping:
    """Joints with a filtered velocity, and goals ahead of them."""

    def __init__(
        self, joints: int = 1, bits: int = 12, time_constant: float = 0.02, kind: type = Compensator
    ) -> None:
        self.names = [f"j{k}" for k in range(joints)]
        settings = Settings("friction_only", "none", slew=1e6, adapt=False, timing=Timing(ramp_time=0.02))
        self.count, self.time_constant = 2.0 * math.pi / 2.0**bits, time_constant
        plain = [model(name) for name in self.names]
        models = [replace(one, actuator=replace(one.actuator, resolution=self.count)) for one in plain]
        self.found = kind(models, [JointMap()] * joints, settings)
        self.found.enable()
        self.time, self.at, self.speed = 10.0, np.zeros(joints), np.zeros(joints)

    def step(self, velocity: float | np.ndarray, frozen: np.ndarray | None = None) -> np.ndarray:
        """A state of joints that move at a velocity; frozen encoders show where they have been."""
        self.time += STEP
        self.at = self.at + STEP * velocity * (1.0 if frozen is None else ~frozen)
        share = -math.expm1(-STEP / self.time_constant)
        self.speed = self.speed + share * (velocity - self.speed)
        shown = np.round(self.at / self.count) * self.count
        self.found.on_command(self.time, self.time - 1e-4, self.names, shown + 0.2, [], [])
        return self.found.on_state(self.time, self.time, self.names, shown, self.speed, [])


@pytest.mark.ci
@pytest.mark.parametrize("kind", [Compensator, CppCompensator])
@pytest.mark.parametrize(("velocity", "time_constant", "bits"), [(1.0, 0.02, 12), (0.3, 0.05, 17)])
def test_a_joint_that_stops_dead_keeps_its_torque(
    velocity: float, time_constant: float, bits: int, kind: type
) -> None:
    """In Python and in C++. At every state of the next two seconds the torque towards the goal is there.

    What happened: what the decaying velocity still said counted against the position for as long as the joint rested: no torque
    of any joint, "stands still for 1999 ms while its velocity says 4e-43 rad/s".
    """
    stopping = Stopping(bits=bits, time_constant=time_constant, kind=kind)
    for _ in range(300):
        stopping.step(velocity)
    for _ in range(1000):
        torque = stopping.step(0.0)
        assert stopping.found.doubt is None
        assert torque[0] > 0.0


@pytest.mark.ci
def test_a_slowly_filtered_velocity_ends_the_torque_while_it_says_motion() -> None:
    """Filtered over 0.5 s, a velocity says motion long after a stop; with it the doubt ends, and the torque returns."""
    stopping = Stopping(time_constant=0.5)
    for _ in range(1500):
        stopping.step(1.0)
    doubted, late = 0, 0
    for _ in range(2000):
        torque = stopping.step(0.0)
        doubted += stopping.found.doubt is not None
        late += stopping.found.doubt is not None and abs(stopping.speed[0]) < 0.1
    assert doubted > 100
    assert late == 0
    assert torque[0] > 0.0


def test_a_frozen_encoder_concerns_its_joint_alone() -> None:
    """Found within 0.1 s; the others have the torque that they would have had. When it shows motion, its torque returns by the ramp.

    What happened: the torque of all joints ended.
    """
    stopping, sound = Stopping(3), Stopping(3)
    for one in (stopping, sound):
        for _ in range(300):
            one.step(1.0)
    frozen = np.array([False, True, False])
    for k in range(500):
        torque, other = stopping.step(1.0, frozen), sound.step(1.0)
        assert stopping.found.doubt is None
        np.testing.assert_array_equal(torque[[0, 2]], other[[0, 2]])
        if k * STEP > 0.1:
            assert torque[1] == 0.0
            assert stopping.found.joints_off.tolist() == [False, True, False]
            assert "position of j1 has been constant" in stopping.found.off_reasons[0]
            assert stopping.found.trusted_state is None, "its weight at a pose that is not that of the robot"
    for k in range(100):
        torque = stopping.step(1.0)
        if k < 3:
            assert abs(torque[1]) <= (k + 1) * STEP / 0.02 * abs(torque[0]) * (1.0 + 1e-9)
    assert not stopping.found.off_reasons
    assert stopping.found.trusted_state is not None
    assert torque[1] == pytest.approx(torque[0])


def test_a_robot_whose_positions_all_stand_is_not_trusted_at_all() -> None:
    """The driver repeats the last state: also the joints that rested in it have no torque."""
    stopping = Stopping(2)
    velocity = np.array([1.0, 0.0])
    for _ in range(300):
        stopping.step(velocity)
    both = np.array([True, True])
    for k in range(500):
        torque = stopping.step(velocity, both)
        if k * STEP > 0.1:
            np.testing.assert_array_equal(torque, 0.0)
            assert stopping.found.doubt is not None
            assert "has been constant" in stopping.found.doubt
