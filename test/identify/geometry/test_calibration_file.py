"""Result files: what is written is read, and nothing else."""

import json
from pathlib import Path

import numpy as np
import pytest

from simulated_arms import MARKERS, irb120, true_arm
from stribeck.errors import ParameterFileError
from stribeck.identify.geometry.calibration import calibrate
from stribeck.identify.geometry.result_file import read_calibration_file, write_calibration

KEPT = Path(__file__).parents[2] / "data" / "version_0_1" / "calibration" / "irb120.json"


@pytest.fixture(scope="module")
def fitted():
    data = true_arm(groups=("gain",)).measure(40, 1, 5e-5)
    return calibrate(irb120(), MARKERS, data, fits=["full"])["full"]


@pytest.fixture
def path(tmp_path, fitted):
    write_calibration(tmp_path / "arm.json", "irb120", "full", fitted, {"poses": 40})
    return tmp_path / "arm.json"


def test_a_file_predicts_what_the_fit_predicts(path, fitted):
    """Estimates and terms come back to the last bit."""
    arm = read_calibration_file(path)
    positions = np.random.default_rng(0).uniform(-1, 1, (5, 6))
    np.testing.assert_array_equal(
        arm.predict(positions), fitted.model.predict(positions, fitted.estimate.values)
    )
    assert arm.estimates == fitted.estimates
    assert arm.robot == "irb120"


def test_estimates_have_the_form_of_all_fits(path, fitted):
    """Parameters that the geometry leaves open are fixed at zero; the others have the interval of their deviation and a status."""
    entries = json.loads(path.read_text())["parameters"]
    assert entries["joint_1.z"] == {
        "value": 0.0,
        "unit": "m",
        "group": "geometry",
        "status": "fixed",
        "confidence": 0.95,
    }
    deviations = dict(zip(fitted.model.names, fitted.sigma, strict=True))
    gain, offset = entries["joint_2.gain"], entries["joint_2.offset"]
    for name, entry in (("joint_2.gain", gain), ("joint_2.offset", offset)):
        assert np.ptp(entry["interval"]) == pytest.approx(2.0 * 1.959964 * deviations[name], rel=1e-6)
    assert offset["status"] == "determined"


def test_files_of_version_0_1_are_read():
    """The file kept from then predicts the same points; intervals follow from its standard deviations."""
    arm = read_calibration_file(KEPT)
    found = arm.predict(np.full((1, 6), 0.3))[0, 0]
    np.testing.assert_allclose(
        found, [1.7884937849591682, 0.757500424602322, 0.31317670526812225], rtol=1e-12
    )
    entries = json.loads(KEPT.read_text())["parameters"]
    for name, estimate in arm.estimates.items():
        sigma = entries[name]["sigma"]
        assert (sigma is None) == (estimate.status == "fixed") == (estimate.interval is None)
        if sigma is not None:
            assert np.ptp(estimate.interval) == pytest.approx(2.0 * 1.959964 * sigma, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema=3), "unknown schema 3"),
        (lambda d: d.update(kind="other"), "kind: expected kinematic calibration"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d.pop("noise"), "noise missing"),
        (lambda d: d["parameters"].pop("SMR_1.x"), "missing SMR_1.x"),
        (
            lambda d: d["parameters"].update(magic={"value": 1, "unit": "m", "group": "gain"}),
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
