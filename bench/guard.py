"""Load of the guard: its share of a core beside a node that is alive, idle and with commands, states and telemetry.

A robot in this process gives signs of life as the compensation node does, and what goes to the guard.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
os.environ.setdefault("ROS_DOMAIN_ID", str(61 + os.getpid() % 20))

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from stribeck.files.actuators import load_actuator
from stribeck.nodes.transport import stay_on_this_machine

WARM_UP, SECONDS = 1.0, 5.0
SIGNS, RATE = 100, 200
JOINTS = [f"joint_{k}" for k in range(7)]
MODES = ("friction_only", "sum", "goal_offset")


def measure() -> dict[str, float]:
    """Shares of a core, by mode and what is published."""
    stay_on_this_machine()
    rclpy.init()
    node = Node("bench_robot")
    print("guard beside a node that is alive (signs of life at 100 Hz): share of a core")
    print("  mode            idle    commands, friction and telemetry at 200 Hz")
    found = {}
    try:
        for mode in MODES:
            idle, busy = one_mode(node, mode)
            found |= {f"{mode}_idle": idle, f"{mode}_busy": busy}
            print(f"  {mode:14s} {100 * idle:5.1f} % {100 * busy:5.1f} %", flush=True)
    finally:
        node.destroy_node()
        rclpy.shutdown()
    return found


def one_mode(node: Node, mode: str) -> tuple[float, float]:
    """A guard in that mode: idle and busy."""
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder), mode)
        command = [sys.executable, "-m", "stribeck.nodes.guard", "--ros-args", "--params-file", str(config)]
        topics: dict[str, tuple[Any, Any]] = {
            "compensation_alive": (Int64, serialize_message(Int64(data=7))),
            "controller_command": (JointState, state()),
            "friction_torque": (JointState, state()),
            "servo_status": (DiagnosticArray, telemetry()),
        }
        publishers = {name: node.create_publisher(kind, name, 1) for name, (kind, _) in topics.items()}
        data = {name: found for name, (_, found) in topics.items()}
        guard = subprocess.Popen(command)
        try:
            wait(lambda: publishers["compensation_alive"].get_subscription_count() > 0)
            play(publishers, data, WARM_UP, busy=True)
            shares = []
            for busy in (False, True):
                before = cpu_seconds(guard.pid)
                wall = play(publishers, data, SECONDS, busy)
                shares.append((cpu_seconds(guard.pid) - before) / wall)
            return shares[0], shares[1]
        finally:
            guard.send_signal(2)
            guard.wait(timeout=10.0)
            for publisher in publishers.values():
                node.destroy_publisher(publisher)


def play(publishers: dict[str, Any], data: dict[str, bytes], seconds: float, busy: bool) -> float:
    """Publish for so long; how long it took [s]."""
    begin = time.monotonic()
    for k in range(round(RATE * seconds)):
        time.sleep(max(0.0, begin + k / RATE - time.monotonic()))
        if k % (RATE // SIGNS) == 0:
            publishers["compensation_alive"].publish(data["compensation_alive"])
        if busy:
            for name in ("controller_command", "friction_torque", "servo_status"):
                publishers[name].publish(stamped(data[name]))
    return time.monotonic() - begin


def stamped(data: bytes) -> bytes:
    """A message with the stamp of now."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return data[:4] + seconds.to_bytes(4, "little") + nanoseconds.to_bytes(4, "little") + data[12:]


def state() -> bytes:
    """A message of all joints."""
    numbers = [0.1] * len(JOINTS)
    return bytes(serialize_message(JointState(name=JOINTS, position=numbers, effort=numbers)))


def telemetry() -> bytes:
    """What the servo node says without control_msgs."""
    values = {"p_gain": 400.0, "voltage": 5.0, "temperature": 30.0, "current": 0.1, "pwm": 0.2}
    pairs = [KeyValue(key=key, value=repr(value)) for key, value in values.items()]
    status = [DiagnosticStatus(name=name, values=pairs) for name in JOINTS]
    return bytes(serialize_message(DiagnosticArray(status=status)))


def wait(condition: Any) -> None:
    """Until it holds."""
    end = time.monotonic() + 20.0
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("the guard did not come up")
        time.sleep(0.05)


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, all its threads [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_config(folder: Path, mode: str) -> Path:
    """A parameter file for every joint, and the guard's configuration."""
    servo = load_actuator("xl330")
    parameters = folder / "m1.json"
    parameters.write_text(json.dumps({**servo.published["m1"], "model": "m1", "actuator": "xl330"}))
    values: dict[str, object] = {
        "joints": JOINTS,
        "output_mode": mode,
        "output_type": "joint_state",
        "autostart": True,
        **{name: {"parameter_file": str(parameters)} for name in JOINTS},
    }
    config = folder / "guard.yaml"
    config.write_text(json.dumps({"/**/guard": {"ros__parameters": values}}))
    return config


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
