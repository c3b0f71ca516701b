"""Goals offset in a loop without ROS: less error of an emulated STS3215 that holds and lifts a mass."""

import math
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import stribeck as sb
from driving import config_for, emulated
from position_servo import follow
from stribeck.emulator.joint import published_parameters
from stribeck.files.drives import Drives, read_drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.bench import Pendulum
from stribeck.model.estimate import fixed
from stribeck.model.law import law_named
from virtual_bus import VirtualBus

MASS, LENGTH, GAIN = 0.4, 0.15, 16
URDF = f"""<robot name="arm"><link name="base"/><link name="link"><inertial><origin xyz="0 0 {-LENGTH}"/><mass value="{MASS}"/>
<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j1" type="continuous"><parent link="base"/><child link="link"/><axis xyz="0 -1 0"/></joint></robot>"""


@pytest.fixture
def files(tmp_path):
    """The drive of the servo as `identify robot` knows it, by torque, and the URDF; nobody is asked for a gain."""
    servo = published_parameters("sts3215")
    stiffness = 7.4 * servo.actuator.control.gain * GAIN * servo.values["kt"] / servo.values["R"]
    law = law_named("m1")
    estimates = {
        "stiffness": fixed(stiffness, "N m/rad"),
        "derivative": fixed(servo.values["kt"] ** 2 / servo.values["R"], "N m s/rad"),
        "armature": fixed(servo.values["armature"], "kg m^2"),
        **{name: fixed(servo.values[name], "") for name in law.parameter_names},
    }
    actuator = torque_actuator("rotary", largest=1.9, resolution=2 * math.pi / 4096, derivative_gain=1.0)
    write_drives(tmp_path / "robot.json", Drives({"j1": torque_drive(actuator, law, estimates)}))
    (tmp_path / "arm.urdf").write_text(URDF)
    return tmp_path


def with_delay(files, delay):
    """The same file with a delay from goals to positions [s], as `identify robot` states it."""
    drive = read_drives(files / "robot.json").joints["j1"]
    late = replace(drive, stated={**drive.stated, "delay": fixed(delay, "s")})
    write_drives(files / "late.json", Drives({"j1": late}))
    return files / "late.json"


def errors(compensator, rate=100.0, delay=0.0, *, omega=0.2, planned=False):
    """Error over a slow sine about 0.8 rad [rad], without the first two seconds; whether its velocity is known."""

    def goals(t):
        return np.array([min(t, 0.8) + 0.3 * math.sin(omega * max(t - 1.0, 0.0))])

    def rates(t):
        return np.array([1.0 * (t < 0.8) + 0.3 * omega * math.cos(omega * (t - 1.0)) * (t > 1.0)])

    parameters = published_parameters("sts3215")
    parameters = replace(parameters, values={**parameters.values, "command_delay": delay})
    servo = emulated("sts3215", pendulum=Pendulum(MASS, LENGTH, 0.0))[0]
    servo = type(servo)("sts3215", parameters, Pendulum(MASS, LENGTH, 0.0), noise=0.0)
    with VirtualBus([servo]) as bus:
        driver = bus.driver(
            config_for(
                bus.path,
                "sts3215",
                rate=rate,
                joint={"p_gain": GAIN},
                command_timeout=2.0,
                silence_timeout=0.5,
            )
        )
        samples = follow(
            driver,
            goals,
            18.0,
            compensator,
            rates if planned else None,
        )
    times = np.array([sample.stamp for sample in samples]) - samples[0].stamp
    wanted = np.array([goals(t)[0] for t in times])
    found = np.array([sample.position[0] for sample in samples])
    return (found - wanted)[times > 2.0]


@pytest.mark.slow
@pytest.mark.parametrize("rate", [50.0, 100.0, 200.0])
def test_goals_offset_by_the_file_alone_reduce_the_error(files, rate):
    """The gain is the file's, the weight the URDF's: less than a fifth of the error of none and 0.6 of the weight's alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compensators = (
            None,
            sb.Compensator(files / "robot.json", files / "arm.urdf", gain=1e-9),
            sb.Compensator(files / "robot.json", files / "arm.urdf"),
        )
        none, weight, both = (np.sqrt(np.mean(errors(one, rate) ** 2)) for one in compensators)
    assert both < 0.2 * none
    assert both < 0.6 * weight


@pytest.mark.slow
def test_a_servo_that_answers_late_does_not_swing(files):
    """With 100 ms of delay the error stays below that of none, and the joint does not oscillate."""
    found = errors(
        sb.Compensator(files / "robot.json", files / "arm.urdf", loop_delay=0.12), 100.0, delay=0.1
    )
    none = errors(None, 100.0, delay=0.1)
    assert np.sqrt(np.mean(found**2)) < 0.4 * np.sqrt(np.mean(none**2))
    swing = found - np.convolve(found, np.full(100, 0.01), mode="same")
    assert np.abs(swing[200:-200]).max() < 0.004


@pytest.mark.slow
def test_planned_goals_are_led_by_the_delay_of_the_file(files):
    """With 100 ms of delay at up to 0.3 rad/s: less than 0.6 of the error that goals without their velocities leave."""
    path = with_delay(files, 0.1)
    plain, led = (
        np.std(errors(sb.Compensator(path, files / "arm.urdf"), delay=0.1, omega=1.0, planned=planned))
        for planned in (False, True)
    )
    assert 0.015 < plain < 0.04
    assert led < 0.6 * plain


def test_goals_are_led_by_delay_times_velocity_and_no_other(files):
    """At the first state, without torque: θ* + T dθ*/dt; velocities that are unknown, and delays below zero, lead nothing."""
    for delay, rate, wanted in ((0.1, 0.5, 0.35), (0.1, math.nan, 0.3), (-0.02, 0.5, 0.3)):
        one = sb.Compensator(with_delay(files, delay))
        assert one.goal([0.3], [0.3], 0.0, [rate]) == pytest.approx([wanted])


def test_a_firmware_gain_in_place_of_a_stiffness_is_noticed(files):
    """The file is in N m/rad: 16 would cancel a third of the friction in silence."""
    with pytest.warns(sb.StribeckWarning, match="identified with a gain of 8.9"):
        sb.Compensator(files / "robot.json", p_gain=16)


@pytest.mark.slow
def test_the_loop_needs_no_ros(files):
    """No module of ROS is imported, and none is needed."""
    code = (
        "import sys; sys.modules.update(rclpy=None, sensor_msgs=None)\n"
        "import stribeck as sb\n"
        f"c = sb.Compensator({str(files / 'robot.json')!r}, {str(files / 'arm.urdf')!r})\n"
        "print([c.goal([0.1], [0.2], 0.01 * k)[0] for k in range(100)][-1] > 0.2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_torques_and_goals_are_two_compensators(files):
    """Whoever began with torques is told to make another one."""
    one = sb.Compensator(files / "robot.json")
    one.torque([0.0], [0.0], t=0.0)
    with pytest.raises(sb.StribeckError, match="another one for goals"):
        one.goal([0.0], [0.0], 0.01)
