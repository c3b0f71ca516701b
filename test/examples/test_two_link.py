"""The arm of two links: rigid dynamics, coupled friction, its special cases, convergence."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import log_of, published
from simulation import _gauss_seidel
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.model.control_laws import Gains, ServoCommand
from stribeck.model.law import LAWS
from stribeck.model.log import Setup, batch_of
from stribeck.model.step import PlantState
from stribeck.model.step import simulate as simulate_pendulum
from two_link import (
    Link,
    Motion,
    Servo,
    TwoLinkArm,
    coupled_friction,
    end_point,
    energy,
    external_torques,
    inertia_matrix,
    joint_angles,
    simulate,
    step,
)

LINKS = (Link(0.3, 0.18, 0.11, 6e-4), Link(1.05, 0.2, 0.17, 3e-3))
NOTHING = {"friction_base": 0.0, "friction_viscous": 0.0}
DT = 1e-3


def servo(name="mx106", law="m6", kp=16.0, **changes):
    """A servo with its published law."""
    gains = Gains(np.full(1, kp), np.zeros(1), np.zeros(1))
    return Servo(load_actuator(name), LAWS[law], {**published(name, law), **changes}, gains)


def loose(**changes):
    """A servo without friction."""
    return replace(servo(law="m1"), values={**published("mx106", "m1"), **NOTHING, **changes})


def rest(arm, position, velocity=(0.0, 0.0)):
    """State of one arm."""
    return tuple(
        PlantState(np.full(1, q), np.full(1, v), s.actuator.control.first_state(np.full(1, q)))
        for q, v, s in zip(position, velocity, arm.servos, strict=True)
    )


def with_torque_off(arm, position, velocity, steps, dt):
    """Positions and velocities of an arm let go, (steps, 2) each, in numpy."""
    state, command = rest(arm, position, velocity), ServoCommand(0.0, 0.0, 15.0)
    found = np.empty((2, steps, 2))
    for k in range(steps):
        found[:, k] = [[s.position[0] for s in state], [s.velocity[0] for s in state]]
        state, _ = step(arm, state, (command, command), dt)
    return found


def pinocchio_model():
    """The same arm as Pinocchio sees it: joints about -y, which turn the hanging arm towards +x."""
    model = pin.Model()
    parent, placement = 0, pin.SE3.Identity()
    for k, link in enumerate(LINKS):
        axis = pin.JointModelRevoluteUnaligned(0.0, -1.0, 0.0)
        parent = model.addJoint(parent, axis, placement, f"joint{k}")
        inertia = pin.Inertia(
            link.mass, np.array([0.0, 0.0, -link.center]), np.diag([1.0, link.inertia, 1.0])
        )
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
        placement = pin.SE3(np.eye(3), np.array([0.0, 0.0, -link.length]))
    model.gravity.linear = np.array([0.0, 0.0, -9.80665])
    return model


def test_dynamics_are_those_of_pinocchio():
    """Inertia matrix, gravity and velocity products of ten states, by hand and by Pinocchio."""
    model = pinocchio_model()
    data, rng = model.createData(), np.random.default_rng(0)
    for q, v in rng.uniform(-3.0, 3.0, (10, 2, 2)):
        one, cross, two = inertia_matrix(LINKS, (0.0, 0.0), tuple(q))
        matrix = pin.crba(model, data, q)
        np.testing.assert_allclose([one, cross, two], [matrix[0, 0], matrix[0, 1], matrix[1, 1]], rtol=1e-12)
        bias = pin.nonLinearEffects(model, data, q, v)
        np.testing.assert_allclose(external_torques(LINKS, tuple(q), tuple(v)), -bias, atol=1e-12)
    np.testing.assert_allclose(inertia_matrix(LINKS, (0.1, 0.2), tuple(q)), [one + 0.1, cross, two + 0.2])


def test_energy_is_kept_without_friction_and_torque():
    """Within 1.2 % of what is exchanged at 2 ms, and half of that with half the step: first order."""
    arm = TwoLinkArm(LINKS, (loose(), loose()))
    armature = tuple(s.values["armature"] for s in arm.servos)
    largest = []
    for dt in (2 * DT, DT):
        position, velocity = with_torque_off(arm, (1.2, 0.7), (1.0, -2.0), round(1.0 / dt), dt)
        total = energy(LINKS, armature, position.T, velocity.T)
        exchanged = np.ptp(energy(LINKS, armature, position.T, 0.0 * velocity.T))
        largest.append(np.abs(total - total[0]).max() / exchanged)
    assert exchanged > 2.0
    assert largest[0] < 0.012
    assert largest[0] / largest[1] == pytest.approx(2.0, rel=0.1)


def test_friction_only_takes_energy():
    """An arm with M6 in both joints, let go, loses energy until both joints rest exactly."""
    arm = TwoLinkArm(LINKS, (servo(friction_base=1.0), servo("mx64", friction_base=1.0)))
    armature = tuple(s.values["armature"] for s in arm.servos)
    position, velocity = with_torque_off(arm, (1.2, 0.7), (1.0, -2.0), 1500, DT)
    total = energy(LINKS, armature, position.T, velocity.T)
    assert np.diff(total[::50]).max() < 1e-3 * np.ptp(total)
    assert np.all(velocity[-1] == 0.0)


def pendulum_of(actuator, law, mass, length, goal, kp=16.0):
    """The same servo on core's bench, positions (N,) at DT."""
    setup = Setup(mass, length, 0.0, actuator.supply.nominal, kp)
    log = log_of(DT * np.arange(len(goal)), goal=goal, setup=setup, actuator=actuator.name)
    batch = batch_of([log.resample(DT)])
    values = published(actuator.name, law)
    return simulate_pendulum(batch, actuator, LAWS[law], values, integrator="semi-implicit").position[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("law", ["m1", "m6"])
@pytest.mark.parametrize("locked", [0, 1])
def test_with_one_joint_locked_it_is_the_pendulum(law, locked):
    """A joint whose friction nothing overcomes: the other one moves as core's pendulum does in steps of semi-implicit Euler, to rounding."""
    time = DT * np.arange(2000)
    goal = 1.2 * np.sin(3.0 * time)
    holding = servo(law=law, friction_base=1e6)
    moving = servo("mx64", law)
    mass, first, second = 0.8, 0.1, 0.15
    links = (Link(0.0, first, 0.0, 0.0), Link(mass, second, second, 0.0))
    servos = (holding, moving) if locked == 0 else (moving, holding)
    goals = np.zeros((len(time), 2, 1))
    goals[:, 1 - locked, 0] = goal
    start = Motion(np.zeros((2, 1)), np.zeros((2, 1)))
    found = simulate(TwoLinkArm(links, servos), start, goals, DT, 1).position[:, :, 0]
    expected = pendulum_of(moving.actuator, law, mass, second if locked == 0 else first + second, goal)
    assert np.ptp(expected) > 1.0
    np.testing.assert_allclose(found[:, 1 - locked], expected, atol=1e-9)
    np.testing.assert_allclose(found[:, locked], 0.0, atol=1e-12)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_coupled_friction_stops_or_is_used_up(seed):
    """The solution without iteration obeys its conditions, and is the one that iteration finds."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 2))
    mobility = root @ root.T + 0.05 * np.eye(2)
    budgets = rng.uniform(0.0, 2.0, (2, 2)) * rng.integers(0, 2, (2, 2))
    free = 3.0 * rng.normal(size=2)
    parts = (mobility[0, 0], mobility[0, 1], mobility[1, 1])
    after, friction = map(np.array, coupled_friction(tuple(free), parts, tuple(map(tuple, budgets)), DT))
    assert np.all((friction >= -budgets[:, 0]) & (friction <= budgets[:, 1]))
    np.testing.assert_allclose(after, free + mobility @ friction, atol=1e-9)
    assert np.all(friction * after <= 0.0)
    for j in range(2):
        limit = -budgets[j, 0] if after[j] > 0.0 else budgets[j, 1]
        assert after[j] == 0.0 or friction[j] == limit
    iterated, _ = _gauss_seidel(free, mobility, (budgets[:, 0], budgets[:, 1]), np.zeros(2))
    np.testing.assert_allclose(friction, iterated, atol=1e-6)


def test_friction_never_turns_a_motion_round():
    """An arm let go: in no step and joint does friction work with the motion that the step ends with."""
    arm = TwoLinkArm(LINKS, (servo(), servo("mx64")))
    state, command = rest(arm, (0.4, 0.9), (2.0, -3.0)), ServoCommand(0.0, 0.0, 15.0)
    for _ in range(400):
        state, friction = step(arm, state, (command, command), DT)
        for joint, torque in zip(state, friction, strict=True):
            assert torque[0] * joint.velocity[0] <= 0.0


def test_compiled_and_numpy_steps_agree():
    """Float64 in both: the same motion to rounding, many arms side by side or one."""
    arm = TwoLinkArm(LINKS, (servo(kp=8.0), servo("mx64", kp=8.0)))
    time = DT * np.arange(500)
    goals = np.stack([0.8 * np.sin(4.0 * time), 0.6 * np.sin(5.0 * time)], axis=1)[:, :, None]
    start = Motion(np.array([[0.1], [0.2]]), np.zeros((2, 1)))
    compiled = simulate(arm, start, goals, DT, 1)
    state = rest(arm, (0.1, 0.2))
    plain = TwoLinkArm(LINKS, arm.servos)
    for k in range(len(time)):
        np.testing.assert_allclose([s.position[0] for s in state], compiled.position[k, :, 0], atol=1e-10)
        commands = tuple(ServoCommand(goals[k, j], 1.0, 15.0) for j in (0, 1))
        state, _ = step(plain, state, commands, DT)


@pytest.mark.slow
def test_halving_the_step_halves_the_error():
    """First order with stiction and load: 2 ms and 0.5 ms against 0.0625 ms."""
    arm = TwoLinkArm(LINKS, (servo(kp=8.0), servo("mx64", kp=8.0)))
    time = 0.01 * np.arange(150)
    goals = np.stack([0.8 * np.sin(2.0 * time), 0.6 * np.sin(3.0 * time)], axis=1)[:, :, None]
    start = Motion(np.zeros((2, 1)), np.zeros((2, 1)))
    runs = [simulate(arm, start, goals, 0.01, n).position for n in (5, 20, 160)]
    coarse, fine = (np.abs(run - runs[-1]).mean() for run in runs[:-1])
    assert coarse < 5e-3
    assert coarse / fine == pytest.approx(4.0, rel=0.25)


def test_angles_reach_their_point():
    """Inverse and forward kinematics undo each other; beyond the reach there is no answer."""
    x, z = np.array([0.05, -0.2, 0.0]), np.array([-0.3, -0.1, 0.25])
    angles = joint_angles(LINKS, x, z)
    assert np.all((angles[1] > 0.0) & (angles[1] < np.pi))
    np.testing.assert_allclose(end_point(LINKS, angles), [x, z], atol=1e-12)
    np.testing.assert_allclose(end_point(LINKS, (np.pi / 2, 0.0)), [0.38, 0.0], atol=1e-12)
    with pytest.raises(ConfigError, match="out of reach"):
        joint_angles(LINKS, np.array([0.0]), np.array([0.5]))


def test_an_arm_that_runs_away_is_refused():
    """Steps far too long for the gain."""
    arm = TwoLinkArm(LINKS, (loose(armature=1e-6), loose(armature=1e-6)))
    start = Motion(np.full((2, 1), 0.5), np.zeros((2, 1)))
    with pytest.raises(ConfigError, match="take smaller ones"):
        simulate(arm, start, np.zeros((2000, 2, 1)), 0.05, 1)
