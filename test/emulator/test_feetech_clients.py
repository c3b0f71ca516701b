"""Programs of others speak to emulated Feetech servos: the SDK of the vendor on virtual time, and lerobot's bus on a terminal."""

import os
import subprocess
from pathlib import Path

import pytest

from driving import emulated, emulator_process
from stribeck.model.bench import Pendulum
from virtual_bus import OnVirtualTime, VirtualBus

scservo_sdk = pytest.importorskip("scservo_sdk", reason="needs feetech-servo-sdk")
LEROBOT = "STRIBECK_LEROBOT"
"""Environment variable: a Python interpreter with lerobot and feetech-servo-sdk."""

LOAD = Pendulum(0.1, 0.1, 0.0)


class VirtualPort(OnVirtualTime, scservo_sdk.PortHandler):
    """The port of scservo_sdk, which wants lists."""

    def readPort(self, length):
        """Up to so many bytes."""
        return list(super().readPort(length))


def opened(bus):
    """The bus as the SDK opens it."""
    port = VirtualPort(bus)
    assert port.openPort()
    assert port.setBaudRate(1_000_000)
    return port


def test_the_sdk_pings_reads_and_moves_sts_servos():
    """Model number, position, torque, goal; and several servos at once by sync write and sync read."""
    with VirtualBus(emulated("sts3215", "sts3215", pendulum=LOAD)) as bus:
        port, handler = opened(bus), scservo_sdk.PacketHandler(0)
        ok = scservo_sdk.COMM_SUCCESS
        assert handler.ping(port, 1) == (777, ok, 0)
        assert handler.read2ByteTxRx(port, 1, 56) == (2048, ok, 0)
        assert handler.write1ByteTxRx(port, 1, 40, 1) == (ok, 0)
        assert handler.write2ByteTxRx(port, 1, 42, 2500) == (ok, 0)
        bus.wait_for(lambda: handler.read2ByteTxRx(port, 1, 56)[0] > 2350, "the servo moves")

        write = scservo_sdk.GroupSyncWrite(port, handler, 42, 2)
        for servo, goal in ((1, 2100), (2, 2200)):
            write.addParam(servo, list(goal.to_bytes(2, "little")))
        assert write.txPacket() == ok
        read = scservo_sdk.GroupSyncRead(port, handler, 42, 2)
        for servo in (1, 2):
            read.addParam(servo)
        assert read.txRxPacket() == ok
        assert [read.getData(servo, 42, 2) for servo in (1, 2)] == [2100, 2200]


def test_the_sdk_reads_and_moves_scs_servos():
    """The high byte comes first, and there is no sync read."""
    with VirtualBus(emulated("scs0009", pendulum=LOAD)) as bus:
        port, handler = opened(bus), scservo_sdk.PacketHandler(1)
        ok = scservo_sdk.COMM_SUCCESS
        assert handler.ping(port, 1) == (1284, ok, 0)
        assert handler.read2ByteTxRx(port, 1, 56) == (512, ok, 0)
        assert handler.write1ByteTxRx(port, 1, 40, 1) == (ok, 0)
        assert handler.write2ByteTxRx(port, 1, 42, 600) == (ok, 0)
        bus.wait_for(lambda: handler.read2ByteTxRx(port, 1, 56)[0] > 570, "the servo moves")
        read = scservo_sdk.GroupSyncRead(port, handler, 42, 2)
        read.addParam(1)
        assert read.txRxPacket() != ok


CLIENT = """
import sys
from lerobot.motors import Motor, MotorNormMode
from lerobot.motors.feetech import FeetechMotorsBus, OperatingMode

names = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
bus = FeetechMotorsBus(
    sys.argv[1], {name: Motor(i + 1, "sts3215", MotorNormMode.DEGREES) for i, name in enumerate(names)}
)
bus.connect()
assert bus.broadcast_ping() == {i + 1: 777 for i in range(6)}
bus.disable_torque()
bus.configure_motors()
for name in names:
    bus.write("Operating_Mode", name, OperatingMode.POSITION.value)
    bus.write("P_Coefficient", name, 16)
    bus.write("I_Coefficient", name, 0)
    bus.write("D_Coefficient", name, 0)
calibration = bus.read_calibration()
assert calibration["gripper"].range_max == 4095 and calibration["gripper"].homing_offset == 0
bus.write_calibration(calibration)
bus.enable_torque()
goals = {name: 2048 + 60 * (i + 1) for i, name in enumerate(names)}
bus.sync_write("Goal_Position", goals, normalize=False)
for _ in range(400):
    there = bus.sync_read("Present_Position", normalize=False)
    if all(abs(there[name] - goals[name]) < 25 for name in names):
        break
else:
    raise SystemExit(f"never there: {there}")
assert bus.sync_read("Goal_Position", normalize=False) == goals
bus.disconnect()
print("moved")
"""


@pytest.mark.real_time
@pytest.mark.skipif(LEROBOT not in os.environ, reason=f"${LEROBOT} names no interpreter with lerobot")
def test_lerobot_drives_six_servos(tmp_path: Path) -> None:
    """``FeetechMotorsBus`` connects, configures, calibrates and moves an emulated SO-101's servos."""
    servos = ("--servo", "sts3215", "--id", "1", "2", "3", "4", "5", "6")
    with emulator_process(tmp_path / "port", *servos) as port:
        command = [os.environ[LEROBOT], "-c", CLIENT, port]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
    assert ended.stdout.endswith("moved\n"), ended.stderr
