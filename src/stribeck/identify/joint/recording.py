"""Runs of one joint: signals of a table, in pieces without gaps, with what was noticed about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import RecordingError, TooShortError
from stribeck.identify.joint.plausibility import (
    Notice,
    check_magnitudes,
    check_motion,
    check_velocity,
    relative_position,
)
from stribeck.identify.joint.run import JointRun
from stribeck.model.arrays import Array, Indices
from stribeck.model.log import gaps_of
from stribeck.survey.joint_table import JointTable

SHORTEST, FEWEST = 1.0, 50
"""Pieces that are shorter [s] or have fewer rows are dropped."""

MOST_MISSING = 0.2
"""Largest share of rows without a value."""

AVERAGED = 0.02
"""Positions are averaged over this time for the state of presliding, in which noise is motion to and fro [s]."""

SMOOTHING = 0.05
"""Half of the time over which a position is differentiated [s]."""


@dataclass(frozen=True)
class Known:
    """What is known of a joint beside its tables.

    :param kt: torque per current at the joint [N m/A]; with a gear, times its ratio.
    :param inertia: rotor and link [kg m²], if the torque has not been freed of it.
    :param gravity: largest torque of gravity [N m], of a link that hangs down at the angle zero.
    """

    kt: float | None = None
    inertia: float = 0.0
    gravity: float = 0.0


@dataclass(frozen=True)
class Recording:
    """The pieces of a table, and what was noticed."""

    name: str
    runs: tuple[JointRun, ...]
    notices: tuple[Notice, ...] = ()


def recording_of(table: JointTable, known: Known | None = None) -> Recording:
    """The runs of a table: complete rows in pieces without gaps, with derivatives.

    :raises RecordingError: for signals that cannot be used, with the cause.
    """
    known = known or Known()
    signals, notices = _complete(table, known)
    pieces, more = _pieces(table.name, signals)
    notices += more
    check_magnitudes(table, signals, pieces)
    runs = [_run(table.name, {name: values[rows] for name, values in signals.items()}) for rows in pieces]
    check_motion(table, runs)
    if "velocity" in signals:
        notices += check_velocity(table, runs)
    notices += relative_position(table.name, signals["position"])
    runs = [_with_known(run, known, "rigid" in signals) for run in runs]
    return Recording(table.name, tuple(runs), tuple(notices))


def _complete(table: JointTable, known: Known) -> tuple[dict[str, Array], list[Notice]]:
    """The rows in which no signal is missing, the torque in N m."""
    signals = dict(table.signals)
    if "torque" not in signals:
        if known.kt is None:
            raise RecordingError(
                f"{table.name}: {table.columns['current']} is a current: give the torque per current at the "
                "joint, including the gear ratio, as kt=N m/A in `fixed`"
            )
        signals["torque"] = known.kt * signals.pop("current")
    lengths = {name: len(values) for name, values in signals.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise RecordingError(f"{table.name}: signals differ in length: {listed} rows")
    notices = []
    missing = {name: float(np.mean(~np.isfinite(values))) for name, values in signals.items()}
    for name, share in missing.items():
        if share <= MOST_MISSING:
            continue
        if name in ("velocity", "acceleration", "temperature"):
            del signals[name]
            text = f"{table.name}: {name} is missing in {100.0 * share:.0f} % of the rows, so it is not used"
            notices.append(Notice("missing", "doubtful", text))
        else:
            raise RecordingError(
                f"{table.name}: {table.columns.get(name, name)} has no number in {100.0 * share:.0f} % of the "
                f"rows: is it the {name}? Otherwise name another column with `columns`"
            )
    known_rows = np.all([np.isfinite(values) for values in signals.values()], axis=0)
    if dropped := int(np.sum(~known_rows)):
        text = f"{table.name}: {dropped} rows with missing values are not used"
        notices.append(Notice("missing", "note", text))
    return {name: values[known_rows] for name, values in signals.items()}, notices


def _pieces(name: str, signals: Mapping[str, Array]) -> tuple[list[Indices], list[Notice]]:
    """Rows of each piece: between gaps, and where time starts again."""
    time, notices = signals["time"], []
    if len(time) < FEWEST:
        raise TooShortError(
            f"{name} has {len(time)} rows, but at least {FEWEST} are needed, with motion in both directions"
        )
    steps = np.diff(time)
    rising = steps[steps > 0.0]
    if len(rising) < MOST_MISSING * len(steps):
        raise RecordingError(
            f"{name}: time does not increase in {np.mean(steps <= 0.0):.0%} of the rows: name the column of the time with `columns` time=COLUMN"
        )
    usual = float(np.median(rising))
    back = np.flatnonzero(steps < 0.0)
    early = np.maximum.accumulate(time)[1:] - time[1:]
    disordered = [k for k in back.tolist() if early[k] < 0.5 * (time[k] - time[0]) or early[k] < 10.0 * usual]
    if disordered:
        row = disordered[0]
        raise RecordingError(
            f"{name}: time goes back from {time[row]:.6g} to {time[row + 1]:.6g} s after row {row + 1}: rows "
            "are not in the order of time, or from two clocks: sort them"
        )
    if len(back):
        text = f"{name}: time starts again {len(back)} times: the file contains {len(back) + 1} tests, which are used as separate runs"
        notices.append(Notice("restart", "note", text))
    gaps = gaps_of(steps, usual)
    if len(gaps):
        text = f"{name} has {len(gaps)} gaps, the longest of {steps.max():.2g} s, so it is used in parts"
        notices.append(Notice("gaps", "note", text))
    pieces = np.split(np.arange(len(time)), np.union1d(back, gaps) + 1)
    pieces = [rows[np.concatenate([[True], np.diff(time[rows]) > 0.0])] for rows in pieces]
    if repeated := len(time) - sum(map(len, pieces)):
        text = f"{name}: {repeated} rows repeat the time of the row before, and are not used"
        notices.append(Notice("repeated", "note", text))
    long = [rows for rows in pieces if len(rows) >= FEWEST and np.ptp(time[rows]) >= SHORTEST]
    if not long:
        raise TooShortError(
            f"{name}: the longest part without a gap has {max(map(len, pieces))} rows in {max(float(np.ptp(time[rows])) for rows in pieces):.2g} s, but at "
            f"least {FEWEST} rows and {SHORTEST:g} s are needed"
        )
    if short := len(pieces) - len(long):
        left = sum(len(rows) for rows in pieces) - sum(len(rows) for rows in long)
        text = f"{name}: {short} parts shorter than {SHORTEST:g} s or {FEWEST} rows, with {left} rows in all, are not used"
        notices.append(Notice("short", "note", text))
    return long, notices


def _run(name: str, signals: Mapping[str, Array]) -> JointRun:
    """A piece with derivatives where they were not measured."""
    time, position = signals["time"], signals["position"]
    velocity = signals.get("velocity")
    if velocity is None:
        velocity = differentiated(time, position, 1)
        acceleration = signals.get("acceleration", differentiated(time, position, 2))
    else:
        given = signals.get("acceleration")
        measured = given is not None and np.any(given)
        acceleration = given if given is not None and measured else differentiated(time, velocity, 1)
    zero = np.zeros_like(time)
    return JointRun(
        name,
        time,
        position,
        velocity,
        acceleration,
        signals["torque"],
        signals.get("rigid", zero),
        zero,
        np.ones_like(time),
        signals.get("temperature"),
        averaged(time, position),
    )


def _with_known(run: JointRun, known: Known, given: bool) -> JointRun:
    """The run with what is known of its torque; without inertia and gravity the load is that of the column."""
    gravity = known.gravity * np.sin(run.position)
    rigid = run.rigid + gravity + known.inertia * run.acceleration
    return replace(run, rigid=rigid, load=-(run.rigid + gravity))


def averaged(time: Array, position: Array) -> Array:
    """Means of positions over :data:`AVERAGED` (N,), over fewer at the ends."""
    half = round(0.5 * AVERAGED / float(np.median(np.diff(time))))
    total = np.concatenate([[0.0], np.cumsum(position - position[0])])
    rows = np.arange(len(position))
    reach = np.minimum(half, np.minimum(rows, rows[::-1]))
    return np.asarray(position[0] + (total[rows + reach + 1] - total[rows - reach]) / (2 * reach + 1))


def differentiated(time: Array, values: Array, order: int) -> Array:
    """Derivative (N,) of noisy values at irregular times, by parabolas over twice :data:`SMOOTHING`.

    Savitzky and Golay 1964, at even times, with values interpolated between the samples.
    """
    from scipy.signal import savgol_filter  # slow to import, and seldom needed

    step = float(np.median(np.diff(time)))
    even = np.arange(time[0], time[-1] + 0.5 * step, step)
    width = 2 * max(2, round(SMOOTHING / step)) + 1
    if len(even) <= width:
        width = 2 * ((len(even) - 1) // 2) - 1
    smooth = savgol_filter(np.interp(even, time, values), width, 2, deriv=order, delta=step)
    return np.asarray(np.interp(time, even, smooth))
