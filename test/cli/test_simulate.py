"""`stribeck simulate`: motion that was not recorded, in tables, pictures and MuJoCo; panels and moving pictures of evaluate."""

import csv
import json

import numpy as np
import pytest

from helpers import published
from stribeck.cli.main import main
from stribeck.evaluate.suggestion import planned_run, trajectory_of
from stribeck.files.actuators import load_actuator
from stribeck.files.folders import shared_directory
from stribeck.model.law import law_named
from stribeck.model.log import Setup
from stribeck.model.step import batch_for, simulate
from stribeck.recordings.bags.bag import read_bag, write_bag

BENCH = "mass=0.1,length=0.1,kp=400,supply_voltage=5"
BAGS = shared_directory("bags") / "xl330_simulated" / "m0.1_l0.1"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "m4.json"
    values = {**published("xl330", "m4"), "q_offset": 0.0}
    path.write_text(json.dumps({**values, "model": "m4", "actuator": "xl330"}))
    return path


def simulated(file, *words):
    return main(["simulate", *map(str, words), "--params", str(file), "--bench", BENCH])


def read(path):
    with path.open() as text:
        rows = list(csv.DictReader(text))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def test_the_table_is_the_simulation_of_the_fit(file, tmp_path):
    """Position, velocity and torques by the same steps; torques and inertia give the acceleration while nothing sticks."""
    assert simulated(file, "sin_sin", "--output", tmp_path / "out", "--json", tmp_path / "s.json") == 0
    found = read(tmp_path / "out" / "sin_sin_m4.csv")
    servo, law = load_actuator("xl330"), law_named("m4")
    values = json.loads(file.read_text())
    setup = Setup(0.1, 0.1, 0.0, 5.0, 400.0)
    batch = batch_for([planned_run(trajectory_of("sin_sin"), setup, "xl330")], 0.005, "exponential")
    motion = simulate(batch, servo, law, values, with_torques=True)
    np.testing.assert_allclose(found["position"], motion.position[:, 0], atol=1e-8)
    np.testing.assert_allclose(
        found["external_torque"], -0.1 * 9.80665 * 0.1 * np.sin(found["position"]), atol=1e-8
    )
    (row,) = json.loads((tmp_path / "s.json").read_text())["results"]
    assert row["end"] == pytest.approx(found["position"][-1])
    assert row["motor_torque"] == pytest.approx(np.max(np.abs(found["motor_torque"])), rel=1e-6)


def test_a_table_of_goals_is_a_trajectory(file, tmp_path):
    """Steps in a table, torque off at its end: the pendulum falls."""
    goals = tmp_path / "goals.csv"
    time = np.arange(0.0, 3.0, 0.01)
    rows = [f"{t:.3f},{1.0 if t > 0.5 else 0.0},{1 if t < 2.0 else 0}" for t in time]
    goals.write_text("\n".join(["time,goal,torque_enable", *rows]) + "\n")
    assert simulated(file, goals, "--output", tmp_path / "out") == 0
    found = read(tmp_path / "out" / "goals_m4.csv")
    assert found["position"][390] == pytest.approx(1.0, abs=0.2)
    assert found["position"][-1] < 0.5
    assert np.all(found["motor_torque"][found["time"] > 2.01] == 0.0)


def test_mujoco_gives_the_same_motion(file, tmp_path):
    """Within 5 mrad of our own steps over the whole run, lift and drop included; evaluate takes it, too."""
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")
    words = ["sin_sin", "lift_and_drop", "--step", "0.001"]
    for name in ("exponential", "mujoco"):
        assert simulated(file, *words, "--integrator", name, "--output", tmp_path / name) == 0
    for name in ("sin_sin", "lift_and_drop"):
        ours, theirs = (
            read(tmp_path / kind / f"{name}_m4.csv")["position"] for kind in ("exponential", "mujoco")
        )
        assert np.mean(np.abs(ours - theirs)) < 5e-3
    write_bag(tmp_path / "few", read_bag(BAGS)[:4])
    errors = {}
    for name in ("exponential", "mujoco"):
        path = tmp_path / f"{name}.json"
        words = [
            "evaluate",
            str(tmp_path / "few"),
            "--params",
            str(file),
            "--integrator",
            name,
            "--step",
            "0.001",
        ]
        assert main([*words, "--json", str(path)]) == 0
        errors[name] = json.loads(path.read_text())["results"][0]["mae"]
    assert errors["mujoco"] == pytest.approx(errors["exponential"], rel=0.05)


def test_pictures_have_panels_and_move(file, tmp_path):
    """One picture for each run and an overview; a GIF with frames that differ."""
    image = pytest.importorskip("PIL.Image")
    assert simulated(file, "half_sine", "steps", "--plot", tmp_path / "pictures") == 0
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {
        "overview.png",
        "half_sine.png",
        "steps.png",
    }
    assert simulated(file, "half_sine", "--plot", tmp_path / "motion.gif") == 0
    with image.open(tmp_path / "motion.gif") as moving:
        assert moving.n_frames == 72
        assert min(moving.size) >= 350, "one run is large enough to be watched"
        first = np.array(moving.convert("RGB"))
        moving.seek(40)
        assert np.any(np.array(moving.convert("RGB")) != first)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sinus"], "no trajectory 'sinus'; valid: sin_time_square"),
        (["none.csv"], "no such file"),
        (["steps", "--bench", "mass=0.1"], "length, kp missing"),
        (["steps", "--bench", "mass=0.1,length=0.1,kp=1,colour=3"], "colour"),
    ],
)
def test_mistakes_are_one_line(file, capsys, words, said):
    """Found, valid, what to do; exit code 1."""
    bench = [] if "--bench" in words else ["--bench", BENCH]
    assert main(["simulate", *words, "--params", str(file), *bench]) == 1
    error = capsys.readouterr().err
    assert error.startswith("stribeck: ")
    assert said in error
    assert error.count("\n") == 1
