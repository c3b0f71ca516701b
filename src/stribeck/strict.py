"""Strict reading of text, JSON and YAML files: duplicate keys are errors."""

import json
import re
import stat
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import yaml

from stribeck.errors import StribeckError

Content = TypeVar("Content", str, bytes)

LARGEST = 1 << 30
"""Size of the largest file that is read as a whole [bytes]."""


def read_text(path: Path, error: type[StribeckError]) -> str:
    """Read a file as text.

    :raises StribeckError: of the given type, if it cannot be read as UTF-8 text.
    """
    return _read(path, lambda: path.read_text(encoding="utf-8-sig"), error)


def read_bytes(path: Path, error: type[StribeckError]) -> bytes:
    """Read the bytes of a file, for formats that declare their encoding.

    :raises StribeckError: of the given type, if it cannot be read.
    """
    return _read(path, path.read_bytes, error)


def check_regular(path: Path, error: type[StribeckError], largest: int = LARGEST) -> None:
    """Refuse devices and pipes, whose reading may never end, and files above ``largest`` bytes; folders pass.

    :raises StribeckError: of the given type, for these.
    """
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise error(f"{path} is a device, a pipe or a socket: write its content to a file, and name the file")
    if stat.S_ISREG(status.st_mode) and status.st_size > largest:
        raise error(
            f"{path} has {status.st_size / 1e6:.0f} MB, but at most {largest / 1e6:.0f} are expected: is it the right file?"
        )


def _read(path: Path, read: Callable[[], Content], error: type[StribeckError]) -> Content:
    try:
        check_regular(path, error)
        return read()
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except IsADirectoryError:
        raise error(f"{path} is a folder, expected a file") from None
    except UnicodeDecodeError:
        raise error(f"{path} is not a text file") from None
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from problem
    except ValueError:
        raise error(f"{str(path)!r} cannot be the name of a file") from None


def parse_json(text: str, source: Path, error: type[StribeckError]) -> Any:
    """Parse JSON; refuse duplicate keys, NaN and infinities, and truncated files."""

    def refuse_constant(name: str) -> float:
        raise error(f"{source}: {name} is not a number that JSON allows")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        unique_keys: dict[str, Any] = {}
        for key, value in pairs:
            if key in unique_keys:
                raise error(f"{source}: key {key!r} occurs twice")
            unique_keys[key] = value
        return unique_keys

    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        raise error(
            f"{source} is not valid JSON (damaged or cut off?): {problem.msg} at line {problem.lineno}, "
            f"column {problem.colno}"
        ) from None
    except RecursionError:
        raise error(f"{source} is nested too deeply") from None
    except ValueError:
        raise error(f"{source} contains an integer of thousands of digits") from None


DEEPEST = 200
"""Largest depth of brackets in YAML."""

MOST_VALUES = 1_000_000
"""Largest number of values in a YAML file, its aliases expanded."""


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses duplicate keys, which YAML loaders accept."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        merge = "tag:yaml.org,2002:merge"
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != merge]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} occurs twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)

    def get_single_node(self) -> yaml.Node | None:
        """The document, if its aliases neither contain themselves nor expand to more than :data:`MOST_VALUES`."""
        node = super().get_single_node()
        if node is not None and self._size(node, {}) > MOST_VALUES:
            raise yaml.MarkedYAMLError(problem=f"its aliases expand to more than {MOST_VALUES:.0e} values")
        return node

    def _size(self, node: yaml.Node, sizes: dict[int, int]) -> int:
        """Number of values in a node; 0 in ``sizes`` marks the nodes that contain the present one."""
        if sizes.get(id(node)) == 0:
            raise yaml.MarkedYAMLError(problem="an alias contains itself", problem_mark=node.start_mark)
        if id(node) not in sizes and not isinstance(node, yaml.ScalarNode):
            sizes[id(node)] = 0
            pairs = isinstance(node, yaml.MappingNode)
            parts = [part for pair in node.value for part in pair] if pairs else node.value
            sizes[id(node)] = 1 + sum(self._size(part, sizes) for part in parts)
        return sizes.get(id(node), 1)


def _nesting(text: str) -> int:
    """Depth of brackets and braces, those in strings counted, too."""
    steps = (1 if found in "[{" else -1 for found in re.findall(r"[\[\]{}]", text))
    return max(accumulate(steps), default=0)


def parse_yaml(text: str, source: Path, error: type[StribeckError]) -> Any:
    """Parse YAML safely; refuse duplicate keys, and deep nesting, for which PyYAML takes minutes."""
    if _nesting(text) > DEEPEST:
        raise error(f"{source} is nested too deeply")
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as problem:
        reason = " ".join(str(problem).split())
        raise error(f"{source} is not valid YAML: {reason}") from None
    except RecursionError:
        raise error(f"{source} is nested too deeply") from None
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as problem:
        # PyYAML's constructors raise arbitrary errors for invalid dates, tagged numbers and tagged collections.
        reason = " ".join(str(problem).split())
        raise error(f"{source} is not valid YAML: {reason}") from None
