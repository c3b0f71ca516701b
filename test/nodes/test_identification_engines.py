"""From bags to compensation without a command line: each engine behind the identification node, on a real graph."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from ros_graph import Graph, told_by, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import TransitionCallbackReturn
from std_msgs.msg import String
from std_srvs.srv import Trigger

from bags import Bag, joint_state
from stribeck.cli.commands import BAYES, COMMANDS
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drives
from stribeck.files.folders import shared_directory
from stribeck.live.parameters import ENGINE_NAMES
from stribeck.model.law import law_named
from stribeck.model.log import Setup
from stribeck.model.trajectories import trajectory_named
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.identification import IdentificationNode
from stribeck.nodes.qos import latched
from stribeck.recordings.bags.bag import write_bag
from stribeck.session.fit_process import ENGINES, engine_of
from virtual import Encoder, record

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

LONGEST = 220.0
"""Longest time of one identification here, on a busy machine [s]."""


@dataclass
class Case:
    """What an engine is given, and what it has to give.

    :param joints: of the compensation that its result is for; none: the result is no drive.
    """

    bags: Path
    options: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    joints: tuple[str, ...] = ()


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


def node_parameters(engine, case, output):
    """Parameters of the identification node."""
    return {
        "engine": engine,
        "watch": str(case.bags),
        "output": str(output),
        "min_bags": 1,
        "settle_time": 0.0,
        "fit_options": case.options,
        **case.parameters,
    }


def activate(node):
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS


def ended(messages):
    """The last progress, if the identification is over."""
    return next((told_by(one) for one in messages if one.message in ("done", "failed", "cancelled")), None)


def by_command(engine, case, output):
    """The file that the command writes."""
    kind = engine_of(engine, case.options)
    words = [*kind.words, str(case.bags), "--output", str(output), *case.options]
    for option, name in (kind.chooses or {}).items():
        words += [option, case.parameters[name]] if name in case.parameters else []
    subprocess.run([sys.executable, "-m", "stribeck", *words], check=True, capture_output=True)
    return output


def values_of(path):
    """All numbers of the drives and of the machine in a file."""
    drives = read_drives(path)
    joints = {name: dict(drive.values) for name, drive in drives.joints.items()}
    estimates = {
        name: {key: (one.value, one.interval) for key, one in drive.estimates.items()}
        for name, drive in drives.joints.items()
    }
    machine = {key: (one.value, one.interval) for key, one in drives.machine.estimates.items()}
    return joints, estimates, machine


def compensation_parameters(case, result):
    """Parameters of the compensation node: those that the identification wrote, or the file of drives alone."""
    written = result.parent / "compensation.yaml"
    if not written.is_file():
        limits = {f"{joint}.max_torque": 1.0 for joint in case.joints}
        return {"joints": list(case.joints), "drives_file": str(result), "effort_meaning": "none", **limits}
    found = {}
    for part in yaml.safe_load(written.read_text()).values():
        for name, value in part["ros__parameters"].items():
            nested = (
                {f"{name}.{key}": each for key, each in value.items()}
                if isinstance(value, dict)
                else {name: value}
            )
            found |= nested
    # A model without effort limits leaves them to its user.
    return {
        name: 5.0 if name.endswith(".max_torque") and not value else value for name, value in found.items()
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
    case = CASES[engine](tmp_path)
    folder = engine_of(engine, case.options).folder
    output = tmp_path / "out" / ("result" if folder else "result.json")
    with Graph() as graph:
        node = graph.add(IdentificationNode, node_parameters(engine, case, output))
        activate(node)
        progress = graph.collect(DiagnosticStatus, "/identification/progress", 50)
        content = graph.collect(String, "/friction_parameters", latched())
        written = graph.collect(String, "/identification/result", latched())
        done = wait_for(lambda: ended(progress), "the end", timeout=LONGEST)
        assert done["state"] == "done", done
        wait_for(lambda: content and written, "the latched result")
        result = Path(done["parameter_file"])
        told = json.loads(written[0].data)
        assert told["engine"] == engine
        assert told["parameter_file"] == str(result)
        assert all(Path(path).is_file() for path in told["files"])
        assert json.loads(content[0].data) == json.loads(result.read_text())
        beside = tmp_path / "command" / ("result" if folder else "result.json")
        beside.parent.mkdir()
        by_command(engine, case, beside)
        assert values_of(result) == values_of(beside / result.name if folder else beside)
        before = {path: path.read_bytes() for path in output.parent.rglob("*") if path.is_file()}
        if case.joints:
            compensation = graph.add(CompensationNode, compensation_parameters(case, result))
            activate(compensation)
        # Another identification is cancelled at a random time.
        progress.clear()
        assert graph.call(Trigger, "/identification/identify", Trigger.Request()).success
        wait = np.random.default_rng(len(engine)).uniform(0.0, 6.0)
        assert wait_for(lambda: node._fit is not None, "the child")
        graph_time = node.get_clock().now().nanoseconds
        wait_for(
            lambda: node.get_clock().now().nanoseconds > graph_time + wait * 1e9 or node._fit is None,
            "a random time",
            timeout=20.0,
        )
        if node._fit is not None:
            node._fit._child._signal(signal.SIGKILL)
            wait_for(lambda: ended(progress), "its end")
            assert {path: path.read_bytes() for path in output.parent.rglob("*") if path.is_file()} == before
