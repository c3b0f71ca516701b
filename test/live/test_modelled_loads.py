"""Friction of offset goals that depends on the load, where efforts are not measured but the weight is modelled."""

from dataclasses import replace

import numpy as np
import pytest

from compensating import model, settings_with
from cpp_histories import Pair, Setup
from stribeck.errors import ConfigError
from stribeck.live.compensator import Compensator
from stribeck.live.loads import MODELLED_SHARE
from stribeck.model.bench import Pendulum
from stribeck.model.joint_map import JointMap
from stribeck.model.law import friction_budget
from stribeck.rigid.dynamics import IndependentJoints

GRAVITY = 9.80665


def pendulum(torque, joints=1):
    """Joints with that torque of gravity at a right angle [N m], hanging at 0."""
    return IndependentJoints(np.full(joints, 0.004), Pendulum(torque / GRAVITY, 1.0, 0.0))


def settled(joint, dynamics, *, gain=0.8, joint_map=None, meaning="none", speed=0.5):
    """Torque of a joint that follows a goal 20 mrad behind it about a right angle, after half a second [N m]."""
    joint_map = joint_map or JointMap()
    settings = settings_with(
        mode="goal_offset", effort_meaning=meaning, ramp_time=0.0, slew=1e6, gain=gain, loop_delay=0.002
    )
    loop = Compensator([joint], [joint_map], settings, dynamics=dynamics)
    loop.on_telemetry(joint.name, kp=400.0, supply_voltage=5.0)
    loop.enable()
    for k in range(101):
        t = 0.005 * k
        at = np.array([0.5 * np.pi + speed * (t - 0.5)])
        loop.on_command(t, t - 0.001, loop.names, at + 0.02 * np.sign(speed), [speed], [])
        loop.on_state(t, t, loop.names, at, [speed], [])
    return float(loop.torque[0]), loop


@pytest.mark.ci
@pytest.mark.parametrize("law", ["m3", "m4", "m5", "m6"])
@pytest.mark.parametrize("weight", [0.1, -0.1])
def test_friction_is_that_under_half_of_the_modelled_weight(law, weight):
    """The torque is the fixed point of gain times the budget under s g(q) and itself, for both signs of the weight."""
    joint = model(law=law)
    found, loop = settled(joint, pendulum(weight))
    loaded = MODELLED_SHARE * weight
    wanted = 0.0
    for _ in range(200):
        wanted = 0.8 * float(friction_budget(joint.law, joint.values, loaded + wanted, -loaded, 0.5)[0])
    assert loop.doubt is None
    assert found == pytest.approx(wanted, rel=2e-3)
    assert found > settled(joint, None)[0] + 1e-4


def test_friction_that_does_not_depend_on_the_load_stays_the_same():
    """Law M1, with a model and without."""
    assert settled(model(), pendulum(0.1))[0] == pytest.approx(settled(model(), None)[0], rel=1e-9)


def test_weight_beyond_the_motor_counts_as_that_at_stall():
    """A model in wrong units: at most what the motor holds, and at most the limit of the torque."""
    joint = model(law="m4")
    stall = Compensator([joint], [JointMap()], settings_with(mode="sum", effort_meaning="none")).model.stall[
        0
    ]
    assert settled(joint, pendulum(1e6))[0] == pytest.approx(settled(joint, pendulum(stall))[0], rel=1e-9)
    assert settled(joint, pendulum(1e6))[0] <= joint.max_torque


def test_gears_and_signs_reach_the_friction():
    """A joint behind a gear of -2: its servo bears half of the weight, and needs twice the torque at the joint."""
    joint, gear = model(law="m4"), JointMap(-1.0, 2.0, 0.0)
    found, _ = settled(joint, pendulum(0.1), joint_map=gear)
    alone, _ = settled(joint, pendulum(-0.05), speed=-1.0)
    assert found == pytest.approx(-2.0 * alone, rel=1e-3)


