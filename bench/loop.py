"""Time of ``Compensator.torque`` and ``goal`` of the Python interface, as a loop without ROS calls them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import stribeck as sb
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, write_drives
from stribeck.model.joint import Drive
from stribeck.model.law import law_named

LAW, PERIOD, CYCLES = "m6", 0.001, 5000
CASES = (
    ("torque", 1, False),
    ("goal", 1, False),
    ("torque", 7, False),
    ("goal", 7, False),
    ("torque", 7, True),
)
"""Method, number of joints, and whether the dynamics of the arm are known, with which friction is learnt."""


def measure() -> dict[str, dict[str, float]]:
    """Quantiles of the time of a call [µs], by case."""
    figures = {}
    print(f"{'case':24s} {'p50':>8s} {'p99':>8s}  us")
    for output, joints, known in CASES:
        times = 1e6 * np.array(seconds_of(joints, output, known))
        middle, high = (float(np.quantile(times, share)) for share in (0.5, 0.99))
        name = f"{output}, {joints} joints{', URDF' if known else ''}"
        figures[name] = {"p50_us": middle, "p99_us": high}
        print(f"{name:24s} {middle:8.1f} {high:8.1f}", flush=True)
    return figures


def chain(joints: int) -> str:
    """URDF of an arm whose joints turn about y and z in turn, with links of 50 g."""
    inertia = '<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/>'
    text = '<link name="link_0"/>'
    for k in range(joints):
        axis = "0 1 0" if k % 2 else "0 0 1"
        text += (
            f'<link name="link_{k + 1}"><inertial><origin xyz="0 0 0.05"/><mass value="0.05"/>{inertia}</inertial></link>'
            f'<joint name="joint_{k}" type="continuous"><parent link="link_{k}"/><child link="link_{k + 1}"/>'
            f'<origin xyz="0 0 0.1"/><axis xyz="{axis}"/></joint>'
        )
    return f'<robot name="chain">{text}</robot>'


def seconds_of(joints: int, output: str, known: bool) -> list[float]:
    """Time of each call in a motion with goals, at 1 kHz of the stamps [s]."""
    actuator, law = load_actuator("xl330"), law_named(LAW)
    drive = Drive(actuator, law, {"q_offset": 0.0, **actuator.published[LAW]})
    names = [f"joint_{k}" for k in range(joints)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drives.json"
        write_drives(path, Drives(dict.fromkeys(names, drive)))
        model = Path(folder) / "chain.urdf"
        model.write_text(chain(joints))
        compensator = sb.Compensator(
            path,
            joints=names,
            urdf=model if known else None,
            effort_meaning="motor",
            p_gain=400 if output == "goal" else None,
        )
    phase = np.arange(joints)
    spent = []
    for k in range(CYCLES):
        t = PERIOD * k
        q, qd, goal = (
            0.5 * np.sin(2.0 * t + phase),
            np.cos(2.0 * t + phase),
            0.5 * np.sin(2.0 * t + 0.05 + phase),
        )
        effort = 0.1 * np.sin(t + phase)
        begin = time.perf_counter()
        if output == "goal":
            compensator.goal(q, goal, t)
        else:
            compensator.torque(q, qd, effort=effort, q_goal=goal, qd_goal=qd, t=t)
        spent.append(time.perf_counter() - begin)
    if compensator.doubt is not None:
        raise RuntimeError(compensator.doubt)
    return spent[CYCLES // 5 :]


if __name__ == "__main__":
    measure()
