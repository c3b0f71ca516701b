"""A two-joint arm of XL330 servos in MuJoCo, with the friction that was identified and without.

    python examples/mujoco/arm.py [--params m6.json]

prints how far the joints stay behind their goals. Without ``--params`` it takes the published M6 parameters.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.mujoco import Controller, Servo

ARM = """
<mujoco model="two joints">
  <option timestep="0.002" integrator="implicitfast"/>
  <worldbody>
    <body name="upper arm">
      <joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.1" size="0.01" mass="0.03"/>
      <body name="forearm" pos="0 0 -0.1">
        <joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.08" size="0.008" mass="0.02"/>
        <geom type="sphere" pos="0 0 -0.08" size="0.015" mass="0.03"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
GAIN, SUPPLY = 400.0, 5.0


def goals_at(time: float) -> tuple[float, float]:
    """Goals of shoulder and elbow [rad]: slow, with a reversal every second or so."""
    return 0.8 * math.sin(time), 0.6 * math.sin(2.0 * time)


def following_error(parameters: Drive, seconds: float) -> np.ndarray:
    """Mean distance between goal and position of each joint [rad]."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    servo = Servo(parameters, kp=GAIN, supply_voltage=SUPPLY, supply_resistance=0.2)
    controller = Controller(model, {"shoulder": servo, "elbow": servo})
    errors = []
    while data.time < seconds:
        goals = goals_at(data.time)
        controller.update(data, goals)
        mujoco.mj_step(model, data)
        errors.append(np.abs(np.subtract(goals, data.qpos)))
    return np.mean(errors, axis=0)


def main() -> None:
    """Compare the arm with friction and without."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--params", type=Path, help="parameter file")
    parser.add_argument("--seconds", type=float, default=6.0)
    arguments = parser.parse_args()
    servo = load_actuator("xl330")
    parameters = (
        read_drive(arguments.params)
        if arguments.params
        else Drive(servo, law_named("m6"), servo.published["m6"])
    )
    smooth = {name: value for name, value in parameters.values.items() if name not in FRICTION_PARAMETERS}
    frictionless = replace(
        parameters, law=law_named("m1"), values={**smooth, "friction_base": 0.0, "friction_viscous": 0.0}
    )
    for title, chosen in (("identified", parameters), ("without friction", frictionless)):
        shoulder, elbow = 1e3 * following_error(chosen, arguments.seconds)
        print(f"{title}: shoulder {shoulder:.1f} mrad, elbow {elbow:.1f} mrad behind their goals")


if __name__ == "__main__":
    main()
