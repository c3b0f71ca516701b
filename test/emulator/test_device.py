"""The emulated servo: its physics is core's, its control table is the manual's."""

import math
from dataclasses import replace

import numpy as np
import pytest

from emulated_servo import LOAD, frictionless, put, read, servo, write
from helpers import FRICTIONLESS, log_of, published, refusal
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.protocol import Error1, Error2
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum, gravity_amplitude, gravity_torque
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.log import Setup, batch_of
from stribeck.model.step import simulate
from stribeck.servo.tables import MODELS

# Physics.


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("model", "kp", "load"),
    [("xl330", 400, Pendulum(0.2, 0.1, 0.02)), ("mx106", 32, Pendulum(1.1, 0.15, 0.0)), ("xl320", 32, LOAD)],
)
@pytest.mark.parametrize("law", ["m1", "m6"])
def test_the_motion_is_that_of_core(model, kp, load, law):
    """A run with torque going off, command for command: positions and velocities equal core.simulate's."""
    actuator = load_actuator(model)
    values = published(model, law) | {"q_offset": 0.0}
    device = EmulatedServo(
        model, Drive(actuator, law_named(law), values), load, noise=0.0, supply_resistance=0.0
    )
    device.begin(0.0)
    count = 2000
    time = 1e-3 * np.arange(count)
    scale, center = (
        device.model.registers["goal_position"].scale,
        device.model.registers["goal_position"].zero,
    )
    counts = np.round(0.8 * np.sin(6.0 * time) / scale)
    enable = (time < 1.5).astype(float)
    setup = Setup(load.mass, load.length, load.arm_mass, device.model.nominal_voltage, float(kp))
    log = log_of(time, goal=counts * scale, torque_enable=enable, setup=setup, actuator=model)
    if "current_limit" in device.model.registers:
        values = values | {"current_limit": 1.75}
    wanted = simulate(batch_of([log.resample(1e-3)]), actuator, law_named(law), values)

    put(device, position_p_gain=kp)
    for k in range(count - 1):
        put(device, goal_position=int(counts[k]) + center)
        if k == 0 or enable[k] != enable[k - 1]:
            put(device, torque_enable=int(enable[k]))
        device.advance_to(1e-3 * (k + 1))
        # Scalars run on math, arrays on numpy: the last bits differ.
        assert device.state.position == pytest.approx(wanted.position[k + 1, 0], abs=1e-9), k
        assert device.state.velocity == pytest.approx(wanted.velocity[k + 1, 0], abs=1e-7), k
    assert np.ptp(wanted.position) > 0.3, "the joint did not move"


def test_a_frictionless_joint_swings_on():
    """Friction zero is possible: with torque off the energy of a swing stays, to the integrator's 1 %."""
    device = frictionless()
    device.push(0.3, 0.2)
    device.advance_to(0.2)

    def energy():
        moment = LOAD.mass * 0.01 + LOAD.arm_mass * 0.01 / 3 + 1e-3
        potential = gravity_amplitude(LOAD) * (1 - math.cos(device.state.position))
        return 0.5 * moment * device.state.velocity**2 + potential

    first = energy()
    assert first > 0.01
    device.advance_to(20.0)
    assert energy() == pytest.approx(first, rel=0.01)


def test_pwm_mode_drives_to_the_speed_at_which_the_back_emf_is_the_voltage():
    """With half the supply on a frictionless motor the speed is dV/k_t."""
    device = frictionless(load=Pendulum(0.0, 0.0, 0.0))
    put(device, operating_mode=16, goal_pwm=442, torque_enable=1)
    device.advance_to(1.0)
    speed = 442 / 885 * 5.0 / FRICTIONLESS["kt"]
    assert device.state.velocity == pytest.approx(speed, rel=1e-6)
    assert read(device, "present_pwm") == 442
    assert read(device, "present_velocity") == round(speed / device.model.register("present_velocity").scale)
    assert read(device, "present_current") == 0
    assert read(device, "moving") == 1


