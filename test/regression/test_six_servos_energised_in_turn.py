"""Six servos were energised one after the other, with four exchanges each.

What happened: the first cycle with goals took 27 ms at 1 Mbit/s, five cycles at 200 Hz, and the next twenty were late for it.
What must happen: goals, torque and gains of all servos are written in one packet each and read back in one request.
"""

import numpy as np

from driving import BAUD, config_for, emulated
from virtual_bus import VirtualBus

RATE = 200.0


def test_six_servos_are_energised_within_three_cycles() -> None:
    """The first cycle with goals, and that with new gains, take less than three periods; every servo has what was written."""
    servos = emulated(*["xl330"] * 6)
    with VirtualBus(servos) as emulation:
        driver = emulation.driver(config_for(emulation.path, *["xl330"] * 6, rate=RATE))
        assert driver.config.baud_rate == BAUD
        driver.connect()
        driver.enable()
        driver.cycle()
        for change in (
            lambda: driver.set_goals(np.full(6, 0.1)),
            lambda: driver.set_gain([300.0 + k for k in range(6)]),
        ):
            change()
            start = driver.clock.now()
            sample = driver.cycle()
            assert driver.clock.now() - start < 3.0 / RATE
            assert sample.valid.all()
        assert all(servo.torque_enabled for servo in servos)
        assert [servo.memory.numbers["position_p_gain"] for servo in servos] == [300 + k for k in range(6)]
        assert sample.p_gain.tolist() == [300.0 + k for k in range(6)]
        driver.close()
        assert not any(servo.torque_enabled for servo in servos)


def test_a_servo_that_misses_the_packet_is_written_to_by_itself() -> None:
    """A write to all that one of them does not receive is repeated for that one."""
    servos = emulated(*["xl330"] * 3)
    with VirtualBus(servos) as emulation:
        bus = emulation.bus(*["xl330"] * 3)
        bus.connect()
        write, missed = servos[1].write, []

        def once_deaf(address: int, data: bytes) -> int:
            if missed:
                return write(address, data)
            missed.append(data)
            return 0

        servos[1].write = once_deaf  # type: ignore[method-assign]
        bus.set_torque(range(3), True)
        assert missed
        assert all(servo.torque_enabled for servo in servos)
        bus.close()
