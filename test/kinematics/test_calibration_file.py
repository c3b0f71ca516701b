"""Result files: what is written is read, and nothing else."""

import json

import numpy as np
import pytest

from simulated_arms import MARKERS, irb120, true_arm
from stribeck.errors import ParameterFileError
from stribeck.kinematics.calibration import calibrate
from stribeck.kinematics.result_file import read_calibration_file, write_calibration


@pytest.fixture(scope="module")
def fitted():
    data = true_arm(groups=("gain",)).measure(40, 1, 5e-5)
    return calibrate(irb120(), MARKERS, data, fits=["full"])["full"]


@pytest.fixture
def path(tmp_path, fitted):
    write_calibration(tmp_path / "arm.json", "irb120", "full", fitted, {"poses": 40})
    return tmp_path / "arm.json"


def test_a_file_predicts_what_the_fit_predicts(path, fitted):
    """Values, deviations and terms come back to the last bit."""
    arm = read_calibration_file(path)
    positions = np.random.default_rng(0).uniform(-1, 1, (5, 6))
    np.testing.assert_array_equal(
        arm.predict(positions), fitted.model.predict(positions, fitted.estimate.values)
    )
    np.testing.assert_array_equal(arm.sigma, fitted.sigma)
    assert arm.robot == "irb120"


def test_parameters_that_were_not_told_have_no_deviation(path):
    """They are null in the file, and nominal."""
    entry = json.loads(path.read_text())["parameters"]["joint_1.z"]
    assert entry == {"value": 0.0, "unit": "m", "group": "geometry", "sigma": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema=2), "schema 2 is not known"),
        (lambda d: d.update(kind="other"), "kind: expected kinematic calibration"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d.pop("noise"), "noise missing"),
        (lambda d: d["parameters"].pop("SMR_1.x"), "missing SMR_1.x"),
        (
            lambda d: d["parameters"].update(magic={"value": 1, "unit": "m", "group": "gain", "sigma": None}),
            "unknown magic",
        ),
        (lambda d: d["parameters"]["base.x"].update(value="1"), "expected a number"),
        (lambda d: d["nominal"].update(flange=[[1]]), "nominal"),
        (lambda d: d["nominal"].update(base=[[1]]), "base: expected 4 values"),
    ],
)
def test_other_files_are_refused(path, change, message):
    """Other versions, missing and unknown entries, and text for numbers."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ParameterFileError, match=message):
        read_calibration_file(path)
