"""Two emulated STS3215 without ROS: record, identify, advise, follow; the weight is known to 10 %."""

import math
from dataclasses import replace

import numpy as np
import pytest

import stribeck as sb
from driving import config_for
from position_servo import follow
from stribeck.advise.advice import advise
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.joint import published_parameters
from stribeck.model.bench import Pendulum
from stribeck.model.joint_map import JointMap
from stribeck.model.trajectories import Trajectory
from stribeck.servo.config import DriverConfig, JointConfig
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named
from stribeck.session.bags import BenchJoint
from stribeck.session.config import SessionConfig
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint
from virtual_bus import VirtualBus

GAIN, RATE, FRICTIONS = 16, 100.0, (0.12, 0.2)
LOADS = (Pendulum(0.3, 0.12, 0.0), Pendulum(0.4, 0.1, 0.0))
SINES = Trajectory("multisine", "slow sines", 24.0, lambda t: 0.6 * np.sin(0.5 * t) + 0.3 * np.sin(1.7 * t))
CHIRP = Trajectory("chirp", "a sine that speeds up", 24.0, lambda t: 0.4 * np.sin(0.4 * t + 0.07 * t**2))
PATIENT = {"command_timeout": 2.0, "silence_timeout": 0.5}


def servos():
    """Two servos with friction that the published parameters do not have, each with a load."""
    published = published_parameters("sts3215")
    return [
        EmulatedServo(
            "sts3215",
            replace(published, values={**published.values, "friction_base": friction}),
            load,
            servo_id=k + 1,
        )
        for k, (friction, load) in enumerate(zip(FRICTIONS, LOADS, strict=True))
    ]


def urdf(path, scale):
    """The loads as links of a robot, with their mass scaled."""
    links = "".join(
        f'<link name="l{k}"><inertial><origin xyz="0 0 {-load.length}"/><mass value="{scale * load.mass}"/>'
        '<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="j{k}" type="revolute"><parent link="base"/><child link="l{k}"/><axis xyz="0 -1 0"/>'
        '<limit lower="-2" upper="2" effort="1.9" velocity="5"/></joint>'
        for k, load in enumerate(LOADS, 1)
    )
    path.write_text(f'<robot name="arm"><link name="base"/>{links}</robot>')
    return path


def recorded(folder):
    """Bags of both trajectories, as ``stribeck record`` makes them."""
    model, limits = model_named("sts3215"), Limits(-1.8, 1.8, math.inf, math.inf)
    joints = tuple(
        JointConfig(f"j{k}", ServoSpec(k, model), (-1.8, 1.8), JointMap(), GAIN, actuator="sts3215")
        for k in (1, 2)
    )
    session = SessionConfig(
        (Play(SINES, float(GAIN)), Play(CHIRP, float(GAIN))),
        tuple(SessionJoint(f"j{k}", limits) for k in (1, 2)),
        tuple(BenchJoint(f"j{k}", "sts3215", load) for k, load in enumerate(LOADS, 1)),
        SessionOptions(soft_speed=2.0, soft_acceleration=10.0, state_timeout=1.0),
        folder,
    )
    with VirtualBus(servos()) as bus:
        bus.record(DriverConfig(bus.path, 1_000_000, joints, rate=RATE, **PATIENT), session)
    return folder


def errors(compensator):
    """RMS errors of both joints while they hold goals, and while they follow slow sines [rad]."""
    places = np.array([0.5, -0.7, 0.9, -0.2])

    def goals(t):
        if t < 12.0:
            return np.full(2, places[min(int(t / 3.0), 3)])
        return np.array([0.4 * math.sin(0.3 * (t - 12.0)) - 0.2] * 2)

    with VirtualBus(servos()) as bus:
        driver = bus.driver(
            config_for(bus.path, "sts3215", "sts3215", rate=RATE, joint={"p_gain": GAIN}, **PATIENT)
        )
        samples = follow(driver, goals, 32.0, compensator)
    times = np.array([sample.stamp for sample in samples]) - samples[0].stamp
    found = np.array([sample.position for sample in samples]) - np.array([goals(t) for t in times])
    holding = (times < 12.0) & (times % 3.0 > 2.0)
    following = times > 14.0
    return [np.sqrt(np.mean(found[part] ** 2, axis=0)) for part in (holding, following)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*repeat the row before")
def test_from_recordings_to_less_error_at_rest_and_in_motion(tmp_path):
    """Hold errors: at most 0.6 of the weight alone, no joint worse than with none; slow sines: at most 0.5 of none."""
    model = urdf(tmp_path / "arm.urdf", 1.1)
    bags = recorded(tmp_path / "bags")
    fit = sb.identify_robot(sorted(bags.iterdir()), model, polish=False, progress=False)
    path = fit.save(tmp_path / "robot.json")
    for k, friction in enumerate(FRICTIONS, 1):
        found = fit.drives[f"j{k}"]
        advice = advise(f"j{k}", found)
        true = 2.0 * friction / (7.4 * 0.166 * GAIN * 1.21164 / 2.67617)
        assert advice.dead_band.value == pytest.approx(true, rel=0.3)
    none = errors(None)
    weight = errors(sb.Compensator(path, model, gain=1e-9))
    both = errors(sb.Compensator(path, model))

    def rms(found):
        return np.sqrt(np.mean(np.square(found)))

    assert rms(both[0]) <= 0.6 * rms(weight[0])
    assert np.all(both[0] <= none[0])
    assert np.all(both[1] <= 0.5 * none[1])
