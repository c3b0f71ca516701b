"""`evaluate --integrator mujoco --reset-period` ignored the period: its errors were those of whole runs."""

import json

import pytest

from helpers import published
from stribeck.cli.main import main
from stribeck.files.folders import shared_directory
from stribeck.recordings.bags.bag import read_bag, write_bag

BAGS = shared_directory("bags") / "xl330_simulated" / "m0.1_l0.1"


@pytest.mark.slow
def test_resets_are_those_of_our_own_steps(tmp_path):
    """With wrong friction the error is several times smaller with resets, and as large as by our own steps."""
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")
    values = {**published("xl330", "m4"), "q_offset": 0.0}
    values["friction_base"] *= 3.0
    write_bag(tmp_path / "few", read_bag(BAGS)[:4])
    file = tmp_path / "m4.json"
    file.write_text(json.dumps({**values, "model": "m4", "actuator": "xl330"}))

    def error(*words):
        given = [
            "evaluate",
            str(tmp_path / "few"),
            "--params",
            str(file),
            "--step",
            "0.001",
            "--json",
            str(tmp_path / "e.json"),
        ]
        assert main([*given, *words]) == 0
        return json.loads((tmp_path / "e.json").read_text())["results"][0]["mae"]

    whole = error("--integrator", "mujoco")
    reset = error("--integrator", "mujoco", "--reset-period", "0.1")
    assert reset < 0.5 * whole
    assert reset == pytest.approx(error("--integrator", "exponential", "--reset-period", "0.1"), rel=0.05)
