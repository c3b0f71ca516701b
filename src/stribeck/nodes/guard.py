"""The guard: a process of its own that takes over when the compensation node dies, hangs or is switched off."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from stribeck.core.compensator import Compensator
from stribeck.core.parting import Parting
from stribeck.io.cdr import JointStateReader, Stamp, header_stamp
from stribeck.nodes.base import ServiceNode, measured, quiet_events, run, steady
from stribeck.nodes.compensation import DEPTH, REVOKED, REVOKED_QOS
from stribeck.nodes.messages import (
    CommandReader,
    OutputMessage,
    TelemetryTopic,
    decoded,
    telemetry_topics,
    whole_number,
)
from stribeck.nodes.parameters import COMPENSATED_JOINT, GUARD, joint_table
from stribeck.nodes.setup import check_lease, compensated_joints, hand_through_of
from stribeck.nodes.telemetry import Gate, hand_over

TICK = 0.01
"""How often signs of life are looked for [s]."""

ZERO_PERIOD = 0.02
PAUSE = 2.0 * TICK
"""Ticks further apart than this say that this process stood still [s]."""

NOT_YET = "the compensation node has not been enabled yet"


class GuardNode(ServiceNode):
    """In charge of ``compensated_command`` from the loss of the node's sign of life until it is enabled again.

    Friction torque and current become zero. Commands of a controller are handed through: its effort, or its goal; the
    friction that was in it is taken back at the slew limit. Everything that comes often is served by the hot loop, as
    bytes: while the node is alive the last command and the last friction torque are kept, and not looked at.
    """

    table = GUARD

    def __init__(self, **kwargs: Any) -> None:
        self._lock = threading.RLock()
        super().__init__("guard", **kwargs)
        self._compensator: Compensator | None = None
        self._handles: list[Any] = []
        self._in_charge = True
        self._reason = NOT_YET

    def _configure(self, values: Mapping[str, Any]) -> None:
        for joint in values["joints"]:
            self.declare(joint_table(COMPENSATED_JOINT, joint))
        values = self.values()
        check_lease(values)
        self._joints = compensated_joints(values)
        compensator = hand_through_of(values, self._joints)
        self._zeros = values["output_mode"] in ("friction_only", "current")
        self._lease, self._sums = values["lease"], values["output_mode"] == "sum"
        self._parting = Parting(compensator.fade, values["command_timeout"])
        self._message = OutputMessage(values["output_type"], values["output_mode"], compensator.names)
        self._commands = CommandReader(values["command_type"])
        self._output = self.create_publisher(self._message.type, "compensated_command", DEPTH)
        self._left = np.zeros(len(compensator.names))
        self._enabled_since = self._lost_since = 0
        self._last = self._ticked = self._alive_at = steady()
        self._command: tuple[bytes, float] | None = None
        self._friction = b""
        self._revoked = self.create_publisher(Int64, REVOKED, REVOKED_QOS)
        self._handles = [self._output, self._revoked]
        self._in_charge, self._reason = True, NOT_YET
        self._compensator = compensator
        heard = [
            self._hear(Int64, "compensation_alive", self._on_alive, measured(1)),
            self._hear(self._commands.type, "controller_command", self._on_command, DEPTH),
        ]
        if not self._zeros:
            heard.append(self._hear(JointState, "friction_torque", self._on_friction, measured(1)))
        if values["output_mode"] == "goal_offset":
            self._gates = {topic.name: Gate() for topic in telemetry_topics()}
            for topic in telemetry_topics():
                take = lambda data, topic=topic: self._on_telemetry(topic, data)  # noqa: E731
                heard.append(self._hear(topic.type, topic.name, take, measured(1)))
        self.serve_fast(*heard, tick=self._tick, period=TICK, lazy=self._needs_no_haste)

    def _needs_no_haste(self) -> bool:
        """Only what is handed through has to go on at once."""
        return self._zeros or not self._in_charge

    def _hear(self, kind: Any, topic: str, take: Any, qos: Any) -> Any:
        return self.create_subscription(kind, topic, take, qos, event_callbacks=quiet_events(), raw=True)

    def _activate(self) -> None:
        with self._lock:
            if self._in_charge:
                self._last = steady()
                self._revoked.publish(Int64(data=self._lost_since))
                self._look_at_command()
                self._send()

    def _deactivate(self) -> None:
        """The guard's own end changes nothing: what the node publishes goes on."""

    def _release(self) -> None:
        with self._lock:
            self._compensator = None
        handles, self._handles = self._handles, []
        for handle in handles:
            self.destroy_publisher(handle)

    # -- the sign of life

    def _on_alive(self, data: bytes) -> None:
        since = whole_number(data)
        with self._lock:
            self._enabled_since, self._alive_at = since, steady()
            if since == 0:
                if not self._in_charge:
                    self._take_over("the compensation node is switched off", fade=False)
            elif self._in_charge and since > self._lost_since:
                self._in_charge, self._reason, self._friction = False, "", b""
                self._parting.forget()

    def _take_over(self, reason: str, fade: bool = True) -> None:
        self._in_charge, self._reason = True, reason
        self._lost_since = self._enabled_since
        self._last = steady()
        self._left = self._last_friction() if fade else np.zeros_like(self._left)
        if self._active:
            self._revoked.publish(Int64(data=self._lost_since))
            self._look_at_command()
            self._send()

    def _last_friction(self) -> Any:
        """The friction torque that the node gave last, zeros if it cannot be known."""
        try:
            found = JointStateReader().read(self._friction).numbers[2]
        except ValueError:
            found = np.zeros(0)
        return found.astype(np.float64) if len(found) == len(self._left) else np.zeros_like(self._left)

    # -- what is handed through

    def _look_at_command(self) -> Stamp | None:
        """Take in the last command; while the node is alive nobody asks for it."""
        command, self._command = self._command, None
        if command is None or self._compensator is None:
            return None
        try:
            return self._commands.take(self._compensator, *command)
        except ValueError as error:  # bytes that are no command end nothing
            self.report(error)
            return None

    def _on_command(self, data: bytes) -> None:
        with self._lock:
            self._command = data, steady()
            if self._in_charge and self._active and not self._zeros:
                stamp = self._look_at_command()
                self._send(stamp)

    def _on_friction(self, data: bytes) -> None:
        with self._lock:
            if not self._in_charge:
                self._friction = data

    def _on_telemetry(self, topic: TelemetryTopic, data: bytes) -> None:
        stamp = header_stamp(data)
        if not self._gates[topic.name].passes(stamp):
            return
        known = {joint.model.name: joint for joint in self._joints}
        for name, values in decoded(topic, data):
            with self._lock:
                if name in known and self._compensator is not None:
                    hand_over(self._compensator, known[name], values, stamp.seconds)

    def _tick(self) -> None:
        with self._lock:
            now, before = steady(), self._ticked
            self._ticked = now
            if now - before > PAUSE:
                self._alive_at += now - before - TICK  # nobody is dead because this process stood still
            if not self._in_charge and now - self._alive_at > self._lease:
                self._take_over("the compensation node gives no sign of life")
                self.get_logger().error(f"{self._reason}: in charge until it is enabled again")
            elif not (self._in_charge and self._active):
                return
            elif self._zeros:
                if now - self._last >= ZERO_PERIOD:
                    self._send()
            elif (effort := self._parting.due(now)) is not None:
                stamp = Stamp.of(self.get_clock().now().nanoseconds)
                self._output.publish(self._message.filled(effort, stamp))

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
            if self._sums:
                self._parting.passed_on(now, output.values - output.friction, output.friction)

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        if self._in_charge:
            return "warn", f"in charge: {self._reason}", {"in_charge": True}
        return "ok", "the compensation node is alive", {"in_charge": False}


def main() -> int:
    """Run the node until it is told to end."""
    return run(GuardNode)


if __name__ == "__main__":
    sys.exit(main())
