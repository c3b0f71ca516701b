"""Arms of three and seven joints, and motions within their limits."""

from functools import cache

import numpy as np
import pytest

from stribeck.files.robots import example_robots
from stribeck.identify.arm.model import load_arm
from stribeck.model.law import LAWS

PERIOD = 10.0
"""Of the motions [s]."""

LINK = """
<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>
  <inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """
<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>
  <axis xyz="{axis}"/><limit lower="-2.5" upper="2.5" velocity="3" effort="{effort}"/></joint>"""


def write_three_joint_urdf(folder, kind="revolute"):
    """Waist, shoulder and elbow; every link has a lever, and products of inertia."""
    parts = ["<link name='base'/>"]
    for k, (axis, at, com, mass) in enumerate(
        (
            ("0 0 1", "0 0 0.1", "0.05 0.04 0.1", 4.0),
            ("0 1 0", "0 0 0.2", "0.2 0.02 -0.03", 3.0),
            ("0 1 0", "0.4 0 0", "0.15 -0.02 0.04", 2.0),
        )
    ):
        inertia = {"xx": 0.02 * mass, "yy": 0.025 * mass, "zz": 0.015 * mass, "xy": 0.002 * mass}
        parts.append(LINK.format(name=f"link_{k}", com=com, mass=mass, **inertia))
        parent = "base" if k == 0 else f"link_{k - 1}"
        parts.append(
            JOINT.format(
                name=f"joint_{k}",
                kind=kind,
                parent=parent,
                child=f"link_{k}",
                at=at,
                axis=axis,
                effort=(40, 40, 15)[k],
            )
        )
    path = folder / "three.urdf"
    path.write_text(f"<robot name='three'>{''.join(parts)}</robot>")
    return path


def three_joint_arm(folder, kind="revolute"):
    """The arm of :func:`write_three_joint_urdf`."""
    return load_arm(write_three_joint_urdf(folder, kind))


@cache
def panda():
    """The seven joints of a Panda, its fingers locked."""
    found = example_robots("panda_description/urdf/panda.urdf")
    if not found:
        pytest.skip("example-robot-data is not installed: pip install example-robot-data")
    return load_arm(found[0], [f"panda_joint{k}" for k in range(1, 8)])


def fourier_motion(arm, seed, harmonics=5, reach=0.9, speed=0.8):
    """A random periodic motion within shares of the limits of position and velocity."""
    rng = np.random.default_rng(seed)
    frequencies = 2.0 * np.pi / PERIOD * np.arange(1, harmonics + 1)
    sines, cosines = rng.normal(size=(2, harmonics, len(arm)))
    lower, upper = (np.clip(limit, -np.pi, np.pi) for limit in arm.position_limits)

    def plain(time):
        phase = np.outer(time, frequencies)
        sine, cosine = np.sin(phase), np.cos(phase)
        return (
            (sine / frequencies) @ sines - (cosine / frequencies) @ cosines,
            cosine @ sines + sine @ cosines,
            (cosine * frequencies) @ cosines - (sine * frequencies) @ sines,
        )

    position, velocity, _ = plain(np.linspace(0.0, PERIOD, 1000))
    middle, half = 0.5 * (position.max(0) + position.min(0)), 0.5 * np.ptp(position, axis=0)
    size = np.minimum(
        0.5 * reach * (upper - lower) / half, speed * arm.velocity_limits / np.abs(velocity).max(0)
    )

    def motion(time):
        q, v, a = plain(time)
        return 0.5 * (lower + upper) + size * (q - middle), size * v, size * a

    return motion


def coulomb_viscous(arm, share=0.02):
    """Law and parameters of friction that is a share of the effort limits."""
    size = share * arm.effort_limits
    return {"law": LAWS["m1"], "friction": {"friction_base": size, "friction_viscous": size}}
