"""The runs on which an export is judged: recordings, or bench trajectories of the servo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stribeck.evaluate.assessment import Stepping
from stribeck.evaluate.draws import CENTRE
from stribeck.live.friction import stall_torque
from stribeck.model.arrays import Array
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget
from stribeck.model.log import Batch, Log, Series, Setup
from stribeck.model.step import batch_for
from stribeck.model.trajectories import trajectory_named

BENCH_TRAJECTORIES = ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop")
BENCH_LOADS = (0.2, 0.4)
"""Gravity torques of the bench, as shares of the stall torque."""

REST_LOAD = 0.6
"""Gravity torque of a joint that rests with its torque off, as a share of the source law's friction at rest without load."""

FULL_OUTPUT_AT = 0.2
"""Position error [rad] that takes the firmware to its full output at :func:`usual_gain`."""


def usual_gain(file: Drive) -> float:
    """The gain that the file states, otherwise one with which a position error of :data:`FULL_OUTPUT_AT` gives the full output."""
    if file.gains is not None:
        return float(file.gains.kp)
    control = file.actuator.control
    return control.output_max / (control.gain * FULL_OUTPUT_AT)


def rest_friction(file: Drive) -> float:
    """Friction at rest without load, of the direction that has less [N m]; where it depends on the position, in the middle of the recordings."""
    at = file.values.get(CENTRE, 0.0)
    return min(float(side) for side in friction_budget(file.law, file.values, 0.0, 0.0, 0.0, at))


def bench_runs(file: Drive, kp: float, supply_voltage: float, kd: float = 0.0) -> list[Log]:
    """Runs with loads that suit the servo, at 5 ms for 6 s; positions are to be simulated from the first.

    Goals of the bench trajectories, from hanging at rest; and a rest beside the hanging position that friction holds,
    torque off: a poorer law that no longer holds it would move as the source does everywhere else.
    """
    time = np.asarray(0.005 * np.arange(1201), dtype=np.float64)
    stall = stall_torque(file.actuator, file.values)
    length = 0.1 if stall < 2.0 else (0.2 if stall < 10.0 else 0.5)

    def log(name: str, load: float, start: float, goal: Array, torque_enable: Array) -> Log:
        mass = load / (STANDARD_GRAVITY * length)
        return Log(
            name=f"{name}, {mass:.3g} kg at {length:g} m",
            actuator=file.actuator.name,
            trajectory=name,
            setup=Setup(mass, length, 0.0, supply_voltage, kp, kd=kd),
            position=Series(time, np.full_like(time, start), held=False),
            velocity=Series(time, np.zeros_like(time), held=False),
            goal=Series(time, goal, held=True),
            torque_enable=Series(time, torque_enable, held=True),
        )

    logs = []
    for share in BENCH_LOADS:
        load = share * stall
        for trajectory in map(trajectory_named, BENCH_TRAJECTORIES):
            logs.append(
                log(trajectory.name, load, 0.0, trajectory.goal(time), trajectory.torque_enable(time))
            )
        angle = float(np.arcsin(min(REST_LOAD * rest_friction(file) / load, 1.0))) - file.values.get(
            "q_offset", 0.0
        )
        logs.append(log("rest", load, angle, np.full_like(time, angle), np.zeros_like(time)))
    return logs


def batch_of_source(source: Drive, logs: Sequence[Log], stepping: Stepping) -> tuple[Batch, Batch]:
    """The runs as recorded, and with the motion of the source law in place of the measurement."""
    recorded = batch_for(logs, stepping.dt, stepping.integrator)
    motion = stepping.motion(source, recorded)
    return recorded, replace(recorded, position=motion.position, velocity=motion.velocity)
