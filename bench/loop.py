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
JOINTS = (1, 7)


def measure() -> dict[str, dict[str, float]]:
    """Quantiles of the time of a call [µs], by case."""
    figures = {}
    print(f"{'case':24s} {'p50':>8s} {'p99':>8s}  us")
    for joints in JOINTS:
        for output in ("torque", "goal"):
            times = 1e6 * np.array(seconds_of(joints, output))
            middle, high = (float(np.quantile(times, share)) for share in (0.5, 0.99))
            figures[f"{output}, {joints} joints"] = {"p50_us": middle, "p99_us": high}
            print(f"{f'{output}, {joints} joints':24s} {middle:8.1f} {high:8.1f}", flush=True)
    return figures


def seconds_of(joints: int, output: str) -> list[float]:
    """Time of each call in a motion with goals, at 1 kHz of the stamps [s]."""
    actuator, law = load_actuator("xl330"), law_named(LAW)
    drive = Drive(actuator, law, {"q_offset": 0.0, **actuator.published[LAW]})
    names = [f"joint_{k}" for k in range(joints)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drives.json"
        write_drives(path, Drives(dict.fromkeys(names, drive)))
        compensator = sb.Compensator(
            path, joints=names, effort_meaning="motor", p_gain=400 if output == "goal" else None
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
