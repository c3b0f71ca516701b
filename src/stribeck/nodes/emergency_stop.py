"""The emergency-stop input: topic ``emergency_stop``, std_msgs/Bool, true for a stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Bool

from stribeck.nodes.qos import best_effort, latched, quiet_events

TOPIC = "emergency_stop"

PRESSED = "emergency stop"
"""Reason of a stop, in messages."""


class EmergencyStop:
    """Listens for an emergency stop, whatever the durability and reliability of its publishers.

    :param node: owner of the subscriptions.
    :param stop: called with every message that demands a stop; it must not raise.
    :ivar pressed: whether the latest message demands a stop.
    """

    def __init__(self, node: Node, stop: Callable[[], None]) -> None:
        self.pressed = False
        self._stop = stop
        # The second one hears what a latching publisher said before this node started; the first hears all others.
        for qos in (best_effort(10), latched()):
            node.create_subscription(Bool, TOPIC, self._on_message, qos, event_callbacks=quiet_events())

    def _on_message(self, message: Any) -> None:
        self.pressed = bool(message.data)
        if self.pressed:
            self._stop()
