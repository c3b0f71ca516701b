"""``stribeck fit-all``: what is there after a run, after the next one, and when things go wrong."""

import csv
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from driving import wait_for
from helpers import REPOSITORY
from stribeck.cli.identify.fleet.run import fit_options
from stribeck.cli.identify.servo.options import FLEET_OPTIONS, IdentifyServoOptions
from stribeck.cli.main import main
from stribeck.cli.parser import parse
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.model.law import law_named
from stribeck.model.log import Setup
from stribeck.model.trajectories import trajectory_named
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder, record

FLEET = """
output: fits
defaults: {laws: [m1, m3], trials: 300, integrator: paper, dt: 0.01, validation_kp: 32}
servos:
  - {name: knee, logdir: [bags/knee, bags/more]}
  - {name: hip, logdir: bags/hip}
"""
SERVO = load_actuator("mx106")


def bag(folder, mass, kp, wear=1.0):
    """Two runs of a joint with Coulomb and viscous friction."""
    values = {"q_offset": 0.0, **SERVO.published["m1"]}
    values["friction_base"] *= wear
    setup = Setup(mass, 0.15, 0.05, 12.0, kp)
    plays = [(setup, trajectory_named(name)) for name in ("sin_sin", "lift_and_drop")]
    encoder = Encoder(SERVO.resolution, noise=SERVO.resolution)
    write_bag(
        folder / f"m{mass}_kp{kp}",
        record(SERVO, law_named("m1"), values, plays, encoder, np.random.default_rng(0)),
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Bags of two servos of a kind; one bag of the first is cut off."""
    folder = tmp_path_factory.mktemp("fleet")
    for kp in (8.0, 32.0):
        bag(folder / "bags" / "knee", 1.0, kp)
        bag(folder / "bags" / "hip", 1.0, kp, wear=2.0)
    (folder / "bags" / "more").mkdir()
    whole = next((folder / "bags" / "knee").glob("*/*.mcap")).read_bytes()
    (folder / "bags" / "more" / "cut.mcap").write_bytes(whole[:5000])
    return folder


@pytest.fixture(scope="module")
def first(recorded):
    """The fleet after its first run, and the exit code."""
    (recorded / "fleet.yaml").write_text(FLEET)
    return recorded, main(["fit-all", str(recorded / "fleet.yaml"), "--workers", "2", "--quiet"])


def files(folder):
    """When each parameter file was written."""
    return {f"{p.parent.name} {p.stem}": p.stat().st_mtime_ns for p in (folder / "fits").glob("*/*.json")}


@pytest.mark.slow
def test_every_fit_is_saved_and_a_bag_that_cannot_be_read_is_named(first):
    """Exit code 1 for the bag, with everything else there: friction as simulated, errors in both tables."""
    folder, code = first
    assert code == 1
    summary = json.loads((folder / "fits" / "fleet.json").read_text())
    assert summary["complete"] is True
    assert [(fit["servo"], fit["law"], fit["failure"]) for fit in summary["fits"]] == [
        (servo, law, "") for servo in ("knee", "hip") for law in ("m1", "m3")
    ]
    assert list(summary["left_out"]) == ["knee"]
    assert "cut.mcap" in summary["left_out"]["knee"][0]
    assert all(0 < fit["train"] < 0.02 and 0 < fit["validation"] < 0.02 for fit in summary["fits"])
    with (folder / "fits" / "fleet.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [float(row["train"]) for row in rows] == [fit["train"] for fit in summary["fits"]]
    for servo, wear in (("knee", 1.0), ("hip", 2.0)):
        found = read_drive(folder / "fits" / servo / "m1.json")
        truth = wear * SERVO.published["m1"]["friction_base"]
        assert found.values["friction_base"] == pytest.approx(truth, rel=0.1)
        assert len(found.provenance.runs.train) == 2


def test_the_next_run_does_what_is_missing_or_has_changed(first, tmp_path, capsys):
    """Nothing; then a file that is gone and laws whose options changed; then a servo with another bag."""
    folder = tmp_path / "moved"
    shutil.copytree(first[0], folder)
    fleet = folder / "fleet.yaml"
    command = ["fit-all", str(fleet), "--workers", "2", "--quiet"]
    before = files(folder)
    assert main(command) == 1  # the bag is still cut off
    out = capsys.readouterr().out
    assert "4 of 4 fits exist already and are up to date" in out
    assert "cut.mcap" in out
    assert files(folder) == before
    (folder / "fits" / "hip" / "m3.json").unlink()
    fleet.write_text(FLEET.replace("{name: knee,", "{name: knee, laws: m1, trials: 200,"))
    main(command)
    after = files(folder)
    assert {name for name in after if after[name] != before.get(name)} == {"knee m1", "hip m3"}
    (folder / "bags" / "more" / "cut.mcap").unlink()
    bag(folder / "bags" / "more", 1.2, 32.0)
    assert main(command) == 0
    last = files(folder)
    assert {name for name in last if last[name] != after[name]} == {"knee m1"}


def test_a_servo_without_recordings_fails_alone(first, tmp_path, capsys):
    """What the others have stays; the reason stands once on stderr and once in the summary."""
    folder = tmp_path / "fleet"
    shutil.copytree(first[0], folder)
    (folder / "fleet.yaml").write_text(FLEET + "  - {name: spare, logdir: bags/more}\n")
    assert main(["identify", "fleet", str(folder / "fleet.yaml"), "--quiet"]) == 1
    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert len(lines) == 1
    for part in ("warning: spare: no recording can be used", "cut.mcap"):
        assert part in lines[0]
    assert "spare: m1, m3: no recording can be used" in told.out
    assert "4 of 6 fits" in told.out
    assert not (folder / "fits" / "spare").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(first, tmp_path):
    """Interrupted after the first of many fits: exit code 130, valid files, an honest summary, no children."""
    recorded, fleet = first[0], tmp_path / "fleet.yaml"
    endless = "laws: [m1, m3], trials: 1000000000, method: random, set: {kt: 1.1}"  # half of what it is
    fleet.write_text(
        f"servos:\n  - {{name: quick, logdir: {recorded}/bags/knee, laws: m1, trials: 300, dt: 0.01, validation_kp: 32}}\n"
        f"  - {{name: slow, logdir: {recorded}/bags/hip, {endless}, dt: 0.01}}\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "stribeck", "fit-all", str(fleet), "--workers", "2"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for((tmp_path / "fits" / "quick" / "m1.json").exists, "the first fit", 120.0)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    wait_for(lambda: not members(process.pid), "the last child ends", 10.0)
    assert read_drive(tmp_path / "fits" / "quick" / "m1.json")
    summary = json.loads((tmp_path / "fits" / "fleet.json").read_text())
    assert summary["complete"] is False
    assert [fit["failure"] for fit in summary["fits"]] == ["", "not done", "not done"]
    assert "1 of 3 fits" in out


def members(group: int) -> list[str]:
    """Processes of a group."""
    found = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if line.split()[0] == str(group) and " Z" not in line]


NOT_FOR_FLEETS = {
    "recordings": "each servo has its own",
    "law": "laws are a key of the file",
    "validate": "a fleet holds runs out",
    "workers": "processes are shared between fits",
    **dict.fromkeys(("study", "resume", "load_study", "join", "batch"), "fits of a fleet start anew"),
    **dict.fromkeys(("wandb", "wandb_project"), "a run of Weights & Biases is one fit"),
    **dict.fromkeys(("output", "json", "progress"), "the fleet writes and shows its own"),
    "eval": "a fleet fits",
    "strict": "its exit code tells of one fit",
}


def test_every_option_of_a_fit_is_decided_on():
    """A fleet takes it, or there is a reason why not."""
    assert {entry.name for entry in fields(IdentifyServoOptions)} == {*FLEET_OPTIONS, *NOT_FOR_FLEETS}
    assert not set(FLEET_OPTIONS) & set(NOT_FOR_FLEETS)


def test_options_mean_what_they_mean_to_fit():
    """YAML's values and the command line's words give the same."""
    words = (
        "--logdir=. --actuator xl330 --terms asymmetric,offset --effects current-limit --set R=3.5 --set kt=0.4 "
        "--free current_limit --validation-kp 32 --method cmaes --trials 7 --seed 3 --float64 --dt 0.01 "
        "--reset-period 0.5 --bench mass=1.0,length=0.1"
    )
    options = {
        "actuator": "xl330",
        "terms": ["asymmetric", "offset"],
        "effects": "current-limit",
        "set": {"R": 3.5, "kt": 0.4},
        "free": ["current_limit"],
        "validation_kp": 32,
        "validation_fraction": None,
        "method": "cmaes",
        "trials": 7,
        "seed": 3,
        "float64": True,
        "dt": 0.01,
        "reset_period": 0.5,
    }
    _, expected, _ = parse(["fit", *words.split()[:-2]])
    assert fit_options(options) == replace(expected, recordings=())


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"trials": 0}, ["trials", "at least 1", "found 0"]),
        ({"trials": True}, ["trials", "True"]),
        ({"trials": [1, 2]}, ["trials", "one value"]),
        ({"trials": {"a": 1}}, ["trials", "named values"]),
        ({"float64": "yes"}, ["float64", "true or false"]),
        ({"method": "magic"}, ["method", "magic", "hybrid"]),
        ({"effects": ["wind"]}, ["effects", "wind", "current-limit"]),
        ({"set": "R"}, ["set", "name=value"]),
        ({"set": {"R": "much"}}, ["set: R", "much"]),
        ({"bench": {"mass": 1.0}}, ["missing"]),
        ({"signals": "nowhere.yaml"}, ["nowhere.yaml"]),
        ({"actuator": "xl33"}, ["xl33", "xl330"]),
    ],
)
def test_a_value_that_is_not_valid_is_said_in_one_line(options, parts, tmp_path, capsys):
    """Before anything is fitted."""
    path = tmp_path / "fleet.yaml"
    path.write_text(json.dumps({"servos": [{"name": "hip", "logdir": ".", **options}]}))
    assert main(["fit-all", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    for part in ("servo 'hip'", *parts):
        assert part in line
    assert not (tmp_path / "fits").exists()


def test_a_missing_library_is_named_with_what_brings_it(recorded, tmp_path, monkeypatch, capsys):
    """JAX for every fleet, Dask for a scheduler."""
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(f"servos: [{{name: hip, logdir: {recorded}/bags/hip}}]")
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "stribeck.fleet.cluster", raising=False)
    assert main(["fit-all", str(fleet), "--scheduler", "tcp://127.0.0.1:9"]) == 1
    assert "pip install 'stribeck[cluster]'" in capsys.readouterr().err
    monkeypatch.setattr("stribeck.cli.identify.fleet.run.NEEDED", ("jax", "surely_not_installed"))
    assert main(["fit-all", str(fleet)]) == 1
    assert "surely_not_installed: pip install 'stribeck[fit]'" in capsys.readouterr().err


def largest(group: int) -> int:
    """The process of a group that holds most memory: one that fits."""
    found = subprocess.run(["ps", "-eo", "rss=,pid=,pgid="], capture_output=True, text=True).stdout
    rows = [tuple(map(int, line.split())) for line in found.splitlines()]
    return max((rss, pid) for rss, pid, pgid in rows if pgid == group and pid != group)[1]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("where", [[], ["--scheduler", "local"]], ids=["processes", "dask"])
def test_eight_servos_and_six_laws_with_bags_cut_off_and_a_worker_killed(where, tmp_path, capsys):
    """All 48 fits are done and find the simulated friction; two bags are reported, the ninth servo has no other.

    A process that is killed in the middle costs nothing; the next run fits one servo again whose file is gone.
    """
    simulation = runpy.run_path(str(REPOSITORY / "examples" / "simulate_fleet.py"))
    simulation["simulate_fleet"](tmp_path, trials=6000, damage=True)
    command = [
        sys.executable,
        "-m",
        "stribeck",
        "fit-all",
        str(tmp_path / "fleet.yaml"),
        "--workers",
        "2",
        *where,
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(command, env=environment, stdout=err, stderr=err, start_new_session=True)
    fits = tmp_path / "fits"
    wait_for(lambda: len(list(fits.glob("*/*.json"))) > 2, "some fits", 1000.0)
    os.kill(largest(process.pid), signal.SIGKILL)
    assert process.wait() == 1, (tmp_path / "err").read_text()
    wait_for(lambda: not members(process.pid), "the last child ends", 10.0)
    summary = json.loads((fits / "fleet.json").read_text())
    assert [fit["servo"] for fit in summary["fits"] if not fit["failure"]] == [
        name for name in simulation["FLEET"] for _ in range(6)
    ]
    assert [fit["servo"] for fit in summary["fits"] if fit["failure"]] == ["spare"] * 6
    assert {name: len(reasons) for name, reasons in summary["left_out"].items()} == {"left_ankle": 1}
    for name, bench in simulation["FLEET"].items():
        truth = read_drive(tmp_path / "truth" / f"{name}.json")
        found = read_drive(fits / name / f"{bench.law}.json")
        assert simulation["friction_error"](bench, truth, found) < 0.03, name
    before = files(tmp_path)
    (fits / "elbow" / "m3.json").unlink()
    assert main(command[3:]) == 1
    assert "47 of 54" in capsys.readouterr().out
    assert {name for name, when in files(tmp_path).items() if when != before[name]} == {"elbow m3"}
