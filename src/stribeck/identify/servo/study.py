"""Optuna studies: choose a storage, create, join and resume a study.

A study keeps every trial of the methods that work batch by batch, and the best points of the other searches, so that
all of them can be resumed, and inspected with Optuna's tools.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
import sqlalchemy
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from stribeck.errors import MissingDependencyError, OutputError, StudyError
from stribeck.files.folders import check_writable
from stribeck.identify.servo.sampling import distributions_of, params_of, units_of
from stribeck.identify.servo.trials import Trials, journal_path, shown, translated
from stribeck.model.arrays import Array
from stribeck.model.parameters import ParameterSet

SIGNATURE = "stribeck"
"""User attribute of a study: law, recordings and settings of the fit."""

TRIALS = "stribeck trials"
"""User attribute of a study: its budget of trials."""

WORKER = "stribeck worker"
"""Prefix of the user attributes that name the workers of a study."""

JOURNALS = (".log", ".journal")
"""File suffixes of journals that are given without the scheme ``journal:``."""

SQLITE_MAGIC = b"SQLite format 3\0"

TRIES = 3
"""Attempts to create tables that other workers may be creating at the same time."""


class Worker(NamedTuple):
    """A worker of a study. Its two numbers are unique, and reproducible if workers sign in in the same order.

    :param signed_in: number of workers including this one when it signed in.
    :param place: its index among them.
    """

    name: str
    signed_in: int
    place: int


class OpenStudy(NamedTuple):
    """A study with its storage and the storage's URL."""

    study: optuna.Study
    storage: BaseStorage
    url: str | None

    @property
    def budget(self) -> int:
        """Budget of trials."""
        return int(self.study.user_attrs[TRIALS])

    def trials(self) -> Trials:
        """Finished trials, for reading and appending."""
        return Trials(self.study, self.storage, self.url)

    def join(self) -> Worker:
        """Sign in as a worker."""
        name = uuid.uuid4().hex
        with translated(str(self.url)):
            key = f"{WORKER} {len(self._workers()):04d} {name}"
            self.study.set_user_attr(key, f"{socket.gethostname()} {os.getpid()}")
            # Two workers that sign in at once see different numbers of workers, or the same names.
            workers = self._workers()
        return Worker(name, len(workers), workers.index(key))

    def close(self) -> None:
        """Close the connections."""
        close_storage(self.storage)

    def _workers(self) -> list[str]:
        return sorted(key for key in self.study.user_attrs if key.startswith(WORKER))


def storage_for(url: str | None, *, beside_others: bool = False) -> BaseStorage:
    """Open the storage at a URL.

    The URL is ``sqlite:///FILE``, ``postgresql://USER@HOST/DATABASE``, ``journal:FILE`` (or a path that ends in ``.log``
    or ``.journal``) or that of another SQLAlchemy database; ``None`` selects a storage in memory.

    :param beside_others: other workers may be creating its tables at the same time.
    :raises StudyError: for a storage that cannot be used, or a file that is not a study.
    :raises MissingDependencyError: if the database driver is not installed.
    """
    if url is None:
        return InMemoryStorage()
    url = canonical(url)
    if url.startswith("journal:"):
        path = journal_path(url)
        _check_study_file(path, "journal", url)
        with translated(url):
            return JournalStorage(JournalFileBackend(str(path)))
    with translated(url):
        parsed = sqlalchemy.make_url(url)
        backend = parsed.get_backend_name()
    if backend == "sqlite":
        _check_study_file(Path(parsed.database or ""), "sqlite", url)
    elif parsed.drivername == "postgresql+psycopg":
        try:
            importlib.import_module("psycopg")
        except ImportError:
            raise MissingDependencyError(
                "a study on PostgreSQL needs psycopg: pip install 'stribeck[postgres]'"
            ) from None
    with translated(url):
        if beside_others:
            _make_tables(url)
        return _sqlite_storage(url) if backend == "sqlite" else RDBStorage(url)


def _make_tables(url: str) -> None:
    """Create the tables of a database. If several workers try at once, all but one fail and then find the tables."""
    # Without a pool, a failed attempt leaves no open connection.
    for _ in range(TRIES):
        with suppress(Exception):
            engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
            if sqlalchemy.inspect(engine).has_table("alembic_version"):  # the last table that Optuna creates
                with engine.connect() as connection:  # and its row comes after it
                    if connection.execute(sqlalchemy.text("SELECT 1 FROM alembic_version")).first():
                        return
            RDBStorage(url, engine_kwargs={"poolclass": sqlalchemy.NullPool})
            return


