"""The guard: a process of its own that takes over when the compensation node dies, hangs or is switched off."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from rclpy.event_handler import SubscriptionEventCallbacks
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from stribeck.core.compensator import Compensator
from stribeck.io.cdr import Stamp, header_stamp
from stribeck.nodes.base import ServiceNode, run, steady
from stribeck.nodes.compensation import DEPTH, LEASE, REVOKED, REVOKED_QOS, alive_qos
from stribeck.nodes.messages import CommandReader, OutputMessage, TelemetryTopic, decoded, telemetry_topics
from stribeck.nodes.parameters import COMPENSATED_JOINT, GUARD, joint_table
from stribeck.nodes.setup import compensated_joints, hand_through_of
from stribeck.nodes.telemetry import Gate, hand_over

TICK = 0.01
ZERO_PERIOD = 0.02
NOT_YET = "the compensation node has not been enabled yet"


class GuardNode(ServiceNode):
    """In charge of ``compensated_command`` from the loss of the node's sign of life until it is enabled again.

    Friction torque and current become zero. Commands of a controller are handed through: its effort, or
    its goal, from which the friction offset that was there is taken back at the slew limit.
    """

    table = GUARD

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("guard", **kwargs)
        self._compensator: Compensator | None = None
        self._handles: list[Any] = []
        self._in_charge = True
        self._reason = NOT_YET

    def _configure(self, values: Mapping[str, Any]) -> None:
        for joint in values["joints"]:
            self.declare(joint_table(COMPENSATED_JOINT, joint))
        values = self.values()
        self._joints = compensated_joints(values)
        compensator = hand_through_of(values, self._joints)
        self._zeros = values["output_mode"] in ("friction_only", "current")
        self._message = OutputMessage(values["output_type"], values["output_mode"], compensator.names)
        self._commands = CommandReader(values["command_type"])
        self._output = self.create_publisher(self._message.type, "compensated_command", DEPTH)
        self._left = np.zeros(len(compensator.names))
        self._enabled_since = self._lost_since = 0
        self._last = self._zero_at = steady()
        self._revoked = self.create_publisher(Int64, REVOKED, REVOKED_QOS)
        self._handles = [self._output, self._revoked]
        self._in_charge, self._reason = True, NOT_YET
        self._compensator = compensator
        lost = SubscriptionEventCallbacks(liveliness=self._on_liveliness, use_default_callbacks=False)
        subscribe = self.create_subscription
        self._handles += [
            subscribe(Int64, "compensation_alive", self._on_alive, alive_qos(LEASE), event_callbacks=lost),
            subscribe(self._commands.type, "controller_command", self._on_command, DEPTH, raw=True),
        ]
        if values["output_mode"] == "goal_offset":
            self._handles.append(subscribe(JointState, "friction_torque", self._on_friction, DEPTH))
            self._gates = {topic.name: Gate() for topic in telemetry_topics()}
            for topic in telemetry_topics():
                take = lambda data, topic=topic: self._on_telemetry(topic, data)  # noqa: E731
                self._handles.append(subscribe(topic.type, topic.name, take, 1, raw=True))
        self._timer = self.steady_timer(TICK, self._tick)

    def _activate(self) -> None:
        if self._in_charge:
            self._last = steady()
            self._revoked.publish(Int64(data=self._lost_since))
            self._send()

    def _deactivate(self) -> None:
        """The guard's own end changes nothing: what the node publishes goes on."""

    def _release(self) -> None:
        compensator, self._compensator = self._compensator, None
        if compensator is not None:
            self.destroy_timer(self._timer)
        handles, self._handles = self._handles, []
        for handle in handles:
            if hasattr(handle, "publish"):
                self.destroy_publisher(handle)
            else:
                self.destroy_subscription(handle)

    # -- the sign of life

    def _on_alive(self, message: Int64) -> None:
        self._enabled_since = message.data
        if message.data == 0:
            if not self._in_charge:
                self._take_over("the compensation node is switched off", fade=False)
        elif self._in_charge and message.data > self._lost_since:
            self._in_charge, self._reason = False, ""

    def _on_liveliness(self, event: Any) -> None:
        if event.alive_count == 0 and not self._in_charge:
            self._take_over("the compensation node gives no sign of life")
            self.get_logger().error(f"{self._reason}: in charge until it is enabled again")

    def _take_over(self, reason: str, fade: bool = True) -> None:
        self._in_charge, self._reason = True, reason
        self._lost_since = self._enabled_since
        self._last = steady()
        if not fade:
            self._left = np.zeros_like(self._left)
        if self._active:
            self._revoked.publish(Int64(data=self._lost_since))
            self._send()

    # -- what is handed through

    def _on_command(self, data: bytes) -> None:
        if self._compensator is not None:
            stamp = self._commands.take(self._compensator, data, steady())
            if self._in_charge and self._active and not self._zeros:
                self._send(stamp)

    def _on_friction(self, message: JointState) -> None:
        if not self._in_charge and len(message.effort) == len(self._left):
            self._left = np.asarray(message.effort, dtype=np.float64)

    def _on_telemetry(self, topic: TelemetryTopic, data: bytes) -> None:
        stamp = header_stamp(data)
        if self._compensator is None or not self._gates[topic.name].passes(stamp):
            return
        known = {joint.model.name: joint for joint in self._joints}
        for name, values in decoded(topic, data):
            if name in known:
                hand_over(self._compensator, known[name], values, stamp.seconds)

    def _tick(self) -> None:
        now = steady()
        if self._in_charge and self._active and self._zeros and now - self._zero_at >= ZERO_PERIOD:
            self._zero_at = now
            self._send()

    def _send(self, stamp: Stamp | None = None) -> None:
        if (compensator := self._compensator) is None:
            return
        now = steady()
        if not self._zeros:
            self._left = compensator.fade(self._left, now - self._last)
        self._last = now
        output = compensator.output(now)
        if output is not None:
            stamp = Stamp.of(self.get_clock().now().nanoseconds) if stamp is None else stamp
            self._output.publish(self._message.filled(output.values, stamp))

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        if self._in_charge:
            return "warn", f"in charge: {self._reason}", {"in_charge": True}
        return "ok", "the compensation node is alive", {"in_charge": False}


def main() -> int:
    """Run the node until it is told to end."""
    return run(GuardNode)


if __name__ == "__main__":
    sys.exit(main())
