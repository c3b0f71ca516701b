"""Folders of the installation, and atomic writing of files."""

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stribeck.errors import ConfigError, OutputError


def shared_directory(name: str) -> Path:
    """The folder ``config`` or ``bags`` of this installation.

    It is in ``share/stribeck`` of an installed package (pip or colcon), or at the top of a source tree.

    :raises ConfigError: if the installation has no such folder.
    """
    package = Path(__file__).resolve().parent.parent
    for ancestor in package.parents:
        installed = ancestor / "share" / "stribeck" / name
        if installed.is_dir():
            return installed
        if (ancestor / "package.xml").is_file() and (ancestor / name).is_dir():
            return ancestor / name
    raise ConfigError(
        f"this installation of stribeck has no folder {name!r}: reinstall it, or use a source tree"
    )


def included_names(folder: str) -> list[str]:
    """Names of the YAML files in a folder of ``config``."""
    return sorted(path.stem for path in (shared_directory("config") / folder).glob("*.yaml"))


def included_file(folder: str, kind: str, name: str) -> Path:
    """Path of an included YAML file by its name; a name that ends in ``.yaml`` or ``.yml`` is a path.

    :param folder: folder in ``config``.
    :param kind: what the file describes, for messages.
    :raises ConfigError: for a name that is not included.
    """
    if name.endswith((".yaml", ".yml")):
        return Path(name).expanduser()
    if name not in (names := included_names(folder)):
        raise ConfigError(f"unknown {kind} {name!r}; valid: {', '.join(names)}, or the path of a YAML file")
    return shared_directory("config") / folder / f"{name}.yaml"


def check_writable(path: Path) -> None:
    """Raise :class:`OutputError` unless a file can be written at ``path``; nothing is changed there."""
    path = path.resolve()
    if path.is_dir():
        raise OutputError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a device or a pipe, not a file; name a file")
    folder = path.parent
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise OutputError(f"cannot write {path}: {existing} is not a folder")
    try:
        # Permissions do not reveal read-only and special file systems.
        handle, probe = tempfile.mkstemp(prefix=f".{path.name}.", dir=existing)
        os.close(handle)
        os.unlink(probe)
    except OSError as error:
        reason = "no permission" if isinstance(error, PermissionError) else error.strerror
        raise OutputError(f"cannot write {path}: {reason} in {existing}") from None
    if path.exists() and not os.access(path, os.W_OK):
        raise OutputError(f"cannot write {path}: the file is write-protected")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write to a temporary file and rename it to ``path``, so that ``path`` is always the complete old or new file.

    :raises OutputError: if the file cannot be written.
    """
    path = path.resolve()  # replace the target of a link, not the link
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.umask(mask := os.umask(0))
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error


def save_json(path: Path, content: Mapping[str, Any], *, allow_nan: bool = False) -> None:
    """Write JSON as :func:`write_atomically` does.

    :raises OutputError: if the file cannot be written.
    """
    write_atomically(path, json.dumps(content, indent=1, allow_nan=allow_nan) + "\n")


def replace_keeping(new: Path, path: Path) -> Path | None:
    """Rename ``new`` to ``path``; an existing file is kept as ``<stem>_<number><suffix>``.

    :returns: new path of the old file, ``None`` if there was none.
    :raises OutputError: if one of them cannot be written.
    """
    path = path.resolve()
    try:
        kept = _kept(path) if path.exists() else None
        os.replace(new, path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    return kept


def write_keeping(path: Path, text: str) -> Path | None:
    """Write a text file; an existing one with other content is kept as by :func:`replace_keeping`.

    :returns: new path of the old file, ``None`` if there was none.
    :raises OutputError: if one of them cannot be written.
    """
    if path.is_file() and path.read_bytes() == text.encode(errors="surrogateescape"):
        return None
    new = path.with_name(f".{path.name}.new")
    write_atomically(new, text)
    return replace_keeping(new, path)


def _kept(path: Path) -> Path:
    """Link or copy a file to a name with the first free number."""
    names = (path.with_name(f"{path.stem}_{number:03d}{path.suffix}") for number in itertools.count(1))
    free = next(name for name in names if not os.path.lexists(name))
    try:
        os.link(path, free)
    except OSError:  # a file system without hard links
        shutil.copy2(path, free)
    return free
