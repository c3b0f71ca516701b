"""``stribeck emulate`` as a program: its link, its end, its options."""

import math
import signal
import subprocess
import sys

import pytest

from emulator_client import ENOUGH, client_of
from stribeck.emulator.protocol import Instruction
from stribeck.model.bench import Pendulum


def emulate(*options):
    return subprocess.Popen(
        [sys.executable, "-m", "stribeck", "emulate", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program_ends_with_0_when_told_and_cleans_up(tmp_path, number):
    """It says where the servos are, and takes the link away at the end."""
    link = tmp_path / "port"
    options = [
        "--link",
        link,
        "--id",
        "1",
        "2",
        "--servo",
        "xl330",
        "mx106",
        "--bench",
        "mass=0.1,length=0.1",
    ]
    with emulate(*options, "--fault", "lost:p=0") as program:
        assert "XL330-M288, ID 1" in program.stdout.readline()
        assert f"MX-106, ID 2, protocol 1: {link}" in program.stdout.readline()
        with client_of(link) as client:
            client.ask(Instruction.PING)
        program.send_signal(number)
        assert program.wait(ENOUGH) == 0
        assert program.stderr.read() == ""
    assert not link.is_symlink()


@pytest.mark.ci
@pytest.mark.real_time
def test_a_killed_program_leaves_a_link_that_the_next_one_replaces(tmp_path):
    """SIGKILL leaves no time to clean up."""
    link = tmp_path / "port"
    with emulate("--link", link) as program:
        program.stdout.readline()
        program.kill()
    assert link.is_symlink()
    with emulate("--link", link) as program:
        program.stdout.readline()
        with client_of(link) as client:
            client.ask(Instruction.PING)
        program.terminate()
        assert program.wait(ENOUGH) == 0
    assert not link.is_symlink()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--servo", "xm430"], "parameter file"),
        (["--bench", "mass=1"], "mass=KG,length=M"),
        (["--bench", "mass=-1,length=1"], "negative"),
        (["--bench", "mass=1,length=x"], "'x'"),
        (
            ["--id", "1", "2", "3", "--bench", "mass=1,length=1", "--bench", "mass=1,length=1"],
            "one for each of 3",
        ),
        (["--id", "1", "1"], "different IDs"),
        (["--id", "254"], "id cannot be 254"),
        (["--fault", "hunger"], "unknown fault"),
        (["--register", "led=x"], "'x'"),
        (["--baud", "1234"], "1234"),
        (["--params", "nowhere.json"], "nowhere.json"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, capsys, options, message):
    """Exit code 1, one line on stderr, no port."""
    from stribeck.cli.main import main

    link = tmp_path / "port"
    assert main(["emulate", "--link", str(link), *options]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not link.is_symlink()


def test_parameters_loads_and_rates_of_the_options_reach_the_servos(tmp_path):
    """One parameter file for all, a load for each, mounting offset, voltage, noise, registers."""
    from stribeck.cli.emulate import servos_of
    from stribeck.cli.parser import parse

    file = tmp_path / "free.json"
    file.write_text(
        '{"model": "m1", "actuator": "xl330", "kt": 0.4, "R": 3.0, "armature": 0.001, '
        '"friction_base": 0.0, "friction_viscous": 0.0}'
    )
    text = (
        f"emulate --link x --id 4 5 --params {file} --bench mass=0.1,length=0.2 --bench "
        "mass=0.2,length=0.1,arm_mass=0.03 --position-offset 0.05 --voltage 5.5 --noise 0 --temperature 40 "
        "--register return_delay_time=0 --baud 2000000 --dt 0.002 --supply-resistance 0.2"
    )
    one, two = servos_of(parse(text.split())[1])
    assert (one.id, two.id) == (4, 5)
    assert one.joint.pendulum == Pendulum(0.1, 0.2, 0.0)
    assert two.joint.pendulum == Pendulum(0.2, 0.1, 0.03)
    assert two.joint.values["friction_base"] == 0.0
    assert two.state.position == -0.05
    assert (two.open_voltage, two.temperature, two.noise, two.baud) == (5.5, 40.0, 0.0, 2_000_000)
    assert (two.joint.dt, two.joint.supply_resistance) == (0.002, 0.2)
    assert two.memory.numbers["return_delay_time"] == 0
    assert math.isclose(one.joint.voltage, 5.5)


@pytest.mark.real_time
def test_nodes_are_waited_for_in_simulated_time_only(tmp_path):
    """Without --simulated nobody would wait: the program says so instead of ignoring it."""
    program = emulate("--link", str(tmp_path / "port"), "--nodes", "servo")
    assert program.communicate(timeout=60)[1].strip().endswith("add --simulated")
    assert program.returncode == 1
