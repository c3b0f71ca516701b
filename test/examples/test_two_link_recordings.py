"""The paths of the 2R validation on an arm of two emulated servos: a session plays them, bags are compared with laws."""

import json
from dataclasses import replace

import numpy as np
import pytest

from emulated_arm import emulated_arm
from helpers import REPOSITORY
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import write_drive
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import Gains
from stribeck.model.joint import Drive
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named
from stribeck.servo.config import DriverConfig, JointConfig
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named
from stribeck.session.bags import BenchJoint
from stribeck.session.config import SessionConfig
from stribeck.session.directive import SessionOptions
from stribeck.session.limits import Limits, Play, SessionJoint
from stribeck.session.points import MotionPointsFile
from two_link import joint_angles
from two_link_benches import BENCHES
from two_link_recordings import path_points
from two_link_validation import PERIOD, PathTests, truth_of
from validate_2r import main
from virtual_bus import VirtualBus

BENCH = BENCHES["mx"]
NAMES = ("joint_1", "joint_2")
RATE = 100.0


def truth():
    """Both servos as they truly are."""
    return tuple(truth_of(load_actuator(servo)) for servo in BENCH.servos)


def recorded(folder, trajectories, gains):
    """Bags of a session that plays trajectories on the emulated arm."""
    limits = Limits(-3.0, 3.0, 8.0, 200.0, following_error=3.0)
    joints = tuple(
        JointConfig(name, ServoSpec(k, model_named(servo)), (-3.0, 3.0), JointMap(), gains[0], actuator=servo)
        for k, (name, servo) in enumerate(zip(NAMES, BENCH.servos, strict=True), 1)
    )
    loads = [Pendulum(link.mass, link.center, 0.0) for link in BENCH.links]
    session = SessionConfig(
        tuple(Play(trajectory, float(gain)) for gain in gains for trajectory in trajectories),
        tuple(SessionJoint(name, limits) for name in NAMES),
        tuple(
            BenchJoint(name, servo, load)
            for name, servo, load in zip(NAMES, BENCH.servos, loads, strict=True)
        ),
        SessionOptions(soft_speed=2.0, soft_acceleration=10.0, state_timeout=1.0),
        folder,
    )
    with VirtualBus(emulated_arm(BENCH.servos, BENCH.links, truth())) as bus:
        config = DriverConfig(
            bus.path, 1_000_000, joints, rate=RATE, command_timeout=2.0, silence_timeout=0.5
        )
        bus.record(config, session)
    return folder


def test_points_of_a_path_lead_its_end_point():
    """Between the points the angles are within 10 µrad of those of the path."""
    for name, path in BENCH.paths.items():
        play = path_points(BENCH, name, NAMES).to_play(name)
        assert play.duration == pytest.approx(path.duration)
        time = np.linspace(0.0, path.duration, 3331)
        wanted = joint_angles(BENCH.links, *path.at(time))
        inner = (time > 0.01) & (time < path.duration - 0.01)
        for joint, angle in zip(NAMES, wanted, strict=True):
            assert np.abs(play.joint_goals[joint](time) - angle)[inner].max() < 1e-5


@pytest.mark.slow
def test_paths_are_played_recorded_and_compared(tmp_path, capsys):
    """The true law predicts the emulated arm within the resolution of its encoders, and much better than M1 and M3."""
    assert main(["--paths", "circle,square", "--write-paths", str(tmp_path / "paths")]) == 0
    files = [tmp_path / "paths" / f"{name}.yaml" for name in ("circle", "square")]
    bags = recorded(
        tmp_path / "bags", [MotionPointsFile.read(path).to_play(path.stem) for path in files], (4, 32)
    )
    laws = ("m1", "m3", "m6")
    for servo in BENCH.servos:
        for law in laws:
            actuator = load_actuator(servo)
            values = {"q_offset": 0.0, **actuator.published[law]}
            write_drive(tmp_path / "laws" / servo / f"{law}.json", Drive(actuator, law_named(law), values))
    words = ["--recordings", bags, "--params", tmp_path / "laws", "--models", ",".join(laws)]
    assert main([*map(str, words), "--output", str(tmp_path / "out")]) == 0
    assert "MX-106 and MX-64" in capsys.readouterr().out
    rows = json.loads((tmp_path / "out" / "summary.json").read_text())["errors"]
    error = {(row["law"], row["path"], row["gain"]): row["mae"] for row in rows}
    assert len(error) == len(laws) * 4
    for path in ("circle", "square"):
        for gain in ("low", "high"):
            assert error["m6", path, gain] < 1e-3
            assert error["m6", path, gain] < 0.1 * error["m1", path, gain]
    assert (tmp_path / "out" / "paths.png").stat().st_size > 20_000


@pytest.mark.slow
def test_the_emulated_arm_is_the_simulated_one():
    """On the circle at low gain its encoders stay within two counts of the simulation in the same steps."""
    tests = PathTests.of(BENCH, ["circle"])
    true = tests.true_motion(truth())
    arm = emulated_arm(BENCH.servos, BENCH.links, truth(), noise=0.0)
    for servo in arm:
        servo.begin(0.0)
    place = tests.names.index(("circle", "low"))
    found = []
    for k, goal in enumerate(tests.goals[:, :, place]):
        for servo, one in zip(arm, goal, strict=True):
            servo.firmware = replace(
                servo.firmware, drive="position", goal=float(one), gains=Gains(4.0, 0.0, 0.0)
            )
        found.append([servo.state.position for servo in arm])
        for servo in arm:
            servo.advance_to((k + 1) * PERIOD)
    away = np.abs(np.array(found)[tests.first :] - true.position[:, :, place])
    assert away[: int(tests.last[place]) - tests.first].max() < 2e-3


@pytest.mark.slow
def test_recordings_of_other_things_are_refused(tmp_path, capsys):
    """A folder of bench runs, recordings without laws, and one joint: one line each."""
    bags = str(REPOSITORY / "bags")
    for words, said in (
        (
            ["--recordings", bags, "--params", str(tmp_path), "--joints", "joint,other"],
            "no runs of joint joint on paths",
        ),
        (["--recordings", bags], "--recordings needs --params DIR"),
        (["--write-paths", str(tmp_path), "--joints", "a"], "expected two different names, found 'a'"),
    ):
        assert main(words) == 1
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
