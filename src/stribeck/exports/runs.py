"""The runs on which an export is judged: recordings, or bench trajectories of the servo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stribeck.core.bench import STANDARD_GRAVITY
from stribeck.core.compensation import stall_torque
from stribeck.core.control_laws import CurrentControl, VoltageControl
from stribeck.core.log import Batch, Log, Series, Setup
from stribeck.core.step import batch_for, simulate
from stribeck.core.trajectories import trajectory_named
from stribeck.fit.assessment import Stepping
from stribeck.io.parameter_file import ParameterFile

BENCH_TRAJECTORIES = ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop")
BENCH_LOADS = (0.2, 0.4)
"""Gravity torques of the bench, as shares of the stall torque."""

FULL_OUTPUT_AT = 0.2
"""Position error [rad] that takes the firmware to its full output at :func:`usual_gain`."""


def usual_gain(file: ParameterFile) -> float:
    """A firmware gain with which a position error of :data:`FULL_OUTPUT_AT` gives the full output."""
    control = file.actuator.control
    if isinstance(control, VoltageControl):
        full = control.duty_max
    else:
        full = control.current_max if isinstance(control, CurrentControl) else control.torque_max
    return full / (control.gain * FULL_OUTPUT_AT)


def bench_runs(file: ParameterFile, kp: float, supply_voltage: float) -> list[Log]:
    """Goals of the bench trajectories with loads that suit the servo, from rest; positions are to be simulated."""
    time = np.asarray(0.005 * np.arange(1201), dtype=np.float64)
    zero = Series(time, np.zeros_like(time), held=False)
    stall = stall_torque(file.actuator, file.values)
    length = 0.1 if stall < 2.0 else (0.2 if stall < 10.0 else 0.5)
    logs = []
    for share in BENCH_LOADS:
        mass = share * stall / (STANDARD_GRAVITY * length)
        for name in BENCH_TRAJECTORIES:
            trajectory = trajectory_named(name)
            logs.append(
                Log(
                    name=f"{name}, {mass:.3g} kg at {length:g} m",
                    actuator=file.actuator.name,
                    trajectory=name,
                    setup=Setup(mass, length, 0.0, supply_voltage, kp),
                    position=zero,
                    velocity=zero,
                    goal=Series(time, trajectory.goal(time), held=True),
                    torque_enable=Series(time, trajectory.torque_enable(time), held=True),
                )
            )
    return logs


def batch_of_source(source: ParameterFile, logs: Sequence[Log], stepping: Stepping) -> tuple[Batch, Batch]:
    """The runs as recorded, and with the motion of the source law in place of the measurement."""
    recorded = batch_for(logs, stepping.dt, stepping.integrator)
    motion = simulate(
        recorded,
        source.actuator,
        source.law,
        source.values,
        integrator=stepping.integrator,
        reset_period=stepping.reset_period,
    )
    return recorded, replace(recorded, position=motion.position, velocity=motion.velocity)
