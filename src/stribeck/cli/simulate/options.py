"""Options of ``stribeck simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from stribeck.cli.options import ParameterFileOptions, Positive, TimeStep, declared, group, option

_simulation, _output = group("simulation"), group("output")


@declared
class SimulateOptions(ParameterFileOptions):
    """Options: trajectories, drives, the bench, or a mechanism, and output files."""

    trajectories: tuple[str, ...] = option(
        "trajectory by name, for example sin_sin, or a table with time [s], goal [rad] and optionally torque_enable",
        (),
        "TRAJECTORY",
        positional=True,
    )
    params: tuple[Path, ...] = option("parameter files", ())
    mechanism: str | None = _simulation(
        "mechanism by name, or its YAML file, simulated from its zero pose, with contacts; replaces trajectories",
        metavar="NAME",
    )
    seconds: Positive | None = _simulation("duration of the motion of a mechanism (default: 2)", metavar="S")
    bench: str | None = _simulation(
        "load, rod, supply and gain: mass=KG,length=M,arm_mass=KG,kp=GAIN,supply_voltage=V",
        metavar="KEY=VALUE,…",
    )
    step: TimeStep | None = _simulation(
        "time step (default: 0.005, or as in the parameter file)", metavar="S"
    )
    integrator: Literal["exponential", "semi-implicit", "paper", "bam", "mujoco"] | None = _simulation(
        "time stepping (default: exponential, or as in the parameter file; mujoco: the servo in MuJoCo)"
    )
    output: Path | None = _output("folder for tables of the motion", metavar="DIR")
    plot: Path | None = _output(
        "folder for pictures of motion, speed, torque and load, or an animation of the bench (.gif)",
        metavar="DIR",
    )
    json: Path | None = _output("JSON file of final positions, largest speeds and torques")
