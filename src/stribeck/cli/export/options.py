"""``stribeck export``: identified servos for simulators, firmware and tables."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.options import Count, NotNegative, Positive, Seed, TimeStep, declared, group, option

_servo = group("servo")
_draws = group("draws for randomised simulation")
_runs = group("recordings with which the error of the export is computed (default: bench trajectories)")


@declared
class ExportOptions:
    """Options: format, servos and their joints, robot, recordings."""

    format: str = option("format; 'list' explains them", metavar="FORMAT")
    params: tuple[Path, ...] = option("parameter files: one for all joints, or one for each joint", ())
    output: Path | None = option("main file to write")
    joint: tuple[str, ...] = option(
        "names of the joints (default: 'joint', or the names of the files if there are several)", (), "NAME"
    )
    model: Path | None = option("robot file into which the servos are written", metavar="ROBOT")
    plain: bool = option(
        "omit terms that the format lacks, instead of fitting the terms of the format to the source law (always so for drives of `identify robot`)"
    )
    strict: bool = option("write nothing if the format cannot represent the law (exit code 1)")
    servo: str | None = option("YAML file of the servo, for parameter files without a description of it")
    kp: Positive | None = _servo("firmware gain (default: as in the recordings)", metavar="K")
    kd: NotNegative = _servo("derivative gain", 0.0, "K")
    supply: Positive | None = _servo(
        "supply voltage (default: as in the recordings, or in those of the fit)", metavar="V"
    )
    step: TimeStep | None = _servo(
        "time step of the simulator [s] (default: that of the model, else 0.002; 0.005 for isaaclab-bam and mjlab); not with --model in MJCF, whose step is that of the model",
        metavar="S",
    )
    draws: Count | None = _draws(
        "also write this number of random parameter sets, whose predictions differ by as much as the band of the fit is wide (of a robot: as its file states)"
    )
    seed: Seed = _draws("random seed", 0)
    same: tuple[str, ...] = _draws(
        "joints with equal drives, each identified in its own file: the draws then represent further drives of this type",
        (),
        "JOINT",
    )
    recordings: tuple[Path, ...] = option(
        "recordings with which the error of the export is computed (default: bench trajectories)",
        (),
        "RECORDING",
        positional=True,
    )
    signals: Path | None = _runs("YAML table that maps signals to topics", metavar="YAML")
    bench: str | None = _runs(
        "description of a bag without /bench: mass=KG,length=M,kp=GAIN,…", metavar="KEY=VALUE,…"
    )
    arm_mass: float | None = _runs("rod mass, for JSON recordings without one", metavar="KG")
