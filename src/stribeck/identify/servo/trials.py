"""The finished trials of a study, to which several workers append whole batches.

A trial enters a study only after it was evaluated. A killed worker therefore leaves no unfinished trial, and the others
continue until the study has all its trials, without timeouts or retries.

A lock keeps workers from exceeding the study's trials: a file beside a journal or an SQLite database, an advisory lock of
PostgreSQL. On other databases the last batch of each worker may exceed them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy as sql
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

from stribeck.errors import StribeckError, StudyError

LOCK = 0x5_7219_BEC6
"""Key of the advisory lock."""

EVALUATED = (TrialState.COMPLETE, TrialState.PRUNED)
"""States of evaluated trials; a pruned one was evaluated over a short horizon only."""

ENDED = "stribeck ended"
"""User attribute of a study whose search has ended."""


def asked(
    params: dict[str, float], distributions: Mapping[str, BaseDistribution], user_attrs: dict[str, Any]
) -> FrozenTrial:
    """A point to evaluate, which is checked when it enters a study.

    :param params: values of the free parameters by name.
    """
    now = datetime.now()
    return FrozenTrial(
        -1, TrialState.RUNNING, None, now, None, params, dict(distributions), user_attrs, {}, {}, -1
    )


def evaluated(trial: FrozenTrial, state: TrialState, loss: float) -> FrozenTrial:
    """A point with its loss."""
    trial = copy(trial)
    trial.state, trial.value, trial.datetime_complete = state, loss, datetime.now()
    return trial


class Trials:
    """The evaluated trials of one study, in the study's order, through the public API of :class:`optuna.Study`.

    :param storage: of the study, at ``url``.
    :raises StudyError: by all methods, for the errors of the storage.
    """

    def __init__(
        self, study: optuna.Study, storage: BaseStorage | None = None, url: str | None = None
    ) -> None:
        self._study, self._storage, self._url = study, storage, url
        self._seen = 0

    def append(self, trials: Sequence[FrozenTrial], limit: int) -> bool:
        """Add evaluated points until the study has ``limit`` trials.

        :returns: whether the study is open; nothing is added to an ended one.
        """
        with translated(str(self._url)), _locked(self._storage, self._url):
            if ENDED in self._study.user_attrs:
                return False
            self._study.add_trials(trials[: max(0, limit - len(self._evaluated()))])
            return True

    def end(self) -> None:
        """Refuse all further trials."""
        with translated(str(self._url)), _locked(self._storage, self._url):
            self._study.set_user_attr(ENDED, True)

    def news(self) -> list[FrozenTrial]:
        """Trials of all workers since the last call."""
        with translated(str(self._url)):
            found = self._evaluated()
        new, self._seen = found[self._seen :], len(found)
        return new

    def _evaluated(self) -> list[FrozenTrial]:
        trials: list[FrozenTrial] = self._study.get_trials(deepcopy=False, states=EVALUATED)
        return trials


@contextmanager
def _locked(storage: BaseStorage | None, url: str | None) -> Iterator[None]:
    """Hold the lock of a study, which ends with its holder: Optuna breaks that of a file, PostgreSQL that of a connection."""
    dialect = storage.engine.dialect.name if isinstance(storage, RDBStorage) else ""
    if isinstance(storage, RDBStorage) and dialect == "postgresql":
        with storage.engine.connect() as connection:
            connection.execute(sql.text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})
            try:
                yield
            finally:
                connection.execute(sql.text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK})
        return
    path = None
    if isinstance(storage, JournalStorage) and url is not None:
        path = journal_path(url)
    elif isinstance(storage, RDBStorage) and dialect == "sqlite":
        path = Path(storage.engine.url.database or "")
    if path is None:
        yield
        return
    lock = JournalFileSymlinkLock(f"{path}.batch")
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def journal_path(url: str) -> Path:
    """File path of ``journal:FILE`` or ``journal:///FILE``."""
    return Path(url.removeprefix("journal:").removeprefix("//"))


def shown(url: str) -> str:
    """The URL without its password."""
    try:
        return sql.make_url(url).render_as_string(hide_password=True)
    except sql.exc.ArgumentError:
        return url


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Raise the errors of storages, which come from many libraries, as :class:`StudyError`."""
    try:
        yield
    except StribeckError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise StudyError(f"study {shown(url)!r} cannot be used: {reason or type(error).__name__}") from error
