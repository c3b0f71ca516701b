"""YAML files with a comment above each value that says where it comes from."""

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from stribeck.errors import ConfigError

WIDTH = 110

TODO = "TODO"
"""Stands for a value that only the user knows; reading a file with one is an error."""


class Commented(NamedTuple):
    """A value of a YAML file.

    :param key: keys from the top of the file, separated by points, or one by one.
    :param comment: one paragraph, or nothing.
    """

    key: str | tuple[str, ...]
    value: Any
    comment: str = ""


def commented_yaml(head: str, entries: Iterable[Commented]) -> str:
    """Text of a YAML file; entries with common keys follow each other.

    :param head: comment at the top.
    """
    lines = _comment(head, "")
    above: list[str] = []
    for key, value, comment in entries:
        *folders, name = key.split(".") if isinstance(key, str) else key
        common = next(
            (k for k, pair in enumerate(zip(above, folders, strict=False)) if pair[0] != pair[1]), None
        )
        common = min(len(above), len(folders)) if common is None else common
        if not folders or common == 0:
            lines.append("")
        lines += [f"{'  ' * depth}{folder}:" for depth, folder in enumerate(folders) if depth >= common]
        above = folders
        indent, name = "  " * len(folders), yaml.safe_dump(name, allow_unicode=True).splitlines()[0]
        lines += _comment(comment, indent)
        dumped = yaml.safe_dump(
            value,
            default_flow_style=True,
            sort_keys=False,
            width=WIDTH - len(indent) - len(name),
            allow_unicode=True,
        )
        first, *more = dumped.removesuffix("...\n").splitlines()
        lines += [f"{indent}{name}: {first}", *(f"{indent}  {line}" for line in more)]
    return "\n".join(lines) + "\n"


def open_keys(entries: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """Keys of entries, and of mappings in them, whose value is still :data:`TODO`."""
    found = list(entries)
    found += [
        (f"{key}.{name}", part)
        for key, value in found
        if isinstance(value, dict)
        for name, part in value.items()
    ]
    return tuple(key for key, value in found if value == TODO)


def check_filled_in(content: Any, path: Path) -> None:
    """Raise :class:`ConfigError` if a value of the parsed file ``path`` is still :data:`TODO`, which names it."""
    if (key := _open_key(content)) is not None:
        raise ConfigError(f"{path}: {key} is still {TODO}: enter a value, as the comment above it explains")


def _open_key(content: Any) -> str | None:
    """The first key whose value has to be filled in, ``None`` if there is none."""
    if not isinstance(content, Mapping):
        return "" if content == TODO else None
    for key, value in content.items():
        inner = _open_key(value)
        if inner is not None:
            return f"{key}: {inner}" if inner else str(key)
    return None


def _comment(text: str, indent: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in lines]
