"""``stribeck compensate``: a bag through the node's compensator, from the options or from the node's YAML."""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bags import Bag, multi_array
from bags import joint_state as joint_state_of
from helpers import REPOSITORY, write_json
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.compiled import compiled
from stribeck.live.friction import JointModel
from stribeck.live.learning.adaptation import AdaptationSettings
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS
from stribeck.recordings.bags.messages import (
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    SERVO_STATUS,
    RawMessage,
    Topic,
    contract_types,
    diagnostic_array,
    dynamic_joint_state,
    joint_state,
)
from stribeck.recordings.bags.storage import write_messages

XL330 = load_actuator("xl330")
M1 = XL330.published["m1"]
START = 1_700_000_000_000_000_000
STEP = 5_000_000
COUNT = 400
NAMES = ["shoulder", "elbow"]


def motion(k: int) -> tuple[list[float], list[float], list[float]]:
    """Positions, velocities and efforts of two joints in cycle ``k``."""
    t = 0.005 * k
    turn = np.array([1.0, -0.6])
    at = 0.5 * turn * math.sin(3 * t - 0.1)
    return at.tolist(), (1.5 * turn * math.cos(3 * t - 0.1)).tolist(), (0.05 * turn).tolist()


def goals(k: int) -> list[float]:
    return [0.5 * math.sin(0.015 * k), -0.3 * math.sin(0.015 * k)]


def messages(
    names: list[str], telemetry: Any = dynamic_joint_state, broken: tuple[int, ...] = ()
) -> list[RawMessage]:
    """Two seconds of a robot at 200 Hz; states ``broken`` are NaN."""
    count, found = len(names), []
    topic = DYNAMIC_JOINT_STATES if telemetry is dynamic_joint_state else SERVO_STATUS
    for k in range(COUNT):
        stamp, log = START + k * STEP, START + k * STEP + 200_000
        at, speed, effort = motion(k)
        if k in broken:
            at = [math.nan] * 2
        told = {name: {"p_gain": 200.0, "voltage": 5.0 - 0.001 * k, "pwm": 0.1} for name in names}
        found += [
            RawMessage(
                JOINT_STATES, log, joint_state(stamp, names, at[:count], speed[:count], effort[:count])
            ),
            RawMessage(JOINT_COMMANDS, log + 100, joint_state(stamp, names, goals(k)[:count])),
            RawMessage(topic, log + 200, telemetry(stamp, told)),
        ]
    return found


def bag(path: Path, found: list[RawMessage]) -> Path:
    topics = list(dict.fromkeys(message.topic for message in found))
    write_messages(path, topics, found)
    return path


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    """A folder with the bag of two joints, of one joint, and parameter files of laws M1 and M6."""
    folder = tmp_path_factory.mktemp("robot")
    bag(folder / "two", messages(NAMES))
    bag(folder / "one", messages(NAMES[:1]))
    for law in ("m1", "m6"):
        write_json(folder / f"{law}.json", {**XL330.published[law], "model": law, "actuator": "xl330"})
    return folder


def run(*argv: Any) -> int:
    return main(["compensate", *map(str, argv)])


