"""Files that an earlier version wrote are read and give the torques and motions that they gave then."""

import json
from pathlib import Path

import numpy as np
import pytest

from stribeck.files.drives import read_drive, write_drive
from stribeck.model.actuator import motor_torque
from stribeck.model.control_laws import Gains, ServoCommand
from stribeck.model.law import friction_budget
from stribeck.model.log import batch_of
from stribeck.model.step import simulate
from stribeck.recordings.bags.bag import read_bag
from stribeck.session.excitation_file import read_excitation_file

KEPT = Path(__file__).parents[1] / "data" / "version_0_1"
EXPECTED = json.loads((KEPT / "expected.json").read_text())
NAMES = sorted(EXPECTED["torques"])
ROUNDING = {"rtol": 1e-12, "atol": 1e-15}
"""Another order of the same operations may round differently."""


def test_all_kept_files_are_tried():
    """Laws M1 to M6 as fits wrote them, one with all further terms and effects, one of another program."""
    assert NAMES == ["asymmetric_with_effects", "flat", "m1", "m2", "m3", "m4", "m5", "m6"]
    assert sorted(path.stem for path in KEPT.glob("*.json") if path.stem != "expected") == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_torques_are_those_of_then(name):
    """Motor torque and the friction in both directions, at rest and in motion, under load."""
    file = read_drive(KEPT / f"{name}.json")
    at = {key: np.array(values) for key, values in EXPECTED["states"].items()}
    state = file.actuator.control.first_state(at["goal"])
    command = ServoCommand(at["goal"], 1.0, at["supply"])
    gains = Gains(at["kp"], 0.0, 0.0)
    motor, _ = motor_torque(
        file.actuator, file.values, gains, state, command, at["position"], at["velocity"], 0.005
    )
    positive, negative = friction_budget(file.law, file.values, motor, at["external"], at["velocity"])
    wanted = EXPECTED["torques"][name]
    np.testing.assert_allclose(motor, wanted["motor"], **ROUNDING)
    np.testing.assert_allclose(
        np.broadcast_to(positive, motor.shape), wanted["friction_positive"], **ROUNDING
    )
    np.testing.assert_allclose(
        np.broadcast_to(negative, motor.shape), wanted["friction_negative"], **ROUNDING
    )


@pytest.mark.parametrize("name", NAMES)
def test_motions_on_a_kept_bag_are_those_of_then(name):
    """The bag's run, simulated with the file."""
    file = read_drive(KEPT / f"{name}.json")
    (log,) = read_bag(KEPT / "bag")
    batch = batch_of([log.resample(0.01)])
    found = simulate(batch, file.actuator, file.law, file.values, integrator="semi-implicit")
    np.testing.assert_allclose(found.position[::15, 0], EXPECTED["positions"][name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "flat"])
def test_what_a_file_says_of_its_origin_is_kept(name, tmp_path):
    """Written again, it says the same as before, entry by entry."""
    file, then = read_drive(KEPT / f"{name}.json"), json.loads((KEPT / f"{name}.json").read_text())
    write_drive(tmp_path / "again.json", file)
    assert read_drive(tmp_path / "again.json") == file
    block = then.pop("stribeck")
    assert {**file.values, "model": file.law.name, "actuator": file.actuator.name} == then
    assert {key: list(pair) for key, pair in file.intervals.items()} == block["intervals"]
    assert {key: list(pair) for key, pair in file.bounds.items()} == block["bounds"]
    assert {key: one.unit for key, one in file.stated.items() if one.unit} == block["units"]
    assert [key for key, one in file.stated.items() if one.status == "fixed"] == block["fixed"]
    assert {key: one.side for key, one in file.stated.items() if one.side} == block["at_bounds"]
    assert list(file.statements) == block["statements"]
    assert (file.loss.train, file.loss.validation) == tuple(
        block["loss"][f"{key}_mae"] for key in ("train", "validation")
    )
    origin = file.provenance
    assert list(origin.runs.train) == block["split"]["train"]
    assert origin.runs.fingerprint == block["data"]["fingerprint"]
    assert origin.simulation.dt == block["simulation"]["dt"]
    assert {**vars(origin.search), **origin.search.settings}.items() >= block["search"].items()
    assert origin.versions == block["versions"]


def test_the_kept_bag_says_what_it_said_then():
    """Name, load, gains, supply and samples of the run."""
    (log,) = read_bag(KEPT / "bag")
    wanted, setup = EXPECTED["bag"], log.setup
    assert log.name == wanted["name"]
    assert [setup.mass, setup.length, setup.arm_mass, setup.kp, setup.supply_voltage] == wanted["setup"]
    assert len(log.position.value) == wanted["samples"]
    assert log.position.value.sum() == pytest.approx(wanted["position_sum"], rel=1e-12)


def test_the_kept_trajectory_is_the_motion_of_then():
    """Positions, velocities and accelerations of an exciting trajectory."""
    motion, wanted = read_excitation_file(KEPT / "motion.yaml").trajectory, EXPECTED["motion"]
    for found, expected in zip(motion.states(np.array(wanted["time"])), wanted["states"], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
