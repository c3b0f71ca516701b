"""From bags to compensation without a command line: each engine behind the identification node, on a real graph."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ros_graph import Graph

from bags import Bag, joint_state
from driving import emulator_process
from exciting import record_yaml
from identifying import Case, activate, check_result_and_compensation
from recording_nodes import Excitation, PublishingServo
from stribeck.cli.commands import BAYES, COMMANDS
from stribeck.files.actuators import load_actuator
from stribeck.files.folders import shared_directory
from stribeck.live.parameters import ENGINE_NAMES
from stribeck.model.law import law_named
from stribeck.model.log import Setup
from stribeck.model.trajectories import trajectory_named
from stribeck.nodes.excitation import ExcitationNode
from stribeck.recordings.bags.bag import write_bag
from stribeck.recordings.bags.storage import read_messages
from stribeck.session.fit_process import ENGINES, engine_of
from virtual import Encoder, record

pytestmark = [pytest.mark.real_time, pytest.mark.slow]


def states_bag(path, time, names, position, velocity=None, effort=None, goal=None):
    """A bag with states of joints, and goals if there are any."""
    bag = Bag()
    for k, stamp in enumerate(1.0 + time):
        state = joint_state(stamp, list(names), position[k], () if velocity is None else velocity[k])
        if effort is not None:
            state.effort = np.asarray(effort[k], dtype=np.float64)
        bag.add(stamp, "/joint_states", state)
        if goal is not None:
            bag.add(stamp, "/joint_commands", joint_state(stamp, list(names), goal[k]))
    bag.write(path)


def servo_case(folder):
    """Bundled runs of an XL330."""
    return Case(
        shared_directory("bags") / "xl330_simulated" / "m0.1_l0.1",
        ["--trials", "2000"],
        {"model": "m1"},
        ("joint",),
    )


def posterior_case(folder):
    """A second of such a servo, and what is known of it."""
    servo, swing = load_actuator("xl330"), replace(trajectory_named("sin_sin"), duration=1.0)
    play, encoder = (Setup(0.1, 0.1, 0.02, 5.0, 400.0), swing), Encoder(2.0 * np.pi / 4096)
    values = dict(servo.published["m1"])
    runs = record(servo, law_named("m1"), values, [play], encoder, np.random.default_rng(0))
    write_bag(folder / "bags" / "one", runs)
    return Case(folder / "bags", ["--draws", "60", "--quiet"], {"model": "m1"}, ("joint",))


def joint_case(folder):
    """One joint with measured torque."""
    joint_tables = pytest.importorskip("joint_tables")
    table = joint_tables.columns(joint_tables.wobble(40.0))
    (folder / "bags").mkdir()
    one = [table[name][:, None] for name in ("q", "dq", "tau")]
    states_bag(folder / "bags" / "one", table["time"], ["elbow"], *one)
    return Case(folder / "bags", ["--set", "inertia=0.2", "--law", "m1"], {"joint": "elbow"}, ("elbow",))


def arm_case(folder):
    """Three joints with measured torque."""
    moving_arms = pytest.importorskip("moving_arms")
    run = moving_arms.recording(moving_arms.arm(folder), noise=0.1, seconds=20.0)
    (folder / "bags").mkdir()
    states_bag(folder / "bags" / "one", run.time, run.joints, run.position, run.velocity, run.effort)
    return Case(folder / "bags", ["--model", str(folder / "arm.urdf")], {}, tuple(run.joints))


def robot_case(folder):
    """A leg of two joints that follow goals."""
    swinging_leg = pytest.importorskip("swinging_leg")
    (folder / "bags").mkdir()
    for number in range(2):
        run = np.load(swinging_leg.recorded(folder, f"run{number}", 0.7 * number))
        motion = run["time"], list(swinging_leg.TRUE), run["dof_pos"]
        states_bag(folder / "bags" / f"run{number}", *motion, goal=run["des_dof_pos"])
    options = ["--model", str(swinging_leg.write_model(folder)), "--no-polish"]
    return Case(folder / "bags", options, {}, tuple(swinging_leg.TRUE))


def mechanism_case(folder):
    """A pendulum without a motor: its result has no drive."""
    (folder / "bags").mkdir()
    time = 0.005 * np.arange(401)
    angle = np.exp(-0.3 * time) * np.cos(9.0 * time)
    states_bag(folder / "bags" / "one", time, ["shaft"], angle[:, None])
    path = folder / "pendulum.yaml"
    text = (shared_directory("config") / "mechanisms" / "pendulum.yaml").read_text()
    path.write_text(text.replace("angle: angle", "angle: shaft/position"))
    return Case(folder / "bags", ["--mechanism", str(path)])


CASES = {
    "servo": servo_case,
    "joint": joint_case,
    "arm": arm_case,
    "robot": robot_case,
    "mechanism": mechanism_case,
    "posterior": posterior_case,
}


def test_every_engine_is_a_command():
    """The names of the parameter are the engines, and their words commands."""
    assert set(ENGINE_NAMES) == set(ENGINES)
    for engine in (*ENGINES.values(), engine_of("posterior", ["--machine=tx40"])):
        name = " ".join(engine.words[:2])
        assert name in (BAYES if "--bayes" in engine.words else COMMANDS)


@pytest.mark.parametrize("engine", CASES)
def test_bags_become_a_result_and_a_compensation(engine, tmp_path):
    """Same digits as by the command; file, topics and the compensation node take it; a kill at any time loses nothing."""
    check_result_and_compensation(engine, CASES[engine](tmp_path), tmp_path)


LOAD = {"mass": 0.1, "length": 0.1, "arm_mass": 0.02}
LINK = """\
<link name="l{k}"><inertial><origin xyz="0 0 -0.0916667"/><mass value="0.12"/>
<inertia ixx="5.8e-5" iyy="5.8e-5" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{k}" type="revolute"><parent link="base"/><child link="l{k}"/><axis xyz="0 -1 0"/>
<limit lower="-2" upper="2" effort="0.5" velocity="10"/></joint>
"""
"""A pendulum as :data:`LOAD` states it."""

BENCH = """\
schema: 1
name: bench
parameters:
  coulomb: {value: 0.02, unit: N m, lower: 0, upper: 0.2}
  viscous: {value: 0.005, unit: N m s/rad, lower: 0, upper: 0.1}