def refused(capsys, *argv: Any) -> str:
    """The one line with which a command ends."""
    assert run(*argv) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def table(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Header, stamps and torques of a CSV file."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows], np.array([[float(x) for x in row[1:]] for row in rows])


def by_hand(laws: dict[str, str], settings: Settings, maps: dict[str, JointMap] | None = None) -> np.ndarray:
    """The torques of the same motion, straight from the core."""
    joints = [JointModel(n, XL330, LAWS[law], XL330.published[law], 0.26) for n, law in laws.items()]
    compensator = Compensator(joints, [(maps or {}).get(n, JointMap()) for n in laws], settings, compiled)
    compensator.enable(closed_loop=False)
    places = [NAMES.index(name) for name in laws]
    torques = []
    for k in range(COUNT):
        seconds, nanoseconds = divmod(START + k * STEP, 10**9)
        stamp = seconds + 1e-9 * nanoseconds
        state = ([values[p] for p in places] for values in motion(k))
        torques.append(compensator.on_state(stamp, stamp, list(laws), *state))
        compensator.on_command(stamp, stamp, list(laws), [goals(k)[p] for p in places], [], [])
        if k % 40 == 0:
            for name in laws:
                compensator.on_telemetry(name, kp=200.0, supply_voltage=5.0 - 0.001 * k, stamp=stamp)
    return np.array(torques)


def test_a_bag_of_one_joint_needs_no_more_than_its_file(robot, tmp_path, capsys):
    """Torques to the last bit in a table, stamps to the nanosecond, a summary for people and for scripts."""
    output, summary = tmp_path / "torque.csv", tmp_path / "summary.json"
    assert (
        run("--params", robot / "m1.json", "--states", robot / "one", "--output", output, "--json", summary)
        == 0
    )
    header, stamps, torque = table(output)
    assert header == ["stamp", "shoulder"]
    assert stamps[0] == "1700000000.000000000"
    assert stamps[-1] == "1700000001.995000000"
    np.testing.assert_array_equal(torque, by_hand({"shoulder": "m1"}, Settings("friction_only", "none")))
    assert np.abs(torque).max() > 0.01
    found = json.loads(summary.read_text())
    assert (found["schema"], found["states"], found["gain"], found["mode"]) == (
        1,
        COUNT,
        0.8,
        "friction_only",
    )
    assert found["joints"][0]["largest"] == np.abs(torque).max()
    assert found["zero_torque"] == {}
    printed = capsys.readouterr().out
    assert "shoulder" in printed
    assert "400 states" in printed


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["friction_only", "sum", "goal_offset", "current"])
def test_several_joints_in_every_mode(robot, tmp_path, mode):
    """Commands and telemetry of the bag are heard as the node would hear them."""
    output = tmp_path / "torque.csv"
    joints = ["--params", robot / "m6.json", robot / "m1.json", "--joint", "elbow", "shoulder"]
    options = ["--mode", mode, "--effort-meaning", "motor", "--gain", "0.9", "--output", output]
    assert run("--states", robot / "two", *joints, *options) == 0
    header, _, torque = table(output)
    assert header == ["stamp", "elbow", "shoulder"]
    expected = by_hand({"elbow": "m6", "shoulder": "m1"}, Settings(mode, "motor", gain=0.9))
    np.testing.assert_allclose(torque, expected, rtol=0.0, atol=1e-15)
    assert np.abs(torque).max(axis=0).min() > 0.005


@pytest.mark.ci
def test_the_nodes_yaml_says_everything(robot, tmp_path):
    """Joints, maps, limits and modes of a ROS parameter file; files lie relative to it; options overrule it."""
    config = robot / "compensate.yaml"
    config.write_text(
        "compensation:\n  ros__parameters:\n    joints: [elbow, shoulder]\n    output_mode: goal_offset\n"
        "    effort_meaning: motor\n    ramp_time: 0.1\n    gain: 0.7\n"
        "    elbow: {parameter_file: m6.json, sign: -1.0, ratio: 2.0, offset: 0.5, max_torque: 0.26}\n"
        "    shoulder: {parameter_file: m1.json}\n"
    )
    output = tmp_path / "torque.csv"
    maps = {"elbow": JointMap(-1.0, 2.0, 0.5)}
    laws = {"elbow": "m6", "shoulder": "m1"}
    assert run("--config", config, "--states", robot / "two", "--output", output) == 0
    expected = by_hand(laws, Settings("goal_offset", "motor", gain=0.7, timing=Timing(ramp_time=0.1)), maps)
    np.testing.assert_allclose(table(output)[2], expected, rtol=0.0, atol=1e-15)
    assert (
        run("--config", config, "--states", robot / "two", "--output", output, "--gain", 0.2, "--mode", "sum")
        == 0
    )
    expected = by_hand(laws, Settings("sum", "motor", gain=0.2, timing=Timing(ramp_time=0.1)), maps)
    np.testing.assert_allclose(table(output)[2], expected, rtol=0.0, atol=1e-15)
    assert run("--config", config, "--states", robot / "two", "--output", output, "--max-torque", 0.001) == 0
    assert np.abs(table(output)[2]).max(axis=0) == pytest.approx([0.002, 0.001])


