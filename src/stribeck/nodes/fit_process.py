"""``stribeck fit`` as a child process: started, listened to, ended. No ROS here."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stribeck.errors import ConfigError, OutputError

OWN_OPTIONS = ("--logdir", "--output", "--model", "--actuator", "--joint", "--progress", "--quiet", "--eval")
"""Options of ``stribeck fit`` that parameters of the node stand for, or that would take its result away."""

NEEDED = ("stribeck", "jax", "scipy", "optuna", "cmaes", "tqdm")
"""Modules without which the interpreter cannot fit."""

GRACE = 2.0
"""A fit that was asked to end has so long before it is killed [s]."""

_ROS_BOOTSTRAP_MARK = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


@dataclass(frozen=True)
class Request:
    """What to fit.

    :param python: interpreter, see :func:`interpreter_named`.
    :param bags: folder with recordings.
    :param output: the parameter file to be; the child writes beside it.
    :param model, actuator, joint: options of ``stribeck fit``; empty texts are left out.
    :param options: further words of its command line.
    """

    python: Path
    bags: Path
    output: Path
    model: str
    actuator: str = ""
    joint: str = ""
    options: tuple[str, ...] = ()

    def command(self, output: Path) -> list[str]:
        """The child's command line."""
        named = {"--model": self.model, "--actuator": self.actuator, "--joint": self.joint}
        words = [word for option, value in named.items() if value for word in (option, value)]
        logdir = ["--logdir", str(self.bags), "--output", str(output), "--progress", "json"]
        return [str(self.python), "-m", "stribeck", "fit", *logdir, *words, *self.options]


@dataclass(frozen=True)
class Ended:
    """How a fit ended.

    :param reason: why there is no result, in one line; empty if there is one.
    """

    reason: str = ""


class FitProcess:
    """A running fit, in a process group of its own.

    :param request: what to fit.
    :raises OutputError: if nothing can be written where the result is to go.
    :raises ConfigError: if the interpreter cannot be started.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.progress: Mapping[str, Any] = {}
        self.warnings: list[str] = []
        self._last_line = self._error = ""
        self._rest = b""
        self._kill_at: float | None = None
        self._folder = _folder_beside(request.output)
        self.result = self._folder / request.output.name
        try:
            self._child = subprocess.Popen(  # noqa: S603 - the command is built above
                [*_considerately(), *request.command(self.result)],
                env=environment_for(request.python),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ConfigError(f"cannot start {request.python}: {error.strerror}") from error
        assert self._child.stderr is not None  # noqa: S101 - it is a pipe
        self._errors = self._child.stderr
        os.set_blocking(self._errors.fileno(), False)

    def poll(self) -> Ended | None:
        """Read what the child says; how it ended, once it has. Never waits."""
        code = self._child.poll()
        self._listen()
        if code is None:
            if self._kill_at is not None and time.monotonic() > self._kill_at:
                self._signal(signal.SIGKILL)
            return None
        if self._kill_at is not None:
            return Ended("cancelled")
        if code == 0 and self.result.is_file():
            return Ended()
        return Ended(self._reason(code))

    def cancel(self) -> None:
        """Ask the child to end; :meth:`poll` kills it after :data:`GRACE`."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE
            self._signal(signal.SIGTERM)

    def close(self) -> None:
        """End the child, if it runs, and remove what it left."""
        self.cancel()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(GRACE)
        self._signal(signal.SIGKILL)  # its workers too, whatever became of it
        self._child.wait()
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    def _listen(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._errors.fileno(), 1 << 16):
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self._hear(line.decode(errors="replace").strip())

    def _hear(self, line: str) -> None:
        if (told := progress_of(line)) is not None:
            self.progress = told
        elif line.startswith("stribeck: warning: "):
            self.warnings.append(line.removeprefix("stribeck: warning: "))
        elif line.startswith("stribeck: "):
            self._error = line.removeprefix("stribeck: ")
        elif line:
            self._last_line = line

    def _reason(self, code: int) -> str:
        if code < 0:
            name = signal.Signals(-code).name
            return f"stribeck fit was killed by {name}" + (" (out of memory?)" if -code == 9 else "")
        told = self._error or self._last_line or "it did not say why"
        return f"stribeck fit ended with exit code {code}: {told}"


def progress_of(line: str) -> Mapping[str, Any] | None:
    """What a line of ``--progress json`` says; nothing for other lines."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "evaluations" in found else None


def interpreter_named(python: str) -> Path:
    """The interpreter that a parameter names; this process' own for an empty text.

    :raises ConfigError: if there is none, or it lacks what a fit needs.
    """
    path = shutil.which(os.path.expanduser(python or sys.executable))
    if path is None:
        raise ConfigError(f"python: no interpreter {python!r}: give the path of one with stribeck[fit]")
    found = Path(os.path.abspath(path))
    missing = _missing(found)
    if missing:
        raise ConfigError(
            f"{found} cannot fit, it lacks {', '.join(missing)}: {found} -m pip install 'stribeck[fit]', or let "
            "the parameter python name the interpreter of an environment that has it"
        )
    return found


def check_options(options: Sequence[str]) -> None:
    """Refuse options that parameters of the node stand for.

    :raises ConfigError: for the first of them.
    """
    for word in options:
        name = word.partition("=")[0].replace("_", "-")
        if name in OWN_OPTIONS:
            raise ConfigError(
                f"fit_options: {name} is not possible here; valid: all others of `stribeck fit`"
            )


def environment_for(python: Path) -> dict[str, str]:
    """The environment of a child of that interpreter.

    Another interpreter than this process' own belongs to another environment: what ROS and its wheels
    put on the path of this one is kept from it. Of the same environment are interpreters that lie in
    one folder and are one file in the end, as ``python3`` and ``python3.12``.
    """
    environment = dict(os.environ)
    environment.pop(_ROS_BOOTSTRAP_MARK, None)
    own = Path(os.path.abspath(sys.executable))
    same = (python.parent.resolve(), python.resolve()) == (own.parent.resolve(), own.resolve())
    if not same:
        for name in ("PYTHONPATH", "PYTHONHOME"):
            environment.pop(name, None)
    return environment


def _missing(python: Path) -> list[str]:
    code = (
        "import sys; from importlib.util import find_spec\n"
        "print(*(name for name in sys.argv[1:] if find_spec(name) is None))"
    )
    try:
        done = subprocess.run(  # noqa: S603 - an interpreter that the user names
            [python, "-c", code, *NEEDED],
            env=environment_for(python),
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"python: cannot run {python}: {error}") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ConfigError(f"python: {python} is no usable interpreter: {lines[-1]}")
    return done.stdout.split()


def _considerately() -> list[str]:
    """What makes a child end when this process is killed, and leave the processor to control loops."""
    found = {name: shutil.which(name) for name in ("setpriv", "nice")}
    words = {"setpriv": ["--pdeathsig", "TERM"], "nice": ["-n", "10"]}
    return [word for name, path in found.items() if path is not None for word in (path, *words[name])]


def _folder_beside(output: Path) -> Path:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{output.stem}.", dir=output.parent))
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}") from error
