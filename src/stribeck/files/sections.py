"""Selects the sections of ROS parameter files that apply to a node, by the rules of ROS.

``/**`` matches any number of names, ``/*`` exactly one. So ``/**:`` applies to every node, ``/**/compensation:`` to nodes
of that name in any namespace, and ``compensation:`` to ``/compensation`` only; ROS silently ignores the last for a node
in a namespace. If several sections set a parameter, the last one in the file takes precedence.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from stribeck import strict
from stribeck.errors import ConfigError, StribeckError
from stribeck.files.schema import check_keys, mapping

PARAMETERS = "ros__parameters"

SIMILARITY = 0.8
"""Above this ratio of common letters, the name of a section counts as a misspelt name of the node."""


class NodeSection(NamedTuple):
    """Parameters of the nodes that match a pattern.

    :param pattern: absolute pattern, such as ``/**/compensation``.
    :param values: nested, as in the YAML file.
    """

    pattern: str
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The last part of the pattern, either the name of a node or a wildcard."""
        return self.pattern.rpartition("/")[2]

    def matches(self, node: str) -> bool:
        """Whether it applies to the node with this fully qualified name."""
        wildcards = {"**": r"(/\w+)*", "*": r"/\w+"}
        parts = (wildcards.get(part, "/" + re.escape(part)) for part in self.pattern.split("/")[1:])
        return re.fullmatch("".join(parts), node) is not None


def read_sections(path: Path) -> list[NodeSection]:
    """The sections of a file, in order.

    :raises ConfigError: for a file that is not a parameter file.
    """
    content = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    return list(_below("", mapping(content, str(path), ConfigError), path))


def _below(prefix: str, group: Mapping[str, Any], path: Path) -> Iterator[NodeSection]:
    for key, value in group.items():
        pattern = f"{prefix}/{str(key).strip('/')}"
        where = f"{path}: {pattern.lstrip('/') if prefix else key}"
        inner = mapping(value, where, ConfigError)
        if PARAMETERS not in inner and inner and all(isinstance(part, dict) for part in inner.values()):
            yield from _below(pattern, inner, path)
        else:
            check_keys(inner, (PARAMETERS,), (), where, ConfigError)
            yield NodeSection(pattern, mapping(inner[PARAMETERS], where, ConfigError))


def sections_of(path: Path, node: str) -> list[NodeSection]:
    """The sections that apply to a node, given by its name or its fully qualified name.

    :raises ConfigError: if no section applies, or sections of several nodes with that name do.
    """
    sections = read_sections(path)
    named = [section for section in sections if section.name == node]
    if node.startswith("/"):
        full = node
    else:
        exact = sorted({section.pattern for section in named if "*" not in section.pattern})
        if len(exact) > 1:
            raise ConfigError(
                f"{path}: there are parameters for several nodes named {node!r}: {', '.join(exact)}; give the full name of one (--node)"
            )
        full = exact[0] if exact else f"/{node}"
        if not exact and named:  # in any namespace that the sections name
            return [section for section in sections if section in named or section.matches(full)]
    applying = [section for section in sections if section.matches(full)]
    if not applying:
        raise ConfigError(f"{path}: no parameters for the node {node!r}; found {_patterns(sections)}")
    return applying


def parameter_files(arguments: Sequence[str]) -> list[Path]:
    """The parameter files named in the arguments of a process or node."""
    return [Path(value) for option, value in pairwise(arguments) if option == "--params-file"]


def check_sections(paths: Iterable[Path], node: str, usual_name: str) -> None:
    """Refuse parameter files with no section for the node, whose parameters would silently keep their defaults.

    :param node: its fully qualified name.
    :param usual_name: its name unless it is remapped.
    :raises ConfigError: if no section of a file matches, sections with that name do not, or a file has only a similar name.
    """
    name = node.rpartition("/")[2]
    for path in paths:
        try:
            sections = read_sections(path)
        except StribeckError:
            continue  # ROS has read it, and reports what it cannot read
        meant = [section for section in sections if section.name in (name, usual_name)] or (
            _misspelt(sections, {name, usual_name}) or sections
        )
        if sections and not any(section.matches(node) for section in meant):
            raise ConfigError(
                f"{path}: no section matches this node, {node}; found {_patterns(meant)}, which ROS ignores: "
                f"write '/**/{name}:' (in any namespace) or '{node}:'"
            )


def names_node(path: Path, name: str) -> bool:
    """Whether a parameter file has a section with the name of a node, one that resembles it, or a wildcard for all names.

    :raises ConfigError: for a file that is not a parameter file.
    """
    sections = read_sections(path)
    return any(section.name in (name, "*", "**") for section in sections) or bool(_misspelt(sections, {name}))


def _misspelt(sections: Iterable[NodeSection], names: set[str]) -> list[NodeSection]:
    """Sections whose names resemble those of a node; ROS ignores them, and ``/**`` in the same file would hide that."""
    return [
        section
        for section in sections
        if "*" not in section.name and get_close_matches(section.name, names, cutoff=SIMILARITY)
    ]


def _patterns(sections: Iterable[NodeSection]) -> str:
    return ", ".join(section.pattern for section in sections) or "nothing"
