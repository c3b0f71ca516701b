"""The topic ``compensated_command``, on which either the compensation node or the guard publishes."""

from __future__ import annotations

from typing import Any

from stribeck.files.cdr import Stamp
from stribeck.live.compensator import Compensator
from stribeck.live.handover import Compensating
from stribeck.live.parameters import InterfaceParameters
from stribeck.live.parting import Parting
from stribeck.model.arrays import Array
from stribeck.nodes.base import ServiceNode
from stribeck.nodes.messages import OutputMessage

DEPTH = 50
REVOKED = "compensation_revoked"
"""Topic on which the guard announces which enabled period (identified by its start) it has revoked."""


class CommandOutput:
    """Publishes a compensator's output.

    In mode ``sum`` it also removes the friction torque from the last effort of a controller that has stopped publishing.

    :param fading: separate compensator that ramps the friction torque down at the slew limit.
    """

    def __init__(self, node: ServiceNode[Any], parameters: InterfaceParameters, fading: Compensator) -> None:
        self._node = node
        self._message = OutputMessage(parameters.output_type, parameters.output_mode, fading.names)
        self.publisher = node.managed_publisher(self._message.type, "compensated_command", DEPTH)
        self._sums = parameters.output_mode == "sum"
        self.parting = Parting(fading.fade, parameters.command_timeout)

    def now(self) -> Stamp:
        """The current time, for messages that do not respond to a stamped message."""
        return Stamp.of(self._node.get_clock().now().nanoseconds)

    def send(self, compensator: Compensating, now: float, stamp: Stamp | None) -> bool:
        """Publish the output, if any, at a steady time [s]; returns whether there was one.

        :param stamp: stamp of the message that triggered the output.
        """
        output = compensator.output(now)
        if output is None:
            return False
        self.publish(output.values, stamp)
        if self._sums:
            self.parting.passed_on(now, output.values - output.friction, output.friction)
        return True

    def publish(self, values: Array | None, stamp: Stamp | None = None) -> None:
        """Publish values, if there are any, stamped now without a stamp."""
        if values is not None:
            self.publisher.publish(self._message.filled(values, self.now() if stamp is None else stamp))

    def end_parting(self) -> None:
        """Publish the last effort without friction torque, if it still contains some, before another sender takes over."""
        self.publish(self.parting.rest())
        self.parting.forget()

    def take_back(self) -> None:
        """Publish the last effort again without its friction torque: it came late, when the guard was already in charge."""
        self.publish(self.parting.unfaded())
        self.parting.forget()

    def send_parting(self, now: float) -> None:
        """Remove the friction torque from the last effort of a silent controller, if that is due."""
        self.publish(self.parting.due(now))
