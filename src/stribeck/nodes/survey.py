"""Observes a ROS graph for some seconds, for the checks of :mod:`stribeck.nodes.checks`."""

from __future__ import annotations

import os
import sys
import time

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from sensor_msgs.msg import JointState

from stribeck.files.goal_messages import seconds
from stribeck.nodes.checks import Endpoint, Observed, StateTrack
from stribeck.nodes.qos import best_effort
from stribeck.nodes.transport import avoid_shared_memory

NAME = "stribeck_doctor"
INTERNAL = ("/rosout", "/parameter_events")
ASK_EVERY = 0.5
"""Period at which new topics are looked for [s]."""

DEPTH = 2000


class GraphSurvey(Node):
    """Listens to all topics of joint states and to diagnostics; publishes nothing of its own."""

    def __init__(self, seen: Observed, context: rclpy.Context) -> None:
        super().__init__(NAME, context=context, enable_rosout=False, start_parameter_services=False)
        self._seen = seen
        self._heard: set[str] = set()
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, best_effort(100))
        self.create_timer(ASK_EVERY, self.look)

    def look(self) -> None:
        """Note nodes and topics; listen to new joint states."""
        own = f"/{NAME}"
        names = [f"{space.rstrip('/')}/{name}" for name, space in self.get_node_names_and_namespaces()]
        self._seen.nodes = [name for name in names if name != own and not name.startswith("/_")]
        endpoints = []
        for topic, kinds in self.get_topic_names_and_types():
            if topic in INTERNAL or topic.endswith("/transition_event"):
                continue
            for publishes, ask in (
                (True, self.get_publishers_info_by_topic),
                (False, self.get_subscriptions_info_by_topic),
            ):
                for info in ask(topic):
                    node, qos = f"{info.node_namespace.rstrip('/')}/{info.node_name}", info.qos_profile
                    if node != own:
                        reliable = qos.reliability == ReliabilityPolicy.RELIABLE
                        latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
                        endpoints.append(Endpoint(topic, info.topic_type, node, publishes, reliable, latched))
            if (
                "sensor_msgs/msg/JointState" in kinds
                and topic.endswith("joint_states")
                and topic not in self._heard
            ):
                self._heard.add(topic)
                listen = lambda message, topic=topic: self._on_states(topic, message)  # noqa: E731
                self.create_subscription(JointState, topic, listen, best_effort(DEPTH))
        self._seen.endpoints = endpoints
        self._seen.simulated = any(end.topic == "/clock" and end.publishes for end in endpoints)

    def _on_states(self, topic: str, message: JointState) -> None:
        joints = tuple(message.name)
        track = self._seen.states.setdefault((topic, joints), StateTrack())
        track.add(time.time(), seconds(message.header.stamp), message.position, message.velocity, len(joints))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.level == DiagnosticStatus.OK:
                self._seen.problems.pop(status.name, None)
            else:
                self._seen.problems[status.name] = status.message


def observe(duration: float, domain: int | None = None) -> Observed:
    """Listen for some time [s].

    :param domain: ROS domain; that of the environment by default.
    """
    avoid_shared_memory()
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    seen, context = Observed(), rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    try:
        node, executor = GraphSurvey(seen, context), SingleThreadedExecutor(context=context)
        executor.add_node(node)
        end = time.monotonic() + duration
        while time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        node.look()
        executor.shutdown()
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
    return seen
