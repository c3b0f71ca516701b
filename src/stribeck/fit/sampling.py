"""Searches that live in a study: batch by batch, by any number of workers on any number of machines.

What to try next follows from the study's finished trials alone. A worker samples a batch from what it
has read, evaluates it in one compiled call, appends it, and reads what the others appended. So a
worker may join, leave or be killed at any time, and to resume is to read.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import TrialState

from stribeck.core.parameters import ParameterSet
from stribeck.fit.search import BudgetSpentError, Incumbent, Problem, Restart, done, fold
from stribeck.fit.trials import Sample, Trials, sample_of, trial_of

Point = frozenset[tuple[str, float]]
FloatArray = npt.NDArray[np.float64]

SAMPLED = "cmaes"
"""User attribute of a trial: the restart of CMA-ES that it was sampled for, and its point before folding."""


class Sampler(Protocol):
    """Points to try, from the trials so far."""

    @property
    def problem(self) -> Problem:
        """What the next points are to be evaluated with."""

    @property
    def converged(self) -> bool:
        """Whether there is nothing left to try."""

    def ask(self, count: int) -> list[Sample]:
        """Points to try, not yet evaluated."""

    def tell(self, trials: Sequence[Sample]) -> None:
        """Take notice of finished trials, whoever evaluated them."""


class OptunaSampler:
    """One of Optuna's samplers, which works in memory on a copy of the study.

    :param sampler: of whatever kind.
    :param parameters: to identify.
    """

    converged = False

    def __init__(
        self, problem: Problem, sampler: optuna.samplers.BaseSampler, parameters: ParameterSet
    ) -> None:
        self.problem = problem
        self._study = optuna.create_study(sampler=sampler)
        self._distributions = distributions_of(parameters)
        self._asked: dict[Point, int] = {}

    def ask(self, count: int) -> list[Sample]:
        """See :class:`Sampler`."""
        numbers = [self._study.ask(self._distributions).number for _ in range(count)]
        known = self._study.get_trials(deepcopy=False)
        asked = [known[number] for number in numbers]
        self._asked |= {_key(trial.params): trial.number for trial in asked}
        return [sample_of(trial) for trial in asked]

    def tell(self, trials: Sequence[Sample]) -> None:
        """See :class:`Sampler`."""
        for trial in trials:
            number = self._asked.pop(_key(trial.params), None)
            if number is None:
                self._study.add_trial(trial_of(trial, self._distributions))
            else:
                self._study.tell(number, trial.value)


class SharedCMA:
    """One CMA-ES that all workers advance: any population of finished trials makes a generation.

    Workers that have read the same trials have the same distribution, and each samples from it with
    random numbers of its own. A trial that comes when its restart is over, or has gone from the short
    horizon to whole runs, counts for the best point only.

    :param problem: over whole runs.
    :param seed: of the study.
    :param budget: trials that the study was opened for.
    :param population: points per generation of the first two restarts; it doubles afterwards.
    :param rng: of this worker.
    """

    def __init__(
        self,
        problem: Problem,
        parameters: ParameterSet,
        incumbent: Incumbent,
        *,
        seed: int,
        budget: int,
        population: int,
        rng: np.random.Generator,
    ) -> None:
        self._whole, self._parameters, self._incumbent = problem, parameters, incumbent
        self._seed, self._budget, self._population, self._rng = seed, budget, population, rng
        self._waiting: list[Sample] = []
        self._found: list[float] = []
        self._begin()

    def _begin(self) -> None:
        index = len(self._found)
        rng = np.random.default_rng([self._seed, index])
        population = self._population * 2 ** max(0, index - 1)
        self._restart = Restart(self._whole, population, 0.3, rng, self._budget)

    @property
    def problem(self) -> Problem:
        """See :class:`Sampler`."""
        return self._restart.problem

    @property
    def converged(self) -> bool:
        """See :class:`Sampler`."""
        return done(self._incumbent, self._found)

    def ask(self, count: int) -> list[Sample]:
        """See :class:`Sampler`."""
        points = self._restart.search.ask_population(count, self._rng)
        return [
            Sample(params, user_attrs={SAMPLED: {"restart": len(self._found), "point": point}})
            for params, point in zip(params_of(self._parameters, fold(points)), points.tolist(), strict=True)
        ]

    def tell(self, trials: Sequence[Sample]) -> None:
        """See :class:`Sampler`."""
        for trial in trials:
            if not self._belongs(trial):
                continue
            self._waiting.append(trial)
            if len(self._waiting) < self._restart.population:
                continue
            losses = np.array([trial.value for trial in self._waiting])
            points = np.array([trial.user_attrs[SAMPLED]["point"] for trial in self._waiting])
            self._restart.tell(points, losses)
            self._waiting.clear()
            if self._restart.stopped:
                self._found.append(self._restart.search.best_loss)
                self._begin()

    def _belongs(self, trial: Sample) -> bool:
        whole = trial.state == TrialState.COMPLETE
        restart = trial.user_attrs.get(SAMPLED, {}).get("restart")
        return restart == len(self._found) and whole == self._restart.on_whole_runs


def sample(
    sampler: Sampler,
    whole: Problem,
    incumbent: Incumbent,
    trials: Trials,
    parameters: ParameterSet,
    batch: int,
) -> None:
    """Work on a study until it has all its trials, or nothing is left to try.

    :param whole: the problem over whole runs; trials of another one enter the study as pruned.
    :param incumbent: its budget is that of the study.
    :param batch: trials evaluated and appended at a time.
    :raises BudgetSpentError: when the study has all its trials.
    """
    count = 0
    incumbent.evaluations = lambda: count
    while True:
        news = trials.news()
        count += len(news)
        complete = [trial for trial in news if trial.state == TrialState.COMPLETE]
        if complete:
            incumbent.offer(units_of(parameters, complete), np.array([trial.value for trial in complete]))
        else:
            incumbent.on_progress(incumbent)
        sampler.tell(news)
        if incumbent.remaining <= 0:
            raise BudgetSpentError
        if sampler.converged:
            incumbent.converged = True
            return
        asked = sampler.ask(min(batch, incumbent.remaining))
        state = TrialState.COMPLETE if sampler.problem is whole else TrialState.PRUNED
        losses = sampler.problem.losses(units_of(parameters, asked))
        found = zip(asked, losses.tolist(), strict=True)
        trials.append([replace(s, state=state, value=loss) for s, loss in found], incumbent.budget)


def sampler_for(method: str, seed: int, population: int) -> optuna.samplers.BaseSampler:
    """Optuna's sampler behind a method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if method == "tpe":
            # Trials of one batch that have no value yet count as bad.
            return optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        if method == "nsgaii":
            return optuna.samplers.NSGAIISampler(seed=seed, population_size=population)
        return optuna.samplers.RandomSampler(seed=seed)


def distributions_of(parameters: ParameterSet) -> dict[str, BaseDistribution]:
    """Name and search range of each free parameter."""
    return {
        parameter.name: FloatDistribution(parameter.lower, parameter.upper) for parameter in parameters.free
    }


def params_of(parameters: ParameterSet, points: FloatArray) -> list[dict[str, float]]:
    """Values by name of points of the unit cube (C, n), within the bounds to the last bit."""
    values = np.clip(parameters.from_unit(points), parameters.lower, parameters.upper)
    return [dict(zip(parameters.free_names, row, strict=True)) for row in values.tolist()]


def units_of(parameters: ParameterSet, trials: Sequence[Sample]) -> FloatArray:
    """Points of the unit cube (C, n) of trials."""
    rows = [[trial.params[name] for name in parameters.free_names] for trial in trials]
    return np.clip(parameters.to_unit(rows), 0.0, 1.0)


def _key(params: Mapping[str, float]) -> Point:
    return frozenset(params.items())
