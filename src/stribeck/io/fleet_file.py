"""Which servos a fleet has, where their recordings lie, and how each is to be fitted: one YAML file.

.. code-block:: yaml

    output: fits                   # folder for the parameter files; all paths are relative to this file
    defaults:                      # of all servos: laws, and options of `stribeck fit`
      laws: [m1, m4, m6]           # default: all
      trials: 20000
    servos:
      - name: left_knee            # of the folder of its parameter files
        actuator: xl330            # default: the recordings'
        logdir: bags/left_knee     # one folder or a list
        effects: [current-limit]   # takes the place of the default
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stribeck.core.friction import LAWS
from stribeck.errors import ConfigError
from stribeck.io import strict

SUMMARIES = ("fleet.json", "fleet.csv")
"""Files beside the servos' folders."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class FleetServo:
    """One servo.

    :param logdirs: folders with its recordings.
    :param laws: to fit.
    :param options: of ``stribeck fit``, as they stand in YAML, those of ``defaults`` included; files are absolute.
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

    :param options: names of the options of a fit that a fleet may give, with underscores.
    :raises ConfigError: for what is missing, unknown or not valid, and folders that are not there.
    """
    what = str(path)
    content = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    data = strict.mapping(content, what, ConfigError)
    strict.check_keys(data, ("servos",), ("output", "defaults"), what, ConfigError)
    defaults = strict.mapping(data.get("defaults", {}), f"{what}: defaults", ConfigError)
    strict.check_keys(defaults, (), ("laws", *options), f"{what}: defaults", ConfigError)
    entries = data["servos"]
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{what}: servos: expected a list of servos with name and logdir")
    servos = tuple(_servo(entry, k, defaults, options, path) for k, entry in enumerate(entries, 1))
    names = [servo.name.casefold() for servo in servos]
    twice = sorted({servo.name for servo in servos if names.count(servo.name.casefold()) > 1})
    if twice:
        raise ConfigError(f"{what}: more than one servo is named {', '.join(twice)}")
    output = strict.text(data.get("output", "fits"), f"{what}: output", ConfigError)
    return Fleet(_beside(path, output), servos)


def _servo(
    entry: Any, number: int, defaults: Mapping[str, Any], options: Collection[str], path: Path
) -> FleetServo:
    what = f"{path}: servo {number}"
    data = strict.mapping(entry, what, ConfigError)
    if isinstance(data.get("name"), str):
        what = f"{path}: servo {data['name']!r}"
    strict.check_keys(data, ("name", "logdir"), ("laws", *options), what, ConfigError)
    name = strict.text(data["name"], f"{what}: name", ConfigError)
    if name.casefold() in SUMMARIES:
        raise ConfigError(
            f"{what}: name: {name} is the name of a summary, which lies beside the servos' folders"
        )
    if not NAME.fullmatch(name):
        raise ConfigError(f"{what}: name: letters, digits, _ - and . make the name of a folder")
    merged = {**defaults, **data}
    return FleetServo(
        name,
        _folders(data["logdir"], f"{what}: logdir", path),
        _laws(merged.get("laws", "all"), f"{what}: laws"),
        {key: _resolved(key, value, path) for key, value in merged.items() if key in options},
    )


def _folders(value: Any, what: str, path: Path) -> tuple[Path, ...]:
    texts = value if isinstance(value, list) else [value]
    folders = tuple(_beside(path, strict.text(text, what, ConfigError)) for text in texts)
    if not folders:
        raise ConfigError(f"{what}: expected a folder with recordings, or a list of them")
    for folder in folders:
        if not folder.exists():
            raise ConfigError(f"{what}: {folder}: no such file or folder")
    if len(set(folders)) < len(folders):
        raise ConfigError(f"{what}: a folder is named twice")
    return folders


def _laws(value: Any, what: str) -> tuple[str, ...]:
    if value in ("all", None):
        return tuple(LAWS)
    found = value if isinstance(value, list) else [value]
    unknown = [law for law in found if not isinstance(law, str) or law not in LAWS]
    if unknown or not found or len(set(found)) < len(found):
        raise ConfigError(f"{what}: expected some of {', '.join(LAWS)} or all, found {value!r}")
    return tuple(law for law in LAWS if law in found)


def _resolved(key: str, value: Any, path: Path) -> Any:
    """Options that name files, relative to the YAML file."""
    names_file = key == "signals" or (key == "actuator" and str(value).endswith((".yaml", ".yml")))
    return str(_beside(path, value)) if names_file and isinstance(value, str) else value


def _beside(path: Path, name: str) -> Path:
    return (path.parent / Path(name).expanduser()).resolve()
