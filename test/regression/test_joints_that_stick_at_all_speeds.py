"""Joints that stick on the fastest simulated ramp, whose speed was given as the slowest smooth one."""

import math
from dataclasses import replace

import numpy as np
import pytest

from stribeck.advise import stairs
from stribeck.advise.advice import advise
from stribeck.advise.plant import JointPlant
from stribeck.advise.stairs import FASTEST, LENGTHS, slowest_speeds, stable_speed
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import law_named

FRICTION = {
    "friction_base": 0.1,
    "friction_viscous": 0.005,
    "friction_stribeck": 0.4,
    "dtheta_stribeck": 0.005,
    "alpha": 1.0,
}
PLANT = JointPlant(8.0, 0.0, 0.001, math.inf, 0.0, 0.0, 1e-3, law_named("m2"), FRICTION)


def sticking_below(monkeypatch, limit):
    """Let joints stop on all ramps that are slower than a limit [rad/s]."""

    def stops(plant, speeds, lengths):
        return np.tile(speeds < limit, (len(lengths), 1))

    monkeypatch.setattr(stairs, "_stops", stops)


@pytest.mark.parametrize("share", [0.5, 2.4, 7.0, 60.0])
def test_faster_ramps_follow_while_the_fastest_sticks(monkeypatch, share):
    """What happened: at most 2.5 times the stable speed was found. What must happen: the limit, to the distance of two ramps."""
    limit = share * stable_speed(PLANT)
    sticking_below(monkeypatch, limit)
    assert slowest_speeds(PLANT, np.array(LENGTHS[1:2]))[0] == pytest.approx(limit, rel=0.04)


def test_a_limit_that_is_not_found_is_said(monkeypatch):
    """Beyond 10 rad/s the speed is infinite, without stairs, and the advice says so; below all ramps it is zero."""
    sticking_below(monkeypatch, math.inf)
    assert slowest_speeds(PLANT, np.array(LENGTHS[1:2]))[0] == math.inf
    values = {"stiffness": 8.0, "derivative": 0.0, "armature": 0.001, **FRICTION}
    actuator = torque_actuator("rotary", largest=10.0, resolution=1e-3, derivative_gain=1.0)
    drive = torque_drive(actuator, PLANT.law, {name: fixed(value, "") for name, value in values.items()})
    advice = advise("elbow", drive)
    assert (advice.slowest.value, advice.stair) == (math.inf, 0.0)
    assert f"sticks at all simulated speeds, up to {FASTEST:g} rad/s" in " ".join(advice.notes)
    sticking_below(monkeypatch, 0.0)
    assert slowest_speeds(PLANT, np.array(LENGTHS[1:2]))[0] == 0.0


def test_ramps_end_after_a_number_of_steps(monkeypatch):
    """What happened: 600 million steps for a stable speed of 1e-5 rad/s. Ramps that are cut off count as stopped."""
    counted = []
    monkeypatch.setattr(stairs, "MOST_STEPS", 2000)
    monkeypatch.setattr(stairs.np, "sign", lambda x, sign=np.sign: counted.append(0) or sign(x))
    speeds = np.array([1e-5, 1e-4, 1.0])
    stopped = stairs._stops(PLANT, speeds, np.array([5e-4]))[0]
    assert len(counted) == 2000
    assert stopped[:2].tolist() == [True, True]


@pytest.mark.slow
def test_a_light_joint_with_little_damping_sticks_beyond_the_first_ramps():
    """Its speed lies within the ramps that follow: the joint stops below it and not above."""
    plant = replace(PLANT, stiffness=4.0)
    stable, found = stable_speed(plant), slowest_speeds(plant, np.array(LENGTHS[1:2]))[0]
    assert 2.5 * stable < found < 25.0 * stable
    assert stairs._stops(plant, found * np.array([0.95, 1.2]), np.array(LENGTHS[1:2])).tolist() == [
        [True, False]
    ]
