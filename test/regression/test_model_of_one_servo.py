"""``stribeck advise`` ignored the model given for a file of a servo, which names no joint, and stated no sag."""

import json

import pytest

from helpers import REPOSITORY, published
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import write_drive
from stribeck.model.joint import Drive
from stribeck.model.law import law_named

pytest.importorskip("pinocchio", reason="models need Pinocchio: pip install '.[arm]'")

URDF = REPOSITORY / "examples" / "position_servo" / "bench.urdf"


@pytest.fixture
def path(tmp_path):
    """A file as `identify servo` writes it: one drive without a name."""
    found = tmp_path / "servo.json"
    write_drive(found, Drive(load_actuator("xl330"), law_named("m4"), published("xl330", "m4")))
    return found


def test_the_joint_bears_the_weight_of_the_model(path, tmp_path, capsys):
    """0.12 kg at 91.7 mm: 0.108 N m at a right angle, and a sag of that over the stiffness."""
    output = tmp_path / "advice.json"
    words = [
        "--params",
        str(path),
        "--model",
        str(URDF),
        "--kp",
        "400",
        "--supply",
        "5",
        "--json",
        str(output),
    ]
    assert main(["advise", *words]) == 0
    (one,) = json.loads(output.read_text())["joints"].values()
    assert abs(one["load"]) == pytest.approx(0.12 * 0.0917 * 9.80665, rel=2e-3)
    assert abs(one["sag"]["value"]) == pytest.approx(abs(one["load"]) / one["stiffness"], rel=1e-6)
    assert "no robot model" not in capsys.readouterr().out


def test_a_model_of_several_joints_is_refused(path, tmp_path, capsys):
    """Which of them the servo drives is not known."""
    arm = tmp_path / "arm.urdf"
    begin, joint = URDF.read_text().replace("</robot>", "").split("  <joint", 1)
    rod = begin[begin.index('  <link name="rod">') :]
    second = joint.replace('"joint"', '"second"', 1).replace('"rod"', '"tip"').replace('"base"', '"rod"')
    arm.write_text(f"{begin}{rod.replace('rod', 'tip', 1)}  <joint{joint}  <joint{second}</robot>")
    assert main(["advise", "--params", str(path), "--model", str(arm)]) == 1
    said = capsys.readouterr().err
    assert "names no joint" in said
    assert "joint, second" in said
