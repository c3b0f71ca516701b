"""The finished trials of a study, which several workers append to in whole batches.

A trial enters a study when it has been evaluated, never before: a worker that is killed leaves nothing
behind, and the others go on until the study has all its trials. So nothing has to be given up, timed
out or tried again.

Optuna's relational storage takes some fifty queries for a trial of fourteen parameters. Where its
tables are the ones known here, a batch goes into them in one transaction, and comes back in three
queries. What is written is what ``Study.add_trial`` writes; a test holds the two to each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import optuna
import sqlalchemy as sql
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

SCHEMA = 12
"""Version of the tables of Optuna's that are written here."""

BACKENDS = ("postgresql", "sqlite")
"""Databases in which an update locks what it touches, and an insert returns the new keys."""

EVALUATED = (TrialState.COMPLETE, TrialState.PRUNED)
"""States of trials that count; a pruned one was evaluated over a short horizon only."""


class Trials(Protocol):
    """The evaluated trials of one study, in the study's order."""

    def append(self, trials: Sequence[FrozenTrial], limit: int) -> None:
        """Add evaluated trials, as many as the study may still have of ``limit``."""

    def news(self) -> list[FrozenTrial]:
        """The trials that came since the last call, whoever evaluated them."""


def trials_of(
    study: optuna.Study, storage: BaseStorage, distributions: Mapping[str, BaseDistribution], url: str | None
) -> Trials:
    """The trials of a study.

    :param storage: where the study is, at ``url``.
    :param distributions: of its parameters.
    """
    if isinstance(storage, RDBStorage) and _tables_known(storage):
        return TableTrials(storage, study.study_name, distributions)
    lock: AbstractContextManager[Any] = nullcontext()
    if isinstance(storage, JournalStorage) and url is not None:
        lock = _FileLock(journal_path(url))
    return StudyTrials(study, lock)


def journal_path(url: str) -> Path:
    """The file of ``journal:FILE`` or ``journal:///FILE``."""
    return Path(url.removeprefix("journal:").removeprefix("//"))


class StudyTrials:
    """Trials through :class:`optuna.Study` alone.

    :param lock: held while a batch is added.
    """

    def __init__(self, study: optuna.Study, lock: AbstractContextManager[Any]) -> None:
        self._study, self._lock = study, lock
        self._seen: set[int] = set()

    def append(self, trials: Sequence[FrozenTrial], limit: int) -> None:
        """See :class:`Trials`."""
        with self._lock:
            room = max(0, limit - len(self._evaluated()))
            self._study.add_trials(trials[:room])

    def news(self) -> list[FrozenTrial]:
        """See :class:`Trials`."""
        found = [trial for trial in self._evaluated() if trial.number not in self._seen]
        self._seen.update(trial.number for trial in found)
        return found

    def _evaluated(self) -> list[FrozenTrial]:
        found: list[FrozenTrial] = self._study.get_trials(deepcopy=False, states=EVALUATED)
        return found


