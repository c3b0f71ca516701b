"""`stribeck identify-joint` from the command line: tables in, law, verdict and files out, one line for wrong tables."""

import json

import numpy as np
import pytest

from joint_tables import columns, sweep, wobble, write_table
from stribeck.cli.main import main
from stribeck.files.drives import read_drive
from stribeck.live.parameters import CompensationParameters
from stribeck.live.setup import compensated_joints, compensator_of, learning_of

TABLE = columns(wobble(20.0, 0.01))
DEGREE = np.pi / 180.0


def identify(*words):
    return main(["identify-joint", *map(str, words), "--quiet"])


def changed(**columns_):
    return {**TABLE, **columns_}


def test_table_to_files(tmp_path, capsys):
    """One command: law, intervals and verdict as JSON, a parameter file that the live compensation uses, a picture."""
    table = write_table(tmp_path / "joint.csv", TABLE)
    other = write_table(tmp_path / "other.csv", columns(wobble(10.0, 0.01, rate=1.3), seed=4))
    out = tmp_path / "joint.json"
    words = [
        "--validate",
        other,
        "--output",
        out,
        "--json",
        tmp_path / "r.json",
        "--plot",
        tmp_path / "p.png",
    ]
    assert identify(table, *words, "--strict") == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["schema"] == 1
    assert found["law"] == "m2"
    assert "presliding" in found["terms"]
    assert found["train"]["rms"] < 0.1
    (error,) = found["validation"]
    assert error["file"] == "other.csv"
    assert error["relative"] < 0.1
    assert found["verdict"] == "usable"
    assert set(found["intervals"]) <= set(found["parameters"])
    assert "± 95 %" in capsys.readouterr().out
    file = read_drive(out)
    assert file.law.name == "m2"
    assert file.values["friction_base"] == found["parameters"]["friction_base"]
    assert set(file.bounds) == {"dtheta_stribeck", "alpha", "presliding_length"} & set(file.values)
    assert all(lower <= file.values[name] <= upper for name, (lower, upper) in file.bounds.items())
    node = tmp_path / "compensation.yaml"
    joint = f"{{parameter_file: {out}, max_torque: 5.0}}"
    node.write_text(
        f"compensation:\n  ros__parameters:\n    joints: [elbow]\n    effort_meaning: motor\n    elbow: {joint}\n"
    )
    parameters = CompensationParameters.read(node, "compensation")
    loaded = compensated_joints(parameters)
    assert compensator_of(parameters, loaded, learning_of(parameters, loaded).dynamics).names == ("elbow",)


def test_sweep_is_named_and_drawn(tmp_path, capsys):
    """The plateaus of a constant-velocity sweep are counted in the output, and are in the picture."""
    table = write_table(tmp_path / "sweep.csv", columns(sweep(travel=0.15)))
    assert identify(table, "--plot", tmp_path / "sweep.png") == 0
    assert "constant-velocity sweep: 12 plateaus" in capsys.readouterr().out
    assert (tmp_path / "sweep.png").stat().st_size > 10_000


