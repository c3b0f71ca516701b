"""External torque from the momentum residual less the learnt friction, with its band."""

from dataclasses import replace

import numpy as np
import pytest

from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.learning.external import (
    ASSUMED_TIME,
    QUANTILE,
    band,
    conformal,
    deviation,
    external,
    normalised,
)
from stribeck.live.settings import Settings, Timing
from stribeck.model.bench import Pendulum
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named
from stribeck.rigid.dynamics import IndependentJoints

DT, INNER = 0.002, 4
INERTIA = np.array([0.05, 0.5, 2.0, 0.5, 0.5])
COULOMB, VISCOUS = 24.0 * INERTIA, 8.0 * INERTIA
FRICTION = np.array([1.0, 0.7, 1.3, 1.0, 1.0])
"""True friction per identified friction."""
MASS = np.array([1.0, 1.0, 1.0, 0.9, 1.1])
"""True inertia per that of the model."""
NAMES = tuple(f"j{k}" for k in range(5))


class Robot:
    """Five joints under PD with learning compensation, and whatever pushes them."""

    def __init__(self) -> None:
        joints = [
            JointModel(
                name,
                replace(load_actuator("torque_joint"), resolution=1e-5),
                law_named("m1"),
                {"ratio": 1.0, "armature": float(j), "friction_base": float(c), "friction_viscous": float(b)},
                float(20.0 * c),
            )
            for name, j, c, b in zip(NAMES, INERTIA, COULOMB, VISCOUS, strict=True)
        ]
        load = Pendulum(np.zeros(5), np.zeros(5), np.zeros(5))
        dynamics = IndependentJoints(INERTIA, load, np.zeros(5))
        settings = Settings("sum", "none", gain=0.8, timing=Timing(loop_delay=DT))
        self.compensator = Compensator(joints, [JointMap()] * 5, settings, dynamics=dynamics)
        self.compensator.enable()
        self.q, self.v, self.time, self.sent = np.zeros(5), np.zeros(5), 10.0, np.zeros(5)

    def run(self, seconds, goal, push=0.0):
        """Torques and bands (T, 5) under a goal, which gives position and velocity of a time, and a torque from outside."""
        found = []
        inertia, coulomb, viscous = MASS * INERTIA, FRICTION * COULOMB, FRICTION * VISCOUS
        for _ in range(round(seconds / DT)):
            qd, vd, ad = goal(self.time)
            effort = INERTIA * (ad + 400.0 * (qd - self.q) + 40.0 * (vd - self.v))
            ours = self.compensator
            ours.on_command(self.time, self.time - 1e-6, NAMES, (), (), effort)
            ours.on_goal(self.time, self.time - 1e-6, NAMES, qd, vd)
            torque = effort + ours.on_state(self.time, self.time, NAMES, self.q, self.v, ())
            external = ours.external_torque
            if external is not None:
                found.append(external)
            dt = DT / INNER
            for _ in range(INNER):
                pushed = (self.v + (self.sent + push) / inertia * dt) / (1.0 + viscous / inertia * dt)
                self.v = np.copysign(np.maximum(0.0, np.abs(pushed) - coulomb / inertia * dt), pushed)
                self.q = self.q + self.v * dt
            self.time, self.sent = self.time + DT, torque
        return np.array([one.torque for one in found]), np.array([one.band for one in found])


def swing(time):
    w, one = 2.0, np.ones(5)
    return (
        0.5 * np.sin(w * time) * one,
        0.5 * w * np.cos(w * time) * one,
        -0.5 * w * w * np.sin(w * time) * one,
    )


@pytest.fixture(scope="module")
def moved():
    """A robot that has moved for 6 s, and what it said in the last 3."""
    robot = Robot()
    robot.run(3.0, swing)
    return robot, robot.run(3.0, swing)


@pytest.mark.ci
def test_free_motion_is_within_the_band(moved):
    """Friction ±30 %, masses ±10 %, after learning: 95 % of the time of every joint."""
    _, (torque, band) = moved
    assert (np.mean(np.abs(torque) <= band, axis=0) >= 0.95).all()
    assert (band[-1] < 1.5 * COULOMB).all(), "a band that says something"


def test_a_push_is_told_by_its_size(moved):
    """Against the motion with three times the friction at rest: found by all joints beyond the band within 100 ms, and within the band then.

    The push stops the joints, whose friction then holds some of it: the band grows by that.
    """
    robot, _ = moved
    while robot.v[0] < 0.8:
        robot.run(DT, swing)
    push = -3.0 * COULOMB
    torque, band = robot.run(0.1, swing, push)
    assert ((torque < -band).any(axis=0)).all()
    assert (np.abs(torque[-1] - push) <= band[-1]).all()
    assert (torque[-1] < 0.5 * push).all()


