"""Implements ``stribeck setup-robot``, and the machine's file that ``stribeck identify-arm`` writes without ``--config``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stribeck.cli.inputs import check_outputs, warn
from stribeck.cli.setup_robot import SetupRobotOptions
from stribeck.dynamics.survey.machine import Survey, survey
from stribeck.io.commented_yaml import Commented, commented_yaml
from stribeck.io.files import write_keeping
from stribeck.io.tables import find_tables


def run_setup_robot(options: SetupRobotOptions) -> int:
    """Survey, and write the file."""
    found = set_up(options.urdf, options.data, options.output)
    if found.open_keys:
        print(f"fill in {', '.join(found.open_keys)}, then:")
    print(f"stribeck identify-arm --config {options.output} --data {' '.join(map(str, options.data))}")
    return 0


def set_up(urdf: Path, data: Sequence[Path], output: Path) -> Survey:
    """Write a machine's file, and tell its place; an older file with other content is kept under another name."""
    check_outputs([output], [urdf, *(path for path in data if path.is_file())])
    bags = find_tables(data, (".mcap",))
    found = survey(urdf, bags)
    recordings = ", ".join(map(str, bags))
    head = (
        f"Written by `stribeck setup-robot` from {urdf} and {recordings}. Comments say what values were found from; "
        "docs/files.md lists all keys."
    )
    entries = [Commented(one.key, one.value, one.reason) for one in found.findings]
    kept = write_keeping(output, commented_yaml(head, entries))
    for note in found.notes:
        warn(note)
    print(f"{output}: {len(found.joints)} joints: {', '.join(found.joints)}")
    if kept is not None:
        print(f"the old {output.name} is now {kept}")
    return found
