"""``stribeck evaluate``: errors of parameter files on recordings, pictures, diagrams and the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stribeck.cli.options import (
    Numbers,
    ParameterFileOptions,
    Positive,
    RecordingOptions,
    StepOptions,
    group,
    option,
)

_machines = group("drives of arms and robots")
_output, _simulation = group("output"), group("simulation")
_diagram = group("diagram")
_others = group("--params that are MJCF (.xml), URDF (.urdf) or Isaac Lab (.yaml) files")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(StepOptions, RecordingOptions, ParameterFileOptions):
    """Options: parameter files, recordings, and what is drawn."""

    recordings: tuple[Path, ...] = option(
        "recordings of a servo, an arm or a robot, or folders of them",
        (),
        "RECORDING",
        positional=True,
    )
    params: tuple[Path, ...] = option("parameter files", (), "FILE")
    model: Path | None = _machines(
        "URDF of an arm (default: the one that its machine's file names), URDF or MJCF of a robot",
        None,
        "FILE",
    )
    machine: str | None = _machines(
        "arm by name, or its YAML file (default: machine.yaml beside the file of drives, or the one named there)",
        None,
        "NAME",
    )
    degrees: bool = _machines("goals and positions of a robot are in degrees", False)
    calibration: Path | None = _machines(
        "calibration file, for LeRobot data sets with values from -100 to 100 of the range", None, "FILE"
    )
    integrator: Literal["exponential", "semi-implicit", "paper", "bam", "mujoco"] | None = _simulation(
        "time stepping (default: exponential, or the parameter file's; mujoco: the servo in MuJoCo; others for published figures)",
        None,
    )
    plot: Path | None = _output(
        "folder for pictures of motion, speed, torque and load, or an animation of the bench (.gif)",
        None,
        "DIR",
    )
    report: Path | None = _output("HTML report, one file that opens offline", None, "FILE.html")
    json: Path | None = _output("errors for scripts", None, "FILE")
    diagram: Path | None = _diagram(
        "picture of the drive/backdrive diagram: .png, .svg or .pdf; recordings are optional, and add measured torques",
        None,
        "FILE",
    )
    output: Path | None = _diagram(
        "parameter file: the first one, fitted to the torques measured just before motion and in slow motion, too",
        None,
        "FILE",
    )
    file_joint: str | None = option(
        "joint to read of files with several (default: the only one)", None, "NAME"
    )
    max_torque: Positive | None = _diagram("largest motor torque to draw [N m]", None, "T")
    speeds: Numbers = _diagram("rad/s (default: 0,1,2,3)", (0.0, 1.0, 2.0, 3.0), "LIST")
    kp: Positive | None = _others("firmware gain that their stiffness belongs to", None, "K")
    supply: Positive | None = _others("voltage of their torques (default: the nominal one)", None, "V")
    motor: Path | None = _others("parameter file with the motor, for URDF files", None, "P.json")


DECLARED = EvaluateOptions
"""The options that the parser reads."""
