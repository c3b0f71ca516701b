"""The example that puts identified drives into plain MJCF."""

import json
import sys

import numpy as np
import pytest

from helpers import REPOSITORY

pytest.importorskip("mujoco")
sys.path.insert(0, str(REPOSITORY / "examples"))

LEG = """<mujoco><worldbody><body name="base"><freejoint/><geom size="0.1"/>
<body pos="0 0 -0.1"><joint name="hip" axis="0 1 0"/><inertial mass="1" pos="0 0 -0.2" diaginertia="0.01 0.01 0.01"/></body>
</body></worldbody><actuator><motor joint="hip" ctrlrange="-20 20"/></actuator></mujoco>"""


def test_a_leg_goes_to_its_goal_less_its_bias(tmp_path):
    """The written model needs no Stribeck and has the drive of the file; without friction it ends where the spring is at rest."""
    from robot_in_mujoco import main

    (tmp_path / "leg.xml").write_text(LEG)
    drive = {"armature": 0.05, "bias": 0.1, "delay": 0.004, "friction_base": 0.0, "friction_viscous": 0.2}
    fit = {
        "base": {},
        "per_joint": {"hip": {"parameters": {name: {"value": v} for name, v in drive.items()}}},
    }
    (tmp_path / "robot.json").write_text(json.dumps(fit))
    time = 0.005 * np.arange(800)
    goal, rest = np.full((800, 1), 0.4), 0.0
    for _ in range(50):
        rest = 0.3 - 9.80665 * 0.2 * np.sin(rest) / 100.0
    motion = {"time": time, "dof_pos": np.full((800, 1), rest), "des_dof_pos": goal}
    np.savez(tmp_path / "run.npz", **motion, kp=np.array([100.0]), kd=np.array([2.0]))
    error = main(tmp_path / "leg.xml", tmp_path / "robot.json", tmp_path / "run.npz", tmp_path / "out")
    assert error < 1e-3
    text = (tmp_path / "out" / "identified.xml").read_text()
    assert 'armature="0.05"' in text
    assert 'frictionloss="0"' in text
    assert (tmp_path / "out" / "motion.png").stat().st_size > 10_000