class _FileLock:
    """A lock beside a journal, which Optuna breaks when its holder was killed."""

    def __init__(self, path: Path) -> None:
        self._lock = JournalFileSymlinkLock(f"{path}.batch")

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class TableTrials:
    """Trials in Optuna's tables, a batch at a time.

    :param name: of the study.
    :param distributions: of the parameters that every trial has.
    """

    def __init__(self, storage: RDBStorage, name: str, distributions: Mapping[str, BaseDistribution]) -> None:
        from optuna.storages._rdb import models

        self._models = models
        self._storage = storage
        self._study = storage.get_study_id_from_name(name)
        self._distributions = dict(distributions)
        self._json = {key: distribution_to_json(value) for key, value in distributions.items()}
        self._last = -1

    def append(self, trials: Sequence[FrozenTrial], limit: int) -> None:
        """See :class:`Trials`. All of them are in the study, or none."""
        trial, study = self._models.TrialModel, self._models.StudyModel
        own = trial.study_id == self._study
        with self._session() as session:
            # An update that changes nothing locks the study on every database, as Optuna does for a new trial.
            session.execute(
                sql.update(study).where(study.study_id == self._study).values(study_name=study.study_name)
            )
            evaluated = session.scalar(
                sql.select(sql.func.count()).where(own, trial.state.in_(EVALUATED)).select_from(trial)
            )
            number = session.scalar(sql.select(sql.func.count()).where(own).select_from(trial))
            self._insert(session, list(trials[: max(0, limit - evaluated)]), number)

    def _insert(self, session: Any, trials: Sequence[FrozenTrial], number: int) -> None:
        models = self._models
        rows = [
            models.TrialModel(
                study_id=self._study,
                number=number + k,
                state=trial.state,
                datetime_start=trial.datetime_start,
                datetime_complete=trial.datetime_complete,
            )
            for k, trial in enumerate(trials)
        ]
        session.add_all(rows)
        session.flush()
        pairs = [(row.trial_id, trial) for row, trial in zip(rows, trials, strict=True)]
        values = [(key, models.TrialValueModel.value_to_stored_repr(trial.value)) for key, trial in pairs]
        _fill(
            session,
            models.TrialValueModel,
            (
                {"trial_id": key, "objective": 0, "value": value, "value_type": kind}
                for key, (value, kind) in values
            ),
        )
        _fill(
            session,
            models.TrialParamModel,
            (
                {
                    "trial_id": key,
                    "param_name": name,
                    "param_value": value,
                    "distribution_json": self._json[name],
                }
                for key, trial in pairs
                for name, value in trial.params.items()
            ),
        )
        for model, attribute in (
            (models.TrialUserAttributeModel, "user_attrs"),
            (models.TrialSystemAttributeModel, "system_attrs"),
        ):
            _fill(
                session,
                model,
                (
                    {"trial_id": key, "key": name, "value_json": json.dumps(value)}
                    for key, trial in pairs
                    for name, value in getattr(trial, attribute).items()
                ),
            )

    def news(self) -> list[FrozenTrial]:
        """See :class:`Trials`."""
        models = self._models
        trial, value = models.TrialModel, models.TrialValueModel
        new = sql.and_(trial.study_id == self._study, trial.trial_id > self._last, trial.state.in_(EVALUATED))
        with self._session() as session:
            heads = session.execute(
                sql.select(trial.trial_id, trial.state, value.value, value.value_type)
                .join(value, value.trial_id == trial.trial_id)
                .where(new, value.objective == 0)
                .order_by(trial.trial_id)
            ).all()
            params = self._by_trial(session, models.TrialParamModel, ("param_name", "param_value"), new)
            user = self._by_trial(session, models.TrialUserAttributeModel, ("key", "value_json"), new)
            system = self._by_trial(session, models.TrialSystemAttributeModel, ("key", "value_json"), new)
        if heads:
            self._last = heads[-1][0]
        return [
            optuna.create_trial(
                state=state,
                value=value.stored_repr_to_value(stored, kind),
                params={name: params[key][name] for name in self._distributions},
                distributions=self._distributions,
                user_attrs={name: json.loads(text) for name, text in user.get(key, {}).items()},
                system_attrs={name: json.loads(text) for name, text in system.get(key, {}).items()},
            )
            for key, state, stored, kind in heads
            if params.get(key, {}).keys() >= self._distributions.keys()
        ]

    def _by_trial(
        self, session: Any, model: Any, columns: tuple[str, str], new: Any
    ) -> dict[int, dict[str, Any]]:
        """A table of names and values of the new trials."""
        trial = self._models.TrialModel
        name, value = (getattr(model, column) for column in columns)
        found: dict[int, dict[str, Any]] = {}
        rows = session.execute(
            sql.select(model.trial_id, name, value).join(trial, trial.trial_id == model.trial_id).where(new)
        )
        for key, text, content in rows:
            found.setdefault(key, {})[text] = content
        return found

    @contextmanager
    def _session(self) -> Iterator[Any]:
        session = self._storage.scoped_session()
        try:
            yield session
            session.commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.close()


def _fill(session: Any, model: Any, rows: Iterator[dict[str, Any]]) -> None:
    if content := list(rows):
        session.execute(sql.insert(model), content)


def _tables_known(storage: RDBStorage) -> bool:
    """Whether the tables of a storage are the ones that are written here."""
    try:
        from optuna.storages._rdb import models
    except ImportError:
        return False
    return storage.engine.dialect.name in BACKENDS and models.SCHEMA_VERSION == SCHEMA
