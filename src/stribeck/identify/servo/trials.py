"""The finished trials of a study, to which several workers append whole batches.

A trial enters a study only after it was evaluated. A killed worker therefore leaves no unfinished trial, and the others
continue until the study has all its trials, without timeouts or retries.

Optuna's relational storage takes about fifty queries for a trial with fourteen parameters. If its tables have the
supported version, this module writes a batch in one transaction and reads it with a few queries. The rows equal those
of ``Study.add_trial``; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
import sqlalchemy as sql
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

SCHEMA = 12
"""Supported version of Optuna's tables."""

BACKENDS = ("postgresql", "sqlite")
"""Databases in which an update locks its rows and an insert returns the new keys."""

EVALUATED = (TrialState.COMPLETE, TrialState.PRUNED)
"""States of evaluated trials; a pruned one was evaluated over a short horizon only."""

ENDED = "stribeck ended"
"""User attribute of a study whose search has ended."""

Distributions = Mapping[str, BaseDistribution]
Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """A point to evaluate, or evaluated: the fields used here of an Optuna trial, without Optuna's checks.

    :param params: values of the free parameters by name.
    :param state: ``COMPLETE``, ``PRUNED``, or ``RUNNING`` before evaluation.
    """

    params: Mapping[str, float]
    state: TrialState = TrialState.RUNNING
    value: float = np.nan
    user_attrs: Attributes = field(default_factory=dict)
    system_attrs: Attributes = field(default_factory=dict)
    started: datetime | None = field(default_factory=datetime.now)


def sample_of(trial: FrozenTrial) -> Sample:
    """Convert an Optuna trial to a sample."""
    value = np.nan if trial.value is None else trial.value
    return Sample(
        trial.params, trial.state, value, trial.user_attrs, trial.system_attrs, trial.datetime_start
    )


def trial_of(sample: Sample, distributions: Distributions) -> FrozenTrial:
    """Convert a sample to a finished Optuna trial."""
    trial = optuna.create_trial(
        state=sample.state,
        value=sample.value,
        params=dict(sample.params),
        distributions=dict(distributions),
        user_attrs=dict(sample.user_attrs),
        system_attrs=dict(sample.system_attrs),
    )
    trial.datetime_start = sample.started
    return trial


class Trials(Protocol):
    """The evaluated trials of one study, in the study's order."""

    def append(self, samples: Sequence[Sample], limit: int) -> bool:
        """Add evaluated points until the study has ``limit`` trials.

        :returns: whether the study is open; nothing is added to an ended one.
        """

    def end(self) -> None:
        """Refuse all further trials."""

    def news(self) -> list[Sample]:
        """Trials of all workers since the last call."""


def trials_of(
    study: optuna.Study, storage: BaseStorage, distributions: Distributions, url: str | None
) -> Trials:
    """Access to the trials of a study: through its tables if they have a supported version, else through Optuna.

    :param storage: storage of the study, at ``url``.
    :param distributions: distributions of its parameters.
    """
    if isinstance(storage, RDBStorage) and tables_known(storage):
        return TableTrials(storage, study.study_name, distributions)
    lock: AbstractContextManager[Any] | None = None
    if isinstance(storage, JournalStorage) and url is not None:
        lock = _FileLock(journal_path(url))
    return StudyTrials(study, distributions, lock)


def journal_path(url: str) -> Path:
    """File path of ``journal:FILE`` or ``journal:///FILE``."""
    return Path(url.removeprefix("journal:").removeprefix("//"))


