"""Advice against joints that were simulated by a friction model of their own: gains that hunt, slow motion, dead bands, sag."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import refusal
from sticking import Joint, moved
from stribeck.advise.advice import AdviceSettings, advise
from stribeck.advise.hunting import describing, hunting
from stribeck.advise.plant import JointPlant, plant_of
from stribeck.advise.stairs import LENGTHS, slowest_speeds, stable_speed, stair_height
from stribeck.emulator.joint import published_parameters
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.law import law_named


def law_of(joint):
    """The law of a simulated joint, and its values."""
    values = {"friction_base": joint.kinetic, "friction_viscous": joint.viscous}
    if joint.static == joint.kinetic:
        return law_named("m1"), values
    fading = {"friction_stribeck": joint.static - joint.kinetic, "dtheta_stribeck": joint.speed, "alpha": 1.0}
    return law_named("m2"), values | fading


def plant(joint, load=0.0):
    """What advice knows of a simulated joint."""
    law, values = law_of(joint)
    return JointPlant(
        joint.stiffness, joint.damping, joint.inertia, math.inf, load, joint.delay, 1e-3, law, values
    )


def drive(joint, relative=0.1):
    """A file's drive of it, with intervals of ± 10 %."""
    law, values = law_of(joint)

    def about(value, unit):
        return estimate_of(value, unit, (value * (1 - relative), value * (1 + relative)), bounds=(0.0, 100.0))

    estimates = {name: about(value, "N m") for name, value in values.items()}
    estimates |= {"alpha": fixed(1.0, "1")} if "alpha" in values else {}
    estimates |= {
        "stiffness": about(joint.stiffness, "N m/rad"),
        "derivative": fixed(joint.damping, "N m s/rad"),
        "armature": fixed(joint.inertia, "kg m^2"),
    }
    actuator = torque_actuator("rotary", largest=10.0, resolution=1e-3, derivative_gain=1.0)
    return torque_drive(actuator, law, estimates)


@pytest.mark.slow
@pytest.mark.parametrize(
    "joint",
    [
        Joint(delay=0.02, inertia=0.1, kinetic=0.3, static=0.3),
        Joint(delay=0.01, damping=0.3),
        Joint(delay=0.005, inertia=0.01, kinetic=0.05, static=0.05),
        Joint(delay=0.01, kinetic=0.2, static=0.3, speed=0.05),
    ],
)
def test_the_gain_that_hunts_is_that_of_the_simulation(joint):
    """Within 20 %: the smallest gain at which a deflection of 0.1 rad does not halve in 25 periods."""
    found = hunting(plant(joint))
    gains = found.described * np.geomspace(0.5, 2.0, 25)
    dt = joint.delay / 25
    steps = int(25.0 / found.frequency / dt)
    paths = moved(replace(joint, stiffness=gains), np.zeros((steps, 25)), dt=dt, start=0.1)
    kept = np.abs(paths[int(0.8 * steps) :]).max(axis=0) > 0.05
    assert kept.any()
    assert not kept[0]
    assert found.stiffness == pytest.approx(gains[np.argmax(kept)], rel=0.2)


