"""The simulated arm: energy, inverse dynamics, control, stiction, noise."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simulation import (
    Control,
    SensorNoise,
    SimulatedArm,
    _Body,
    autoregressive,
    simulate,
    simulate_tracking,
)
from stribeck.errors import ConfigError
from stribeck.identify.arm.friction.element_torque import Element, element_torque
from stribeck.identify.arm.model import load_arm
from stribeck.model.law import LAWS
from tracking_arms import coulomb_viscous, fourier_motion, panda, three_joint_arm, write_three_joint_urdf

DT = 1e-3


def nothing(arm):
    """No motor torque."""
    return lambda *_: np.zeros(len(arm))


def energy(arm, rotors, position, velocity):
    """Kinetic and potential energy (N,) [J]."""
    model, data = arm.model, arm.model.createData()
    q, v = arm.configuration(position), arm.tangent(velocity)
    found = [
        pin.computeKineticEnergy(model, data, a, b) + pin.computePotentialEnergy(model, data, a)
        for a, b in zip(q, v, strict=True)
    ]
    return np.array(found) + 0.5 * np.sum(rotors * velocity**2, axis=1)


def swing(arm, dt, seconds=2.0):
    """Largest change of energy of an arm let go, and the range of its kinetic energy [J]."""
    rotors = np.array([0.1, 0.05, 0.02])
    plant = SimulatedArm(arm, rotors)
    start = np.array([0.3, -0.4, 1.0]), np.array([1.0, 0.5, -0.5])
    position, velocity, *_ = simulate(plant, nothing(arm), *start, round(seconds / dt), dt)
    total = energy(arm, rotors, position, velocity)[10:]
    lowest = energy(arm, rotors, position, np.zeros_like(velocity)).min()
    return np.abs(total - total[0]).max(), total[0] - lowest


def test_energy_is_kept_without_friction_and_torque(tmp_path):
    """To 3e-4 of what is exchanged, and four times better with half of the step: second order."""
    arm = three_joint_arm(tmp_path)
    coarse, exchanged = swing(arm, 2 * DT)
    fine, _ = swing(arm, DT)
    assert exchanged > 20.0
    assert fine < 3e-4 * exchanged
    assert 3.0 < coarse / fine < 5.0


def test_friction_only_takes_energy(tmp_path):
    """An arm with friction, let go, loses energy until it rests."""
    arm = three_joint_arm(tmp_path)
    plant = SimulatedArm(arm, None, **coulomb_viscous(arm, 0.05))
    start = np.array([0.3, -0.4, 1.0]), np.array([1.0, 0.5, -0.5])
    position, velocity, _, _, friction = simulate(plant, nothing(arm), *start, 4000, DT)
    total = energy(arm, np.zeros(3), position, velocity)
    assert np.diff(total[::100]).max() < 1e-3 * np.ptp(total)
    assert np.all(velocity[-1] == 0.0)
    assert np.all(np.sum(friction[:-1] * np.diff(position, axis=0), axis=1) <= 1e-12)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("law", ["none", "m1", "m4"])
def test_torques_are_inverse_dynamics_of_the_sampled_motion(tmp_path, law):
    """Central differences of positions give the torques of the same row: no delay of half a step."""
    arm = three_joint_arm(tmp_path)
    friction = {} if law == "none" else coulomb_viscous(arm)
    if law == "m4":
        added = {"friction_stribeck": 0.5, "load_friction_base": 0.05, "load_friction_stribeck": 0.02}
        friction = {
            "law": LAWS["m4"],
            "friction": {**friction["friction"], **added, "dtheta_stribeck": 0.2, "alpha": 1.0},
        }
    plant = SimulatedArm(arm, np.array([0.1, 0.05, 0.02]), **friction)
    run = simulate_tracking(plant, fourier_motion(arm, 0), 3.0)
    q = run.position
    velocity, acceleration = (q[2:] - q[:-2]) / (2 * DT), (q[2:] - 2 * q[1:-1] + q[:-2]) / DT**2
    rigid = arm.inverse_dynamics(q[1:-1], velocity, acceleration) + plant.rotors * acceleration
    error = (run.torque + run.friction)[1:-1] - rigid
    assert np.sqrt(np.mean(error**2)) < 2e-4 * np.sqrt(np.mean(rigid**2))


@pytest.mark.slow
def test_load_dependent_friction_obeys_its_law(tmp_path):
    """Friction of moving joints is the budget at the torques that act: the equation of the full model."""
    arm = three_joint_arm(tmp_path)
    values = {"friction_base": 0.5, "load_friction_base": 0.1, "friction_viscous": 0.3}
    plant = SimulatedArm(arm, np.array([0.1, 0.05, 0.02]), LAWS["m3"], values)
    run = simulate_tracking(plant, fourier_motion(arm, 0), 1.0)
    load = arm.inverse_dynamics(run.position, run.velocity, run.acceleration)
    for j in range(3):
        moving = np.abs(run.velocity[:, j]) > 0.05
        velocity, acceleration = run.velocity[moving, j], run.acceleration[moving, j]
        element = Element(run.position[moving, j], velocity, acceleration, np.sign(velocity), load[moving, j])
        parameters = np.array([plant.rotors[j], *(values[name] for name in LAWS["m3"].parameter_names)])
        expected = element_torque(LAWS["m3"], parameters, element).torque + load[moving, j]
        np.testing.assert_allclose(run.torque[moving, j], expected, rtol=1e-5, atol=1e-5)


def test_an_exact_model_tracks_a_wrong_one_less():
    """Errors below a microradian with the true arm, milliradians with friction that control does not know."""
    arm = panda()
    motion = fourier_motion(arm, 1)
    exact = simulate_tracking(SimulatedArm(arm), motion, 2.0)
    rubbing = simulate_tracking(SimulatedArm(arm, **coulomb_viscous(arm, 0.01)), motion, 2.0)
    assert np.abs(exact.position - exact.desired).max() < 2e-6
    assert 1e-3 < np.abs(rubbing.position - rubbing.desired).max() < 0.2


def test_higher_gains_track_better(tmp_path):
    """Four times the stiffness of the control: about a quarter of the error that friction makes."""
    arm = three_joint_arm(tmp_path)
    plant = SimulatedArm(arm, **coulomb_viscous(arm))
    errors = []
    for kp in (100.0, 400.0):
        run = simulate_tracking(
            plant, fourier_motion(arm, 2), 3.0, control=Control(kp=kp, kd=2.0 * np.sqrt(kp))
        )
        errors.append(np.sqrt(np.mean((run.position - run.desired) ** 2)))
    assert 2.5 < errors[0] / errors[1] < 6.0


@pytest.mark.parametrize(("share", "moves"), [(0.98, False), (1.02, True)])
def test_friction_holds_a_joint_below_its_budget(tmp_path, share, moves):
    """Exactly at rest while gravity stays within the budget of every joint, not beyond."""
    arm = three_joint_arm(tmp_path)
    pose = np.array([0.2, 0.3, 0.4])
    gravity = np.abs(arm.inverse_dynamics(pose[None], *np.zeros((2, 1, 3)))[0])
    friction = {"friction_base": gravity / share + 1e-6, "friction_viscous": 0.1}
    plant = SimulatedArm(arm, None, LAWS["m1"], friction)
    position, velocity, *_ = simulate(plant, nothing(arm), pose, np.zeros(3), 300, DT)
    assert np.any(velocity != 0.0) == moves
    assert np.any(position != pose) == moves


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7))
@example(seed=6816, n=5)  # nearly singular mobility: passes over the joints alone converge slowly
def test_coupled_friction_stops_or_is_used_up(seed, n):
    """After any step each joint rests within its budget, or friction is all of it and against the motion."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    mobility = root @ root.T + 0.1 * np.eye(n)
    budget = (rng.uniform(0.0, 2.0, n), rng.uniform(0.0, 2.0, n))
    body = object.__new__(_Body)
    body._share = rng.uniform(-1.0, 1.0, n)
    free = 3.0 * rng.normal(size=n)
    after, friction = body._coupled(free, mobility, budget)
    assert np.all((friction >= -budget[0] - 1e-12) & (friction <= budget[1] + 1e-12))
    np.testing.assert_allclose(after, free + mobility @ friction, atol=1e-6)
    for j in range(n):
        if after[j] != 0.0:
            limit = -budget[0][j] if after[j] > 0.0 else budget[1][j]
            assert friction[j] == pytest.approx(limit, abs=1e-6) or abs(after[j]) < 1e-6


