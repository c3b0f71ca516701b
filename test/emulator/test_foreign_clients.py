"""Programs of others speak to the emulated servos: ROBOTIS' own library, on virtual time, and one in Rust."""

import math

import pytest
from dynamixel_sdk import (
    COMM_SUCCESS,
    GroupBulkRead,
    GroupSyncRead,
    GroupSyncWrite,
    PacketHandler,
    PortHandler,
)

from driving import wait_for
from emulated_bus import EmulatedBus
from stribeck.emulator.device import EmulatedServo
from stribeck.model.bench import Pendulum
from virtual_bus import OnVirtualTime, VirtualBus

LOAD = Pendulum(0.1, 0.1, 0.0)
COUNT = 2 * math.pi / 4096


WAIT = 2.0
"""How long the client in Rust waits for an answer [s]; for one that never comes, too."""


def servos():
    """Two XL330 and an MX-106."""
    xl330 = [EmulatedServo("xl330", None, LOAD, servo_id=i, noise=0.0) for i in (1, 2)]
    return [*xl330, EmulatedServo("mx106", None, LOAD, servo_id=7, noise=0.0)]


class VirtualPort(OnVirtualTime, PortHandler):
    """The port of dynamixel_sdk."""


@pytest.fixture
def bus():
    """The servos on virtual time."""
    with VirtualBus(servos()) as line:
        yield line


@pytest.fixture
def port(bus):
    """The bus as dynamixel_sdk opens it."""
    opened = VirtualPort(bus)
    assert opened.openPort()
    assert opened.setBaudRate(1_000_000)
    yield opened
    opened.closePort()


@pytest.fixture
def terminal():
    """The servos on a pseudo-terminal."""
    with EmulatedBus(servos()) as running:
        yield running


def test_dynamixel_sdk_pings_reads_and_moves_by_protocol_2(bus, port):
    """An XL330: model number, position, torque, goal; and all of them at once."""
    handler = PacketHandler(2.0)
    assert handler.ping(port, 1) == (1200, COMM_SUCCESS, 0)
    assert handler.read4ByteTxRx(port, 1, 132) == (2048, COMM_SUCCESS, 0)
    assert handler.write1ByteTxRx(port, 1, 64, 1) == (COMM_SUCCESS, 0)
    assert handler.write4ByteTxRx(port, 1, 116, 2500) == (COMM_SUCCESS, 0)
    bus.wait_for(lambda: handler.read4ByteTxRx(port, 1, 132)[0] > 2350, "the servo moves")
    assert bus.servo(1).state.position > 300 * COUNT

    write = GroupSyncWrite(port, handler, 116, 4)
    read = GroupSyncRead(port, handler, 116, 4)
    for servo, goal in ((1, 2100), (2, 2200)):
        write.addParam(servo, list(goal.to_bytes(4, "little")))
        read.addParam(servo)
    assert write.txPacket() == COMM_SUCCESS
    assert read.txRxPacket() == COMM_SUCCESS
    assert [read.getData(servo, 116, 4) for servo in (1, 2)] == [2100, 2200]
    if hasattr(read, "fastSyncRead"):  # from dynamixel_sdk 4 on
        read.clearParam()
        for servo in (2, 1):
            read.addParam(servo)
        assert read.fastSyncRead() == COMM_SUCCESS
        assert [read.getData(servo, 116, 4) for servo in (1, 2)] == [2100, 2200]


def test_dynamixel_sdk_reads_different_registers_at_once(bus, port):
    """A bulk read of each protocol."""
    handler = PacketHandler(2.0)
    read = GroupBulkRead(port, handler)
    read.addParam(1, 144, 2)
    read.addParam(2, 132, 4)
    assert read.txRxPacket() == COMM_SUCCESS
    assert (read.getData(1, 144, 2), read.getData(2, 132, 4)) == (50, 2048)
    # The library's own group for protocol 1 calls this with one argument too many.
    handler = PacketHandler(1.0)
    assert handler.bulkReadTx(port, [8, 7, 36], 3) == COMM_SUCCESS
    data, result, error = handler.readRx(port, 7, 8)
    assert (result, error) == (COMM_SUCCESS, 0)
    assert (data[0] + 256 * data[1], data[6]) == (2048, 120)


def test_dynamixel_sdk_finds_who_is_there(bus, port):
    """A broadcast ping of protocol 2."""
    found, result = PacketHandler(2.0).broadcastPing(port)
    assert result == COMM_SUCCESS
    assert {servo: model for servo, (model, _) in found.items()} == {1: 1200, 2: 1200}


def test_dynamixel_sdk_pings_reads_and_moves_by_protocol_1(bus, port):
    """An MX-106: model number, position, torque, goal."""
    handler = PacketHandler(1.0)
    assert handler.ping(port, 7) == (320, COMM_SUCCESS, 0)
    assert handler.read2ByteTxRx(port, 7, 36) == (2048, COMM_SUCCESS, 0)
    assert handler.write1ByteTxRx(port, 7, 24, 1) == (COMM_SUCCESS, 0)
    assert handler.write2ByteTxRx(port, 7, 30, 2500) == (COMM_SUCCESS, 0)
    bus.wait_for(lambda: handler.read2ByteTxRx(port, 7, 36)[0] > 2450, "the servo moves")
    assert bus.servo(7).state.position > 400 * COUNT


def test_dynamixel_sdk_sees_hardware_errors(bus, port):
    """The alert of protocol 2 and the bits of protocol 1."""
    bus.fail(1, "overload")
    bus.fail(7, "overheating")
    assert PacketHandler(2.0).read1ByteTxRx(port, 1, 70) == (0x20, COMM_SUCCESS, 0x80)
    assert PacketHandler(1.0).read1ByteTxRx(port, 7, 24) == (0, COMM_SUCCESS, 0x04)


@pytest.mark.slow
@pytest.mark.real_time
def test_rustypot_pings_reads_and_moves_by_protocol_2(terminal):
    """An XL330 in radians, alone and together with another."""
    rustypot = pytest.importorskip("rustypot", reason="rustypot is not installed: pip install '.[test]'")
    controller = rustypot.Xl330PyController(terminal.path, 1_000_000, WAIT)
    try:
        assert controller.ping(1)
        assert not controller.ping(3)
        assert controller.read_model_number(1) == [1200]
        assert controller.sync_read_present_position([1, 2]) == pytest.approx([0.0, 0.0], abs=1e-9)
        controller.write_torque_enable(1, True)
        controller.sync_write_goal_position([1, 2], [0.5, 0.25])
        wait_for(lambda: controller.read_present_position(1)[0] > 0.4, "the servo moves")
        assert terminal.servo(1).state.position > 0.4
        assert terminal.servo(2).state.position == 0.0
    finally:
        controller.close()


@pytest.mark.real_time
def test_rustypot_pings_reads_and_moves_by_protocol_1(terminal):
    """An MX-106 in radians."""
    rustypot = pytest.importorskip("rustypot", reason="rustypot is not installed: pip install '.[test]'")
    controller = rustypot.MxPyController(terminal.path, 1_000_000, WAIT)
    try:
        assert controller.ping(7)
        assert controller.read_model_number(7) == [320]
        assert controller.read_present_position(7) == pytest.approx([0.0], abs=1e-9)
        controller.write_torque_enable(7, True)
        controller.write_goal_position(7, 0.5)
        wait_for(lambda: controller.read_present_position(7)[0] > 0.45, "the servo moves")
        assert terminal.servo(7).state.position > 0.45
    finally:
        controller.close()
