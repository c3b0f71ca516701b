"""The topic ``compensated_command``, which compensation node and guard publish in turns."""

from __future__ import annotations

from typing import Any

from stribeck.core.compensator import Compensator
from stribeck.core.parting import Parting
from stribeck.io.cdr import Stamp
from stribeck.nodes.base import ServiceNode
from stribeck.nodes.messages import OutputMessage
from stribeck.nodes.parameters import InterfaceParameters

DEPTH = 50
REVOKED = "compensation_revoked"
"""Topic of the guard: the spell of compensation that it has taken over from."""


class CommandOutput:
    """Publishes a compensator's output.

    In mode ``sum`` it also takes the friction out of the last effort of a controller that has fallen silent.

    :param fading: a compensator of its own, which takes friction back at the slew limit.
    """

    def __init__(self, node: ServiceNode[Any], parameters: InterfaceParameters, fading: Compensator) -> None:
        self._clock = node.get_clock()
        self._message = OutputMessage(parameters.output_type, parameters.output_mode, fading.names)
        self.publisher = node.managed_publisher(self._message.type, "compensated_command", DEPTH)
        self._sums = parameters.output_mode == "sum"
        self.parting = Parting(fading.fade, parameters.command_timeout)

    def now(self) -> Stamp:
        """A stamp for messages without one to answer."""
        return Stamp.of(self._clock.now().nanoseconds)

    def send(self, compensator: Compensator, now: float, stamp: Stamp | None) -> None:
        """Publish the output at a steady time [s], if there is one.

        :param stamp: of the message that it answers.
        """
        output = compensator.output(now)
        if output is None:
            return
        self.publisher.publish(self._message.filled(output.values, self.now() if stamp is None else stamp))
        if self._sums:
            self.parting.passed_on(now, output.values - output.friction, output.friction)

    def send_parting(self, now: float) -> None:
        """Take the friction out of the last effort of a silent controller, if that is due."""
        if (effort := self.parting.due(now)) is not None:
            self.publisher.publish(self._message.filled(effort, self.now()))
