"""The identification node, which runs a command of identification on bags in a child process and publishes the result."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import String
from std_srvs.srv import Trigger

from stribeck import strict
from stribeck.errors import ConfigError, NodeStateError, OutputError, StribeckError
from stribeck.files.drives import read_drives
from stribeck.files.folders import check_writable
from stribeck.live.parameters import IdentificationParameters
from stribeck.nodes.base import ServiceNode, run
from stribeck.nodes.qos import latched
from stribeck.nodes.setters import ParameterSetter
from stribeck.recordings.sources import BagFolder, bags_below
from stribeck.session.fit_process import (
    CANCELLED,
    FitProcess,
    check_options,
    engine_of,
    find_interpreter,
    joints_of,
    main_file,
)

TICK = 0.1
LOOK_PERIOD = 1.0
"""Period at which the folder is searched for bags [s]."""

LEVELS_OF_VERDICTS = {"usable": "ok", "doubtful": "warn", "unusable": "error"}
"""Level of ``~/result`` for each verdict."""


class IdentificationNode(ServiceNode[IdentificationParameters]):
    """Publishes ``~/progress`` and ``~/result`` (DiagnosticStatus), ``friction_parameters`` (a file's JSON), ``~/parameter_file``.

    ``friction_parameters`` is the content of the file of drives, ``~/parameter_file`` its path; of a calibration there is the
    path alone. ``~/result`` names all files that were written, and the verdict. Services ``~/identify`` and ``~/cancel``. If a
    fit fails, the last good result stays in its files and on its topics. With ``compensation`` that node takes over new results.
    """

    parameter_class = IdentificationParameters

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("identification", **kwargs)
        self._fit: FitProcess | None = None
        self._setter: ParameterSetter | None = None
        self.answer(Trigger, "~/identify", self._on_identify)
        self.answer(Trigger, "~/cancel", self._on_cancel)

    # -- life cycle

    def _configure(self, parameters: IdentificationParameters) -> None:
        self._settings = parameters
        self._engine = engine = engine_of(parameters.engine, parameters.fit_options)
        for name, kind in (("watch", "folder"), ("output", "folder" if engine.folder else "file")):
            if not getattr(parameters, name):
                raise ConfigError(f"{name} is empty: set it to a {kind}")
        self._watch = Path(parameters.watch).expanduser().absolute()
        self._output = Path(parameters.output).expanduser().absolute()
        if self._watch.is_file():
            raise ConfigError(f"watch: {self._watch} is a file: name the folder of the bags")
        if engine.folder and self._output.is_file():
            raise ConfigError(
                f"output: {self._output} is a file, but `{engine.title}` writes several: name a folder"
            )
        check_writable(self._output / "result.json" if engine.folder else self._output)
        check_options(engine, parameters.fit_options)
        joints_of(engine, parameters.joint)
        self._python = find_interpreter(parameters.python, engine)
        if parameters.compensation and not engine.drives:
            raise ConfigError(
                f"compensation is {parameters.compensation}, but `{engine.title}` identifies no drives: leave it empty"
            )
        self._progress = self.managed_publisher(DiagnosticStatus, "~/progress", 10)
        self._content = self.managed_publisher(String, "friction_parameters", latched())
        self._path = self.managed_publisher(String, "~/parameter_file", latched())
        self._written = self.managed_publisher(DiagnosticStatus, "~/result", latched())
        if parameters.compensation:
            self._setter = ParameterSetter(self, parameters.compensation, "drives_file")
        self.managed(self.steady_timer(TICK, self._tick), self.destroy_timer)

    def _activate(self) -> None:
        self._failure = ""
        self._result = "no result yet"
        self._seen: frozenset[Path] = frozenset()
        self._fitted: frozenset[Path] = frozenset()
        self._came = self._looked = time.monotonic() - LOOK_PERIOD
        before = main_file(self._output) if self._engine.folder else self._output
        if before is not None and before.is_file():
            self._resume(before)

    def _resume(self, before: Path) -> None:
        """Publish the result of an earlier run, which covers all bags older than it."""
        try:
            self._publish_result(before, [before])
        except StribeckError as error:
            self._failure = str(error)
            self.get_logger().warning(f"the earlier result cannot be used: {error}")
            return
        written = before.stat().st_mtime
        bags = bags_below(self._watch).finished
        self._fitted = frozenset(bag for bag in bags if _finished_at(bag) <= written)

    def _deactivate(self) -> None:
        fit, self._fit = self._fit, None
        if fit is not None:
            fit.close()
            self._publish_progress("cancelled", reason="the node was deactivated")

    def _release(self) -> None:
        setter, self._setter = self._setter, None
        if setter is not None:
            setter.destroy()

    def _change(self, name: str, value: Any) -> None:
        if name == "fit_options":
            check_options(self._engine, value)
            if engine_of(self._settings.engine, value) != self._engine:
                raise ConfigError(
                    "fit_options: changes between servo and arm are possible only while the node is not configured"
                )
        elif name == "joint":
            joints_of(self._engine, value)
        self._settings = replace(self._settings, **{name: value})

    # -- fits

    def _on_identify(self) -> str:
        self.require_active()
        if self._fit is not None:
            raise NodeStateError(f"already identifying: call {self.get_name()}/cancel first")
        return self._start_fit()

    def _on_cancel(self) -> str:
        if self._fit is None:
            raise NodeStateError("nothing is being identified")
        self._fit.cancel()
        return "cancelled; the previous result remains"

    def _start_fit(self) -> str:
        """Start a fit of the bags in the folder, and return its description."""
        self._fitted = self._seen = self._look().finished
        settings = self._settings
        chosen = {name: getattr(settings, name) for name in ("model", "actuator", "joint")}
        try:
            self._fit = FitProcess(
                self._python, self._engine, self._watch, self._output, chosen, settings.fit_options
            )
        except StribeckError as error:
            self._fail(str(error))
            raise
        self._failure = ""
        self._last: Mapping[str, Any] = {}
        message = f"identifying from {len(self._fitted)} bags in {self._watch}"
        self.get_logger().info(message)
        self._publish_progress("fitting", bags=len(self._fitted))
        return message

    def _tick(self) -> None:
        if not self._active:
            return
        if self._fit is not None:
            self._follow(self._fit)
        elif self._settings.min_bags and time.monotonic() - self._looked >= LOOK_PERIOD:
            self._looked = time.monotonic()
            self._watch_bags()

    def _watch_bags(self) -> None:
        """Start a fit if the folder holds enough bags, some of them new, and no more are arriving."""
        bags = self._look()
        if bags.recording or not bags.finished <= self._seen:
            self._came = time.monotonic()
        self._seen = bags.finished
        settled = time.monotonic() - self._came >= self._settings.settle_time
        new = bags.finished - self._fitted
        if new and settled and len(bags.finished) >= self._settings.min_bags:
            with contextlib.suppress(StribeckError):  # already in the log, the progress and the status
                self._start_fit()

    def _look(self) -> BagFolder:
        try:
            return bags_below(self._watch)
        except OSError as error:  # a folder that is being renamed or cannot be read
            self.get_logger().warning(f"cannot read {self._watch}: {error}", throttle_duration_sec=60)
            return BagFolder(self._seen, recording=True)

    def _follow(self, fit: FitProcess) -> None:
        failure = fit.poll()
        for warning in fit.warnings:
            self.get_logger().warning(warning)
        fit.warnings.clear()
        if fit.progress != self._last:
            self._last = fit.progress
            self._publish_progress("fitting", bags=len(self._fitted), **self._last)
        if failure is None:
            return
        try:
            if failure == CANCELLED:
                self._publish_progress("cancelled", reason="on request")
            elif failure:
                self._fail(failure)
            else:
                self._finish(fit)
        finally:
            fit.close()
            self._fit = None

    def _finish(self, fit: FitProcess) -> None:
        try:
            installed = fit.install()
            self._publish_result(installed.main, installed.files)
        except StribeckError as error:
            self._fail(str(error))
            return
        self._publish_progress("done", parameter_file=str(installed.main), **self._last)
        if self._setter is not None:
            self._hand_over(self._setter, installed.main)
        self._end_if_asked(0)
        kept = f", earlier: {', '.join(path.name for path in installed.kept)}" if installed.kept else ""
        self.get_logger().info(f"{', '.join(map(str, installed.files))} written{kept}")

    def _hand_over(self, setter: ParameterSetter, path: Path) -> None:
        """Let the compensation node take over a file of drives, if its verdict is usable and the node runs."""
        verdict, node = read_drives(path).verdict, setter.target
        use = "not stated" if verdict is None else verdict.use
        if use != "usable":
            self._on_handed_over(path, f"its verdict is {use}")
        elif not setter.is_ready():
            self._on_handed_over(path, f"the node {node!r} is not running")
        else:
            silent = f"the node {node!r} did not answer"
            setter.request(str(path), lambda no: self._on_handed_over(path, silent if no is None else no))

    def _on_handed_over(self, path: Path, problem: str) -> None:
        node = self._settings.compensation
        if problem:
            self.get_logger().warning(f"{node} keeps its drives, {path} is not taken over: {problem}")
        else:
            self.get_logger().info(f"{node} takes over {path}")
        state = "not taken over" if problem else "taken over"
        self._publish_progress(state, parameter_file=str(path), node=node, reason=problem)

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self.get_logger().error(f"identification failed: {reason}")
        self._publish_progress("failed", reason=reason)
        self._end_if_asked(1)

    def _end_if_asked(self, code: int) -> None:
        if self._settings.exit_when_done:
            self.exit_code = code

    # -- what goes out

    def _publish_result(self, main: Path, files: Sequence[Path]) -> None:
        told: dict[str, Any] = {"engine": self._settings.engine, "parameter_file": str(main)}
        told["file"] = [str(path) for path in files]
        level, message = "ok", "written"
        if self._engine.drives:
            verdict = read_drives(main).verdict
            if verdict is not None:
                level, message = LEVELS_OF_VERDICTS[verdict.use], verdict.use
                told["reason"] = [reason.text for reason in verdict.reasons]
            self._content.publish(String(data=strict.read_text(main, OutputError)))
        self._path.publish(String(data=str(main)))
        self._written.publish(self.status_message(level, message, told))
        self._result = f"parameters in {main}"

    def _publish_progress(self, state: str, **details: Any) -> None:
        self._progress.publish(self.status_message("error" if state == "failed" else "ok", state, details))

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        figures: dict[str, Any] = {"bags": len(self._seen), "fitted_bags": len(self._fitted)}
        if self._fit is not None:
            progress = self._fit.progress
            figures |= progress
            return "ok", f"identifying: {_words(progress)}", figures
        if self._failure:
            return "error", f"identification failed: {self._failure}; {self._result}", figures
        return "ok", self._result, figures


def _words(progress: Mapping[str, Any]) -> str:
    if "evaluations" in progress:
        return f"{progress['evaluations']} of at most {progress.get('trials')} evaluations"
    return str(progress.get("stage", "starting"))


def _finished_at(bag: Path) -> float:
    """Time at which a bag's recording ended [s since the epoch]."""
    metadata = bag / "metadata.yaml"
    return (metadata if metadata.is_file() else bag).stat().st_mtime


main = partial(run, IdentificationNode)


if __name__ == "__main__":
    sys.exit(main())
