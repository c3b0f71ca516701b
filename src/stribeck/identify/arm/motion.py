"""Processing of recorded motion by a protocol: filters, derivatives, decimation, and selection of rows and joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from stribeck.errors import ConfigError, RecordingError, TooShortError
from stribeck.identify.arm.config import FilterSettings, Protocol
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.signals import ZeroPhase, derivative, resample
from stribeck.model.arrays import Array, Indices, Mask
from stribeck.model.log import gaps_of

OVERSAMPLING = 8.0
"""Smallest sampling rate of predictions, in multiples of the cut-off frequency of torques."""

GAP = 0.05
"""A longer interval without samples [s] may be a gap."""

SHORTEST = 50
"""Smallest number of rows of a part between gaps."""

LAGS = 1000
"""Number of rows in which repetitions of a motion are searched."""

REPEATED = 0.02
"""A motion repeats itself if positions differ by less than this mean square, relative to their variance."""

TOGETHER = 0.05
"""Share of the rows in which two joints move, below which they move one at a time."""

WIDER = 2.5
"""Cut-off frequency of states for predictions, in multiples of that of the torques."""


@dataclass(frozen=True)
class States:
    """Joint states at one rate, each (N, n).

    :param rate: [Hz].
    """

    rate: float
    position: Array
    velocity: Array
    acceleration: Array

    def __len__(self) -> int:
        return len(self.position)

    def at(self, rows: slice) -> States:
        """Some of the rows."""
        return States(self.rate, self.position[rows], self.velocity[rows], self.acceleration[rows])


@dataclass(frozen=True)
class ProcessedMotion:
    """A recording after processing by a protocol.

    :param time: times of the rows (M,) [s].
    :param states: states at the rows, filtered by the protocol.
    :param torque: filtered torques at the rows (M, n) [N m or N].
    :param moving: rows of each joint above the velocity threshold of the protocol, (M, n).
    :param resting: rows of each joint below the rest velocity, (M, n).
    :param fine: states for predictions, without the torque filter, at a finer rate and corrected for the delay.
    :param pick: indices of the rows in the fine states.
    :param kernel: impulse response of the torque filter at the fine rate, ``None`` for none, or if states are filtered alike.
    :param sticking: whether only moving rows tell something of friction.
    """

    name: str
    joints: tuple[str, ...]
    time: Array
    states: States
    torque: Array
    moving: Mask
    resting: Mask
    fine: States
    pick: slice
    kernel: Array | None
    sticking: bool = False


def segments(run: ArmRecording, protocol: Protocol | None = None) -> list[ArmRecording]:
    """The parts of a recording between gaps, which no interpolation may cross.

    A gap is longer than :data:`GAP` and :data:`~stribeck.model.log.GAP_STEPS` median intervals. Parts are numbered from 1, and those with fewer
    than :data:`SHORTEST` rows, or too few for the protocol, are left out. Without gaps the recording stays as it is.

    :param protocol: gives the rows of the recording that are used.
    :raises TooShortError: if no part is long enough.
    """
    whole = run if protocol is None else _rows(run, protocol)
    steps = np.diff(whole.time)
    usual = float(np.median(steps)) if len(steps) else 0.0
    gaps = gaps_of(steps, usual, GAP) + 1
    if len(gaps) == 0:
        return [run]
    least = SHORTEST if protocol is None else SHORTEST + 2 * protocol.drop + 10 * protocol.every
    ends = [0, *gaps.tolist(), len(whole.time)]
    parts = [(first, end) for first, end in pairwise(ends) if end - first >= least]
    if not parts:
        longest = max(end - first for first, end in pairwise(ends))
        raise TooShortError(
            f"{run.name}: between its {len(gaps)} gaps, at most {longest} consecutive rows remain, but {least} are needed: record without gaps"
        )
    return [
        replace(whole.between(first, end), name=f"{run.name} part {k}")
        for k, (first, end) in enumerate(parts, 1)
    ]


def usable_parts(runs: Sequence[ArmRecording], protocol: Protocol) -> tuple[list[ArmRecording], list[str]]:
    """The parts of recordings between gaps that are long enough, and a line for each recording that is cut or left out.

    :raises TooShortError: if no part is long enough.
    """
    found: list[ArmRecording] = []
    lines: list[str] = []
    refused: TooShortError | None = None
    for run in runs:
        try:
            parts = segments(run, protocol)
            motions = [part for part in parts if _is_long(part, protocol)]
            if not motions:
                raise TooShortError(
                    f"{run.name}: {max(len(part.time) for part in parts)} samples are too few, because no row remains after filtering: record longer"
                )
        except TooShortError as error:
            refused = refused or error
            lines.append(f"{error}; the recording is not used")
            continue
        if parts[0] is not run:
            left = sum(len(part.time) for part in motions)
            lines.append(
                f"{run.name} has gaps of up to {np.diff(run.time).max():.2g} s, so it is split into {len(motions)} parts; {len(run.time) - left} of "
                f"{len(run.time)} rows are in parts too short to use"
            )
        found += motions
    if refused is not None and not found:
        raise refused
    return found, lines


def move_alone(motions: Sequence[ProcessedMotion]) -> bool:
    """Whether no two of several joints ever move at the same time, as where one joint is recorded after the other."""
    several = len({j for motion in motions for j in np.flatnonzero(motion.moving.any(axis=0)).tolist()}) > 1
    together = sum(int(np.sum(motion.moving.sum(axis=1) > 1)) for motion in motions)
    return several and together < TOGETHER * sum(len(motion.time) for motion in motions)


def _is_long(run: ArmRecording, protocol: Protocol) -> bool:
    """Whether processing by the protocol leaves rows."""
    whole = _rows(run, protocol)
    rate = protocol.resample
    samples = len(whole.time) if rate is None else int((whole.time[-1] - whole.time[0]) * rate)
    return samples - 2 * protocol.drop > 10 * protocol.every


def held_out(run: ArmRecording, protocol: Protocol, share: float) -> tuple[ArmRecording, ArmRecording]:
    """The first part of a recording, and the last ``share`` of the rows that the protocol uses."""
    whole = _rows(run, protocol)
    cut = round((1.0 - share) * len(whole.time))
    seconds = f"{whole.time[min(cut, len(whole.time) - 1)] - run.time[0]:.4g} s"
    first, last = whole.between(0, cut), whole.between(cut, len(whole.time))
    return replace(first, name=f"{run.name} to {seconds}"), replace(last, name=f"{run.name} from {seconds}")


def time_blocks(motion: ProcessedMotion, blocks: int) -> list[Indices]:
    """Rows of a recording in blocks of time, for cross-validation.

    A motion that repeats itself has the same phases of all periods in a block: rows whose repetition is fitted would not
    be held out.
    """
    period = _period(motion.states.position)
    if period is None:
        return np.array_split(np.arange(len(motion.time)), blocks)
    phase = np.arange(len(motion.time)) % period
    return [np.flatnonzero(phase * blocks // period == k) for k in range(blocks)]


def _period(position: Array) -> int | None:
    """Rows after which positions (N, n) repeat, ``None`` if they never do."""
    stride = max(1, len(position) // LAGS)
    coarse = position[::stride]
    variance = coarse.var(axis=0)
    coarse = coarse[:, variance > 0.0] / np.sqrt(variance[variance > 0.0])
    lags = np.arange(1, len(coarse) // 2 + 1)
    change = np.array([np.mean((coarse[lag:] - coarse[:-lag]) ** 2) for lag in lags])
    apart = np.flatnonzero(change > 0.5)
    if len(apart) == 0:
        return None
    same = apart[0] + np.flatnonzero(change[apart[0] :] < REPEATED)
    if len(same) == 0:
        return None
    first = same[same < same[0] + max(2, len(lags) // 20)]
    return int(lags[first[np.argmin(change[first])]]) * stride


def motion_of(run: ArmRecording, protocol: Protocol, delay: float = 0.0) -> ProcessedMotion:
    """Process a recording.

    :param delay: delay of recorded states relative to torques [s]; fine states are shifted by it.
    :raises TooShortError: if too few rows remain; it names the recording.
    :raises ConfigError: for rows that the recording does not have, or filters too fast for its rate.
    """
    run = _rows(run, protocol)
    try:
        return _processed(run, protocol, delay)
    except TooShortError as problem:
        text = str(problem)
        raise TooShortError(text if text.startswith(run.name) else f"{run.name}: {text}") from None


def _processed(run: ArmRecording, protocol: Protocol, delay: float) -> ProcessedMotion:
    if protocol.velocity == "differentiated":
        run = replace(run, velocity=None)
    grid, rate = _grid(run, protocol)
    torque, effort = _on(run, run.effort, grid), _zero_phase(protocol.effort_filter)
    torque = torque if effort is None else effort(torque, rate)
    states = _states(run, grid, rate, _zero_phase(protocol.position_filter), protocol.edge_order)
    step = _fine_step(protocol, rate)
    wide = _wide(protocol, rate)
    fine = _later(_states(run, grid, rate, wide, protocol.edge_order), grid, delay).at(
        slice(None, None, step)
    )
    fine = States(rate / step, fine.position, fine.velocity, fine.acceleration)
    first, end = protocol.drop, len(grid) - protocol.drop
    first += -first % step  # align rows with the fine grid
    rows = slice(first, end, protocol.every)
    if end - first < 10 * protocol.every:
        raise TooShortError(
            f"{run.name}: {len(grid)} samples are too few, because no row remains after filtering: record longer"
        )
    kept = states.at(rows)
    speed = np.abs(kept.velocity)
    return ProcessedMotion(
        name=run.name,
        joints=run.joints,
        time=grid[rows] - grid[0],
        states=kept,
        torque=torque[rows],
        moving=speed > protocol.moving,
        resting=speed < max(protocol.rest, 1e-9),
        fine=fine,
        pick=slice(first // step, -(-end // step), protocol.every // step),
        kernel=None if effort is None or protocol.sticking else effort.kernel(rate / step),
        sticking=protocol.sticking,
    )


def _rows(run: ArmRecording, protocol: Protocol) -> ArmRecording:
    if run.name not in protocol.rows:
        return run
    first, end = protocol.rows[run.name]
    if not first < end <= len(run.time):
        raise ConfigError(
            f"{run.name} has {len(run.time)} rows, but the protocol asks for rows {first} to {end}"
        )
    return run.between(first, end)


def _grid(run: ArmRecording, protocol: Protocol) -> tuple[Array, float]:
    """Uniform time grid and its rate [Hz]."""
    steps = np.diff(run.time)
    if protocol.resample is not None:
        rate = protocol.resample
        return np.arange(run.time[0], run.time[-1], 1.0 / rate), rate
    if steps.max() - steps.min() > 0.2 * np.median(steps):
        raise ConfigError(
            f"{run.name}: the intervals between samples vary from {1e3 * steps.min():.3g} to "
            f"{1e3 * steps.max():.3g} ms: set protocol: resample, for example to {1.0 / np.median(steps):.3g}"
        )
    rate = (len(run.time) - 1) / (run.time[-1] - run.time[0])
    return run.time[0] + np.arange(len(run.time)) / rate, float(rate)


def _on(run: ArmRecording, samples: Array, grid: Array) -> Array:
    same = len(grid) == len(run.time) and bool(np.allclose(grid, run.time, atol=1e-9, rtol=0.0))
    return samples if same else resample(run.time, samples, grid)


def _states(
    run: ArmRecording, grid: Array, rate: float, low_pass: ZeroPhase | None, edge_order: Literal[1, 2]
) -> States:
    def smooth(samples: Array) -> Array:
        return samples if low_pass is None else low_pass(samples, rate)

    def rates(samples: Array) -> Array:
        return derivative(samples, 1.0 / rate, edge_order)

    position = _on(run, run.position, grid)
    if run.velocity is None:
        position = smooth(position)
        velocity = rates(position)
        return States(rate, position, velocity, rates(velocity))
    velocity = _on(run, run.velocity, grid)
    return States(rate, position, smooth(velocity), smooth(rates(velocity)))


def _later(states: States, grid: Array, delay: float) -> States:
    """States shifted by a delay [s]; the last state is held."""
    if delay == 0.0:
        return states
    parts = (states.position, states.velocity, states.acceleration)
    return States(states.rate, *(resample(grid, part, grid + delay) for part in parts))


def _fine_step(protocol: Protocol, rate: float) -> int:
    """Largest divisor of ``every`` that keeps :data:`OVERSAMPLING`."""
    if protocol.effort_filter is None:
        return protocol.every
    needed = OVERSAMPLING * protocol.effort_filter.cutoff
    divisors = [k for k in range(1, protocol.every + 1) if protocol.every % k == 0]
    return max(k for k in divisors if k == 1 or rate / k >= needed)


def _wide(protocol: Protocol, rate: float) -> ZeroPhase | None:
    if protocol.position_filter is None or protocol.effort_filter is None or protocol.sticking:
        return _zero_phase(protocol.position_filter)
    wide = max(min(WIDER * protocol.effort_filter.cutoff, 0.25 * rate), protocol.position_filter.cutoff)
    return ZeroPhase(protocol.position_filter.order, wide, protocol.position_filter.padding)


def _zero_phase(settings: FilterSettings | None) -> ZeroPhase | None:
    return None if settings is None else ZeroPhase(**vars(settings))


SAME_POSE = 0.1
"""Largest distance of a joint from where it is locked [rad or m]: further away, gravity turns too much."""


@dataclass(frozen=True)
class MovingJoints:
    """The joints of recordings that move, and those that do not.

    :param joints: names of those that move, in the order of the recordings.
    :param held: positions of the others [rad or m], medians over the recordings.
    """

    joints: tuple[str, ...]
    held: Mapping[str, float]

    def of(self, run: ArmRecording) -> ArmRecording:
        """A recording of the joints that move."""
        columns = [run.joints.index(joint) for joint in self.joints]
        arrays: dict[str, Any] = {key: one[:, columns] for key, one in vars(run).items() if np.ndim(one) == 2}
        return replace(run, joints=self.joints, **arrays)

    def astray(self, run: ArmRecording) -> tuple[str, ...]:
        """Held joints that a recording has further than :data:`SAME_POSE` from their positions."""
        return tuple(
            joint
            for joint, position in self.held.items()
            if np.abs(run.position[:, run.joints.index(joint)] - position).max() > SAME_POSE
        )


def moving_joints(runs: Sequence[ArmRecording], protocol: Protocol) -> MovingJoints:
    """The joints that are faster than ``moving`` of the protocol in one recording or more.

    :raises RecordingError: if there is none, or if one of the others is held in poses too far apart for one locked arm.
    """
    speeds = np.max([np.abs(motion_of(run, protocol).states.velocity).max(axis=0) for run in runs], axis=0)
    names = runs[0].joints
    moving = tuple(name for name, speed in zip(names, speeds, strict=True) if speed > protocol.moving)
    if not moving:
        raise RecordingError(
            f"too little motion: no joint moves faster than {protocol.moving:g} (protocol: moving); the fastest reaches {speeds.max():.3g}"
        )
    positions = np.median(np.concatenate([run.position for run in runs]), axis=0).tolist()
    found = MovingJoints(
        moving, {name: at for name, at in zip(names, positions, strict=True) if name not in moving}
    )
    for run in runs:
        if found.held and (astray := found.astray(run)):
            raise RecordingError(
                f"{run.name}: {', '.join(astray)} is more than {SAME_POSE:g} away from its pose in other rows, but never moves faster than "
                f"{protocol.moving:g} (protocol: moving): give recordings of one pose at a time"
            )
    return found
