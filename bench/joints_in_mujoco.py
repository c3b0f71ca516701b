"""Cost of the controller in MuJoCo: per step and joint, beside MuJoCo's own step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import mujoco
import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.mujoco import Controller, Servo

CASES = (("xl330", "m1"), ("xl330", "m6"), ("erob80_50", "m6"))
JOINTS = (1, 7)
STEPS, BLOCKS = 1000, 15


def measure() -> dict[str, dict[str, float]]:
    """All cases; figures by ``<servo>_<law>_<joints>``."""
    print(
        "\ncontroller in MuJoCo, chains of pendulums: processor time, median and best of blocks of 1000 steps"
    )
    print(f"{'servo, law, joints':>22} {'per step and joint [us]':>26} {'mj_step [us]':>14}")
    return {
        f"{servo}_{law}_{joints}": one_case(servo, law, joints) for servo, law in CASES for joints in JOINTS
    }


def one_case(name: str, law: str, joints: int) -> dict[str, float]:
    """A chain of equal joints that follow a sine."""
    servo = load_actuator(name)
    parameters = Drive(servo, law_named(law), {"q_offset": 0.0, **servo.published[law]})
    model = mujoco.MjModel.from_xml_string(chain(joints))
    names = [f"joint{k}" for k in range(joints)]
    controller = Controller(model, dict.fromkeys(names, Servo(parameters, 400.0)))
    data = mujoco.MjData(model)
    goals = [[0.5 * math.sin(0.006 * k)] * joints for k in range(STEPS)]

    def with_controller() -> None:
        for goal in goals:
            controller.update(data, goal)
            mujoco.mj_step(model, data)

    def alone() -> None:
        for _ in goals:
            mujoco.mj_step(model, data)

    both, step = (np.array([seconds(run) for _ in range(BLOCKS)]) / STEPS for run in (with_controller, alone))
    ours = 1e6 * (both - np.median(step)) / joints
    found = {
        "us": float(np.median(ours)),
        "us_best": float(np.min(ours)),
        "mj_step_us": 1e6 * float(np.median(step)),
    }
    print(
        f"{f'{name} {law} {joints}':>22} {found['us']:14.1f} {found['us_best']:11.1f} {found['mj_step_us']:14.1f}"
    )
    return found


def seconds(run: Callable[[], None]) -> float:
    """Processor time of this thread, which other work on the machine does not add to."""
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


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