@pytest.mark.ci
def test_nothing_is_said_of_a_joint_at_rest_that_friction_holds():
    """Half the friction pulls at joints at rest: no torque, and a band that contains it; without states none is said at all."""
    robot = Robot()
    robot.run(2.0, swing)
    rest = robot.q.copy()
    robot.run(1.5, lambda _: (rest, np.zeros(5), np.zeros(5)))
    torque, band = robot.run(0.5, lambda _: (robot.q, np.zeros(5), np.zeros(5)), 0.5 * FRICTION * COULOMB)
    assert (np.abs(torque) <= band).all()
    assert (np.abs(torque[-1]) < 1e-9).all()
    robot.compensator.disable()
    assert robot.compensator.external_torque is None


@pytest.mark.slow
def test_a_joint_at_rest_that_is_touched_says_so():
    """One and a half thresholds on joints at rest, one joint at a time: found within 100 ms, and the others are not."""
    robot = Robot()
    robot.run(6.0, swing)
    rest = robot.q.copy()
    for k in range(5):
        robot.run(1.0, lambda _: (rest, np.zeros(5), np.zeros(5)))
        push = np.zeros(5)
        push[k] = 1.5 * robot.compensator.external_torque.threshold[k]
        found = []
        for _ in range(50):
            robot.run(DT, lambda _: (rest, np.zeros(5), np.zeros(5)), push)
            found.append(robot.compensator.external_torque.contact)
        assert np.any(found, axis=0)[k], k
        assert not np.any(np.delete(found, k, axis=1)), "joints that nothing touches"


def test_the_deviation_is_what_torques_of_free_motion_were():
    """Torques of a fifth of the deviation assumed: the mean of their square counts the assumed one as a second of motion, and is bounded below."""
    excess, spread, dt = np.ones(1), np.array([0.03]), 0.004
    found, taught = 0.2 * np.sqrt(spread), ASSUMED_TIME
    for _ in range(2000):
        taught += dt
        excess = normalised(excess, found, spread, dt / taught, 1e-3)
    np.testing.assert_allclose(excess, (1.0 + 8.0 * 0.04) / 9.0)
    assert normalised(np.array([2e-3]), 0.0 * found, spread, 1.0, 1e-3) == 1e-3
    level = np.array([2.0])
    moving, resting = (deviation(excess, spread, np.array([d]), level) for d in (-1.0, 0.0))
    np.testing.assert_allclose(moving, 2.0 * np.sqrt(excess * 0.03))
    np.testing.assert_allclose(resting, 2.0 * np.sqrt(0.03))


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kind", ["noise", "wave", "rare"])
def test_three_percent_are_outside_the_band_however_errors_are_distributed(kind):
    """Of normal noise, of a slow wave (which 2.17 deviations hold wholly), and of errors that are mostly small."""
    random, dt, count = np.random.default_rng(0), 0.004, 150_000
    errors = {
        "noise": random.normal(size=count),
        "wave": np.sqrt(2.0) * np.sin(2.0 * np.arange(count) * dt),
        "rare": random.standard_t(3, count) / np.sqrt(3.0),
    }[kind]
    factor, outside = np.ones(1), 0
    for k, error in enumerate(errors):
        width = QUANTILE * factor
        outside += int(k >= count // 3 and abs(error) > width[0])
        factor = conformal(factor, abs(error), width, dt)
    assert 0.025 < outside / (count - count // 3) < 0.035


@pytest.mark.parametrize(("whole", "torque", "width"), [(0.3, 0.0, 1.3), (-4.0, -4.0, 1.0)])
def test_friction_at_rest_may_hold_in_either_direction(whole, torque, width):
    """The torque is between w - u and w + u, u = 1; reported is w, or 0 where friction may be all of it."""
    held = np.array([1.0])
    assert external(np.array([whole]), held) == torque
    np.testing.assert_allclose(band(0.2, np.array([whole]), held), 0.2 + width)


def test_without_a_model_there_is_none():
    """Nothing tells external torque from inertia."""
    joint = JointModel(
        "j",
        load_actuator("torque_joint"),
        law_named("m1"),
        {"ratio": 1.0, "armature": 0.1, "friction_base": 1.0, "friction_viscous": 0.1},
        5.0,
    )
    compensator = Compensator([joint], [JointMap()], Settings("sum", "none"))
    compensator.enable()
    for k in range(10):
        compensator.on_state(k * DT, k * DT, ["j"], [0.0], [0.0], ())
    assert compensator.external_torque is None
