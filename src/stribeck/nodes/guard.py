"""The guard, a separate process that takes over when the compensation node crashes, hangs or is disabled."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from stribeck.files.cdr import JointStateReader, Stamp
from stribeck.live.compensator import TIMES_TO_FULL_TORQUE, Compensator
from stribeck.live.parameters import GuardParameters
from stribeck.live.setup import check_heartbeat, compensated_joints, passthrough_of
from stribeck.live.supervision import TICK, Heartbeat
from stribeck.live.telemetry import apply_telemetry
from stribeck.nodes.base import ServiceNode, run
from stribeck.nodes.command_output import DEPTH, REVOKED, CommandOutput
from stribeck.nodes.messages import CommandReader, TelemetryReader, telemetry_topics, whole_number
from stribeck.nodes.qos import best_effort, latched

ZERO_PERIOD = 0.02
"""Publication period of the zero torque [s]."""

PARTING_MARGIN = 0.05
"""A node with a heartbeat this much later has itself taken back the friction torque of a silent controller [s]."""


class GuardNode(ServiceNode[GuardParameters]):
    """Publishes ``compensated_command`` after the compensation node's heartbeat is lost, until it is enabled again.

    Friction torque and current are set to zero. The effort or goal of a controller is passed through, and the friction
    torque it contained is ramped down at the slew limit. The hot loop serves all frequent messages in serialised form;
    while the node is alive, the last command and the last friction torque are stored without being decoded.
    """

    parameter_class = GuardParameters

    def __init__(self, **kwargs: Any) -> None:
        self._lock = threading.RLock()
        super().__init__("guard", **kwargs)
        self._passthrough: Compensator | None = None

    def _configure(self, parameters: GuardParameters) -> None:
        check_heartbeat(parameters)
        joints = compensated_joints(parameters)
        passthrough = passthrough_of(parameters, joints)
        self.hardware = ", ".join(parameters.joints)
        self._zeros = parameters.output_mode in ("friction_only", "current")
        self._commands = CommandReader(parameters.command_type)
        self._command_output = CommandOutput(self, parameters, passthrough)
        self._output = self._command_output.publisher
        self._revoked = self.managed_publisher(Int64, REVOKED, latched())
        self._left = np.zeros(len(passthrough.names))
        self._last = self.clock.now()
        self._heartbeat = Heartbeat(parameters.heartbeat_timeout, self._last)
        self._command: tuple[bytes, float] | None = None
        self._commanded_at = self._heard_at = -math.inf
        fastest = parameters.slew_limit or TIMES_TO_FULL_TORQUE * passthrough.model.limit
        fading = float(np.max(passthrough.model.limit / fastest))
        self._parting_time = parameters.command_timeout + fading + PARTING_MARGIN
        self._sums = parameters.output_mode == "sum"
        self._friction = b""
        self._passthrough = passthrough
        subscriptions = [
            self.hot_subscription(Int64, "compensation_alive", self._on_alive, best_effort(1)),
            self.hot_subscription(self._commands.type, "controller_command", self._on_command, DEPTH),
        ]
        if not self._zeros:
            subscriptions.append(
                self.hot_subscription(JointState, "friction_torque", self._on_friction, best_effort(1))
            )
        if parameters.output_mode == "goal_offset":
            for topic in telemetry_topics():
                take = partial(self._on_telemetry, TelemetryReader(topic, joints))
                subscriptions.append(self.hot_subscription(topic.type, topic.name, take, best_effort(1)))
        self.serve_fast(*subscriptions, tick=self._tick, period=TICK, lazy=self._may_wait)

    def _may_wait(self) -> bool:
        """Whether messages can wait: only commands to be passed through are urgent."""
        return self._zeros or not self._heartbeat.in_charge

    def _activate(self) -> None:
        with self._lock:
            if self._heartbeat.in_charge:
                self._begin()

    def _deactivate(self) -> None:
        """Stop; the compensation node is not affected and continues to publish."""

    def _release(self) -> None:
        with self._lock:
            self._passthrough = None

    # -- the sign of life

    def _on_alive(self, data: bytes) -> None:
        with self._lock:
            period, now = whole_number(data), self.clock.now()
            change = self._heartbeat.beat(period, now)
            if period:
                self._heard_at = now
            if change == "lost":
                self._take_over(np.zeros_like(self._left))
            elif change == "returned":
                self._friction = b""
                self._command_output.end_parting()

    def _take_over(self, friction: Any) -> None:
        """Take charge, and ramp down the last friction torque."""
        self._left = friction
        self._last = self.clock.now()
        if self._active:
            self._begin()

    def _begin(self) -> None:
        """Announce that the guard is in charge, and publish."""
        self._last = self.clock.now()
        self._revoked.publish(Int64(data=self._heartbeat.revoked))
        self._read_command()
        if not self._send() and self._sums and self._heard_at <= self._commanded_at + self._parting_time:
            self._take_back()

    def _take_back(self) -> None:
        """Take the friction torque back from the last effort of a controller that fell silent when the node did."""
        if self._passthrough is None:
            return
        command = self._passthrough.wishes.commands.latest(self._last, math.inf)
        if command is not None and np.isfinite(command.effort).all():
            self._command_output.parting.left_behind(self._last, command.effort, self._left)

    def _last_friction(self) -> Any:
        """The last friction torque of the node; zeros if unknown."""
        try:
            torque = JointStateReader().read(self._friction).numbers[2]
        except ValueError:
            torque = np.zeros(0)
        return torque.astype(np.float64) if len(torque) == len(self._left) else np.zeros_like(self._left)

    # -- what is passed on

    def _read_command(self) -> Stamp | None:
        """Decode the last command, which is not needed while the node is alive."""
        command, self._command = self._command, None
        if command is None or self._passthrough is None:
            return None
        try:
            return self._commands.take(self._passthrough, *command)
        except ValueError as error:  # invalid bytes must not stop the guard
            self.report(error)
            return None

    def _on_command(self, data: bytes) -> None:
        with self._lock:
            self._commanded_at = self.clock.now()
            self._command = data, self._commanded_at
            if self._heartbeat.in_charge and self._active and not self._zeros:
                self._send(self._read_command())

    def _on_friction(self, data: bytes) -> None:
        with self._lock:
            if not self._heartbeat.in_charge:
                self._friction = data

    def _on_telemetry(self, reader: TelemetryReader, data: bytes) -> None:
        for joint, values, stamp in reader.read(data):
            with self._lock:
                if self._passthrough is not None:
                    apply_telemetry(self._passthrough, joint, values, stamp)

    def _tick(self) -> None:
        with self._lock:
            now = self.clock.now()
            if self._heartbeat.expired(now):
                self._take_over(self._last_friction())
                self.get_logger().error(
                    f"{self._heartbeat.reason}: the guard is in charge until compensation is enabled again"
                )
            elif not (self._heartbeat.in_charge and self._active):
                return
            elif not self._zeros:
                self._command_output.send_parting(now)
            elif now - self._last >= ZERO_PERIOD:
                self._send()

    def _send(self, stamp: Stamp | None = None) -> bool:
        if (passthrough := self._passthrough) is None:
            return False
        now = self.clock.now()
        if not self._zeros:
            self._left = passthrough.fade(self._left, now - self._last)
        self._last = now
        return self._command_output.send(passthrough, now, stamp)

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        if self._heartbeat.in_charge:
            return "warn", f"in charge: {self._heartbeat.reason}", {"in_charge": True}
        return "ok", "the compensation node is running", {"in_charge": False}


main = partial(run, GuardNode)


if __name__ == "__main__":
    sys.exit(main())
