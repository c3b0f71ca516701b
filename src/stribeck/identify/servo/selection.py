r"""Choice of a law by its error under conditions left out, with the error to expect under a new one, and of effects to identify.

Laws, effects and strengths of the prior are fitted without each gain, load and trajectory in turn, and compared by the
mean error there. The simplest law within one standard error of the best one is chosen (the standard error is that of
the differences over the conditions). Of equally simple candidates there, the one with most effects is chosen: they are
known from the datasheet, cost no parameter, and may act beyond the recorded conditions only. Of those with as many, it is
the one with the strongest prior, the most regularised one. Smaller sets of effects are compared for the law that is
chosen with the largest one. Sources: Breiman et al., "Classification and Regression
Trees", 1984, §3.4.3; Hastie et al., "The Elements of Statistical Learning", 2009, §7.10.

The errors that led to the choice are too small on average, so the expected error is nested: for each condition, the
choice is repeated without its runs, and the error is that of the law chosen then. Errors under different conditions of
one kind have a log-normal distribution, and the interval is that of the error under one more condition
(:func:`~stribeck.identify.servo.conditions.one_more`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.identify.common.quantiles import student_quantile
from stribeck.identify.servo.averaging import LEAST_WEIGHT, Found, weights_of
from stribeck.identify.servo.conditions import ConditionKind, kinds_of, one_more
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.parallel import QUASI_RANDOM, ParallelFits
from stribeck.identify.servo.prediction import LeftOut
from stribeck.identify.servo.refinement import prepare_for
from stribeck.identify.servo.result import StudySettings
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.task import FitTask
from stribeck.model.arrays import Mask
from stribeck.model.estimate import CONFIDENCE
from stribeck.model.provenance import Expected, LawCandidate, LawChoice

FloatArray = npt.NDArray[np.float64]

STRENGTHS = (1.0 / 3.0, 1.0, 3.0)
"""Strengths of the prior that are compared, where there is one."""

MOST_NESTED = 4
"""Gains and loads are left out in pairs too, up to this number of them; for others a nested choice uses fits that
leave out one condition, without the errors under the other."""


@dataclass(frozen=True)
class Variant:
    """One candidate: a law with effects and a strength of the prior.

    :param free: number of free parameters.
    """

    law: str
    effects: tuple[str, ...]
    strength: float
    free: int

    @property
    def label(self) -> str:
        """Short description."""
        parts = [self.law.upper(), *self.effects]
        return ", ".join(parts) + (f", prior × {self.strength:.2g}" if self.strength != 1.0 else "")


@dataclass(frozen=True, eq=False)
class Selection:
    """The chosen law, and the errors that it was chosen by.

    :param task: fit task of the chosen law.
    :param start: its best point for all runs, in the unit cube (n,).
    :param rollout: its simulations, with what is compiled of them.
    :param variants: all candidates.
    :param chosen: index of the chosen one.
    :param fitted: error on the runs that were fitted (V,) [rad].
    :param left_out: mean error under each condition left out, by kind, (V, L) [rad].
    :param minima: equally good minima (M, n) of its fits without each condition, by kind; of conditions beyond the recorded ones, of fits to those before each.
    :param found: minima of all candidates that predict about as well, itself among them.
    :param kinds: the kinds of conditions.
    :param expected: expected error under a new condition, by kind.
    """

    task: FitTask
    start: FloatArray
    rollout: Rollout
    variants: tuple[Variant, ...]
    chosen: int
    fitted: FloatArray
    left_out: Mapping[str, FloatArray]
    minima: LeftOut
    found: tuple[Found, ...]
    kinds: tuple[ConditionKind, ...]
    expected: Mapping[str, Expected]
    seconds: float = 0.0
    evaluations: int = 0

    @property
    def scores(self) -> FloatArray:
        """Mean over kinds of the mean error under conditions left out (V,) [rad]."""
        return np.asarray(np.mean([np.mean(errors, axis=1) for errors in self.left_out.values()], axis=0))

    @property
    def sentence(self) -> str:
        """Whether a simpler law predicts better than the one that fits best."""
        chosen, scores = self.variants[self.chosen], self.scores
        best = int(np.argmin(np.where(np.isfinite(self.fitted), self.fitted, np.inf)))
        rival = self.variants[best]
        new, fitted = 1e3 * scores, 1e3 * self.fitted
        if rival.law == chosen.law or rival.free <= chosen.free:
            text = (
                f"{chosen.label}: mean error {new[self.chosen]:.1f} mrad under conditions left out of the fit"
            )
            first = int(np.argmin(scores))
            if first == self.chosen:
                return f"{text}, the smallest of all."
            return f"{text}, within one standard error of the smallest ({self.variants[first].label}: {new[first]:.1f} mrad)."
        ending = "predicts better" if new[self.chosen] < new[best] else "predicts as well"
        return (
            f"A simpler law {ending}: under conditions left out of the fit, the error of {chosen.law.upper()} is {new[self.chosen]:.1f} mrad, and that of "
            f"{rival.law.upper()} is {new[best]:.1f} mrad, although {rival.law.upper()} fits best ({fitted[best]:.1f} against {fitted[self.chosen]:.1f} mrad)."
        )

    def choice(self) -> LawChoice:
        """The choice, for files and ``--json``."""
        return LawChoice(
            chosen=self.variants[self.chosen].label,
            sentence=self.sentence,
            expected_error=self.expected,
            left_out={kind.name: tuple(name for name, _ in kind.levels) for kind in self.kinds},
            candidates=tuple(
                LawCandidate(
                    variant.law,
                    tuple(variant.effects),
                    variant.strength,
                    _finite(self.fitted[k]),
                    {kind: tuple(map(_finite, errors[k])) for kind, errors in self.left_out.items()},
                )
                for k, variant in enumerate(self.variants)
            ),
            seconds=self.seconds,
        )


def _finite(error: float) -> float | None:
    return float(error) if np.isfinite(error) else None


class Subsets:
    """Subsets of the runs, each once: all, all without one condition, without two of a kind that has few, and those before each."""

    def __init__(self, kinds: Sequence[ConditionKind], runs: int) -> None:
        self.masks: list[Mask] = []
        self._index: dict[bytes, int] = {}
        self._add(np.ones(runs, dtype=bool))
        for kind in kinds:
            for mask in kind.masks:
                self._add(~mask)
            if kind.beyond is not None and len(kind.levels) <= MOST_NESTED:
                for one, other in combinations(kind.masks, 2):
                    self._add(~(one | other))
            for mask in kind.before:
                self._add(mask)

    def _add(self, mask: Mask) -> None:
        if np.any(mask) and mask.tobytes() not in self._index:
            self._index[mask.tobytes()] = len(self.masks)
            self.masks.append(mask)

    def find(self, mask: Mask) -> int | None:
        """Index of a subset, ``None`` if it is not one of them."""
        return self._index.get(mask.tobytes())

    def left_out(self, kinds: Sequence[ConditionKind]) -> Iterator[tuple[str, list[int]]]:
        """Indices of the subsets without each condition, by kind; and of those with the conditions before each but the first, where they have an order."""
        for kind in kinds:
            yield kind.name, [self._index[mask.tobytes()] for mask in ~kind.masks]
            if kind.beyond is not None:
                yield kind.beyond, [self._index[mask.tobytes()] for mask in kind.before]


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Mean absolute error of each run for every candidate and subset fitted, (V, F, R) [rad]."""

    by_run: FloatArray
    subsets: Subsets
    kinds: Sequence[ConditionKind]
    variants: Sequence[Variant]

    def on(self, fitted: Mask, runs: Mask) -> FloatArray:
        """Mean error on runs of the fits to a subset (V,)."""
        index = self.subsets.find(fitted)
        if index is None or not np.any(runs):
            raise ValueError("this subset was not fitted, or contains no run")
        return np.asarray(np.mean(self.by_run[:, index][:, runs], axis=1))

    @property
    def fitted(self) -> FloatArray:
        """Mean error of the fits to all runs (V,)."""
        every = np.ones(self.by_run.shape[2], dtype=bool)
        return self.on(every, every)

    def left_out(self, without: tuple[int, int] | None = None) -> list[FloatArray]:
        """Errors under each condition left out, (V, L) for each kind.

        :param without: kind and level of a condition whose runs do not count, and are left out where such fits exist.
        """
        every = np.ones(self.by_run.shape[2], dtype=bool)
        excluded = ~every if without is None else self.kinds[without[0]].masks[without[1]]
        found = []
        for k, kind in enumerate(self.kinds):
            columns = []
            for level, mask in enumerate(kind.masks):
                runs = mask & ~excluded
                if without == (k, level) or not np.any(runs):
                    continue
                both = ~(mask | excluded)
                nested = without is not None and without[0] == k and self.subsets.find(both) is not None
                columns.append(self.on(both if nested else ~mask, runs))
            found.append(np.stack(columns, axis=1))
        return found

    def choose(self, without: tuple[int, int] | None = None) -> int:
        """The simplest candidate within one standard error of the best; then most effects, then the strongest prior."""
        left_out = self.left_out(without)
        score = np.mean([np.mean(errors, axis=1) for errors in left_out], axis=0)
        best = int(np.argmin(score))
        variance = np.zeros(len(score))
        for errors in left_out:
            count = errors.shape[1]
            if count > 1:
                variance += np.var(errors - errors[best], axis=1, ddof=1) / count / len(left_out) ** 2
        sizes = np.array([one.free for one in self.variants])
        near = np.flatnonzero((sizes <= sizes[best]) & (score <= score[best] + np.sqrt(variance)))

        def rank(k: int) -> tuple[float, ...]:
            one = self.variants[k]
            return one.free, -len(one.effects), -one.strength, score[k]

        return int(min(near.tolist(), key=rank))

    def expected(self) -> dict[str, Expected]:
        """Expected error under a new condition of each kind; beyond the recorded ones too, where they have an order."""
        found = {}
        for k, kind in enumerate(self.kinds):
            chosen = [self.choose((k, level)) for level in range(len(kind.levels))]
            errors = [self.on(~mask, mask)[v] for v, mask in zip(chosen, kind.masks, strict=True)]
            found[kind.name] = expected_of(np.array(errors))
            if kind.beyond is not None:
                beyond = zip(chosen[1:], kind.before, kind.masks[1:], strict=True)
                steps = [self.on(before, mask)[v] for v, before, mask in beyond]
                found[kind.beyond] = expected_of(np.array(steps))
        return found


