r"""Declared file formats: converts YAML and JSON content to typed classes, with errors that name the wrong key.

A format is declared as a class: fields are keys, annotations are types, and a default makes a key optional. ``msgspec``
converts and checks; this module translates its errors.

.. code-block:: python

    class Limits(Schema):
        velocity: Annotated[float, Meta(gt=0.0, description="speed limit [rad/s]")]
        margin: NotNegative = 0.0


    limits = read_yaml(path, Limits)

Unknown, missing and duplicate keys, wrong types, values out of range and numbers that are not finite are
one-line errors. A class may check several keys together in ``__post_init__`` and raise :class:`ValueError`.
Frozen dataclasses also serve as schemas. ``docs/format_keys.py`` lists the keys of a class for ``docs/files.md``.
"""

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, dataclass_transform

import msgspec
from msgspec import Meta, inspect

from stribeck import strict
from stribeck.errors import ConfigError, StribeckError

Kind = TypeVar("Kind")
Declared = inspect.StructType | inspect.DataclassType | inspect.TypedDictType

Positive = Annotated[float, Meta(gt=0.0)]
"""A number above zero."""

NotNegative = Annotated[float, Meta(ge=0.0)]
"""A number that is zero or above."""

Count = Annotated[int, Meta(ge=1)]
"""A positive integer."""

Name = Annotated[str, Meta(min_length=1)]
"""Text that is not empty."""

Infinite = Meta(extra={"infinite": True})
"""Allows infinity, which is refused by default: ``Annotated[float, Meta(gt=0.0), Infinite]``."""

NUMBERS = {inspect.FloatType: "number", inspect.IntType: "whole number"}

RELATIONS = (("gt", "above"), ("ge", "at least"), ("lt", "below"), ("le", "at most"))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of declared formats: frozen, no unknown keys.

    A subclass that declares required keys after optional ones has to specify ``kw_only=True`` itself.
    """


def read_yaml(path: Path, kind: type[Kind]) -> Kind:
    """Read a YAML file in the format that the class ``kind`` declares.

    :raises ConfigError: if the file cannot be read or is invalid.
    """
    return convert(strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError), kind, str(path))


def read_json(path: Path, kind: type[Kind], error: type[StribeckError] = ConfigError) -> Kind:
    """Read a JSON file in the format that the class ``kind`` declares.

    :raises StribeckError: of the given type, if the file cannot be read or is invalid.
    """
    return convert(strict.parse_json(strict.read_text(path, error), path, error), kind, str(path), error)


def convert(data: Any, kind: type[Kind], where: str, error: type[StribeckError] = ConfigError) -> Kind:
    """Convert the result of a YAML or JSON parser to the class ``kind``, which declares the format.

    :param where: file and key of ``data``, put before error messages.
    :raises StribeckError: of the given type, if the content is invalid.
    """
    info = _type_info(cast(Hashable, kind))
    data = _checked(data, info, where, error)
    try:
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as problem:
        message, _, path = str(problem).partition(" - at `$")
        steps = _steps(data, kind, path.rstrip("`"), message)
        place = where + "".join(f"[{step}]" if isinstance(step, int) else f": {step}" for step in steps)
        for step in steps:
            info, data = _inner(info, step, data), data[step]
        raise error(f"{place}: {_translated(message, data, info)}") from None
    except StribeckError as problem:
        raise error(f"{where}: {problem}") from None


@cache
def _type_info(kind: Hashable) -> inspect.Type:
    return inspect.type_info(kind)


def _checked(value: Any, info: inspect.Type, place: str, error: type[StribeckError]) -> Any:
    """Refuse invalid keys and numbers that are not finite; return the value, with 1 for 1.0 where integers are expected."""
    if isinstance(value, dict):
        if not set(map(type, value)) <= {str}:
            raise error(f"{place}: expected named values, found keys that are not text")
        declared = _class_of(info, value, place, error)
        if declared is not None:
            _check_keys(value, declared, place, error)
        return {
            key: item
            if item is None or isinstance(item, str | bool)
            else _checked(item, _inner(info, key, value), f"{place}: {key}", error)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _checked(item, _inner(info, index, value), f"{place}[{index}]", error)
            for index, item in enumerate(value)
        ]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not (
            _is_finite(value) or (isinstance(value, float) and math.isinf(value) and _allows_infinity(info))
        ):
            raise error(f"{place}: expected a finite number, found {value}")
        if isinstance(value, float) and value.is_integer():
            kinds = {type(found) for found in alternatives(info)}
            return int(value) if kinds - {inspect.NoneType} == {inspect.IntType} else value
    return value


def _allows_infinity(info: inspect.Type) -> bool:
    if isinstance(info, inspect.UnionType):
        return any(_allows_infinity(part) for part in info.types)
    extra = info.extra if isinstance(info, inspect.Metadata) else None
    return bool((extra or {}).get("infinite"))


def mapping(value: Any, where: str, error: type[StribeckError] = ConfigError) -> dict[str, Any]:
    """Return ``value`` if it is a mapping with text keys.

    :raises StribeckError: of the given type, otherwise.
    """
    if not isinstance(value, dict) or not set(map(type, value)) <= {str}:
        raise error(f"{where}: expected named values, found {kind_of(value)}")
    return value


def check_keys(
    content: Mapping[str, Any],
    required: Iterable[str],
    optional: Iterable[str],
    where: str,
    error: type[StribeckError] = ConfigError,
) -> None:
    """Refuse missing and unknown keys, and list the valid ones.

    :raises StribeckError: of the given type.
    """
    required, optional = tuple(required), tuple(optional)
    missing = [key for key in required if key not in content]
    if missing:
        raise error(f"{where}: {', '.join(missing)} missing")
    unknown = [key for key in content if key not in required and key not in optional]
    if unknown:
        valid = ", ".join(dict.fromkeys((*required, *optional)))
        raise error(f"{where}: unknown key {', '.join(map(repr, unknown))}; valid: {valid}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def kind_of(value: Any) -> str:
    """Description of a value for error messages."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"text {value[:40]!r}"
    if isinstance(value, bool | int | float):
        return f"{value}"
    return f"a {'list' if isinstance(value, list) else type(value).__name__}"


