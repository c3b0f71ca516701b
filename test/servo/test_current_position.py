"""Runs of an XL330 in its current-based position mode: the position law with the goal current as current limit."""

import json
from dataclasses import replace

import pytest

from stribeck.cli.main import main
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.joint import published_parameters
from stribeck.files.drives import write_drive
from stribeck.model.bench import Pendulum
from stribeck.model.joint_map import JointMap
from stribeck.model.trajectories import trajectory_named
from stribeck.servo.config import DriverConfig, JointConfig
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named
from stribeck.session.bags import BenchJoint
from stribeck.session.config import SessionConfig
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint
from virtual_bus import VirtualBus

GOAL_CURRENT = 0.25
LOAD = Pendulum(0.1, 0.1, 0.02)


def recorded(folder):
    """Bags of a session in this mode; half the stall current would not lift the load to its goals."""
    spec = ServoSpec(1, model_named("xl330"), "current_position", GOAL_CURRENT)
    joint = JointConfig("j1", spec, (-1.9, 1.9), JointMap(), 400, actuator="xl330")
    plays = tuple(Play(trajectory_named(name), 400.0) for name in ("sin_sin", "up_and_down"))
    session = SessionConfig(
        plays,
        (SessionJoint("j1", Limits(-1.9, 1.9, 20.0, 300.0, following_error=4.0)),),
        (BenchJoint("j1", "xl330", LOAD),),
        SessionOptions(soft_speed=2.0, soft_acceleration=10.0, state_timeout=1.0),
        folder,
    )
    with VirtualBus([EmulatedServo("xl330", published_parameters("xl330"), LOAD)]) as bus:
        bus.record(
            DriverConfig(bus.path, 1_000_000, (joint,), rate=100.0, command_timeout=2.0, silence_timeout=0.5),
            session,
        )
    return folder


@pytest.mark.ci
def test_the_goal_current_is_the_current_limit_of_the_model(tmp_path):
    """With the effect `current-limit` at the goal current runs are predicted within the encoder's steps; without it the load is lifted too far."""
    bags = recorded(tmp_path / "bags")
    plain = published_parameters("xl330")
    limited = plain.actuator.with_effects(("current-limit",))
    write_drive(tmp_path / "plain.json", plain)
    values = {**plain.values, "current_limit": GOAL_CURRENT}
    write_drive(tmp_path / "limited.json", replace(plain, actuator=limited, values=values))
    files = [tmp_path / f"{name}.json" for name in ("plain", "limited")]
    words = ["evaluate", bags, "--params", *files, "--json", tmp_path / "e.json"]
    assert main([str(word) for word in words]) == 0
    found = [one["mae"] for one in json.loads((tmp_path / "e.json").read_text())["results"]]
    assert found[0] > 0.1
    assert found[1] == pytest.approx(0.0, abs=1e-3)
