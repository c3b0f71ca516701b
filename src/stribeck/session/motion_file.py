"""What files of motions have in common: sweeps, poses, points and Fourier series are written and read alike."""

from pathlib import Path
from typing import Any, Self

import yaml
from msgspec import structs

from stribeck.files.folders import write_atomically
from stribeck.files.schema import Schema, read_yaml


class MotionFile(Schema):
    """A motion of joints in a YAML file; a subclass declares the keys."""

    def write(self, path: Path) -> None:
        """Write the file, with numbers in full precision and without keys that are ``None``.

        :raises OutputError: if it cannot be written.
        """
        write_atomically(path, dumped({key: v for key, v in structs.asdict(self).items() if v is not None}))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        :raises ConfigError: for an invalid file.
        """
        return read_yaml(path, cls)


def dumped(data: Any) -> str:
    """Text of a YAML file, with the innermost lists and mappings in one line."""
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)


def check_rows(key: str, what: str, rows: tuple[tuple[float, ...], ...], joints: tuple[str, ...]) -> None:
    """Raise :class:`ValueError` unless joints differ and each row has one number for each of them."""
    if not joints or len(set(joints)) < len(joints):
        raise ValueError(f"joints: expected different names, found {list(joints)}")
    for number, row in enumerate(rows):
        if len(row) != len(joints):
            raise ValueError(
                f"{key}: {what} {number} has {len(row)} numbers, but {len(joints)} joints are listed"
            )
