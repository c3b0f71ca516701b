"""The compiled joint is the formula of a step, and that is core's."""

import itertools
from functools import partial

import numpy as np
import pytest

from stribeck.emulator.joint import SETTINGS, EmulatedJoint, Firmware, JointKind, JointMotion, joint_step
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import Gains
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
    settings = (command.goal, *command.gains, speed, command.duty_limit, *LOAD, 1e-3, 0.3, voltage, push, 3.0)
    return values | dict(zip(SETTINGS, (*settings, 99.0), strict=True))
