"""Commands of identification as child processes, which write to a folder of their own beside the result."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stribeck.errors import ConfigError, OutputError, ParameterFileError
from stribeck.files.drives import joined, read_drives, write_drives
from stribeck.files.folders import replace_keeping, write_atomically
from stribeck.processes import ChildProcess, exit_reason

GRACE = 2.0
"""Time between the request to exit and the kill signal [s]."""

NICENESS = 10
"""Niceness of a fit, so that control loops have priority."""

CANCELLED = "cancelled"

KEPT = (".json", ".yaml", ".urdf")
"""Suffixes of results of which earlier versions are kept, with a number; pictures and tables are replaced."""

_NUMBERED = re.compile(r"_\d{3}$")
_ROS_BOOTSTRAP_MARK = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


@dataclass(frozen=True)
class Engine:
    """An identification that runs as a command.

    :param words: of the command.
    :param extra: of the package, whose libraries it needs.
    :param modules: that an interpreter needs for it.
    :param folder: whether its results are several files in a folder.
    :param drives: whether its result is a file of drives.
    :param chooses: options of the command that parameters of the node set, with the names of those.
    :param reports: whether it writes its progress as JSON lines.
    """

    words: tuple[str, ...]
    extra: str
    modules: tuple[str, ...]
    folder: bool = False
    drives: bool = True
    chooses: Mapping[str, str] | None = None
    reports: bool = False

    @property
    def title(self) -> str:
        """The command as a user types it."""
        return " ".join(("stribeck", *self.words))

    @property
    def reserved(self) -> tuple[str, ...]:
        """Options that the node sets from its parameters, or that would redirect the result."""
        fixed = ("--output", "--logdir", "--eval", *(("--progress", "--quiet") if self.reports else ()))
        return (*fixed, *(self.chooses or {}), *(("--model",) if "--law" in (self.chooses or {}) else ()))


_FIT = ("stribeck", "jax", "scipy", "optuna", "cmaes", "tqdm")
_ARM = (*_FIT, "pinocchio", "casadi")
_BAYES = (*_ARM, "blackjax", "arviz")
_SERVO = {"--law": "model", "--servo": "actuator", "--joint": "joint"}

ENGINES: dict[str, Engine] = {
    "servo": Engine(("identify", "servo"), "fit", _FIT, chooses=_SERVO, reports=True),
    "joint": Engine(("identify", "joint"), "fit", _FIT, chooses={"--joint": "joint"}),
    "arm": Engine(("identify", "arm"), "arm", _ARM, folder=True),
    "robot": Engine(("identify", "robot"), "fit", _FIT, folder=True),
    "mechanism": Engine(("identify", "mechanism"), "arm", _ARM),
    "posterior": Engine(("identify", "servo", "--bayes"), "bayes", _BAYES, chooses=_SERVO),
    "geometry": Engine(("identify", "geometry"), "arm", _ARM, folder=True, drives=False),
}
"""Identifications by the parameter ``engine``."""

_ARM_POSTERIOR = Engine(("identify", "arm", "--bayes"), "bayes", _BAYES, folder=True)


def engine_of(name: str, options: Sequence[str]) -> Engine:
    """The engine of a name; the posterior is that of an arm where the options name a machine, otherwise that of a servo."""
    of_arm = any(word.partition("=")[0] == "--machine" for word in options)
    return _ARM_POSTERIOR if name == "posterior" and of_arm else ENGINES[name]


@dataclass(frozen=True)
class Installed:
    """Results at their places.

    :param main: the file of drives or, of geometry, the calibration.
    :param files: all of them.
    :param kept: new paths of earlier ones.
    """

    main: Path
    files: tuple[Path, ...]
    kept: tuple[Path, ...]


class FitProcess:
    """An identification running in child processes, one after the other for several joints.

    :param python: interpreter, see :func:`find_interpreter`.
    :param engine: what is run.
    :param bags: folder with recordings.
    :param output: file or folder to write; children first write to a temporary folder beside it.
    :param settings: parameters of the node by name; ``joint`` may name several joints, separated by commas, which become
        one file.
    :param options: further command-line arguments.
    :ivar progress: the last progress report.
    :ivar warnings: warnings since the owner last cleared them.
    :raises OutputError: if the folder of the result is not writable.
    :raises ConfigError: if the interpreter cannot be started, and for joints of an engine that does not take any.
    """

    def __init__(
        self,
        python: Path,
        engine: Engine,
        bags: Path,
        output: Path,
        settings: Mapping[str, str],
        options: Sequence[str],
    ) -> None:
        self.progress: Mapping[str, Any] = {}
        self.warnings: list[str] = []
        self._last_line = self._error = ""
        self._python, self._engine, self._output = python, engine, output
        joints = joints_of(engine, settings.get("joint", ""))
        self._folder = _folder_beside(output)
        self._result = self._folder / output.name
        self._parts = (
            {name: self._folder / f"{k}.json" for k, name in enumerate(joints)} if joints[1:] else {}
        )
        progress = ["--progress", "json"] if engine.reports else []
        runs = self._parts.items() if self._parts else [(joints[0] if joints else "", self._result)]
        self._waiting = deque(
            (
                name,
                [
                    *(str(python), "-m", "stribeck", *engine.words, str(bags), "--output", str(path)),
                    *progress,
                    *_named(engine, {**settings, "joint": name}),
                    *options,
                ],
            )
            for name, path in runs
        )
        self._child: ChildProcess | None = None
        self._next()

    def poll(self) -> str | None:
        """Read the child's output without waiting, and start the next one when it has ended.

        :returns: ``None`` while it runs; afterwards the reason for failure, empty on success.
        """
        assert self._child is not None  # noqa: S101 - the constructor starts it
        code = self._child.poll()
        for line in self._child.read_lines():
            self._take(line)
        if code is None:
            return None
        if self._child.stopping:
            return CANCELLED
        if code == 0 and self._waiting:
            self._child.close()
            try:
                self._next()
            except ConfigError as error:
                return str(error)
            return None
        if code == 0:
            return self._complete()
        words = (self._error or self._last_line or "it printed no reason") if code >= 0 else ""
        return f"{self._engine.title} {exit_reason(code)}" + (f": {words}" if words else "")

    def install(self) -> Installed:
        """Move results to their places; earlier files are kept, with numbers.

        The file of drives comes first, and every file is whole at any time. In parameter files of ROS, paths in the temporary
        folder become those of the places.

        :raises OutputError: if a file cannot be written.
        :raises ParameterFileError: if the file of drives cannot be read.
        """
        try:
            if self._engine.folder:
                return self._install_folder()
            _check(self._engine, self._result)
            kept = replace_keeping(self._result, self._output)
            return Installed(self._output, (self._output,), () if kept is None else (kept,))
        except OSError as error:
            place = error.filename2 or error.filename or self._output
            raise OutputError(f"cannot write {place}: {error.strerror}") from error

    def _install_folder(self) -> Installed:
        main = main_file(self._result)
        if main is None:
            raise OutputError(f"{self._engine.title} wrote no result")
        _check(self._engine, main)
        files, kept_files = [], []
        results = [path for path in self._result.rglob("*") if path.is_file()]
        for path in sorted(results, key=lambda one: (one != main, one)):
            place = self._output / path.relative_to(self._result)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".yaml":
                content = path.read_bytes()
                here, there = (bytes(folder.resolve()) for folder in (self._result, self._output))
                write_atomically(path, content.replace(here, there))
            if path.suffix in KEPT and not (place.is_file() and place.read_bytes() == path.read_bytes()):
                kept = replace_keeping(path, place)
                kept_files += [] if kept is None else [kept]
            else:
                os.replace(path, place)
            files.append(place)
        return Installed(files[0], tuple(files), tuple(kept_files))

    def cancel(self) -> None:
        """Ask the child to exit; :meth:`poll` kills it after :data:`GRACE`."""
        if self._child is not None:
            self._child.terminate(GRACE)

    def close(self) -> None:
        """Stop the child if it is running, and remove its temporary files."""
        if self._child is not None:
            self._child.close(GRACE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _next(self) -> None:
        name, command = self._waiting.popleft()
        self._about = {"joint": name} if name else {}
        self.progress = {}
        try:
            environment = environment_for(self._python)
            self._child = ChildProcess(command, environment=environment, niceness=NICENESS)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ConfigError(f"cannot start {self._python}: {error.strerror}") from error

    def _complete(self) -> str:
        """Join the files of several joints; returns what is wrong, if anything is."""
        if self._parts:
            try:
                write_drives(
                    self._result, joined({name: read_drives(at) for name, at in self._parts.items()})
                )
            except (ParameterFileError, OutputError) as error:
                return str(error)
        return "" if self._result.exists() else f"{self._engine.title} wrote no result"

    def _take(self, line: str) -> None:
        if (progress := progress_of(line)) is not None:
            self.progress = {**self._about, **progress}
        elif line.startswith("stribeck: warning: "):
            self.warnings.append(line.removeprefix("stribeck: warning: "))
        elif line.startswith("stribeck: "):
            self._error = line.removeprefix("stribeck: ")
        elif line:
            self._last_line = line
            if not self._engine.reports:
                self.progress = {**self._about, "stage": line}


def main_file(folder: Path) -> Path | None:
    """The newest result in a folder that is not an earlier one kept with a number; ``None`` without any."""
    found = [path for path in folder.glob("*.json") if not _NUMBERED.search(path.stem)]
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def _named(engine: Engine, settings: Mapping[str, str]) -> Iterator[str]:
    """Command-line arguments for parameters of the node; empty values are omitted."""
    for option, name in (engine.chooses or {}).items():
        if settings.get(name):
            yield from (option, settings[name])


def _check(engine: Engine, path: Path) -> None:
    if engine.drives:
        read_drives(path)


def progress_of(line: str) -> Mapping[str, Any] | None:
    """The content of a line written by ``--progress json``; ``None`` for other lines."""
    if not line.startswith("{"):
        return None
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) and "evaluations" in content else None


def find_interpreter(python: str, engine: Engine) -> Path:
    """The interpreter named by a parameter; empty means the interpreter of this process.

    :raises ConfigError: if it does not exist, or lacks modules that the engine needs.
    """
    extra = f"stribeck[{engine.extra}]"
    name = shutil.which(os.path.expanduser(python or sys.executable))
    if name is None:
        raise ConfigError(
            f"python: no interpreter {python!r}: give the path of an interpreter with {extra} installed"
        )
    path = Path(os.path.abspath(name))
    missing = _missing_modules(path, engine.modules)
    if missing:
        raise ConfigError(
            f"{path} cannot run `{engine.title}`, because it lacks {', '.join(missing)}: {path} -m pip "
            f"install '{extra}', or set the parameter python to an interpreter with these packages"
        )
    return path


def joints_of(engine: Engine, text: str) -> list[str]:
    """Names of the joints that a parameter lists, separated by commas; each is identified by itself.

    :raises ConfigError: if the engine has no option for a joint.
    """
    joints = [name.strip() for name in text.split(",") if name.strip()]
    if joints and "--joint" not in (engine.chooses or {}):
        raise ConfigError(
            f"joint is {', '.join(joints)}, but `{engine.title}` has no option for joints: leave joint empty, and use fit_options"
        )
    return joints


def check_options(engine: Engine, options: Sequence[str]) -> None:
    """Refuse options that the node sets itself.

    :raises ConfigError: for the first of them.
    """
    for word in options:
        name = word.partition("=")[0].replace("_", "-")
        if name in engine.reserved:
            raise ConfigError(
                f"fit_options: {name} is set by the node; valid: all other options of `{engine.title}`"
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


def _missing_modules(python: Path, modules: Sequence[str]) -> list[str]:
    code = (
        "import sys; from importlib.util import find_spec\n"
        "print(*(name for name in sys.argv[1:] if find_spec(name) is None))"
    )
    try:
        done = subprocess.run(  # noqa: S603 - an interpreter that the user names
            [python, "-c", code, *modules],
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
