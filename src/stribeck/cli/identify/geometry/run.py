"""Implements ``stribeck identify geometry``: calibration, files and tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
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

RESULT = "calibration.json"
MOST_LISTED = 12
"""Maximum number of blunders and dependent parameters to print; files list all of them."""


@dataclass(frozen=True, eq=False)
class FoundGeometry:
    """Poses by name of their set, and the calibrations by name of the fit; the last one has the most parameters."""

    options: IdentifyGeometryOptions
    robot: RobotConfig
    sets: dict[str, PointData]
    fits: dict[str, ArmCalibration]

    @property
    def last(self) -> str:
        """Name of the last fit."""
        return list(self.fits)[-1]

    @property
    def best(self) -> ArmCalibration:
        """The last fit."""
        return self.fits[self.last]

    @property
    def summary(self) -> dict[str, Any]:
        """What the result file and the ``--json`` file state alike."""
        poses = {name: len(data) for name, data in self.sets.items()}
        terms = _terms(self.best)
        return {"seed": self.options.seed, "poses": poses, "blunders": self.blunders, "terms": terms}

    @property
    def blunders(self) -> list[dict[str, Any]]:
        """Poses that disagree with the others."""
        return [
            {"pose": blunder.row, "error_mm": 1e3 * blunder.error, "set": name}
            for name, data in self.sets.items()
            for blunder in self.best.blunders(data)
        ]

    def errors(self, fit: str) -> dict[str, dict[str, float]]:
        """Errors of a fit by set of poses [mm]."""
        found = {name: self.fits[fit].errors(data) for name, data in self.sets.items()}
        return {
            name: {"mean_mm": 1e3 * one.mean, "median_mm": 1e3 * one.median, "max_mm": 1e3 * one.largest}
            for name, one in found.items()
        }


def run(options: IdentifyGeometryOptions) -> int:
    """Calibrate, print and write."""
    started = time.perf_counter()
    robot = read_robot(options.machine)
    config = read_calibration(robot)
    _check_options(options)
    poses = [*options.recordings, *options.validate]
    files = [path for pose_set in find_sets(poses, config, needed=[]) for path in pose_set.values()]
    picture = None if options.plot is None else options.plot / "errors.png"
    check_outputs([result_path(options.output, RESULT), options.json, picture], [*poses, *files])
    chain = nominal_chain(robot, config, options.recordings)
    measured = read_poses(options.recordings, config, chain)
    sets = _sets(options, config, chain, measured)
    extra = config.extra if options.terms is None else tuple(t for t in options.terms if t != "none")
    fits = calibrate(
        chain,
        measured.markers,
        sets["train"],
        fits=options.fits or config.fits,
        extra=extra,
        gravity=config.gravity,
        seed=options.seed,
    )
    found = FoundGeometry(options, robot, sets, fits)
    seconds = time.perf_counter() - started
    written = _write(found)  # before printing, which stops if a pipe is closed
    write_json(options.json, _content(found) | {"wall_seconds": seconds})
    if options.plot is not None:
        written += _draw(options.plot, found)
    _print(found, seconds)
    print(*written, sep="\n", end="\n" if written else "")
    return 0


def _check_options(options: IdentifyGeometryOptions) -> None:
    splits = ("validate", "train_rows", "train_every", "train_poses")
    given = [f"--{name.replace('_', '-')}" for name in splits if getattr(options, name)]
    if len(given) > 1:
        raise ConfigError(
            f"{' and '.join(given)} are alternative ways to choose the poses for validation: give one of them"
        )
    if options.select_by != "random" and not options.train_poses:
        raise ConfigError("--select-by is the rule by which --train-poses are chosen: add --train-poses N")


def _sets(
    options: IdentifyGeometryOptions, config: CalibrationConfig, chain: SerialChain, measured: MeasuredPoses
) -> dict[str, PointData]:
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


def _content(found: FoundGeometry) -> dict[str, Any]:
    """The content of the ``--json`` file."""
    best = found.best
    return found.summary | {
        "robot": found.robot.name,
        "train_rows": found.sets["train"].rows.tolist(),
        "fits": {fit: found.errors(fit) for fit in found.fits},
        "status": {fit: calibration.estimate.status.value for fit, calibration in found.fits.items()},
        "undetermined": [
            {"parameter": d.name, "because": d.because, "equals": dict(d.equals)} for d in best.dependent
        ],
        "parameters": parameter_entries(best),
    }


def _terms(best: ArmCalibration) -> dict[str, Any]:
    """Groups of parameters beyond the geometry that were tried, with their cross-validation errors."""
    selection = best.selection
    return {
        "kept": dict(selection.deviations),
        "cross_validation": [
            {"group": trial.group, "prior_deviation": trial.deviation, "kept": trial.kept}
            | {"mean_mm": 1e3 * trial.error, "gain_mm": 1e3 * trial.gain}
            | {"standard_error_mm": 1e3 * trial.standard_error}
            for trial in selection.trials
        ],
        "geometry_alone_mm": 1e3 * selection.error_without if selection.trials else None,
    }


def _print(found: FoundGeometry, seconds: float) -> None:
    poses = ", ".join(f"{len(data)} poses {name}" for name, data in found.sets.items())
    print(f"{found.robot.title}: {poses}, {seconds:.1f} s")
    columns = (f"{name} {what}" for name in found.sets for what in ("mean", "median", "max"))
    rows = [
        [fit, *(f"{value:.3f}" for errors in found.errors(fit).values() for value in errors.values())]
        for fit in found.fits
    ]
    print_table(["3-D error [mm]", *columns], rows)
    best = found.best
    for trial in best.selection.trials:
        print(
            f"{'kept' if trial.kept else 'not kept'}: {trial.group}, mean error in cross-validation {1e3 * trial.error:.3f} mm (reduced by "
            f"{1e3 * trial.gain:+.3f} ± {1e3 * trial.standard_error:.3f} mm)"
        )
    far = [f"{b['pose']} ({b['error_mm']:.2f} mm, {b['set']})" for b in found.blunders]
    _print_list("poses with unusually large errors", far)
    others = [d.name for d in best.dependent if d.because == "geometry"]
    _print_list("kept at nominal values, because other parameters have the same effect", others)
    _print_list("not determined by the poses", [str(d) for d in best.dependent if d.because == "poses"])


def _print_list(what: str, entries: Sequence[str]) -> None:
    if entries:
        more = f", and {len(entries) - MOST_LISTED} more" if len(entries) > MOST_LISTED else ""
        print(f"{what}: {', '.join(entries[:MOST_LISTED])}{more}")


def _write(found: FoundGeometry) -> list[Path]:
    """Write the result file and, if the nominal geometry is a URDF, a calibrated URDF; returns the paths."""
    options, best = found.options, found.best
    path = result_path(options.output, RESULT)
    if path is None:
        return []
    provenance = found.summary | {
        "data": [file.name for file in options.recordings],
        "errors_mm": found.errors(found.last),
        "undetermined": {d.name: {"because": d.because, "equals": dict(d.equals)} for d in best.dependent},
    }
    write_calibration(path, found.robot.name, found.last, best, provenance)
    named = read_calibration(found.robot).nominal.urdf
    urdf = found.robot.find_urdf(options.recordings) if named else None
    if urdf is None:
        return [path]
    target = path.with_name(f"{urdf.stem}_calibrated.urdf")
    _write_urdf(target, urdf, found)
    return [path, target]


def _write_urdf(target: Path, nominal: Path, found: FoundGeometry) -> None:
    """Write a calibrated URDF; its geometry is fitted without gains and deflections, which URDF lacks."""
    from stribeck.identify.geometry.urdf import write_calibrated_urdf

    model, fit, data = found.best.model, found.last, found.sets["train"]
    plain = calibrate(model.chain, model.markers, data, fits=[fit], extra=(), gravity=model.gravity)[fit]
    _, chain = calibrated_chain(plain.model, plain.estimate.values)
    write_calibrated_urdf(target, nominal, chain)


def _draw(folder: Path, found: FoundGeometry) -> list[Path]:
    from stribeck.report.arm_figures import PoseSet, draw_errors, draw_poses
    from stribeck.report.style import save_all

    drawn = [
        PoseSet(
            f"{name}, {len(data)} poses",
            data.rows,
            {fit: calibration.distances(data) for fit, calibration in found.fits.items()},
            [blunder.row for blunder in found.best.blunders(data)],
        )
        for name, data in found.sets.items()
    ]
    title = f"Kinematic calibration of {found.robot.title}"
    poses = draw_poses(drawn, found.last, f"{title}: {found.last}")
    return save_all({"errors": draw_errors(drawn, title), "poses": poses}, folder)
