"""Identify the drives of the library again, and write its page.

    python bench/library.py DATA [NAME …]     # some minutes each; DATA holds the folders of the recordings
    python bench/library.py --page            # docs/library.md alone, from the files as they are

Each entry of `config/library/library.yaml` names the command. A result replaces its file only if the command succeeds.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import tempfile
from pathlib import Path

from stribeck.cli.main import main as stribeck
from stribeck.files.library import drives_of, entries, folder, friction_of, spread_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "library.md"

INTRODUCTION = """# A library of identified joints

Drives that Stribeck identified from public recordings are part of the installation: `stribeck data library` lists them,
`stribeck data library NAME --output FILE` copies one. `python bench/library.py DATA` identifies them again and writes this page. They are of the
machines that were recorded: yours has friction of its own, as the spread between equal drives of one machine shows. Use them as priors and for
comparison, not instead of a recording.

Values with half of their 95 % intervals, in N m, N m s/rad and other SI units; without one where the recordings do not determine a value. *Spread*: standard deviation of
equal drives divided by their mean; it contains the uncertainty of the identification, and the loads that the joints carry.
Not in it, for want of recordings or of a licence: Dynamixel MX and XM, UR10e, the arm of OpenArm type, Franka and FAIRINO.
"""


def words_of(command: str, data: Path, output: Path) -> list[str]:
    """The words of a command, with patterns of files expanded, and where its result goes."""
    words: list[str] = []
    for word in shlex.split(command.replace("{data}", str(data))):
        found = sorted(map(str, Path("/").glob(word.lstrip("/")))) if "[" in word else [word]
        words += found
    return [*words, "--output", str(output), "--quiet"]


def identify(name: str, command: str, data: Path) -> None:
    """Run a command and take over its file of drives."""
    with tempfile.TemporaryDirectory() as place:
        single = command.startswith("identify servo")
        output = Path(place) / ("drive.json" if single else "result")
        code = stribeck(words_of(command, data, output))
        if code:
            raise SystemExit(f"{name}: stribeck {command} ended with {code}; its file is unchanged")
        file = output if single else next(path for path in output.glob("*.json"))
        shutil.copy(file, folder() / f"{name}.json")


def page() -> str:
    """The page of the library."""
    parts = [INTRODUCTION]
    for name, entry in entries().items():
        drives = drives_of(name)
        use = "" if drives.verdict is None else f" Verdict: {drives.verdict.use}."
        parts.append(
            f"## {entry.title}\n\n`{name}`, from {entry.source} ({entry.licence}).{use} Identified by `stribeck {entry.command}`.\n"
        )
        columns = list(dict.fromkeys(p for drive in drives.joints.values() for p in friction_of(drive)))
        rows = [f"| joint | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for joint, drive in drives.joints.items():
            known = friction_of(drive)
            cells = [_cell(known[column]) if column in known else "" for column in columns]
            rows.append(f"| {joint or name} | {' | '.join(cells)} |")
        parts.append("\n".join(rows) + "\n")
        for kind, found in spread_of(entry, drives).items():
            spreads = ", ".join(
                f"{p} {100.0 * one.share:.0f} % of {one.mean:.3g} ({one.count})" for p, one in found.items()
            )
            if spreads:
                parts.append(f"Spread of {kind}: {spreads}.\n")
    return "\n".join(parts)


def _cell(one) -> str:
    if one.interval is None or not one.known:
        return f"{one.value:.3g} ({one.status})"
    return f"{one.value:.3g} ± {0.5 * (one.interval[1] - one.interval[0]):.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", help="folder of the recordings")
    parser.add_argument("names", nargs="*", help="entries (default: all)")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    given = parser.parse_args()
    if given.data is None and not given.page:
        parser.error("name the folder of the recordings, or --page")
    if given.data is not None:
        for name, entry in entries().items():
            if not given.names or name in given.names:
                identify(name, entry.command, given.data.resolve())
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
