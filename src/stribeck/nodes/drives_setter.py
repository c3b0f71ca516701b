"""Hands a file of drives to a compensation node that runs, through its parameter ``drives_file``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters

from stribeck.model.verdict import Verdict
from stribeck.nodes.base import ServiceNode

Answer = Callable[[Path, str], None]
"""Called with the file, and why the node did not take it; empty if it did."""


class DrivesSetter:
    """Sets the parameter ``drives_file`` of a compensation node, which takes over the drives without a step in the torque.

    :param target: name of the compensation node.
    :param answered: see :data:`Answer`; called in the executor of the node.
    """

    def __init__(self, node: ServiceNode[Any], target: str, answered: Answer) -> None:
        self._node, self._target, self._answered = node, target, answered
        self._client = node.create_client(SetParameters, f"{target}/set_parameters")

    def hand_over(self, path: Path, verdict: Verdict | None) -> None:
        """Let the node take over a file, if its verdict is usable and the node runs."""
        use = "not stated" if verdict is None else verdict.use
        if use != "usable":
            self._answered(path, f"its verdict is {use}")
        elif not self._client.service_is_ready():
            self._answered(path, f"the node {self._target!r} is not running")
        else:
            value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=str(path))
            request = SetParameters.Request(parameters=[ParameterMessage(name="drives_file", value=value)])
            self._client.call_async(request).add_done_callback(partial(self._on_answer, path))

    def _on_answer(self, path: Path, future: Any) -> None:
        answer = future.result()
        if answer is None:
            self._answered(path, f"the node {self._target!r} did not answer")
        else:
            self._answered(path, "" if answer.results[0].successful else answer.results[0].reason)

    def destroy(self) -> None:
        """Destroy the client."""
        self._node.destroy_client(self._client)
