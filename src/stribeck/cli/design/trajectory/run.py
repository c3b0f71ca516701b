"""Implements ``stribeck design trajectory``: search, check, files and figures."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from stribeck.cli.design.trajectory.options import DesignTrajectoryOptions
from stribeck.cli.exit_codes import INTERRUPTED, STARTED
from stribeck.cli.inputs import check_outputs, warn, write_json
from stribeck.cli.progress import TqdmDisplay
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, OutputError
from stribeck.excitation.baseline import shrunk
from stribeck.excitation.check import LimitReport, check
from stribeck.excitation.criterion import Criterion
from stribeck.excitation.defaults import robot_of_urdf
from stribeck.excitation.search import QUICK, Climb, Clock, Search, search
from stribeck.excitation.section import excitation_section
from stribeck.excitation.shapes import has_bodies
from stribeck.excitation.task import ExcitationTask, JointLimits, task_of
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.arm.model import load_arm
from stribeck.model.arrays import Array
from stribeck.report.excitation_figures import Row, draw_excitation, draw_sigmas
from stribeck.report.style import save
from stribeck.session.excitation_file import ExcitationFile, write_excitation, write_joint_trajectory
from stribeck.session.fourier import FourierTrajectory

PICTURES = ("trajectory.png", "sigmas.png")

SHARES, CHECKED, COARSE = (1.0, 0.8, 0.6, 0.45, 0.3), 60, 20.0
"""Amplitudes at which the best random trajectories are tried if bodies collide on all others, their number, and the rate of
a first check [Hz]."""

DRAWN = 500
"""Number of points per curve."""


@dataclass(frozen=True, eq=False)
class Design:
    """The chosen trajectory and its performance measures.

    :param sigmas, random_sigmas: predicted standard deviations of the base parameters (b,).
    """

    task: ExcitationTask
    result: Search
    climb: Climb
    trajectory: FourierTrajectory
    report: LimitReport
    sigmas: Array
    random_sigmas: Array
    seconds: float

    @property
    def sigma_ratio(self) -> float:
        """Median over the base parameters of the standard deviation relative to that of the best random trajectory.

        Base parameters have different units (kg, kg m, kg m²), so each is compared with itself.
        """
        return float(np.median(self.sigmas / self.random_sigmas))


def run(options: DesignTrajectoryOptions) -> int:
    """Search, check, and write the results."""
    clock = Clock(options.seconds, STARTED)
    config, task = _robot_and_task(options)
    criterion = Criterion(task, quick=options.seconds < QUICK)
    with SearchBar(clock, options.quiet) as bar:
        result = search(
            criterion, clock, starts=options.starts, random=options.random, seed=options.seed, tell=bar.tell
        )
    climb, trajectory, report = _first_clean(task, criterion, result)
    sigmas = task.sigmas(trajectory)
    random_sigmas = task.sigmas(task.trajectory(result.baseline.z[0]))
    design = Design(task, result, climb, trajectory, report, sigmas, random_sigmas, clock.elapsed)
    _write(config, design, options)
    _tell(config, design)
    if len(result.baseline.z) < options.random:
        warn(
            f"time ran out after {len(result.baseline.z)} of {options.random} random trajectories: raise --seconds"
        )
    if climb.log_det <= result.baseline.log_det[0]:
        warn(
            "the result is the best of the random trajectories, as there was no time to improve it: raise --seconds"
        )
    if result.interrupted:
        print("stribeck: interrupted; the best trajectory so far is saved", file=sys.stderr)
        return INTERRUPTED
    return 0


def _robot_and_task(options: DesignTrajectoryOptions) -> tuple[RobotConfig, ExcitationTask]:
    """The robot and the trajectory to design; prints defaults that were used, and pairs of links that always touch."""
    config = None if options.machine is None else read_robot(options.machine)
    pictures = [] if options.plot is None else [options.plot / name for name in PICTURES]
    outputs = [options.output, options.json, options.joint_trajectory, *pictures]
    named = options.model if config is None else config.path
    if named is None:
        raise ConfigError("no robot: give --model FILE, or --machine with a name or YAML file")
    check_outputs(outputs, [named, options.model, *options.data])
    limits: JointLimits | None = None
    said: list[str] = []
    if config is None:
        alone = robot_of_urdf(named)
        config, arm, limits, said = alone.config, alone.arm, alone.limits, [*alone.said]
    else:
        urdf = options.model or config.find_urdf(options.data)
        if urdf is None:
            raise ConfigError(f"{config.path} names no urdf: add `urdf:`, or give --model FILE")
        arm = load_arm(urdf, config.joints)
    bodies = not options.no_collisions
    if bodies and options.machine is None and not has_bodies(arm):
        bodies = False
        said.append("self-collision: not checked, because the URDF has no collision geometry")
    task = task_of(
        config,
        excitation_section(config, len(arm)),
        arm,
        harmonics=options.harmonics,
        duration=options.duration,
        collisions=bodies,
        limits=limits,
    )
    for pair in sorted(" and ".join(sorted(pair)) for pair in task.touching):
        said.append(f"self-collision: {pair} touch in nearly every position: not checked")
    print(*said, sep="\n", end="\n" if said else "")
    return config, task


def _first_clean(
    task: ExcitationTask, criterion: Criterion, result: Search
) -> tuple[Climb, FourierTrajectory, LimitReport]:
    """The best trajectory that satisfies all limits in the final check; if the search found none, a random one.

    :raises OutputError: if there is none.
    """
    reports = []
    for climb in result.climbs:
        trajectory = task.trajectory(climb.z)
        report = check(task, trajectory)
        if report.clean:
            return climb, trajectory, report
        reports.append(report)
    for share in SHARES:
        for z in result.baseline.z[:CHECKED]:
            trajectory = task.trajectory(smaller := shrunk(task, z, share))
            if check(task, trajectory, COARSE).clean and (report := check(task, trajectory)).clean:
                log_det = criterion.score(smaller).log_det
                warn(
                    f"in every trajectory of the search bodies collide: the result is a random one, scaled to {share:g} of its amplitude"
                )
                return (
                    replace(result.climbs[0], z=smaller, log_det=log_det, start_log_det=log_det),
                    trajectory,
                    report,
                )
    raise OutputError(
        "nothing was written: the best trajectory violates limits between the samples of the search: "
        f"{reports[0].summary}; raise clearance in the robot's file, --seconds or --starts"
    )


def _write(config: RobotConfig, design: Design, options: DesignTrajectoryOptions) -> None:
    content = ExcitationFile(config.name, design.trajectory, design.climb.log_det)
    write_excitation(options.output, content)
    if options.joint_trajectory is not None:
        write_joint_trajectory(options.joint_trajectory, design.trajectory, options.rate)
    header = {"robot": config.name, "seed": options.seed}
    write_json(options.json, header | _summary(design))
    if options.plot is not None:
        _draw(config, design, options.plot)


def _summary(design: Design) -> dict[str, Any]:
    task, baseline = design.task, design.result.baseline
    best = float(baseline.log_det[0])
    return {
        "harmonics": task.harmonics,
        "duration": task.duration,
        "samples": task.samples,
        "base_parameters": len(task.base),
        "log_det": design.climb.log_det,
        "random": {"best_log_det": best, "count": len(baseline.z)},
        "gain": design.climb.log_det - best,
        "median_sigma_ratio": design.sigma_ratio,
        "seconds": design.seconds,
        "violations": design.report.violations,
        "largest": design.report.largest,
        "interrupted": design.result.interrupted,
        "starts": [
            {name: getattr(climb, name) for name in ("log_det", "start_log_det", "iterations", "finished")}
            | {"status": climb.status.value}
            for climb in design.result.climbs
        ],
    }


def _tell(config: RobotConfig, design: Design) -> None:
    summary, largest = _summary(design), design.report.largest
    rows = [
        ("log det of the information", f"{summary['log_det']:.2f}"),
        (f"best of {summary['random']['count']} random", f"{summary['random']['best_log_det']:.2f}"),
        ("gain", f"{summary['gain']:+.2f}"),
        ("median of sigma / random's", f"{summary['median_sigma_ratio']:.3f}"),
        *((f"largest {name} / limit", f"{share:.4f}") for name, share in largest.items()),
        (f"violations in {design.report.samples} samples", str(sum(design.report.violations.values()))),
        ("seconds", f"{design.seconds:.1f}"),
    ]
    print_table((config.title, "found"), rows)


def _draw(config: RobotConfig, design: Design, folder: Path) -> None:
    task, limits = design.task, design.task.limits
    time = np.linspace(0.0, task.duration, DRAWN)
    states = design.trajectory.states(time)
    torque = task.arm.inverse_dynamics(*states)
    rows = [Row("position [rad]", states[0], limits.lower, limits.upper)]
    for label, values, limit in (
        ("velocity [rad/s]", states[1], limits.velocity),
        ("acceleration [rad/s²]", states[2], limits.acceleration),
        ("torque [N m]", torque, limits.effort),
    ):
        rows.append(Row(label, values, -limit, limit))
    save(draw_excitation(time, task.arm.joints, rows, config.title), folder / PICTURES[0])
    names = [task.arm.parameter_names[k] for k in task.base.chosen]
    title = f"{config.title}: predicted standard deviations"
    save(draw_sigmas(names, design.sigmas, design.random_sigmas, title), folder / PICTURES[1])


class SearchBar(TqdmDisplay):
    """Shows the elapsed time on stderr; threads may update it.

    :param quiet: show nothing.
    """

    def __init__(self, clock: Clock, quiet: bool) -> None:
        self._clock, self._lock = clock, Lock()
        shape = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} of at most {total:.0f} s{postfix}"
        super().__init__(clock.seconds, quiet, desc="excite", bar_format=shape)

    def tell(self, phase: str, best: float | None) -> None:
        """Update the bar."""
        with self._lock:
            text = phase if best is None else f"{phase}, log det {best:.2f}"
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(min(self._clock.elapsed, self._clock.seconds) - self._bar.n)
