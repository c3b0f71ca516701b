"""A client of emulated servos: packets over a terminal, or over a virtual line."""

import os
import select
import termios
import tty

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.protocol import Instruction, Packet, PacketParser, encode
from stribeck.model.bench import Pendulum
from stribeck.session.timing import SYSTEM_CLOCK
from virtual_bus import VirtualBus, VirtualLine

LOAD = Pendulum(0.1, 0.1, 0.0)
ENOUGH = 60.0
"""Longest wait for what should happen at once [s]."""


class TerminalLine:
    """A pseudo-terminal as another program opens it."""

    def __init__(self, path, rate=1_000_000):
        self.port = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.port)
        settings = termios.tcgetattr(self.port)
        settings[4] = settings[5] = {1_000_000: termios.B1000000, 57_600: termios.B57600}[rate]
        termios.tcsetattr(self.port, termios.TCSANOW, settings)

    def write(self, data):
        os.write(self.port, data)

    def read(self, wait):
        return os.read(self.port, 4096) if select.select([self.port], [], [], wait)[0] else b""

    def close(self):
        os.close(self.port)


class Client:
    """A program at the other end of a line: sends packets, collects answers."""

    def __init__(self, line, protocol=2.0, clock=SYSTEM_CLOCK):
        self.line, self.protocol, self.clock = line, protocol, clock
        self.parser = PacketParser(protocol)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.line.close()

    def send(self, *packets):
        for packet in packets:
            self.line.write(encode(self.protocol, packet))

    def answers(self, count=1, wait=ENOUGH):
        """As many packets as asked, or those that came in time."""
        found, end = [], self.clock.now() + wait
        while len(found) < count and self.clock.now() < end:
            found += self.parser.feed(self.line.read(min(0.02, end - self.clock.now())))
        return found

    def until(self, condition, what, wait=ENOUGH):
        """Wait for a condition."""
        end = self.clock.now() + wait
        while not (found := condition()):
            assert self.clock.now() < end, f"{what}: not within {wait:g} s"
            self.clock.sleep(0.002)
        return found

    def ask(self, instruction, servo=1, parameters=b"", count=1):
        self.send(Packet(servo, instruction, bytes(parameters)))
        found = self.answers(count)
        assert len(found) == count, f"{len(found)} answers to {instruction!r}, expected {count}"
        return found

    def read(self, address, size, servo=1):
        """The number at an address, and the error."""
        if self.protocol == 1.0:
            answer = self.ask(Instruction.READ, servo, (address, size))[0]
            return int.from_bytes(answer.parameters, "little"), answer.instruction
        where = address.to_bytes(2, "little") + size.to_bytes(2, "little")
        answer = self.ask(Instruction.READ, servo, where)[0]
        return int.from_bytes(answer.parameters[1:], "little"), answer.parameters[0]

    def write(self, address, size, number, servo=1):
        """Write a number; the error."""
        where = bytes((address,)) if self.protocol == 1.0 else address.to_bytes(2, "little")
        answer = self.ask(Instruction.WRITE, servo, where + number.to_bytes(size, "little"))[0]
        return answer.instruction if self.protocol == 1.0 else answer.parameters[0]

    def says_nothing(self, packet, wait=0.15):
        self.send(packet)
        return self.answers(1, wait) == []


def client_of(bus, protocol=2.0, rate=1_000_000):
    """A program on a bus in virtual time, or on a terminal by its path."""
    if isinstance(bus, VirtualBus):
        return Client(VirtualLine(bus, rate), protocol, bus.clock)
    return Client(TerminalLine(bus, rate), protocol)


def servos(*ids, model="xl330", **options):
    return [EmulatedServo(model, None, LOAD, servo_id=i, **{"noise": 0.0, **options}) for i in ids]