WRONG = {
    "position in degrees": (changed(q=TABLE["q"] / DEGREE), "degrees"),
    "velocity in degrees": (changed(dq=TABLE["dq"] / DEGREE), "deg/s"),
    "velocity in rpm": (changed(dq=TABLE["dq"] * 30.0 / np.pi), "rpm"),
    "velocity of the motor": (changed(dq=TABLE["dq"] * 100.0), "motor side"),
    "position of the motor": (changed(q=TABLE["q"] * 100.0), "motor side"),
    "both of the motor": (changed(q=TABLE["q"] * 100.0, dq=TABLE["dq"] * 100.0), "motor side"),
    "velocity of the other sign": (changed(dq=-TABLE["dq"]), "wrong sign"),
    "torque of the other sign": (changed(tau=-TABLE["tau"]), "its sign is wrong"),
    "velocity of another joint": (changed(dq=np.cos(7.0 * TABLE["time"])), "is not the derivative of"),
    "time in milliseconds": (changed(time=1e3 * TABLE["time"]), "milliseconds"),
    "torque in N mm": (changed(tau=2e3 * TABLE["tau"]), "N mm"),
    "a still joint": (
        changed(q=0.0 * TABLE["q"] + 0.3, dq=0.0 * TABLE["q"]),
        "friction can be identified only from motion",
    ),
    "one direction": (changed(q=TABLE["time"] * 0.1, dq=0.1 + 0.0 * TABLE["q"]), "one direction"),
    "no torque": (changed(tau=0.0 * TABLE["tau"]), "zero"),
    "a constant torque": (changed(tau=0.0 * TABLE["tau"] + 2.0), "the same in all rows"),
    "too short": ({name: values[:30] for name, values in TABLE.items()}, "30 rows"),
    "mostly missing": (
        changed(tau=np.where(TABLE["time"] < 12.0, np.nan, TABLE["tau"])),
        "tau has no number",
    ),
    "rows out of order": (
        {name: np.concatenate([values[:500], values[400:]]) for name, values in TABLE.items()},
        "goes back",
    ),
    "no torque column": ({name: values for name, values in TABLE.items() if name != "tau"}, "torque=COLUMN"),
    "no time column": ({name: values for name, values in TABLE.items() if name != "time"}, "time=COLUMN"),
    "no position column": (
        {name: values for name, values in TABLE.items() if name != "q"},
        "position=COLUMN",
    ),
    "a current": (
        {("current" if name == "tau" else name): values for name, values in TABLE.items()},
        "kt=",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_table_is_refused_with_its_cause(case, tmp_path, capsys):
    """One line that names what is wrong, exit code 1, and no file."""
    table, words = WRONG[case]
    path = write_table(tmp_path / "wrong.csv", table)
    assert identify(path, "--json", tmp_path / "r.json") == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert words in said[0]
    assert "wrong.csv" in said[0]
    assert not (tmp_path / "r.json").exists()


STRANGE = {
    "doubled time": (changed(time=2.0 * TABLE["time"]), "doubled"),
    "halved time": (changed(time=0.5 * TABLE["time"]), "halved"),
    "slow velocity": (changed(dq=0.58 * TABLE["dq"]), "0.58 times the derivative"),
    "a gap": ({n: np.concatenate([v[:900], v[1000:]]) for n, v in TABLE.items()}, "1 gaps"),
    "two tests": ({n: np.concatenate([v[:1200], v[:800]]) for n, v in TABLE.items()}, "contains 2 tests"),
    "missing values": (changed(tau=np.where(np.arange(2000) % 50 == 0, np.nan, TABLE["tau"])), "40 rows"),
    "repeated times": (changed(time=np.repeat(TABLE["time"][::2], 2)), "repeat the time"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_strange_table_is_used_with_a_word(case, tmp_path, capsys):
    """What can be used is used, and what was noticed is said; a wrong clock is a reason against the result."""
    table, words = STRANGE[case]
    path = write_table(tmp_path / "strange.csv", table)
    assert identify(path, "--json", tmp_path / "r.json", "--law", "m1") == 0
    assert words in capsys.readouterr().err
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["parameters"]["friction_base"] > 0.5
    doubted = "velocity" in {reason["key"] for reason in found["reasons"]}
    assert doubted == (case in ("doubled time", "halved time", "slow velocity"))


def test_trailing_commas_are_no_columns(tmp_path):
    """Rows that end with a comma, with or without one in the header, are read as without."""
    plain = write_table(tmp_path / "plain.csv", TABLE).read_text().splitlines()
    for name, first in (("both", plain[0] + ","), ("rows", plain[0])):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([first, *(line + "," for line in plain[1:])]) + "\n")
        assert identify(path, "--law", "m1", "--json", tmp_path / f"{name}.json") == 0
        assert json.loads((tmp_path / f"{name}.json").read_text())["law"] == "m1"


def test_units_that_are_told_count(tmp_path):
    """Degrees and a current, named, give the law of radians and torques."""
    table = {"stamp": TABLE["time"], "angle": TABLE["q"] / DEGREE, "amps": TABLE["tau"] / 1.5}
    path = write_table(tmp_path / "raw.csv", table)
    plain = write_table(tmp_path / "plain.csv", {n: TABLE[n] for n in ("time", "q", "tau")})
    told = "time=stamp,position=angle:deg,torque=none,current=amps"
    assert (
        identify(path, "--columns", told, "--set", "kt=1.5", "--json", tmp_path / "raw.json", "--law", "m1")
        == 0
    )
    assert identify(plain, "--json", tmp_path / "plain.json", "--law", "m1") == 0
    raw, same = (json.loads((tmp_path / f"{n}.json").read_text())["parameters"] for n in ("raw", "plain"))
    assert raw["friction_base"] == pytest.approx(same["friction_base"], rel=1e-4)


def test_arrays_with_a_joint_that_moves(tmp_path, capsys):
    """Of arrays with a column for each joint, the only one that moves is taken, with a word."""
    still = np.zeros_like(TABLE["q"])
    arrays = {n: np.stack([still, TABLE[n]], axis=1) for n in ("q", "dq", "tau")}
    np.savez(tmp_path / "arm.npz", time=TABLE["time"], **arrays)
    assert identify(tmp_path / "arm.npz", "--law", "m1", "--json", tmp_path / "r.json") == 0
    assert "joint 2 is used" in capsys.readouterr().err
    assert identify(tmp_path / "arm.npz", "--joint", "1") == 1
    assert "only from motion" in capsys.readouterr().err
    assert identify(tmp_path / "arm.npz", "--joint", "3") == 1
    assert "no joint '3'" in capsys.readouterr().err


def test_one_bad_recording_does_not_stop_the_others(tmp_path, capsys):
    """A recording that cannot be used is left out with its cause."""
    good = write_table(tmp_path / "good.csv", TABLE)
    bad = write_table(tmp_path / "bad.csv", {name: values[:30] for name, values in TABLE.items()})
    assert identify(good, bad, "--law", "m1") == 0
    assert "bad.csv has 30 rows" in capsys.readouterr().err
