"""The link of a killed emulator was refused as in use when another program's terminal had got the number of its terminal since."""

import os

import pytest

from stribeck.emulator.served_line import PseudoTerminal
from stribeck.errors import OutputError


@pytest.fixture
def foreign():
    """The name of a terminal of another program."""
    ends = os.openpty()
    yield os.ttyname(ends[1])
    for end in ends:
        os.close(end)


def linked(path, target, older):
    """A link that was made some nanoseconds before the present status of its target."""
    path.symlink_to(target)
    made = os.stat(target).st_ctime_ns - older
    os.utime(path, ns=(made, made), follow_symlinks=False)


def test_a_link_to_a_terminal_that_is_younger_is_replaced(tmp_path, foreign):
    linked(tmp_path / "port", foreign, 1_000_000_000)
    terminal = PseudoTerminal(tmp_path / "port")
    assert os.readlink(tmp_path / "port") == terminal.name != foreign
    terminal.close()
    assert not (tmp_path / "port").is_symlink()


@pytest.mark.parametrize("older", [0, -1_000_000_000])
def test_a_link_to_a_terminal_that_is_not_younger_is_refused(tmp_path, foreign, older):
    """Of an emulator that runs: its link is made right after its terminal."""
    linked(tmp_path / "port", foreign, older)
    with pytest.raises(OutputError, match="another emulator may be running"):
        PseudoTerminal(tmp_path / "port")
    assert os.readlink(tmp_path / "port") == foreign


def test_a_link_to_a_serial_port_is_refused_whatever_its_age(tmp_path):
    """A device that was plugged in after its link was made is not for us to unlink."""
    device = tmp_path / "ttyUSB0"
    device.touch()
    linked(tmp_path / "port", device, 1_000_000_000)
    with pytest.raises(OutputError, match="another emulator may be running"):
        PseudoTerminal(tmp_path / "port")
    assert os.readlink(tmp_path / "port") == str(device)
