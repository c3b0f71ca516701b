"""Qualities of service of publishers and subscriptions."""

from __future__ import annotations

from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy


def has_best_effort_publisher(node: Node, topic: str) -> bool:
    """Whether a topic has a known best-effort publisher, which no reliable subscription receives."""
    publishers = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    return any(one.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT for one in publishers)


def best_effort(depth: int) -> QoSProfile:
    """QoS of a subscription to measurements: best effort, which receives from every publisher, reliable or not.

    A lost message is not worth a retransmission: the next one comes soon, and time-outs detect if none does.
    """
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


def latched(depth: int = 1) -> QoSProfile:
    """QoS of a topic whose last messages reach subscribers that join later."""
    return QoSProfile(depth=depth, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def quiet_events() -> Any:
    """Event callbacks for a subscription of a hot loop: none, because their conditions would wake the executor."""
    return SubscriptionEventCallbacks(use_default_callbacks=False)
