"""Cost of the controller in MuJoCo: per step and joint, beside MuJoCo's own step."""

from __future__ import annotations

import time

import mujoco
import numpy as np

from stribeck.core.friction import law_named
from stribeck.io.actuators import load_actuator
from stribeck.io.parameter_file import ParameterFile
from stribeck.mujoco import Controller, Servo

CASES = (("xl330", "m1"), ("xl330", "m6"), ("erob80_50", "m6"))
JOINTS = (1, 7)
STEPS, BLOCKS = 1000, 15


def measure() -> dict[str, dict[str, float]]:
    """All cases; figures by ``<servo>_<law>_<joints>``."""
    print("\ncontroller in MuJoCo, chains of pendulums: median and best of blocks of 1000 steps")
    print(f"{'servo, law, joints':>22} {'per step and joint [us]':>26} {'mj_step [us]':>14}")
    return {
        f"{servo}_{law}_{joints}": one_case(servo, law, joints) for servo, law in CASES for joints in JOINTS
    }


def one_case(name: str, law: str, joints: int) -> dict[str, float]:
    """A chain of equal joints that follow a sine."""
    servo = load_actuator(name)
    parameters = ParameterFile(servo, law_named(law), {"q_offset": 0.0, **servo.published[law]})
    model = mujoco.MjModel.from_xml_string(chain(joints))
    names = [f"joint{k}" for k in range(joints)]
    controller = Controller(model, dict.fromkeys(names, Servo(parameters, 400.0)))
    data = mujoco.MjData(model)
    ours, theirs = [], []
    for _ in range(BLOCKS):
        own = step = 0.0
        for _ in range(STEPS):
            goals = [0.5 * np.sin(3.0 * data.time)] * joints
            begin = time.perf_counter()
            controller.update(data, goals)
            middle = time.perf_counter()
            mujoco.mj_step(model, data)
            step += time.perf_counter() - middle
            own += middle - begin
        ours.append(1e6 * own / (STEPS * joints))
        theirs.append(1e6 * step / STEPS)
    found = {"us": float(np.median(ours)), "us_best": min(ours), "mj_step_us": float(np.median(theirs))}
    print(
        f"{f'{name} {law} {joints}':>22} {found['us']:14.1f} {found['us_best']:11.1f} {found['mj_step_us']:14.1f}"
    )
    return found


def chain(joints: int) -> str:
    """Links of 5 cm and 20 g, one below the other."""
    body = ""
    for k in reversed(range(joints)):
        body = (
            f'<body pos="0 0 {-0.05 if k else 0}"><joint name="joint{k}" axis="0 1 0"/>'
            f'<geom size="0.01" mass="0.02" pos="0 0 -0.05" contype="0" conaffinity="0"/>{body}</body>'
        )
    return f"<mujoco><worldbody>{body}</worldbody></mujoco>"


if __name__ == "__main__":
    measure()
