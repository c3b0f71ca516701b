"""Programs that are compiled ahead."""

import threading

import pytest

from stribeck.errors import StribeckError
from stribeck.identify.servo.programs import Programs


def test_each_program_is_compiled_once():
    """By whoever comes first; the others get the same program."""
    made = []
    programs = Programs()
    assert "a" not in programs
    first = programs.get("a", lambda: made.append(1) or abs)
    assert "a" in programs
    programs.ahead("a", lambda: made.append(2) or max)
    assert programs.get("a", lambda: made.append(3) or min) is first is abs
    assert made == [1]


def test_a_program_compiled_ahead_is_waited_for():
    """Whoever needs it waits, and it does not count as compiled before."""
    programs, allowed = Programs(), threading.Event()
    programs.ahead("a", lambda: allowed.wait(60.0) and abs)
    assert "a" not in programs
    threading.Timer(0.05, allowed.set).start()
    assert programs.get("a", lambda: max) is abs
    assert "a" in programs


def test_what_fails_ahead_fails_where_it_is_needed():
    """Not in a thread that nobody looks at."""
    programs = Programs()

    def compiled():
        raise StribeckError("no memory")

    programs.ahead("a", compiled)
    with pytest.raises(StribeckError, match="no memory"):
        programs.get("a", lambda: abs)