def test_loads_end_where_friction_would_amplify_itself():
    """A gain at which friction grows by more than 0.9 of the torque against it is accepted, as without a model, with loads of zero."""
    joint = model(law="m3", load_friction_base=0.48)
    found, loop = settled(joint, pendulum(0.1), gain=0.8)
    assert loop.loads.modelled
    assert found > 0.0
    steep = model(law="m3", load_friction_base=0.95)
    found, loop = settled(steep, pendulum(0.1), gain=1.0)
    assert not loop.loads.modelled
    assert found == pytest.approx(settled(steep, None, gain=1.0)[0], rel=1e-9)
    loop.set_gain(0.5)
    assert loop.loads.modelled


def test_a_joint_whose_position_is_not_trusted_takes_the_loads_of_all():
    """The weight of one joint depends on the positions of others: no load while one stands still although it says that it moves."""
    joints = [model("a", "m4"), model("b", "m4")]
    settings = settings_with(mode="goal_offset", effort_meaning="none", ramp_time=0.0)
    loop = Compensator(joints, [JointMap(), JointMap()], settings, dynamics=pendulum(np.array([0.1, 0.1]), 2))
    for name in loop.names:
        loop.on_telemetry(name, kp=400.0, supply_voltage=5.0)
    loop.enable()
    loads = []
    for k in range(1200):
        now, moved = 10.0 + 0.005 * k, 0.5 * np.sin(0.01 * k)
        speed = np.cos(0.01 * k)
        at = np.array([1.0 + moved, 1.0 + (moved if k < 400 else 0.3)])
        loop.on_command(now, now - 0.001, loop.names, at + 0.02, [speed, speed], [])
        loop.on_state(now, now, loop.names, at, [speed, 1.0 if k >= 400 else speed], [])
        loads.append(float(loop.loads.latest.motor[0]))
    assert min(loads[10:400]) > 0.01
    assert loads[-1] == 0.0


def test_a_steep_joint_that_is_not_enabled_limits_no_gain():
    """Neither at the beginning nor later, in Python and C++."""
    steep = replace(model("b", "m3", load_friction_base=0.95), enabled=False)
    pair = Pair(
        Setup(
            [model("a", "m3"), steep],
            [JointMap(), JointMap()],
            settings_with(mode="sum", effort_meaning="motor", gain=0.5),
            None,
        )
    )
    assert pair.set_gain(0.95)
    with pytest.raises(ConfigError, match="gain must be between"):
        pair.python.set_gain(2.5)


@pytest.mark.ci
@pytest.mark.parametrize("law", ["m3", "m5", "m6"])
def test_controllers_in_cpp_have_the_same_torque(law):
    """Two joints of different gears that swing under a modelled weight, with gains that end and begin the loads."""
    joints = [model("a", law), model("b", law)]
    settings = settings_with(mode="goal_offset", effort_meaning="none", ramp_time=0.1)
    pair = Pair(
        Setup(joints, [JointMap(), JointMap(-1.0, 1.7, 0.2)], settings, pendulum(np.array([0.1, 0.06]), 2))
    )
    for name in pair.names:
        pair.tell("on_telemetry", name, kp=400.0, supply_voltage=5.0)
    pair.tell("enable")
    largest = np.zeros(2)
    for k in range(300):
        now, swing = 10.0 + 0.005 * k, np.array([0.3, 0.5]) * np.sin(2.0 * 0.005 * k + np.array([0.0, 1.0]))
        pair.tell("on_command", now, now - 0.001, pair.names, swing + 0.003, [], [])
        pair.tell("on_state", now, now, pair.names, swing, [], [])
        pair.compare(now)
        largest = np.maximum(largest, np.abs(pair.python.torque))
        if k == 150:
            assert pair.set_gain(1.1)
    assert pair.python.loads.modelled
    assert largest.min() > 0.01
    assert pair.worst < 1e-8
