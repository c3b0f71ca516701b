"""The compiled joint is the formula of a step, and that is core's."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.joint import (
    SETTINGS,
    EmulatedJoint,
    Firmware,
    JointKind,
    JointMotion,
    counted_duty,
    joint_step,
    published_parameters,
)
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import ControlState, Gains
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS
from stribeck.model.terms import FRICTION_PARAMETERS

LAWS_WITH_TERMS = [
    law.with_terms(asymmetric=asymmetric, offset=offset)
    for law, asymmetric, offset in itertools.product(LAWS.values(), (False, True), (False, True))
]
LOAD = Pendulum(0.2, 0.1, 0.02)


def joint_of(law, saturates=False):
    actuator = load_actuator("xl330")
    values = dict(actuator.published["m6"]) | {"q_offset": 0.1}
    for name in law.parameter_names:
        entry = FRICTION_PARAMETERS[name]
        values.setdefault(name, entry.lower + 0.3 * (entry.upper - entry.lower))
    if saturates:
        values["torque_saturation"] = 0.1
    return EmulatedJoint(Drive(actuator, law, values), LOAD, 0.3, 1e-3)


COMMANDS = [
    Firmware("off", 0.0, Gains(400.0, 0.0, 0.0)),
    Firmware("position", 0.8, Gains(400.0, 0.0, 0.0), 1.0, 1.75),
    Firmware("position", -0.5, Gains(900.0, 50.0, 30.0), 0.5, 0.3, 2.0),
    Firmware("position", 0.3, Gains(3000.0, 0.0, 900.0)),
    Firmware("current", 0.2, Gains(400.0, 0.0, 0.0), 1.0, 1.75),
    Firmware("pwm", -0.6, Gains(400.0, 0.0, 0.0), 0.4),
]


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("law", "saturates"), [*((law, False) for law in LAWS_WITH_TERMS), (LAWS["m6"], True)], ids=str
)
def test_the_compiled_joint_is_the_formula(law, saturates):
    """State for state, to the last bit, through all kinds of commands, pushes, and a supply that breaks down."""
    joint = joint_of(law, saturates)
    moved = 0.0
    for command, (push, voltage) in itertools.product(COMMANDS, [(0.0, 5.0), (0.2, 5.0), (-0.3, 0.0)]):
        joint.step(command, push, voltage)
        motion = state_of(joint)
        formula = partial(joint_step, kind_of(joint, command))
        constants = constants_of(joint, command, push, voltage)
        for _ in range(30):
            wanted, outside = formula(constants, motion)
            joint.step(command, push, voltage)
            motion = state_of(joint)
            assert motion == wanted
            assert outside == (joint.voltage < 3.0)
            moved = max(moved, abs(motion.velocity))
    assert moved > 0.5


def test_many_steps_are_as_many_single_ones():
    """In one call and one by one; the loop ends where the voltage is not allowed."""
    command, (one, other) = COMMANDS[1], (joint_of(LAWS["m6"]) for _ in range(2))
    seen = []
    assert one.step(command, 0.05, 5.0, 200, observe=seen.append) == 200
    positions = []
    for _ in range(200):
        assert other.step(command, 0.05, 5.0) == 1
        positions.append(other.state.position)
    assert seen == positions
    assert one.state == other.state
    assert np.ptp(positions) > 0.1
    lowest = 5.0 - 0.5 * (5.0 - one.voltage) if one.voltage < 5.0 else 4.99
    fresh = joint_of(LAWS["m6"])
    made = fresh.step(COMMANDS[3], 0.0, 5.0, 200, (lowest, 6.0))
    assert made < 200
    assert fresh.voltage < lowest


def state_of(joint):
    position, velocity, control = joint.state
    return JointMotion(
        position, velocity, *control, joint.voltage, joint.motor_torque, joint.current, joint.duty
    )


def kind_of(joint, command) -> JointKind:
    return joint._kind_of(command)


def constants_of(joint, command, push, voltage):
    values = {name: value for name, value in joint.values.items() if name != "current_limit"}
    if command.current_limit is not None:
        values["current_limit"] = command.current_limit
    speed = 0.0 if command.goal_speed is None else command.goal_speed
    counts = (command.resolution, command.dead_zone, command.punch)
    settings = (command.goal, *command.gains, speed, command.duty_limit, *LOAD, 1e-3, 0.3, *counts)
    return values | dict(zip(SETTINGS, (*settings, voltage, push, 3.0, 99.0), strict=True))


def feetech(error: float, gain: float = 32.0, velocity: float = 0.0) -> float:
    """Duty of the counting law at a position error of some counts, with a dead zone of 2 counts and a punch of 0.016."""
    parameters = published_parameters("sts3215")
    count, control = 2.0 * math.pi / 4096, parameters.actuator.control
    kind = JointKind(parameters.law, control, "position", (), counted=True)
    constants = {"resolution": count, "dead_zone": 2.0 * count, "punch": 0.016}
    state = ControlState(error * count, 0.0)
    return float(counted_duty(kind, constants, Gains(gain, 0.0, 0.0), state, velocity, 0.0))


def test_a_law_in_counts_has_a_dead_zone_and_a_least_duty() -> None:
    """No duty up to two counts, the punch beyond, and the P law where that is more: 0.166 · 32 · e at 10 counts."""
    assert [feetech(e) for e in (0.0, 1.0, 2.0, -2.0)] == [0.0, 0.0, 0.0, 0.0]
    assert feetech(3.0, gain=1.0) == 0.016
    assert feetech(-3.0, gain=1.0) == -0.016
    assert feetech(10.0) == pytest.approx(0.166 * 32.0 * 10.0 * 2.0 * math.pi / 4096)
    assert feetech(-4000.0) == pytest.approx(-0.97)


def test_an_emulated_sts3215_stands_still_within_its_dead_zone() -> None:
    """A goal two counts away moves nothing, one a hundred counts away leaves less than friction over gain."""
    servo = EmulatedServo("sts3215", noise=0.0)
    servo.begin(0.0)
    numbers = servo.memory.numbers
    numbers.update(torque_enable=1, cw_dead_zone=2, ccw_dead_zone=2)
    for goal, least, most in ((2050, 0.0, 0.0), (2150, 60.0, 100.0)):
        numbers["goal_position"] = goal
        servo._apply_registers()
        servo.advance_to(servo.clock + 2.0)
        assert least <= servo.state.position / (2.0 * math.pi / 4096) <= most
