"""Play of gears before the encoder, against motor and link as two inertias with stiff damped contacts."""

from pathlib import Path

import numpy as np
import pytest

from stribeck.identify.robot.forward import held_goals, simulate_robot
from stribeck.identify.robot.identify import identify_robot
from stribeck.identify.robot.recordings import RobotRun
from stribeck.identify.robot.rollout import DRIVE
from stribeck.identify.robot.tree import load_tree
from stribeck.model.law import LAWS

MODEL = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="arm" euler="0 {tilt} 0">
      <inertial pos="0.1 0 0" mass="0.3" diaginertia="0.001 0.001 0.001"/>
      <joint name="pan" axis="0 0 1"/>
    </body>
  </worldbody>
</mujoco>
"""
TRUE = {"stiffness": 15.0, "armature": 0.025, "friction_base": 0.1, "friction_viscous": 0.5}
DT, BACKLASH = 0.005, 0.01


def tree_of(folder, tilt):
    """The arm, whose axis leans by an angle [rad]."""
    path = folder / "arm.xml"
    path.write_text(MODEL.format(tilt=tilt))
    return load_tree(path)


def goals(rows, phase):
    """Two sines [rad]."""
    times = np.arange(rows) * DT
    return 0.4 * np.sin(2.0 * times + phase) + 0.1 * np.sin(9.0 * times + 2.0 * phase)


def moved(goal, tilt, backlash, fine=200):
    """Measured positions of the link (T,) [rad]."""
    step, inertia, weight, half = DT / fine, 0.004, 0.3 * 9.80665 * 0.1 * np.sin(tilt), 0.5 * backlash
    angle = gears = goal[0]
    speed = velocity = 0.0
    positions = []
    for wanted in np.repeat(goal, fine):
        positions.append(angle)
        gap = gears - angle
        pressed = gap - min(max(gap, -half), half)
        push = 2e4 * pressed + 12.0 * (speed - velocity)
        push = push if push * pressed > 0.0 else 0.0
        velocity += step * (push - weight * np.sin(angle)) / inertia
        angle += step * velocity
        momentum = TRUE["armature"] * speed + step * (TRUE["stiffness"] * (wanted - positions[-1]) - push)
        limit = step * TRUE["friction_base"]
        momentum -= min(max(momentum, -limit), limit)
        speed = momentum / (TRUE["armature"] + step * TRUE["friction_viscous"])
        gears += step * speed
    return np.array(positions[::fine])


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("tilt", [0.0, 0.2])
def test_a_link_behind_backlash_moves_as_behind_stiff_contacts(tmp_path, tilt):
    """With and without gravity: within a fifth of what the backlash changes."""
    tree, goal, steps = tree_of(tmp_path, tilt), goals(600, 0.0), 8
    p = {name: np.zeros(1) for name in DRIVE} | {name: np.array([value]) for name, value in TRUE.items()}
    p["limit"] = np.array([1e4])
    held = held_goals(goal[:, None], np.zeros(1), steps, DT)
    exact = moved(goal, tilt, BACKLASH)

    def error(backlash):
        with_it = p | {"backlash": np.array([backlash])}
        found = simulate_robot(tree, LAWS["m1"], with_it, held, goal[:1], DT / steps, steps)
        return np.sqrt(np.mean((found[:, 0] - exact) ** 2))

    assert error(0.0) > 2e-3
    assert error(BACKLASH) < 0.2 * error(0.0)


@pytest.mark.slow
@pytest.mark.parametrize("backlash", [0.0, BACKLASH])
def test_backlash_is_found_where_there_is_some(tmp_path, backlash):
    """Within 10 %, beside the other parameters; without backlash none is found."""
    tree, runs = tree_of(tmp_path, 0.2), []
    for k in range(4):
        goal = goals(1200, 0.7 * k)
        position = np.round(moved(goal, 0.2, backlash) / 1.5e-3) * 1.5e-3
        runs.append(RobotRun(Path(f"run{k}"), DT, goal[:, None], position[:, None], None, None))
    found = identify_robot(tree, runs, backlash=True).estimates["pan"]
    assert found["armature"].value == pytest.approx(TRUE["armature"], rel=0.05)
    assert found["stiffness"].value == pytest.approx(TRUE["stiffness"], rel=0.02)
    if backlash:
        assert found["backlash"].value == pytest.approx(backlash, rel=0.1)
    else:
        assert "backlash" not in found
