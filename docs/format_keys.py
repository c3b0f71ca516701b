"""The keys of the classes that declare file formats (:mod:`stribeck.files.schema`), for ``docs/files.md``."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from stribeck.files.schema import Declared, alternatives, type_words


class Key(NamedTuple):
    """One key of a declared format, for documentation.

    :param name: including its parent keys: ``limits.velocity``, ``servos[].name``, ``joints.<name>.margin``.
    :param type: valid values, in words.
    :param default: as YAML; empty for required keys.
    :param description: its ``Meta(description=…)``, or its ``:param`` in the docstring of the class.
    """

    name: str
    type: str
    default: str
    description: str


def keys_of(kind: type[Any], separate: Collection[type[Any]] = ()) -> list[Key]:
    """All keys of a declared class and of its nested classes, for documentation.

    :param separate: nested classes whose keys are left out, because they are listed elsewhere.
    """
    return _keys(inspect.type_info(kind), "", separate)


def _keys(info: inspect.Type, above: str, separate: Collection[type[Any]]) -> list[Key]:
    keys: list[Key] = []
    for part in alternatives(info):
        if isinstance(part, Declared) and not (above and part.cls in separate):
            prefix = f"{above}." if above else ""
            texts = _documented(part.cls)
            if tag := getattr(part, "tag_field", None):
                keys.append(Key(f"{prefix}{tag}", str(getattr(part, "tag", "")), "", ""))
            for field in part.fields:
                name = f"{prefix}{field.encode_name}"
                text = _description(field.type) or texts.get(field.name) or _summary(field.type)
                keys.append(Key(name, type_words(field.type), _default(field), text))
                keys += _keys(field.type, name, separate)
        elif isinstance(part, inspect.DictType):
            keys += _keys(part.value_type, f"{above}.<name>", separate)
        elif isinstance(part, inspect.ListType | inspect.VarTupleType):
            keys += _keys(part.item_type, f"{above}[]", separate)
    return keys


def _documented(kind: type[Any]) -> dict[str, str]:
    """The ``:param`` texts in the docstrings of a class and its bases, by name."""
    pattern = r":param ([\w, ]+):\s*(.+?)(?=\n\s*:\w|\n\s*\n|\Z)"
    return {
        name.strip(): " ".join(text.split())
        for base in reversed(kind.__mro__)
        for names, text in re.findall(pattern, base.__doc__ or "", re.DOTALL)
        for name in names.split(",")
    }


def _summary(info: inspect.Type) -> str:
    """The first line of the docstring of the declared class that a key holds, alone or in a table or list."""
    for part in alternatives(info):
        if isinstance(part, Declared):
            return (part.cls.__doc__ or "").partition("\n")[0].rstrip(".")
        if isinstance(part, inspect.DictType | inspect.ListType | inspect.VarTupleType):
            return _summary(part.value_type if isinstance(part, inspect.DictType) else part.item_type)
    return ""


def _description(info: inspect.Type) -> str:
    extra = info.extra_json_schema if isinstance(info, inspect.Metadata) else None
    return str((extra or {}).get("description", ""))


def _default(field: inspect.Field) -> str:
    if field.required:
        return ""
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if value in (None, msgspec.UNSET, msgspec.NODEFAULT):
        return "none"
    if not isinstance(value, str | bool | int | float | tuple | list | dict):
        return "see its keys"
    return json.dumps(value)
