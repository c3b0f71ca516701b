"""A pseudo-terminal that acts as a serial port, with an optional symbolic link."""

from __future__ import annotations

import fcntl
import os
import struct
import tty
from pathlib import Path

from stribeck.errors import OutputError

_TERMIOS2 = 0x802C542A, 44, 40
"""Linux: ioctl request for a terminal's settings, their size, offset of the output rate."""


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

    def _close(self) -> None:
        os.close(self.master)
        os.close(self.terminal)

    def close(self) -> None:
        """Close the terminal, and remove the link if it still points to it."""
        if self.link is not None and self.link.is_symlink() and os.readlink(self.link) == self.name:
            self.link.unlink()
        self._close()


def _place_link(link: Path, target: str) -> None:
    """Make ``link`` point to ``target``, replacing a link that is broken or has the same target.

    :raises OutputError: if the path is in use, or the link cannot be made.
    """
    if link.exists() and not link.is_symlink():
        raise OutputError(f"{link} exists and is no link; choose another path for --link")
    if link.exists() and os.readlink(link) != target:
        raise OutputError(
            f"{link} points to {os.readlink(link)}, which exists: another emulator may be running; "
            "choose another path for --link, or remove it"
        )
    beside = link.with_name(f".{link.name}.{os.getpid()}")
    try:
        beside.unlink(missing_ok=True)
        beside.symlink_to(target)
        beside.replace(link)
    except OSError as problem:
        raise OutputError(f"cannot make the link {link}: {problem.strerror}") from None
