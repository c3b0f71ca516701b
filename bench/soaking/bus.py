"""Emulated servos in a process of their own: ``python bus.py LINK``, commands as JSON lines, such as ["fail", 1, "overload"].

``["tell", FILE]`` writes what the servos really did: when each was read, and where it was; and their torque now.
"""

import contextlib
import json
import os
import sys
from collections import deque
from pathlib import Path

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import parse_fault
from stribeck.emulator.joint import published_parameters
from stribeck.emulator.served_line import ServedLine
from stribeck.model.bench import Pendulum
from stribeck.session.timing import calendar_offset

MEMORY = 8000
"""Readings of each servo that are kept: 20 s at 400 Hz."""


class Witness:
    """Notes each reading of a servo: wall-clock time [s], position [rad], and how long the emulation paused before [s]."""

    def __init__(self, line: ServedLine, servo: EmulatedServo) -> None:
        self.line, self.servo = line, servo
        self.readings: deque[tuple[float, float, float]] = deque(maxlen=MEMORY)
        self._offset = 1e-9 * calendar_offset(line.clock)
        self._read, self._delay = servo.read, line.delay
        servo.read = self._noted  # type: ignore[method-assign]

    def _noted(self, address: int, length: int) -> tuple[int, bytes]:
        paused, self._delay = self.line.delay - self._delay, self.line.delay
        at = self.servo.clock + self.line.delay + self._offset
        self.readings.append((at, float(self.servo.state.position), paused))
        return self._read(address, length)


def tell(path: Path, witnesses: list[Witness]) -> None:
    """Write the readings and the torque, all at once for who waits for the file."""
    found = {
        "readings": [list(witness.readings) for witness in witnesses],
        "torque": [witness.servo.memory.numbers["torque_enable"] for witness in witnesses],
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(path)


def main() -> None:
    """Serve the line until the standard input ends."""
    parameters = published_parameters("xl330")
    servos = [
        EmulatedServo("xl330", parameters, Pendulum(0.05, 0.05, 0.0), servo_id=k, noise=0.0) for k in (1, 2)
    ]
    source, waiting = sys.stdin.fileno(), b""
    with ServedLine(servos, link=Path(sys.argv[1])) as line:
        witnesses = [Witness(line, servo) for servo in line.servos]
        while True:
            if source not in line.turn([source]):
                continue
            if not (received := os.read(source, 1 << 16)):
                return
            *commands, waiting = (waiting + received).split(b"\n")
            for command in commands:
                execute(line, witnesses, *json.loads(command))


def execute(line: ServedLine, witnesses: list[Witness], name: str, *arguments: object) -> None:
    """One command."""
    if name == "fault":
        line.add_fault(parse_fault(str(arguments[0])))
    elif name == "tell":
        tell(Path(str(arguments[0])), witnesses)
    else:
        getattr(line, name)(*arguments)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
