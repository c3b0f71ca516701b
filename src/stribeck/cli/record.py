"""``stribeck record``: plays trajectories on servos at a serial port, and records a bag of each run."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from stribeck.cli.exit_codes import DONE, INTERRUPTED
from stribeck.cli.inputs import warn
from stribeck.cli.options import Positive, declared, option
from stribeck.cli.stop import signals_to
from stribeck.errors import ConfigError, ServoError
from stribeck.files.folders import check_writable
from stribeck.model.log import MINIMUM_DURATION
from stribeck.servo.checks import ConnectionReport
from stribeck.servo.config import read_record_config
from stribeck.servo.driver import Driver
from stribeck.servo.record import Outcome, SessionRecorder, hanging_warnings
from stribeck.servo.safety import LATE_REMEDY
from stribeck.session.config import SessionConfig
from stribeck.session.directive import Directive

STOP_KEYS = (" ", "q", "\x1b")
"""Space, q and Esc."""

BAR = 30
"""Width of the progress bar."""

SHOW_PERIOD = 0.1
"""Minimum time between two updates of the progress bar [s]."""


@declared
class RecordOptions:
    """Options: what to record, and overrides of values in the file."""

    session: Path = option(
        "YAML file of servos and of the trajectories to record, as config/record.yaml",
        metavar="SESSION.yaml",
        positional=True,
    )
    port: str | None = option("serial port (default: as in the YAML file)")
    output: Path | None = option("folder for the bags (default: as in the YAML file)", metavar="DIR")
    rate: Positive | None = option("cycles per second (default: as in the YAML file)", metavar="HZ")
    allow_overvoltage: bool = option("record even above the rated supply voltage of the servos")
    quiet: bool = option("print only bags and problems, no progress")
    dry_run: bool = option("check the motion and draw it: no bus is opened, nothing moves")
    model: Path | None = option("with --dry-run: URDF of the robot, to check self-collisions and torques")
    picture: Path | None = option("with --dry-run: picture to draw (default: dry_run.png beside the bags)")
    keep_torque: bool = option(
        "with --dry-run: torque stays on after each play, as with a controller of ros2_control"
    )


def run(options: RecordOptions) -> int:
    """Connect, print the state of the servos, play and record."""
    if options.dry_run:
        from stribeck.cli.dry_run import run_dry

        return run_dry(
            options.session,
            options.output,
            options.rate,
            urdf=options.model,
            picture=options.picture,
            keep_torque=options.keep_torque,
        )
    if options.model or options.picture or options.keep_torque:
        raise ConfigError("--model, --picture and --keep-torque need --dry-run: add it")
    driver_config, config = read_record_config(
        options.session, port=options.port, rate=options.rate, output=options.output
    )
    check_writable(config.output / "bag")
    driver = Driver(driver_config)
    try:
        report = driver.connect()
        display = Display(config, options.quiet)

        def show(directive: Directive) -> None:
            if keys is not None and keys.pressed(STOP_KEYS):
                recording.emergency_stop("emergency stop by a key")
            display.show(directive)

        recording = SessionRecorder(config, driver, tell=display.say, show=show)
        with keys_of_terminal() as keys:
            if not options.quiet:
                _introduce(config, report, recording, keys is not None)
            _check_safe(report, recording, overvoltage=options.allow_overvoltage)
            with signals_to(recording.interrupt):  # gently; on a second signal at once
                outcome = recording.run()
        display.close()
        return _finish(outcome, driver, quiet=options.quiet)
    finally:
        driver.close()


class Display:
    """Shows progress in one line on a terminal, otherwise in one line per run.

    :param quiet: show only warnings.
    """

    def __init__(self, config: SessionConfig, quiet: bool) -> None:
        self.plays = config.plays
        self.quiet = quiet
        self._live = sys.stderr.isatty() and not quiet
        self._next = 0.0
        self._play = -1
        self._width = 0

    def show(self, directive: Directive) -> None:
        """Update the display."""
        if self._live:
            if time.monotonic() >= self._next or directive.phase in ("finished", "aborted"):
                self._next = time.monotonic() + SHOW_PERIOD
                self._write(self._line(directive))
        elif not self.quiet and directive.play != self._play:
            self._play = directive.play
            print(self._name(directive), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a warning above the progress line."""
        self.close()
        warn(text)

    def close(self) -> None:
        """End the progress line."""
        if self._width:
            print(file=sys.stderr, flush=True)
            self._width = 0

    def _name(self, directive: Directive) -> str:
        play = self.plays[directive.play]
        return f"run {directive.play + 1}/{len(self.plays)}  {play.trajectory.name}, gain {play.kp:g}"

    def _line(self, directive: Directive) -> str:
        full = round(BAR * directive.progress)
        bar = "#" * full + "." * (BAR - full)
        return (
            f"[{bar}] {directive.progress:4.0%}  {self._name(directive)}, {directive.phase}  "
            f"{directive.remaining:.0f} s left"
        )

    def _write(self, line: str) -> None:
        print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(line)


