"""What the compensation has learnt, kept in a file between runs. No ROS here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stribeck.core.observer import Learned
from stribeck.errors import StribeckError
from stribeck.io.learned_file import Identified, put_aside, read_learned, write_learned


class Memory:
    """The file of one robot; one that does not fit is put beside as ``<name>.old`` before another takes its place.

    :param joints: what was identified of each joint.
    """

    def __init__(self, path: Path, joints: Sequence[Identified]) -> None:
        self.path, self._joints = path, tuple(joints)
        self._known: tuple[Learned, ...] | None = None
        self._foreign = False

    def read(self) -> tuple[tuple[Learned, ...] | None, str]:
        """What was kept, ``None`` if there is nothing that fits, and why it does not."""
        if not self.path.exists():
            return None, ""
        try:
            self._known = read_learned(self.path, self._joints)
        except StribeckError as error:
            self._foreign = True
            return None, f"{error}: it is ignored, and will be kept as {self.path.name}.old"
        return self._known, ""

    def write(self, learned: tuple[Learned, ...]) -> None:
        """Keep what was learnt, if it has changed.

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
        """Put the file aside: another run begins anew too.

        :raises OutputError: if it cannot be renamed.
        """
        put_aside(self.path)
        self._known, self._foreign = None, False
