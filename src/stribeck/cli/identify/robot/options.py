"""``stribeck identify robot``: friction and drives of all joints of a robot from ordinary motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from stribeck.api.choices import LAWS_OR_AUTO, ROBOT_TERMS
from stribeck.cli.options import choices_of, declared, group, option

_data, _fit, _output = group("recordings"), group("what to fit"), group("output")


@declared
class IdentifyRobotOptions:
    """Options: the robot, its recordings, what to fit, and output files."""

    model: Path = option("URDF or MJCF of the robot; meshes may be missing")
    recordings: tuple[Path, ...] = option(
        "runs with goals and positions of all joints: files, folders of files, or bags",
        metavar="RECORDING",
        positional=True,
    )
    validate: tuple[Path, ...] = _data(
        "runs that are predicted, not fitted: their errors judge the result", (), "PATH"
    )
    degrees: bool = _data("goals and positions are in degrees, as in LeRobot data sets")
    calibration: Path | None = _data(
        "calibration file of the robot, for LeRobot data sets with positions from -100 to 100 instead of degrees"
    )
    exclude: tuple[str, ...] = _data("joints to exclude, separated by commas or blanks", (), "JOINT")
    goal_joints: tuple[str, ...] = _data(
        "joints of the forward_command_controller whose goals are in a bag, in its order (default: as in the joint states)",
        (),
        "JOINT",
    )
    law: str = _fit(
        "friction law of all joints, or auto: chosen by cross-validation (default: m1)",
        "m1",
        choices=LAWS_OR_AUTO,
    )
    terms: Annotated[tuple[str, ...], choices_of(ROBOT_TERMS)] = _fit(
        f"terms that are added to the law; valid: {','.join(ROBOT_TERMS)}", (), "LIST"
    )
    same: tuple[str, ...] = _fit(
        "joints with equal drives, separated by commas or blanks, one group only; the common distribution of their parameters is used as prior",
        (),
        "JOINT",
    )
    backlash: bool = _fit("also test each joint for backlash between gears and encoder, as in hobby servos")
    leave_one_out: bool = _fit("also fit without each run in turn, and predict it")
    no_polish: bool = _fit("do not refine the fit by simulating the whole robot")
    since: Path | None = _fit(
        "drives of an earlier fit: test only, run by run, in which joints friction has changed"
    )
    output: Path | None = _output(
        "folder for drives, parameters of the compensation node, simulated motion and pictures", metavar="DIR"
    )
    json: Path | None = _output("JSON file of parameters and errors")
    strict: bool = _output("exit code 2 if the verdict is not `usable`")
    quiet: bool = _output("no progress")
