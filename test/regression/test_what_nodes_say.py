"""What nodes say about themselves: valid choices, what diagnostics are about, and an exit code when they cannot start."""

import os
import subprocess
import sys

import pytest

from stribeck.errors import ConfigError
from stribeck.live.parameters import CompensationParameters


def test_valid_choices_begin_with_a_word():
    """It was "must be one of , motor, link, none"."""
    with pytest.raises(ConfigError, match=r"must be one of motor, link, none, found 'torque'"):
        CompensationParameters.complete({"effort_meaning": "torque"}, "test")


@pytest.mark.real_time
def test_diagnostics_say_what_they_are_about(tmp_path):
    """`hardware_id` was empty."""
    ros_graph = pytest.importorskip("ros_graph", reason="rclpy is not installed: pip install '.[ros]'")
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.lifecycle import TransitionCallbackReturn

    from stribeck.nodes.recording import RecorderNode

    with ros_graph.Graph() as graph:
        node = graph.add(RecorderNode, {"output": str(tmp_path)}, namespace="left")
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        found = graph.collect(DiagnosticArray, "/diagnostics")
        ros_graph.wait_for(lambda: found, "diagnostics")
        (status,) = found[0].status
        assert (status.name, status.hardware_id) == ("left/recorder", os.uname().nodename)


@pytest.mark.real_time
@pytest.mark.parametrize("exits", [True, False])
def test_a_node_that_cannot_start_ends_where_it_is_told_to(exits):
    """With `exit_on_failure` at once, with exit code 1 and the reason; else it stays for another try."""
    pytest.importorskip("rclpy", reason="rclpy is not installed: pip install '.[ros]'")
    given = {"autostart": "true", "exit_on_failure": str(exits).lower(), "config": "/nowhere/servo.yaml"}
    words = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
    command = [sys.executable, "-m", "stribeck.nodes.servo", "--ros-args", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as node:
        try:
            said = iter(node.stderr.readline, "")
            assert any("cannot configure: /nowhere/servo.yaml: no such file" in line for line in said)
            if not exits:
                assert node.poll() is None
                node.terminate()
            assert node.wait(100.0) == (1 if exits else 0)
        finally:
            node.kill()