def test_a_joint_is_left_out_by_its_parameters_or_by_the_list_of_joints(robot, tmp_path, capsys):
    """`enabled: false` gives zero torque; parameters of a joint that is not in `joints` are named and have no effect, as in the node."""
    config, output = robot / "left_out.yaml", tmp_path / "torque.csv"
    text = "compensation:\n  ros__parameters:\n    joints: [elbow, shoulder]\n    effort_meaning: motor\n"
    text += "    elbow: {parameter_file: m1.json, max_torque: 0.26}\n    shoulder: {parameter_file: m1.json, enabled: false}\n"
    config.write_text(text)
    assert run("--config", config, "--states", robot / "two", "--output", output) == 0
    header, _, torque = table(output)
    assert header == ["stamp", "elbow", "shoulder"]
    assert np.abs(torque[:, 0]).max() > 0.01
    assert (torque[:, 1] == 0.0).all()
    config.write_text(
        text.replace("[elbow, shoulder]", "[elbow]").replace("motor", "motor\n    other_joints: ignore")
    )
    capsys.readouterr()
    assert run("--config", config, "--states", robot / "two", "--output", output) == 0
    assert "not compensated, their parameters have no effect: shoulder" in capsys.readouterr().err
    header, _, alone = table(output)
    assert header == ["stamp", "elbow"]
    np.testing.assert_array_equal(alone[:, 0], torque[:, 0])


def test_telemetry_as_diagnostics_is_read_alike(robot, tmp_path):
    """/servo_status instead of /dynamic_joint_states gives the same torque."""
    bag(tmp_path / "diagnostics", messages(NAMES[:1], telemetry=diagnostic_array))
    found = []
    for states in (robot / "one", tmp_path / "diagnostics"):
        options = ["--mode", "goal_offset", "--effort-meaning", "motor", "--output", tmp_path / "torque.csv"]
        assert run("--params", robot / "m6.json", "--states", states, *options) == 0
        found.append(table(tmp_path / "torque.csv")[2])
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0]).max() > 0.005


def test_states_in_doubt_are_counted_and_said(robot, tmp_path, capsys):
    """NaN, a gap and a jump back: zero torque there, with the reason."""
    found = [m for k, m in enumerate(messages(NAMES[:1], broken=(50, 51))) if not 300 <= k < 360]
    late = messages(NAMES[:1])[:90]
    found += [m._replace(log_time=m.log_time + COUNT * STEP) for m in late]
    bag(tmp_path / "bag", found)
    output, summary = tmp_path / "torque.csv", tmp_path / "summary.json"
    options = ["--output", output, "--json", summary]
    assert run("--params", robot / "m1.json", "--states", tmp_path / "bag", *options) == 0
    unusable = "position or velocity is not a number, or is impossibly large"
    reasons = {unusable: 2, "no states for some ms": 1, "time jumped back": 1}
    assert json.loads(summary.read_text())["zero_torque"] == reasons
    assert f"friction torque zero for 2 of them: {unusable}\n" in capsys.readouterr().out
    _, stamps, torque = table(output)
    zeros = [k for k in range(1, len(torque)) if torque[k, 0] == 0.0]
    assert zeros == [50, 51, 100, stamps.index("1700000000.000000000", 1)]


def test_without_commands_motion_alone_decides(robot, tmp_path):
    """A bag of states only is enough: a quarter of what the gain says, as nothing tells what is wanted."""
    states = [message for message in messages(NAMES[:1]) if message.topic == JOINT_STATES]
    bag(tmp_path / "states", states)
    assert (
        run("--params", robot / "m1.json", "--states", tmp_path / "states", "--output", tmp_path / "t.csv")
        == 0
    )
    friction = M1["friction_base"] + 1.5 * M1["friction_viscous"]
    assert np.abs(table(tmp_path / "t.csv")[2]).max() == pytest.approx(0.25 * 0.8 * friction, rel=1e-3)


def test_commands_without_names_or_stamps_count_from_their_log_time(robot, tmp_path):
    """A Float64MultiArray is goals in the order of the joints; logged after the state, it moves a joint at rest."""
    recorded = Bag()
    for k in range(100):
        time = 5.0 + 0.005 * k
        recorded.add(time, "/joint_states", joint_state_of(time, ["shoulder"], 0.0, 0.0))
        if k == 50:
            recorded.add(1e-3 + time, "/joint_commands", multi_array([0.1]))
    recorded.write(tmp_path / "bag")
    options = ["--states", tmp_path / "bag", "--output", tmp_path / "t.csv"]
    assert run("--params", robot / "m1.json", *options) == 0
    torque = table(tmp_path / "t.csv")[2][:, 0]
    moved = np.flatnonzero(torque)
    assert (moved[0], moved[-1]) == (51, 70)  # for the command's time-out of 0.1 s


