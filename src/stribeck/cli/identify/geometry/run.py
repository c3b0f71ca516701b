"""Implements ``stribeck identify geometry``: calibration, files and tables."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.cli.identify.geometry.options import IdentifyGeometryOptions
from stribeck.cli.inputs import check_outputs, result_path, warn_of_seen, write_json
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.geometry.calibration import ArmCalibration, calibrate
from stribeck.identify.geometry.chain import SerialChain
from stribeck.identify.geometry.config import CalibrationConfig, nominal_chain, read_calibration
from stribeck.identify.geometry.data import MeasuredPoses, check_same_base, find_sets, read_poses
from stribeck.identify.geometry.pose_selection import d_optimal_rows
from stribeck.identify.geometry.result_file import parameter_entries, write_calibration
from stribeck.identify.geometry.robust_fit import PointData
from stribeck.identify.geometry.urdf import calibrated_chain

SCHEMA = 1
RESULT = "calibration.json"
MOST_LISTED = 12
"""Maximum number of blunders and dependent parameters to print; files list all of them."""

Sets = dict[str, PointData]


def run(options: IdentifyGeometryOptions) -> int:
    """Calibrate."""
    robot = read_robot(options.machine)
    config = read_calibration(robot)
    _check_options(options)
    _check_outputs(options, config)
    chain = nominal_chain(robot, config, options.recordings)
    return _calibrate(options, robot, config, chain)


def _check_options(options: IdentifyGeometryOptions) -> None:
    splits = ("validate", "train_rows", "train_every", "train_poses")
    given = [f"--{name.replace('_', '-')}" for name in splits if getattr(options, name)]
    if len(given) > 1:
        raise ConfigError(
            f"{' and '.join(given)} are alternative ways to choose the poses for validation: give one of them"
        )
    if options.select_by != "random" and not options.train_poses:
        raise ConfigError("--select-by is the rule by which --train-poses are chosen: add --train-poses N")


def _check_outputs(options: IdentifyGeometryOptions, config: CalibrationConfig) -> None:
    """Refuse outputs that cannot be written, or would replace a file that is read."""
    poses = [*options.recordings, *options.validate]
    files = [path for pose_set in find_sets(poses, config, needed=[]) for path in pose_set.values()]
    outputs = [result_path(options.output, RESULT), options.json]
    if options.plot is not None:
        outputs.append(options.plot / "errors.png")
    check_outputs(outputs, [*poses, *files])


def _calibrate(
    options: IdentifyGeometryOptions, robot: RobotConfig, config: CalibrationConfig, chain: SerialChain
) -> int:
    started = time.perf_counter()
    measured = read_poses(options.recordings, config, chain)
    sets = _sets(options, config, chain, measured)
    extra = config.extra if options.terms is None else tuple(t for t in options.terms if t != "none")
    calibrations = calibrate(
        chain,
        measured.markers,
        sets["train"],
        fits=options.fits or config.fits,
        extra=extra,
        gravity=config.gravity,
        seed=options.seed,
    )
    seconds = time.perf_counter() - started
    written = _write(options, robot, sets, calibrations)  # before printing, which stops if a pipe is closed
    write_json(options.json, _summary(options, robot, sets, calibrations) | {"wall_seconds": seconds})
    if options.plot is not None:
        written += _draw(options.plot, robot, sets, calibrations)
    _print(robot, sets, calibrations, seconds)
    print(*written, sep="\n", end="\n" if written else "")
    return 0


def _sets(
    options: IdentifyGeometryOptions, config: CalibrationConfig, chain: SerialChain, measured: MeasuredPoses
) -> Sets:
    data = measured.data
    if options.validate:
        warn_of_seen(options.recordings, options.validate)
        other = read_poses(options.validate, config, chain)
        check_same_base(measured.base, other.base)
        return {"train": data, "validation": other.data}
    train = _train_rows(options, config, chain, measured)
    rest = np.setdiff1d(np.arange(len(data)), train)
    return {"train": data.take(train), **({"validation": data.take(rest)} if len(rest) else {})}


def _train_rows(
    options: IdentifyGeometryOptions, config: CalibrationConfig, chain: SerialChain, measured: MeasuredPoses
) -> Sequence[int]:
    number = len(measured.data)
    if options.train_rows:
        first, last = options.train_rows
        if last > number:
            raise ConfigError(f"--train-rows {first}:{last}: valid: rows from 0:{number}")
        return range(first, last)
    if options.train_every:
        return range(0, number, options.train_every)
    if options.train_poses:
        if options.train_poses > number:
            raise ConfigError(f"--train-poses {options.train_poses}: there are only {number} poses")
        if options.select_by == "d-optimal":
            return d_optimal_rows(config, chain, measured, options.train_poses, options.seed)
        chosen = np.random.default_rng(options.seed).permutation(number)[: options.train_poses]
        return sorted(chosen.tolist())
    return range(number)


def _best(calibrations: Mapping[str, ArmCalibration]) -> ArmCalibration:
    """The last fit, which has the most parameters."""
    return list(calibrations.values())[-1]


def _summary(
    options: IdentifyGeometryOptions,
    robot: RobotConfig,
    sets: Sets,
    calibrations: Mapping[str, ArmCalibration],
) -> dict[str, Any]:
    """The content of the ``--json`` file."""
    best = _best(calibrations)
    return {
        "schema": SCHEMA,
        "robot": robot.name,
        "seed": options.seed,
        "poses": {name: len(data) for name, data in sets.items()},
        "train_rows": sets["train"].rows.tolist(),
        "fits": {
            fit: {name: _errors(calibration, data) for name, data in sets.items()}
            for fit, calibration in calibrations.items()
        },
        "status": {fit: calibration.estimate.status.value for fit, calibration in calibrations.items()},
        "blunders": _blunders(best, sets),
        "terms": _terms(best),
        "undetermined": [
            {"parameter": d.name, "because": d.because, "equals": dict(d.equals)} for d in best.dependent
        ],
        "parameters": parameter_entries(best),
    }


def _errors(calibration: ArmCalibration, data: PointData) -> dict[str, float]:
    errors = calibration.errors(data)
    return {
        "mean_mm": 1e3 * errors.mean,
        "median_mm": 1e3 * errors.median,
        "max_mm": 1e3 * errors.largest,
    }


def _blunders(best: ArmCalibration, sets: Sets) -> list[dict[str, Any]]:
    return [
        {"pose": blunder.row, "error_mm": 1e3 * blunder.error, "set": name}
        for name, data in sets.items()
        for blunder in best.blunders(data)
    ]


def _terms(best: ArmCalibration) -> dict[str, Any]:
    """Groups of parameters beyond the geometry that were tried, with their cross-validation errors."""
    selection = best.selection
    return {
        "kept": dict(selection.deviations),
        "cross_validation": [
            {
                "group": trial.group,
                "prior_deviation": trial.deviation,
                "mean_mm": 1e3 * trial.error,
                "gain_mm": 1e3 * trial.gain,
                "standard_error_mm": 1e3 * trial.standard_error,
                "kept": trial.kept,
            }
            for trial in selection.trials
        ],
        "geometry_alone_mm": 1e3 * selection.error_without if selection.trials else None,
    }


def _print(
    robot: RobotConfig, sets: Sets, calibrations: Mapping[str, ArmCalibration], seconds: float
) -> None:
    poses = ", ".join(f"{len(data)} poses {name}" for name, data in sets.items())
    print(f"{robot.title}: {poses}, {seconds:.1f} s")
    header = ["3-D error [mm]", *(f"{name} {what}" for name in sets for what in ("mean", "median", "max"))]
    rows = [
        [fit, *(f"{value:.3f}" for data in sets.values() for value in _errors(calibration, data).values())]
        for fit, calibration in calibrations.items()
    ]
    print_table(header, rows)
    best = _best(calibrations)
    for trial in best.selection.trials:
        print(
            f"{'kept' if trial.kept else 'not kept'}: {trial.group}, mean error in cross-validation {1e3 * trial.error:.3f} mm (reduced by "
            f"{1e3 * trial.gain:+.3f} ± {1e3 * trial.standard_error:.3f} mm)"
        )
    far = [f"{b['pose']} ({b['error_mm']:.2f} mm, {b['set']})" for b in _blunders(best, sets)]
    _print_list("poses with unusually large errors", far)
    others = [d.name for d in best.dependent if d.because == "geometry"]
    _print_list("kept at nominal values, because other parameters have the same effect", others)
    _print_list("not determined by the poses", [str(d) for d in best.dependent if d.because == "poses"])


def _print_list(what: str, entries: Sequence[str]) -> None:
    if entries:
        more = f", and {len(entries) - MOST_LISTED} more" if len(entries) > MOST_LISTED else ""
        print(f"{what}: {', '.join(entries[:MOST_LISTED])}{more}")


def _write(
    options: IdentifyGeometryOptions,
    robot: RobotConfig,
    sets: Sets,
    calibrations: Mapping[str, ArmCalibration],
) -> list[Path]:
    """Write the result file and, if the nominal geometry is a URDF, a calibrated URDF; returns the paths."""
    path = result_path(options.output, RESULT)
    if path is None:
        return []
    best = _best(calibrations)
    provenance = {
        "data": [file.name for file in options.recordings],
        "poses": {name: len(data) for name, data in sets.items()},
        "seed": options.seed,
        "errors_mm": {name: _errors(best, data) for name, data in sets.items()},
        "blunders": _blunders(best, sets),
        "terms": _terms(best),
        "undetermined": {d.name: {"because": d.because, "equals": dict(d.equals)} for d in best.dependent},
    }
    write_calibration(path, robot.name, list(calibrations)[-1], best, provenance)
    written = [path]
    if read_calibration(robot).nominal.urdf:
        urdf = robot.find_urdf(options.recordings)
        if urdf is not None:
            written.append(path.with_name(f"{urdf.stem}_calibrated.urdf"))
            _write_urdf(written[-1], urdf, best, list(calibrations)[-1], sets["train"])
    return written


def _write_urdf(target: Path, nominal: Path, best: ArmCalibration, fit: str, data: PointData) -> None:
    """Write a calibrated URDF; its geometry is fitted without gains and deflections, which URDF lacks."""
    from stribeck.identify.geometry.urdf import write_calibrated_urdf

    model = best.model
    plain = calibrate(model.chain, model.markers, data, fits=[fit], extra=(), gravity=model.gravity)[fit]
    _, chain = calibrated_chain(plain.model, plain.estimate.values)
    write_calibrated_urdf(target, nominal, chain)


def _draw(
    folder: Path, robot: RobotConfig, sets: Sets, calibrations: Mapping[str, ArmCalibration]
) -> list[Path]:
    from stribeck.report.arm_figures_calibration import PoseSet, draw_errors, draw_poses
    from stribeck.report.style import save_all

    best = _best(calibrations)
    drawn = [
        PoseSet(
            f"{name}, {len(data)} poses",
            data.rows,
            {fit: calibration.distances(data) for fit, calibration in calibrations.items()},
            [blunder.row for blunder in best.blunders(data)],
        )
        for name, data in sets.items()
    ]
    title = f"Kinematic calibration of {robot.title}"
    fit = list(calibrations)[-1]
    figures = {"errors": draw_errors(drawn, title), "poses": draw_poses(drawn, fit, f"{title}: {fit}")}
    return save_all(figures, folder)
