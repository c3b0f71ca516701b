"""A pseudo-terminal that acts as a serial port, with an optional symbolic link."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import tty
from collections.abc import Sequence
from pathlib import Path

from stribeck.errors import OutputError

_TERMIOS2 = 0x802C542A, 44, 40
"""Linux: ioctl request for a terminal's settings, their size, offset of the output rate."""

READ_SIZE = 4096


def line_rate(terminal: int) -> int:
    """Baud rate set on a terminal [bit/s], 0 if unknown."""
    request, size, place = _TERMIOS2
    settings = bytearray(size)
    try:
        fcntl.ioctl(terminal, request, settings)
    except OSError:
        return 0
    return int(struct.unpack_from("I", settings, place)[0])


class PseudoTerminal:
    """A pseudo-terminal and a symbolic link to it.

    :param link: path of the symbolic link, ``None`` for none.
    :raises OutputError: if the link cannot be made.
    """

    def __init__(self, link: Path | None) -> None:
        self.master, self.terminal = os.openpty()
        tty.setraw(self.terminal)
        os.set_blocking(self.master, False)
        self.name = os.ttyname(self.terminal)
        self.link = link
        if link is not None:
            try:
                _place_link(link, self.name)
            except OutputError:
                self._close()
                raise

    @property
    def rate(self) -> int:
        """Baud rate set by a program [bit/s], 0 if unknown."""
        return line_rate(self.terminal)

    def wait(self, seconds: float, others: Sequence[int] = ()) -> list[int]:
        """Wait until a program has written or another descriptor is ready, at most for ``seconds`` [s].

        :returns: the other descriptors that are ready.
        """
        return [
            one for one in select.select([self.master, *others], [], [], seconds)[0] if one != self.master
        ]

    def read(self) -> bytes:
        """Everything that a program has written since the last call; does not wait."""
        pieces = []
        with contextlib.suppress(OSError):  # nothing more
            while piece := os.read(self.master, READ_SIZE):
                pieces.append(piece)
        return b"".join(pieces)

    @property
    def has_input(self) -> bool:
        """Whether a program has written something that has not been read."""
        return bool(select.select([self.master], [], [], 0.0)[0])

    def write(self, data: bytes) -> bool:
        """Write; return whether the program's buffer had room, as on a real line nothing waits."""
        try:
            return os.write(self.master, data) == len(data)
        except OSError:
            return False

    def _close(self) -> None:
        os.close(self.master)
        os.close(self.terminal)

    def close(self) -> None:
        """Close the terminal, and remove the link if it still points to it."""
        if self.link is not None and self.link.is_symlink() and os.readlink(self.link) == self.name:
            self.link.unlink()
        self._close()


def _place_link(link: Path, target: str) -> None:
    """Make ``link`` point to ``target``, replacing a link that is broken, or left by an emulator whose terminal has ended since.

    The number of a terminal that has ended is given to the next one that any program opens, which is younger than the link.

    :raises OutputError: if the path is in use, or the link cannot be made.
    """
    if link.exists() and not link.is_symlink():
        raise OutputError(f"{link} exists and is not a link: choose another path for the link")
    if link.exists() and os.readlink(link) != target and not _is_left_over(link, Path(target).parent):
        raise OutputError(
            f"{link} points to {os.readlink(link)}, which exists: another emulator may be running: choose another path for the link, or remove it"
        )
    beside = link.with_name(f".{link.name}.{os.getpid()}")
    try:
        beside.unlink(missing_ok=True)
        beside.symlink_to(target)
        beside.replace(link)
    except OSError as problem:
        raise OutputError(f"cannot create the link {link}: {problem.strerror}") from None


def _is_left_over(link: Path, terminals: Path) -> bool:
    """Whether a link points to a pseudo-terminal that was made after it."""
    return Path(os.readlink(link)).parent == terminals and link.stat().st_ctime_ns > link.lstat().st_mtime_ns
