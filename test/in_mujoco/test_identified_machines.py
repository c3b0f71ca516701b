"""From recordings of machines to compensation, report and MJCF, by the file that the identification wrote."""

import sys

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")

import mujoco

import stribeck as sb
from helpers import DATA, REPOSITORY
from stribeck.cli.main import main
from stribeck.files.drives import read_drives
from stribeck.identify.robot.tree import load_tree

sys.path.insert(0, str(REPOSITORY / "examples" / "go2"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

FURUTA = """
<mujoco>
  <option timestep="0.0005" integrator="implicitfast"/>
  <worldbody>
    <body>
      <joint name="shoulder" axis="0 0 1"/>
      <inertial pos="0.05415 0 0" mass="0.0405" diaginertia="1e-5 {arm_inertia} {arm_inertia}"/>
      <body pos="0.0935 0 0">
        <joint name="elbow" axis="1 0 0" damping="{pendulum_viscous}"/>
        <inertial pos="0 0 -0.0966" mass="0.0098" diaginertia="{pendulum_inertia} {pendulum_inertia} 2e-7"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
"""The pendulum of config/mechanisms/furuta_motor.yaml."""


def stribeck(*words):
    assert main([str(word) for word in words]) == 0


def reported_and_exported(folder, file, model, *more):
    """A report on the file, and the model with its drives; the file stays as it is."""
    content = file.read_bytes()
    page, target = folder / "report.html", folder / "identified.xml"
    stribeck("evaluate", "--params", file, "--report", page)
    stribeck("export", "--format", "mjcf", "--params", file, "--model", model, "--output", target, *more)
    assert file.read_bytes() == content
    drives, text = read_drives(file), page.read_text()
    made = load_tree(target).model  # meshes of the robot may be missing
    for name, drive in drives.joints.items():
        assert name in text
        dof = made.joint(name).dofadr[0]
        assert made.dof_frictionloss[dof] == pytest.approx(drive.values["friction_base"], rel=0.02)


def test_a_go2(tmp_path):
    """One run of a hung robot: in a simulation with 0.6 to 1.4 times the friction every joint follows more closely."""
    import compensate_go2

    folder = DATA / "go2"
    if not folder.is_dir():
        pytest.skip("needs the recordings of the Go2")
    model, file = folder / "go2.xml", tmp_path / "out" / "robot.json"
    words = ("--model", model, "--output", file.parent, "--quiet")
    stribeck("identify", "robot", folder / "rx_run0.npz", *words)
    assert compensate_go2.main(model, file) < 0.6
    reported_and_exported(tmp_path, file, model)


def followed(model, kp, kd, compensator=None):
    """Root mean square of the arm's error [rad], and the largest torque of friction [N m]."""
    data, rng, errors, torque, most = mujoco.MjData(model), np.random.default_rng(0), [], 0.0, 0.0
    for k in range(20_000):
        t = 0.0005 * k
        goal, rate = 0.8 * np.sin(3.0 * t), 2.4 * np.cos(3.0 * t)
        if k % 4 == 0:
            q, qd = data.qpos[0] + 1e-4 * rng.normal(), data.qvel[0] + 5e-3 * rng.normal()
            torque = kp * (goal - q) + kd * (rate - qd)
            if compensator is not None:
                added = compensator.torque([q], [qd], q_goal=[goal], qd_goal=[rate], t=t)[0]
                torque, most = torque + added, max(most, abs(added))
        data.qfrc_applied[0] = torque
        mujoco.mj_step(model, data)
        errors.append(goal - data.qpos[0])
    return float(np.sqrt(np.mean(np.square(errors[10_000:])))), most


def test_a_furuta_pendulum(tmp_path):
    """Steps of its motor: with 0.7 and 1.4 times the friction of the file the arm follows more closely."""
    folder = DATA / "furuta_motor"
    if not folder.is_dir():
        pytest.skip("needs the recordings of the Furuta pendulum")
    file, model = tmp_path / "P.json", tmp_path / "furuta.xml"
    runs = [folder / "step_response_2V.csv"]
    stribeck("identify", "mechanism", *runs, "--mechanism", "furuta_motor", "--output", file, "--quiet")
    drives = read_drives(file)
    values = {name: one.value for name, one in drives.machine.estimates.items()}
    model.write_text(FURUTA.format(**values))
    plant, friction = mujoco.MjModel.from_xml_path(str(model)), drives.joints["shoulder"].values
    for factor in (0.7, 1.4):
        plant.dof_frictionloss[0] = factor * friction["friction_base"]
        plant.dof_damping[0] = factor * friction["friction_viscous"]
        plain, _ = followed(plant, 0.2, 0.01)
        better, most = followed(plant, 0.2, 0.01, sb.Compensator(file, max_torque=0.1))
        print(f"friction x {factor}: {1e3 * plain:.2f} -> {1e3 * better:.2f} mrad, at most {most:.4f} N m")
        assert better < 0.7 * plain
    reported_and_exported(tmp_path, file, model, "--kp", 0.2)
