"""Emulated servos in a process of their own: ``python bus.py LINK``, commands as JSON lines, such as ["fail", 1, "overload"]."""

import contextlib
import json
import sys
from pathlib import Path

from stribeck.core.bench import Pendulum
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.emulator import EmulatedBus
from stribeck.emulator.faults import parse_fault
from stribeck.emulator.joint import published_parameters


def main() -> None:
    parameters = published_parameters("xl330")
    servos = [
        EmulatedServo("xl330", parameters, Pendulum(0.05, 0.05, 0.0), servo_id=k, noise=0.0) for k in (1, 2)
    ]
    with EmulatedBus(servos, link=Path(sys.argv[1])) as bus:
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            if name == "fault":
                bus.add_fault(parse_fault(arguments[0]))
            else:
                getattr(bus, name)(*arguments)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
