"""Learned friction of the compensation, kept in a file between runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stribeck.errors import StribeckError
from stribeck.live.learning.file import Identified, put_aside, read_learned, write_learned
from stribeck.live.learning.observer import Learned


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
