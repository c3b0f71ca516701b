"""A joint with a light rotor that carries a link, exported into a model with steps of 2 ms."""

from dataclasses import replace

import pytest
from pendulums import mujoco, parameters_of, xml_of

from stribeck.errors import ConfigError
from stribeck.exports.mjcf import export_onto, snippet
from stribeck.exports.mjcf_joint import exported
from stribeck.exports.task import JointServo
from stribeck.model.joint import Servo
from stribeck.model.log import Setup

M1 = parameters_of("xl330", "m1")
LIGHT = Servo(replace(M1, values={**M1.values, "armature": 1e-6}), 400.0, supply_voltage=5.0)


def test_the_inertia_of_the_link_counts(tmp_path):
    """What happened: refused because of the bare shaft, no joint named. What must happen: a model is written that stays stable."""
    model = tmp_path / "robot.xml"
    model.write_text(xml_of([Setup(0.2, 0.1, 0.0, 5.0, 400.0)], 0.002))
    text, _ = export_onto(model, [JointServo("joint0", LIGHT)])
    written = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(written)
    state.ctrl[0] = 0.5
    mujoco.mj_step(written, state, 500)
    assert state.qpos[0] == pytest.approx(0.5, abs=0.2)
    assert abs(state.qvel[0]) < 0.1


def test_a_bare_shaft_is_refused_by_its_name():
    """A file to include knows no link: the line names the joint and the longest step."""
    longest = exported(LIGHT).longest_step()
    assert longest < 0.002
    with pytest.raises(ConfigError, match=f"joint 'knee'.*{longest:.3g} s"):
        snippet([JointServo("knee", LIGHT)], 0.002)
