"""Keys of a terminal while a program works: the emergency stop of ``stribeck record``."""

import contextlib
import os
import pty
import sys
import termios

import pytest

from stribeck.cli import record
from stribeck.cli.record import STOP_KEYS, Keys, keys_of_terminal


@pytest.fixture
def terminal():
    """Both ends of a pseudo-terminal."""
    user, program = pty.openpty()
    yield user, program
    for end in (user, program):
        os.close(end)


@pytest.mark.parametrize(
    ("typed", "stops"), [(b" ", True), (b"q", True), (b"\x1b", True), (b"x\n", False), (b"", False)]
)
def test_only_some_keys_stop(terminal, typed, stops):
    """Space, q and Esc; nothing is waited for, and a key counts once."""
    user, program = terminal
    before = termios.tcgetattr(program)
    record.tty.setcbreak(program)
    if typed:
        os.write(user, typed)
        record.select.select([program], [], [])
    found = Keys(program)
    assert found.pressed(STOP_KEYS) == stops
    assert not found.pressed(STOP_KEYS)
    termios.tcsetattr(program, termios.TCSANOW, before)


def test_a_terminal_is_restored(terminal, monkeypatch):
    """Lines and echo as before, also after an error."""
    _, program = terminal
    monkeypatch.setattr(record.os, "tcgetpgrp", lambda _: os.getpgrp())
    before = termios.tcgetattr(program)
    with os.fdopen(os.dup(program)) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with contextlib.suppress(RuntimeError), keys_of_terminal() as found:
            assert found is not None
            assert not termios.tcgetattr(program)[3] & (termios.ICANON | termios.ECHO)
            raise RuntimeError
    assert termios.tcgetattr(program) == before


def test_a_terminal_of_another_program_is_left_alone(terminal, monkeypatch):
    """In the background the terminal belongs to the shell."""
    _, program = terminal
    monkeypatch.setattr(record.os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    with os.fdopen(os.dup(program)) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with keys_of_terminal() as found:
            assert found is None


def test_without_a_terminal_there_are_no_keys(monkeypatch):
    """A pipe, or nothing at all."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as stdin, os.fdopen(writer, "w"):
        monkeypatch.setattr(sys, "stdin", stdin)
        with keys_of_terminal() as found:
            assert found is None
    monkeypatch.setattr(sys, "stdin", None)
    with keys_of_terminal() as found:
        assert found is None


def test_a_closed_terminal_presses_nothing(terminal):
    """The window was closed: reading fails, and is not tried again."""
    user, program = os.openpty()
    os.close(user)
    found = Keys(program)
    assert not found.pressed(STOP_KEYS)
    assert not found.pressed(STOP_KEYS)
    os.close(program)
