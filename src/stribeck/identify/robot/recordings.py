"""Runs of a whole robot: goals and positions of all joints on one time grid, from tables and bags, with checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.errors import RecordingError, TooShortError
from stribeck.identify.robot.tree import RobotTree
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.tables.lerobot import data_set_of, read_calibration, read_data_set
from stribeck.recordings.tables.readers import Table, find_tables, read_joint_states, read_table

Array = npt.NDArray[np.float64]

TIMES = ("time", "t", "timestamp")
POSITIONS, GOALS = ("dof_pos", "position", "observation.state"), ("des_dof_pos", "goal", "action")
SETTLING = 1.0
"""First part of a run that is not scored [s]."""

SHORTEST = 3.0
"""Runs must last longer [s]."""

NOMINAL = 2e-4
"""Relative spread of the sample times below which they were counted, not measured."""

JITTER = 0.02
"""Relative spread of the sample times above which a run is resampled."""

STOPPED = 1.0
"""Longest time for which a joint may stand still while its goal moves by more than :data:`MOVED` [s]."""

MOVED = 0.3
"""See :data:`STOPPED` [rad]."""

JUMP = 0.15
"""Change of position from one row to the next that may be where two runs are joined [rad]."""

LATEST, FOLLOWS = 0.25, 0.4
"""Largest time by which a position may follow its goal [s], and least correlation between them then."""


@dataclass(frozen=True, eq=False)
class RobotRun:
    """Goals and positions of the joints of a robot on an even time grid.

    :param dt: distance of rows [s].
    :param goal: held from their row on (T, J) [rad].
    :param position: measured (T, J) [rad].
    :param stiffness, derivative: gains of the firmware where the file has them (J,) [N m/rad, N m s/rad].
    :param nominal: whether times were counted, not measured, so that goals may lie later than in other runs.
    :param notes: what is unusual about the recording.
    :param flaw: why the run cannot be used, if so.
    """

    path: Path
    dt: float
    goal: Array
    position: Array
    stiffness: Array | None
    derivative: Array | None
    nominal: bool = False
    notes: tuple[str, ...] = ()
    flaw: str | None = None

    @property
    def name(self) -> str:
        """Name of the file without its suffix."""
        return self.path.stem

    @property
    def first(self) -> int:
        """First row that is scored."""
        return round(SETTLING / self.dt)


def read_runs(
    paths: Sequence[Path],
    tree: RobotTree,
    excluded: Sequence[str] = (),
    degrees: bool = False,
    goal_joints: Sequence[str] = (),
    calibration: Path | None = None,
) -> list[RobotRun]:
    """Read runs from files, folders and bags; each episode of a LeRobot data set, given by its folder, is a run.

    :param excluded: joints of the model that are not checked; files may lack them.
    :param degrees: whether goals and positions are in degrees.
    :param goal_joints: joints of goals without names in bags, by default those of the joint states in their order.
    :param calibration: file of LeRobot, for data sets whose numbers are -100 to 100 of a joint's range.
    :raises RecordingError: for files whose columns are not the joints of the model, or of implausible content.
    """
    unknown = [name for name in goal_joints if name not in tree.names]
    if unknown:
        raise RecordingError(
            f"{tree.path.name} has no joint {', '.join(unknown)}, but goals for it are given; it has {', '.join(tree.names)}"
        )

    def read(path: Path) -> Table:
        return read_joint_states(path, goal_joints=goal_joints) if is_bag(path) else read_table(path)

    known = None if calibration is None else read_calibration(calibration)
    unit, runs = np.pi / 180.0 if degrees else 1.0, list[RobotRun]()
    for path in paths:
        root = data_set_of(path)
        if root is None:
            if known is not None:
                raise RecordingError(
                    f"{path} is not a LeRobot data set, which `calibration` requires: give the folder that contains meta/info.json"
                )
            tables = [part for file in find_tables([path]) for part in _episodes(read(file))]
            runs += [_run(table, tree, excluded, unit) for table in tables]
        else:
            tables = read_data_set(root, degrees=degrees, calibration=known, excluded=excluded)
            runs += [_run(table, tree, excluded, 1.0) for table in tables]
    return runs


def _episodes(table: Table) -> list[Table]:
    """The table, or one for each value of ``episode_index``."""
    owner = table.arrays.get("episode_index")
    if owner is None or len(np.unique(owner)) < 2:
        return [table]
    return [
        replace(
            table,
            path=table.path.with_stem(f"{table.path.stem}-episode-{episode:g}"),
            arrays={name: values[owner == episode] for name, values in table.arrays.items()},
        )
        for episode in np.unique(owner)
    ]


def _run(table: Table, tree: RobotTree, excluded: Sequence[str], unit: float) -> RobotRun:
    where = table.path
    time = _first_of(table, TIMES, "times").reshape(-1)
    used = np.array([name not in excluded for name in tree.names])
    position, goal = (unit * _joints(table, tree, used, kind) for kind in ("position", "goal"))
    seen = np.all(np.isfinite(position[:, used]), axis=1)
    if len(time) != len(position) or not seen.any():
        raise RecordingError(
            f"{where}: found {len(time)} times and {len(position)} rows of positions: each row needs a time and positions"
        )
    goal = _held(goal, used, where)
    time, position, goal = time[seen], position[seen], goal[seen]
    steps = np.diff(time)
    if len(time) < 2 or time[-1] - time[0] < SHORTEST:
        raise TooShortError(f"{where} lasts less than {SHORTEST:g} s; record longer runs")
    if np.any(steps <= 0.0):
        row = int(np.argmin(steps)) + 1
        raise RecordingError(
            f"{where}: time goes back from {time[row - 1]:.3f} to {time[row]:.3f} s in row {row}: split the file if it contains several runs"
        )
    dt = float(np.median(steps))
    notes = []
    if steps.max() > 20.0 * dt:
        raise RecordingError(
            f"{where}: no samples for {steps.max():.2f} s after {time[int(np.argmax(steps))]:.2f} s: split the run"
        )
    if np.std(steps) > JITTER * dt or steps.max() > 1.5 * dt:
        notes.append(
            f"intervals between samples vary from {steps.min() * 1e3:.1f} to {steps.max() * 1e3:.1f} ms, so they are resampled"
        )
        time, position, goal = _resampled(time, position, goal, dt)
    same = np.all(np.diff(position[:, used], axis=0) == 0.0, axis=1)
    repeated = float(np.mean(same[1:-1] & ~same[:-2] & ~same[2:]))  # without rows in which the robot rests
    if repeated > 0.005:
        notes.append(f"{repeated:.1%} of the rows repeat the row before while the robot moves")
    if unit != 1.0 and np.abs(position[:, used]).max(initial=0.0) < unit * np.pi:
        most = np.abs(position[:, used]).max(initial=0.0) / unit
        raise RecordingError(
            f"{where}: in degrees, all positions are within ±{most:.2g}, which is very little: are they radians? Then leave out `degrees`"
        )
    _check_ranges(where, tree, used, position, goal)
    position = np.where(used, position, _resting(tree, position))
    gains = [_gain(table, name, tree, used) for name in ("kp", "kd")]
    nominal = float(np.std(steps)) < NOMINAL * dt + _rounding(time)
    run = RobotRun(where, dt, goal, position, gains[0], gains[1], nominal, tuple(notes))
    return replace(run, flaw=_flaw(run, tree, used))


def _rounding(time: Array) -> float:
    """Rounding of times that were stored as float32 [s], else 0."""
    short = time.astype(np.float32)
    return float(np.spacing(np.abs(short).max())) if np.array_equal(short, time) else 0.0


def _first_of(table: Table, names: Sequence[str], what: str) -> Array:
    for name in names:
        if name in table.arrays:
            return table.arrays[name]
    raise RecordingError(
        f"{table.path} has no {what}: expected {' or '.join(names)}; found {', '.join(table.names[:12])}"
    )


def _joints(table: Table, tree: RobotTree, used: npt.NDArray[np.bool_], kind: str) -> Array:
    """Columns of the joints in the order of the model, NaN for excluded joints without one (T, J)."""
    suffix = "position" if kind == "position" else "position_command"
    if any(f"{name}/{suffix}" in table.arrays for name in tree.names):
        missing = [
            name
            for name, use in zip(tree.names, used, strict=True)
            if use and f"{name}/{suffix}" not in table.arrays
        ]
        if missing:
            raise RecordingError(
                f"{table.path} has no {kind} of {', '.join(missing)}: exclude these joints, or record them"
            )
        rows = len(next(iter(table.arrays.values())))
        empty = np.full(rows, np.nan)
        return np.stack([table.arrays.get(f"{name}/{suffix}", empty) for name in tree.names], axis=1)
    values = _first_of(table, POSITIONS if kind == "position" else GOALS, f"{kind}s")
    values = values.reshape(len(values), -1)
    if values.shape[1] == len(tree.names):
        return values
    if values.shape[1] == np.count_nonzero(used):
        whole = np.full((len(values), len(tree.names)), np.nan)
        whole[:, used] = values
        return whole
    raise RecordingError(
        f"{table.path} contains {values.shape[1]} joints, but {tree.path.name} has {len(tree.names)}: "
        f"{', '.join(tree.names)}: use the model of this robot, or `exclude` joints that were not recorded"
    )


def _held(goal: Array, used: npt.NDArray[np.bool_], where: Path) -> Array:
    """Goals held from one message to the next; the first one holds before."""
    for joint in np.flatnonzero(used):
        known = np.isfinite(goal[:, joint])
        if not known.any():
            raise RecordingError(
                f"{where}: at least one joint has no goals, but each needs goals and positions: `exclude` it, or record its goals"
            )
        last = np.maximum.accumulate(np.where(known, np.arange(len(goal)), -1))
        goal[:, joint] = goal[np.where(last < 0, int(np.argmax(known)), last), joint]
    return goal


def _resampled(time: Array, position: Array, goal: Array, dt: float) -> tuple[Array, Array, Array]:
    even = np.arange(time[0], time[-1], dt)
    moved = np.stack([np.interp(even, time, column) for column in position.T], axis=1)
    return even, moved, goal[np.searchsorted(time, even, side="right") - 1]


def _check_ranges(
    where: Path, tree: RobotTree, used: npt.NDArray[np.bool_], position: Array, goal: Array
) -> None:
    """Refuse degrees, and joints in another order than the model's."""
    lower, upper = tree.range
    for joint in np.flatnonzero(used):
        for values, what in ((position[:, joint], "position"), (goal[:, joint], "goal")):
            middle, most = float(np.median(values)), float(np.abs(values).max())
            span = max(upper[joint] - lower[joint], 0.1)
            if most > 4.0 * np.pi:
                raise RecordingError(
                    f"{where}: the {what} of {tree.names[joint]} reaches {most:.0f}, too much for radians: is it in degrees? Then give `degrees`"
                )
            if not lower[joint] - 0.25 * span <= middle <= upper[joint] + 0.25 * span:
                raise RecordingError(
                    f"{where}: the {what} of {tree.names[joint]} is about {middle:.2f} rad, but the model allows {lower[joint]:.2f} to {upper[joint]:.2f}: "
                    f"the columns must be {', '.join(tree.names)}, in radians"
                )


