"""The least-squares problem of a whole robot: which parameters are shared by which joints and runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import signal

from stribeck.identify.common.minimise import (
    BlockEquations,
    BoxMinimum,
    DenseEquations,
    minimise,
    minimise_blocks,
)
from stribeck.identify.robot.recordings import SETTLING, RobotRun
from stribeck.identify.robot.rollout import (
    Array,
    Kind,
    LaneEquations,
    Lanes,
    equations,
    equations_in_cells,
    simulate_lanes,
)
from stribeck.identify.robot.tree import RobotTree
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS, FrictionLaw
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.terms.position import POSITION

SEGMENT = 30.0
"""Longest part of a run that a lane simulates in the fit [s]; scores are of whole runs."""

PARTS = 48
"""Most parts of runs that are fitted, if there are not more runs; evenly chosen."""

CUTOFF = 25.0
"""Of the zero-phase filter for velocities and accelerations of a measured motion [Hz]."""


class Unknown(NamedTuple):
    """A free parameter: start, bounds, largest change in one step, unit."""

    start: float
    lower: float
    upper: float
    size: float
    unit: str


UNKNOWNS = {
    "armature": Unknown(0.02, 1e-4, 1.0, 0.02, "kg m²"),
    "stiffness": Unknown(18.0, 0.1, 1e4, 30.0, "N m/rad"),
    "bias": Unknown(0.0, -0.3, 0.3, 0.05, "rad"),
    "delay": Unknown(0.006, -0.1, 0.2, 0.01, "s"),
    "tilt_x": Unknown(0.0, -4.0, 4.0, 0.5, "m/s²"),
    "tilt_y": Unknown(0.0, -4.0, 4.0, 0.5, "m/s²"),
    "backlash": Unknown(0.004, 0.0, 0.1, 0.003, "rad"),
    **{
        name: Unknown(*one.robot, one.units.rotary)
        for name, one in FRICTION_PARAMETERS.items()
        if one.robot is not None
    },
}
"""Free parameters of a joint."""

FIXED = {name: one.value for name, one in FRICTION_PARAMETERS.items() if one.robot is None}
"""Parameters of friction that are not identified."""

CENTRE, REACH = (name for name in POSITION.names if name in FIXED)
"""Position around which friction varies, the median goal of a joint, and how far from it positions were recorded."""

BEGINS = (*LAWS["m1"].parameter_names, *(name for name, one in FRICTION_PARAMETERS.items() if one.shape))
"""Parameters of friction that a fit starts at their usual values, also where the motion of a poorer law is continued."""

SHARED = ("tilt_x", "tilt_y")
"""Parameters of the base, which all joints share."""

ALIKE = ("armature", "stiffness", "delay")
"""Parameters besides those of the law that are those of a population in joints with equal drives."""

HELD = {"armature": 0.3, "stiffness": 1000.0, "derivative": 30.0, "limit": 1e4}
"""Drives of joints that are not identified; larger inertias would make the dry friction of the others inaccurate."""

SHIFT = Unknown(0.0, -0.05, 0.05, 0.004, "s")
"""Lateness of the goals of a run beside the others; a weak prior fixes its mean."""

ALONE, TOGETHER = 20, 40
"""Most steps of the search in which each joint has a damping of its own, and of the one over all parameters at once."""

Column = tuple[str, int]
IntArray = npt.NDArray[np.int_]


@dataclass(frozen=True, eq=False)
class Segment:
    """A part of a run, from row ``start`` to ``end``."""

    run: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class RobotProblem:
    """Free parameters and the lanes that they drive.

    :param joints: indices of the joints that are identified.
    :param columns: parameter and joint (-1: all; for ``shift``: run) of each element of the vector.
    :param free: rows of the parameters whose derivatives are computed, free or not.
    :param prior: weights, means and standard deviations of normal priors besides that of the shifts (n,) [rad²/unit², unit, unit].
    :param finer: by how much the steps of the simulation of the whole robot are smaller than usual.
    :param maps: parameters of lane l are ``fixed[:, l]``, plus ``maps[l] @ x`` in the rows ``free`` (L, F, n).
    """

    kind: Kind
    runs: tuple[RobotRun, ...]
    joints: tuple[int, ...]
    segments: tuple[Segment, ...]
    lanes: Lanes
    columns: tuple[Column, ...]
    free: tuple[int, ...]
    fixed: Array
    maps: Array
    prior: tuple[Array, Array, Array] | None = None
    finer: int = 1

    def values(self, x: Array) -> Array:
        """Parameters of all lanes (N, L)."""
        found = self.fixed.copy()
        found[list(self.free)] += (self.maps @ x).T
        return found

    def unknowns(self) -> list[Unknown]:
        """Start and bounds of each element of the vector."""
        return [SHIFT if name == "shift" else UNKNOWNS[name] for name, _ in self.columns]

    def start(self) -> Array:
        """The vector from which the search starts."""
        return np.array([unknown.start for unknown in self.unknowns()])

    def priors(self) -> tuple[Array, Array]:
        """Weights [rad²/unit²] and means of the priors (n,); a weak one around 0 fixes the mean of the shifts."""
        weights, means, _ = self.prior or np.zeros((3, len(self.columns)))
        return weights + [1.0 if name == "shift" else 0.0 for name, _ in self.columns], means

    def lane_equations(self, x: Array, runs: Collection[int] | None = None) -> LaneEquations:
        """Squares and derivatives by lane; ``runs`` are the ones that count, by default all."""
        lanes = self.lanes
        if runs is not None:
            counts = np.array([segment.run in runs for segment in self.segments], dtype=np.float32)
            lanes = lanes._replace(weight=lanes.weight * np.repeat(counts, len(self.joints)))
        return equations(self.kind, lanes, self.values(x), self.free)

    def in_cells(self, x: Array, cells: IntArray, count: int) -> tuple[Array, Array]:
        """Scores (G, n) and curvatures (G, n, n) of the rows of each joint in each of ``count`` cells, G = J' · count.

        :param cells: number of the cell of each row (T, L).
        """
        gradient, hessian = equations_in_cells(self.kind, self.lanes, self.values(x), self.free, cells, count)
        lane = self.blocks()[1]
        scores, curvatures = [], []
        for place in range(len(self.joints)):
            own = lane == place
            maps = self.maps[own]
            scores += list(np.einsum("lfn,clf->cn", maps, gradient[:, own]))
            curvatures += [np.tensordot(maps, each[own] @ maps, ((0, 1), (0, 1))) for each in hessian]
        return np.array(scores), np.array(curvatures)

    def blocks(self) -> tuple[IntArray, IntArray]:
        """Position of the joint of each element, -1 if all share it, and of each lane."""
        places = {joint: place for place, joint in enumerate(self.joints)}
        element = [-1 if name in (*SHARED, "shift") else places[owner] for name, owner in self.columns]
        return np.array(element), np.tile(np.arange(len(self.joints)), len(self.segments))

    def only(self, kept: Sequence[int]) -> RobotProblem:
        """The problem without the other elements of the vector, which are 0."""
        columns = tuple(self.columns[index] for index in kept)
        return replace(self, columns=columns, maps=self.maps[:, :, list(kept)])

    def _normal(self, x: Array, runs: Collection[int] | None) -> tuple[LaneEquations, Array, Array]:
        prior, means = self.priors()
        found = self.lane_equations(x, runs)
        gradient = np.einsum("lfn,lf->n", self.maps, found.gradient) + prior * (x - means)
        hessian = np.tensordot(self.maps, found.hessian @ self.maps, ((0, 1), (0, 1))) + np.diag(prior)
        return found, gradient, hessian

    def shift(self, x: Array, apart: Array) -> Array:
        """Change of the solution ``x`` (n,) if measured positions were ``apart`` (T, L) higher, to first order."""
        _, before, hessian = self._normal(x, None)
        after = moved(self, apart)._normal(x, None)[1]
        size = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        return np.asarray(np.linalg.pinv(hessian / np.outer(size, size)) @ ((before - after) / size) / size)

    def _box(self) -> Array:
        return np.array([(each.lower, each.upper, each.size) for each in self.unknowns()]).T

    def alone(
        self, x: Array, runs: Collection[int] | None = None, iterations: int = ALONE, least_gain: float = 1e-4
    ) -> Array:
        """Minimise the squared errors of each joint with a damping of its own; what all share stays."""
        element, lane = self.blocks()
        prior, means = self.priors()
        owned = np.flatnonzero(element >= 0)

        def each(point: Array) -> BlockEquations:
            found, gradient, hessian = self._normal(point, runs)
            costs = np.bincount(lane, found.squares).astype(float)
            costs += np.bincount(element[owned], (prior * (point - means) ** 2)[owned], len(costs)).astype(
                float
            )
            return BlockEquations(0.5 * costs, gradient, hessian)

        return minimise_blocks(each, x, self._box(), element, iterations, least_gain).point

    def fit(self, x: Array, runs: Collection[int] | None = None, least_gain: float = 1e-4) -> BoxMinimum:
        """Minimise the squared errors from ``x``: each joint alone, then all parameters at once.

        :param runs: indices of the runs that count; by default all.
        """
        prior, means = self.priors()

        def whole(point: Array) -> DenseEquations:
            found, gradient, hessian = self._normal(point, runs)
            return DenseEquations(
                0.5 * (found.squares.sum() + prior @ (point - means) ** 2), gradient, hessian
            )

        x = self.alone(x, runs, ALONE, least_gain)
        lower, upper, size = self._box()
        return minimise(whole, x, lower, upper, size, TOGETHER, least_gain=least_gain)

    def errors(self, x: Array) -> Array:
        """Mean squared errors of the lanes by segment and joint (S, J') [rad²]."""
        return self.errors_of(self.values(x))

    def errors_of(self, values: Array) -> Array:
        """The same for parameters of the lanes (N, L)."""
        simulated = simulate_lanes(self.kind, self.lanes, values)
        weight = np.asarray(self.lanes.weight)
        squares = ((simulated - np.asarray(self.lanes.position)) ** 2 * weight).sum(axis=0)
        return np.asarray(squares / np.maximum(weight.sum(axis=0), 1.0)).reshape(len(self.segments), -1)

    def beyond(self, other: RobotProblem) -> Array:
        """How much higher the measured positions of the lanes are than those of another problem (T, L) [rad]."""
        return np.asarray(np.subtract(self.lanes.position, other.lanes.position), dtype=np.float64)

    def distance(self, other: RobotProblem) -> float:
        """Root mean square of what the measured positions of both problems differ [rad]."""
        apart = self.beyond(other)
        return float(np.sqrt(np.average(apart**2, weights=np.asarray(self.lanes.weight))))

    def drives(self, x: Array, run: int, count: int) -> dict[str, Array]:
        """Parameters of all ``count`` joints in a run by name; joints that are not identified are held."""
        lane = next(index for index, segment in enumerate(self.segments) if segment.run == run) * len(
            self.joints
        )
        values = self.values(x)[:, lane : lane + len(self.joints)]
        found = {name: np.zeros(count) for name in self.kind.names}
        unknown = {one.name: one.value for term in self.kind.law.terms for one in term.parameters}
        for name in found:
            found[name][:] = HELD.get(name, unknown.get(name, 0.0))
        for name, row in zip(self.kind.names, values, strict=True):
            found[name][list(self.joints)] = row
        for name in SHARED:
            found[name][:] = found[name][self.joints[0]]
        return found


def motion_of(position: Array, dt: float, cutoff: float | None) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration (T, J) by central differences, after a zero-phase filter if ``cutoff`` [Hz]."""
    if cutoff is not None and 2.0 * cutoff * dt < 0.9:
        position = signal.filtfilt(*signal.butter(4, 2.0 * cutoff * dt), position, axis=0)
    velocity = np.gradient(position, dt, axis=0)
    return position, velocity, np.gradient(velocity, dt, axis=0)


def segments_of(runs: Sequence[RobotRun], part: float | None = None) -> tuple[Segment, ...]:
    """Equal parts of each run of at most ``part`` seconds, by default :data:`SEGMENT` and of many every n-th of each run."""
    longest = SEGMENT if part is None else part
    whole = sum(max(run.dt * len(run.position) / longest, 1.0) for run in runs)
    every = 1 if part is not None else int(np.ceil(whole / max(PARTS, len(runs))))
    found = []
    for index, run in enumerate(runs):
        rows = len(run.position)
        parts = max(int(np.ceil(rows * run.dt / longest - 0.1)), 1)
        edges = np.linspace(0, rows, parts + 1).astype(int)
        found += [
            Segment(index, int(a), int(b))
            for a, b in list(pairwise(edges))[index % min(every, parts) :: every]
        ]
    return tuple(found)


def substeps_of(dt: float) -> int:
    """Usual number of simulated steps per row of ``dt`` [s] of a joint alone."""
    return max(round(dt / 0.0075), 1)


def lanes_of(
    tree: RobotTree,
    runs: Sequence[RobotRun],
    segments: Sequence[Segment],
    joints: Sequence[int],
) -> Lanes:
    """Series of all segments, under the loads of the measured motions."""
    rows, used = max(segment.end - segment.start for segment in segments), list(joints)
    parts: list[list[Array]] = []
    loads = []
    for run in runs:
        moved = motion_of(run.position, run.dt, CUTOFF)
        loads.append((moved[1], tree.loads(*moved)))
    for segment in segments:
        run, (velocity, load) = runs[segment.run], loads[segment.run]
        inside = slice(segment.start, segment.end)
        weight = np.ones((segment.end - segment.start, len(used)))
        weight[: round(SETTLING / run.dt)] = 0.0
        series = [run.goal, run.position, load.inertia, load.torque, load.gravity]
        cut = [_padded(values[inside][:, used], rows) for values in series]
        weight = np.concatenate([weight, np.zeros((rows - len(weight), len(used)))])
        first = velocity[segment.start, used] if segment.start else np.zeros(len(used))
        parts.append([cut[0], cut[1], weight, first, *cut[2:]])
    joined = (np.concatenate(values, axis=min(1, values[0].ndim - 1)) for values in zip(*parts, strict=True))
    return Lanes(runs[0].dt, *(series.astype(np.float32) for series in joined))


def _padded(values: Array, rows: int) -> Array:
    return np.concatenate([values, np.repeat(values[-1:], rows - len(values), axis=0)])


def problem_of(
    tree: RobotTree,
    runs: Sequence[RobotRun],
    joints: Sequence[int],
    law: FrictionLaw,
    *,
    free: Sequence[str],
    substeps: int = 1,
    lanes: Lanes | None = None,
    part: float | None = None,
) -> RobotProblem:
    """Set up the problem of a robot.

    :param joints: indices of joints to identify.
    :param free: parameters besides those of the law, ``stiffness`` where the recordings have no gains.
    :param part: longest part of a run that a lane simulates [s]; by default that of :func:`segments_of`.
    """
    kind, segments = Kind(law, substeps, "backlash" in free), segments_of(runs, part)
    names = [name for name in kind.names if name in (*free, *law.parameter_names) and name not in FIXED]
    derived = [name for name in kind.names if name in (*names, "stiffness", "derivative")]
    rows = tuple(kind.names.index(name) for name in derived)
    columns: dict[Column, int] = {}
    entries = []
    fixed = np.zeros((len(kind.names), len(segments) * len(joints)))
    centres = np.median(np.concatenate([run.goal for run in runs]), axis=0)
    reaches = np.max([np.abs(run.position - centres).max(axis=0) for run in runs], axis=0)
    for lane, (segment, joint) in enumerate((segment, joint) for segment in segments for joint in joints):
        run = runs[segment.run]
        given = {
            **FIXED,
            "limit": min(tree.limits[joint], 1e4),
            CENTRE: centres[joint],
            REACH: reaches[joint],
        }
        given["stiffness"] = 0.0 if run.stiffness is None else run.stiffness[joint]
        given["derivative"] = 0.0 if run.derivative is None else run.derivative[joint]
        fixed[:, lane] = [0.0 if name in names else given.get(name, 0.0) for name in kind.names]
        for name in names:
            row = derived.index(name)
            owner = -1 if name in SHARED else joint
            entries.append((lane, row, columns.setdefault((name, owner), len(columns))))
            if name == "delay" and run.nominal:
                entries.append((lane, row, columns.setdefault(("shift", segment.run), len(columns))))
    maps = np.zeros((fixed.shape[1], len(derived), len(columns)))
    maps[tuple(np.array(entries).T)] = 1.0
    lanes = lanes if lanes is not None else lanes_of(tree, runs, segments, joints)
    return RobotProblem(kind, tuple(runs), tuple(joints), segments, lanes, tuple(columns), rows, fixed, maps)


def fixed_as_in(problem: RobotProblem, drives: Sequence[Drive], fixed: Array) -> Array:
    """Values of all lanes (N, L) in which the parameters of friction that are not identified are those of drives that state them."""
    found = fixed.copy()
    for row, name in enumerate(problem.kind.names):
        if name not in FIXED:
            continue
        stated = [drive.values.get(name, fixed[row, k]) for k, drive in enumerate(drives)]
        found[row] = np.tile(stated, len(problem.segments))
    return found


def with_law(problem: RobotProblem, other: RobotProblem, x: Array, share: float) -> Array:
    """The vector of ``problem`` that continues ``x`` of ``other``, of a poorer law.

    New terms take their starting values times ``share``; with a share near 0 the motion is that of ``other``. The terms of
    the directional laws continue those of the symmetric ones.
    """
    known = dict(zip(other.columns, x, strict=True))
    found = []
    for (name, owner), unknown in zip(problem.columns, problem.unknowns(), strict=True):
        new = FRICTION_PARAMETERS.get(name)
        names = (name,) if new is None or new.like is None else (name, new.like)
        older = next((key for key in names if (key, owner) in known), None)
        begins = name in BEGINS or (new is not None and new.signed)
        scale = share if name == "backlash" or (new is not None and not begins) else 1.0
        begin = max(unknown.start * scale, unknown.lower)
        found.append(begin if older is None else max(known[older, owner], begin if scale != 1.0 else -np.inf))
    return np.array(found)


def series_of(problem: RobotProblem, motions: Sequence[Array]) -> Array:
    """Motions of whole runs (T, J) as those of the lanes (T, L)."""
    rows, used = len(problem.lanes.position), list(problem.joints)
    parts = [_padded(motions[each.run][each.start : each.end][:, used], rows) for each in problem.segments]
    return np.concatenate(parts, axis=1)


def moved(problem: RobotProblem, apart: Array) -> RobotProblem:
    """The problem with other measured positions, ``apart`` (T, L) higher; lanes begin where they did."""
    apart = np.concatenate([np.zeros_like(apart[:1]), apart[1:]]).astype(np.float32)
    return replace(problem, lanes=problem.lanes._replace(position=problem.lanes.position + apart))


def together(problem: RobotProblem, x: Array, motions: Sequence[Array]) -> RobotProblem:
    """The problem whose lanes move as all joints together do, by what both motions differ at ``x``.

    :param motions: of all joints of each run together with the parameters ``x`` (T, J) [rad].
    """
    alone = simulate_lanes(problem.kind, problem.lanes, problem.values(x))
    return moved(problem, alone - series_of(problem, motions))
