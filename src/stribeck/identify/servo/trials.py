"""The finished trials of a study, to which several workers append whole batches.

A trial enters a study only after it was evaluated. A killed worker therefore leaves no unfinished trial, and the others
continue until the study has all its trials, without timeouts or retries.

A lock keeps workers from exceeding the study's trials: a file beside a journal or an SQLite database, an advisory lock of
PostgreSQL. On other databases the last batch of each worker may exceed them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
import sqlalchemy as sql
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

LOCK = 0x5_7219_BEC6
"""Key of the advisory lock."""

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
    """Access to the trials of a study.

    :param storage: storage of the study, at ``url``.
    :param distributions: distributions of its parameters.
    """
    return StudyTrials(study, distributions, _lock_of(storage, url))


def _lock_of(storage: BaseStorage, url: str | None) -> AbstractContextManager[Any] | None:
    if isinstance(storage, JournalStorage) and url is not None:
        return _FileLock(journal_path(url))
    if isinstance(storage, RDBStorage) and storage.engine.dialect.name == "sqlite":
        return _FileLock(Path(storage.engine.url.database or ""))
    if isinstance(storage, RDBStorage) and storage.engine.dialect.name == "postgresql":
        return _AdvisoryLock(storage)
    return None


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
    """Lock file beside a journal or database; Optuna breaks it if its holder was killed."""

    def __init__(self, path: Path) -> None:
        self._lock = JournalFileSymlinkLock(f"{path}.batch")

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _AdvisoryLock:
    """Lock of a PostgreSQL server, which ends with the connection of its holder."""

    def __init__(self, storage: RDBStorage) -> None:
        self._engine = storage.engine

    def __enter__(self) -> None:
        self._connection = self._engine.connect()
        self._connection.execute(sql.text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})

    def __exit__(self, *_: object) -> None:
        self._connection.execute(sql.text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK})
        self._connection.close()
