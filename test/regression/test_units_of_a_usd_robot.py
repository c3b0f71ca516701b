"""What happened: an exported USD layer left axis and units to the robot's stage below it, but a stage takes them from the layer that is opened
alone: opened itself, the robot lay on its side (Y up) and was measured in centimetres. What must happen: they are those of the robot."""

import pytest

from bam_made import servo_of
from stribeck.exports.projection import plain
from stribeck.exports.registry import FORMATS
from stribeck.exports.task import ExportTask, JointServo
from stribeck.model.joint import Servo

STAGE = """#usda 1.0
(
    defaultPrim = "arm"
    {}
)
def Xform "arm"
{{
    def PhysicsRevoluteJoint "elbow"
    {{
    }}
}}
"""

UNITS = {"upAxis": "Z", "metersPerUnit": 1.0, "kilogramsPerUnit": 0.001}


@pytest.mark.parametrize("form", ["usd", "usd-bam"])
@pytest.mark.parametrize("given", [UNITS, {"upAxis": "Z"}, {}], ids=["all", "axis", "none"])
def test_axis_and_units_are_those_of_the_robot(tmp_path, capfd, form, given):
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed: pip install '.[export]'")
    robot, output = tmp_path / "robot.usda", tmp_path / "out.usda"
    lines = [
        f'{name} = "{value}"' if name == "upAxis" else f"{name} = {value}" for name, value in given.items()
    ]
    robot.write_text(STAGE.format("\n    ".join(lines)))
    servo = Servo(plain(servo_of("m1"), FORMATS[form]), 400.0, supply_voltage=7.4)
    task = ExportTask((JointServo("elbow", servo),), output, robot)
    output.write_text(FORMATS[form].write(task).files[output])
    assert capfd.readouterr().err == ""  # nor does the library warn of the robot, which is there
    stage = usd.Stage.Open(str(output))
    assert {name: stage.GetMetadata(name) for name in UNITS if stage.HasAuthoredMetadata(name)} == given