def _resting(tree: RobotTree, position: Array) -> Array:
    """Where excluded joints are held: their median where the model allows it, else the nearest allowed position."""
    lower, upper = tree.range
    middle = np.array([np.median(column) if np.isfinite(column).all() else 0.0 for column in position.T])
    return np.asarray(np.clip(middle, lower, upper))


def _gain(table: Table, name: str, tree: RobotTree, used: npt.NDArray[np.bool_]) -> Array | None:
    if name not in table.arrays:
        return None
    values: Array = table.arrays[name].reshape(-1)
    if len(values) == len(tree.names):
        return values
    if len(values) == np.count_nonzero(used):
        whole = np.zeros(len(tree.names))
        whole[used] = values
        return whole
    raise RecordingError(
        f"{table.path}: {name} has {len(values)} values for {len(tree.names)} joints: give one value for each"
    )


def _flaw(run: RobotRun, tree: RobotTree, used: npt.NDArray[np.bool_]) -> str | None:
    """Why a run cannot be used, if so."""
    return _blocked(run, tree, used) or _jump(run, tree, used) or _stranger(run, tree, used)


def _jump(run: RobotRun, tree: RobotTree, used: npt.NDArray[np.bool_]) -> str | None:
    """Name a joint whose position jumps, as where two runs are joined."""
    moves = np.abs(np.diff(run.position, axis=0))
    usual = np.quantile(moves, 0.995, axis=0)
    for joint in np.flatnonzero(used):
        row = int(np.argmax(moves[:, joint]))
        if moves[row, joint] > max(JUMP, 4.0 * usual[joint]):
            return f"{tree.names[joint]} jumps by {moves[row, joint]:.2f} rad at {row * run.dt:.1f} s: does the file contain two runs?"
    return None


