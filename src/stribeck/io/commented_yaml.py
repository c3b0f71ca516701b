"""YAML files with a comment above each value that says where it comes from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any, NamedTuple

import yaml

WIDTH = 110


class Commented(NamedTuple):
    """A value of a YAML file.

    :param key: keys from the top of the file, separated by points.
    :param comment: one paragraph, or nothing.
    """

    key: str
    value: Any
    comment: str = ""


def commented_yaml(head: str, entries: Iterable[Commented]) -> str:
    """Text of a YAML file; entries with common keys follow each other.

    :param head: comment at the top.
    """
    lines = _comment(head, "")
    above: list[str] = []
    for key, value, comment in entries:
        *folders, name = key.split(".")
        common = next(
            (k for k, pair in enumerate(zip(above, folders, strict=False)) if pair[0] != pair[1]), None
        )
        common = min(len(above), len(folders)) if common is None else common
        if not folders or common == 0:
            lines.append("")
        lines += [f"{'  ' * depth}{folder}:" for depth, folder in enumerate(folders) if depth >= common]
        above = folders
        indent = "  " * len(folders)
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


def _comment(text: str, indent: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in lines]
