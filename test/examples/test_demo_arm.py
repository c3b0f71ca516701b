"""`make demo-arm`: from the design of a motion to identified links, as a user runs it."""

import json

import pytest

from demo_arm import main
from stribeck.files.robots import example_robots
from stribeck.identify.arm.model import load_arm


@pytest.mark.slow
def test_the_demo_of_an_arm(tmp_path):
    """The designed motion beats random ones, the identified arm predicts to the noise, pictures are there."""
    if not example_robots("panda.urdf"):
        pytest.skip("example-robot-data is not installed")
    assert main(["--output", str(tmp_path), "--quiet"]) == 0
    design = json.loads((tmp_path / "training.json").read_text())
    assert design["gain"] >= 20.0
    assert design["median_sigma_ratio"] <= 0.6
    assert sum(design["violations"].values()) == 0
    found = json.loads((tmp_path / "summary.json").read_text())
    for costs in found["costs"].values():
        assert costs["result"] < 1.1 * costs["floor"] < costs["wrong"]
    assert found["inside_95"] > 0.85
    assert load_arm(tmp_path / "panda.urdf", [f"panda_joint{k}" for k in range(1, 8)]).inertials.size == 70
    for picture in ("costs.png", "training/trajectory.png", "training/sigmas.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
