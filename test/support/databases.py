"""A PostgreSQL of one's own: an empty folder, a socket in it, no network."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql


def postgres_binaries() -> Path | None:
    """Where PostgreSQL's programs are: on the path, or where Debian puts them."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextmanager
def postgres(binaries: Path) -> Iterator[Callable[[], str]]:
    """A server that lives as long as the context: makes databases, and gives their URLs.

    PostgreSQL does not run as root, who starts it as nobody.
    """
    plain: dict[str, Any] = (
        {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    )
    folder = Path(tempfile.mkdtemp(prefix="stribeck-pg-", dir="/tmp"))  # a short path, for the socket
    if plain:
        shutil.chown(folder, plain["user"], plain["group"])
    data = folder / "data"

    def run(program: str, *options: str) -> None:
        done = subprocess.run(
            [binaries / program, "-D", data, *options],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # not a pipe: the server would keep it open
            stderr=subprocess.DEVNULL,
            check=False,
            **plain,
        )
        log = folder / "log"
        assert done.returncode == 0, f"{program}: {log.read_text() if log.exists() else 'no log'}"

    try:
        run("initdb", "--no-sync", "--auth=trust", "--username=stribeck", "--no-locale", "--encoding=UTF8")
        server = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=on"
        run("pg_ctl", "start", "--wait", f"--log={folder / 'log'}", "-o", server)
        try:
            yield lambda: _new_database(folder)
        finally:
            run("pg_ctl", "stop", "--wait", "--mode=immediate")
    finally:
        shutil.rmtree(folder)


def _new_database(folder: Path) -> str:
    name = f"study_{uuid.uuid4().hex}"
    with psycopg.connect(host=str(folder), user="stribeck", dbname="postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return f"postgresql://stribeck@/{name}?host={folder}"
