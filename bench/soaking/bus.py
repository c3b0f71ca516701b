"""Emulated servos in a process of their own: ``python bus.py LINK``, commands as JSON lines, such as ["fail", 1, "overload"].

``["tell", FILE]`` writes what the servos really did: when each was read, and where it was; and their torque now.
"""

import contextlib
import json
import sys
import time
from collections import deque
from pathlib import Path

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.emulator import EmulatedBus
from stribeck.emulator.faults import parse_fault
from stribeck.emulator.joint import published_parameters
from stribeck.model.bench import Pendulum

MEMORY = 8000
"""Readings of each servo that are kept: 20 s at 400 Hz."""


class Witness:
    """Notes each reading of a servo: wall-clock time [s] and position [rad]."""

    def __init__(self, servo: EmulatedServo) -> None:
        self.servo = servo
        self.readings: deque[tuple[float, float]] = deque(maxlen=MEMORY)
        self._offset = time.time() - time.monotonic()
        self._read = servo.read
        servo.read = self._noted  # type: ignore[method-assign]

    def _noted(self, address: int, length: int) -> tuple[int, bytes]:
        self.readings.append((self.servo.clock + self._offset, float(self.servo.state.position)))
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
    parameters = published_parameters("xl330")
    servos = [
        EmulatedServo("xl330", parameters, Pendulum(0.05, 0.05, 0.0), servo_id=k, noise=0.0) for k in (1, 2)
    ]
    witnesses = [Witness(servo) for servo in servos]
    with EmulatedBus(servos, link=Path(sys.argv[1])) as bus:
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            if name == "fault":
                bus.add_fault(parse_fault(arguments[0]))
            elif name == "tell":
                bus._do(lambda path=Path(arguments[0]): tell(path, witnesses))
            else:
                getattr(bus, name)(*arguments)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
