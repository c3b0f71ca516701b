"""Runs of a pendulum bench in MuJoCo, where the identified servo is simulated by its controller."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.joint import Drive, Servo
from stribeck.model.log import Batch, Setup
from stribeck.model.step import Simulation
from stribeck.mujoco.controller import Controller

JOINT = "joint"

LARGEST_STEP = 0.001
"""Largest time step of MuJoCo [s]; longer ones of the grid are divided."""


def pendulum(setup: Setup, q_offset: float, head: str = "", joint: str = "") -> str:
    r"""MJCF of a bench: a pendulum about the y axis that hangs down at 0, with gravity turned by :math:`\theta_0`.

    :param head: elements before the bodies.
    :param joint: further attributes of the joint.
    """
    mass = setup.mass + setup.arm_mass
    centre = setup.load / mass
    about = max((setup.mass + setup.arm_mass / 3.0) * setup.length**2 - mass * centre**2, 1e-12)
    gravity = f"{STANDARD_GRAVITY * math.sin(q_offset)!r} 0 {-STANDARD_GRAVITY * math.cos(q_offset)!r}"
    return (
        f'<mujoco>{head}<option gravity="{gravity}"/><worldbody><body>'
        f'<joint name="{JOINT}" axis="0 1 0" {joint}/>'
        f'<inertial mass="{mass!r}" pos="0 0 {-centre!r}" diaginertia="{about!r} {about!r} {about!r}"/>'
        "</body></worldbody></mujoco>"
    )


def simulate_in_mujoco(batch: Batch, drive: Drive, reset_period: float | None = None) -> Simulation:
    """Simulate all runs of a batch, from their first measured position and velocity, at steps of at most :data:`LARGEST_STEP`.

    :param batch: on the grid at which goals are taken.
    :param reset_period: interval at which position and velocity are reset to the measurement [s], as in
        :func:`stribeck.model.step.simulate`; the state of the firmware is kept.
    :returns: position, velocity, and the load of the previous step as the controller takes it (T, R).
    :raises ConfigError: for servos that the controller does not simulate.
    """
    parts = max(1, int(np.ceil(batch.dt / LARGEST_STEP - 1e-9)))
    shape, resets = batch.position.shape, batch.reset_indices(reset_period)
    position, velocity, load = np.empty(shape), np.empty(shape), np.empty(shape)
    for r, log in enumerate(batch.logs):
        given = log.setup
        servo = Servo(drive, given.kp, given.ki, given.kd, given.supply_voltage)
        model = mujoco.MjModel.from_xml_string(pendulum(given, drive.values["q_offset"]))
        model.opt.timestep = batch.dt / parts
        data = mujoco.MjData(model)
        controller = Controller(model, {JOINT: servo})
        for k in range(shape[0]):
            if k == 0 or k in resets:
                data.qpos[0], data.qvel[0] = batch.position[k, r], batch.velocity[k, r]
            position[k, r], velocity[k, r] = data.qpos[0], data.qvel[0]
            goal, enable = [float(batch.goal[k, r])], [float(batch.torque_enable[k, r] >= 0.5)]
            for _ in range(parts):
                controller.update(data, goal, enable)
                mujoco.mj_step(model, data)
            load[k, r] = controller.external_torque[0]
    if not np.all(np.isfinite(position)):
        raise ConfigError("the simulation in MuJoCo diverged: are the values in the file in SI units?")
    return Simulation(position, velocity, None, load)
