"""The sections of ROS parameter files: which of them count for a node, as ROS itself decides it. No ROS here.

``/**`` stands for any names, none too, ``/*`` for one. So ``/**:`` is for every node, ``/**/compensation:`` for those of
that name in any namespace, and ``compensation:`` for ``/compensation`` alone: in a namespace ROS drops it without a word.
Where several sections give a parameter the last one in the file counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from stribeck.errors import ConfigError, StribeckError
from stribeck.io import strict

PARAMETERS = "ros__parameters"


class Section(NamedTuple):
    """Parameters of the nodes that a pattern matches.

    :param pattern: from the root on, as ``/**/compensation``.
    :param values: as YAML has them, nested.
    """

    pattern: str
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The last part of the pattern: the name of a node, or a wildcard."""
        return self.pattern.rpartition("/")[2]

    def matches(self, node: str) -> bool:
        """Whether it counts for a node, given by its fully qualified name."""
        parts = {"**": r"(/\w+)*", "*": r"/\w+"}
        wanted = "".join(parts.get(part, "/" + re.escape(part)) for part in self.pattern.split("/")[1:])
        return re.fullmatch(wanted, node) is not None


def sections(path: Path) -> list[Section]:
    """The sections of a file, in their order.

    :raises ConfigError: for a file that is no parameter file.
    """
    content = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    return list(_below("", strict.mapping(content, str(path), ConfigError), path))


def _below(prefix: str, group: Mapping[str, Any], path: Path) -> Iterator[Section]:
    for key, value in group.items():
        pattern = f"{prefix}/{str(key).strip('/')}"
        where = f"{path}: {pattern.lstrip('/') if prefix else key}"
        inner = strict.mapping(value, where, ConfigError)
        if PARAMETERS not in inner and inner and all(isinstance(part, dict) for part in inner.values()):
            yield from _below(pattern, inner, path)
        else:
            strict.check_keys(inner, (PARAMETERS,), (), where, ConfigError)
            yield Section(pattern, strict.mapping(inner[PARAMETERS], where, ConfigError))


def sections_of(path: Path, node: str) -> list[Section]:
    """Those that count for a node, given by its name alone, or by its fully qualified one.

    :raises ConfigError: for a file without any, or with those of several nodes of that name.
    """
    found = sections(path)
    own = [section for section in found if section.name == node]
    if node.startswith("/"):
        full = node
    else:
        fixed = sorted({section.pattern for section in own if "*" not in section.pattern})
        if len(fixed) > 1:
            raise ConfigError(
                f"{path}: parameters of several nodes {node!r}: {', '.join(fixed)}; give the full name of one (--node)"
            )
        full = fixed[0] if fixed else f"/{node}"
        if not fixed and own:  # in any namespace that they ask for
            return [section for section in found if section in own or section.matches(full)]
    chosen = [section for section in found if section.matches(full)]
    if not chosen:
        raise ConfigError(f"{path}: no parameters for the node {node!r}; found {_listed(found)}")
    return chosen


def parameter_files(arguments: Sequence[str]) -> list[Path]:
    """The parameter files that the arguments of a process, or of a node, name."""
    return [Path(value) for option, value in pairwise(arguments) if option == "--params-file"]


def check_sections(paths: Iterable[Path], node: str, usual: str) -> None:
    """Refuse files that were given to a node and say nothing to it: its parameters would keep their defaults.

    :param node: its fully qualified name.
    :param usual: its name where nobody gives it another.
    :raises ConfigError: for a file without a section that matches, or whose sections of that name do not match.
    """
    name = node.rpartition("/")[2]
    for path in paths:
        try:
            found = sections(path)
        except StribeckError:
            continue  # ROS has read it, and refuses what it cannot
        meant = [section for section in found if section.name in (name, usual)]
        if found and not any(section.matches(node) for section in meant or found):
            raise ConfigError(
                f"{path}: no section for this node, {node}; found {_listed(meant or found)}, which ROS drops; "
                f"write '/**/{name}:' (in any namespace) or '{node}:'"
            )


def _listed(found: Iterable[Section]) -> str:
    return ", ".join(section.pattern for section in found) or "nothing"