@pytest.mark.parametrize("topic", ["/joint_commands", "/plan"])
def test_goals_beside_the_commands(robot, tmp_path, topic):
    """Positions, or a trajectory that is sampled at each state: more is cancelled than without; others are refused."""
    found = messages(NAMES[:1])
    if topic == "/plan":
        found = [message for message in found if message.topic != JOINT_COMMANDS]
        found.insert(0, plan())
    bag(tmp_path / "bag", found)
    options = ["--params", robot / "m1.json", "--states", tmp_path / "bag", "--output", tmp_path / "t.csv"]
    assert run(*options, "--goals", topic) == 0
    assert np.abs(table(tmp_path / "t.csv")[2]).max() > 0.01


def plan() -> RawMessage:
    """The goals of the shoulder as a trajectory_msgs/JointTrajectory."""
    store = contract_types()
    time, duration = (store.types[f"builtin_interfaces/msg/{name}"] for name in ("Time", "Duration"))
    header = store.types["std_msgs/msg/Header"](stamp=time(*divmod(START, 10**9)), frame_id="")
    point, none = store.types["trajectory_msgs/msg/JointTrajectoryPoint"], np.zeros(0)
    points = [
        point(np.array(goals(k)[:1]), none, none, none, duration(*divmod(k * STEP, 10**9)))
        for k in range(0, COUNT, 10)
    ]
    kind = "trajectory_msgs/msg/JointTrajectory"
    message = store.types[kind](header=header, joint_names=NAMES[:1], points=points)
    return RawMessage(Topic("/plan", kind), START - 1_000_000, bytes(store.serialize_cdr(message, kind)))


def test_goals_that_are_none_are_refused(robot, capsys):
    """A topic that is not there, or of a type that holds no goals."""
    options = ["--params", robot / "m1.json", "--states", robot / "one", "--goals"]
    assert "has no /plan; it has: " in refused(capsys, *options, "/plan")
    assert "valid for goals: sensor_msgs/msg/JointState" in refused(capsys, *options, "/dynamic_joint_states")
    assert "--goals is empty: name a topic" in refused(capsys, *options, "")


def test_with_a_urdf_what_is_learnt_is_in_the_summary(robot, tmp_path, capsys):
    """Shares times the identified value with their deviations; without one there is nothing."""
    (tmp_path / "arm.urdf").write_text(
        '<robot name="arm"><link name="base"/><link name="upper"><inertial><mass value="0.1"/><inertia ixx="1e-3" '
        'iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="shoulder" type="revolute">'
        '<parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint></robot>'
    )
    options = ["--params", robot / "m1.json", "--states", robot / "one", "--effort-meaning", "motor"]
    assert run(*options, "--urdf", tmp_path / "arm.urdf", "--json", tmp_path / "with.json") == 0
    learned = json.loads((tmp_path / "with.json").read_text())["learned"]["shoulder"]
    assert set(learned) == {"dry", "viscous", "deviation_dry", "deviation_viscous"}
    assert "times the identified value" in capsys.readouterr().out
    assert run(*options, "--json", tmp_path / "without.json") == 0
    assert json.loads((tmp_path / "without.json").read_text())["learned"] is None


def test_a_joint_whose_torque_ends_is_named_with_the_time_as_by_the_node(robot, tmp_path, capsys):
    """The node's words once, on the screen and in the summary, and the last table says since when the joint has no torque."""
    recorded = Bag()
    for k in range(400):
        time = 5.0 + 0.005 * k
        speed = 12.0 if k >= 200 else 0.0
        at = 0.06 * (k - 199) if k >= 200 else 0.0
        recorded.add(time, "/joint_states", joint_state_of(time, ["shoulder"], at, speed))
    recorded.write(tmp_path / "bag")
    output, summary = tmp_path / "t.csv", tmp_path / "summary.json"
    options = ["--states", tmp_path / "bag", "--output", output, "--json", summary]
    assert run("--params", robot / "m1.json", *options) == 0
    found = json.loads(summary.read_text())
    (warned,) = found["warnings"]
    torque = table(output)[2][:, 0]
    last = int(np.flatnonzero(torque)[-1])
    assert 200 <= last < 300
    assert warned["time"] == pytest.approx(0.005 * (last + 1), abs=1e-6)
    assert warned["text"].startswith("shoulder moves faster than ")
    assert "a controller whose goals are not received moves it" in warned["text"]
    (joint,) = found["joints"]
    assert (joint["enabled"], joint["off_from"]) == (True, warned["time"])
    printed = capsys.readouterr().out.splitlines()
    assert printed.count(f"at {warned['time']:.2f} s: {warned['text']}") == 1
    assert f"off from {warned['time']:.2f} s" in next(
        line for line in reversed(printed) if line.startswith("shoulder ")
    )


