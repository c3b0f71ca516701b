"""The package as the ros2 command and colcon see it, installed by pip and by colcon."""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from ros_graph import Graph, domain, wait_for
from lifecycle_msgs.msg import State

from helpers import REPOSITORY, published
from launching import (
    Launched,
    copied_source,
    needs_colcon,
    needs_launch,
    run,
)
from stribeck import __version__

pytestmark = [needs_launch, pytest.mark.real_time]

EXECUTABLES = sorted(path.name for path in (REPOSITORY / "scripts").iterdir())
M1 = {**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"}


def check_found(environment):
    """The executables are there, and the command line runs by its wrapper."""
    listed = run(environment, "ros2", "pkg", "executables", "stribeck").splitlines()
    assert sorted(listed) == [f"stribeck {name}" for name in EXECUTABLES]
    assert (
        run(environment, "ros2", "run", "stribeck", "stribeck", "--version").strip()
        == f"stribeck {__version__}"
    )
    for name in ("record", "identify", "compensate", "demo"):
        shown = run(environment, "ros2", "launch", "stribeck", f"{name}.launch.py", "--show-args")
        assert "Arguments" in shown


def test_an_installation_by_pip_is_found(environment):
    """Executables under lib/stribeck, launch files under share/stribeck."""
    check_found(environment)


def test_every_node_runs(environment, tmp_path):
    """`ros2 run stribeck NODE` starts a lifecycle node of that name; Ctrl-C ends it with exit code 0."""
    names = [name for name in EXECUTABLES if name != "stribeck"]
    with Graph() as graph, ExitStack() as stack:
        nodes = {
            name: stack.enter_context(
                Launched(["ros2", "run", "stribeck", name], environment, tmp_path / name)
            )
            for name in names
        }
        for name, running in nodes.items():
            running.reaches(graph, name, State.PRIMARY_STATE_UNCONFIGURED)
        for running in nodes.values():
            assert running.interrupt(group=True) == 0, running.output
            assert "Traceback" not in running.output


def test_lifecycle_and_parameters_by_hand(environment, tmp_path):
    """`ros2 lifecycle` says how a node is and brings it to its end, `ros2 param` shows and changes its parameters."""
    (tmp_path / "m1.json").write_text(json.dumps(M1))
    given = {
        "joints": ["hinge"],
        "hinge.parameter_file": str(tmp_path / "m1.json"),
        "effort_meaning": "none",
        "autostart": True,
    }
    words = [word for name, value in given.items() for word in ("-p", f"{name}:={json.dumps(value)}")]
    command = ["ros2", "run", "stribeck", "compensation", "--ros-args", *words]
    ros2 = lambda *words: run(environment, "ros2", *words)  # noqa: E731
    with Graph() as graph, Launched(command, environment, tmp_path / "output") as running:
        running.reaches(graph, "compensation")
        ros2("daemon", "start")  # or the first command starts it, and the second asks it too early
        wait_for(
            lambda: "/compensation" in ros2("lifecycle", "nodes"), "the ros2 command knows the node", 30.0
        )
        state, transitions, listed, described, refused, changed = at_once(
            lambda: ros2("lifecycle", "get", "/compensation"),
            lambda: ros2("lifecycle", "list", "/compensation"),
            lambda: ros2("param", "list", "/compensation"),
            lambda: ros2("param", "describe", "/compensation", "gain"),
            lambda: ros2("param", "set", "/compensation", "deadband", "0.1"),
            lambda: ros2("param", "set", "/compensation", "gain", "0.5"),
        )
        assert state.startswith("active")
        assert "deactivate" in transitions
        for name in ("gain", "hinge.max_torque", "effort_meaning", "autostart"):
            assert f" {name}\n" in listed
        assert "fraction of the friction" in described
        assert "only while the node is not configured" in refused
        assert "successful" in changed
        assert "0.5" in ros2("param", "get", "/compensation", "gain")
        assert "successful" in ros2("lifecycle", "set", "/compensation", "shutdown")
        running.reaches(graph, "compensation", State.PRIMARY_STATE_FINALIZED)
        assert running.interrupt(group=True) == 0, running.output


def at_once(*asked):
    """Answers of commands that need not wait for each other: they mostly wait to be discovered."""
    with ThreadPoolExecutor() as pool:
        return [found.result() for found in [pool.submit(command) for command in asked]]


@needs_colcon
@pytest.mark.parametrize("options", [[], ["--symlink-install"]], ids=["copied", "linked"])
def test_colcon_builds_the_package(tmp_path, options):
    """colcon sees an ament_python package, and what it builds is found after sourcing its setup."""
    workspace = tmp_path / "workspace"
    source = copied_source(workspace / "src" / "stribeck")
    outside = dict(os.environ)
    command = ["colcon", "--log-base", workspace / "log"]
    listed = run(outside, *command, "list", "--base-paths", source)
    assert listed.split()[0] == "stribeck"
    assert "(ros.ament_python)" in listed
    built = [f"--{name}-base={workspace / name}" for name in ("build", "install")]
    run(outside, *command, "build", "--base-paths", source, *built, *options)
    setup = workspace / "install" / "setup.bash"
    script = f"source {setup} && exec env -0"
    told = subprocess.run(
        ["bash", "-c", script], env=outside, capture_output=True, text=True, check=True
    ).stdout
    environment = dict(pair.split("=", 1) for pair in told.split("\0") if pair)
    environment["ROS_DOMAIN_ID"] = str(domain())
    check_found(environment)
    installed = workspace / "install" / "stribeck"
    assert run(environment, "ros2", "pkg", "prefix", "stribeck").strip() == str(installed)
    found = run(environment, "python3", "-c", "import stribeck; print(stribeck.__file__)").strip()
    assert Path(found).is_relative_to(workspace)
    if not options:
        script = Path(shutil.which("stribeck", path=environment["PATH"]) or "")
        assert script.is_relative_to(installed)
        assert script.read_text().startswith("#!/usr/bin/env python3\n"), "not colcon's own Python"
