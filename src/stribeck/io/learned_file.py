"""What the compensation has learnt of a robot's friction, kept between runs: a JSON file.

.. code-block:: json

    {"schema": 1, "time": "2025-01-31T12:00:00+00:00", "joints": [{"joint": "elbow", "law": "m6",
     "parameters": "sha256:...", "dry": 1.1, "viscous": 0.9, "deviation_dry": 0.05, "deviation_viscous": 0.1}]}

It holds for these joints, in this order, with these parameter files alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from stribeck.core.observer import Learned
from stribeck.errors import ConfigError, OutputError
from stribeck.io import strict
from stribeck.io.files import write_atomically

SCHEMA = 1


class Identified(NamedTuple):
    """What was learnt is a share of this.

    :param joint: name of the joint.
    :param law: name of its friction law.
    :param parameters: digest of its parameter file (:func:`digest_of`).
    """

    joint: str
    law: str
    parameters: str


def digest_of(path: Path, quantile: float = 0.5) -> str:
    """Digest of a parameter file, and of the quantile at which it is read."""
    found = hashlib.sha256(strict.read_bytes(path, ConfigError)).hexdigest()
    return f"sha256:{found}" + ("" if quantile == 0.5 else f" at quantile {quantile!r}")


def write_learned(path: Path, joints: Sequence[Identified], learned: Sequence[Learned]) -> None:
    """Write the file atomically.

    :raises OutputError: if it cannot be written.
    """
    content = {
        "schema": SCHEMA,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "joints": [{**j._asdict(), **own._asdict()} for j, own in zip(joints, learned, strict=True)],
    }
    write_atomically(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def read_learned(path: Path, joints: Sequence[Identified]) -> tuple[Learned, ...]:
    """What was learnt of these joints.

    :raises ConfigError: for a file that is damaged, unknown, or of other joints or parameters.
    """
    text = strict.read_text(path, ConfigError)
    data = strict.mapping(strict.parse_json(text, path, ConfigError), str(path), ConfigError)
    if data.get("schema") != SCHEMA:
        raise ConfigError(f"{path}: schema {data.get('schema')!r} is not known, this version reads {SCHEMA}")
    strict.check_keys(data, ("schema", "time", "joints"), (), str(path), ConfigError)
    strict.text(data["time"], f"{path}: time", ConfigError)
    if not isinstance(data["joints"], list):
        raise ConfigError(f"{path}: joints: expected a list")
    found = [_joint(entry, f"{path}: joint {number}") for number, entry in enumerate(data["joints"], 1)]
    names, wanted = [own.joint for own, _ in found], [own.joint for own in joints]
    if names != wanted:
        raise ConfigError(f"{path} is of joints {', '.join(names) or 'none'}, not of {', '.join(wanted)}")
    for (own, _), expected in zip(found, joints, strict=True):
        if own != expected:
            raise ConfigError(f"{path}: joint {own.joint} had other friction parameters when it was learnt")
    return tuple(learned for _, learned in found)


def put_aside(path: Path) -> Path | None:
    """Rename a file to ``<name>.old``, in place of an earlier one; its new name, ``None`` if there is no file.

    :raises OutputError: if that cannot be.
    """
    old = path.with_name(f"{path.name}.old")
    try:
        path.replace(old)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"cannot rename {path} to {old.name}: {error.strerror}") from error
    return old


def _joint(entry: object, what: str) -> tuple[Identified, Learned]:
    data = strict.mapping(entry, what, ConfigError)
    strict.check_keys(data, (*Identified._fields, *Learned._fields), (), what, ConfigError)
    words = (strict.text(data[name], f"{what}: {name}", ConfigError) for name in Identified._fields)
    numbers = [strict.number(data[name], f"{what}: {name}", ConfigError) for name in Learned._fields]
    if min(numbers) < 0.0:
        raise ConfigError(f"{what}: scales and deviations cannot be negative")
    return Identified(*words), Learned(*numbers)
