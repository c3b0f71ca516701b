"""Searches that workers on any number of machines share through a study, batch by batch.

The next points depend only on the study's finished trials. A worker samples a batch from the trials it has read,
evaluates it in one compiled call, appends it, and reads what the others appended. Workers may therefore join, leave or
be killed at any time, and resuming only requires reading the trials.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent, SearchProblem
from stribeck.identify.servo.search import Restart, done, fold
from stribeck.identify.servo.trials import Trials, asked, evaluated
from stribeck.model.arrays import Array
from stribeck.model.parameters import ParameterSet

Point = frozenset[tuple[str, float]]

SAMPLED = "cmaes"
"""User attribute of a trial: its CMA-ES restart, population and generation, and its point before reflection."""

SILENCE = 4
"""A worker that appended nothing while this one evaluated this many batches counts as gone."""


class OptunaSampler:
    """Optuna sampler on an in-memory copy of the study."""

    converged = False

    def __init__(
        self, problem: SearchProblem, sampler: optuna.samplers.BaseSampler, parameters: ParameterSet
    ) -> None:
        self.problem = problem
        self._study = optuna.create_study(sampler=sampler)
        self._distributions = distributions_of(parameters)
        self._asked: dict[Point, int] = {}

    def ask(self, count: int) -> list[FrozenTrial]:
        """Points to evaluate."""
        numbers = [self._study.ask(self._distributions).number for _ in range(count)]
        trials = self._study.get_trials(deepcopy=False)
        found = [trials[number] for number in numbers]
        self._asked |= {_key(trial.params): trial.number for trial in found}
        return found

    def tell(self, trials: Sequence[FrozenTrial]) -> None:
        """Update with finished trials of any worker."""
        for trial in trials:
            number = self._asked.pop(_key(trial.params), None)
            if number is None:
                self._study.add_trial(trial)
            else:
                self._study.tell(number, trial.value)


@dataclass
class CmaChain:
    """One restart of CMA-ES, reconstructed from the study's trials.

    :param generation: number of complete generations.
    :param waiting: trials of the incomplete generation.
    :param trials: total number of trials.
    :param owner: the worker that advanced it last.
    """

    restart: Restart
    generation: int = 0
    waiting: list[FrozenTrial] = field(default_factory=list)
    trials: int = 0
    owner: str | None = None

    def take(self, sample: FrozenTrial) -> None:
        """Add a trial if it was sampled from the current distribution."""
        tag = sample.user_attrs[SAMPLED]
        if tag["generation"] != self.generation or tag["population"] != self.restart.population:
            return
        self.owner = tag["worker"]
        self.trials += 1
        self.waiting.append(sample)
        if len(self.waiting) < self.restart.population:
            return
        points = np.array([sample.user_attrs[SAMPLED]["point"] for sample in self.waiting])
        self.restart.tell(points, np.array([sample.value for sample in self.waiting]))
        self.waiting.clear()
        self.generation += 1


class SharedCMA:
    """Several CMA-ES restarts in parallel, one chain per worker, reconstructed from the study's trials.

    Points sampled from an outdated distribution harm CMA-ES, so two workers on one chain would undo each other's
    progress. Each worker therefore advances its own chain, and the search ends when two chains have ended in the same
    minimum. Other workers may take over the chain of a silent worker; its late trials count for the best point only.

    :param problem: problem over whole runs.
    :param seed: seed of the study.
    :param budget: budget of trials with which the study was opened.
    :param population: points per generation of the first chains; it doubles after every two that ended.
    """

    def __init__(
        self,
        problem: SearchProblem,
        parameters: ParameterSet,
        incumbent: Incumbent,
        *,
        seed: int,
        budget: int,
        population: int,
        worker: str,
        rng: np.random.Generator,
    ) -> None:
        self._whole, self._parameters, self._incumbent = problem, parameters, incumbent
        self._seed, self._budget, self._population, self._rng = seed, budget, population, rng
        self._name, self._batches = worker, 0
        self._heard: dict[str, int] = {}
        self._losses: list[float] = []
        self._ended: set[int] = set()
        self._chains: dict[int, CmaChain] = {}
        self._current = 0
        self._begin(0, population)

    def _begin(self, index: int, population: int) -> None:
        rng = np.random.default_rng([self._seed, index])
        # Two chains have to end within the budget.
        restart = Restart(self._whole, population, 0.3, rng, self._budget // 2)
        self._chains[index] = CmaChain(restart)

    @property
    def problem(self) -> SearchProblem:
        """The problem on which to evaluate the next points."""
        return self._chains[self._current].restart.problem

    @property
    def converged(self) -> bool:
        """Whether the search has ended."""
        return done(self._incumbent, self._losses)

    def ask(self, count: int) -> list[FrozenTrial]:
        """Points to evaluate."""
        self._batches += 1
        chain = self._chains[self._current]
        points = chain.restart.search.ask_population(count, self._rng)
        tag = {
            "restart": self._current,
            "population": chain.restart.population,
            "generation": chain.generation,
            "worker": self._name,
        }
        values, distributions = params_of(self._parameters, fold(points)), distributions_of(self._parameters)
        return [
            asked(params, distributions, {SAMPLED: {**tag, "point": point}})
            for params, point in zip(values, points.tolist(), strict=True)
        ]

    def tell(self, samples: Sequence[FrozenTrial]) -> None:
        """Update with finished trials of any worker."""
        for sample in samples:
            tag = sample.user_attrs.get(SAMPLED)
            if tag is None:
                continue
            if self._batches:  # trials read at the start do not show which workers are active now
                self._heard[tag["worker"]] = self._batches
            index = tag["restart"]
            if index in self._ended:
                continue
            if index not in self._chains:
                self._begin(index, tag["population"])
            chain = self._chains[index]
            chain.take(sample)
            if chain.restart.stopped:
                self._losses.append(chain.restart.search.best_loss)
                self._ended.add(index)
                del self._chains[index]
        self._current = self._chain_to_advance()

    def _chain_to_advance(self) -> int:
        """The most advanced free chain, else a chain of a worker that has several, else a new one."""
        trials = {index: chain.trials for index, chain in self._chains.items()}
        owners = [chain.owner for chain in self._chains.values()]
        free = [index for index, chain in self._chains.items() if not self._taken(chain.owner)]
        spare = [index for index, chain in self._chains.items() if owners.count(chain.owner) > 1]
        if free:
            return max(free, key=trials.__getitem__)
        if spare:
            return min(spare, key=trials.__getitem__)
        index = max([*self._chains, *self._ended]) + 1
        self._begin(index, self._population * 2 ** (len(self._losses) // 2))
        return index

    def _taken(self, owner: str | None) -> bool:
        """Whether a chain belongs to another worker that is still active."""
        if owner is None or owner == self._name or owner not in self._heard:
            return False
        return self._batches - self._heard[owner] <= SILENCE


def sample(
    sampler: OptunaSampler | SharedCMA,
    whole: SearchProblem,
    incumbent: Incumbent,
    trials: Trials,
    parameters: ParameterSet,
    batch: int,
) -> None:
    """Evaluate batches for a study until it has all its trials or the search ends.

    :param whole: the problem over whole runs; trials of any other problem enter the study as pruned.
    :param incumbent: incumbent with the budget of the study.
    :param batch: trials per batch.
    :raises BudgetSpentError: when the study has all its trials.
    """
    count = 0
    incumbent.evaluations = lambda: count
    is_open = True
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
        if not is_open:
            incumbent.converged = True
            return
        if sampler.converged:
            # All earlier trials are read here and later ones are refused, so all workers end with the same trials.
            trials.end()
            is_open = False
            continue
        points = sampler.ask(min(batch, incumbent.remaining))
        state = TrialState.COMPLETE if sampler.problem is whole else TrialState.PRUNED
        losses = sampler.problem.losses(units_of(parameters, points)).tolist()
        finished = [evaluated(point, state, loss) for point, loss in zip(points, losses, strict=True)]
        is_open = trials.append(finished, incumbent.budget)


def sampler_for(method: str, seed: int, population: int) -> optuna.samplers.BaseSampler:
    """Optuna sampler of a method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if method == "tpe":
            # Unfinished trials of a batch count as bad ones.
            return optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        if method == "nsgaii":
            return optuna.samplers.NSGAIISampler(seed=seed, population_size=population)
        return optuna.samplers.RandomSampler(seed=seed)


def distributions_of(parameters: ParameterSet) -> dict[str, BaseDistribution]:
    """Name and search range of each free parameter."""
    return {
        parameter.name: FloatDistribution(parameter.lower, parameter.upper) for parameter in parameters.free
    }


def params_of(parameters: ParameterSet, points: Array) -> list[dict[str, float]]:
    """Parameter values by name of points of the unit cube (C, n), clipped to the bounds against rounding."""
    values = np.clip(parameters.from_unit(points), parameters.lower, parameters.upper)
    return [dict(zip(parameters.free_names, row, strict=True)) for row in values.tolist()]


def units_of(parameters: ParameterSet, trials: Sequence[FrozenTrial]) -> Array:
    """Trials as points of the unit cube (C, n)."""
    rows = [[trial.params[name] for name in parameters.free_names] for trial in trials]
    return np.clip(parameters.to_unit(rows), 0.0, 1.0)


def _key(params: Mapping[str, float]) -> Point:
    return frozenset(params.items())