def test_current_mode_holds_the_current_and_with_it_the_torque():
    """At rest against gravity, τ = k_t I; the duty is R I / V."""
    device = frictionless(load=Pendulum(0.2, 0.1, 0.0))
    torque = 0.15
    current = round(1e3 * torque / FRICTIONLESS["kt"])
    put(device, operating_mode=0, goal_current=current, torque_enable=1)
    device.advance_to(0.001)
    assert device.joint.motor_torque == pytest.approx(FRICTIONLESS["kt"] * current / 1e3, rel=1e-12)
    assert read(device, "present_current") == current
    assert read(device, "present_pwm") == round(885 * FRICTIONLESS["R"] * current / 1e3 / 5.0)


def test_current_based_position_mode_stays_below_its_goal_current():
    """A far goal asks for full duty; the current is what goal_current allows."""
    device = servo(load=Pendulum(0.5, 0.1, 0.0))
    put(device, operating_mode=5, goal_current=200, torque_enable=1, goal_position=4000)
    for k in range(1, 300):
        device.advance_to(1e-3 * k)
        assert abs(read(device, "present_current")) <= 200
    assert read(device, "present_current") == 200
    assert read(device, "present_pwm") < 300


def test_a_smaller_goal_pwm_limits_position_mode():
    """In position mode goal_pwm is the largest duty."""
    device = servo(load=Pendulum(0.5, 0.1, 0.0))
    put(device, torque_enable=1, goal_pwm=100, goal_position=3500)
    device.advance_to(0.5)
    assert read(device, "present_pwm") == 100


def test_torque_off_is_an_open_circuit():
    """Without torque there is no motor torque, whatever the speed, and no duty."""
    device = servo()
    put(device, torque_enable=1, goal_position=2600)
    device.advance_to(0.1)
    assert device.state.velocity > 1.0
    put(device, torque_enable=0)
    device.advance_to(0.101)
    assert device.joint.motor_torque == 0.0
    assert read(device, "present_pwm") == read(device, "present_current") == 0


def test_a_profile_velocity_ramps_the_goal():
    """The goal moves at profile_velocity; the joint reaches it no earlier."""
    device = servo()
    put(device, torque_enable=1, profile_velocity=20, position_p_gain=2000)
    put(device, goal_position=2048 + 400)
    speed = 20 * device.model.register("profile_velocity").scale
    whole = 400 * device.model.register("goal_position").scale / speed
    device.advance_to(0.5 * whole)
    assert read(device, "position_trajectory") == pytest.approx(2048 + 200, abs=1)
    assert device.state.position < 0.55 * whole * speed
    device.advance_to(1.2 * whole)
    assert read(device, "position_trajectory") == 2048 + 400


def test_the_supply_sags_by_the_power_drawn():
    """V = V_0 - R_s d I once the motor stands against its load, by hand."""
    device = servo(load=Pendulum(0.5, 0.1, 0.0), supply_resistance=0.3)
    put(device, torque_enable=1, goal_position=3000)
    device.advance_to(2.0)
    joint = device.joint
    assert joint.voltage == pytest.approx(5.0 - 0.3 * joint.duty * joint.current, abs=1e-6)
    assert joint.duty * joint.current > 0.05
    assert read(device, "present_input_voltage") == round(10 * joint.voltage)


def test_a_push_is_an_outside_torque_for_its_time():
    """Free of friction, J dω = (τ + τ_g) dt, step by step, and nothing after the push."""
    device = frictionless()
    moment = LOAD.mass * 0.01 + LOAD.arm_mass * 0.01 / 3 + 1e-3
    device.push(0.05, 0.01)
    position = velocity = 0.0
    for k in range(20):
        torque = (0.05 if k < 10 else 0.0) + gravity_torque(LOAD, position, 0.0)
        velocity += torque / moment * 1e-3
        position += velocity * 1e-3
        device.advance_to(1e-3 * (k + 1))
        assert device.state.velocity == pytest.approx(velocity, abs=1e-12), k


def test_a_late_call_catches_up_in_order():
    """One call over half a second gives what five hundred give."""
    one, many = servo(), servo()
    for device in (one, many):
        put(device, torque_enable=1, goal_position=2500)
    one.advance_to(0.5)
    for k in range(500):
        many.advance_to(1e-3 * (k + 1))
    assert one.state == many.state
    assert one.clock == pytest.approx(0.5)


