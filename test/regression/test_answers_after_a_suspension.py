"""After a suspension the emulator answered every request that had piled up, so that each answer met a later question."""

import os
import signal
import subprocess
import sys
import time

import pytest

from emulator_client import ENOUGH, TerminalLine
from stribeck.emulator.protocol import Instruction, Packet, PacketParser, encode


@pytest.mark.real_time
def test_only_the_last_of_the_requests_that_piled_up_is_answered(tmp_path):
    """Three reads of different registers during a suspension; one answer comes, to the last of them."""
    link = tmp_path / "port"
    command = [sys.executable, "-m", "stribeck", "emulate", "--link", str(link)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout.readline()
            os.kill(program.pid, signal.SIGSTOP)
            line = TerminalLine(link)
            for address, length in ((144, 2), (132, 4), (0, 2)):
                where = address.to_bytes(2, "little") + length.to_bytes(2, "little")
                line.write(encode(2.0, Packet(1, Instruction.READ, where)))
            os.kill(program.pid, signal.SIGCONT)
            parser, found, end = PacketParser(2.0), [], time.monotonic() + ENOUGH
            while time.monotonic() < end and not any(p.parameters[1:] == b"\xb0\x04" for p in found):
                found += parser.feed(line.read(0.05))
            line.close()
        finally:
            os.kill(program.pid, signal.SIGCONT)
            program.terminate()
    assert [packet.parameters for packet in found] == [b"\x00\xb0\x04"]
