"""A URDF of three joints, and simulated recordings with known torques."""

from pathlib import Path

import numpy as np

from helpers import DATA
from stribeck.identify.arm.config import FilterSettings, Neighbourhood, Protocol
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.recordings import ArmRecording

EMPS, TX40, UR10E = DATA / "emps", DATA / "tx40", DATA / "ur10e"

JOINTS = ("base", "shoulder", "elbow")
RATE = 500.0
FRICTION = {
    "Ia": [0.3, 0.2, 0.1],
    "friction_viscous": [2.0, 1.5, 0.8],
    "friction_base": [3.0, 2.0, 1.0],
    "torque_offset": [-0.2, 0.1, -0.05],
}
NEAR = Neighbourhood(mass=0.9, com=0.2, inertia=5.0)

LINK = """
  <link name="{name}">
    <inertial>
      <mass value="{mass}"/><origin xyz="{com}" rpy="0 0 0"/>
      <inertia ixx="{xx}" ixy="0.001" ixz="0" iyy="{yy}" iyz="0.002" izz="{zz}"/>
    </inertial>
  </link>
"""
JOINT = """
  <joint name="{name}" type="{kind}">
    <parent link="{parent}"/><child link="{child}"/><origin xyz="{origin}" rpy="0 0 0"/><axis xyz="{axis}"/>
    <limit lower="-3" upper="3" velocity="4" effort="60"/>{more}
  </joint>
"""


def urdf(folder: Path, *, kind: str = "revolute", mass: float = 2.0, more: str = "") -> Path:
    """A URDF of three joints and a tool that is fixed to the last link."""
    links = [
        ("world", 1.0, "0 0 0", 0.01, 0.01, 0.01),
        ("trunk", 6.0, "0.01 0.02 0.1", 0.06, 0.05, 0.04),
        ("upper", 4.0, "0.15 0.01 0.02", 0.02, 0.08, 0.07),
        ("lower", mass, "0.1 -0.02 0.01", 0.01, 0.03, 0.025),
        ("tool", 0.3, "0.02 0 0.01", 0.005, 0.006, 0.004),
    ]
    text = "".join(LINK.format(name=n, mass=m, com=c, xx=x, yy=y, zz=z) for n, m, c, x, y, z in links)
    joints = [
        ("base", kind, "world", "trunk", "0 0 0.2", "0 0 1", more),
        ("shoulder", kind, "trunk", "upper", "0.05 0 0.2", "0 1 0", ""),
        ("elbow", kind, "upper", "lower", "0.3 0 0", "0 1 0", ""),
        ("flange", "fixed", "lower", "tool", "0.2 0 0", "0 0 1", ""),
    ]
    for name, kind_, parent, child, origin, axis, extra in joints:
        text += JOINT.format(
            name=name, kind=kind_, parent=parent, child=child, origin=origin, axis=axis, more=extra
        )
    path = folder / "arm.urdf"
    path.write_text(f'<robot name="arm">{text}</robot>')
    return path


def arm(folder: Path):
    return load_arm(urdf(folder), JOINTS)


def protocol(**changes) -> Protocol:
    """Without filters, every row."""
    plain = {
        "rows": {},
        "resample": None,
        "position_filter": None,
        "effort_filter": None,
        "every": 5,
        "drop": 0,
        "edge_order": 2,
        "moving": 0.05,
        "rest": 1e-4,
        "fit": "every_row",
    }
    return Protocol(**(plain | changes))


def low_pass(cutoff: float) -> FilterSettings:
    return FilterSettings(order=4, cutoff=cutoff, padding=None)


def motion(seconds: float = 10.0, joints: int = 3, seed: int = 0):
    """Time, positions, velocities and accelerations of a smooth motion."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 1.0 / RATE)
    pulsation = 2.0 * np.pi * np.arange(1, 6) / 10.0
    a = rng.normal(0.0, 0.5, (2, 5, joints)) / np.arange(1, 6)[None, :, None] ** 0.5
    phase = time[:, None] * pulsation
    s, c = np.sin(phase), np.cos(phase)
    position = s @ a[0] + c @ a[1]
    velocity = (c * pulsation) @ a[0] - (s * pulsation) @ a[1]
    acceleration = -(s * pulsation**2) @ a[0] - (c * pulsation**2) @ a[1]
    return time, position, velocity, acceleration


def linear_friction(velocity, acceleration, friction=FRICTION):
    """Torque of rotors, viscous and Coulomb friction, and offsets."""
    found = acceleration * friction["Ia"] + velocity * friction["friction_viscous"]
    return found + np.sign(velocity) * friction["friction_base"] - np.asarray(friction["torque_offset"])


def recording(
    model, *, noise: float = 0.0, seed: int = 0, friction=linear_friction, name: str = "run", seconds=10.0
):
    """A recording of a motion whose velocities are known."""
    time, position, velocity, acceleration = motion(seconds, len(model), seed)
    torque = model.inverse_dynamics(position, velocity, acceleration) + friction(velocity, acceleration)
    torque = torque + noise * np.random.default_rng(seed + 1).normal(size=torque.shape)
    return ArmRecording(name, model.joints, time, position, velocity, torque)


ROBOT = """\
schema: 1
name: little
urdf: arm.urdf
joints: [base, shoulder, elbow]
identification:
  recording:
    format: csv
    time: {column: 0}
    position: {columns: [1, 4]}
    velocity: {columns: [4, 7]}
    effort: {columns: [7, 10]}
  protocol: {moving: 0.05, every: 10, position_filter: {order: 4, cutoff: 50}, effort_filter: {order: 4, cutoff: 50}}
"""
"""Machine file of recordings written by :func:`save`."""


def save(run: ArmRecording, path: Path) -> None:
    """Write a recording as a table."""
    np.savetxt(path, np.column_stack([run.time, run.position, run.velocity, run.effort]), delimiter=",")


def saved_arm(folder: Path) -> Path:
    """A machine file, a URDF whose last link is too heavy, and two runs of the true arm; returns the machine file."""
    true = arm(folder)
    save(recording(true, noise=0.1), folder / "train.csv")
    save(recording(true, noise=0.1, seed=5, name="other"), folder / "other.csv")
    urdf(folder, mass=2.6)
    path = folder / "robot.yaml"
    path.write_text(ROBOT)
    return path
