"""Emulated servos without noise, and access to their registers."""

from helpers import FRICTIONLESS
from stribeck.emulator.device import EmulatedServo
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum
from stribeck.model.joint import Drive
from stribeck.model.law import law_named

LOAD = Pendulum(0.1, 0.1, 0.02)


def servo(model="xl330", load=LOAD, **options):
    """A servo without noise and sag, at time 0."""
    made = EmulatedServo(model, None, load, **{"noise": 0.0, "supply_resistance": 0.0, **options})
    made.begin(0.0)
    return made


def frictionless(model="xl330", load=LOAD, **options):
    """A servo that nothing slows down but its motor."""
    parameters = Drive(load_actuator(model), law_named("m1"), {**FRICTIONLESS, "armature": 1e-3})
    made = EmulatedServo(model, parameters, load, noise=0.0, supply_resistance=0.0, **options)
    made.begin(0.0)
    return made


def write(device, name, number):
    """Write counts to a register; the error byte."""
    register = device.model.register(name)
    return device.write(register.address, register.raw(number).to_bytes(register.size, "little"))


def read(device, name):
    """The counts of a register."""
    register = device.model.register(name)
    error, data = device.read(register.address, register.size)
    assert not error & 0x7F
    return register.number(int.from_bytes(data, "little"))


def put(device, **registers):
    """Write registers that are taken."""
    for name, number in registers.items():
        assert write(device, name, number) == 0, name
