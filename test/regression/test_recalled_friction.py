"""Friction that is only recalled, or only said to be guaranteed, drives no joint that nobody leads."""

import math

import numpy as np
import pytest

from compensating import model, settings_with
from cpp_compensator import CppCompensator
from stribeck.live.compensator import Compensator
from stribeck.live.learning.observer import Learned
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import IndependentJoints

BASE, VISCOUS, INERTIA = 0.02, 0.004, 0.002
STEP, FINE = 0.002, 10


class Joint:
    """A joint with Coulomb and viscous friction, pushed once; its friction is so many times that identified."""

    def __init__(
        self,
        share: float,
        *,
        model_known: bool = True,
        goals: bool = False,
        scale: float = 1.0,
        kind: type = Compensator,
        **settings: float,
    ) -> None:
        known = model("a", friction_base=BASE, friction_viscous=VISCOUS, armature=INERTIA)
        chosen = settings_with(
            mode="friction_only", effort_meaning="motor", ramp_time=0.0, slew=1e6, **settings
        )
        dynamics = IndependentJoints(np.array([INERTIA])) if model_known else None
        self.found = kind([known], [JointMap()], chosen, dynamics=dynamics)
        self.found.recall([Learned(scale, scale, 0.0, 0.0)])
        self.found.enable()
        self.share, self.goals = share, goals
        self.time, self.at, self.speed, self.torque = 10.0, 0.0, 0.0, 0.0
        self.added = self.taken = 0.0

    def step(self, hand: float = 0.0) -> float:
        """A cycle; returns the speed [rad/s]."""
        acting = self.torque
        for _ in range(FINE):
            friction = self.share * (BASE * math.tanh(self.speed / 0.002) + VISCOUS * self.speed)
            self.speed += STEP / FINE * (self.torque + hand - friction) / INERTIA
            self.at += STEP / FINE * self.speed
            self.added += STEP / FINE * self.torque * self.speed
            self.taken += STEP / FINE * friction * self.speed
        self.time += STEP
        if self.goals:
            self.found.on_goal(self.time, self.time - 1e-4, ["a"], [self.at], [])
        at, speed = [self.at], [self.speed]
        self.torque = float(self.found.on_state(self.time, self.time, ["a"], at, speed, [acting])[0])
        return abs(self.speed)

    def pushed(self, seconds: float = 10.0) -> tuple[float, float, float]:
        """Speed when let go, the highest one afterwards, and the last.

        Where compensation has ended and the joint is slow, the motion is cut short after a further second, in which nothing
        drives the joint.
        """
        for _ in range(100):
            released = self.step(0.03)
        speeds = []
        for _ in range(round(seconds / STEP)):
            speeds.append(self.step())
            if self.torque == 0.0 and self.found.joints_off.all() and speeds[-1] < 0.04:
                self.stays_off(speeds)
                break
        return released, max(speeds), speeds[-1]

    def stays_off(self, speeds: list[float]) -> None:
        """Without a hand the joint gets no torque and becomes no faster; its speeds are appended."""
        for _ in range(500):
            speeds.append(self.step())
            assert self.torque == 0.0
            assert self.found.joints_off.all()
            assert speeds[-1] <= speeds[-2]


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kind", [Compensator, CppCompensator])
@pytest.mark.parametrize(("share", "scale"), [(0.3, 1.0), (0.3, 2.2), (0.28, 1.5)])
def test_recalled_scales_add_nothing_without_a_goal(share: float, scale: float, kind: type) -> None:
    """In Python and in C++. The guaranteed fraction, with which the joint slows down and rests.

    What happened: the recalled scales counted from the first state on, and speeds grew up to five times.
    """
    joint = Joint(share, scale=scale, kind=kind)
    released, highest, last = joint.pushed(20.0)
    assert highest <= released * (1.0 + 1e-9)
    assert last < 0.05
    assert joint.added <= joint.taken


@pytest.mark.ci
def test_learnt_scales_count_without_a_goal_once_motion_has_confirmed_them() -> None:
    """After motion under goals the torque of a free joint exceeds the guaranteed fraction, as without a recall."""
    joint = Joint(1.0)
    for k in range(4000):
        ahead = math.sin(0.004 * (k + 10))
        joint.time += STEP
        at, speed = math.sin(0.004 * k), 2.0 * math.cos(0.004 * k)
        friction = BASE * math.tanh(speed / 0.01) + VISCOUS * speed
        joint.found.on_goal(joint.time, joint.time - 1e-4, ["a"], [ahead], [speed])
        joint.found.on_state(joint.time, joint.time, ["a"], [at], [speed], [friction - 4.0 * INERTIA * at])
    for k in range(4000, 4200):  # the goals time out
        joint.time += STEP
        at, speed = math.sin(0.004 * k), 2.0 * math.cos(0.004 * k)
        friction = BASE * math.tanh(speed / 0.01) + VISCOUS * speed
        torque = joint.found.on_state(
            joint.time, joint.time, ["a"], [at], [speed], [friction - 4.0 * INERTIA * at]
        )
    assert abs(torque[0]) > 0.5 * (BASE + VISCOUS * abs(speed))


@pytest.mark.slow
@pytest.mark.parametrize("model_known", [True, False])
def test_goals_that_repeat_the_position_are_worth_one_tank(model_known: bool) -> None:
    """The energy added beyond that which friction takes is at most 1.5 rad of friction; the joint comes to rest.

    What happened: such goals gave the torque of the path that they described, and the joint drove itself ever faster.
    """
    joint = Joint(0.3, model_known=model_known, goals=True, scale=1.2)
    _, _, last = joint.pushed(20.0)
    assert joint.added - joint.taken <= 1.5 * BASE
    assert last < 0.05


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kind", [Compensator, CppCompensator])
@pytest.mark.parametrize("goals", [False, True])
@pytest.mark.parametrize(("share", "certain_fraction"), [(0.1, 0.25), (0.3, 0.5), (0.1, 1.0)])
def test_less_friction_than_guaranteed_ends_compensation(
    share: float, certain_fraction: float, goals: bool, kind: type
) -> None:
    """In Python and in C++. Below sqrt(4 · 1.5 rad · friction / inertia) = 7.7 rad/s; then no torque until it is enabled again, and why.

    What happened: 373 rad/s.
    """
    joint = Joint(share, model_known=False, goals=goals, kind=kind, certain_fraction=certain_fraction)
    bound = math.sqrt(4.0 * 1.5 * BASE / INERTIA)
    _, highest, last = joint.pushed(30.0)
    assert highest <= 1.1 * bound
    assert joint.torque == 0.0
    assert last < 0.05
    assert joint.found.joints_off.tolist() == [True]
    if kind is Compensator:
        assert "a moves faster than 7.75 rad/s" in joint.found.off_reasons[0]
    else:
        assert joint.found.off[:, 0].tolist() == pytest.approx(
            [2.0, bound]
        )  # the code of a joint that drives itself
    for _ in range(100):
        joint.step(0.03)
        assert joint.torque == 0.0
    joint.found.enable()
    for _ in range(20):
        joint.step(0.03)
    assert not joint.found.joints_off.any()
    assert joint.torque > 0.0
