"""Workers that open a new study at the same moment."""

import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("optuna", reason="studies need the fit extra: pip install '.[fit]'")

from stribeck.identify.servo.study import _make_tables


def test_tables_without_their_version_are_not_taken_for_complete(tmp_path):
    """What happened: a worker between another's last table and its row ended with "UNIQUE constraint failed:
    alembic_version". What must happen: tables are complete with the row alone; until then it tries itself.
    """
    url = f"sqlite:///{tmp_path / 'study.db'}"
    _make_tables(url)

    def versions(command):
        with closing(sqlite3.connect(tmp_path / "study.db")) as connection, connection:
            return connection.execute(command).fetchall()

    (version,) = versions("SELECT version_num FROM alembic_version")
    versions("DELETE FROM alembic_version")
    _make_tables(url)
    assert versions("SELECT version_num FROM alembic_version") == [version]
