"""Simulated labs: the plant's friction is what it states, and identifications say what they know of it."""

import numpy as np
import pytest

import labs
from plants.friction import Side


@pytest.fixture(scope="module")
def lab():
    return labs.Lab.drawn(0)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("speed", [-0.4, 0.2, 0.7])
def test_stated_friction_is_that_of_steady_sliding(lab, speed):
    """Of bristles and Maxwell slip, over whole waves of the ripple, under a load."""
    load = np.full(labs.JOINTS, 20.0)
    plant, position = Side(lab.values, lab.slips), np.zeros(labs.JOINTS)
    waves = 2.0 * np.pi / lab.values.ripple_wave
    steps = np.maximum(round(float(np.max(waves)) / abs(speed) / labs.STEP), 1)
    torque = []
    for _ in range(3 * steps):
        position = position + speed * labs.STEP
        plant.modulate(position, load)
        torque.append(plant.torque(np.full(labs.JOINTS, speed), labs.STEP))
    for joint, wave in enumerate(waves):
        last = round(max(int(steps * labs.STEP * abs(speed) / wave), 1) * wave / abs(speed) / labs.STEP)
        found = np.mean([row[joint] for row in torque[-last:]])
        wanted = lab.steady(joint, np.array([speed]), load[:1])[0]
        assert np.sign(speed) * found == pytest.approx(wanted, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", labs.KINDS)
def test_bands_hold_the_friction_of_a_lab_and_its_joints_may_be_used(kind):
    """Of one lab: friction within 5 % in the median, most of it within bands; no joint is usable that predicts badly."""
    found = labs.summary(labs.run_lab(0, [kind], lambda text: None)[kind])
    assert found["median error"] < 0.05
    assert found["covered"] > 0.85
    assert found["usable above 20 %"] == 0
    assert found["usable of good"] >= 0.8


@pytest.mark.slow
def test_presliding_is_not_taken_for_a_delay():
    """Friction that follows reversals late had a delay of -17 ms, and viscous friction was 6 % low: its error was 0.7 %, 85 % in bands."""
    found = labs.summary(labs.run_lab(8, ["whole"], lambda text: None)["whole"])
    assert found["median error"] < 0.005
    assert found["covered"] > 0.92
    assert found["usable of good"] >= 0.8
