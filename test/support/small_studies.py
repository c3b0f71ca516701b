"""Small studies that tests share."""

import optuna
from optuna.trial import FrozenTrial, TrialState

from recovery import Bench
from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import FitSettings, StudySettings
from stribeck.identify.servo.study import canonical
from stribeck.identify.servo.task import FitTask, task_for
from stribeck.model.law import law_named

TINY = Bench("mx106", (0.5,), 0.15, 0.05, (8.0,), 12.0)
NAME = "stribeck mx106 m1"


def tiny_task(logs, law="m1", **settings) -> FitTask:
    """A law to fit to a few runs, with the integrator that compiles fastest and the time step of the search alone."""
    study = StudySettings(
        settings.pop("study", None), settings.pop("resume", False), settings.pop("join", False)
    )
    options = FitSettings(**{"integrator": "paper", "refine": False, "study": study, **settings})
    return task_for(split_runs(logs), load_actuator("mx106"), law_named(law), options)


def trials_in(url: str, name: str = NAME) -> list[FrozenTrial]:
    """The trials of a study as any program reads them."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = canonical(url)
    if url.startswith("journal:"):
        backend = optuna.storages.journal.JournalFileBackend(url.removeprefix("journal:"))
        return optuna.load_study(study_name=name, storage=optuna.storages.JournalStorage(backend)).trials
    storage = optuna.storages.RDBStorage(url)
    try:
        return optuna.load_study(study_name=name, storage=storage).trials
    finally:
        storage.remove_session()
        storage.engine.dispose()


def best_of(trials: list[FrozenTrial]) -> float:
    """The least value of trials over whole runs."""
    return min(trial.value for trial in trials if trial.state == TrialState.COMPLETE)