def _introduce(
    config: SessionConfig, report: ConnectionReport, recording: SessionRecorder, has_keys: bool
) -> None:
    """Print the state of each servo and the expected duration of the session."""
    sample = recording.look()
    for j, joint in enumerate(recording.driver.config.joints):
        print(
            f"{joint.name}: {joint.servo}, at {sample.position[j]:.3f} rad, {sample.voltage[j]:.1f} V, "
            f"{sample.temperature[j]:.0f} °C"
        )
    for note in report.notes:
        print(f"note: {note}")
    count, seconds = len(config.plays), recording.session.duration
    print(
        f"{count} run{'s' if count > 1 else ''} to record into {config.output}, about {seconds:.0f} s. Ctrl-C: return to rest; Ctrl-C twice: stop at once"
        + ("; space, q or Esc: emergency stop, torque off at once" if has_keys else "")
    )
    sys.stdout.flush()


def _check_safe(report: ConnectionReport, recording: SessionRecorder, *, overvoltage: bool) -> None:
    """Print a warning for every unsafe condition before the servos move; refuse a supply above the rated one."""
    driver, sample = recording.driver, recording.look()
    stays = [driver.stays_energised] if driver.stays_energised else []
    for warning in (*report.warnings, *stays, *hanging_warnings(recording.config.joints, sample.position)):
        warn(warning)
    if report.refuse_recording and not overvoltage:
        raise ServoError(
            f"{'; '.join(report.refuse_recording)}: lower the supply voltage, or record in spite of it with --allow-overvoltage"
        )


def _finish(outcome: Outcome, driver: Driver, *, quiet: bool) -> int:
    """Print the bags and the bus quality; returns the exit code."""
    for bag in outcome.bags:
        print(bag)
    if not quiet:
        bus = driver.counters
        print(
            f"bus: {bus.answers} answers, {bus.timeouts} late or lost, {bus.corrupt} corrupt, {bus.retries} "
            f"repeated requests; longest gap {1e3 * bus.longest_gap:.0f} ms"
        )
        if bus.timeouts or bus.corrupt:
            print(
                "Late, lost and corrupt answers are not in the bags; every sample has the time of its own answer. A run with a gap of more "
                f"than {1e3 * driver.config.silence_timeout:.0f} ms is marked as disturbed."
            )
    if outcome.cut:
        warn(
            f"the run of {outcome.cut} was cut short; a run of less than {MINIMUM_DURATION:g} s cannot be fitted"
        )
    if outcome.disturbed:
        names = ", ".join(bag.name for bag in outcome.disturbed)
        warn(f"disturbed runs, which are marked and not used in fits: {names}")
    if outcome.end == "failed":
        raise ServoError(f"{outcome.reason}. {LATE_REMEDY}" if outcome.late else outcome.reason)
    if outcome.end == "interrupted":
        print(f"stribeck: {outcome.reason}", file=sys.stderr)
        return INTERRUPTED
    return DONE


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
