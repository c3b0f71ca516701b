"""QoS profiles of publishers and subscriptions."""

from __future__ import annotations

from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy


def has_best_effort_publisher(node: Node, topic: str) -> bool:
    """Whether a topic has a discovered best-effort publisher, from which reliable subscriptions receive nothing."""
    publishers = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    return any(one.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT for one in publishers)


def best_effort(depth: int) -> QoSProfile:
    """Best-effort QoS of a measurement subscription, which is compatible with every publisher.

    A lost message is not worth retransmitting: the next one follows soon, and timeouts detect it if none does.
    """
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


def latched(depth: int = 1) -> QoSProfile:
    """QoS of a topic whose last messages are delivered to late subscribers."""
    return QoSProfile(depth=depth, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def quiet_events() -> Any:
    """No event callbacks, for subscriptions of a hot loop: their conditions would wake the executor."""
    return SubscriptionEventCallbacks(use_default_callbacks=False)