def _check_keys(value: Mapping[str, Any], declared: Declared, place: str, error: type[StribeckError]) -> None:
    """Refuse unknown versions first, because they explain all other errors, then missing and unknown keys."""
    required, valid, versions = _declared_keys(declared.cls)
    if versions and value.get("schema", versions[0]) not in versions:
        raise error(
            f"{place}: unknown schema {value['schema']!r}; valid in this version of stribeck: "
            f"{_either([str(number) for number in versions])}. Update stribeck, or correct the file"
        )
    if not required.keys() <= value.keys() <= valid.keys():
        check_keys(value, required, valid, place, error)


@cache
def _declared_keys(kind: Hashable) -> tuple[dict[str, None], dict[str, None], tuple[Any, ...]]:
    """Required keys of a class, all its keys, and its supported versions, in the order of the class."""
    info = _type_info(kind)
    fields = info.fields if isinstance(info, Declared) else ()
    tag = getattr(info, "tag_field", None)
    tags = dict.fromkeys([tag] if tag else [])
    required = {field.encode_name: None for field in fields if field.required}
    optional = {field.encode_name: None for field in fields if not field.required}
    versions = [tuple(_literals(field.type)) for field in fields if field.encode_name == "schema"]
    return {**tags, **required}, {**tags, **required, **optional}, versions[0] if versions else ()


def alternatives(info: inspect.Type) -> list[inspect.Type]:
    """The types of a union, or the type itself, without metadata."""
    if isinstance(info, inspect.Metadata):
        return alternatives(info.type)
    if isinstance(info, inspect.UnionType):
        return [found for part in info.types for found in alternatives(part)]
    return [info]


def _class_of(
    info: inspect.Type, value: Any, place: str = "", error: type[StribeckError] = ConfigError
) -> Declared | None:
    """The declared class of a mapping; for a union of classes, the one with its tag."""
    classes = [found for found in alternatives(info) if isinstance(found, Declared)]
    if len(classes) < 2:
        return classes[0] if classes else None
    tagged = {str(found.tag): found for found in classes if isinstance(found, inspect.StructType)}
    field = next(str(found.tag_field) for found in tagged.values())
    tag = value.get(field)
    if not isinstance(tag, str) or tag not in tagged:
        raise error(f"{place}: {field}: expected {_either(sorted(tagged))}, found {kind_of(tag)}")
    return tagged[tag]


