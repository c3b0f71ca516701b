"""`stribeck identify-transmission`: stiffness and hysteresis from motor and link encoders."""

import json

import numpy as np
import pytest

from helpers import DATA
from stribeck.cli.main import main

COLUMNS = {"motor": "motor", "link": "link", "torque": "tau", "ratio": "100", "step": "0.004"}


def written(path, seed, **change):
    """A joint with 2e4 N m/rad, dry hysteresis of 0.2 mrad, and a link that is measured 2 ms late."""
    time = np.arange(2500) * 0.004
    generator = np.random.default_rng(seed)
    phases = generator.uniform(0.0, 6.0, 3)
    motor = sum(0.2 * np.sin((0.7 + k) * time + phase) for k, phase in enumerate(phases))
    velocity = np.gradient(motor, 0.004)
    torque = 0.4 * np.sin(1.9 * time + phases[0]) + 0.002 * np.gradient(velocity, 0.004)
    twist = 100.0 * torque / 2e4 + 2e-4 * np.sign(velocity) + 0.002 * velocity + 0.01
    link = motor - twist + 1e-5 * generator.standard_normal(len(motor))
    np.savez(path, **({"motor": motor, "link": link, "tau": torque} | change))
    return path


def words(columns):
    """Options of the columns."""
    return [word for name, value in columns.items() for word in (f"--{name}", value)]


def test_stiffness_hysteresis_and_skew_are_recovered(tmp_path):
    """Within their intervals, and another run is predicted within 0.05 mrad."""
    train, other = (written(tmp_path / f"{seed}.npz", seed) for seed in (1, 2))
    out = tmp_path / "k.json"
    options = ["--data", str(train), "--validate", str(other), *words(COLUMNS), "--json", str(out)]
    assert main(["identify-transmission", *options]) == 0
    found = json.loads(out.read_text())["per_joint"]["1"]
    assert found["stiffness"] == pytest.approx(2e4, rel=0.01)
    for name, truth in {"hysteresis": 2e-4, "skew": 0.002}.items():
        lower, upper = found["parameters"][name]["interval"]
        assert found["parameters"][name]["value"] == pytest.approx(truth, rel=0.05)
        assert lower < truth * 1.05
        assert upper > truth * 0.95
    assert found["rms"]["validation"] < 5e-5


@pytest.mark.parametrize(
    ("change", "more", "expected"),
    [
        ({"link": np.zeros(7)}, {}, "need equal shapes"),
        ({"tau": np.full(2500, np.nan)}, {}, "NaN or infinite"),
        ({}, {"motor": "encoder"}, "has no numeric column 'encoder'"),
        ({}, {"ratio": "gear"}, "'gear' is neither an array nor a number"),
        ({}, {"joints": "2"}, "there is no joint 2"),
        ({"link": np.zeros(2500)}, {}, "no joint moves according to both encoders"),
        ({"link": np.linspace(0.0, 70.0, 2500)}, {}, "positions reach 70.0 rad: are they in degrees?"),
        ({}, {"step": "4"}, "samples are 4 s apart; are times in milliseconds?"),
        ({"motor": np.zeros(99), "link": np.zeros(99), "tau": np.zeros(99)}, {}, "lasts less than 2 s"),
    ],
)
def test_wrong_columns_are_refused_in_one_line(tmp_path, capsys, change, more, expected):
    """Other shapes, NaN, unknown arrays and joints, short runs."""
    path = written(tmp_path / "run.npz", 1, **change)
    assert main(["identify-transmission", "--data", str(path), *words(COLUMNS | more)]) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert expected in error
    assert "Traceback" not in error


def test_joints_without_a_link_encoder_are_left_out(tmp_path, capsys):
    """What happened: hysteresis of 15 degrees for a link whose column is zero. Runs for validation that were fitted are told."""
    path = written(tmp_path / "run.npz", 1)
    with np.load(path) as run:
        twice = {name: np.stack([values, values], axis=1) for name, values in run.items()}
    twice["link"][:, 1] = 0.0
    np.savez(path, **twice)
    assert (
        main(["identify-transmission", "--data", str(path), "--validate", str(tmp_path), *words(COLUMNS)])
        == 0
    )
    said = capsys.readouterr()
    assert "joint 2 is not identified: its link position never changes" in said.err
    assert f"{tmp_path} is both fitted and in --validate" in said.err
    assert [line.split()[0] for line in said.out.splitlines()[2:]] == ["1"]


def test_twist_of_the_kuka_is_predicted(tmp_path):
    """Joints 1 to 3 fitted on A, B within 12 mdeg: fields of structures in MAT files, joints in rows, degrees."""
    folder = DATA / "kuka_kr300"
    if not folder.is_dir():
        pytest.skip("needs the recordings of the KUKA")
    columns = {
        "motor": "rec.act_pos_mot_deg",
        "link": "rec.act_pos_se_deg",
        "torque": "rec.act_torque_abs_nm",
        "ratio": "para.u",
        "rotor-inertia": "para.J_mr",
        "time": "rec.time_cont",
        "joints": "1,2,3",
    }
    out = tmp_path / "k.json"
    files = [
        "--data",
        str(folder / "A.mat"),
        "--validate",
        str(folder / "B.mat"),
        "--degrees",
        "--json",
        str(out),
    ]
    assert main(["identify-transmission", *files, *words(columns)]) == 0
    for found in json.loads(out.read_text())["per_joint"].values():
        assert np.degrees(found["rms"]["validation"]) < 12e-3
