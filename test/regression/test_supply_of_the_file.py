"""The supply voltage of a fit travels with its file: nothing takes the nominal one of the family in silence.

Regression: goal offsets began with the nominal voltage of the family although the file stated another, so that a servo at 7.4 V of a family
for 12 V got 0.6 of the offset. Expected: exports and compensation have the voltage of the file.
"""

from dataclasses import replace

import numpy as np
import pytest
import yaml

import stribeck as sb
from helpers import published
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, write_drives
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.provenance import Provenance, Spread


@pytest.fixture
def path(tmp_path):
    """A servo of the 12 V version that was identified at 7.4 V."""
    actuator = load_actuator("sts3215_12v")
    drive = Drive(actuator, law_named("m1"), {**published("sts3215", "m1"), "q_offset": 0.0})
    drive = replace(drive, provenance=Provenance(supply_voltage=Spread(nominal=7.4)))
    write_drives(tmp_path / "p.json", Drives({"joint": drive}, provenance=drive.provenance))
    return tmp_path / "p.json"


def test_a_file_that_records_7_4_v_exports_7_4_v(path, tmp_path):
    """Without an option; 12 V is only what the family is for."""
    words = ["export", "--format", "ros2_control", "--params", str(path), "--kp", "16"]
    assert main([*words, "--output", str(tmp_path / "out.yaml")]) == 0
    assert "supply_voltage: 7.4" in yaml.dump(yaml.safe_load((tmp_path / "out.yaml").read_text()))


def test_goals_are_offset_for_the_voltage_of_the_file(path):
    """The offset at 7.4 V is that of telemetry of 7.4 V, not that of 12 V."""

    def offset(volts):
        loop = sb.Compensator(path, p_gain=16)
        if volts:
            loop.telemetry("joint", voltage=volts)
        for k in range(400):
            t = 0.005 * k
            goal = loop.goal([0.2 * t], [0.2 * t + 0.01], t)
        return goal[0] - 0.2 * t - 0.01

    assert offset(None) == pytest.approx(offset(7.4), rel=1e-9)
    assert abs(offset(None)) > 1.3 * abs(offset(12.0))
    assert np.isfinite(offset(None))
