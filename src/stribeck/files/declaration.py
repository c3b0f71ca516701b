"""Node parameters as typed classes: declaration, checks, and reading of ROS parameter files."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, get_type_hints

from stribeck.errors import ConfigError
from stribeck.files import schema
from stribeck.files.sections import sections_of

Value = bool | int | float | str | list[float] | list[str]

PLAIN_TYPES: tuple[Any, ...] = (bool, int, float, str, list[float], list[str])


def parameter(
    default: Value,
    description: str,
    lower: float = -math.inf,
    upper: float = math.inf,
    *,
    choices: Sequence[str] = (),
    live: bool = False,
) -> Any:
    """A field of a parameter class.

    :param description: meaning, with the unit.
    :param lower, upper: range of a number, or of the length of a list.
    :param choices: valid texts.
    :param live: whether it may be changed while the node is configured.
    """
    metadata = {
        "description": description,
        "lower": lower,
        "upper": upper,
        "choices": tuple(choices),
        "live": live,
    }
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Spec:
    """Declaration of one parameter; the fields are those of :func:`parameter`.

    :param name: name, with its joint's prefix if any.
    :param type: one of :data:`PLAIN_TYPES`.
    """

    name: str
    type: Any
    default: Value
    description: str
    lower: float
    upper: float
    choices: tuple[str, ...]
    live: bool

    @property
    def is_list(self) -> bool:
        """Whether it takes a list."""
        return self.type not in (bool, int, float, str)

    def plain(self, value: Any) -> Any:
        """A value of rclpy as plain Python types; an empty list in a YAML file arrives as ``None``."""
        return list(value or ()) if self.is_list and not isinstance(value, (bool, int, float, str)) else value

    def check(self, value: Any, where: str | None = None) -> Value:
        """Convert ``value`` to the parameter's type.

        :raises ConfigError: for a wrong type or a value out of range.
        """
        where = where or self.name
        checked: Any = schema.convert(value, self.type, where, ConfigError)
        if self.choices and checked not in self.choices:
            raise ConfigError(
                f"{where} must be one of {', '.join(filter(None, self.choices))}, found {checked!r}"
            )
        if math.isfinite(self.upper - self.lower):
            size, what = (len(checked), f"{where}: length") if self.is_list else (checked, where)
            if not self.lower <= size <= self.upper:
                raise ConfigError(f"{what} must be between {self.lower:g} and {self.upper:g}, found {size:g}")
        return checked  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ParameterGroup:
    """Base of the parameter classes."""

    @classmethod
    @cache
    def specs(cls, prefix: str = "") -> tuple[Spec, ...]:
        """Its parameters, with ``prefix`` added to their names."""
        types = get_type_hints(cls)
        return tuple(
            Spec(
                prefix + entry.name,
                types[entry.name] if types[entry.name] in PLAIN_TYPES else str,
                _default(entry),
                **entry.metadata,
            )
            for entry in dataclasses.fields(cls)
            if entry.metadata
        )


def _default(entry: dataclasses.Field[Any]) -> Any:
    return entry.default_factory() if callable(entry.default_factory) else entry.default


@dataclass(frozen=True)
class NodeParameters(ParameterGroup):
    """Base of the parameters of a node.

    :cvar joint_class: parameters of each joint in ``joints``, under ``<joint>.``.
    """

    joint_class: ClassVar[type[ParameterGroup] | None] = None

    @classmethod
    def all_specs(cls, joints: Any = ()) -> tuple[Spec, ...]:
        """Parameters of the node and of its joints."""
        groups = joints if isinstance(joints, (list, tuple)) and cls.joint_class is not None else ()
        return cls.specs() + tuple(spec for joint in groups for spec in cls.joint_class.specs(f"{joint}."))  # type: ignore[union-attr]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Create from a complete set of checked values, those of joints under ``<joint>.<name>``."""
        arguments = {spec.name: values[spec.name] for spec in cls.specs()}
        if cls.joint_class is not None:
            arguments["by_joint"] = {
                name: cls.joint_class(
                    **{spec.name: values[f"{name}.{spec.name}"] for spec in cls.joint_class.specs()}
                )
                for name in values["joints"]
            }
        return cls(**arguments)

    @classmethod
    def complete(cls, values: Mapping[str, Any], where: str) -> Self:
        """Create from the given values, which are checked, and defaults for the others.

        :raises ConfigError: for unknown names or invalid values; the message begins with ``where``.
        """
        specs = {spec.name: spec for spec in cls.all_specs(values.get("joints"))}
        schema.check_keys(values, (), specs, where, ConfigError)
        return cls.of(
            {
                name: spec.check(values[name], f"{where}: {name}") if name in values else spec.default
                for name, spec in specs.items()
            }
        )

    @classmethod
    def groups_without_joint(cls, names: Iterable[str], joints: Any) -> dict[str, list[str]]:
        """Parameters of joints that are not among ``joints``, by the name of the joint; none if there are no joints."""
        found: dict[str, list[str]] = {}
        if cls.joint_class is None or not joints or not isinstance(joints, (list, tuple)):
            return found
        own = {spec.name for spec in cls.joint_class.specs()}
        for name in sorted(names):
            joint, _, rest = name.rpartition(".")
            if joint and rest in own and joint not in joints:
                found.setdefault(joint, []).append(name)
        return found

    @classmethod
    def read(cls, path: Path, node: str, tell: Callable[[str], None] | None = None) -> Self:
        """Read a ROS parameter file.

        As in ROS (:mod:`stribeck.files.sections`), the last section that sets a parameter takes precedence.

        :param node: its name or fully qualified name.
        :param tell: told of joints that have parameters, but are not in ``joints``: these have no effect, as in the node.
        :raises ConfigError: for invalid values, or a file that is not a parameter file.
        """
        values: dict[str, Any] = {}
        for section in sections_of(path, node):
            values |= _flat(section.values)
        values.pop("use_sim_time", None)
        if unused := cls.groups_without_joint(values, values.get("joints")):
            for name in (name for names in unused.values() for name in names):
                del values[name]
            if tell is not None:
                tell(f"{path}: {not_compensated(unused)}")
        return cls.complete(values, str(path))

    def flat(self) -> dict[str, Any]:
        """All values, those of joints under ``<joint>.<name>``."""
        values = {spec.name: getattr(self, spec.name) for spec in self.specs()}
        for joint, group in getattr(self, "by_joint", {}).items():
            values |= {f"{joint}.{spec.name}": getattr(group, spec.name) for spec in group.specs()}
        return values


def not_compensated(joints: Iterable[str]) -> str:
    """Message on joints that have parameters, but are not in ``joints``."""
    return f"joints that are not in `joints` are not compensated, their parameters have no effect: {', '.join(joints)}"


def _flat(group: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in group.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