def test_more_friction_or_less_delay_bear_a_higher_gain():
    """The describing function by its equations at one point; without a delay no gain hunts."""
    joint = plant(Joint(delay=0.01))
    gain, omega = describing(joint)
    taken = joint.damping + joint.viscous(0.1 * omega) + 4.0 * 0.1 / (math.pi * 0.1 * omega)
    assert gain * math.cos(0.01 * omega) == pytest.approx(joint.inertia * omega**2, rel=1e-9)
    assert gain * math.sin(0.01 * omega) == pytest.approx(taken * omega, rel=1e-6)
    assert describing(plant(Joint(delay=0.01, kinetic=0.3, static=0.3)))[0] > gain
    assert describing(plant(Joint(delay=0.005)))[0] > gain
    assert hunting(plant(Joint(delay=0.0))).stiffness == math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    "joint",
    [
        Joint(static=0.2),
        Joint(static=0.2, speed=0.05, damping=0.2),
        Joint(static=0.15, speed=0.1, damping=0.1),
    ],
)
def test_the_slowest_smooth_speed_is_that_of_the_simulation(joint):
    """Within 30 %: the speed below which the joint stops on its way."""
    found = slowest_speeds(plant(joint), np.array(LENGTHS[1:2]))[0]
    speeds, dt = np.geomspace(0.02, 0.3, 24), 4e-4
    times = np.arange(0.0, 8.0, dt)
    paths = moved(joint, times[:, None] * speeds, dt=dt, every=20)
    slowest = (np.diff(paths, axis=0) / (20 * dt))[len(paths) // 2 :].min(axis=0)
    last = np.flatnonzero(slowest < 0.02 * speeds)[-1]
    assert found == pytest.approx(math.sqrt(speeds[last] * speeds[last + 1]), rel=0.3)
    assert stair_height(plant(joint), 0.5 * found) > 0.0


def test_the_speed_of_stable_motion_by_hand():
    """Where the slope of the fading friction is the damping: v ln(ΔF / (v (D + b))); stairs are below twice ΔF / K and F / K.

    From rest the joint stops at higher speeds already, if friction follows its law over a short way: up to 1.33 times that one, by
    the simulation, in steps of 5 %. The longer the way, the more speeds are smooth.
    """
    joint = Joint(static=0.2, speed=0.05, damping=0.2)
    expected = 0.05 * math.log(0.1 / (0.05 * 0.25))
    assert stable_speed(plant(joint)) == pytest.approx(expected, rel=0.02)
    shortest, assumed, longest = slowest_speeds(plant(joint), np.array(LENGTHS))
    assert slowest_speeds(plant(joint), np.array(LENGTHS[1:2]))[0] == assumed
    assert shortest > assumed > expected > longest
    assert shortest == pytest.approx(1.33 * expected, rel=0.06)
    assert slowest_speeds(plant(joint), np.array([1e-4])) == pytest.approx(shortest, rel=0.06)
    height = stair_height(plant(joint), 0.5 * expected)
    assert 0.2 * 0.1 / joint.stiffness < height < 3.0 * 0.2 / joint.stiffness


def test_friction_that_does_not_fall_makes_no_stairs():
    """Coulomb friction alone: every speed is smooth, and the advice says what cannot follow from such a law."""
    assert slowest_speeds(plant(Joint()), np.array(LENGTHS[1:2]))[0] == 0.0
    advice = advise("elbow", drive(Joint()))
    assert "no friction that decreases with speed" in " ".join(advice.notes)


def test_numbers_by_hand():
    """Friction 0.1 and load 0.2 N m on 8 N m/rad: a dead band of 25 mrad, a sag of 25 mrad, together 37.5 mrad at most."""
    advice = advise("lift", drive(Joint()), load=0.2, inertia=0.05)
    assert advice.dead_band.value == pytest.approx(0.025)
    assert advice.sag.value == pytest.approx(0.025)
    assert advice.error.value == pytest.approx(0.0375)
    assert advice.sufficient.value == pytest.approx(30.0)
    assert advice.with_offsets == pytest.approx((0.2 * 0.1 + 0.1 * 0.2) / 8.0)
    assert (
        advice.text
        == "raise the gain from 8 to 30, or send offset goals, which reduces the error at rest from 37.5 to 5 mrad"
    )
    for one in (advice.dead_band, advice.sag, advice.error, advice.sufficient, advice.hunts):
        assert one.lower < one.value < one.upper
    assert 0.8 < advice.dead_band.lower / advice.dead_band.value < 0.95


def test_a_gain_near_hunting_is_not_advised():
    """A joint that bears much and has a slow loop gets offset goals only; one that is precise is left alone."""
    weak = advise(
        "lift", drive(Joint(kinetic=0.3, static=0.3)), load=1.0, settings=AdviceSettings(delay=0.02)
    )
    assert weak.advised is None
    assert weak.text.startswith("send offset goals")
    assert "too close to the gain at which the joint hunts" in weak.text
    good = advise("pan", drive(Joint(stiffness=80.0)))
    assert good.text == "no change needed: the error at rest is at most 1.25 mrad"


def test_a_pose_beyond_the_motor_is_told():
    """No gain lifts what the motor cannot."""
    assert "at no gain can the joint keep this pose" in " ".join(
        advise("lift", drive(Joint()), load=11.0).notes
    )


def test_a_voltage_servo_needs_its_gain_and_its_supply():
    """Both are refused if they are missing; the stiffness is that of the control law by hand."""
    servo = published_parameters("sts3215")
    refusal(lambda: plant_of(servo, kp=None, supply=7.4), "kp")
    refusal(lambda: plant_of(servo, kp=16.0), "supply")
    values = servo.values
    expected = values["kt"] / values["R"] * 7.4 * 0.166 * 16.0
    assert plant_of(servo, kp=16.0, supply=7.4).stiffness == pytest.approx(expected, rel=1e-6)
    refusal(
        lambda: advise("joint", drive(Joint()), settings=AdviceSettings(tolerance=0.0)),
        "tolerance",
        "positive",
    )
