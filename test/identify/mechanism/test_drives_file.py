"""Files of drives of mechanisms, and those of earlier versions."""

import json
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechanisms import BLOCK, mechanism
from stribeck.errors import ParameterFileError
from stribeck.files.drives import Drives, MachineParameters, read_drives, write_drives
from stribeck.identify.mechanism.drives import mechanism_drives, values_to_start
from stribeck.identify.mechanism.dynamics import MultibodyDynamics
from stribeck.identify.mechanism.model_file import read_model
from stribeck.model.estimate import Estimate, at_bound, estimate_of
from stribeck.model.law import offset_torque
from stribeck.model.verdict import Verdict

PARAMETERS = mechanism(BLOCK).parameters
FIRST = {"schema": 1, "kind": "mechanism", "model": "block", "provenance": {"data": ["run.csv"]}}


def written(path, **entry):
    path.write_text(json.dumps(FIRST | {"parameters": {"friction": {"value": 5.0, "unit": "N"} | entry}}))
    return path


@pytest.mark.parametrize(
    "estimate",
    [
        estimate_of(5.0, "N", (4.9, 5.1), bounds=(0.0, 100.0)),
        estimate_of(5.0, "N", (1.0, 9.0), bounds=(0.0, 100.0)),
        estimate_of(5.0, "N", None),
        at_bound(0.0, "N", "lower"),
    ],
)
def test_estimates_come_back_from_a_file(tmp_path, estimate):
    """Value, unit, interval, status and reason; a mechanism without a motor has no drive."""
    path = tmp_path / "P.json"
    content = Drives({}, MachineParameters("block", {"friction": estimate}))
    write_drives(path, content)
    assert read_drives(path) == content
    assert values_to_start(path, "block", PARAMETERS) == {"friction": estimate.value}


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"interval": [4.9, 5.1], "identifiable": True}, "determined"),
        ({"identifiable": False}, "not determined"),
        ({}, "fixed"),
    ],
)
def test_files_of_the_first_form_are_read(tmp_path, entry, status):
    """They say ``identifiable`` of estimated parameters, and nothing of fixed ones."""
    path = written(tmp_path / "P.json", **entry)
    assert values_to_start(path, "block", PARAMETERS) == {"friction": 5.0}
    assert read_drives(path).machine.estimates["friction"].status == status


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"unit": "N m"}, "unit 'N m', but the model has 'N'"),
        ({"value": "much"}, "value: expected a number"),
        ({"status": "vague"}, "status"),
        ({"colour": "red"}, "unknown key 'colour'"),
    ],
)
def test_entries_that_are_not_valid_are_refused(tmp_path, entry, said):
    """One line that names the file and the key."""
    with pytest.raises(ParameterFileError, match=said) as error:
        values_to_start(written(tmp_path / "P.json", **entry), "block", PARAMETERS)
    assert "P.json" in str(error.value)


def test_a_file_of_another_mechanism_is_refused(tmp_path):
    """Both names are in the message."""
    with pytest.raises(
        ParameterFileError, match="belongs to the mechanism 'block', not to the mechanism 'furuta'"
    ):
        values_to_start(written(tmp_path / "P.json"), "furuta", PARAMETERS)


def test_the_ripple_of_a_motor_is_in_its_drive(tmp_path):
    """Both waves, the larger first, with the sign that they have in the dynamics, with intervals; the file comes back.

    A wave that is a parameter of the mechanism has the status that it has there.
    """
    model = read_model("furuta_motor")
    waves = {"ripple_14_cos": 0.002, "ripple_14_sin": -0.001, "ripple_8_cos": 0.004, "ripple_8_sin": 0.003}
    parameters = [replace(p, value=waves.get(p.name, p.value)) for p in model.mechanism.parameters]
    mechanism = replace(model.mechanism, parameters=type(model.mechanism.parameters)(parameters))
    estimate = SimpleNamespace(
        mechanism=mechanism,
        estimates={"ripple_14_cos": Estimate(0.002, "N m", "loosely determined", (0.0015, 0.0025))},
        sensitivity=SimpleNamespace(half_width=lambda slope: 1e-4 * float(np.abs(slope).max())),
        solution=SimpleNamespace(status=SimpleNamespace(value="converged")),
    )
    path = tmp_path / "P.json"
    write_drives(path, mechanism_drives(model, estimate, Verdict(), ["run"]))
    ((name, drive),) = read_drives(path).joints.items()
    assert drive.law.optional_terms == ("ripple", "second_ripple")
    angle = np.linspace(-3.0, 3.0, 13)
    found = offset_torque(drive.law, drive.values, angle)
    waved = [0.002, -0.001] @ np.array([np.cos(14 * angle), np.sin(14 * angle)])
    waved += [0.004, 0.003] @ np.array([np.cos(8 * angle), np.sin(8 * angle)])
    np.testing.assert_allclose(found, waved, atol=1e-15)
    assert (drive.values["ripple_order"], drive.values["second_ripple_order"]) == (8.0, 14.0)
    assert drive.stated["second_ripple_cosine"] == estimate.estimates["ripple_14_cos"]
    assert drive.stated["second_ripple_sine"].interval == pytest.approx((-0.0011, -0.0009))
    with jax.enable_x64():
        dynamics, joint = MultibodyDynamics(mechanism), [one.name for one in mechanism.joints].index(name)
        physical = mechanism.physical(jnp.asarray(mechanism.values()))
        physical = physical._replace(voltage_offset=jnp.zeros(len(mechanism.motors)))
        pose = dynamics.layout.pose(physical, dynamics.layout.zero_pose(physical))
        still, _ = dynamics.drive(physical, pose, jnp.zeros(len(mechanism.motors)))
    assert float(still[joint]) == pytest.approx(offset_torque(drive.law, drive.values, 0.0))
