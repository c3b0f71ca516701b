"""Choice of a structure by what is left out: blocks of time or files, the fastest, the slowest rows, ends of the travel.

The search adds one part after the other to Coulomb and viscous friction with an offset, as long as the rows left out
are predicted better by :data:`WORTHWHILE`. Shapes are chosen on a grid for every part left out anew, so that no row takes part
in its own prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from stribeck.identify.joint.fit import (
    JointFit,
    LeastSquares,
    combinations,
    fit_structure,
    kept_rows,
    measured,
    normal_of,
    regressor,
    shape_grid,
)
from stribeck.identify.joint.model import LENGTH, SECOND_LENGTH, Frame, Shapes, Structure
from stribeck.identify.joint.run import JointRun, joined, thinned
from stribeck.model.arrays import Array, Mask
from stribeck.model.law import LAWS

ROWS = 5000
"""Rows of the selection; longer recordings are averaged to so many."""

BLOCKS = 8
"""Blocks of time that are left out in turn, of fewer files than :data:`FILES`."""

FILES = 3

FAST, SLOW, RESTING = 0.6, 0.25, 0.03
"""Rows faster than, and slower than, these shares of the largest speed are left out; not those at rest."""

ENDS = 0.25
"""Share of the travel at each end that is left out."""

WORTHWHILE = 0.02
"""Smallest relative decrease of the error left out for which a part is added."""

LEAST, MOST = 0.02, 0.7
"""Least and largest share of the rows that are left out together."""

ARC = 0.5
"""Travel from which on gravity may show as a sine of the angle [rad]."""

ELEMENTS = 2
"""Largest number of presliding elements."""

LEAST_HEAT = 5.0
"""Range of temperatures from which on their effect is tried [K]."""


@dataclass(frozen=True)
class Trial:
    """A structure with its errors on what was left out.

    :param errors: root mean square of the rows left out, by kind [N m].
    :param shapes: those of the grid that fit all rows best.
    """

    structure: Structure
    frame: Frame
    errors: Mapping[str, float] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)

    @property
    def score(self) -> float:
        """Geometric mean of the errors."""
        return float(np.exp(np.mean(np.log(np.maximum(list(self.errors.values()), 1e-12)))))


def parts_left_out(runs: Sequence[JointRun], frame: Frame) -> dict[str, tuple[Mask, ...]]:
    """What is left out in turn: files or blocks of time, the fastest rows, the slowest moving ones, both ends of the travel."""
    files = list(dict.fromkeys(run.file for run in runs))
    of_file = np.concatenate([np.full(len(run.time), files.index(run.file)) for run in runs])
    blocks = of_file if len(files) >= FILES else np.arange(len(of_file)) * BLOCKS // len(of_file)
    time = tuple(blocks == k for k in range(int(blocks.max()) + 1))
    speed, position = np.abs(joined(runs, "velocity")), joined(runs, "position")
    kept = kept_rows(runs)
    kinds = {"files" if len(files) >= FILES else "time": time}
    kinds["faster"] = (speed > FAST * frame.speed,)
    kinds["slower"] = ((speed < SLOW * frame.speed) & (speed > RESTING * frame.speed),)
    width = ENDS * (frame.upper - frame.lower)
    kinds["elsewhere"] = (position < frame.lower + width, position > frame.upper - width)
    kinds = {kind: tuple(mask & kept for mask in masks) for kind, masks in kinds.items()}
    rows = int(kept.sum())
    return {
        kind: masks
        for kind, masks in kinds.items()
        if all(LEAST * rows <= int(mask.sum()) <= MOST * rows for mask in masks)
    }


class StructureSelection:
    """Trials of structures on the same rows.

    :param runs: the recordings to fit.
    :param law: name of the only law to try, or ``auto``.
    :param terms: optional terms that every structure has.
    :param excluded: parts of the remainder that may not be tried.
    """

    def __init__(
        self,
        runs: Sequence[JointRun],
        law: str = "auto",
        terms: Sequence[str] = (),
        excluded: Sequence[str] = (),
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.runs = thinned(runs, ROWS)
        self.frame = Frame.of(runs)
        self.law, self.terms, self.tell = law, tuple(terms), tell
        self.excluded = frozenset(excluded)
        self.parts = parts_left_out(self.runs, self.frame)
        self._target, self._kept = measured(self.runs), kept_rows(self.runs)

    def choose(self) -> Trial:
        """The structure that predicts best what is left out."""
        named = tuple(name for name in self.terms if name not in ("presliding", "temperature"))
        offset = {"offset": "asymmetric" not in named} | dict.fromkeys(named, True)
        first = LAWS["m1" if self.law == "auto" else self.law].with_terms(**offset)
        structure = Structure(first, int("presliding" in self.terms), (), "temperature" in self.terms)
        best = self.trial(structure, self.frame)
        while True:
            found = [self.trial(other, frame) for other, frame in self._richer(best)]
            better = min(found, key=lambda one: one.score, default=best)
            if better.score > best.score * (1.0 - WORTHWHILE):
                return best
            best = better
            self.tell(", ".join((best.structure.law.name, *best.structure.terms)))

    def _richer(self, trial: Trial) -> list[tuple[Structure, Frame]]:
        """Structures with one part more."""
        now, frame = trial.structure, trial.frame
        found = [replace(now, presliding=now.presliding + 1)] if now.presliding < ELEMENTS else []
        if self.law == "auto":
            found += [replace(now, law=now.law.based_on(name)) for name in self._laws(now)]
        terms = now.law.optional_terms
        if "offset" in terms and "asymmetric" not in terms:
            others = {name: name != "offset" for name in (*terms, "asymmetric")}
            found.append(replace(now, law=now.law.with_terms(**others)))
        if "position" not in terms and "angle" not in self.excluded:
            found.append(replace(now, law=now.law.with_terms(**dict.fromkeys((*terms, "position"), True))))
        heat = [run.temperature for run in self.runs if run.temperature is not None]
        if not now.thermal and len(heat) == len(self.runs) and np.ptp(np.concatenate(heat)) > LEAST_HEAT:
            found.append(replace(now, thermal=True))
        wanted = ["inertia"] if "inertia" not in self.excluded else []
        if "angle" not in self.excluded and "gravity" not in now.rest:
            wanted += ["curve"] if "line" in now.rest else ["line"]
            if self.frame.upper - self.frame.lower > ARC:  # gravity in place of a line, which is taken first
                plain = now.without(("line", "curve"))
                found.append(replace(plain, rest=(*plain.rest, "gravity")))
        found += [replace(now, rest=(*now.rest, name)) for name in wanted if name not in now.rest]
        pairs = [(one, frame) for one in found]
        if "ripple" not in now.rest and "ripple" not in self.excluded and now.presliding:
            fit = fit_structure(self.runs, now, frame, evaluations=30)
            residual = self._target + joined(self.runs, "rigid")
            residual = residual - np.concatenate([fit.torque(run) for run in self.runs])
            wave = ripple_wave(joined(self.runs, "position"), residual)
            if wave:
                pairs.append((replace(now, rest=(*now.rest, "ripple")), replace(frame, wave=wave)))
        return pairs

    def _laws(self, now: Structure) -> list[str]:
        """Laws one step richer, as far as the runs carry them."""
        steps = {"m1": ["m2"], "m2": ["m4"], "m3": ["m4"]}
        loaded = any(np.ptp(run.load) > 0.0 for run in self.runs)
        names = steps.get(now.law.name, []) + (["m3"] if now.law.name == "m1" else [])
        return [name for name in names if loaded or not LAWS[name].load_inputs]

    def trial(self, structure: Structure, frame: Frame) -> Trial:
        """Errors of a structure on what is left out."""
        masks = [(kind, mask) for kind, some in self.parts.items() for mask in some]
        lowest = [np.inf] * len(masks)
        outside = [0.0] * len(masks)
        least, best = np.inf, {}
        for shapes in self._grid(structure, frame):
            names, columns = regressor(self.runs, structure, shapes, frame)
            whole = normal_of(columns[self._kept], self._target[self._kept])
            error = whole.error(whole.solution(names))
            if error < least:
                least, best = error, shapes
            for k, (_, mask) in enumerate(masks):
                part = normal_of(columns[mask], self._target[mask])
                rest: LeastSquares = whole - part
                values = rest.solution(names)
                error = rest.error(values)
                if error < lowest[k]:
                    lowest[k], outside[k] = error, max(part.error(values), 0.0)
        errors = {}
        for kind in self.parts:
            squares = [outside[k] for k, (name, _) in enumerate(masks) if name == kind]
            rows = sum(int(mask.sum()) for mask in self.parts[kind])
            errors[kind] = float(np.sqrt(sum(squares) / max(rows, 1)))
        return Trial(structure, frame, errors, best)

    def _grid(self, structure: Structure, frame: Frame) -> list[dict[str, float]]:
        """Shapes to try; presliding lengths around that of Coulomb and viscous friction."""
        grid = shape_grid(structure, frame)
        if LENGTH in grid:
            grid[LENGTH] = self._length * np.geomspace(0.4, 2.5, 5)
        if SECOND_LENGTH in grid:
            grid[LENGTH] = self._length * np.array([0.3, 1.0])
        return combinations(grid)

    @cached_property
    def _length(self) -> float:
        """The presliding length of Coulomb and viscous friction with an offset [rad]."""
        simple = Structure(LAWS["m1"].with_terms(offset=True), 1)
        return fit_structure(self.runs, simple, self.frame, evaluations=20).values[LENGTH]


def final_fit(runs: Sequence[JointRun], trial: Trial) -> JointFit:
    """The chosen structure fitted to all rows."""
    rough = fit_structure(thinned(runs, ROWS), trial.structure, trial.frame, start=trial.shapes)
    return fit_structure(runs, trial.structure, trial.frame, start=rough.shapes, evaluations=60)


FEWEST_PERIODS = 4.0
"""Least number of periods within the travel."""

BINS = 2000
SHARE = 0.1


def ripple_wave(position: Array, residual: Array) -> float:
    r"""Periods per 2π rad of a torque that repeats over the angle, in residuals (N,); 0 without one.

    Residuals are averaged in bins of the position, and the periodogram :math:`|\sum_b r_b e^{-iwq_b}|^2` is searched; the wave counts
    if it explains :data:`SHARE` of the variance.
    """
    lower, span = float(position.min()), float(np.ptp(position))
    bins = min(BINS, len(position) // 4)
    if bins < 32 or span <= 0.0:
        return 0.0
    place = np.minimum((bins * (position - lower) / span).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    mean = np.bincount(place, residual, minlength=bins) / np.maximum(count, 1)
    known = count > 0
    if known.mean() < 0.5:
        return 0.0
    mean = np.where(known, mean - mean[known].mean(), 0.0)
    padded = 8 * bins
    power = np.abs(np.fft.rfft(mean, padded)) ** 2
    first, last = int(FEWEST_PERIODS * 8), padded // 4
    best = first + int(np.argmax(power[first:last]))
    wave = 2.0 * np.pi * best / padded * bins / span
    angle = wave * position
    columns = np.stack([np.sin(angle), np.cos(angle), np.ones_like(angle)], axis=1)
    values, *_ = np.linalg.lstsq(columns, residual, rcond=None)
    left = float(np.var(residual - columns @ values))
    return wave if left < (1.0 - SHARE) * float(np.var(residual)) else 0.0
