"""Identification of a law from recordings: search, verification in float64, uncertainty."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import qmc

from stribeck.errors import StribeckError
from stribeck.identify.servo import study as studies
from stribeck.identify.servo.averaging import Found, members_of
from stribeck.identify.servo.descent import polish
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent, SearchProblem, evaluate
from stribeck.identify.servo.objective import equivalent_error, smooth_absolute
from stribeck.identify.servo.parallel import ParallelFits
from stribeck.identify.servo.prediction import LeftOut
from stribeck.identify.servo.prior import WithPrior
from stribeck.identify.servo.refinement import checked_point, prepare_for, problem_of, with_finer_step
from stribeck.identify.servo.result import Errors, FitResult, FitSearch, FitSettings, Outcome
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.sampling import OptunaSampler, SharedCMA, sample, sampler_for
from stribeck.identify.servo.search import SEARCHES
from stribeck.identify.servo.task import FitTask
from stribeck.identify.servo.uncertainty import (
    Uncertainty,
    equally_good,
    estimate_uncertainty,
    with_minima,
    with_prediction,
)
from stribeck.identify.servo.workers import search_in_processes
from stribeck.model.actuator import Actuator
from stribeck.model.arrays import Array
from stribeck.model.law import FrictionLaw
from stribeck.model.log import Log
from stribeck.model.parameters import ParameterSet
from stribeck.model.step import batch_for, simulate
from stribeck.model.terms.term import Values

UNEXPLAINED_STEPS = 1.5
"""Errors up to this many encoder steps are noise; a search that reaches them ends."""

POLISHING = 50
"""Evaluations per free parameter reserved for the final polishing."""

FROM_SIMPLER_LAWS = 30_000
"""Evaluations from which the search for a law with load terms also starts from simpler laws."""

SIMPLER = ("m3", "m4", "m5")
"""These laws."""

KEEP_BEST_EVERY = 1.0
"""Shortest interval at which a search stores its best point in a study [s]."""


def identify(
    task: FitTask,
    on_progress: Callable[[Incumbent], None] = lambda incumbent: None,
    *,
    started: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    start: Array | None = None,
    left_out: LeftOut | None = None,
    found: Sequence[Found] = (),
    rollout: Rollout | None = None,
) -> FitResult:
    """Fit a law, verify it in float64, and estimate its uncertainty.

    An interrupt (Ctrl-C) ends the search; the result is its best point with the outcome ``interrupted``.

    :param on_progress: called after every batch of evaluations.
    :param started: ``time.perf_counter()`` at the start of the wall time.
    :param stop: called between batches; if it returns true, the search ends as if interrupted.
    :param start: a good point in the unit cube (n,), from which the method ``hybrid`` starts.
    :param left_out: minima of fits without each condition, for the bands of predictions.
    :param found: minima of candidates that predict about as well, this task's among them, for averages of predictions.
    :param rollout: the task's simulations, if some of their programs are compiled already.
    :raises KeyboardInterrupt: if it was interrupted before the first point was evaluated.
    :raises StribeckError: if every simulation diverges.
    """
    started = time.perf_counter() if started is None else started
    rollout = task.rollout() if rollout is None else rollout
    begin = time.perf_counter()
    incumbent, compile_seconds, interrupted = _searched(task, rollout, _stopping(on_progress, stop), start)
    interrupted = interrupted or stop()
    search_seconds = time.perf_counter() - begin - compile_seconds
    evaluations = incumbent.evaluations()
    if incumbent.unit is None:
        if interrupted:
            raise KeyboardInterrupt
        raise StribeckError("all simulations of these recordings diverge: check masses, lengths and gains")
    finished: Outcome = "converged" if incumbent.converged else "budget spent"
    # If the search ran in workers, this process has compiled nothing yet.
    before = rollout.meter.compile_seconds
    unit, residual = checked_point(rollout, incumbent.best_points)
    uncertainty = None
    if not interrupted:
        task, unit, uncertainty, seconds = _uncertain(
            task, rollout, unit, residual, incumbent, left_out, found
        )
        compile_seconds += seconds
    minima = equally_good(task.parameters, unit, incumbent)
    if uncertainty is not None:
        uncertainty = with_minima(uncertainty, task.parameters, minima)
    search = FitSearch(
        "interrupted" if interrupted else finished,
        evaluations,
        minima=minima,
        descent=incumbent.status,
        history=tuple((count, float(equivalent_error(loss))) for count, loss in incumbent.history),
        compile_seconds=compile_seconds + rollout.meter.compile_seconds - before,
        search_seconds=search_seconds,
    )
    result = replace(_result(task, unit, search), uncertainty=uncertainty)
    return replace(result, search=replace(search, wall_seconds=time.perf_counter() - started))


def _uncertain(
    task: FitTask,
    rollout: Rollout,
    unit: Array,
    residual: Array,
    incumbent: Incumbent,
    left_out: LeftOut | None,
    found: Sequence[Found],
) -> tuple[FitTask, Array, Uncertainty, float]:
    """Uncertainty of an optimum and of the motions it predicts, with a step fine enough for it.

    :returns: the task with its last step, the point, its uncertainty, and the time spent compiling [s].
    """
    uncertainty, seconds, searched = estimate_uncertainty(rollout, unit, residual), 0.0, task
    if task.settings.refine:
        task, rollout, unit, residual, uncertainty, seconds = with_finer_step(
            task, rollout, unit, residual, uncertainty, incumbent
        )
        if task is not searched and task.settings.study.url is not None and not task.samples:
            with closing(open_for(searched, join=True)) as opened:
                studies.keep_best(opened, task.parameters, unit, incumbent.loss)
    problem = problem_of(task, rollout)
    prior = problem.prior if isinstance(problem, WithPrior) else None
    members = members_of(found, searched, unit, incumbent.loss)
    return (
        task,
        unit,
        with_prediction(uncertainty, rollout, unit, residual, prior, left_out, members),
        seconds,
    )


def _stopping(
    on_progress: Callable[[Incumbent], None], stop: Callable[[], bool]
) -> Callable[[Incumbent], None]:
    def progress(incumbent: Incumbent) -> None:
        on_progress(incumbent)
        if stop():
            raise KeyboardInterrupt

    return progress


def snapshot(task: FitTask, incumbent: Incumbent, started: float) -> FitResult | None:
    """Preliminary result during a search, ``None`` before the first point."""
    if incumbent.unit is None:
        return None
    search = FitSearch("running", incumbent.evaluations(), wall_seconds=time.perf_counter() - started)
    return _result(task, incumbent.unit, search)


def errors_of(
    logs: Sequence[Log], actuator: Actuator, law: FrictionLaw, values: Values, settings: FitSettings
) -> Errors:
    """Mean absolute errors of a law on recorded runs, in float64."""
    batch = batch_for(logs, settings.dt, settings.integrator)
    motion = simulate(
        batch, actuator, law, values, integrator=settings.integrator, reset_period=settings.reset_period
    )
    errors = batch.mean_absolute_errors(motion.position)
    return Errors({log.name: float(error) for log, error in zip(logs, errors, strict=True)})


def _result(task: FitTask, unit: Array, search: FitSearch) -> FitResult:
    parameters = task.parameters.with_vector(task.parameters.from_unit(unit))
    settings = task.settings

    def errors(logs: Sequence[Log]) -> Errors:
        return errors_of(logs, task.actuator, task.law, parameters.values(), settings)

    return FitResult(
        actuator=task.actuator,
        law=task.law,
        parameters=parameters,
        settings=settings,
        split=task.split,
        search=search,
        train=errors(task.split.train),
        validation=errors(task.split.validation) if task.split.validation else None,
    )


def _searched(
    task: FitTask, rollout: Rollout, on_progress: Callable[[Incumbent], None], start: Array | None
) -> tuple[Incumbent, float, bool]:
    """The best point found, the time spent compiling [s], and whether the search was interrupted."""
    settings = task.settings
    latest = Incumbent(settings.trials, lambda: rollout.meter.evaluations)

    def remember(incumbent: Incumbent) -> None:
        nonlocal latest
        latest = incumbent  # kept if the code below raises
        on_progress(incumbent)

    try:
        if settings.workers > 1:
            incumbent, compile_seconds = _in_processes(task, remember)
            return incumbent, compile_seconds, False
        return (
            search(task, rollout, settings.seed, settings.trials, remember, start=start),
            rollout.meter.compile_seconds,
            False,
        )
    except KeyboardInterrupt:
        return latest, rollout.meter.compile_seconds, True


def search(
    task: FitTask,
    rollout: Rollout,
    seed: int,
    trials: int,
    on_progress: Callable[[Incumbent], None],
    *,
    join: bool = False,
    start: Array | None = None,
) -> Incumbent:
    """Run the task's search method in this process.

    :param join: join the study if it exists already.
    :param start: see :func:`identify`.
    """
    floor = float(smooth_absolute(np.float64(UNEXPLAINED_STEPS * task.actuator.resolution)))
    incumbent = Incumbent(trials, lambda: rollout.meter.evaluations, on_progress, floor)
    if task.settings.method in ("hybrid", "lm") and trials >= FROM_SIMPLER_LAWS:
        rollout.prepare()
    if start is None and task.settings.method == "hybrid" and trials >= FROM_SIMPLER_LAWS:
        start = _from_simpler_laws(task, rollout, incumbent)
    incumbent.start = start
    if start is not None:
        prepare_for(rollout, start)
    problem = problem_of(task, rollout)
    opened = None
    if task.samples or task.settings.study.url is not None:
        opened = open_for(task, join=join)
    try:
        with suppress(BudgetSpentError):
            if opened is not None and task.samples:
                _search_in_study(task, problem, incumbent, opened)
            else:
                _search_alone(task, problem, incumbent, opened, seed)
    finally:
        if opened is not None:
            opened.close()
    if incumbent.unit is None:
        # The budget is too small for the method: evaluate a few random points instead.
        points = qmc.Sobol(problem.dimension, rng=np.random.default_rng(seed)).random_base2(6)
        incumbent.evaluations = lambda: rollout.meter.evaluations
        incumbent.budget = incumbent.evaluations() + len(points)
        evaluate(problem, incumbent, points)
    return incumbent


def _from_simpler_laws(task: FitTask, rollout: Rollout, incumbent: Incumbent) -> Array | None:
    """The best point of a law with load terms, also reached from points of the simpler laws that it contains.

    Its own search ends in one of many minima. ``None`` for other laws, or if parameters are fixed or freed.
    """
    free = task.parameters.free_names
    laws = [task.law.based_on(name) for name in SIMPLER if name < task.law.name]
    if not task.law.load_inputs or not laws or free != task.actuator.parameters(task.law).free_names:
        return None
    tasks = [replace(task, law=law, parameters=task.actuator.parameters(law)) for law in laws] + [task]

    def progress(evaluations: int) -> None:
        incumbent.on_progress(incumbent)

    every = np.ones((1, len(task.split.train)), dtype=bool)
    strengths = (task.settings.prior_strength,)
    fits = ParallelFits(tasks, rollout, every, strengths, progress)
    return fits.best(fits.fit(), len(laws), 0)


def open_for(task: FitTask, *, join: bool = False) -> studies.OpenStudy:
    """Open the study given by the settings of a task.

    :param join: open it or continue it, whether or not it exists.
    """
    settings = task.settings
    return studies.open_study(
        settings.study.url,
        task.study_name,
        task.study_signature,
        settings.trials,
        resume=settings.study.resume and not join,
        join=settings.study.join or join,
    )


def _search_in_study(
    task: FitTask, problem: SearchProblem, incumbent: Incumbent, opened: studies.OpenStudy
) -> None:
    """Search with all trials stored in the study, shared by any number of workers."""
    settings, parameters = task.settings, task.parameters
    worker = opened.join()
    stream = np.random.SeedSequence([settings.seed, worker.signed_in, worker.place])
    sampler: OptunaSampler | SharedCMA
    if settings.method == "cmaes":
        sampler = SharedCMA(
            problem,
            parameters,
            incumbent,
            seed=settings.seed,
            budget=opened.budget,
            population=settings.batch,
            worker=worker.name,
            rng=np.random.default_rng(stream),
        )
    else:
        seed = int(stream.generate_state(1)[0])
        sampler = OptunaSampler(problem, sampler_for(settings.method, seed, settings.batch), parameters)
    sample(sampler, problem, incumbent, opened.trials(), parameters, settings.batch)


def _search_alone(
    task: FitTask, problem: SearchProblem, incumbent: Incumbent, opened: studies.OpenStudy | None, seed: int
) -> None:
    """Search in this process alone, exchanging its best points with a study if one is open."""
    rng = np.random.default_rng(seed)
    if opened is None:
        _search_and_polish(task.settings.method, problem, incumbent, rng)
        return
    parameters = task.parameters
    stored_best = studies.best_of(opened.study, parameters)
    try:
        if stored_best is not None:
            rng = np.random.default_rng(seed + len(opened.study.get_trials(deepcopy=False)))
            polish(problem, incumbent, stored_best[0][0])
        incumbent.on_progress = _keeping_best(opened, parameters, incumbent.on_progress)
        _search_and_polish(task.settings.method, problem, incumbent, rng)
    finally:
        if incumbent.unit is not None:
            studies.keep_best(opened, parameters, incumbent.unit, incumbent.loss)
    if (best := studies.best_of(opened.study, parameters)) is not None:
        incumbent.offer(*best)


def _search_and_polish(
    method: str, problem: SearchProblem, incumbent: Incumbent, rng: np.random.Generator
) -> None:
    """Run a search, then polish its best point by derivatives with a reserved part of the budget.

    Confidence intervals are valid at the minimum only, and a search may stop beside it along a flat direction.
    """
    full_budget = incumbent.budget
    incumbent.budget -= min(POLISHING * problem.dimension, full_budget // 8)
    with suppress(BudgetSpentError):
        SEARCHES[method](problem, incumbent, rng)
    incumbent.budget = full_budget
    if incumbent.unit is not None:
        polish(problem, incumbent, incumbent.unit)


def _keeping_best(
    opened: studies.OpenStudy, parameters: ParameterSet, on_progress: Callable[[Incumbent], None]
) -> Callable[[Incumbent], None]:
    """Progress callback that also stores the best point in a study, at most once per :data:`KEEP_BEST_EVERY`."""
    kept, when = np.inf, 0.0

    def progress(incumbent: Incumbent) -> None:
        nonlocal kept, when
        if incumbent.unit is not None and incumbent.loss < kept and time.monotonic() - when > KEEP_BEST_EVERY:
            studies.keep_best(opened, parameters, incumbent.unit, incumbent.loss)
            kept, when = incumbent.loss, time.monotonic()
        on_progress(incumbent)

    return progress


def _in_processes(task: FitTask, on_progress: Callable[[Incumbent], None]) -> tuple[Incumbent, float]:
    """Run the task's method in several processes that share the budget."""
    settings = task.settings
    sampled = task.samples
    with studies.shared_storage(settings.study.url, sampled) as url:
        shared = replace(task, settings=replace(settings, study=replace(settings.study, url=url)))
        if url is not None:
            open_for(shared).close()
        job = partial(_worker_search, shared)
        return search_in_processes(job, settings.workers, settings.trials, on_progress, together=sampled)


def _worker_search(
    task: FitTask, worker: int, on_progress: Callable[[Incumbent], None]
) -> tuple[Incumbent, float]:
    rollout = task.rollout()
    settings = task.settings
    seeds = np.random.SeedSequence(settings.seed).generate_state(settings.workers)
    trials = settings.trials if task.samples else max(1, settings.trials // settings.workers)
    incumbent = search(task, rollout, int(seeds[worker]), trials, on_progress, join=True)
    return incumbent, rollout.meter.compile_seconds
