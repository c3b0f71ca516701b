"""Launch files and the ros2 command on an installed copy of the package, as a user has it."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ros_graph import Graph, domain, wait_for
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState

from helpers import REPOSITORY

START_TIMEOUT = 120.0
END_TIMEOUT = 60.0
ASK_AGAIN = 0.1
"""Between two questions for a state [s]; an answer may get lost while the two find each other."""

needs_launch = pytest.mark.skipif(
    importlib.util.find_spec("launch_ros") is None or shutil.which("ros2") is None,
    reason="launch, launch_ros and the ros2 command are not installed: they come with a ROS installation",
)
needs_rosbag2 = pytest.mark.skipif(
    importlib.util.find_spec("ros2bag") is None, reason="`ros2 bag` comes with a ROS installation"
)
needs_colcon = pytest.mark.skipif(
    shutil.which("colcon") is None, reason="colcon is not installed: pip install colcon-common-extensions"
)

LEFT_OUT = (
    ".git",
    ".venv",
    "build",
    "install",
    "log",
    "__pycache__",
    "*.egg-info",
    ".*_cache",
    ".hypothesis",
)


def copied_source(folder: Path) -> Path:
    """A copy of the source tree, in which builders may leave what they like."""
    return Path(shutil.copytree(REPOSITORY, folder, ignore=shutil.ignore_patterns(*LEFT_OUT)))


def pip_installed(folder: Path) -> Path:
    """The package, installed by pip under a prefix of its own."""
    source = copied_source(folder / "source")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--ignore-installed"]
    builds = all(importlib.util.find_spec(name) for name in ("setuptools", "wheel"))
    isolated = ["--no-build-isolation"] if builds else []
    done = subprocess.run(
        [*command, *isolated, "--prefix", folder / "prefix", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (index,) = (folder / "prefix").rglob("share/ament_index")
    return index.parents[1]


def environment_of(prefix: Path) -> dict[str, str]:
    """The environment in which that installation is found first."""
    found = dict(os.environ)
    (packages,) = {path.parent for path in prefix.rglob("stribeck/__init__.py")}
    for name, value in (
        ("AMENT_PREFIX_PATH", prefix),
        ("PYTHONPATH", packages.parent),
        ("PATH", prefix / "bin"),
    ):
        found[name] = os.pathsep.join(filter(None, [str(value), found.get(name, "")]))
    found.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)  # the children are to find their own way
    return found | {"ROS_DOMAIN_ID": str(domain()), "PYTHONUNBUFFERED": "1"}


def run(environment: dict[str, str], *command: Any) -> str:
    """What a command says that has to work."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


class Launched:
    """`ros2 launch` of a launch file, or another command. Use as a context manager.

    :param environment: see :func:`environment_of`.
    :param log: file that its output goes to.
    """

    def __init__(self, command: list[Any], environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )

    def __enter__(self) -> "Launched":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self._process.wait()

    @property
    def output(self) -> str:
        """Everything that was said so far."""
        return self._log.read_text(errors="replace")

    @property
    def processes(self) -> list[int]:
        """The processes that the launch file has started."""
        return [int(found) for found in re.findall(r"process started with pid \[(\d+)\]", self.output)]

    def says(self, text: str) -> None:
        """Wait until something is said."""
        wait_for(lambda: text in self.output or self.over, f"{text!r}", START_TIMEOUT)
        assert text in self.output, self.output

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def interrupt(self, *, group: bool = False) -> int:
        """Ctrl-C, to the whole ``group`` as a terminal sends it; the exit code.

        `ros2 launch` passes it on to its processes, `ros2 run` does not.
        """
        if group:
            os.killpg(self._process.pid, signal.SIGINT)
        else:
            self._process.send_signal(signal.SIGINT)
        return self.wait(END_TIMEOUT)

    def wait(self, timeout: float) -> int:
        """The exit code, when it has ended."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout:g} s:\n{self.output}") from None

    def reaches(self, graph: Graph, node: str, state: int = State.PRIMARY_STATE_ACTIVE) -> None:
        """Wait until a lifecycle node, of those that run here, is in a state."""
        client = graph.user.create_client(GetState, f"/{node}/get_state")
        asked: list[Any] = []
        again = 0.0

        def answered() -> bool:
            nonlocal again
            if client.service_is_ready() and time.monotonic() > again:
                asked.append(client.call_async(GetState.Request()))
                again = time.monotonic() + ASK_AGAIN
            return any(future.done() and future.result().current_state.id == state for future in asked)

        wait_for(lambda: answered() or self.over, f"{node} in state {state}", START_TIMEOUT)
        graph.user.destroy_client(client)
        assert not self.over, self.output

    def check_clean_end(self, nodes: int) -> None:
        """Every process ended with exit code 0, none is left, nobody had to be asked twice."""
        assert len(self.processes) == nodes, self.output
        assert self.output.count("process has finished cleanly") == nodes, self.output
        for sign in ("Traceback", "escalating", "exit code"):
            assert sign not in self.output, self.output
        assert not [pid for pid in self.processes if Path(f"/proc/{pid}").exists()]
