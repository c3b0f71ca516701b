"""Learnt friction of the compensation, kept in a file between runs, as JSON.

.. code-block:: json

    {"schema": 1, "time": "2025-01-31T12:00:00+00:00", "joints": [{"joint": "elbow", "law": "m6",
     "parameters": "sha256:...", "dry": 1.1, "viscous": 0.9, "deviation_dry": 0.05, "deviation_viscous": 0.1}]}

A file is valid only for these joints, in this order, with these parameter files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from stribeck import strict
from stribeck.errors import ConfigError, OutputError, StribeckError
from stribeck.files.folders import save_json
from stribeck.files.schema import NotNegative, Schema, read_json
from stribeck.live.learning.observer import Learned

SCHEMA = 1


class Identified(NamedTuple):
    """A joint, the name of its friction law, and the digest of its parameter file (:func:`digest_of`)."""

    joint: str
    law: str
    parameters: str


class LearnedJoint(Schema):
    """Learnt friction of one joint.

    :param joint: name of the joint.
    :param law: name of its friction law.
    :param parameters: digest of its parameter file.
    :param dry: scale of the dry friction.
    :param viscous: scale of the viscous friction.
    :param deviation_dry: standard deviation of ``dry``.
    :param deviation_viscous: standard deviation of ``viscous``.
    """

    joint: str
    law: str
    parameters: str
    dry: NotNegative
    viscous: NotNegative
    deviation_dry: NotNegative
    deviation_viscous: NotNegative


class LearnedFile(Schema):
    """Learnt friction of a robot.

    :param schema: version of the format.
    :param time: when it was written.
    :param joints: the joints in their order.
    """

    schema: Literal[1]
    time: str
    joints: tuple[LearnedJoint, ...]


def digest_of(path: Path, quantile: float = 0.5) -> str:
    """Digest of a parameter file and of the quantile at which it is read."""
    digest = hashlib.sha256(strict.read_bytes(path, ConfigError)).hexdigest()
    return f"sha256:{digest}" + ("" if quantile == 0.5 else f" at quantile {quantile!r}")


def write_learned(path: Path, joints: Sequence[Identified], learned: Sequence[Learned]) -> None:
    """Write the file atomically.

    :raises OutputError: if it cannot be written.
    """
    content = {
        "schema": SCHEMA,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "joints": [{**j._asdict(), **scales._asdict()} for j, scales in zip(joints, learned, strict=True)],
    }
    save_json(path, content)


def read_learned(path: Path, joints: Sequence[Identified]) -> tuple[Learned, ...]:
    """Read the learnt scales of these joints.

    :raises ConfigError: for a file that is damaged, of an unknown format, or of other joints or parameters.
    """
    learned = read_json(path, LearnedFile).joints
    names, wanted = [entry.joint for entry in learned], [entry.joint for entry in joints]
    if names != wanted:
        raise ConfigError(
            f"{path} contains the joints {', '.join(names) or 'none'}, but the compensated joints are {', '.join(wanted)}"
        )
    for entry, expected in zip(learned, joints, strict=True):
        if (entry.law, entry.parameters) != (expected.law, expected.parameters):
            raise ConfigError(
                f"{path}: joint {entry.joint} had other friction parameters when the file was written"
            )
    return tuple(Learned(*(getattr(entry, name) for name in Learned._fields)) for entry in learned)


def put_aside(path: Path) -> Path | None:
    """Rename a file to ``<name>.old``, replacing an earlier one; returns the new path, ``None`` without a file.

    :raises OutputError: if renaming fails.
    """
    old = path.with_name(f"{path.name}.old")
    try:
        path.replace(old)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"cannot rename {path} to {old.name}: {error.strerror}") from error
    return old


class Memory:
    """The file of one robot; a file that does not match is renamed to ``<name>.old`` before it is replaced.

    :param joints: identified friction of each joint.
    """

    def __init__(self, path: Path, joints: Sequence[Identified]) -> None:
        self.path, self._joints = path, tuple(joints)
        self._known: tuple[Learned, ...] | None = None
        self._foreign = False

    def read(self) -> tuple[tuple[Learned, ...] | None, str]:
        """The stored values, or ``None`` if none match, with the reason for the mismatch."""
        if not self.path.exists():
            return None, ""
        try:
            self._known = read_learned(self.path, self._joints)
        except StribeckError as error:
            self._foreign = True
            return None, f"{error}: the file is ignored, and will be renamed to {self.path.name}.old"
        return self._known, ""

    def write(self, learned: tuple[Learned, ...]) -> None:
        """Store the learned friction if it has changed.

        :raises OutputError: if the file cannot be written.
        """
        if learned == self._known:
            return
        if self._foreign:
            put_aside(self.path)
            self._foreign = False
        write_learned(self.path, self._joints, learned)
        self._known = learned

    def forget(self) -> None:
        """Rename the file, so that the next run starts without learned friction.

        :raises OutputError: if it cannot be renamed.
        """
        put_aside(self.path)
        self._known, self._foreign = None, False
