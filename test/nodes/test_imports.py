"""What the nodes load: on a robot neither JAX nor pictures, and ROS only where it is needed."""

import os
import subprocess
import sys

import pytest

from helpers import REPOSITORY

NODES = REPOSITORY / "src" / "stribeck" / "nodes"
MODULES = sorted(f"stribeck.nodes.{path.stem}" for path in NODES.glob("[a-z]*.py"))
SOURCES = REPOSITORY / "src"
WITHOUT_ROS = sorted(
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for layer in ("live", "nodes")
    for path in (SOURCES / "stribeck" / layer).rglob("[a-z]*.py")
    if layer == "live" or "No ROS here" in path.read_text()
)
HEAVY = (
    "jax",
    "jaxlib",
    "matplotlib",
    "scipy",
    "optuna",
    "cmaes",
    "tqdm",
    "stribeck.identify",
    "stribeck.cli",
)

PROGRAM = """
import importlib, sys
for name in {blocked!r}:
    sys.modules[name] = None
for module in {modules!r}:
    importlib.import_module(module)
    found = [name for name in {heavy!r} if sys.modules.get(name)]
    assert not found, f"{{module}} imports {{found}}"
"""


def load(modules, blocked=()):
    program = PROGRAM.format(modules=modules, blocked=tuple(blocked), heavy=HEAVY)
    environment = {"AMENT_PREFIX_PATH": sys.prefix, **os.environ}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


def test_no_node_loads_what_a_robot_lacks():
    """All modules of the nodes, one after the other: neither JAX nor matplotlib nor the fit comes with them."""
    pytest.importorskip("rclpy", reason="rclpy is not installed: pip install '.[ros]'")
    assert "stribeck.nodes.compensation" in MODULES
    done = load(MODULES)
    assert done.returncode == 0, done.stderr


def test_the_rest_works_without_ros():
    """Tables, set-up and replay, which the command line uses, need no rclpy and no messages."""
    assert len(WITHOUT_ROS) >= 4
    done = load(WITHOUT_ROS, blocked=("rclpy", "sensor_msgs", "std_msgs", "diagnostic_msgs"))
    assert done.returncode == 0, done.stderr
