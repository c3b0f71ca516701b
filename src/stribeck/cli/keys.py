"""Keys pressed on a terminal while a program works."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Collection, Iterator
from contextlib import contextmanager

STOP_KEYS = (" ", "q", "\x1b")
"""Space, q and Esc."""


@contextmanager
def keys_of_terminal() -> Iterator[Keys | None]:
    """The keys of standard input without waiting for a line, restored at the end; ``None`` if it is no terminal, or if
    another program has it.
    """
    try:
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        in_front = os.tcgetpgrp(terminal) == os.getpgrp()
    except (OSError, ValueError, AttributeError, termios.error):
        yield None
        return
    if not in_front:  # changing the terminal would suspend this process
        yield None
        return
    tty.setcbreak(terminal)
    try:
        yield Keys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class Keys:
    """Keys pressed since the last look.

    :param terminal: file descriptor, in a mode without lines.
    """

    def __init__(self, terminal: int) -> None:
        self._terminal: int | None = terminal

    def pressed(self, wanted: Collection[str]) -> bool:
        """Whether one of the keys was pressed; never waits."""
        found = False
        while self._terminal is not None and select.select([self._terminal], [], [], 0.0)[0]:
            try:
                data = os.read(self._terminal, 64)
            except OSError:  # the terminal was closed
                data = b""
            if not data:
                self._terminal = None
            found |= any(key in data.decode(errors="replace") for key in wanted)
        return found
