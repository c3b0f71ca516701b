"""The identification node: bags in, a parameter file and its content out. It never fits in its own process."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import Trigger

from stribeck.errors import ConfigError, OutputError, StribeckError
from stribeck.io.actuators import load_actuator
from stribeck.io.files import check_writable, replace_keeping
from stribeck.io.parameter_file import read_parameter_file
from stribeck.io.recordings import BagFolder, bags_below
from stribeck.nodes.base import ServiceNode, run, steady
from stribeck.nodes.fit_process import CANCELLED, FitProcess, FitRequest, check_options, find_interpreter
from stribeck.nodes.parameters import IDENTIFICATION

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TICK = 0.1
LOOK_PERIOD = 1.0
"""The folder is looked through this often [s]."""


class IdentificationNode(ServiceNode):
    """Topics out: ``~/progress`` (JSON), and latched ``friction_parameters`` (JSON) and ``~/parameter_file``.

    Services ``~/identify`` and ``~/cancel``. A fit is a child process: whatever becomes of it, the
    last good result stays, in its file and on its topics.
    """

    table = IDENTIFICATION

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("identification", **kwargs)
        self._fit: FitProcess | None = None
        self._handles: list[Any] = []
        self.create_service(Trigger, "~/identify", self._on_identify)
        self.create_service(Trigger, "~/cancel", self._on_cancel)

    # -- life cycle

    def _configure(self, values: Mapping[str, Any]) -> None:
        self._live = dict(values)
        for name in ("watch", "output"):
            if not values[name]:
                raise ConfigError(f"{name} is empty: set it to a {'folder' if name == 'watch' else 'file'}")
        self._watch = _path(values["watch"])
        self._output = _path(values["output"])
        if self._watch.is_file():
            raise ConfigError(f"watch: {self._watch} is a file; name the folder that bags come to")
        check_writable(self._output)
        check_options(values["fit_options"])
        self._python = find_interpreter(values["python"])
        self._progress = self.create_publisher(String, "~/progress", 10)
        self._content = self.create_publisher(String, "friction_parameters", LATCHED)
        self._path = self.create_publisher(String, "~/parameter_file", LATCHED)
        self._handles = [self._progress, self._content, self._path]
        self._timer = self.steady_timer(TICK, self._tick)

    def _activate(self) -> None:
        self._failure = ""
        self._result = "no result yet"
        self._known: frozenset[Path] = frozenset()
        self._fitted: frozenset[Path] = frozenset()
        self._came = self._looked = steady() - LOOK_PERIOD
        if self._output.is_file():
            self._take_up()

    def _take_up(self) -> None:
        """Publish the result of an earlier life; bags that are older than it are fitted."""
        try:
            self._publish_result()
        except StribeckError as error:
            self._failure = str(error)
            self.get_logger().warning(f"the result that is there cannot be used: {error}")
            return
        written = self._output.stat().st_mtime
        bags = bags_below(self._watch).finished
        self._fitted = frozenset(bag for bag in bags if _finished_at(bag) <= written)

    def _deactivate(self) -> None:
        fit, self._fit = self._fit, None
        if fit is not None:
            fit.close()
            self._tell("cancelled", reason="the node was deactivated")

    def _release(self) -> None:
        handles, self._handles = self._handles, []
        if handles:
            self.destroy_timer(self._timer)
        for handle in handles:
            self.destroy_publisher(handle)

    def _change(self, name: str, value: Any) -> None:
        if name == "fit_options":
            check_options(value)
        self._live[name] = value

    # -- fits

    def _on_identify(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not self._active:
            response.message = "activate the node first"
        elif self._fit is not None:
            response.message = f"already identifying; call {self.get_name()}/cancel first"
        else:
            response.success, response.message = self._start_fit()
        return response

    def _on_cancel(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._fit is None:
            response.message = "nothing is being identified"
        else:
            self._fit.cancel()
            response.success, response.message = True, "cancelled; the result before stays"
        return response

    def _start_fit(self) -> tuple[bool, str]:
        """Start a fit of what the folder holds; whether that worked, and what to say."""
        self._fitted = self._known = self._look().finished
        request = FitRequest(
            python=self._python,
            bags=self._watch,
            output=self._output,
            model=self._live["model"],
            actuator=self._live["actuator"],
            joint=self._live["joint"],
            options=tuple(self._live["fit_options"]),
        )
        try:
            self._fit = FitProcess(request)
        except StribeckError as error:
            self._fail(str(error))
            return False, str(error)
        self._failure = ""
        self._last: Mapping[str, Any] = {}
        message = f"identifying from {len(self._fitted)} bags of {self._watch}"
        self.get_logger().info(message)
        self._tell("fitting", bags=len(self._fitted))
        return True, message

    def _tick(self) -> None:
        if not self._active:
            return
        if self._fit is not None:
            self._follow(self._fit)
        elif self._live["min_bags"] and steady() - self._looked >= LOOK_PERIOD:
            self._looked = steady()
            self._watch_bags()

    def _watch_bags(self) -> None:
        """Start a fit if enough bags are there, new ones among them, and no more come."""
        found = self._look()
        if found.recording or not found.finished <= self._known:
            self._came = steady()
        self._known = found.finished
        settled = steady() - self._came >= self._live["settle_time"]
        new = found.finished - self._fitted
        if new and settled and len(found.finished) >= self._live["min_bags"]:
            self._start_fit()

    def _look(self) -> BagFolder:
        try:
            return bags_below(self._watch)
        except OSError as error:  # a folder that is renamed while we look, or that may not be read
            self.get_logger().warning(f"cannot look through {self._watch}: {error}", throttle_duration_sec=60)
            return BagFolder(self._known, recording=True)

    def _follow(self, fit: FitProcess) -> None:
        failure = fit.poll()
        for warning in fit.warnings:
            self.get_logger().warning(warning)
        fit.warnings.clear()
        if fit.progress != self._last:
            self._last = fit.progress
            self._tell("fitting", bags=len(self._fitted), **self._last)
        if failure is None:
            return
        try:
            if failure == CANCELLED:
                self._tell("cancelled", reason="on request")
            elif failure:
                self._fail(failure)
            else:
                self._finish(fit.result)
        finally:
            fit.close()
            self._fit = None

    def _finish(self, result: Path) -> None:
        """Put a result in its place, and publish it."""
        try:
            self._check(result)
            kept = replace_keeping(result, self._output)
            self._publish_result()
        except StribeckError as error:
            self._fail(str(error))
            return
        self._tell("done", parameter_file=str(self._output), **self._last)
        self._end_if_asked(0)
        self.get_logger().info(f"{self._output} written" + (f", {kept} is the one before" if kept else ""))

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self.get_logger().error(f"identification failed: {reason}")
        self._tell("failed", reason=reason)
        self._end_if_asked(1)

    def _end_if_asked(self, code: int) -> None:
        if self._live["exit_when_done"]:
            self.exit_code = code

    # -- what goes out

    def _check(self, path: Path) -> None:
        named = self._live["actuator"]
        own = load_actuator(named) if named.endswith((".yaml", ".yml")) else None
        read_parameter_file(path, own)

    def _publish_result(self) -> None:
        self._check(self._output)
        try:
            content = self._output.read_text(encoding="utf-8")
        except OSError as error:
            raise OutputError(f"cannot read {self._output}: {error.strerror}") from error
        self._content.publish(String(data=content))
        self._path.publish(String(data=str(self._output)))
        self._result = f"parameters in {self._output}"

    def _tell(self, state: str, **details: Any) -> None:
        self._progress.publish(String(data=json.dumps({"state": state, **details})))

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        figures: dict[str, Any] = {"bags": len(self._known), "fitted_bags": len(self._fitted)}
        if self._fit is not None:
            told = self._fit.progress
            figures |= told
            done = (
                f"{told['evaluations']} of at most {told.get('trials')} evaluations" if told else "starting"
            )
            return "ok", f"identifying: {done}", figures
        if self._failure:
            return "error", f"identification failed: {self._failure}; {self._result}", figures
        return "ok", self._result, figures


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _finished_at(bag: Path) -> float:
    """When a bag's recording ended [s since the epoch]."""
    metadata = bag / "metadata.yaml"
    return (metadata if metadata.is_file() else bag).stat().st_mtime


def main() -> int:
    """Run the node until it is told to end."""
    return run(IdentificationNode)


if __name__ == "__main__":
    sys.exit(main())