def expected_of(errors: FloatArray) -> Expected:
    """Mean of errors (L,) [rad], and the interval of one more."""
    scatter = one_more(np.log(np.maximum(errors, 1e-9)))
    mean, half = scatter.mean, scatter.scale * student_quantile(scatter.freedom, CONFIDENCE)
    return Expected(float(np.mean(errors)), (float(np.exp(mean - half)), float(np.exp(mean + half))))


def _found(
    judged: LeftOutErrors,
    tasks: Sequence[FitTask],
    minima: Sequence[Callable[[int], tuple[FloatArray, FloatArray]]],
    chosen: int,
) -> Iterator[Found]:
    """Minima of the candidates that have a weight, and of the chosen one."""
    weights = weights_of(judged.left_out(), len(tasks[chosen].split.train))
    for k, (task, weight) in enumerate(zip(tasks, weights.tolist(), strict=True)):
        if weight >= LEAST_WEIGHT or k == chosen:
            yield Found(task, weight, *minima[k](0))


def select(
    groups: Sequence[Sequence[FitTask]], on_progress: Callable[[int], None] = lambda evaluations: None
) -> Selection:
    """Compare laws, effects and strengths of the prior by conditions left out.

    :param groups: tasks of all laws, the most general law last, for each set of effects.
    :param on_progress: called with the number of evaluations after every batch; may raise to end the comparison.
    :raises ConfigError: if there is one run only.
    """
    begin, logs = time.perf_counter(), groups[0][0].split.train
    kinds = kinds_of(logs)
    if not kinds:
        raise ConfigError("a single run: nothing can be left out")
    subsets = Subsets(kinds, len(logs))
    variants: list[Variant] = []
    tasks: list[FitTask] = []
    errors: list[FloatArray] = []
    minima: list[Callable[[int], tuple[FloatArray, FloatArray]]] = []
    rollouts: dict[int, Rollout] = {}
    evaluations = chosen = 0
    for group in sorted(groups, key=lambda group: -len(group[0].actuator.active_effects)):
        # Smaller sets of effects are compared for the law chosen with the largest one.
        laws = [task for task in group if not variants or task.law.name == variants[chosen].law]
        effects = tuple(sorted(group[0].actuator.active_effects))
        strengths = STRENGTHS if "current-limit" in effects else (1.0,)
        rollout = laws[-1].rollout()
        rollout.prepare()
        progress = partial(lambda before, count: on_progress(before + count), evaluations)
        fits = ParallelFits(laws, rollout, np.stack(subsets.masks), strengths, progress)
        pool = fits.fit(count=int(np.clip(group[0].settings.trials // 100, 8, QUASI_RANDOM)))
        errors.append(np.moveaxis(fits.errors(pool), 2, 1).reshape(-1, len(subsets.masks), len(logs)))
        evaluations += fits.rollout.meter.evaluations
        for law, task in enumerate(laws):
            for k, strength in enumerate(strengths):
                variants.append(Variant(task.law.name, effects, strength, len(task.parameters.free)))
                tasks.append(replace(task, settings=replace(task.settings, prior_strength=strength)))
                minima.append(partial(fits.minima, pool, law, k))
        judged = LeftOutErrors(np.concatenate(errors), subsets, kinds, tuple(variants))
        rollouts |= dict.fromkeys(range(len(tasks) - len(strengths), len(tasks)), rollout)
        chosen = judged.choose()
        if chosen not in rollouts:  # compiled beside the comparison with smaller sets of effects
            rollouts[chosen] = tasks[chosen].rollout()
            prepare_for(rollouts[chosen], minima[chosen](0)[0][0])
    own = minima[chosen]
    return Selection(
        task=tasks[chosen],
        start=own(0)[0][0],
        rollout=rollouts[chosen].with_own_meter(),
        variants=tuple(variants),
        chosen=chosen,
        fitted=judged.fitted,
        left_out=dict(zip((kind.name for kind in kinds), judged.left_out(), strict=True)),
        minima={name: [own(index)[0] for index in rows] for name, rows in subsets.left_out(kinds)},
        found=tuple(_found(judged, tasks, minima, chosen)),
        kinds=tuple(kinds),
        expected=judged.expected(),
        seconds=time.perf_counter() - begin,
        evaluations=evaluations,
    )


@dataclass(frozen=True)
class LeftOutGain:
    """Errors [rad] on the runs at one gain, of models fitted to all other gains."""

    kp: float
    fixed: float
    free: float


def check_freed(
    task: FitTask,
    names: Sequence[str],
    on_figure: Callable[[LeftOutGain], None] = lambda figure: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[LeftOutGain]:
    """Refuse free effect parameters unless they lower the error at every gain left out.

    A free effect parameter compensates for whatever the model lacks and then fails at gains that were not fitted.

    :param task: fit task in which the parameters are free.
    :param names: names of the freed parameters.
    :param on_figure: called with the errors of each gain as soon as they are computed.
    :param stop: see :func:`stribeck.identify.servo.identify.identify`.
    :raises KeyboardInterrupt: if the check was interrupted.
    :raises ConfigError: if there is only one gain, or at the first gain where the error does not decrease.
    """
    logs = task.split.train
    gains = sorted({log.setup.kp for log in logs})
    listed = ", ".join(names)
    if len(gains) < 2:
        raise ConfigError(
            f"{listed} is not identified, because this must lower the error at gains left out of the fit, and "
            f"these recordings have only one gain ({gains[0]:g}): record more gains"
        )
    settings = replace(task.settings, study=StudySettings(), workers=1)
    datasheet = {
        parameter.name: parameter.value
        for parameter in task.actuator.parameters(task.law)
        if parameter.name in names
    }
    comparisons = []
    for kp in gains:
        split = split_runs(logs, validation_kp=kp)
        free = replace(task, split=split, settings=settings)
        fixed = replace(free, parameters=task.parameters.fixed(datasheet))
        errors = [_left_out_error(part, stop) for part in (fixed, free)]
        figure = LeftOutGain(kp, *errors)
        on_figure(figure)
        comparisons.append(figure)
    worse = [figure for figure in comparisons if figure.free >= figure.fixed]
    if worse:
        figures = "; ".join(
            f"gain {figure.kp:g}: {1e3 * figure.fixed:.1f} mrad fixed, {1e3 * figure.free:.1f} mrad free"
            for figure in comparisons
        )
        values = ", ".join(f"{name} = {value:g}" for name, value in datasheet.items())
        raise ConfigError(
            f"{listed} is not identified: the error at {'gain ' if len(worse) == 1 else 'gains '}{', '.join(f'{figure.kp:g}' for figure in worse)}, left out "
            f"of the fit, does not fall ({figures}). The value would compensate for another error: keep the datasheet's value ({values})"
        )
    return comparisons


def _left_out_error(task: FitTask, stop: Callable[[], bool]) -> float:
    result = identify(task, stop=stop)
    if result.search.outcome == "interrupted" or result.validation is None:
        raise KeyboardInterrupt
    return result.validation.mean
