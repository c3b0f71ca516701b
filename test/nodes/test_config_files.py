"""The YAML files of the nodes match the parameter classes, and the nodes take them as they are."""

from pathlib import Path

import pytest
import yaml

from helpers import REPOSITORY
from stribeck.live.parameters import NODES

MODULES = {"recorder": "recording"}
"""Where a node's module has another name."""


def nodes_of(path: Path) -> list[str]:
    """The nodes that a ROS parameter file is for, by their full names where it gives these; none for other YAML files."""
    content = yaml.safe_load(path.read_text())
    found = [
        name for name, group in content.items() if isinstance(group, dict) and "ros__parameters" in group
    ]
    if path.name == "compensation.yaml":
        # the guard takes what is there for all nodes
        found += [name.replace("/compensation", "/guard") for name in found]
    return [name.removeprefix("/**/") for name in found if not name.endswith("/**")]


FILES = [
    pytest.param(path, node, id=f"{path.relative_to(REPOSITORY)}-{node}")
    for folder in ("config", "examples")
    for path in sorted((REPOSITORY / folder).rglob("*.yaml"))
    for node in nodes_of(path)
    if node.rpartition("/")[2] in NODES
]


@pytest.mark.parametrize(("path", "node"), FILES)
def test_a_file_holds_what_the_class_declares(path, node):
    """No unknown names, types as ROS wants them (1.0, not 1), values in range."""
    raw, declared = raw_values(path, node), NODES[node.rpartition("/")[2]]
    declared.read(path, node)
    specs = {spec.name: spec for spec in declared.all_specs(raw.get("joints"))}
    for name, value in raw.items():
        kind = list if specs[name].is_list else specs[name].type
        assert type(value) is kind, f"{name}: {value!r} is not of type {kind}"


@pytest.mark.parametrize("node", sorted(NODES))
def test_the_file_of_a_node_says_everything(node):
    """config/<node>.yaml shows every parameter, so that nobody has to look for one."""
    path = REPOSITORY / "config" / ("compensation.yaml" if node == "guard" else f"{node}.yaml")
    raw = raw_values(path, node)
    assert set(raw) >= {spec.name for spec in NODES[node].all_specs(raw.get("joints"))}


@pytest.mark.one_case_is_quick
@pytest.mark.real_time
@pytest.mark.parametrize("namespace", ["", "/left/arm"])
@pytest.mark.parametrize(("path", "node"), FILES)
def test_the_node_takes_the_file(path, node, namespace):
    """The parameters that a real node declares have the values of the file, in a namespace too."""
    ros_graph = pytest.importorskip("ros_graph", reason="rclpy is not installed: pip install '.[ros]'")
    import importlib

    own, _, node = node.rpartition("/")
    full, namespace = f"{own}/{node}" if own else node, own or namespace

    from stribeck.nodes.base import ServiceNode

    module = importlib.import_module(f"stribeck.nodes.{MODULES.get(node, node)}")
    (make,) = (
        found
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, ServiceNode) and found is not ServiceNode
    )
    with ros_graph.Graph() as graph:
        made = graph.add(make, {}, cli_args=["--ros-args", "--params-file", str(path)], namespace=namespace)
        found = made.parameters().flat()
        for name, value in raw_values(path, full).items():
            assert found[name] == value, name
        assert made.parameter_class is NODES[node]


def raw_values(path: Path, node: str) -> dict[str, object]:
    """What a file says for a node, flat, as YAML has it."""
    content = yaml.safe_load(path.read_text())
    found: dict[str, object] = {}
    for key, group in content.items():
        if key in ("/**", f"/**/{node}", node, node.rpartition("/")[0] + "/**"):
            found |= dict(flat(group["ros__parameters"]))
    return found


def flat(group, prefix=""):
    for name, value in group.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