def coulomb_arm(tmp_path: Path, share: float, led: bool = False) -> list[Any]:
    """Options for an arm of one joint that has ``share`` of the identified Coulomb friction; ``led``: the goals are recorded."""
    inertia, friction = 0.05, 1.0
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "arm.urdf").write_text(
        f'<robot name="arm"><link name="base"/><link name="upper"><inertial><mass value="0.1"/><inertia ixx="{inertia}" '
        f'iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="shoulder" type="revolute">'
        '<parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint></robot>'
    )
    law = {"friction_base": friction, "friction_viscous": 0.0, "ratio": 1.0, "armature": 0.0, "q_offset": 0.0}
    params = write_json(tmp_path / "arm.json", {**law, "model": "m1", "actuator": "torque_joint"})
    found = []
    for k in range(1000):
        stamp, phase = START + k * STEP, 0.01 * k
        speed, acceleration = math.cos(phase), -2.0 * math.sin(phase)
        effort = inertia * acceleration + share * friction * math.copysign(1.0, speed)
        data = joint_state(stamp, NAMES[:1], [0.5 * math.sin(phase)], [speed], [effort])
        found.append(RawMessage(JOINT_STATES, stamp, data))
        if led:
            goal = joint_state(stamp, NAMES[:1], [0.5 * math.sin(phase + 0.02)], [math.cos(phase + 0.02)])
            found.append(RawMessage(JOINT_COMMANDS, stamp + 100, goal))
    bag(tmp_path / "bag", found)
    options = ["--params", params, "--states", tmp_path / "bag", "--urdf", tmp_path / "arm.urdf"]
    return [*options, "--effort-meaning", "motor", "--max-torque", 5, "--json", tmp_path / "found.json"]


def test_the_table_says_which_share_of_the_friction_is_cancelled(tmp_path, capsys):
    """Of the identified and of the measured friction: a joint with 0.8 times the identified one has 1 / 0.8 times the share cancelled."""
    assert run(*coulomb_arm(tmp_path, 0.8), "--gain", 0.8) == 0
    (joint,) = json.loads((tmp_path / "found.json").read_text())["joints"]
    assert 0.2 < joint["of_identified"] < 0.85
    assert joint["of_measured"] == pytest.approx(joint["of_identified"] / 0.8, rel=0.05)
    header, _, row = capsys.readouterr().out.splitlines()[-3:]
    assert header.split("  ")[-2:] == ["of identified [%]", "of measured [%]"]
    assert row.split()[-2:] == [f"{100 * joint[key]:.0f}" for key in ("of_identified", "of_measured")]


@pytest.mark.ci
def test_a_scale_at_its_bound_or_not_learnt_is_called_so(robot, tmp_path, capsys):
    """Hardly any friction is below what may be learnt; a joint that teaches nothing has no value with a deviation."""
    assert run(*coulomb_arm(tmp_path, 0.0, led=True), "--gain", 0.8) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    lowest = AdaptationSettings().scale_lower
    assert found["learned"]["shoulder"]["dry"] == lowest
    assert found["learned_status"]["shoulder"]["dry"] == "at its lower bound"
    assert f"dry friction {lowest:.2f} (at its lower bound)" in capsys.readouterr().out
    still = [
        RawMessage(JOINT_STATES, stamp, joint_state(stamp, NAMES[:1], [0.1], [0.0], [0.0]))
        for stamp in range(START, START + 100 * STEP, STEP)
    ]
    options = coulomb_arm(tmp_path / "still", 0.1)
    bag(tmp_path / "rest", still)
    options[options.index("--states") + 1] = tmp_path / "rest"
    assert run(*options) == 0
    found = json.loads((tmp_path / "still" / "found.json").read_text())
    assert found["learned_status"]["shoulder"] == {"dry": "not learnt", "viscous": "not learnt"}
    assert found["joints"][0]["of_measured"] is None
    assert "shoulder: friction not learnt, as identified" in capsys.readouterr().out


