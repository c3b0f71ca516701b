"""``stribeck evaluate``: errors of parameter files on recordings, pictures, diagrams and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from stribeck.cli.options import (
    Numbers,
    ParameterFileOptions,
    Positive,
    RecordingOptions,
    StepOptions,
    declared,
    group,
    option,
)

_machines = group("drives of arms and robots")
_output, _simulation = group("output"), group("simulation")
_diagram = group("diagram")
_others = group("files given with --params as MJCF (.xml), URDF (.urdf) or Isaac Lab (.yaml)")


@declared
class EvaluateOptions(StepOptions, RecordingOptions, ParameterFileOptions):
    """Options: parameter files, recordings, and what is drawn."""

    recordings: tuple[Path, ...] = option(
        "recordings of a servo, an arm or a robot, or folders of them", (), "RECORDING", positional=True
    )
    params: tuple[Path, ...] = option("parameter files", ())
    model: Path | None = _machines(
        "URDF of an arm (default: as in the machine's file), URDF or MJCF of a robot"
    )
    machine: str | None = _machines(
        "arm by name, or its YAML file (default: the file named in the file of drives, or machine.yaml beside it)",
        metavar="NAME",
    )
    degrees: bool = _machines("goals and positions of a robot are in degrees")
    calibration: Path | None = _machines(
        "calibration file of the robot, for LeRobot data sets with positions from -100 to 100 instead of degrees"
    )
    integrator: Literal["exponential", "semi-implicit", "paper", "bam", "mujoco"] | None = _simulation(
        "time stepping (default: exponential, or as in the parameter file; mujoco: the servo in MuJoCo; others reproduce published figures)"
    )
    plot: Path | None = _output(
        "folder for pictures of motion, speed, torque and load, or an animation of the bench (.gif)",
        metavar="DIR",
    )
    report: Path | None = _output("HTML report, one file that opens offline", metavar="FILE.html")
    json: Path | None = _output("errors for scripts")
    diagram: Path | None = _diagram(
        "picture of the drive/backdrive diagram: .png, .svg or .pdf; with recordings, measured torques are drawn too"
    )
    output: Path | None = _diagram(
        "write the first parameter file again, fitted also to the torques measured just before motion and in slow motion"
    )
    file_joint: str | None = option(
        "joint to read from files with several joints (default: the only one)", metavar="NAME"
    )
    max_torque: Positive | None = _diagram("largest motor torque to draw [N m]", metavar="T")
    speeds: Numbers = _diagram(
        "speeds in the diagram [rad/s] (default: 0,1,2,3)", (0.0, 1.0, 2.0, 3.0), "LIST"
    )
    kp: Positive | None = _others("firmware gain to which the stiffness in these files belongs", metavar="K")
    supply: Positive | None = _others(
        "supply voltage to which the torques in these files belong (default: nominal)", metavar="V"
    )
    motor: Path | None = _others("parameter file with the motor parameters, for URDF files", metavar="P.json")
