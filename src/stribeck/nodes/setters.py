"""Set parameters of other nodes that run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter

from stribeck.nodes.base import ServiceNode
from stribeck.nodes.waiting import Waiting


class ParameterSetter:
    """Sets a parameter of another node.

    :param target: name of the node.
    :param parameter: name of the parameter.
    """

    def __init__(self, node: ServiceNode[Any], target: str, parameter: str) -> None:
        self.node, self.target, self.parameter = node, target, parameter
        self._client = node.create_client(SetParameters, f"{target}/set_parameters")
        self.is_ready: Callable[[], bool] = self._client.service_is_ready

    def request(self, value: Any, answered: Callable[[str | None], None]) -> None:
        """Request a value.

        :param answered: called in the executor of the node with the reason of a refusal, empty if there is none; ``None``: no answer.
        """

        def done(future: Any) -> None:
            answer = future.result()
            result = None if answer is None else answer.results[0]
            answered(None if result is None else "" if result.successful else result.reason)

        message = Parameter(self.parameter, value=value).to_parameter_msg()
        self._client.call_async(SetParameters.Request(parameters=[message])).add_done_callback(done)

    def destroy(self) -> None:
        """Destroy the client."""
        self.node.destroy_client(self._client)


class GainSetter(ParameterSetter):
    """Sets firmware gains, through a parameter that takes a list of floats, one for all joints.

    :ivar confirmed: the gain that the node has confirmed; NaN while it has not answered the last request.
    """

    problem, confirmed = "", math.nan
    _wanted = math.nan

    def prepare(self, waiting: Waiting) -> None:
        """Wait for the node."""
        problem = f"gains cannot be set, because the node {self.target!r} is not running: start it"
        waiting.until(self.is_ready, lambda: problem)

    def set(self, gain: float) -> None:
        """Request a firmware gain for all joints."""
        self._wanted, self.confirmed = gain, math.nan

        def answered(refusal: str | None) -> None:
            if refusal:
                self.problem = f"{self.target} rejected {gain:g} for {self.parameter}: {refusal}"
            elif refusal is not None and gain == self._wanted:
                self.confirmed = gain

        self.request([float(gain)], answered)
