"""Ends a launch with the reason of the node that failed, for the launch files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

ERROR = re.compile(
    r"\[(?:ERROR|FATAL)\] \[[^]]*\] \[[^]]*\]: (.*)|^(cannot start: .*)|^stribeck: (?!warning: )(.*)",
    re.MULTILINE,
)
"""An error in the log of a node, of a process that has no node yet, and of a command."""


class FailureReport:
    """Remembers the errors that nodes log, and ends the launch with that of a node that fails.

    Use :meth:`ended` as ``on_exit`` of the nodes, and put :attr:`handler` into the launch description.

    :param stays: whether the launch goes on when a node ends without failure.
    """

    def __init__(self, *, stays: bool = False) -> None:
        self._stays = stays
        self._errors: dict[int, str] = {}
        self._unfinished: dict[int, str] = {}

    @property
    def handler(self) -> Any:
        """The event handler that reads what the processes log."""
        from launch.actions import RegisterEventHandler
        from launch.event_handlers import OnProcessIO

        return RegisterEventHandler(OnProcessIO(on_stderr=self._note, on_stdout=self._note))

    def _note(self, event: Any) -> None:
        lines, _, rest = (
            self._unfinished.get(event.pid, "") + event.text.decode(errors="replace")
        ).rpartition("\n")
        self._unfinished[event.pid] = rest
        for found in ERROR.finditer(lines):
            self._errors[event.pid] = found[1] or found[2] or found[3]

    def ended(self, event: Any, context: Any) -> Any:
        """End the launch with a node; the exit code of a node that fails becomes that of the launch."""
        if event.returncode and not context.is_shutdown:
            reason = self._errors.get(event.pid, "")
            raise RuntimeError(
                f"{event.process_name} has failed with exit code {event.returncode}{reason and f': {reason}'}"
            )
        return None if self._stays else self._shutdown(event)

    def last(self, event: Any, context: Any) -> Any:
        """End the launch with a process, whether it failed or not."""
        self.ended(event, context)
        return self._shutdown(event)

    @staticmethod
    def _shutdown(event: Any) -> Any:
        from launch.actions import Shutdown

        return Shutdown(reason=f"{event.process_name} has ended")

    def then(self, following: Callable[[], list[Any]]) -> Callable[[Any, Any], Any]:
        """For ``on_exit`` of a process that others follow: the launch ends if it failed, otherwise they start."""

        def on_exit(event: Any, context: Any) -> Any:
            if event.returncode or context.is_shutdown:
                return self.ended(event, context)
            return following()

        return on_exit


EARLIER_ARGUMENTS = {
    "config": "params_file (parameters of the nodes) or bench_file (servos, limits, loads)",
    "servo_parameters": "params_file",
    "excitation_parameters": "params_file",
}
"""Arguments of earlier launch files, and what took their place."""


def refuse_earlier_arguments(context: Any) -> list[Any]:
    """End a launch that is given an argument of an earlier version: launch itself would ignore it without a word.

    :raises RuntimeError: with the argument that took its place.
    """
    for name, now in EARLIER_ARGUMENTS.items():
        if name in context.launch_configurations:
            raise RuntimeError(f"the launch argument {name} is now {now}")
    return []


def parameters_of(context: Any, *shipped: Any, step: str = "") -> list[Any]:
    """Parameter files of a node: those shipped, and ``params_file`` over them where it is given.

    :param step: name of a node that starts as one of several steps: the file is for all of them, and need not name this one.
    :raises RuntimeError: if ``params_file`` is not there.
    :raises ConfigError: if it is not a parameter file, where there are steps.
    """
    from pathlib import Path

    from stribeck.files.sections import names_node

    text = context.launch_configurations.get("params_file", "")
    if not text:
        return [*shipped]
    path = Path(text).expanduser()
    if not path.is_file():
        raise RuntimeError(f"params_file: {path}: no such file")
    return [*shipped, str(path)] if not step or names_node(path, step) else [*shipped]
