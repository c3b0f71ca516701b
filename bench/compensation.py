"""Latency and load of the compensation node: a robot in this process, the node in one of its own.

Per case of joints x rate: inside the node from callback to publish returned, from the robot's publish
to the torque's arrival in this process, states without an answer, and the node's share of a core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
os.environ.setdefault("ROS_DOMAIN_ID", str(61 + os.getpid() % 20))

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState

from stribeck.files.actuators import load_actuator
from stribeck.nodes.base import ServiceNode, quiet_events
from stribeck.nodes.transport import stay_on_this_machine

CASES = ((1, 1000), (7, 100), (7, 500), (7, 1000), (32, 1000))
LONG_CASE = (7, 1000)
SECONDS, LONG_SECONDS = 4.0, 20.0
DEPTH = 50
LAW = "m6"


class Robot(ServiceNode):
    """Publishes states and notes when each torque arrives."""

    def __init__(self) -> None:
        super().__init__("bench_robot")
        self.states = self.create_publisher(JointState, "joint_states", DEPTH)
        self.arrived: dict[int, float] = {}
        self.figures: dict[str, str] = {}
        self.serve_fast(
            self.create_subscription(
                JointState, "compensated_command", self._on_torque, DEPTH, event_callbacks=quiet_events()
            )
        )
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_torque(self, message: JointState) -> None:
        stamp = message.header.stamp
        self.arrived[stamp.sec * 10**9 + stamp.nanosec] = time.perf_counter()

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == "compensation":
                self.figures = {pair.key: pair.value for pair in status.values}

    def _deactivate(self) -> None:
        pass

    def _release(self) -> None:
        pass

    def play(self, names: list[str], rate: float, seconds: float) -> dict[int, float]:
        """Publish states; times of publishing by stamp [ns]."""
        sent: dict[int, float] = {}
        message = JointState(name=names)
        phase = np.arange(len(names))
        due, count = time.perf_counter(), round(rate * seconds)
        for k in range(count):
            t = k / rate
            message.position = (0.5 * np.sin(2.0 * t + phase)).tolist()
            message.velocity = np.cos(2.0 * t + phase).tolist()
            message.effort = (0.2 * np.sin(2.0 * t + phase)).tolist()
            stamp = 10**9 + round(1e9 * t)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
            time.sleep(max(0.0, due - time.perf_counter()))
            sent[stamp] = time.perf_counter()
            self.states.publish(message)
            due += 1.0 / rate
        return sent


def measure() -> dict[str, dict[str, float]]:
    """All cases; figures by ``<joints>x<rate>``."""
    stay_on_this_machine()
    rclpy.init()
    robot = Robot()
    executor = SingleThreadedExecutor()
    executor.add_node(robot)
    print("compensation node, law M6, motor effort, reliable, depth 50")
    print("  case      in the node p50 / p99 / max   round trip p99     missed     CPU")
    found = {}
    try:
        for case in CASES:
            seconds = LONG_SECONDS if case == LONG_CASE else SECONDS
            found[f"{case[0]}x{case[1]}"] = one_case(robot, executor, *case, seconds)
    finally:
        robot.destroy_node()
        rclpy.shutdown()
    return found


def one_case(
    robot: Robot, executor: SingleThreadedExecutor, joints: int, rate: int, seconds: float
) -> dict[str, float]:
    """One node with so many joints, fed at a rate."""
    names = [f"joint_{k}" for k in range(joints)]
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder), names, round(rate * seconds))
        command = [
            sys.executable,
            "-m",
            "stribeck.nodes.compensation",
            "--ros-args",
            "--params-file",
            str(config),
        ]
        node = subprocess.Popen(command)
        try:
            spin(executor, lambda: robot.figures.get("enabled") == "True" and matched(robot), 20.0)
            robot.arrived.clear()
            before = cpu_seconds(node.pid)
            begin = time.perf_counter()
            sent = robot.play(names, rate, seconds)
            wall = time.perf_counter() - begin
            used = cpu_seconds(node.pid) - before
            wanted = str(len(sent))
            spin(executor, lambda: robot.figures.get("states") == wanted, 5.0, required=False)
        finally:
            node.send_signal(2)
            node.wait(timeout=10.0)
    last, robot.figures = robot.figures, {}
    trips = np.array([robot.arrived[s] - at for s, at in sent.items() if s in robot.arrived])
    result = {
        "p50_us": float(last["p50_us"]),
        "p99_us": float(last["p99_us"]),
        "max_us": float(last["max_us"]),
        "round_trip_p50_us": 1e6 * float(np.percentile(trips, 50)),
        "round_trip_p99_us": 1e6 * float(np.percentile(trips, 99)),
        "missed": len(sent) - len(trips),
        "cpu": used / wall,
    }
    print(
        f"  {joints:2d}x{rate:<6d} {result['p50_us']:7.0f} {result['p99_us']:7.0f} {result['max_us']:7.0f} us"
        f"   {result['round_trip_p99_us']:9.0f} us {result['missed']:7d} of {len(sent)}  {100 * result['cpu']:4.0f} %",
        flush=True,
    )
    return result


def matched(robot: Robot) -> bool:
    """Whether states reach the node and torques this process."""
    return robot.states.get_subscription_count() > 0 and robot.count_publishers("compensated_command") > 0


def spin(executor: SingleThreadedExecutor, done: object, timeout: float, required: bool = True) -> None:
    """Spin until a condition holds."""
    end = time.monotonic() + timeout
    while not done():  # type: ignore[operator]
        if time.monotonic() > end:
            if required:
                raise SystemExit("the compensation node did not come up")
            return
        executor.spin_once(timeout_sec=0.05)


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, all its threads [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_config(folder: Path, names: list[str], samples: int) -> Path:
    """A parameter file for every joint, and the node's configuration."""
    servo = load_actuator("xl330")
    parameters = folder / "m6.json"
    parameters.write_text(json.dumps({**servo.published[LAW], "model": LAW, "actuator": "xl330"}))
    values: dict[str, object] = {
        "joints": names,
        "effort_meaning": "motor",
        "output_type": "joint_state",
        "latency_samples": samples,
        "autostart": True,
        **{name: {"parameter_file": str(parameters)} for name in names},
    }
    config = folder / "compensation.yaml"
    config.write_text(json.dumps({"compensation": {"ros__parameters": values}}))
    return config


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
