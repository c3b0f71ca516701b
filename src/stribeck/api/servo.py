"""Identification of a servo: candidates, choice of the law, fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tqdm.auto import tqdm

from stribeck.api.choices import AUTO, LAWS_OR_AUTO
from stribeck.api.fit import Fit
from stribeck.api.recordings import Given, Recordings, as_recordings, warn
from stribeck.api.servo_notes import actuator_for, control_notes, supply_notes
from stribeck.errors import ConfigError, RecordingError, check_valid
from stribeck.files.drives import Drives
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.objective import Split, equivalent_error, split_runs
from stribeck.identify.servo.result import FitResult, FitSettings
from stribeck.identify.servo.selection import Selection, check_freed, select
from stribeck.identify.servo.task import FitTask, task_for
from stribeck.model.actuator import EFFECT_PARAMETERS, EFFECTS, Actuator
from stribeck.model.law import LAWS, law_named, optional_terms
from stribeck.model.log import Log
from stribeck.model.step import Integrator
from stribeck.model.terms import TERMS

COMPARED = ("current-limit", "supply", "saturation")
"""Effects that are compared with none, where the servo's file and the recordings allow them."""

ONE_RUN = "m4"
"""Law for a single run, where nothing can be left out."""


@dataclass(frozen=True, kw_only=True)
class ServoQuestion:
    """What is to be identified of a servo, and how.

    :param law: ``m1`` to ``m6``, or ``auto``.
    :param terms: names of terms that the law has in any case.
    :param effects: of the servo beyond the paper; with ``auto``, if there are none, they are compared too.
    :param actuator: the servo's name or YAML file; by default that of the recordings.
    :param fixed: known values of parameters.
    :param free: effect parameters to identify as well.
    :param hold_out_gain, hold_out: gain of the runs, or share of the runs, that are predicted only.
    """

    law: str = AUTO
    terms: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    actuator: str | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    hold_out_gain: float | None = None
    hold_out: float | None = None
    settings: FitSettings = field(default_factory=FitSettings)


def settings_with(
    settings: FitSettings, step: float | None, reset_period: float | None, integrator: Integrator | None
) -> FitSettings:
    """Settings with the simulation as given; without a step it is refined until its error is small."""
    return replace(
        settings,
        dt=step or FitSettings.dt,
        refine=step is None and integrator in (None, "exponential"),
        reset_period=reset_period,
        integrator=integrator or FitSettings.integrator,
    )


def tasks_of(
    question: ServoQuestion, logs: Sequence[Log], laws: Sequence[str], validation: Sequence[Log] = ()
) -> list[FitTask]:
    """One task for each law, after checking that the question is consistent.

    :param validation: runs that are predicted only.
    :raises ConfigError: for contradictions, and values that are not possible.
    :raises RecordingError: for recordings of other servos, or without what an effect needs.
    """
    actuator = _with_effects(question, logs)
    terms = dict.fromkeys(question.terms, True)
    forms = [law_named(name).with_terms(**terms) for name in laws]
    if question.law == AUTO:  # only laws that have the fixed parameters
        forms = [
            law for law in forms if all(name in actuator.parameters(law) for name in question.fixed)
        ] or forms[-1:]
    split = _split(question, logs, validation)
    return [
        task_for(split, actuator, law, question.settings, fixed=question.fixed, freed=question.free)
        for law in forms
    ]


def _split(question: ServoQuestion, logs: Sequence[Log], validation: Sequence[Log]) -> Split:
    gain, share = question.hold_out_gain, question.hold_out
    if not validation:
        return split_runs(logs, validation_kp=gain, validation_fraction=share, seed=question.settings.seed)
    if gain is not None or share is not None:
        raise ConfigError(
            "runs for validation are given: remove `hold_out` and `hold_out_gain`, which hold out further runs"
        )
    both = sorted({log.name for log in logs} & {log.name for log in validation})
    if both:
        raise RecordingError(f"runs to fit and runs for validation have the same names: {', '.join(both)}")
    return Split(tuple(logs), tuple(validation), "as given")


def _with_effects(question: ServoQuestion, logs: Sequence[Log]) -> Actuator:
    """The servo with its effects; freeing a parameter of an effect enables the effect."""
    effects = set(question.effects)
    effects |= {effect for effect, parameter in EFFECT_PARAMETERS.items() if parameter in question.free}
    actuator = actuator_for(question.actuator, logs).with_effects(effects)
    measured = {"supply": ("supply_voltage", "supply voltage"), "temperature": ("temperature", "temperature")}
    for effect in sorted(effects & measured.keys()):
        name, words = measured[effect]
        silent = [log.name for log in logs if getattr(log, name) is None]
        if silent:
            lack = f"{silent[0]!r} and others lack" if len(silent) > 1 else f"{silent[0]!r} lacks"
            raise RecordingError(
                f"the effect {effect} needs a measured {words}, which {lack}: remove the effect"
            )
    return actuator


def variants_of(question: ServoQuestion, logs: Sequence[Log]) -> list[ServoQuestion]:
    """The question with each set of effects to compare; as it is unless the law is chosen and no effects are given.

    :raises ConfigError: for a term whose constant is not given.
    """
    for name in question.terms:
        for one in TERMS[name].parameters:
            if one.given and one.name not in question.fixed:
                raise ConfigError(
                    f"the term {name} needs its {one.name}, which is not searched: fix it to a value [{one.unit('rotary')}]"
                )
    if question.law != AUTO or question.effects or question.free:
        return [question]
    known = actuator_for(question.actuator, logs).known_effects
    measured = all(log.supply_voltage is not None for log in logs)
    possible = tuple(e for e in COMPARED if e in known and (e != "supply" or measured))
    return [question, replace(question, effects=possible)] if possible else [question]


