"""The firmware's gain 16 was taken for 16 N m/rad where a file states the stiffness: advice left joints alone that rest far from their goals."""

import pytest

from helpers import REPOSITORY
from stribeck.advise.advice import AdviceSettings, advise
from stribeck.cli.main import main
from stribeck.files.drives import read_drives

SO101 = REPOSITORY / "config/library/so101.json"


@pytest.mark.ci
def test_advice_tells_gains_in_the_numbers_of_the_servo():
    """Errors and dead band are those of the recordings; gains keep their ratio to the present one."""
    drive = read_drives(SO101).joints["shoulder_lift"]
    stiffness = drive.gains.kp
    plain = advise("shoulder_lift", drive, load=0.5)
    asked = advise("shoulder_lift", drive, load=0.5, settings=AdviceSettings(kp=16.0))
    assert (plain.kp, asked.kp) == (stiffness, 16.0)
    assert asked.dead_band == plain.dead_band
    assert asked.error == plain.error
    for name in ("sufficient", "hunts"):
        numbers, before = getattr(asked, name), getattr(plain, name)
        assert numbers.value / 16.0 == pytest.approx(before.value / stiffness)
        assert numbers.upper / 16.0 == pytest.approx(before.upper / stiffness)


def test_an_export_says_that_a_gain_replaces_the_stiffness(tmp_path, capsys):
    """One warning a joint, with both numbers and the unit."""
    output = tmp_path / "gains.yaml"
    line = ["export", "--format", "ros2_control", "--params", str(SO101), "--joint", "shoulder_lift"]
    assert main([*line, "--output", str(output), "--kp", "16"]) == 0
    assert "--kp 16 replaces the gain" in capsys.readouterr().err
    assert main([*line, "--output", str(output)]) == 0
    assert "replaces" not in capsys.readouterr().err