bodies:
  rod: {mass: 0.12, com: [0, 0, -0.0916667], inertia: {xx: 0.00187, yy: 0.00187, zz: 0.000001}}
joints:
  shaft: {kind: revolute, parent: world, child: rod, point: [0, 0, 0], axis: [0, -1, 0], coulomb: coulomb, viscous: viscous}
motors: {drive: {joint: shaft, kt: 0.366, resistance: 2.81}}
sensors: {angle: {joint: shaft, deviation: 0.002}}
data:
  time: time
  sensors: {angle: {topic: /joint_states, names: name, values: position, joint: j1}}
  motors: {drive: {topic: TELEMETRY, interface: pwm, joint: j1, scale: 5.0}}
estimation: {step: 0.01, ratio: 100}
"""


@pytest.fixture(scope="module")
def hardware(tmp_path_factory):
    """Bags of two emulated XL330s, which servo node and excitation node recorded, with a URDF and a mechanism of their loads."""
    folder = tmp_path_factory.mktemp("hardware")
    load = ",".join(f"{name}={value}" for name, value in LOAD.items())
    port = folder / "port"
    with emulator_process(port, "--id", "1", "2", "--bench", load), Graph() as graph:
        plays = {"trajectories": ("sin_sin", "up_and_down"), "gains": (400,)}
        config = record_yaml(folder / "record.yaml", str(port), count=2, **plays)
        PublishingServo(graph, config)
        excitation = Excitation(graph)
        activate(graph.add(ExcitationNode, {"config": str(config), "autoplay": True}))
        result = excitation.result(120.0)
    assert result["end"] == "finished", result
    (folder / "leg.urdf").write_text(
        f'<robot name="benches"><link name="base"/>{LINK.format(k=1)}{LINK.format(k=2)}</robot>'
    )
    topics = {message.topic.name for message in read_messages(Path(result["bags"][0])).messages}
    telemetry = next(name for name in ("/dynamic_joint_states", "/servo_status") if name in topics)
    (folder / "bench.yaml").write_text(BENCH.replace("TELEMETRY", telemetry))
    return folder


HARDWARE = {
    "servo": (["--trials", "1500"], {"model": "m1", "joint": "j1"}, ("j1",)),
    "joint": (["--set", "inertia=0.0029", "--law", "m1"], {"joint": "j1"}, ("j1",)),
    "arm": (["--model", "{folder}/leg.urdf"], {}, ("j1", "j2")),
    "robot": (["--model", "{folder}/leg.urdf", "--no-polish"], {}, ("j1", "j2")),
    "mechanism": (["--mechanism", "{folder}/bench.yaml"], {}, ("shaft",)),
    "posterior": (["--draws", "60", "--quiet"], {"model": "m1", "joint": "j1"}, ("j1",)),
}
"""Options, parameters of the node, and the joints of the compensation, by engine."""


@pytest.mark.parametrize("engine", HARDWARE)
def test_emulated_hardware_to_compensation(engine, hardware, tmp_path):
    """The same from bags of a graph with emulated servos: every engine of drives, from registers to a compensation."""
    options, parameters, joints = HARDWARE[engine]
    case = Case(
        hardware / "bags", [word.format(folder=hardware) for word in options], dict(parameters), joints
    )
    check_result_and_compensation(engine, case, tmp_path)
