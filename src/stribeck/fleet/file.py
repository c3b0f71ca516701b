"""Fleet files: the servos of a fleet, the folders of their recordings, and the options of their fits.

.. code-block:: yaml

    output: fits                   # folder for the parameter files; all paths are relative to this file
    defaults:                      # for all servos: laws, and options of `stribeck identify servo`
      laws: [m1, m4, m6]           # default: all
      trials: 20000
    servos:
      - name: left_knee            # folder of its parameter files
        actuator: xl330            # default: the servo named in the recordings
        logdir: bags/left_knee     # one folder or a list
        effects: [current-limit]   # replaces the default
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from stribeck.errors import ConfigError
from stribeck.files.schema import Schema, convert, read_yaml
from stribeck.model.law import LAWS

SUMMARIES = ("fleet.json", "fleet.csv")
"""Files next to the servos' folders."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

Texts = str | tuple[str, ...]


class FleetFile(Schema):
    """The keys of a fleet file. Paths are relative to the file.

    :param servos: the servos, see below.
    :param output: folder for the parameter files.
    :param defaults: laws and options of ``stribeck identify servo`` for all servos.
    """

    servos: tuple[dict[str, Any], ...]
    output: str = "fits"
    defaults: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.servos:
            raise ValueError("servos: expected a list of servos with name and logdir, found an empty one")


class FleetDefaults(Schema):
    """Keys of ``defaults`` and of each servo, in addition to options of ``stribeck identify servo``.

    :param laws: friction laws to fit, ``all`` if left out.
    """

    laws: Texts | None = "all"


class FleetEntry(FleetDefaults, kw_only=True):
    """A servo of a fleet; further keys are options of ``stribeck identify servo`` and replace the defaults.

    :param name: name of the folder for its parameter files.
    :param logdir: folder with its recordings, or a list of folders.
    """

    name: str
    logdir: Texts


@dataclass(frozen=True)
class FleetServo:
    """One servo.

    :param options: options of ``stribeck identify servo``, as in YAML, including those of ``defaults``; file paths are absolute.
    """

    name: str
    logdirs: tuple[Path, ...]
    laws: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Fleet:
    """Servos, and the folder for their parameter files."""

    output: Path
    servos: tuple[FleetServo, ...]


def read_fleet(path: Path, options: Collection[str]) -> Fleet:
    """Read a fleet.

    :param options: names of the fit options that a fleet file may contain, with underscores.
    :raises ConfigError: for missing, unknown or invalid keys, and folders that do not exist.
    """
    content = read_yaml(path, FleetFile)
    convert(content.defaults, _with_options(FleetDefaults, options), f"{path}: defaults")
    servos = tuple(
        _servo(entry, k, content.defaults, options, path) for k, entry in enumerate(content.servos, 1)
    )
    names = [servo.name.casefold() for servo in servos]
    twice = sorted({servo.name for servo in servos if names.count(servo.name.casefold()) > 1})
    if twice:
        raise ConfigError(f"{path}: more than one servo is named {', '.join(twice)}")
    return Fleet(_beside(path, content.output), servos)


def _with_options(base: type[Schema], options: Collection[str]) -> type[Any]:
    """A subclass with additional keys of any type."""
    return msgspec.defstruct(
        base.__name__, [(name, Any, UNSET) for name in options], bases=(base,), kw_only=True
    )


def _servo(
    entry: dict[str, Any], number: int, defaults: Mapping[str, Any], options: Collection[str], path: Path
) -> FleetServo:
    where = (
        f"{path}: servo {entry['name']!r}"
        if isinstance(entry.get("name"), str)
        else f"{path}: servo {number}"
    )
    servo = convert({"laws": "all", **defaults, **entry}, _with_options(FleetEntry, options), where)
    if servo.name.casefold() in SUMMARIES:
        raise ConfigError(
            f"{where}: name: {servo.name} is reserved for a summary in the same folder: choose another name"
        )
    if not NAME.fullmatch(servo.name):
        raise ConfigError(f"{where}: name becomes the name of a folder; valid: letters, digits, _, - and .")
    given = {name: value for name in options if (value := getattr(servo, name)) is not UNSET}
    return FleetServo(
        servo.name,
        _folders(servo.logdir, f"{where}: logdir", path),
        _laws(servo.laws, f"{where}: laws"),
        {key: _resolved(key, value, path) for key, value in given.items()},
    )


def _folders(value: Texts, where: str, path: Path) -> tuple[Path, ...]:
    folders = tuple(_beside(path, text) for text in ((value,) if isinstance(value, str) else value))
    if not folders:
        raise ConfigError(f"{where}: expected a folder with recordings, or a list of them")
    for folder in folders:
        if not folder.exists():
            raise ConfigError(f"{where}: {folder}: no such file or folder")
    if len(set(folders)) < len(folders):
        raise ConfigError(f"{where}: the same folder is named twice: name it once")
    return folders


def _laws(value: Texts | None, where: str) -> tuple[str, ...]:
    if value in ("all", None):
        return tuple(LAWS)
    names = (value,) if isinstance(value, str) else value or ()
    if not names or not set(names) <= set(LAWS) or len(set(names)) < len(names):
        raise ConfigError(f"{where}: expected one or more of {', '.join(LAWS)}, or all; found {value!r}")
    return tuple(law for law in LAWS if law in names)


def _resolved(key: str, value: Any, path: Path) -> Any:
    """Resolve options that name files relative to the YAML file."""
    names_file = key == "signals" or (
        key in ("actuator", "bench") and str(value).endswith((".yaml", ".yml")) and "=" not in str(value)
    )
    return str(_beside(path, value)) if names_file and isinstance(value, str) else value


def _beside(path: Path, name: str) -> Path:
    return (path.parent / Path(name).expanduser()).resolve()