def test_a_command_delay_of_the_parameters_is_kept():
    """With command_delay 20 ms nothing moves for 20 ms."""
    actuator = load_actuator("xl330").with_effects(["delay"])
    values = {**published("xl330", "m6"), "q_offset": 0.0, "command_delay": 0.02}
    device = EmulatedServo("xl330", Drive(actuator, law_named("m6"), values), LOAD, noise=0.0)
    device.begin(0.0)
    put(device, torque_enable=1, goal_position=2600)
    device.advance_to(0.02)
    assert device.state.position == 0.0
    device.advance_to(0.03)
    assert device.state.position > 0.0


# Encoder.


def test_noise_is_rounded_to_counts_and_has_its_deviation():
    """At rest on a count, readings are whole counts with the variance of noise and rounding."""
    device = EmulatedServo("xl330", None, LOAD, noise=2.0, rng=np.random.default_rng(3))
    counts = [read(device, "present_position") for _ in range(4000)]
    assert np.mean(counts) == pytest.approx(2048, abs=0.15)
    assert np.std(counts) == pytest.approx(math.sqrt(4.0 + 1.0 / 12.0), rel=0.05)


def test_hanging_is_where_the_mounting_offset_says():
    """The joint begins in its equilibrium: at -θ_0, and stays there."""
    values = {**published("xl330", "m6"), "q_offset": 0.1}
    device = EmulatedServo("xl330", Drive(load_actuator("xl330"), law_named("m6"), values), LOAD, noise=0.0)
    device.begin(0.0)
    device.advance_to(1.0)
    assert device.state.position == -0.1
    assert read(device, "present_position") == 2048 - round(0.1 / (2 * math.pi) * 4096)


def test_positions_of_protocol_1_wrap_and_those_of_protocol_2_count_on():
    """One turn and a half: 2048 more on an MX(1.0), 6144 more on an XL330."""
    for model, wanted in (("xl330", 2048 + 6144), ("mx106", 4096)):
        device = servo(model)
        state = device.joint.state
        device.joint.state = state._replace(position=3 * math.pi)
        assert read(device, "present_position") == wanted % (4096 if model == "mx106" else 1 << 31)


def test_a_homing_offset_moves_the_scale():
    """Present and goal positions are counted from the offset."""
    device = servo()
    put(device, homing_offset=100)
    assert read(device, "present_position") == 2148
    put(device, torque_enable=1, position_p_gain=5000, goal_position=2148)
    device.advance_to(0.3)
    assert device.state.position == pytest.approx(0.0, abs=1e-3)


# The control table.


def test_what_may_not_be_written_is_refused_and_changes_nothing():
    """Read-only, EEPROM under torque, out of range, beyond a limit, half a register: the manual's errors."""
    device = servo()
    assert write(device, "present_position", 5) == Error2.ACCESS
    assert write(device, "torque_enable", 2) == Error2.DATA_RANGE
    assert write(device, "goal_position", 5000) == Error2.DATA_LIMIT
    assert device.write(116, b"\x00\x08") == Error2.DATA_LENGTH
    assert device.write(66, b"\x00") == Error2.ACCESS
    assert device.write(1000, b"\x00") == Error2.ACCESS
    assert device.read(220, 20)[0] == Error2.ACCESS
    put(device, pwm_limit=500, current_limit=900)
    assert write(device, "goal_pwm", 501) == Error2.DATA_LIMIT
    assert write(device, "goal_current", -901) == Error2.DATA_LIMIT
    put(device, torque_enable=1)
    assert write(device, "pwm_limit", 400) == Error2.ACCESS
    assert write(device, "operating_mode", 16) == Error2.ACCESS
    assert read(device, "pwm_limit") == 500
    put(device, torque_enable=0, operating_mode=4, goal_position=9000)


def test_errors_of_protocol_1_are_bits():
    """The same on an MX-106: angle limit and range."""
    device = servo("mx106")
    put(device, max_position_limit=3000)
    assert write(device, "goal_position", 3001) == Error1.ANGLE_LIMIT
    assert write(device, "present_position", 5) == Error1.RANGE
    assert write(device, "torque_enable", 2) == Error1.RANGE
    put(device, torque_enable=1)
    assert write(device, "max_position_limit", 4095) == Error1.RANGE


