"""The examples that are shipped, as they are, under the real launch."""

import json
import math

import pytest
from ros_graph import Graph, wait_for
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from helpers import published
from launching import Launched, needs_launch

pytestmark = [needs_launch, pytest.mark.real_time]

PERIOD = 0.005
M6 = {**published("xl330", "m6"), "q_offset": 0.0, "model": "m6", "actuator": "xl330"}


@pytest.fixture
def launch(environment, tmp_path):
    """Launches an example of the installation, in a home with parameter files."""
    (tmp_path / "stribeck").mkdir()
    for name in ("m6", "shoulder", "elbow"):
        (tmp_path / "stribeck" / f"{name}.json").write_text(json.dumps(M6))

    def start(example, **arguments):
        words = [f"{key}:={value}" for key, value in arguments.items()]
        home = {**environment, "HOME": str(tmp_path)}
        command = ["ros2", "launch", "stribeck", f"{example}.launch.py", *words]
        return Launched(command, home, tmp_path / "output")

    return start


def test_a_ros2_control_robot(launch):
    """Efforts of a controller come out with friction added, in the order of the forward_command_controller."""
    with Graph() as graph, launch("ros2_control") as running:
        for node in ("compensation", "guard"):
            running.reaches(graph, node)
        efforts = graph.publisher(Float64MultiArray, "/my_controller/efforts")
        states = graph.publisher(JointState, "/joint_states")
        out = graph.collect(Float64MultiArray, "/friction_effort_controller/commands")

        def cycle():
            now = graph.user.get_clock().now().to_msg()
            # Also a joint that nobody compensates; shoulder and elbow move in opposite directions.
            state = JointState(name=["gripper", "elbow", "shoulder"])
            state.header.stamp = now
            state.position, state.velocity, state.effort = [0.0] * 3, [0.0, -1.0, 1.0], [0.0] * 3
            states.publish(state)
            efforts.publish(Float64MultiArray(data=[0.02, -0.02]))
            graph.executor.wake()

        timer = graph.user.create_timer(PERIOD, cycle)
        # On a busy machine the node may stand still for longer than the guard puts up with: that is for the user to end.
        enable = graph.user.create_client(SetBool, "/compensation/enable")
        again = graph.user.create_timer(1.0, lambda: enable.call_async(SetBool.Request(data=True)))
        found = wait_for(
            lambda: next((m.data for m in out if m.data[0] > 0.025 and m.data[1] < -0.025), None),
            "efforts with friction",
        )
        timer.cancel()
        again.cancel()
        assert found[0] == pytest.approx(-found[1], rel=0.2), "the same servo, the other way round"
        assert running.interrupt() == 0
        running.check_clean_end(2)


def test_a_single_xl330(launch, environment, tmp_path):
    """Goals on /controller_command move the servo to where they say, through compensation and servo node."""
    port = tmp_path / "servo"
    bench = "mass=0.1,length=0.1,arm_mass=0.02"
    emulate = ["stribeck", "emulate", "--servo", "xl330", "--bench", bench, "--link", port]
    with (
        Launched(emulate, environment, tmp_path / "emulator"),
        Graph() as graph,
    ):
        wait_for(port.exists, "the emulated servo")
        with launch("single_xl330", port=port) as running:
            for node in ("servo", "compensation", "guard"):
                running.reaches(graph, node)
            goals = graph.publisher(JointState, "/controller_command")
            states = graph.collect(JointState, "/joint_states")

            def send():
                goal = JointState(name=["joint"], position=[0.4])
                goal.header.stamp = graph.user.get_clock().now().to_msg()
                goals.publish(goal)

            timer = graph.user.create_timer(PERIOD, send)
            wait_for(
                lambda: states and math.isclose(states[-1].position[0], 0.4, abs_tol=0.05),
                "the servo at its goal",
            )
            timer.cancel()
            assert running.interrupt() == 0
            running.check_clean_end(3)