def _stranger(run: RobotRun, tree: RobotTree, used: npt.NDArray[np.bool_]) -> str | None:
    """Name a joint whose position does not follow its goal, within :data:`LATEST`; and whose goal it follows, if any."""
    joints = np.flatnonzero(used)
    rows = max(round(LATEST / run.dt), 1)
    found = np.zeros((len(joints), len(joints)))
    for late in range(0, rows + 1, max(rows // 8, 1)):
        position, goal = run.position[late:, joints], run.goal[: len(run.goal) - late, joints]
        spread = np.outer(np.std(position, axis=0), np.std(goal, axis=0))
        product = (position - position.mean(axis=0)).T @ (goal - goal.mean(axis=0)) / len(goal)
        found = np.maximum(found, product / np.maximum(spread, 1e-12))
    for k, joint in enumerate(joints):
        moving = np.ptp(run.goal[:, joint]) > MOVED and np.ptp(run.position[:, joint]) > 0.1 * MOVED
        if not moving or found[k, k] > FOLLOWS:
            continue
        other = int(np.argmax(found[k]))
        hint = "do the goals belong to another robot, or are columns in another order?"
        if found[k, other] > 0.9:
            hint = f"it follows the goal of {tree.names[joints[other]]}: the columns must be in the order {', '.join(tree.names)}"
        return f"{tree.names[joint]} does not follow its goal (correlation {found[k, k]:.2f}); {hint}"
    return None


def _blocked(run: RobotRun, tree: RobotTree, used: npt.NDArray[np.bool_]) -> str | None:
    """Name a joint that stands still while its goal moves, as if it were blocked or its torque off."""
    window = max(round(STOPPED / run.dt), 1)
    for joint in np.flatnonzero(used):
        goal, position = (
            np.lib.stride_tricks.sliding_window_view(values[:, joint], window)
            for values in (run.goal, run.position)
        )
        still = np.ptp(position, axis=1) < 0.05 * MOVED
        wanted = np.ptp(goal, axis=1) > MOVED
        away = np.abs(goal - position).min(axis=1) > 0.25 * MOVED
        bad = np.flatnonzero(still & wanted & away)
        if len(bad):
            at = bad[0] * run.dt
            return f"{tree.names[joint]} stops moving at {at:.1f} s while its goal moves: it is blocked, or its torque is off"
    return None
