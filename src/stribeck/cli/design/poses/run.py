"""``stribeck design poses``: selects the poses to measure next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.cli.design.poses.options import PosesOptions
from stribeck.cli.inputs import as_number, assignments, check_outputs, result_path, warn, write_json
from stribeck.errors import ConfigError, check_valid
from stribeck.files.folders import write_atomically
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.geometry.calibration import align
from stribeck.identify.geometry.chain import SerialChain
from stribeck.identify.geometry.config import UNITS, CalibrationConfig, nominal_chain, read_calibration
from stribeck.identify.geometry.data import JOINTS, find_sets, read_joints, read_poses
from stribeck.identify.geometry.model import KinematicModel
from stribeck.identify.geometry.pose_selection import choose_poses, design_model, information_rows
from stribeck.model.arrays import Array
from stribeck.session.poses import PosesFile, in_order

CHOSEN = "poses.txt"

VISITED = (".yaml", ".yml")
"""Suffixes of files that the excitation node plays."""

VISIT = ("speed", "acceleration", "rest")
"""What ``--set`` may state of a visit."""

TOOL = 0.1 * np.eye(3)
"""Markers assumed behind the flange [m] until some are measured."""


def run(options: PosesOptions) -> int:
    """Choose poses, print and write them."""
    robot = read_robot(options.machine)
    config = read_calibration(robot)
    visit = _asked(options)
    if not options.recordings and options.candidates is None:
        raise ConfigError("no poses to choose from: name files of poses, or give --candidates FILE")
    beside = [*options.recordings, *([options.candidates] if options.candidates else [])]
    measured_files = [
        path for pose_set in find_sets(options.recordings, config, needed=[]) for path in pose_set.values()
    ]
    check_outputs([result_path(options.output, CHOSEN), options.json], [*beside, *measured_files])
    chain, number = nominal_chain(robot, config, beside), options.count
    source = options.candidates or find_sets(options.recordings, config, needed=[JOINTS])[0][JOINTS]
    positions = read_joints(source, config, chain)
    model, values, measured = _design(options, config, chain)
    scaled = information_rows(model, values, np.concatenate([measured, positions]))
    choice = choose_poses(scaled, number, range(len(measured)), options.seed)
    chosen = [int(i) - len(measured) for i in choice.chosen]
    path = result_path(options.output, CHOSEN)
    if path is not None:
        poses = [positions[i] for i in chosen]
        if path.suffix in VISITED:
            _visit(options, robot, chain, poses, visit).write(path)
        else:
            scales = np.array([UNITS[unit] for unit in config.data.joints.units(len(chain.names))])
            lines = [" ".join(f"{x:.9g}" for x in pose / scales) for pose in poses]
            write_atomically(path, "\n".join(lines) + "\n")
    summary = {"candidates": source.name, "selected": chosen, "log_determinant": choice.log_determinant}
    summary |= {"random_log_determinant": choice.random_log_determinant, "exchanges": choice.exchanges}
    write_json(options.json, summary)
    better = choice.log_determinant - choice.random_log_determinant
    print(
        f"{len(chosen)} of {len(positions)} poses chosen, in addition to {len(measured)} measured already; rows, most informative first:"
    )
    print(" ".join(map(str, chosen)))
    print(f"log det of the information {choice.log_determinant:.1f}, {better:+.1f} relative to random poses")
    if path is not None:
        print(path)
    return 0


def _asked(options: PosesOptions) -> dict[str, float]:
    """Speed, acceleration and rest that ``--set`` states for the file of a visit."""
    asked = assignments(options.set, "--set")
    check_valid(asked, VISIT, "--set: unknown name")
    if asked and (options.output is None or options.output.suffix not in VISITED):
        raise ConfigError("--set describes a visit: name its file with --output FILE.yaml")
    found = {name: as_number(text, f"--set {name}") for name, text in asked.items()}
    for name, value in found.items():
        if not value > 0.0:
            raise ConfigError(f"--set {name}: expected a positive number, found {value:g}")
    return found


def _visit(
    options: PosesOptions,
    robot: RobotConfig,
    chain: SerialChain,
    poses: Sequence[Array],
    asked: dict[str, float],
) -> PosesFile:
    """The poses in an order on free ways, for the excitation node; those beyond the limits or behind bodies are left out.

    :param asked: speed, acceleration and rest, where they are not the usual ones.
    """
    limits = robot.position_limits(len(chain.names))
    if limits is not None:
        lower, upper = np.array(limits).T
        inside = [pose for pose in poses if np.all((pose >= lower) & (pose <= upper))]
        if len(inside) < len(poses):
            warn(
                f"{len(poses) - len(inside)} poses violate the limits of {robot.path} and are not considered"
            )
        poses = inside
    free = None
    if options.model is not None:
        from stribeck.excitation.motion_check import free_ways
        from stribeck.identify.arm.model import load_arm

        free = free_ways(load_arm(options.model, chain.names))
    order, behind = in_order(poses, free)
    if behind:
        warn(
            f"{len(behind)} poses cannot be reached on straight paths without self-collision, and are not considered"
        )
    if not order:
        raise ConfigError("no pose remains: give other candidates")
    return PosesFile(
        schema=1, joints=chain.names, poses=tuple(tuple(poses[k].tolist()) for k in order), **asked
    )


def _design(
    options: PosesOptions, config: CalibrationConfig, chain: SerialChain
) -> tuple[KinematicModel, Array, Array]:
    """The model for which poses are chosen, its parameters, and the positions already measured."""
    nothing = np.zeros((0, len(chain.names)))
    complete = False
    if options.recordings:
        files = find_sets(options.recordings, config, needed=[JOINTS])
        markers = set(config.data.markers)
        complete = bool(markers) and all(markers <= set(paths) for paths in files)
    if not complete:
        return *design_model(config, chain, np.eye(4), TOOL, ("a", "b", "c")), nothing
    measured = read_poses(options.recordings, config, chain)
    base, points = align(chain, measured.data)
    model, values = design_model(config, chain, base, points, measured.markers)
    return model, values, measured.data.positions if options.candidates is not None else nothing
