"""Entry point, which runs the command and converts errors to a one-line message and an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from stribeck.api.extras import without_library
from stribeck.cli.commands import COMMANDS, CommandEntry
from stribeck.cli.earlier import todays, with_dashes
from stribeck.cli.exit_codes import DONE, FAILED, INTERRUPTED
from stribeck.errors import StribeckError

AGAIN = 0.02
"""Time after which a lost interrupt is sent again [s]."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    :returns: exit code: 0 success, 1 reported error, 2 with ``--strict`` a result that should not be used, 130 interrupted.
    """
    if argv is None:
        sys.unraisablehook = _interrupted_again
    if argv is None and _computes(sys.argv[1:]):
        return exit_code(_supervised)
    code = exit_code(lambda: _parsed_and_run(sys.argv[1:] if argv is None else argv))
    if argv is None and code == INTERRUPTED:
        # A second one while Python ends would take the exit code away.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


def exit_code(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; errors are printed as one line on stderr.

    :param command: does the work and returns its exit code.
    :returns: its exit code, 1 for an error, 130 when interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not have all characters of a name or unit
            stream.reconfigure(errors="backslashreplace")
    try:
        return command()
    except StribeckError as error:
        print(f"stribeck: {' '.join(str(error).split())}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # the reader of the output closed it, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except RuntimeError as error:
        if "Symlink loop" not in str(error):  # so says pathlib before Python 3.13
            raise
        print(f"stribeck: {error}: the path contains a symbolic link to itself", file=sys.stderr)
        return FAILED
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        print(f"stribeck: {named}{error.strerror or error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("stribeck: interrupted", file=sys.stderr)
        return INTERRUPTED


def _interrupted_again(lost: sys.UnraisableHookArgs) -> None:
    """Send SIGINT again where Python drops KeyboardInterrupt: in callbacks of its garbage collector, of which JAX has one."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """End the process at once with Ctrl-C; compiled libraries turn an exception during their import into another one."""
    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def end(*_: object) -> None:
        os.write(2, b"stribeck: interrupted\n")
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Imports take up to a second, in which Ctrl-C must end the program with its message, too: they are within `exit_code`.


def _supervised() -> int:
    from stribeck.processes import supervised

    return supervised(lambda: main(sys.argv[1:]))


def _parsed_and_run(argv: Sequence[str]) -> int:
    with _ended_by_interrupt():
        from stribeck.cli.options import spelled
        from stribeck.cli.parser import parse
    name, options, run = parse(argv)
    try:
        code = _run(name, run)
    except StribeckError as error:
        error.args = (spelled(str(error), type(options)),)
        raise
    _, notice = todays(with_dashes(argv))
    if notice is not None:  # after the result: an error stays one line
        print(f"stribeck: warning: {notice}", file=sys.stderr)
    return code


def _computes(argv: Sequence[str]) -> bool:
    """Whether the computation of a command ends at once with Ctrl-C."""
    return _command(
        " ".join(word for word in todays(with_dashes(argv))[0] if not word.startswith("-"))
    ).computing


def _command(name: str) -> CommandEntry:
    """The command with which a text begins; one that does nothing for others."""
    words = name.split()
    found = COMMANDS.get(" ".join(words[:2])) or COMMANDS.get(" ".join(words[:1]))
    return found or CommandEntry("", "", "", "")


def _run(name: str, run: Callable[[], int]) -> int:
    from stribeck.cli.stop import exit_after_interrupt

    command = _command(name)
    try:
        with exit_after_interrupt() if command.computing else nullcontext():
            return run()
    except ModuleNotFoundError as error:
        raise without_library(f"stribeck {name}", error, command.extra) from None
