"""``stribeck record`` as a user types it, against ``stribeck emulate``: what it says, and how it ends."""

import os
import pty
import signal
import subprocess
import sys
import termios
import time

import numpy as np
import pytest
import yaml

from helpers import REPOSITORY
from stribeck.recordings.bags.bag import read_bag

pytestmark = pytest.mark.real_time

ENOUGH = 200.0
"""Longest wait [s]."""


def command(*arguments):
    """Start a verb of ours."""
    return subprocess.Popen(
        [sys.executable, "-m", "stribeck", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )


def wait_for(condition, what):
    """Until something is so."""
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {ENOUGH:g} s"
        time.sleep(0.02)


@pytest.fixture
def emulator(tmp_path):
    """Starts emulators in simulated time with options, and ends them."""
    running = []

    def start(*options):
        link = tmp_path / "servo"
        bench = ("--bench", "mass=0.1,length=0.1,arm_mass=0.02")
        running.append(
            command("emulate", "--servo", "xl330", *bench, "--link", link, "--simulated", *options)
        )
        wait_for(link.exists, "the emulated servo")
        return link

    yield start
    for process in running:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=ENOUGH)


def config_file(folder, port, **plays):
    """The example's file with other plays."""
    content = yaml.safe_load((REPOSITORY / "config" / "record.yaml").read_text())
    content["port"] = str(port)
    content["output"] = str(folder / "bags")
    content["plays"] = {"trajectories": ["up_and_down"], "gains": [400], **plays}
    content["rate"] = 100
    path = folder / "record.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def long_play(folder):
    """A file with sines of 0.17 and 0.33 Hz for two minutes; in simulated time they take ten seconds or more."""
    path = folder / "sine.yaml"
    content = {
        "schema": 1,
        "robot": "bench",
        "joints": ["joint"],
        "duration": 120.0,
        "sine": [[0.0] * 19 + [-0.6] + [0.0] * 19 + [0.6]],
        "cosine": [[0.0] * 40],
        "offset": [0.0],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def wait_for_a_while(bags):
    """Until the first bag holds some seconds, of about 45 kB each."""
    wait_for(lambda: sum(file.stat().st_size for file in bags.glob("*/*.mcap")) > 150_000, "seconds in a bag")


@pytest.mark.slow
def test_a_run_is_recorded_and_its_bag_named_on_stdout(tmp_path, emulator):
    """Exit code 0; with --quiet stdout is the bags alone; the run is what the trajectory says."""
    path = config_file(tmp_path, emulator())
    process = command("record", path, "--output", tmp_path / "elsewhere", "--quiet")
    out, err = process.communicate(timeout=ENOUGH)
    assert (process.returncode, err) == (0, "")
    (bag,) = out.split()
    assert bag.startswith(str(tmp_path / "elsewhere" / "up_and_down_kp400_"))
    (log,) = read_bag(tmp_path / "elsewhere" / bag.rpartition("/")[2])
    assert log.position.time[-1] - log.position.time[0] == pytest.approx(6.0, abs=0.2)
    assert 1.2 < np.max(log.position.value) < 1.6


@pytest.mark.ci
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_ctrl_c_or_a_closed_terminal_ends_softly_and_leaves_a_readable_bag(tmp_path, emulator, number):
    """Exit code 130; it said what is there before anything moved; the bag holds the run so far."""
    path = config_file(tmp_path, emulator(), trajectories=[long_play(tmp_path)])
    process = command("record", path)
    bags = tmp_path / "bags"
    wait_for_a_while(bags)
    process.send_signal(number)
    out, err = process.communicate(timeout=ENOUGH)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "stribeck: interrupted by the user"
    assert "cut short" in err
    assert "servo 1 (Dynamixel XL330-M288)" in out
    assert "Traceback" not in err
    (bag,) = bags.iterdir()
    assert str(bag) in out
    (log,) = read_bag(bag)
    assert 1.0 < log.position.time[-1] - log.position.time[0] < 119.0


@pytest.mark.slow
@pytest.mark.parametrize("key", [b" ", b"q", b"\x1b"])
def test_a_key_is_an_emergency_stop(tmp_path, emulator, key):
    """On a terminal, which is told so before anything moves: torque off at once, exit code 130, the bag is readable."""
    path = config_file(tmp_path, emulator(), trajectories=[long_play(tmp_path)])
    user, program = pty.openpty()
    words = ["setsid", "--ctty", sys.executable, "-m", "stribeck", "record", str(path)]
    process = subprocess.Popen(
        words, stdin=program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    bags = tmp_path / "bags"
    wait_for_a_while(bags)
    before = termios.tcgetattr(program)
    os.write(user, key)
    out, err = process.communicate(timeout=ENOUGH)
    assert process.returncode == 130, err
    assert "space, q or Esc: emergency stop, torque off at once" in out
    assert err.splitlines()[-1] == "stribeck: emergency stop by a key"
    assert not before[3] & termios.ICANON
    assert termios.tcgetattr(program)[3] & termios.ICANON
    for end in (user, program):
        os.close(end)
    (bag,) = bags.iterdir()
    (log,) = read_bag(bag)
    assert 1.0 < log.position.time[-1] - log.position.time[0] < 119.0


@pytest.mark.slow
def test_a_supply_above_the_rating_is_refused_unless_allowed(tmp_path, emulator):
    """At 6.5 V: a warning and a refusal in one line each, and no bag; with the option only the warning."""
    path = config_file(tmp_path, emulator("--voltage", 6.5))
    process = command("record", path)
    _, err = process.communicate(timeout=ENOUGH)
    assert process.returncode == 1
    last = err.splitlines()[-1]
    assert last.startswith("stribeck: ")
    assert "6.5 V" in last
    assert "--allow-overvoltage" in last
    assert not (tmp_path / "bags").exists()
    process = command("record", path, "--allow-overvoltage")
    bags = tmp_path / "bags"
    wait_for(lambda: bags.is_dir() and list(bags.iterdir()), "a bag")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=ENOUGH)
    assert process.returncode == 130
    assert "warning" in err
    assert "6.5 V" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--port", "/dev/no_such_port"], 1, "/dev/no_such_port"),
        (["--port", "/dev/null"], 1, "/dev/null at 1000000 bit/s: Inappropriate ioctl"),
        (["--rate", "5000"], 1, "too slow for 5000 Hz"),
        (["--rate", "fast"], 1, "argument --rate: expected a number, found 'fast'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path, arguments, code, said):
    """No port, a rate that the bus cannot carry, no file, a word for a number: exit code 1."""
    path = config_file(tmp_path, "/dev/no_such_port")
    process = command("record", path, *arguments)
    _, err = process.communicate(timeout=ENOUGH)
    assert process.returncode == code
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1


def test_a_session_that_is_missing_is_named():
    process = command("record", "missing.yaml")
    _, err = process.communicate(timeout=ENOUGH)
    assert process.returncode == 1
    assert err.splitlines() == ["stribeck: missing.yaml: no such file"]


@pytest.mark.slow
def test_servos_without_a_watchdog_are_named(tmp_path):
    """An MX-106 by protocol 1 stays energised when the program dies; the user is told before it moves."""
    link = tmp_path / "servo"
    servo = command("emulate", "--servo", "mx106", "--bench", "mass=1,length=0.1", "--link", link)
    try:
        wait_for(link.exists, "the emulated servo")
        path = config_file(tmp_path, link, gains=[32])
        content = yaml.safe_load(path.read_text())
        content["joints"]["joint"]["model"] = "mx106"
        content |= {
            "command_timeout": 2.0,
            "silence_timeout": 2.0,
            "watchdog": 2.0,
        }  # a busy machine stands still
        path.write_text(yaml.safe_dump(content))
        process = command("record", path)
        bags = tmp_path / "bags"
        wait_for(lambda: bags.is_dir() and list(bags.iterdir()), "a bag")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=ENOUGH)
    finally:
        servo.send_signal(signal.SIGINT)
        servo.communicate(timeout=ENOUGH)
    assert process.returncode == 130, err
    assert "stays energised if this program ends unexpectedly" in err
    assert "MX-106" in err
