"""Implements ``stribeck data describe``, and the machine's file that ``stribeck identify arm`` writes without ``--machine``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stribeck.cli.data.describe.bench import print_kept, print_next, write_commented
from stribeck.cli.inputs import check_outputs, warn
from stribeck.files.commented_yaml import Commented
from stribeck.identify.arm.survey.machine import RECORDINGS, Survey, survey
from stribeck.recordings.tables.readers import find_tables


def run_setup_robot(urdf: Path, data: Sequence[Path], output: Path) -> int:
    """Survey, and write the file."""
    found = set_up(urdf, data, output)
    print_next(found.open_keys, f"stribeck identify arm {' '.join(map(str, data))} --machine {output}")
    return 0


def set_up(urdf: Path, data: Sequence[Path], output: Path) -> Survey:
    """Write a machine's file, and tell its place; an older file with other content is kept under another name."""
    check_outputs([output], [urdf, *(path for path in data if path.is_file())])
    bags = find_tables(data, RECORDINGS, ignore=(".urdf",))
    found = survey(urdf, bags)
    entries = [Commented(one.key, one.value, one.reason) for one in found.findings]
    kept = write_commented(output, entries, [urdf, *bags])
    for note in found.notes:
        warn(note)
    print(f"{output}: {len(found.joints)} joints: {', '.join(found.joints)}")
    print_kept(output, kept)
    return found
