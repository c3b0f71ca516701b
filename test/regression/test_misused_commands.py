"""What a new user met who misused the commands: tracebacks, or wrong numbers without a warning."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stribeck.cli.inputs import warn_of_seen
from stribeck.cli.main import main
from stribeck.files.folders import shared_directory

SIGNALS = "position: {column: q}\ngoal: {column: g}\ntorque_enable: {constant: 1}\ntime: {column: t}\n"
BENCH = "mass=0.1,length={},arm_mass=0,kp=400,supply_voltage=5,actuator=xl330"
VALUES = {
    "kt": 0.37,
    "R": 3.5,
    "armature": 1.5e-3,
    "q_offset": 0.0,
    "friction_base": 0.02,
    "friction_viscous": 2e-3,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run and a parameter file of a servo."""
    monkeypatch.chdir(tmp_path)
    time = np.arange(0.0, 3.0, 0.01)
    write(time)
    Path("signals.yaml").write_text(SIGNALS)
    Path("p.json").write_text(json.dumps({**VALUES, "model": "m1", "actuator": "xl330"}))
    return tmp_path


def write(time, size=1.0):
    """The run as a table."""
    columns = np.column_stack([time, size * np.sin(2.0 * time - 0.1), size * np.sin(2.0 * time)])
    np.savetxt("run.csv", columns, delimiter=",", header="t,q,g", comments="")


def given(verb, *words, length=0.1):
    """A verb on the run."""
    return main(
        [verb, *words, "--logdir", "run.csv", "--signals", "signals.yaml", "--bench", BENCH.format(length)]
    )


def test_lengths_in_mm_are_told_when_errors_are_computed(folder, capsys):
    """What happened: 1000 mrad without a word."""
    assert given("evaluate", "--params", "p.json", length=100) == 0
    assert "masses in grams, or lengths in mm?" in capsys.readouterr().err


@pytest.mark.ci
def test_friction_above_the_stall_torque_is_told(folder, capsys):
    """What happened: `compensate` wrote the torque limit throughout for friction in mN m."""
    Path("mn.json").write_text(
        json.dumps({**VALUES, "friction_base": 20, "model": "m1", "actuator": "xl330"})
    )
    states = shared_directory("bags") / "xl330_simulated" / "m0.1_l0.1"
    assert main(["compensate", "--states", str(states), "--params", "mn.json"]) == 0
    assert "friction_base 20 N m exceeds the stall torque" in capsys.readouterr().err
    assert given("evaluate", "--params", "p.json") == 0
    assert "stall torque" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_fit_at_rest_is_written(folder, capsys):
    """What happened: a traceback, since the width of its bands is not a number."""
    write(np.arange(0.0, 3.0, 0.01), 0.0)
    assert given("fit", "--model", "m1", "--trials", "50", "--quiet", "--output", "rest.json") == 0
    assert "verdict: unusable" in capsys.readouterr().out
    assert "prediction" not in json.loads(Path("rest.json").read_text())["stribeck"]


def test_an_interrupt_within_the_garbage_collector_is_not_lost():
    """What happened: JAX collects garbage while it is imported, Python ignored Ctrl-C there, and the fit went on."""
    program = (
        "import signal, sys, threading\n"
        "from stribeck.cli import main as entry\n"
        "class Dropped:\n"
        "    def __del__(self): raise KeyboardInterrupt\n"
        "def run(_):\n"
        "    Dropped()\n"
        "    threading.Event().wait(20.0)\n"
        "    return 0\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "entry._parsed_and_run, sys.argv = run, ['stribeck', 'fit']\n"
        "sys.exit(entry.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "stribeck: interrupted\n")


def test_missing_samples_are_told(folder, capsys):
    """A second in the middle."""
    time = np.arange(0.0, 4.0, 0.01)
    write(time[(time < 1.0) | (time > 2.0)])
    words = [
        "import",
        "run.csv",
        "--signals",
        "signals.yaml",
        "--bench",
        BENCH.format(0.1),
        "--output",
        "bags",
    ]
    assert main(words) == 0
    assert "no samples for 1 s after 0.99 s" in capsys.readouterr().err
    assert given("evaluate", "--params", "p.json") == 0
    assert "no samples for 1 s after 0.99 s" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "told"), [("1000", True), ("2", False)])
def test_a_diagram_beyond_all_servos_is_told(folder, capsys, limit, told):
    """What happened: a picture of 1000 N m for a servo of 0.6 N m, without a word."""
    assert main(["diagram", "--params", "p.json", "--max-torque", limit, "--output", "d.png"]) == 0
    assert ("is far above the stall torque" in capsys.readouterr().err) == told


def test_runs_fitted_and_predicted_are_told(folder, capsys):
    """What happened: the error of the fit, again, as that of the validation."""
    (folder / "other").mkdir()
    warn_of_seen([Path("run.csv")], [Path("other")])
    assert capsys.readouterr().err == ""
    warn_of_seen([Path("run.csv")], [folder])
    assert "is both fitted and in --validate" in capsys.readouterr().err
