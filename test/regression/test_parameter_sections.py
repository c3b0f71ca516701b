"""In a namespace ROS dropped the section `compensation:` of a parameter file without a word.

A file with `gain: 0.4, other_joints: ignore` gave 0.8 and `refuse`.
"""

import json
import sys
from pathlib import Path

import pytest

from helpers import published
from stribeck.errors import ConfigError
from stribeck.files.sections import NodeSection, check_sections
from stribeck.live.parameters import CompensationParameters

PATTERNS = {
    "/**": ("/compensation", "/left/compensation", "/left/arm/compensation"),
    "/**/compensation": ("/compensation", "/left/compensation", "/left/arm/compensation"),
    "/*/compensation": ("/left/compensation",),
    "/compensation": ("/compensation",),
    "/left/compensation": ("/left/compensation",),
    "/left/**": ("/left/compensation", "/left/arm/compensation"),
    "/*": ("/compensation",),
    "/**/left/*": ("/left/compensation",),
}
NODES = PATTERNS["/**"]


def own(pattern: str = "compensation", gain: float = 0.4) -> str:
    """A section of a file."""
    return f"{pattern}:\n  ros__parameters:\n    gain: {gain}\n    other_joints: ignore\n"


def everybodys(folder: Path) -> str:
    """What both nodes need."""
    values = {**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"}
    (folder / "m1.json").write_text(json.dumps(values))
    return (
        "/**:\n  ros__parameters:\n    joints: [hinge]\n    effort_meaning: none\n"
        f"    hinge: {{parameter_file: {folder / 'm1.json'}}}\n"
    )


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_the_nodes_that_it_matches_for_ros(pattern):
    """As seen on rclpy of Jazzy, which the next test asks."""
    assert tuple(node for node in NODES if NodeSection(pattern, {}).matches(node)) == PATTERNS[pattern]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_ros_itself_decides_so(tmp_path, pattern):
    """The parameters that rclpy gives to a node of each name."""
    ros_graph = pytest.importorskip("ros_graph", reason="rclpy is not installed: pip install '.[ros]'")
    from rclpy.node import Node

    path = tmp_path / "file.yaml"
    path.write_text(own(pattern))
    found = []
    with ros_graph.Graph() as graph:
        for full in NODES:
            node = Node(
                "compensation",
                context=graph.context,
                namespace=full.rpartition("/")[0],
                cli_args=["--ros-args", "--params-file", str(path)],
                automatically_declare_parameters_from_overrides=True,
            )
            graph.nodes.append(node)
            found += [full] if node.has_parameter("gain") else []
    assert tuple(found) == PATTERNS[pattern]


def test_a_node_refuses_a_file_whose_section_ros_dropped(tmp_path, monkeypatch):
    """In a namespace: one line with what was found, what would be right, and where; `/**/compensation:` counts."""
    ros_graph = pytest.importorskip("ros_graph", reason="rclpy is not installed: pip install '.[ros]'")
    from rclpy.lifecycle import TransitionCallbackReturn

    from stribeck.nodes.compensation import CompensationNode

    path = tmp_path / "compensation.yaml"
    arguments = ["--ros-args", "--params-file", str(path)]
    with ros_graph.Graph() as graph:
        path.write_text(own() + everybodys(tmp_path))
        make = graph.add(CompensationNode, {}, namespace="left", cli_args=arguments)
        assert make.trigger_configure() == TransitionCallbackReturn.FAILURE
        said = make._failure_of_transition
        for part in (str(path), "found /compensation", "'/**/compensation:'", "/left/compensation"):
            assert part in said
        assert "\n" not in said
        path.write_text(own("/**/compensation") + everybodys(tmp_path))
        right = graph.add(CompensationNode, {}, namespace="right", cli_args=arguments)
        assert right.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert (right.values()["gain"], right.values()["other_joints"]) == (0.4, "ignore")
        path.write_text(own("/third/compensation") + everybodys(tmp_path))
        monkeypatch.setattr(sys, "argv", ["node", *arguments])
        last = graph.add(CompensationNode, {}, namespace="last")
        assert last.trigger_configure() == TransitionCallbackReturn.FAILURE


@pytest.mark.parametrize(
    ("text", "node", "part"),
    [
        (own(), "/left/compensation", "found /compensation"),
        (own("/**/compensaton"), "/compensation", "found /**/compensaton"),
        (own("/**/compensation") + own("/**"), "/left_compensation", "'/**/left_compensation:'"),
        (own("guard") + own(), "/left/guard", "found /guard"),
        (own("/**/compensaton") + own("/**"), "/compensation", "found /**/compensaton"),
        (own("/**/compensation_node") + own("/**"), "/left/compensation", "found /**/compensation_node"),
    ],
)
def test_sections_that_reach_nobody_are_refused(tmp_path, text, node, part):
    """Also where a node has another name, the section of its guard is the one that is dropped, or `/**` hides a typo."""
    path = tmp_path / "file.yaml"
    path.write_text(text)
    usual = "guard" if "guard" in node else "compensation"
    with pytest.raises(ConfigError, match=r"no section matches this node") as refused:
        check_sections([path], node, usual)
    assert part in str(refused.value)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (own() + own("guard"), "/compensation"),
        (own("/left/compensation") + own("/right/compensation"), "/right/compensation"),
        (own("/**"), "/left/compensation"),
        (own("/**") + own("/**/guard") + own("/**/gravity_compensation"), "/compensation"),
        (own("/**/compensaton") + own("/**/compensation"), "/compensation"),
        ("left:\n  compensation:\n    ros__parameters: {gain: 0.4}\n", "/left/compensation"),
        ("[broken", "/compensation"),
        ("{}", "/compensation"),
    ],
)
def test_what_others_find_in_the_same_file_is_no_reason(tmp_path, text, node):
    """Sections of the guard, of another arm; what ROS refuses by itself."""
    path = tmp_path / "file.yaml"
    path.write_text(text)
    check_sections([path], node, "compensation")


@pytest.mark.parametrize(
    "pattern",
    [
        "compensation",
        "/compensation",
        "/**/compensation",
        "/left/compensation",
        "left/compensation",
        "/**",
        "/*/compensation",
    ],
)
def test_the_command_line_reads_every_form(tmp_path, pattern):
    """`stribeck compensate --config`, with the same values."""
    path = tmp_path / "file.yaml"
    path.write_text(own(pattern))
    values = CompensationParameters.read(path, "compensation").flat()
    assert (values["gain"], values["other_joints"]) == (0.4, "ignore")


def test_the_last_section_that_gives_a_parameter_counts(tmp_path):
    """As for ROS; a node's own section used to go before, wherever it stood."""
    path = tmp_path / "file.yaml"
    for first, last in (("compensation", "/**"), ("/**", "/**/compensation")):
        path.write_text(own(first, 0.3) + own(last, 0.6))
        assert CompensationParameters.read(path, "compensation").gain == 0.6


def test_two_nodes_of_a_name_are_told_apart_by_the_full_one(tmp_path):
    """Or refused, where only the name is known."""
    path = tmp_path / "file.yaml"
    path.write_text(own("/left/compensation", 0.3) + own("/right/compensation", 0.6))
    with pytest.raises(ConfigError, match=r"several nodes named 'compensation': /left/compensation, /right"):
        CompensationParameters.read(path, "compensation")
    assert CompensationParameters.read(path, "/right/compensation").gain == 0.6