def test_topics_of_other_types_are_refused(robot, tmp_path, capsys):
    """A bag whose /joint_states are something else."""
    recorded = Bag()
    recorded.add(1.0, "/joint_states", multi_array([0.1]))
    recorded.write(tmp_path / "bag")
    line = refused(capsys, "--params", robot / "m1.json", "--states", tmp_path / "bag")
    assert "std_msgs/msg/Float64MultiArray; valid: sensor_msgs/msg/JointState" in line


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ([], ["--params", "--node-params"]),
        (["--params", "m1.json", "--config", "c.yaml"], ["the joints are not known"]),
        (["--params", "m1.json"], ["--joint", "shoulder, elbow"]),
        (["--params", "m1.json", "m6.json"], ["--joint", "shoulder, elbow"]),
        (
            ["--params", "m1.json", "--joint", "elbow", "shoulder"],
            ["1 parameter files need the same number of joints"],
        ),
        (["--params", "m6.json", "--joint", "elbow"], ["m6.json", "--effort-meaning", "motor, link or none"]),
        (["--params", "m1.json", "--joint", "elbow", "--gain", "3"], ["gain must be between 0 and 2"]),
        (["--params", "none.json", "--joint", "elbow"], ["none.json: no such file"]),
        (["--config", "none.yaml"], ["none.yaml: no such file"]),
    ],
)
def test_what_cannot_be_is_said_in_one_line(robot, capsys, monkeypatch, options, parts):
    """With what is valid, and what to do."""
    monkeypatch.chdir(robot)
    line = refused(capsys, "--states", "two", *options)
    for part in parts:
        assert part in line


def test_a_joint_that_the_bag_lacks_is_refused_with_those_it_has(robot, capsys):
    """A slip of the pen is no recording of zeros."""
    line = refused(capsys, "--params", robot / "m1.json", "--joint", "wrist", "--states", robot / "two")
    assert "--joint: no joint wrist in" in line
    assert "which has: shoulder, elbow" in line


def test_bags_without_states_and_outputs_over_inputs_are_refused(robot, tmp_path, capsys):
    """Nothing to replay; nothing to be lost."""
    commands = [message for message in messages(NAMES[:1]) if message.topic == JOINT_COMMANDS]
    bag(tmp_path / "commands", commands)
    line = refused(capsys, "--params", robot / "m1.json", "--states", tmp_path / "commands")
    assert "has no /joint_states; it has: /joint_commands" in line
    for output in (robot / "m1.json", robot / "one" / "torque.csv"):
        refused(capsys, "--params", robot / "m1.json", "--states", robot / "one", "--output", output)
    assert json.loads((robot / "m1.json").read_text())["model"] == "m1"


@pytest.mark.slow
def test_it_runs_on_what_a_robot_has(robot):
    """Neither rclpy nor what only the fit needs is imported."""
    blocked = ["rclpy", "jax", "optuna", "cmaes", "matplotlib", "scipy", "tqdm", "sqlalchemy"]
    code = (
        f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
        "from stribeck.cli.main import main\n"
        f"sys.exit(main(['compensate', '--params', {str(robot / 'm1.json')!r}, '--states', {str(robot / 'one')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr


def test_joints_may_have_different_torque_limits(robot, tmp_path, capsys):
    """By name; one number is for all joints, and names that are no joints are refused."""
    law = {"friction_base": 8.0, "friction_viscous": 0.0, "ratio": 1.0, "armature": 0.1, "q_offset": 0.0}
    path = write_json(tmp_path / "arm.json", {**law, "model": "m1", "actuator": "torque_joint"})
    options = [
        "--params",
        path,
        path,
        "--joint",
        *NAMES,
        "--states",
        robot / "two",
        "--json",
        tmp_path / "f.json",
    ]

    def largest(limit):
        assert run(*options, "--gain", "1", "--max-torque", limit) == 0
        return [entry["largest"] for entry in json.loads((tmp_path / "f.json").read_text())["joints"]]

    assert largest("shoulder=1.5,elbow=0.5") == [1.5, 0.5]
    assert largest("0.5") == [0.5, 0.5]
    capsys.readouterr()
    assert "--max-torque: no joint wrist; valid: shoulder, elbow" in refused(
        capsys, *options, "--max-torque", "wrist=1"
    )
    assert "elbow.max_torque" in refused(capsys, *options, "--max-torque", "shoulder=1")
