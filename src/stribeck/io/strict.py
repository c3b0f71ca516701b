"""Strict reading of JSON and YAML: no unknown keys, no duplicates, no numbers that are none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from stribeck.errors import StribeckError

Content = TypeVar("Content", str, bytes)


def read_text(path: Path, error: type[StribeckError]) -> str:
    """The text of a file.

    :raises StribeckError: of the given type, if it cannot be read as UTF-8 text.
    """
    return _read(path, lambda: path.read_text(encoding="utf-8"), error)


def read_bytes(path: Path, error: type[StribeckError]) -> bytes:
    """The bytes of a file, for formats that say their encoding themselves.

    :raises StribeckError: of the given type, if it cannot be read.
    """
    return _read(path, path.read_bytes, error)


def _read(path: Path, read: Callable[[], Content], error: type[StribeckError]) -> Content:
    try:
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
        raise error(f"{str(path)!r} is no name that a file can have") from None


def parse_json(text: str, source: Path, error: type[StribeckError]) -> Any:
    """Parse JSON; refuse duplicate keys, NaN and infinities, and truncated files."""

    def refuse_constant(name: str) -> float:
        raise error(f"{source}: {name} is not a number that JSON or physics allows")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise error(f"{source}: key {key!r} stands twice")
            found[key] = value
        return found

    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        raise error(
            f"{source} is not valid JSON (damaged or cut off?): {problem.msg} at line {problem.lineno}, "
            f"column {problem.colno}"
        ) from None
    except RecursionError:
        raise error(f"{source} is nested too deeply to be a file of ours") from None
    except ValueError:
        raise error(f"{source} holds an integer of thousands of digits") from None


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that stands twice, which YAML itself lets pass."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} stands twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, source: Path, error: type[StribeckError]) -> Any:
    """Parse YAML safely; refuse duplicate keys."""
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as problem:
        reason = " ".join(str(problem).split())
        raise error(f"{source} is not valid YAML: {reason}") from None
    except RecursionError:
        raise error(f"{source} is nested too deeply to be a file of ours") from None
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as problem:
        # PyYAML's constructors trust the values of dates, tagged numbers and tagged collections.
        reason = " ".join(str(problem).split())
        raise error(f"{source} is not valid YAML: {reason}") from None


def mapping(value: Any, what: str, error: type[StribeckError]) -> dict[str, Any]:
    """``value`` if it is a mapping with string keys."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise error(f"{what}: expected named values, found {kind_of(value)}")
    return value


def check_keys(
    found: Mapping[str, Any],
    required: Iterable[str],
    optional: Iterable[str],
    what: str,
    error: type[StribeckError],
) -> None:
    """Refuse missing and unknown keys, and say which are valid."""
    required, optional = tuple(required), tuple(optional)
    missing = [key for key in required if key not in found]
    if missing:
        raise error(f"{what}: {', '.join(missing)} missing")
    unknown = [key for key in found if key not in required and key not in optional]
    if unknown:
        raise error(
            f"{what}: unknown key {', '.join(map(repr, unknown))}; valid: {', '.join((*required, *optional))}"
        )


def number(value: Any, what: str, error: type[StribeckError]) -> float:
    """``value`` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise error(f"{what}: expected a number, found {kind_of(value)}")
    try:
        converted = float(value)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        raise error(f"{what}: expected a finite number, found {value}")
    return converted


def text(value: Any, what: str, error: type[StribeckError]) -> str:
    """``value`` if it is a string."""
    if not isinstance(value, str):
        raise error(f"{what}: expected text, found {kind_of(value)}")
    return value


def kind_of(value: Any) -> str:
    """A value in the words of error messages."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"text {value[:40]!r}"
    if isinstance(value, bool | int | float):
        return f"{value}"
    return f"a {'list' if isinstance(value, list) else type(value).__name__}"