def _inner(info: inspect.Type, step: str | int, value: Any) -> inspect.Type:
    """The type of the entry at a key or an index of ``value``."""
    if isinstance(step, str):
        declared = _class_of(info, value)
        for field in declared.fields if declared is not None else ():
            if field.encode_name == step:
                return field.type
    for found in alternatives(info):
        if isinstance(found, inspect.DictType) and isinstance(step, str):
            return found.value_type
        if isinstance(found, inspect.ListType | inspect.VarTupleType) and isinstance(step, int):
            return found.item_type
        if isinstance(found, inspect.TupleType) and isinstance(step, int) and step < len(found.item_types):
            return found.item_types[step]
    return inspect.AnyType()


def _steps(data: Any, kind: type[Any], path: str, message: str) -> list[str | int]:
    """A ``msgspec`` path as keys and indices; ``msgspec`` omits the keys of mappings, so each one is tried."""
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
    """Whether one entry of the mapping at ``steps``, alone, causes that message."""
    try:
        msgspec.convert(_with_only(data, steps, key), kind, strict=True)
    except msgspec.ValidationError as problem:
        return str(problem).startswith(message)
    return False


def _with_only(data: Any, steps: list[str | int], key: str) -> Any:
    """A copy of ``data`` in which the mapping at ``steps`` has only one entry."""
    if not steps:
        return {key: data[key]}
    copy: Any = dict(data) if isinstance(data, Mapping) else list(data)
    copy[steps[0]] = _with_only(data[steps[0]], steps[1:], key)
    return copy


def _translated(message: str, value: Any, info: inspect.Type) -> str:
    """An error message of ``msgspec`` in the wording of this project."""
    if match := re.fullmatch(
        r"Expected `array` of (?:at least |at most )?length (?:(>=|<=) )?(\d+)(?:, got \d+)?", message
    ):
        bound = {">=": "at least ", "<=": "at most "}.get(match[1], "")
        return f"expected {bound}{match[2]} values, found {len(value)}"
    if match := re.fullmatch(r"Expected `(?:float|int)` (>=?|<=?) (\S+)", message):
        relation = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}[match[1]]
        return f"must be {relation} {float(match[2]):g}, found {_shown(value)}"
    if message == "Expected `str` of length >= 1":
        return "must not be empty"
    if message.startswith(("Expected `", "Invalid enum value")):
        shown = _shown(value) if isinstance(value, str) and _literals(info) else kind_of(value)
        return f"expected {type_words(info, bounds=False)}, found {shown}"
    return message.replace("`", "")


def type_words(info: inspect.Type, *, bounds: bool = True) -> str:
    """Description of the valid values for messages and documentation, with or without the bounds of numbers."""
    literals = _literals(info)
    words = [str(choice) for choice in literals]
    for found in alternatives(info):
        if isinstance(found, inspect.BoolType):
            words += ["true", "false"]
        elif not isinstance(found, inspect.LiteralType | inspect.NoneType):
            words.append(_words(found, bounds))
    return _either(list(dict.fromkeys(words))) if words else "nothing"


def _words(info: inspect.Type, bounds: bool = True) -> str:
    if isinstance(info, inspect.FloatType | inspect.IntType):
        limits = [(word, getattr(info, name)) for name, word in RELATIONS if bounds]
        texts = [f"{word} {limit:g}" for word, limit in limits if limit is not None]
        return " ".join([f"a {NUMBERS[type(info)]}", " and ".join(texts)]).strip()
    if isinstance(info, inspect.TupleType):
        kinds = {_plural(item) for item in info.item_types}
        return f"a list of {len(info.item_types)} {kinds.pop() if len(kinds) == 1 else 'values'}"
    if isinstance(info, inspect.ListType | inspect.VarTupleType):
        return f"a list of {_plural(info.item_type)}"
    if isinstance(info, inspect.DictType):
        plural = _plural(info.value_type)
        return f"named {plural if bounds else 'values'}"
    if isinstance(info, inspect.StrType):
        return "text"
    return "named values" if isinstance(info, Declared) else "any value"


def _plural(info: inspect.Type) -> str:
    kinds = alternatives(info)
    if all(isinstance(found, inspect.FloatType | inspect.IntType) for found in kinds):
        return f"{NUMBERS[type(kinds[-1])]}s"
    if all(isinstance(found, inspect.StrType) for found in kinds):
        return "texts"
    if all(isinstance(found, inspect.TupleType | inspect.VarTupleType | inspect.ListType) for found in kinds):
        return _words(kinds[0]).replace("a list", "lists", 1)
    return "values"


def _literals(info: inspect.Type) -> list[Any]:
    return [
        choice
        for found in alternatives(info)
        if isinstance(found, inspect.LiteralType)
        for choice in found.values
    ]


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return repr(value)
