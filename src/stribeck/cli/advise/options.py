"""Options of ``stribeck advise``."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.options import Positive, Seed, declared, group, option

_data, _ask, _output = group("recordings"), group("what is asked"), group("output")


@declared
class AdviseOptions:
    """Options: drives or recordings, the robot, what is asked, and output files."""

    params: Path | None = option(
        "file of drives, from identify robot or identify servo; all its joints are analysed"
    )
    model: Path | None = option("URDF or MJCF of the robot, for weight and inertia")
    recordings: tuple[Path, ...] = option(
        "recordings with goals and positions, in which joints come to rest", (), "RECORDING", positional=True
    )
    exclude: tuple[str, ...] = _data("joints to exclude, separated by commas or blanks", (), "JOINT")
    degrees: bool = _data("goals and positions are in degrees, as in LeRobot data sets")
    calibration: Path | None = _data(
        "calibration file of the robot, for LeRobot data sets with positions from -100 to 100 instead of degrees"
    )
    kp: Positive | None = _ask(
        "gain of the servos (default: as in the recordings). If the file states a stiffness: the firmware gain during the recordings",
        metavar="K",
    )
    supply: Positive | None = _ask("supply voltage (default: as in the recordings)", metavar="V")
    set: tuple[str, ...] = _ask(
        "tolerance=RAD: largest acceptable error at rest (default: 0.01); delay=S: delay in the servo's own control loop (default: 0.005)",
        (),
        "NAME=VALUE",
        repeated=True,
    )
    seed: Seed = _ask("seed of random parameters and poses (default: 0)", 0)
    report: Path | None = _output("HTML page with pictures, one file that opens offline", metavar="FILE.html")
    json: Path | None = _output("numbers for programs")
