"""Synthetic robots: what is stated as the friction of their joints is that of the plants."""

import numpy as np
import pytest

import synthetic_robots
from stribeck.model.law import LAWS, friction_budget


@pytest.fixture(scope="module")
def drawn():
    """Three joints with bristles, and the plant."""
    plant = synthetic_robots.Plant("m4", lugre=True)
    drives = synthetic_robots.DRIVES["servos"]
    return plant, synthetic_robots.drawn(np.random.default_rng(1), drives, plant, 3)


@pytest.mark.slow
@pytest.mark.parametrize("velocity", [-0.6, 0.05, 0.3])
def test_stated_friction_of_bristles_is_that_of_steady_sliding(drawn, velocity):
    """Against the motion, under a load."""
    plant, truth = drawn
    bristles, load = synthetic_robots.bristles(truth), np.full(3, 1.5)
    for _ in range(20_000):
        bristles.modulate(np.zeros(3), load)
        torque = bristles.torque(np.full(3, velocity), synthetic_robots.STEP)
    for joint in range(3):
        wanted = synthetic_robots.steady(plant, truth, joint, np.array([velocity]), load[:1])[0]
        assert np.sign(velocity) * torque[joint] == pytest.approx(wanted, rel=1e-6)


def test_stated_friction_of_a_law_is_what_the_motor_bears(drawn):
    """The motor carries load and friction: the fixed point of the law's budget."""
    plant, truth = synthetic_robots.Plant("m3"), drawn[1]
    v, load = np.array([0.4, -0.4]), np.array([0.8, 0.8])
    found = synthetic_robots.steady(plant, truth, 1, v, load)
    values = {name: each[1] for name, each in truth.items()}
    motor = load + np.sign(v) * found
    positive, negative = friction_budget(LAWS["m3"], values, motor, -load, v)
    assert found == pytest.approx(np.where(v > 0.0, positive, negative), rel=1e-3)
    by_hand = truth["friction_base"][1] + truth["friction_viscous"][1] * 0.4
    assert np.all(found > by_hand)


@pytest.mark.parametrize("lugre", [False, True])
def test_friction_over_the_angle_is_stated_where_the_joint_was(lugre):
    """Dry friction by the mean of its wave there, viscous friction as everywhere."""
    truth = {
        "friction_base": np.array([0.2]),
        "friction_stribeck": np.array([0.0]),
        "friction_viscous": np.array([0.5]),
        "dtheta_stribeck": np.array([0.1]),
        "load_friction_base": np.array([0.0]),
        "armature": np.array([0.01]),
        "ripple": np.array([0.1]),
        "ripple_wave": np.array([2.0]),
    }
    plant, places = synthetic_robots.Plant("m3", lugre=lugre), np.array([0.25 * np.pi, np.pi / 12.0])
    found = synthetic_robots.steady(plant, truth, 0, np.array([-0.4]), np.array([1.0]), places)
    assert found[0] == pytest.approx(0.2 * (1.0 + 0.1 * 0.75) + 0.5 * 0.4, rel=1e-12)


def test_large_steps_have_a_row_each_at_least():
    """The 5 ms of a leg and the 20 ms of a servo in steps of 4 ms."""
    legs, servos = (synthetic_robots.DRIVES[name] for name in ("legs", "servos"))
    assert synthetic_robots.rows_of(legs, 1e-4) == (1200, 50)
    assert synthetic_robots.rows_of(legs, 0.004) == (1500, 1)
    assert synthetic_robots.rows_of(servos, 0.004) == (1000, 5)


def test_bands_as_wide_as_needed_have_the_relative_width_1():
    """Half of the bands reach the truth exactly, by one end; bands of twice the width have 2."""
    true = np.array([1.0, 1.2, 0.8, 1.0])
    found, half = np.array([1.1, 1.1, 0.9, 1.1]), np.full(4, 0.1)
    assert synthetic_robots.relative_width(true, found, found - half, found + half) == pytest.approx(1.0)
    assert synthetic_robots.relative_width(true, found, found - 0.2, found + 0.2) == pytest.approx(2.0)
