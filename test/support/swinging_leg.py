"""A leg of two links in MuJoCo with its own servos, dry friction and delay: recordings for identify-robot."""

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")

TRUE = {
    "hip": {"armature": 0.02, "friction_base": 0.3, "friction_viscous": 0.1},
    "knee": {"armature": 0.03, "friction_base": 0.5, "friction_viscous": 0.2},
}
KP, KD, DELAY, DT, INNER = 30.0, 1.0, 0.012, 0.005, 5

MODEL = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="base">
      <freejoint/>
      <inertial pos="0 0 0" mass="5" diaginertia="0.1 0.1 0.1"/>
      <geom type="mesh" mesh="trunk"/>
      <body name="thigh">
        <inertial pos="0 0 -0.1" mass="1.2" diaginertia="0.006 0.006 0.001"/>
        <joint name="hip" axis="0 1 0" range="-2 2"/>
        <body name="shank" pos="0 0 -0.2">
          <inertial pos="0 0 -0.12" mass="0.4" diaginertia="0.003 0.003 0.0003"/>
          <joint name="knee" axis="0 1 0" range="-2.5 2.5"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><position joint="hip" kp="500"/></actuator>
  <asset><mesh name="trunk" file="missing.obj"/></asset>
</mujoco>
"""
"""Masses and joints; the mesh is missing, as it often is, and the servo of the file is not the one that moves."""


def write_model(folder):
    """The model as a file without the drives."""
    path = folder / "leg.xml"
    path.write_text(MODEL)
    return path


def goals(rows, phase):
    """Two sums of sines that speed up, held for two rows each."""
    t = np.arange(rows) * DT
    hip = 0.4 * np.sin(1.5 * t + 0.15 * t**2 + phase)
    knee = 0.6 * np.sin(2.1 * t + 0.2 * t**2 + 2.0 * phase) + 0.2
    return np.repeat(np.stack([hip, knee], axis=1)[::2], 2, axis=0)[:rows]


def recorded(folder, name, phase, *, seconds=8.0, late=0.0, inner=INNER, hard=False):
    """A run as npz: MuJoCo's own steps, ``inner`` per row of 5 ms, ``frictionloss``, ``damping`` and position servos.

    :param hard: whether friction is dry at any velocity; with MuJoCo's usual ``solref`` it is viscous below some 0.1 rad/s.
    """
    text = MODEL.replace("<freejoint/>", "").replace('<geom type="mesh" mesh="trunk"/>', "")
    model = mujoco.MjModel.from_xml_string(text.split("<actuator>")[0] + "</mujoco>")
    model.opt.timestep = DT / inner
    for joint, (_, p) in enumerate(TRUE.items()):
        model.dof_armature[joint] = p["armature"]
        model.dof_frictionloss[joint] = p["friction_base"]
        model.dof_damping[joint] = p["friction_viscous"] + KD
    model.dof_solimp[:] = (0.999, 0.999, 0.001, 0.5, 2.0)
    if hard:
        model.dof_solimp[:] = (0.9999, 0.9999, 0.001, 0.5, 2.0)
        model.dof_solref[:] = (2.0 * model.opt.timestep, 1.0)
    rows = round(seconds / DT)
    wanted, data = goals(rows, phase), mujoco.MjData(model)
    data.qpos[:] = wanted[0]
    positions = np.empty((rows, 2))
    for k in range(rows):
        positions[k] = data.qpos
        for step in range(inner):
            row = max(int(np.floor((k * DT + step * model.opt.timestep - DELAY - late) / DT + 1e-9)), 0)
            data.qfrc_applied[:] = KP * (wanted[row] - data.qpos)
            mujoco.mj_step(model, data)
    path = folder / f"{name}.npz"
    np.savez(
        path,
        time=np.arange(rows) * DT,
        dof_pos=np.round(positions / 3e-5) * 3e-5,
        des_dof_pos=wanted,
        kp=np.full(2, KP),
        kd=np.full(2, KD),
    )
    return path
