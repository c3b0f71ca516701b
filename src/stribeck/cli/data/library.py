"""``stribeck data library``: drives identified from public recordings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from stribeck.cli.exit_codes import DONE
from stribeck.cli.inputs import check_outputs, write_json
from stribeck.cli.options import declared, option
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.files.folders import write_atomically
from stribeck.files.library import drives_of, entries, friction_of, path_of, spread_of


@declared
class LibraryOptions:
    """Options: which drives, and where they go."""

    names: tuple[str, ...] = option(
        "names of the drives to print (default: list all)", (), "NAME", positional=True
    )
    output: Path | None = option("file to write a copy of the named drives to")
    json: Path | None = option("JSON file of the list, or of the data of the drives")


def run(options: LibraryOptions) -> int:
    """Print the list, or one set of drives with its origin and spread."""
    check_outputs([options.output, options.json], [])
    if options.output is not None and len(options.names) != 1:
        raise ConfigError(
            f"--output needs exactly one name of drives, found {len(options.names)}; `stribeck data library` lists all"
        )
    if not options.names:
        rows = [(name, one.title, one.licence) for name, one in entries().items()]
        print_table(("name", "what", "licence"), rows)
    for name in options.names:
        _show(name)
        if options.output is not None:
            write_atomically(options.output, path_of(name).read_bytes())
            print(options.output)
    chosen = options.names or tuple(entries())
    write_json(options.json, {"entries": {name: _origin(name) for name in chosen}})
    return DONE


def _show(name: str) -> None:
    path = path_of(name)
    entry, drives = entries()[name], drives_of(name)
    print(f"{entry.title}\nrecordings: {entry.source} ({entry.licence})\nstribeck {entry.command}\n{path}")
    rows = []
    for joint, drive in drives.joints.items():
        for parameter, one in friction_of(drive).items():
            interval = "" if one.interval is None else f"{one.interval[0]:.4g} to {one.interval[1]:.4g}"
            rows.append((joint or "joint", parameter, f"{one.value:.4g}", one.unit, interval, one.status))
    print_table(("joint", "parameter", "value", "unit", "interval", "status"), rows)
    spreads = [
        (kind, parameter, str(one.count), f"{one.mean:.4g}", f"{100.0 * one.share:.0f} %")
        for kind, found in spread_of(entry, drives).items()
        for parameter, one in found.items()
    ]
    if spreads:
        print_table(("equal drives", "parameter", "number", "mean", "spread"), spreads)
    if drives.verdict is not None:
        print(f"verdict: {drives.verdict.use}")


def _origin(name: str) -> dict[str, object]:
    entry, drives = entries()[name], drives_of(name)
    spread = {
        kind: {parameter: asdict(one) for parameter, one in found.items()}
        for kind, found in spread_of(entry, drives).items()
    }
    return {key: getattr(entry, key) for key in ("title", "source", "licence", "command")} | {
        "path": str(path_of(name)),
        "joints": list(drives.joints),
        "verdict": None if drives.verdict is None else drives.verdict.use,
        "spread": spread,
    }
