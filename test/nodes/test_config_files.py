"""The YAML files of the nodes say what the tables say, and the nodes take them as they are."""

from pathlib import Path

import pytest
import yaml

from helpers import REPOSITORY
from stribeck.nodes import parameters
from stribeck.nodes.parameters import COMPENSATED_JOINT, Table, joint_table, read_yaml

TABLES: dict[str, tuple[Table, Table]] = {
    "compensation": (parameters.COMPENSATION, COMPENSATED_JOINT),
    "guard": (parameters.GUARD, COMPENSATED_JOINT),
    "identification": (parameters.IDENTIFICATION, ()),
    "servo": (parameters.SERVO, ()),
    "excitation": (parameters.EXCITATION, ()),
    "recorder": (parameters.RECORDER, ()),
}
"""Parameters of each node, and of each of its joints."""

MODULES = {"recorder": "recording"}
"""Where a node's module has another name."""

TYPES = {"bool": bool, "int": int, "float": float, "text": str, "floats": list, "texts": list}


def nodes_of(path: Path) -> list[str]:
    """The nodes that a ROS parameter file is for; none for other YAML files."""
    content = yaml.safe_load(path.read_text())
    found = [
        name for name, group in content.items() if isinstance(group, dict) and "ros__parameters" in group
    ]
    if path.name == "compensation.yaml":
        found.append("guard")  # takes what is there for all nodes
    return [name.rpartition("/")[2] for name in found if name != "/**"]


FILES = [
    pytest.param(path, node, id=f"{path.relative_to(REPOSITORY)}-{node}")
    for folder in ("config", "examples")
    for path in sorted((REPOSITORY / folder).rglob("*.yaml"))
    for node in nodes_of(path)
    if node in TABLES
]


@pytest.mark.parametrize(("path", "node"), FILES)
def test_a_file_holds_what_the_table_describes(path, node):
    """No unknown names, types as ROS wants them (1.0, not 1), values in range."""
    table, per_joint = TABLES[node]
    values = read_yaml(path, node, table, per_joint)
    raw = raw_values(path, node)
    specs = {spec.name: spec for joint in values.get("joints", []) for spec in joint_table(per_joint, joint)}
    specs |= {spec.name: spec for spec in table}
    for name, value in raw.items():
        assert type(value) is TYPES[specs[name].kind], f"{name}: {value!r} is not of kind {specs[name].kind}"


@pytest.mark.parametrize("node", sorted(TABLES))
def test_the_file_of_a_node_says_everything(node):
    """config/<node>.yaml shows every parameter, so that nobody has to look for one."""
    path = REPOSITORY / "config" / ("compensation.yaml" if node == "guard" else f"{node}.yaml")
    table, per_joint = TABLES[node]
    joints = [str(name) for name in raw_values(path, node).get("joints", [])]
    names = {spec.name for spec in table} | {
        s.name for joint in joints for s in joint_table(per_joint, joint)
    }
    assert set(raw_values(path, node)) >= names


@pytest.mark.real_time
@pytest.mark.parametrize("namespace", ["", "/left/arm"])
@pytest.mark.parametrize(("path", "node"), FILES)
def test_the_node_takes_the_file(path, node, namespace):
    """The parameters that a real node declares have the values of the file, in a namespace too."""
    ros_graph = pytest.importorskip("ros_graph", reason="rclpy is not installed: pip install '.[ros]'")
    import importlib

    from stribeck.nodes.base import ServiceNode

    module = importlib.import_module(f"stribeck.nodes.{MODULES.get(node, node)}")
    (make,) = (
        found
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, ServiceNode) and found is not ServiceNode
    )
    table, per_joint = TABLES[node]
    with ros_graph.Graph() as graph:
        made = graph.add(make, {}, cli_args=["--ros-args", "--params-file", str(path)], namespace=namespace)
        for joint in raw_values(path, node).get("joints", []):
            made.declare(joint_table(per_joint, joint))
        own = {spec.name for spec in (*table, *made.table)}
        found = made.values()
        for name, value in raw_values(path, node).items():
            assert found[name] == value, name
        assert own == {spec.name for spec in table}, "the table of the node is this one"


def raw_values(path: Path, node: str) -> dict[str, object]:
    """What a file says for a node, flat, as YAML has it."""
    content = yaml.safe_load(path.read_text())
    found: dict[str, object] = {}
    for key, group in content.items():
        if key in ("/**", f"/**/{node}", node):
            found |= dict(flat(group["ros__parameters"]))
    return found


def flat(group, prefix=""):
    for name, value in group.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