class StudyTrials:
    """Trials through the public API of :class:`optuna.Study`.

    :param lock: held while a batch is added.
    """

    def __init__(
        self,
        study: optuna.Study,
        distributions: Distributions,
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        self._study, self._distributions = study, distributions
        self._lock = lock or nullcontext()
        self._seen = 0

    def append(self, samples: Sequence[Sample], limit: int) -> bool:
        """See :class:`Trials`."""
        with self._lock:
            if ENDED in self._study.user_attrs:
                return False
            room = max(0, limit - len(self._evaluated()))
            self._study.add_trials([trial_of(sample, self._distributions) for sample in samples[:room]])
            return True

    def end(self) -> None:
        """See :class:`Trials`."""
        with self._lock:
            self._study.set_user_attr(ENDED, True)

    def news(self) -> list[Sample]:
        """See :class:`Trials`."""
        evaluated = self._evaluated()
        new, self._seen = evaluated[self._seen :], len(evaluated)
        return [sample_of(trial) for trial in new]

    def _evaluated(self) -> list[FrozenTrial]:
        trials: list[FrozenTrial] = self._study.get_trials(deepcopy=False, states=EVALUATED)
        return trials


class _FileLock:
    """Lock file beside a journal; Optuna breaks it if its holder was killed."""

    def __init__(self, path: Path) -> None:
        self._lock = JournalFileSymlinkLock(f"{path}.batch")

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class TableTrials:
    """Trials read from and written to Optuna's tables, a batch at a time.

    :param distributions: distributions of the parameters, which every trial has.
    """

    def __init__(self, storage: RDBStorage, name: str, distributions: Distributions) -> None:
        from optuna.storages._rdb import models

        self._models = models
        self._storage = storage
        self._study = storage.get_study_id_from_name(name)
        self._names = distributions.keys()
        self._json = {key: distribution_to_json(value) for key, value in distributions.items()}
        self._last = -1

    def append(self, samples: Sequence[Sample], limit: int) -> bool:
        """See :class:`Trials`. Either all samples are added or none."""
        trial = self._models.TrialModel
        with self._locked() as session:
            if self._ended(session):
                return False
            evaluated = sql.func.count().filter(trial.state.in_(EVALUATED))
            counts = sql.select(sql.func.count(), evaluated).select_from(trial)
            number, count = session.execute(counts.where(trial.study_id == self._study)).one()
            self._insert(session, samples[: max(0, limit - count)], number)
            return True

    def end(self) -> None:
        """See :class:`Trials`."""
        with self._locked() as session:
            if not self._ended(session):
                attribute = self._models.StudyUserAttributeModel
                session.add(attribute(study_id=self._study, key=ENDED, value_json=json.dumps(True)))

    def _ended(self, session: Any) -> bool:
        attribute = self._models.StudyUserAttributeModel
        ended = sql.and_(attribute.study_id == self._study, attribute.key == ENDED)
        return session.scalar(sql.select(attribute.value_json).where(ended)) is not None

    def _insert(self, session: Any, samples: Sequence[Sample], number: int) -> None:
        """Insert samples; the first becomes the study's trial ``number``."""
        models = self._models
        rows = [
            models.TrialModel(
                study_id=self._study,
                number=number + k,
                state=sample.state,
                datetime_start=sample.started,
                datetime_complete=datetime.now(),
            )
            for k, sample in enumerate(samples)
        ]
        session.add_all(rows)
        session.flush()  # assigns their keys
        keyed = [(row.trial_id, sample) for row, sample in zip(rows, samples, strict=True)]
        _fill(session, models.TrialValueModel, (self._value_row(*pair) for pair in keyed))
        _fill(session, models.TrialParamModel, (row for pair in keyed for row in self._param_rows(*pair)))
        for model, name in (
            (models.TrialUserAttributeModel, "user_attrs"),
            (models.TrialSystemAttributeModel, "system_attrs"),
        ):
            _fill(session, model, (row for key, s in keyed for row in _attribute_rows(key, getattr(s, name))))

    def _value_row(self, key: int, sample: Sample) -> dict[str, Any]:
        value, kind = self._models.TrialValueModel.value_to_stored_repr(sample.value)
        return {"trial_id": key, "objective": 0, "value": value, "value_type": kind}

    def _param_rows(self, key: int, sample: Sample) -> Iterator[dict[str, Any]]:
        for name, value in sample.params.items():
            yield {
                "trial_id": key,
                "param_name": name,
                "param_value": value,
                "distribution_json": self._json[name],
            }

    def news(self) -> list[Sample]:
        """See :class:`Trials`."""
        models = self._models
        trial, value = models.TrialModel, models.TrialValueModel
        new = sql.and_(trial.study_id == self._study, trial.trial_id > self._last, trial.state.in_(EVALUATED))
        with self._session() as session:
            heads = session.execute(
                sql.select(
                    trial.trial_id, trial.state, trial._datetime_start_utc, value.value, value.value_type
                )
                .join(value, value.trial_id == trial.trial_id)
                .where(new, value.objective == 0)
                .order_by(trial.trial_id)
            ).all()
            if not heads:
                return []
            # Trials appended by others in the meantime are left to the next call.
            new = sql.and_(new, trial.trial_id <= heads[-1][0])
            params = self._by_trial(session, models.TrialParamModel, ("param_name", "param_value"), new)
            user = self._by_trial(session, models.TrialUserAttributeModel, ("key", "value_json"), new)
            system = self._by_trial(session, models.TrialSystemAttributeModel, ("key", "value_json"), new)
        self._last = heads[-1][0]
        return [
            Sample(
                params[key],
                state,
                value.stored_repr_to_value(stored, kind),
                {name: json.loads(text) for name, text in user.get(key, {}).items()},
                {name: json.loads(text) for name, text in system.get(key, {}).items()},
                started,
            )
            for key, state, started, stored, kind in heads
            if params.get(key, {}).keys() == self._names
        ]

    def _by_trial(
        self, session: Any, model: Any, columns: tuple[str, str], new: Any
    ) -> dict[int, dict[str, Any]]:
        """Names and values of the new trials in one table, by trial."""
        trial = self._models.TrialModel
        name, value = (getattr(model, column) for column in columns)
        by_trial: dict[int, dict[str, Any]] = {}
        rows = session.execute(
            sql.select(model.trial_id, name, value).join(trial, trial.trial_id == model.trial_id).where(new)
        )
        for key, text, content in rows:
            by_trial.setdefault(key, {})[text] = content
        return by_trial

    @contextmanager
    def _locked(self) -> Iterator[Any]:
        """Session that locks the study against concurrent appends."""
        study = self._models.StudyModel
        with self._session() as session:
            # An update that changes nothing locks the study on every database; Optuna does the same for a new trial.
            session.execute(
                sql.update(study).where(study.study_id == self._study).values(study_name=study.study_name)
            )
            yield session

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


def _fill(session: Any, model: Any, rows: Iterable[dict[str, Any]]) -> None:
    if content := list(rows):
        session.execute(sql.insert(model.__table__), content)


def _attribute_rows(key: int, attributes: Attributes) -> Iterator[dict[str, Any]]:
    for name, value in attributes.items():
        yield {"trial_id": key, "key": name, "value_json": json.dumps(value)}


def tables_known(storage: RDBStorage) -> bool:
    """Whether the tables of a storage have the supported version."""
    try:
        from optuna.storages._rdb import models
    except ImportError:
        return False
    return storage.engine.dialect.name in BACKENDS and models.SCHEMA_VERSION == SCHEMA
