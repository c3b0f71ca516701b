r"""Files as schemas: YAML and JSON content to typed classes, with errors that say which key is wrong and what is valid.

A format is declared as a class: fields are keys, annotations are types, defaults make a key optional. ``msgspec``
converts and checks; this module turns its errors into ours.

.. code-block:: python

    class Limits(Schema):
        velocity: Annotated[float, Meta(gt=0.0, description="speed limit [rad/s]")]
        margin: NotNegative = 0.0


    limits = read_yaml(path, Limits, ConfigError)

Unknown and missing keys, keys that stand twice, wrong types, values out of range and numbers that are not finite are
errors of one line. A class may check what spans several keys in ``__post_init__`` and raise :class:`ValueError`.
Frozen dataclasses serve as schemas, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, inspect

from stribeck.errors import ConfigError, StribeckError
from stribeck.io import strict

Kind = TypeVar("Kind")

Positive = Annotated[float, Meta(gt=0.0)]
"""A number above zero."""

NotNegative = Annotated[float, Meta(ge=0.0)]
"""A number from zero on."""

Count = Annotated[int, Meta(ge=1)]
"""A whole number from one on."""

Name = Annotated[str, Meta(min_length=1)]
"""Text that is not empty."""

TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "named values",
    "null": "nothing",
}
"""Types of ``msgspec`` in the words of our messages."""

RELATIONS = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of declared formats: frozen, keyword-only, no unknown keys."""


def read_yaml(path: Path, kind: type[Kind], error: type[StribeckError] = ConfigError) -> Kind:
    """The content of a YAML file.

    :param kind: class that declares the format.
    :raises StribeckError: of the given type, if the file cannot be read or is not valid.
    """
    return convert(strict.parse_yaml(strict.read_text(path, error), path, error), kind, str(path), error)


def read_json(path: Path, kind: type[Kind], error: type[StribeckError] = ConfigError) -> Kind:
    """The content of a JSON file.

    :param kind: class that declares the format.
    :raises StribeckError: of the given type, if the file cannot be read or is not valid.
    """
    return convert(strict.parse_json(strict.read_text(path, error), path, error), kind, str(path), error)


def convert(data: Any, kind: type[Kind], where: str, error: type[StribeckError] = ConfigError) -> Kind:
    """Parsed content as an instance of ``kind``.

    :param data: what a YAML or JSON parser returned.
    :param kind: class that declares the format.
    :param where: file and key of ``data``, as messages begin.
    :raises StribeckError: of the given type, if the content is not valid.
    """
    _check(data, inspect.type_info(kind), where, error)
    try:
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as problem:
        message, _, path = str(problem).partition(" - at `$")
        steps = _steps(data, kind, path.rstrip("`"), message)
        place = where + "".join(f"[{step}]" if isinstance(step, int) else f": {step}" for step in steps)
        value: Any = data
        for step in steps:
            value = value[step]
        raise error(
            f"{place}: {_translated(message, value, _type_at(inspect.type_info(kind), steps))}"
        ) from None


def _check(value: Any, info: inspect.Type, place: str, error: type[StribeckError]) -> None:
    """Refuse missing keys, unknown keys, keys that are not text, and numbers that are not finite."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise error(f"{place}: expected named values, found keys that are not text")
        fields = _fields(info)
        if fields is not None:
            required = [name for name, field in fields.items() if field.required]
            strict.check_keys(
                value, required, [name for name in fields if name not in required], place, error
            )
        for key, item in value.items():
            _check(item, _inner(info, key), f"{place}: {key}", error)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, _inner(info, index), f"{place}[{index}]", error)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        strict.number(value, place, error)


def _fields(info: inspect.Type) -> dict[str, inspect.Field] | None:
    """The declared keys of a class; of a union, those of its only class."""
    for found in _alternatives(info):
        if isinstance(found, inspect.StructType | inspect.DataclassType):
            return {field.encode_name: field for field in found.fields}
    return None


def _alternatives(info: inspect.Type) -> tuple[inspect.Type, ...]:
    return info.types if isinstance(info, inspect.UnionType) else (info,)


def _inner(info: inspect.Type, step: str | int) -> inspect.Type:
    """The type behind a key or an index."""
    for found in _alternatives(info):
        if isinstance(found, inspect.StructType | inspect.DataclassType) and isinstance(step, str):
            for field in found.fields:
                if field.encode_name == step:
                    return field.type
        if isinstance(found, inspect.DictType) and isinstance(step, str):
            return found.value_type
        if isinstance(found, inspect.ListType | inspect.VarTupleType) and isinstance(step, int):
            return found.item_type
        if isinstance(found, inspect.TupleType) and isinstance(step, int) and step < len(found.item_types):
            return found.item_types[step]
    return inspect.AnyType()


def _type_at(info: inspect.Type, steps: list[str | int]) -> inspect.Type:
    for step in steps:
        info = _inner(info, step)
    return info


def _steps(data: Any, kind: type[Any], path: str, message: str) -> list[str | int]:
    """A path of ``msgspec`` as keys and indices; it does not tell which key of a mapping is wrong, so we try each."""
    steps: list[str | int] = []
    value = data
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if index == "...":
            step: str | int = next(key for key in value if _fails(data, kind, steps, key, message))
        else:
            step = int(index) if index else name
        steps.append(step)
        value = value[step]
    return steps


def _fails(data: Any, kind: type[Any], steps: list[str | int], key: str, message: str) -> bool:
    """Whether one entry of the mapping at ``steps``, alone, gives that message."""
    try:
        msgspec.convert(_with_only(data, steps, key), kind, strict=True)
    except msgspec.ValidationError as problem:
        return str(problem).startswith(message)
    return False


def _with_only(data: Any, steps: list[str | int], key: str) -> Any:
    """A copy of ``data`` whose mapping at ``steps`` has one entry."""
    if not steps:
        return {key: data[key]}
    copy: Any = dict(data) if isinstance(data, Mapping) else list(data)
    copy[steps[0]] = _with_only(data[steps[0]], steps[1:], key)
    return copy


def _translated(message: str, value: Any, info: inspect.Type) -> str:
    """A message of ``msgspec`` in our words."""
    literals = [
        choice
        for found in _alternatives(info)
        if isinstance(found, inspect.LiteralType)
        for choice in found.values
    ]
    if literals and not isinstance(value, dict | list):
        return f"expected {_either([str(choice) for choice in literals])}, found {_shown(value)}"
    if found := re.fullmatch(r"Expected `([^`]+)`, got `\w+`", message):
        return f"expected {_either([TYPES.get(name, name) for name in found[1].split(' | ')])}, found {strict.kind_of(value)}"
    if found := re.fullmatch(
        r"Expected `array` of (?:at least |at most )?length (?:(>=|<=) )?(\d+)(?:, got \d+)?", message
    ):
        bound = f"{RELATIONS[found[1]]} " if found[1] else ""
        return f"expected {bound}{found[2]} values, found {len(value)}"
    if found := re.fullmatch(r"Expected `(?:float|int)` (>=?|<=?) (\S+)", message):
        return f"must be {RELATIONS[found[1]]} {float(found[2]):g}, found {_shown(value)}"
    if re.fullmatch(r"Expected `str` of length >= 1", message):
        return "must not be empty"
    return message.replace("`", "")


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return repr(value)
