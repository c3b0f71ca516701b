"""What the compensation node publishes with a model of the whole robot: zero torque, and the wrench at the tool."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import Vector3, WrenchStamped

from stribeck.errors import ConfigError, NodeStateError
from stribeck.files.cdr import Stamp
from stribeck.live.compensator import Compensator
from stribeck.live.handover import Handover
from stribeck.live.samples import State
from stribeck.live.setup import base_link_of
from stribeck.live.zero_torque import ZeroTorque, guiding_of
from stribeck.nodes.command_output import DEPTH, CommandOutput
from stribeck.rigid.rigid_body import RigidBodyModel
from stribeck.rigid.wrench import wrench_of

if TYPE_CHECKING:
    from stribeck.live.parameters import CompensationParameters
    from stribeck.nodes.base import ServiceNode
    from stribeck.rigid.dynamics import Dynamics


class ZeroTorqueOutput:
    """The zero-torque mode of the node, which publishes the whole torque of the motors in place of the command.

    :param dynamics: ``None`` if the weight of the robot is not known; then the mode is refused.
    """

    def __init__(
        self, parameters: CompensationParameters, handover: Handover, dynamics: Dynamics | None, output: CommandOutput
    ) -> None:  # fmt: skip
        self._handover, self._output, self.dynamics = handover, output, dynamics
        self._mode, self._settings = parameters.output_mode, guiding_of(parameters)
        self._guarded, self._timeout = parameters.guarded, parameters.command_timeout
        self._zero: ZeroTorque | None = None
        self._commanded = -math.inf

    @property
    def on(self) -> bool:
        """Whether the mode carries the joints."""
        return self._zero is not None and self._zero.on

    @property
    def status(self) -> tuple[str, str]:
        """Level and words for the diagnostics; empty before the mode was ever on, and after it was left."""
        zero = self._zero
        if zero is None or (not zero.on and zero.reason == _LEFT):
            return "", ""
        if not zero.on:
            return "ok" if zero.reason == _COMMANDED else "warn", f"zero-torque mode has ended: {zero.reason}"
        if zero.reason:
            return "warn", f"zero-torque mode ends: {zero.reason}"
        if not zero.holding:
            return "ok", "zero-torque mode"
        held = f"at rest, {', '.join(zero.holding)} would move in spite of friction, and is held"
        return "ok", f"zero-torque mode: {held}"

    def request(self, on: bool, now: float) -> str:
        """Begin the mode, or leave it with damping; returns what happens.

        :raises NodeStateError: if it cannot begin now.
        :raises ConfigError: if it cannot begin with the parameters of the node.
        """
        if not on:
            if self._zero is not None:
                self._zero.release(_LEFT)
            damped = "joints are damped, and gravity compensation decreases to zero"
            return damped if self.on else "zero-torque mode is off"
        if self._mode == "goal_offset":
            raise ConfigError(
                "zero torque is not possible in output_mode goal_offset, which commands no torques: choose another mode"
            )
        if self._guarded:
            raise ConfigError("the guard cannot compensate gravity: set guarded to false for zero torque")
        if not self._handover.enabled:
            raise NodeStateError("compensation is off: call ~/enable first")
        if now - self._commanded <= self._timeout:
            raise NodeStateError("a controller sends commands, which take precedence: stop it first")
        if self._handover.present.trusted_state is None:
            raise NodeStateError("there are no valid states, so the gravity torque is not known")
        zero = ZeroTorque(self._handover.present, self.dynamics, self._settings)
        zero.begin(now)
        self._output.parting.forget()  # of the controller that was stopped
        self._zero = zero
        return "zero-torque mode is on: the robot can be guided by hand"

    def commanded(self, now: float) -> None:
        """A controller has sent a command that counts, which ends the mode."""
        self._commanded = now
        if self._zero is not None:
            self._zero.stop(_COMMANDED)

    def stop(self, reason: str) -> None:
        """End the mode at once, with a torque of zero."""
        if self._zero is not None and self._zero.on:
            self._zero.stop(reason)
            self._publish(np.zeros(len(self._handover.names)), None)
            self._leave()

    def send(self, now: float, stamp: Stamp | None) -> None:
        """Publish the torque after a state, or without one.

        :param stamp: of the state; ``None`` without one.
        """
        zero, state = self._zero, self._handover.present.trusted_state
        if zero is not None and zero.on and (stamp is not None or state is None):
            self._carry(zero, now, state, stamp)

    def _carry(self, zero: ZeroTorque, now: float, state: State | None, stamp: Stamp | None) -> None:
        torque = zero.torque(now, state, self._handover.torque, self._handover.present.servos.temperature)
        self._publish(torque, stamp)
        if not zero.on:
            self._leave()
        elif stamp is not None and self._mode == "sum":  # the part beside friction is that of a controller
            self._handover.carried(torque - self._handover.torque)

    def _leave(self) -> None:
        """In the mode ``sum`` nothing follows the last torque, which is zero and may get lost: it is sent a few more times."""
        if self._mode == "sum":
            nothing = np.zeros(len(self._handover.names))
            self._output.parting.left_behind(0.0, nothing, nothing)

    def _publish(self, torque: Any, stamp: Stamp | None) -> None:
        present: Compensator = self._handover.present
        if self._mode == "current":
            torque = present.map.sign * present.model.currents(present.map.servo_torque(torque))
        self._output.publish(torque, stamp)


_LEFT, _COMMANDED = "left", "a controller sends commands"


class WrenchOutput:
    """Publishes force and moment from outside at a point of the tool, on ``external_wrench``, while somebody listens.

    :param dynamics: of the joints; without a URDF, or with less than three joints, nothing is published.
    """

    def __init__(
        self, node: ServiceNode[Any], parameters: CompensationParameters, dynamics: Dynamics | None
    ) -> None:
        self._point = parameters.tool_point or [0.0, 0.0, 0.0]
        if len(self._point) != 3:
            raise ConfigError(f"tool_point: expected three numbers, found {len(self._point)}")
        known = isinstance(dynamics, RigidBodyModel) and len(parameters.joints) >= 3
        self._dynamics, self._message = dynamics, WrenchStamped()
        self._publisher = node.managed_publisher(WrenchStamped, "external_wrench", DEPTH) if known else None
        self._message.header.frame_id = base_link_of(parameters) if known else ""

    def send(self, compensator: Compensator, stamp: Stamp) -> None:
        """Publish the wrench of the last state."""
        if self._publisher is None or not self._publisher.get_subscription_count():
            return
        external, state = compensator.external_torque, compensator.state
        if external is None or state is None or not isinstance(self._dynamics, RigidBodyModel):
            return
        found = wrench_of(
            external.torque, external.band, self._dynamics.jacobian(state.joint_position, self._point)
        )
        message = self._message
        message.header.stamp.sec, message.header.stamp.nanosec = stamp.sec, stamp.nanosec
        message.wrench.force = Vector3(**dict(zip("xyz", found.force.tolist(), strict=True)))
        message.wrench.torque = Vector3(**dict(zip("xyz", found.moment.tolist(), strict=True)))
        self._publisher.publish(message)