def test_what_is_not_emulated_is_refused():
    """Velocity mode, reversed direction, feed-forward: out of range rather than silently ignored."""
    device = servo()
    for name, number in (("operating_mode", 1), ("drive_mode", 1), ("feedforward_1st_gain", 100)):
        assert write(device, name, number) == Error2.DATA_RANGE, name
    assert write(servo("xl320"), "operating_mode", 1) == Error2.DATA_RANGE


def test_a_new_mode_resets_gains_and_goals():
    """As the manual says: gains to the factory's, goals to their limits, profile to zero."""
    device = servo()
    put(device, position_p_gain=100, profile_velocity=50, goal_pwm=10, operating_mode=5)
    assert read(device, "position_p_gain") == 400
    assert read(device, "profile_velocity") == 0
    assert read(device, "goal_pwm") == 885


def test_a_registered_write_waits_for_action():
    """Reg write changes nothing until action, which works once."""
    device = servo()
    assert device.register(116, (2300).to_bytes(4, "little")) == 0
    assert read(device, "registered_instruction") == 1
    assert read(device, "goal_position") == 2048
    assert device.act() == 0
    assert read(device, "goal_position") == 2300
    assert device.act() == Error2.INSTRUCTION


def test_indirect_data_stand_for_what_the_addresses_name():
    """Torque enable and goal position through two indirect blocks, in one write and one read."""
    device = servo()
    targets = [64, 116, 117, 118, 119]
    assert device.write(168, b"".join(t.to_bytes(2, "little") for t in targets)) == 0
    assert device.write(208, bytes((1,)) + (2222).to_bytes(4, "little")) == 0
    assert (read(device, "torque_enable"), read(device, "goal_position")) == (1, 2222)
    assert device.read(208, 5) == (0, bytes((1,)) + (2222).to_bytes(4, "little"))
    assert device.read(168, 2) == (0, b"\x40\x00")


def test_reading_across_registers_gives_the_block():
    """The block that a recorder reads: pwm, current, velocity, position, trajectories, voltage, temperature."""
    device = servo(temperature=31.0)
    error, data = device.read(124, 23)
    assert error == 0
    assert int.from_bytes(data[8:12], "little") == 2048
    assert int.from_bytes(data[20:22], "little") == 50
    assert data[22] == 31


def test_servos_that_cannot_be_are_refused():
    """Unknown models, registers and errors, laws without a voltage bridge, servos without parameters."""
    refusal(lambda: servo("xl999"), "xl999", "xl330")
    refusal(lambda: servo("xm430"), "xm430", "parameter file", "xl330")
    refusal(lambda: servo(registers={"pwm_limt": 1}), "pwm_limt", "pwm_limit")
    refusal(lambda: servo(registers={"pwm_limit": 900}), "pwm_limit", 900)
    refusal(lambda: servo(baud=12345), 12345, 57600)
    refusal(lambda: servo().fail("hunger"), "hunger", "overload")
    torque = load_actuator("unitree_go1")
    values = {"ratio": 1.0, "armature": 0.1, "q_offset": 0.0, "friction_base": 0.0, "friction_viscous": 0.0}
    refusal(lambda: EmulatedServo("xl330", Drive(torque, law_named("m1"), values)), "Unitree", "voltage")
    coasting = replace(
        load_actuator("xl330"), control=replace(load_actuator("xl330").control, bridge="coast")
    )
    refusal(lambda: EmulatedServo("xl330", Drive(coasting, law_named("m1"), values)), "brake")


@pytest.mark.parametrize("model", ["xl330", "xl320", "mx64", "mx106"])
def test_every_servo_with_published_parameters_moves(model):
    """Torque on and a goal: the joint goes there."""
    device = servo(model)
    goal = MODELS[model].registers["goal_position"].zero + 100
    put(device, torque_enable=1, goal_position=goal)
    device.advance_to(1.0)
    assert abs(read(device, "present_position") - goal) < 60
