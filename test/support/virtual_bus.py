"""Emulated servos on virtual time: the real driver and the real protocol, without terminals and threads."""

from collections.abc import Callable
from typing import Any

from driving import BAUD, expected
from stribeck.emulator.simulated import SimulatedBus
from stribeck.emulator.simulated import SimulatedLine as VirtualLine
from stribeck.servo.bus import Bus
from stribeck.servo.config import DriverConfig
from stribeck.servo.driver import Driver
from stribeck.servo.port import Port
from stribeck.servo.record import SessionRecorder
from stribeck.session.config import SessionConfig

NAME = "virtual"


class VirtualBus(SimulatedBus):
    """Servos on a line whose time is a virtual clock; used as a context like the real emulated bus."""

    path = NAME

    def __enter__(self) -> "VirtualBus":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def port(self, baud_rate: int) -> Port:
        """A port on this line, on its clock."""
        return Port(NAME, baud_rate, lambda name, rate: VirtualLine(self, rate), self.clock)

    def bus(self, *models: str, mode: str = "position", baud: int = BAUD) -> Bus:
        """A bus of servos of :func:`driving.emulated` on this line, not yet connected."""
        return Bus(self.port(baud), expected(*models, mode=mode))

    def driver(self, config: DriverConfig) -> Driver:
        """A driver on this line."""
        return Driver(config, self.port(config.baud_rate))

    def record(self, config: DriverConfig, session: SessionConfig) -> None:
        """Play a session as ``stribeck record`` does; its bags are in the folder that it names.

        :raises AssertionError: if it does not finish.
        """
        driver = self.driver(config)
        driver.connect()
        recording = SessionRecorder(session, driver, tell=lambda _: None, show=lambda _: None)
        recording.look()
        outcome = recording.run()
        driver.close()
        assert outcome.end == "finished", outcome.reason

    def wait_for(self, condition: Callable[[], Any], what: str, timeout: float = 5.0) -> None:
        """Let time go on until something is so.

        :raises AssertionError: if it is not so in time.
        """
        until = self.clock.now() + timeout
        while not condition():
            assert self.clock.now() < until, f"{what}: not within {timeout} s"
            self.clock.sleep(0.001)


class OnVirtualTime:
    """A port of dynamixel_sdk, or of a library with its interface, on a line whose time is virtual: its time-outs do not depend on the machine."""

    def __init__(self, bus):
        super().__init__(bus.path)
        self._bus, self._come = bus, bytearray()

    def setupPort(self, baud):
        """Open it."""
        self.ser, self.is_open = VirtualLine(self._bus, baud), True
        self.tx_time_per_byte = 10_000.0 / baud
        return True

    def clearPort(self):
        """Forget what has come."""
        self.ser.discard()
        self._come.clear()

    def getBytesAvailable(self):
        """How many bytes have come."""
        self._come += self.ser.read(0.0)
        return len(self._come)

    def readPort(self, length):
        """Up to so many bytes; without enough of them 0.1 ms pass."""
        if len(self._come) < length:
            self._come += self.ser.read(1e-4)
        found = bytes(self._come[:length])
        del self._come[:length]
        return found

    def writePort(self, packet):
        """Send bytes."""
        self.ser.write(bytes(packet))
        return len(packet)

    def getCurrentTime(self):
        """Virtual time [ms]."""
        return 1e3 * self._bus.clock.now()
