"""Optuna: samplers as methods, storages, resuming.

Every method asks for whole batches, which are evaluated in one compiled call. A study keeps the
trials of Optuna's samplers, and of our own searches every best point, so that any of them can be
resumed and looked at with Optuna's tools.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
import sqlalchemy
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from stribeck.core.parameters import ParameterSet
from stribeck.errors import OutputError, StribeckError, StudyError
from stribeck.fit.search import BudgetSpentError, Incumbent, Problem, evaluate
from stribeck.io.files import check_writable

FloatArray = npt.NDArray[np.float64]

BATCH = 64
"""Trials asked for at a time; also the population of NSGA-II."""

SIGNATURE = "stribeck"
"""User attribute of a study that says what was fitted to what."""


def sampler_for(method: str, seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's sampler behind a method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if method == "tpe":
            # Trials of one batch, or of other workers, that have no value yet count as bad.
            return optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        if method == "nsgaii":
            return optuna.samplers.NSGAIISampler(seed=seed, population_size=BATCH)
        return optuna.samplers.RandomSampler(seed=seed)


def storage_for(url: str | None) -> BaseStorage:
    """The storage of a URL: ``sqlite:///FILE``, ``journal:FILE``, another database of SQLAlchemy's, or
    memory without one.

    :raises StudyError: for a storage that cannot be used, or a file that is something else.
    """
    if url is None:
        return InMemoryStorage()
    if url.startswith("journal:"):
        path = Path(url.removeprefix("journal:").removeprefix("//"))
        _check_study_file(path, "journal", url)
        with _translated(url):
            return JournalStorage(JournalFileBackend(str(path)))
    with _translated(url):
        parsed = sqlalchemy.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        _check_study_file(Path(parsed.database or ""), "sqlite", url)
        with _translated(url):
            return _sqlite_storage(url)
    with _translated(url):
        return RDBStorage(url)


def _sqlite_storage(url: str) -> RDBStorage:
    """An SQLite file with a write-ahead log: several processes write at once, and a trial costs no wait
    for the disk. A killed process loses nothing that it has told.
    """
    storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 60}})

    def configure(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL").close()
        connection.execute("PRAGMA synchronous=NORMAL").close()

    sqlalchemy.event.listen(storage.engine, "connect", configure)
    storage.engine.dispose()
    return storage


def _check_study_file(path: Path, kind: str, url: str) -> None:
    """Refuse a file that cannot be written, or that is not a study, before anything touches it."""
    if path.name in ("", ":memory:") or path.is_dir():
        expected = "sqlite:///FILE" if kind == "sqlite" else "journal:FILE"
        raise StudyError(f"study {url!r} names no file; expected {expected}")
    try:
        check_writable(path)
    except OutputError as error:
        raise StudyError(f"study: {error}") from None
    if not path.parent.is_dir():
        raise StudyError(f"study: {path.parent} is no folder; make it first")
    if not path.exists() or path.stat().st_size == 0:
        return
    if kind == "sqlite":
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                tables = {
                    row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
                }
        except sqlite3.Error as error:
            raise StudyError(f"study: {path} is not an SQLite database ({error})") from None
        if tables and not {"studies", "version_info"} <= tables:
            raise StudyError(
                f"study: {path} is a database of something else (tables {', '.join(sorted(tables)[:4])}); name another file"
            )
        return
    try:
        with path.open(encoding="utf-8") as file:
            known = "op_code" in json.loads(file.readline())
    except (OSError, ValueError, TypeError):
        known = False
    if not known:
        raise StudyError(f"study: {path} is not a journal of Optuna's; name another file")


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Errors of storages, which come from many libraries, as one line of ours."""
    try:
        yield
    except StribeckError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise StudyError(f"study {url!r} cannot be used: {reason or type(error).__name__}") from error


def open_study(
    url: str | None,
    name: str,
    signature: Mapping[str, Any],
    method: str,
    seed: int,
    *,
    resume: bool,
    join: bool = False,
) -> optuna.Study:
    """A new study, or with ``resume`` one that goes on.

    :param signature: what is fitted to what; a study with another signature is not gone on with.
    :param join: take part in a study that a parent process has just opened.
    :raises StudyError: if the study exists and should not, or the other way round, or is of other data.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = storage_for(url)
    with _translated(str(url)):
        existing = {study.study_name for study in storage.get_all_studies()}
        if name in existing and not (resume or join):
            raise StudyError(
                f"study {url!r} has {name!r} already: go on with --resume, or name another database"
            )
        if name not in existing and resume:
            known = ", ".join(sorted(existing)) or "none"
            raise StudyError(f"study {url!r} has no {name!r} to resume; it has: {known}")
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            sampler=sampler_for(method, seed),
            load_if_exists=resume or join,
        )
        found = study.user_attrs.get(SIGNATURE)
        if found is None:
            study.set_user_attr(SIGNATURE, dict(signature))
        elif found != json.loads(json.dumps(signature)):
            differing = [key for key in {*found, *signature} if found.get(key) != signature.get(key)]
            raise StudyError(
                f"study {url!r}: {name!r} was made with another {', '.join(sorted(differing))}; name another database"
            )
    return study


def sample(problem: Problem, incumbent: Incumbent, study: optuna.Study, parameters: ParameterSet) -> None:
    """Spend the budget on what the study's sampler asks for, batch by batch."""
    distributions = _distributions(parameters)
    while incumbent.remaining > 0:
        trials: list[optuna.Trial] = []
        told = 0
        try:
            with _translated(study.study_name):
                for _ in range(min(BATCH, incumbent.remaining)):
                    trials.append(study.ask(distributions))
            asked = [[trial.params[name] for name in parameters.free_names] for trial in trials]
            losses = evaluate(problem, incumbent, np.clip(parameters.to_unit(asked), 0.0, 1.0))
            with _translated(study.study_name):
                for trial, loss in zip(trials, losses.tolist(), strict=True):
                    study.tell(trial, loss)
                    told += 1
        finally:
            with suppress(Exception):  # a storage that is full or gone has been told of already
                for trial in trials[told:]:
                    study.tell(trial, state=TrialState.FAIL)
    raise BudgetSpentError


def best_of(study: optuna.Study, parameters: ParameterSet) -> FloatArray | None:
    """The best point of a study in the unit cube (n,), if it has one."""
    if not any(trial.state == TrialState.COMPLETE for trial in study.get_trials(deepcopy=False)):
        return None
    found = study.best_params
    return np.clip(parameters.to_unit([found[name] for name in parameters.free_names]), 0.0, 1.0)


def keep_best(study: optuna.Study, parameters: ParameterSet, unit: FloatArray, loss: float) -> None:
    """Add a best point of a search of our own (n,) to a study."""
    inside = np.clip(parameters.from_unit(unit), parameters.lower, parameters.upper)
    values = dict(zip(parameters.free_names, inside.tolist(), strict=True))
    trial = optuna.create_trial(params=values, distributions=_distributions(parameters), value=loss)
    with _translated(study.study_name):
        study.add_trial(trial)


def _distributions(parameters: ParameterSet) -> dict[str, BaseDistribution]:
    return {
        parameter.name: FloatDistribution(parameter.lower, parameter.upper) for parameter in parameters.free
    }


@contextmanager
def shared_storage(url: str | None, needed: bool) -> Iterator[str | None]:
    """The storage through which worker processes share a study: the user's, or a journal that is
    deleted afterwards where one is needed.
    """
    if url is not None or not needed:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="stribeck-") as folder:
        yield f"journal:{Path(folder) / 'study.log'}"
