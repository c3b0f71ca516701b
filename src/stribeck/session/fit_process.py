"""``stribeck fit`` as a child process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stribeck.errors import ConfigError, OutputError
from stribeck.processes import ChildProcess, exit_reason

RESERVED_OPTIONS = (
    "--logdir",
    "--output",
    "--model",
    "--actuator",
    "--joint",
    "--progress",
    "--quiet",
    "--eval",
)
"""Options of ``stribeck fit`` that the node sets from its parameters, or that would redirect its result."""

REQUIRED_MODULES = ("stribeck", "jax", "scipy", "optuna", "cmaes", "tqdm")
"""Modules that an interpreter needs for a fit."""

GRACE = 2.0
"""Time between the request to exit and the kill signal [s]."""

NICENESS = 10
"""Niceness of a fit, so that control loops have priority."""

CANCELLED = "cancelled"

_ROS_BOOTSTRAP_MARK = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


class FitProcess:
    """A fit running in a child process.

    :param python: interpreter, see :func:`find_interpreter`.
    :param bags: folder with recordings.
    :param output: parameter file to write; the child first writes to a temporary file beside it.
    :param options: further command-line arguments, see :func:`option_words`.
    :ivar progress: the last progress report.
    :ivar warnings: warnings since the owner last cleared them.
    :ivar result: the file that a successful fit has written.
    :raises OutputError: if the folder of the result is not writable.
    :raises ConfigError: if the interpreter cannot be started.
    """

    def __init__(self, python: Path, bags: Path, output: Path, options: Sequence[str]) -> None:
        self.progress: Mapping[str, Any] = {}
        self.warnings: list[str] = []
        self._last_line = self._error = ""
        self._folder = _folder_beside(output)
        self.result = self._folder / output.name
        files = ["--logdir", str(bags), "--output", str(self.result), "--progress", "json"]
        command = [str(python), "-m", "stribeck", "fit", *files, *options]
        try:
            self._child = ChildProcess(command, environment=environment_for(python), niceness=NICENESS)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ConfigError(f"cannot start {python}: {error.strerror}") from error

    def poll(self) -> str | None:
        """Read the child's output without waiting.

        :returns: ``None`` while it runs; afterwards the reason for failure, empty on success.
        """
        code = self._child.poll()
        for line in self._child.read_lines():
            self._take(line)
        if code is None:
            return None
        if self._child.stopping:
            return CANCELLED
        if code == 0 and self.result.is_file():
            return ""
        words = (self._error or self._last_line or "it printed no reason") if code >= 0 else ""
        return f"stribeck fit {exit_reason(code)}" + (f": {words}" if words else "")

    def cancel(self) -> None:
        """Ask the child to exit; :meth:`poll` kills it after :data:`GRACE`."""
        self._child.terminate(GRACE)

    def close(self) -> None:
        """Stop the child if it is running, and remove its temporary files."""
        self._child.close(GRACE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, line: str) -> None:
        if (progress := progress_of(line)) is not None:
            self.progress = progress
        elif line.startswith("stribeck: warning: "):
            self.warnings.append(line.removeprefix("stribeck: warning: "))
        elif line.startswith("stribeck: "):
            self._error = line.removeprefix("stribeck: ")
        elif line:
            self._last_line = line


def option_words(model: str, actuator: str, joint: str, options: Sequence[str]) -> list[str]:
    """Command-line arguments of ``stribeck fit``; empty values are omitted."""
    named = {"--model": model, "--actuator": actuator, "--joint": joint}
    return [word for option, value in named.items() if value for word in (option, value)] + list(options)


def progress_of(line: str) -> Mapping[str, Any] | None:
    """The content of a line written by ``--progress json``; ``None`` for other lines."""
    if not line.startswith("{"):
        return None
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) and "evaluations" in content else None


def find_interpreter(python: str) -> Path:
    """The interpreter named by a parameter; empty means the interpreter of this process.

    :raises ConfigError: if it does not exist, or lacks modules that a fit needs.
    """
    name = shutil.which(os.path.expanduser(python or sys.executable))
    if name is None:
        raise ConfigError(f"python: no interpreter {python!r}: give the path of one with stribeck[fit]")
    path = Path(os.path.abspath(name))
    missing = _missing_modules(path)
    if missing:
        raise ConfigError(
            f"{path} cannot fit, it lacks {', '.join(missing)}: {path} -m pip install 'stribeck[fit]', or let "
            "the parameter python name the interpreter of an environment that has it"
        )
    return path


def check_options(options: Sequence[str]) -> None:
    """Refuse options that the node sets itself.

    :raises ConfigError: for the first of them.
    """
    for word in options:
        name = word.partition("=")[0].replace("_", "-")
        if name in RESERVED_OPTIONS:
            raise ConfigError(
                f"fit_options: {name} is set by the node; valid: all other options of `stribeck fit`"
            )


def environment_for(python: Path) -> dict[str, str]:
    """Environment variables for a child process that runs this interpreter.

    If it belongs to another virtual environment, it must not see the Python path entries set by ROS and this environment.
    Two interpreters belong to the same environment if they lie in one folder and resolve to the same file, such as
    ``python3`` and ``python3.12``.
    """
    environment = dict(os.environ)
    environment.pop(_ROS_BOOTSTRAP_MARK, None)
    ours = Path(os.path.abspath(sys.executable))
    same = (python.parent.resolve(), python.resolve()) == (ours.parent.resolve(), ours.resolve())
    if not same:
        for name in ("PYTHONPATH", "PYTHONHOME"):
            environment.pop(name, None)
    return environment


def _missing_modules(python: Path) -> list[str]:
    code = (
        "import sys; from importlib.util import find_spec\n"
        "print(*(name for name in sys.argv[1:] if find_spec(name) is None))"
    )
    try:
        done = subprocess.run(  # noqa: S603 - an interpreter that the user names
            [python, "-c", code, *REQUIRED_MODULES],
            env=environment_for(python),
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"python: cannot run {python}: {error}") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ConfigError(f"python: {python} is not a usable interpreter: {lines[-1]}")
    return done.stdout.split()


def _folder_beside(output: Path) -> Path:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{output.stem}.", dir=output.parent))
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}") from error