def chosen_task(
    groups: Sequence[Sequence[FitTask]], tell: Callable[[int], None], note: Callable[[str], None]
) -> tuple[FitTask, Selection | None]:
    """The task of the law that predicts best, and the comparison; of a single run, the task of :data:`ONE_RUN`.

    :param groups: tasks of all laws for each set of effects.
    :param tell: receives the number of evaluations; may raise to end the comparison.
    :param note: receives what the user should know.
    """
    tasks = groups[0]
    if len(tasks[0].split.train) < 2:
        task = next((task for task in tasks if task.law.name == ONE_RUN), tasks[-1])
        note(f"a choice of the law needs at least two runs, found one: {task.law.name.upper()} is fitted")
        return task, None
    selection = select(groups, tell)
    return selection.task, selection


def fitted(
    task: FitTask,
    selection: Selection | None,
    tell: Callable[[Incumbent], None],
    started: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> FitResult:
    """Fit a task, from the minima of the comparison if there was one."""
    if selection is None:
        return identify(task, tell, started=started, stop=stop)
    result = identify(
        task,
        tell,
        started=started,
        stop=stop,
        start=selection.start,
        left_out=selection.minima,
        found=selection.found,
        rollout=selection.rollout,
    )
    return replace(result, selection=selection.choice())


def identify_servo(
    runs: Given,
    *,
    law: str = AUTO,
    terms: Iterable[str] = (),
    effects: Iterable[str] = (),
    servo: str | None = None,
    fixed: Mapping[str, float] | None = None,
    free: Iterable[str] = (),
    validate: Given | None = None,
    hold_out: float | None = None,
    hold_out_gain: float | None = None,
    step: float | None = None,
    reset_period: float | None = None,
    integrator: Integrator | None = None,
    method: str = "hybrid",
    trials: int = 60_000,
    workers: int = 1,
    seed: int = 0,
    progress: bool = True,
) -> Fit:
    """Identify friction law and motor of a servo from runs on a bench.

    :param runs: recordings, or their paths.
    :param law: ``m1`` to ``m6``, or ``auto``: the law that predicts best the gains, loads and trajectories that are left out.
    :param terms: terms that the law has in any case, for example ``position``.
    :param effects: of the servo beyond the paper: ``current-limit``, ``supply``, ``saturation``, ``temperature``, …; with ``auto``
        those that the recordings allow are compared if none are given.
    :param servo: its name or YAML file; by default that of the recordings.
    :param fixed: known values by parameter, in SI units.
    :param free: effect parameters to identify as well; refused unless that lowers the error at every gain left out.
    :param validate: runs that are predicted only.
    :param hold_out, hold_out_gain: instead, share of the runs, or gain whose runs are predicted only.
    :param step: of the simulation [s]; by default 0.005 s, or less if its error is not small compared with the intervals.
    :param reset_period: time after which simulations start anew from the measured state [s].
    :param integrator: ``exponential`` unless published figures are to be repeated.
    :param method: of the search: ``hybrid``, ``cmaes``, ``lm``, ``random``, ``nsgaii`` or ``tpe``.
    :param trials: most evaluations.
    :param workers: processes that search.
    :param seed: of all random numbers.
    :param progress: show progress bars.
    :returns: the fit, whose verdict says whether it may be used.
    :raises RecordingError: for recordings that cannot be used.
    :raises ConfigError: for arguments that are not valid, or contradict each other or the recordings.
    """
    settings = FitSettings(method=method, trials=trials, workers=workers, seed=seed)
    question = ServoQuestion(
        law=law,
        terms=tuple(terms),
        effects=tuple(effects),
        actuator=servo,
        fixed=dict(fixed or {}),
        free=tuple(free),
        hold_out=hold_out,
        hold_out_gain=hold_out_gain,
        settings=settings_with(settings, step, reset_period, integrator),
    )
    given = as_recordings(runs)
    result = _answer(question, given, () if validate is None else as_recordings(validate), progress)
    return Fit(Drives({"": fitted_drive(result)}), runs=given, result=result)


def _answer(question: ServoQuestion, runs: Recordings, others: Sequence[Log], progress: bool) -> FitResult:
    check_valid(question.law, LAWS_OR_AUTO, "unknown friction law")
    check_valid(question.terms, optional_terms(), "unknown terms")
    check_valid(question.effects, EFFECTS, "unknown effects")
    laws = list(LAWS) if question.law == AUTO else [question.law]
    groups = [tasks_of(one, runs.logs, laws, others) for one in variants_of(question, runs.logs)]
    actuator = groups[0][0].actuator
    for text in (*supply_notes(runs.logs, actuator), *control_notes(runs.logs, actuator)):
        warn(text)
    started, task, selection = time.perf_counter(), groups[0][0], None
    if question.law == AUTO:
        with tqdm(desc="laws compared", unit=" trials", disable=not progress, leave=False) as bar:
            task, selection = chosen_task(groups, lambda done: _advance(bar, done), warn)
    if question.free:
        check_freed(task, question.free)
    most = task.settings.trials
    with tqdm(
        total=most, desc=task.law.name.upper(), unit=" trials", disable=not progress, leave=False
    ) as bar:

        def tell(incumbent: Incumbent) -> None:
            if incumbent.unit is not None:
                error = 1e3 * equivalent_error(incumbent.loss)
                bar.set_postfix_str(f"best {error:.2f} mrad", refresh=False)
            _advance(bar, incumbent.evaluations())

        return fitted(task, selection, tell, started)


def _advance(bar: tqdm[Any], done: int) -> None:
    bar.update(done - bar.n)