def close_storage(storage: BaseStorage) -> None:
    """Close the connections of a storage, if it has any."""
    if isinstance(storage, RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


def canonical(url: str) -> str:
    """The URL with its scheme, and with the driver for PostgreSQL."""
    if url.endswith(JOURNALS) and "://" not in url and not url.startswith("journal:"):
        return f"journal:{url}"
    scheme, colon, rest = url.partition("://")
    return f"postgresql+psycopg://{rest}" if colon and scheme in ("postgres", "postgresql") else url


def _sqlite_storage(url: str) -> RDBStorage:
    """An SQLite file with a write-ahead log: fast concurrent writes, and appended trials survive a kill."""
    storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 60}})

    def configure(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL").close()
        connection.execute("PRAGMA synchronous=NORMAL").close()

    sqlalchemy.event.listen(storage.engine, "connect", configure)
    storage.engine.dispose()
    return storage


def _check_study_file(path: Path, kind: str, url: str) -> None:
    """Refuse a file that cannot be written or is not a study, before it is modified."""
    if path.name in ("", ":memory:") or path.is_dir():
        expected = "sqlite:///FILE" if kind == "sqlite" else "journal:FILE"
        raise StudyError(f"study {url!r} does not name a file; expected {expected}")
    try:
        check_writable(path)
    except OutputError as error:
        raise StudyError(f"study: {error}") from None
    if not path.parent.is_dir():
        raise StudyError(f"study: {path.parent} is not a folder: create it first")
    if not path.exists() or path.stat().st_size == 0:
        return
    if kind == "sqlite":
        with path.open("rb") as opened:  # SQLite takes shorter files for empty databases
            if opened.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC:
                raise StudyError(f"study: {path} is not an SQLite database; name another file")
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                tables = {
                    row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
                }
        except sqlite3.Error as error:
            raise StudyError(f"study: {path} is not an SQLite database ({error})") from None
        begun = tables == {"studies"}  # the first table that Optuna creates: another worker is creating them
        if tables and not begun and not {"studies", "version_info"} <= tables:
            raise StudyError(
                f"study: {path} is the database of another program (tables {', '.join(sorted(tables)[:4])}): name another file"
            )
        return
    try:
        with path.open(encoding="utf-8") as file:
            is_journal = "op_code" in json.loads(file.readline())
    except (OSError, ValueError, TypeError):
        is_journal = False
    if not is_journal:
        raise StudyError(f"study: {path} is not an Optuna journal: name another file")


def open_study(
    url: str | None,
    name: str,
    signature: Mapping[str, Any],
    trials: int,
    *,
    resume: bool = False,
    join: bool = False,
) -> OpenStudy:
    """Open a new study, an existing one (``resume``), or either (``join``).

    :param signature: law, recordings and settings of the fit; has to equal that of an existing study.
    :param trials: budget of a new study.
    :raises StudyError: if the study exists but should not, does not exist but should, or has another signature.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = storage_for(url, beside_others=join)
    try:
        with translated(str(url)):
            study = _study_in(storage, shown(str(url)), name, resume=resume, join=join)
            _check_signature(study, shown(str(url)), signature, trials)
    except BaseException:
        close_storage(storage)
        raise
    return OpenStudy(study, storage, None if url is None else canonical(url))


def _study_in(storage: BaseStorage, place: str, name: str, *, resume: bool, join: bool) -> optuna.Study:
    existing = {study.study_name for study in storage.get_all_studies()}
    if name in existing and not (resume or join):
        raise StudyError(
            f"study {place!r} already contains {name!r}: continue it with `resume`, or name another database"
        )
    if name not in existing and resume:
        existing_names = ", ".join(sorted(existing)) or "none"
        raise StudyError(f"study {place!r} contains no {name!r} to resume; it contains: {existing_names}")
    return optuna.create_study(storage=storage, study_name=name, load_if_exists=resume or join)


def _check_signature(study: optuna.Study, place: str, signature: Mapping[str, Any], trials: int) -> None:
    """Sign a new study; refuse one with another signature."""
    if SIGNATURE not in study.user_attrs:
        study.set_user_attr(TRIALS, trials)
        study.set_user_attr(SIGNATURE, dict(signature))
    signed = study.user_attrs[SIGNATURE]  # two workers may have created it at once
    expected = json.loads(json.dumps(signature))
    if signed != expected:
        differing = sorted(key for key in {*signed, *expected} if signed.get(key) != expected.get(key))
        raise StudyError(
            f"study {place!r}: {study.study_name!r} differs from this fit in {', '.join(differing)}: name another database"
        )


def best_of(study: optuna.Study, parameters: ParameterSet) -> tuple[Array, Array] | None:
    """The best point of a study in the unit cube (1, n) and its loss (1,); ``None`` if it has no trials."""
    if not any(trial.state == TrialState.COMPLETE for trial in study.get_trials(deepcopy=False)):
        return None
    best = study.best_trial
    return units_of(parameters, [best]), np.array([best.value])


def keep_best(opened: OpenStudy, parameters: ParameterSet, unit: Array, loss: float) -> None:
    """Add the best point (n,) of a search to a study."""
    (values,) = params_of(parameters, unit[None])
    trial = optuna.create_trial(params=values, distributions=distributions_of(parameters), value=loss)
    with translated(str(opened.url)):
        opened.study.add_trial(trial)


@contextmanager
def shared_storage(url: str | None, needed: bool) -> Iterator[str | None]:
    """Storage through which worker processes share a study: the user's, or a temporary journal if needed."""
    if url is not None or not needed:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="stribeck-") as folder:
        yield f"journal:{Path(folder) / 'study.log'}"
