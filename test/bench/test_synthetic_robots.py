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
