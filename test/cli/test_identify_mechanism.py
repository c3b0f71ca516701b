import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stribeck.cli.main import main
from stribeck.identify.mechanism.drives import values_to_start
from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.model_file import read_model

STEP = 0.005


def recording(path: Path, start: float = 1.0, head: str = "time,angle") -> Path:
    """Two seconds of the pendulum of config/mechanisms, at its parameters, with noise of 1 mrad."""
    at = read_model("pendulum").mechanism
    dynamics = MultibodyDynamics(at)
    time = STEP * np.arange(401)
    with jax.enable_x64():
        physical = at.physical(at.values())
        half = start / 2
        q = dynamics.layout.zero_pose(physical)
        q = q.at[0, 1:3].set(jnp.array([0.1 * np.sin(start), -0.1 * np.cos(start)]))
        q = q.at[0, 3:5].set(jnp.array([np.cos(half), np.sin(half)]))
        found = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((len(time), 0)), STEP))
        turns = found(BodyState(q, jnp.zeros((1, 6)))).q
    angle = 2.0 * np.arctan2(np.asarray(turns[:, 0, 4]), np.asarray(turns[:, 0, 3]))
    angle = angle + 0.001 * np.random.default_rng(0).normal(size=len(time))
    rows = [f"{t:.6f},{a:.9f}" for t, a in zip(time, angle, strict=True)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def refused(capsys, *options) -> str:
    """The line with which an estimation is refused."""
    assert main(["estimate", *map(str, options)]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("stribeck: ")
    return said


def test_what_cannot_be_estimated_is_refused_in_one_line(tmp_path, capsys):
    """Unknown models, missing files, other columns, an output that is an input; nothing is written."""
    data = tmp_path / "run.csv"
    data.write_text("t,angle\n" + "\n".join(f"{0.01 * k},{0.1 * k}" for k in range(50)) + "\n")
    before, model = data.read_bytes(), ("--model", "pendulum")
    assert "unknown mechanism 'x'" in refused(capsys, "--model", "x", "--data", data)
    assert "no such file" in refused(capsys, *model, "--data", tmp_path / "none.csv")
    assert "no numeric column 'time'; found: t, angle" in refused(capsys, *model, "--data", data)
    assert "is also an input" in refused(capsys, *model, "--data", data, "--output", data)
    assert data.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.csv"]


def test_held_parameters_have_names(tmp_path, capsys):
    """--hold of a parameter that the mechanism lacks lists those that it has."""
    data = tmp_path / "run.csv"
    data.write_text("time,angle\n0,0\n")
    assert "coulomb" in refused(capsys, "--model", "pendulum", "--data", data, "--hold", "mass=1")


@pytest.mark.slow
def test_a_recording_at_rest_is_written_too(tmp_path):
    """The relative error of a signal that is zero throughout is no number: null, and the rest is there. Nothing is known then,
    which the verdict says, with --strict by exit code 2."""
    data, summary = tmp_path / "still.csv", tmp_path / "F.json"
    data.write_text("time,angle\n" + "\n".join(f"{0.01 * k},0" for k in range(50)) + "\n")
    words = ["estimate", "--model", "pendulum", "--data", str(data), "--json", str(summary), "--quiet"]
    assert main([*words, "--strict"]) == 2
    found = json.loads(summary.read_text())
    assert found["verdict"] == "unusable"
    assert found["reasons"][0]["key"] == "large_error"
    (fitted,) = json.loads(summary.read_text())["errors"]["fitted"]
    assert fitted["from_first_sample"]["angle"]["rel"] is None
    assert fitted["from_first_sample"]["angle"]["rmse"] < 1e-6


@pytest.mark.slow
def test_estimate_recovers_a_pendulum_and_writes_what_it_found(tmp_path):
    """Parameters, summary with both sets' errors, and pictures."""
    data, other = recording(tmp_path / "a.csv"), recording(tmp_path / "b.csv", 0.6)
    output, summary = tmp_path / "P.json", tmp_path / "F.json"
    files = ["--output", output, "--json", summary, "--plots", tmp_path / "plots"]
    start = ["--model", "pendulum", "--data", data, "--validate", other, "--quiet", "--strict"]
    assert main(["estimate", *map(str, [*start, *files])]) == 0
    mechanism = read_model("pendulum").mechanism
    found = values_to_start(output, "pendulum", mechanism.parameters)
    for name, value in mechanism.parameters.values().items():
        assert found[name] == pytest.approx(value, rel=0.05)
    content = json.loads(summary.read_text())
    assert (content["verdict"], content["reasons"]) == ("usable", [])
    assert content["errors"]["validated"][0]["from_first_sample"]["angle"]["rmse"] < 0.01
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"0_a.png", "1_b.png", "convergence.png"}


def test_a_mechanism_with_contacts_is_refused_before_its_recordings_are_read(tmp_path, capsys):
    """The included block has no section data either: it is not what is missing."""
    words = [
        "identify",
        "mechanism",
        str(tmp_path),
        "--mechanism",
        "block",
        "--output",
        str(tmp_path / "p.json"),
    ]
    assert main(words) == 1
    assert "block: parameters of contacts cannot be estimated, only simulated" in capsys.readouterr().err
