"""From recordings of a machine to its compensation by the node, its report and its MJCF, without a file edited in between."""

import importlib.util
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import yaml
from ros_graph import Graph, wait_for

from helpers import DATA, REPOSITORY

pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")

import mujoco
from builtin_interfaces.msg import Time
from rclpy.lifecycle import TransitionCallbackReturn
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from stribeck.cli.main import main
from stribeck.files.drives import read_drives
from stribeck.mujoco.joints import friction_solver
from stribeck.nodes.compensation import CompensationNode

GO2 = DATA / "go2"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


def started(command, capsys):
    """What a command prints; it has to succeed."""
    assert main([str(word) for word in command]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def parameters_of(path):
    """Parameters of the compensation node in a file, by their names in ROS."""
    found = {}
    content = yaml.safe_load(path.read_text())
    for section in content.keys() & {"/**", "/**/compensation"}:
        for name, value in content[section]["ros__parameters"].items():
            of_joint = value.items() if isinstance(value, dict) else [("", value)]
            found |= {f"{name}.{key}".rstrip("."): one for key, one in of_joint}
    return found


class Through:
    """The node, as a compensator of one's own loop in simulated time: each state waits for its torque."""

    def __init__(self, graph, parameters):
        self.joints = parameters["joints"]
        self.node = graph.add(CompensationNode, parameters | {"use_sim_time": True})
        self.out = graph.collect(Float64MultiArray, "compensated_command")
        self.clock = graph.publisher(Clock, "/clock", 1)
        assert self.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert self.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        self.states = graph.publisher(JointState, "joint_states")
        self.goals = graph.publisher(JointState, "goals")
        wait_for(lambda: self.node._output.get_subscription_count(), "the output is connected")

    def torque(self, q, qd, *, q_goal, qd_goal, t):
        """Friction torque for a state (n,) and its goal at a time [s]."""
        nanoseconds = round(1e9 * (t + 1.0))
        stamp = Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
        self.clock.publish(Clock(clock=stamp))
        count = len(self.out)
        for publisher, position, velocity in ((self.goals, q_goal, qd_goal), (self.states, q, qd)):
            message = JointState(name=self.joints, position=position.tolist(), velocity=velocity.tolist())
            message.header.stamp = stamp
            publisher.publish(message)
        wait_for(lambda: len(self.out) > count, f"a torque at {t:.3f} s")
        return np.array(self.out[-1].data)


@pytest.mark.skipif(not GO2.is_dir(), reason="needs the recordings of the Go2")
def test_a_robot(tmp_path, capsys):
    """A Go2 that hangs: three runs, its drives, a simulated one with 0.6 to 1.4 times the friction, its report, its MJCF."""
    runs = [GO2 / f"rx_run{k}.npz" for k in range(3)]
    model, out = GO2 / "go2.xml", tmp_path / "out"
    started(["identify", "robot", *runs, "--model", model, "--output", out, "--quiet"], capsys)
    parameters = parameters_of(out / "compensation.yaml") | {"goal_topic": "goals", "gain": 0.8}
    drives = read_drives(out / "robot.json")

    spec = importlib.util.spec_from_file_location("example", REPOSITORY / "examples/go2/compensate_go2.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.DURATION, example.BEGIN = 10.0, 4.0
    joints = list(drives.joints)
    factors = np.random.default_rng(3).uniform(0.6, 1.4, len(joints))
    plant = example.plant(model, drives, joints, factors)
    without = example.follow(plant, drives, joints)
    with Graph() as graph:
        through = Through(graph, parameters)
        compensated = example.follow(plant, drives, joints, through)
        assert through.node._compensator.present.doubt is None
    ratio = compensated / without
    assert np.mean(ratio) <= 0.7
    assert np.all(ratio <= 1.0)

    report = tmp_path / "report.html"
    left_out = GO2 / "rx_run6.npz"
    summary = tmp_path / "summary.json"
    command = ["evaluate", left_out, "--params", out / "robot.json", "--model", model]
    started([*command, "--report", report, "--json", summary], capsys)
    assert all(joint in report.read_text() for joint in joints)
    assert json.loads(summary.read_text())

    made = tmp_path / "identified.xml"
    command = ["export", "--format", "mjcf", "--plain", "--params", out / "robot.json", "--model", model]
    started([*command, "--output", made], capsys)
    written = ElementTree.parse(made).getroot()
    for joint, drive in drives.joints.items():
        found = written.find(f".//joint[@name='{joint}']").attrib
        for attribute, name in (("armature", "armature"), ("frictionloss", "friction_base")):
            assert float(found[attribute]) == pytest.approx(drive.values[name], rel=1e-4)


FURUTA = DATA / "furuta_motor"

PLANT = """
<mujoco>
  <option timestep="0.0005"/>
  <worldbody>
    <body>
      <joint name="shoulder" axis="0 0 1" frictionloss="{dry}" damping="{viscous}"/>
      <inertial mass="0.0405" pos="0.05415 0 0" diaginertia="0.00001 {arm} {arm}"/>
      <body pos="0.0935 0 0">
        <joint name="elbow" axis="1 0 0" damping="{pendulum_viscous}"/>
        <inertial mass="0.0098" pos="0 0 -0.0966" diaginertia="{pendulum} {pendulum} 2e-7"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
"""A Furuta pendulum with the masses and lengths of the recorded one; its base is level and its motor has no cogging."""

GAINS = 0.05, 0.004
"""Position control of the arm [N m/rad, N m s/rad]: its friction alone holds it 0.1 rad away from a goal."""


def following(plant, through=None):
    """Root mean square error of the arm [rad] that follows two slow sines, 500 torques a second."""
    data, rng, errors = mujoco.MjData(plant), np.random.default_rng(0), []
    data.qpos[:] = 0.0, 0.1
    for k in range(5000):
        t = k / 500.0
        goal = 0.5 * np.sin(0.8 * t) + 0.2 * np.sin(2.9 * t)
        rate = 0.4 * np.cos(0.8 * t) + 0.58 * np.cos(2.9 * t)
        q, qd = data.qpos[0] + 1e-4 * rng.normal(), data.qvel[0] + 5e-3 * rng.normal()
        torque = GAINS[0] * (goal - q) + GAINS[1] * (rate - qd)
        if through is not None:
            seen = (np.atleast_1d(one) for one in (q, qd, goal, rate))
            torque += through.torque(**dict(zip(("q", "qd", "q_goal", "qd_goal"), seen, strict=True)), t=t)[0]
        if t >= 3.0:
            errors.append(goal - data.qpos[0])
        data.qfrc_applied[0] = torque
        mujoco.mj_step(plant, data, 4)
    return np.sqrt(np.mean(np.square(errors)))


@pytest.mark.skipif(not FURUTA.is_dir(), reason="needs the recordings of the Furuta pendulum")
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_mechanism(furuta, factor):
    """A Furuta pendulum with a motor: five runs, its drive, a simulated one with other friction that the node compensates."""
    folder, parameters = furuta
    content = read_drives(folder / "P.json")
    drive, machine = content.joints["shoulder"].values, content.machine.estimates
    xml = PLANT.format(
        dry=factor * drive["friction_base"],
        viscous=factor * drive["friction_viscous"],
        arm=machine["arm_inertia"].value,
        pendulum=machine["pendulum_inertia"].value,
        pendulum_viscous=machine["pendulum_viscous"].value,
    )
    plant = mujoco.MjModel.from_xml_string(xml)
    dof = plant.joint("shoulder").dofadr[0]
    plant.dof_solref[dof], plant.dof_solimp[dof] = friction_solver(plant.opt.timestep)
    without = following(plant)
    with Graph() as graph:
        through = Through(graph, parameters | {"goal_topic": "goals", "gain": 0.8, "effort_meaning": "none"})
        compensated = following(plant, through)
        assert through.node._compensator.present.doubt is None
    assert compensated <= 0.5 * without


@pytest.fixture(scope="module")
def furuta(tmp_path_factory):
    """A folder with what was identified, and the node's parameters that were exported from it."""
    folder = tmp_path_factory.mktemp("furuta")
    command = ["identify", "mechanism", FURUTA, "--mechanism", "furuta_motor", "--step", "0.01", "--quiet"]
    assert main([str(word) for word in (*command, "--output", folder / "P.json")]) == 0
    command = ["export", "--format", "ros2_control", "--params", folder / "P.json"]
    assert main([str(word) for word in (*command, "--output", folder / "compensation.yaml")]) == 0
    return folder, parameters_of(folder / "compensation.yaml")


@pytest.mark.skipif(not FURUTA.is_dir(), reason="needs the recordings of the Furuta pendulum")
def test_a_mechanism_in_a_report_and_in_mjcf(furuta, tmp_path, capsys):
    """The same file, not edited: the friction is in the report, and in a MuJoCo model of the pendulum that is driven by torque."""
    folder, _ = furuta
    report = tmp_path / "report.html"
    started(["evaluate", "--params", folder / "P.json", "--report", report], capsys)
    assert "shoulder" in report.read_text()
    model, made = tmp_path / "furuta.xml", tmp_path / "identified.xml"
    model.write_text(PLANT.format(dry=0, viscous=0, arm=1e-4, pendulum=1.5e-5, pendulum_viscous=0))
    command = ["export", "--format", "mjcf", "--plain", "--params", folder / "P.json", "--model", model]
    started([*command, "--output", made], capsys)
    compiled = mujoco.MjModel.from_xml_path(str(made))
    drive, dof = (
        read_drives(folder / "P.json").joints["shoulder"].values,
        compiled.joint("shoulder").dofadr[0],
    )
    assert compiled.dof_frictionloss[dof] == pytest.approx(drive["friction_base"], rel=1e-6)
    assert compiled.dof_damping[dof] == pytest.approx(drive["friction_viscous"], rel=1e-6)
    data = mujoco.MjData(compiled)
    data.ctrl[:] = 0.1
    mujoco.mj_forward(compiled, data)
    assert data.qfrc_actuator[dof] == pytest.approx(0.1)