def test_continuous_joints_move_as_limited_ones_do(tmp_path):
    """Two numbers of Pinocchio for one angle make no difference; nor does another order of the joints."""
    start = np.array([0.3, -0.4, 1.0]), np.array([1.0, 0.5, -0.5])
    arm = three_joint_arm(tmp_path)
    friction = coulomb_viscous(arm)
    reference = simulate(SimulatedArm(arm, None, **friction), nothing(arm), *start, 500, DT)[0]
    other = three_joint_arm(tmp_path, "continuous")
    position = simulate(SimulatedArm(other, None, **friction), nothing(arm), *start, 500, DT)[0]
    np.testing.assert_allclose(position, reference, atol=1e-9)
    order = [2, 0, 1]
    turned = load_arm(write_three_joint_urdf(tmp_path), [arm.joints[k] for k in order])
    friction["friction"] = {name: value[order] for name, value in friction["friction"].items()}
    plant = SimulatedArm(turned, None, **friction)
    position = simulate(plant, nothing(arm), *(part[order] for part in start), 500, DT)[0]
    np.testing.assert_allclose(position, reference[:, order], atol=1e-9)


def test_noise_is_what_is_asked_for_and_repeats(tmp_path):
    """Standard deviations and correlation as asked; the same seed the same noise, another one another."""
    arm = three_joint_arm(tmp_path)
    run = simulate_tracking(SimulatedArm(arm), fourier_motion(arm, 0), 5.0)
    noise = SensorNoise(torque=np.array([1.0, 2.0, 0.5]), correlation=0.6, position=1e-4)
    first, again, other = (run.measured("run", noise, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.effort, again.effort)
    assert not np.allclose(first.effort, other.effort)
    left = first.effort - run.torque
    np.testing.assert_allclose(left.std(axis=0), [1.0, 2.0, 0.5], rtol=0.1)
    np.testing.assert_allclose((first.position - run.position).std(axis=0), 1e-4, rtol=0.1)
    lag = np.sum(left[1:] * left[:-1], axis=0) / np.sum(left**2, axis=0)
    np.testing.assert_allclose(lag, 0.6, atol=0.05)


def test_what_makes_no_sense_is_refused(tmp_path):
    """Parameters of another law, motions of other joints, noise that grows, arms that run away."""
    arm = three_joint_arm(tmp_path)
    with pytest.raises(ConfigError, match="the law needs friction_base"):
        SimulatedArm(arm, None, LAWS["m1"], {"friction_base": 0.1})
    with pytest.raises(ConfigError, match="expected 3 numbers"):
        SimulatedArm(arm, np.zeros(2))
    with pytest.raises(ConfigError, match="shapes"):
        simulate_tracking(SimulatedArm(arm), lambda t: (np.zeros((len(t), 2)),) * 3, 1.0)
    with pytest.raises(ConfigError, match="between -1 and 1"):
        autoregressive(np.random.default_rng(0), (3, 2), 1.0)
    with pytest.raises(ConfigError, match="runs away"):
        simulate_tracking(SimulatedArm(arm), fourier_motion(arm, 0), 1.0, control=Control(kp=1e7, kd=1e5))
