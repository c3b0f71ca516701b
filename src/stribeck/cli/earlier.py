"""Earlier names of commands and options: each command line in them is written anew in today's names.

``stribeck fit`` keeps the options and spellings of the published program for good, without a word; all other earlier names work for
one version, and say the new ones.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from stribeck.cli.commands import COMMANDS

HERE = ""
"""In place of a new name: the values are positional."""

PUBLISHED = "fit"

FLAG = "flag"
"""In place of a new name: a flag that is left out."""

RECORDINGS = {"--logdir": HERE, "--data": HERE}
SERVO = {"--actuator": "--servo", "--dt": "--step"}
FITTED = {"--validation-kp": "--hold-out-gain", "--validation-fraction": "--hold-out"}
PICTURES = {"--plots": "--plot"}
MACHINE = {"--config": "--machine", "--urdf": "--model"}


@dataclass(frozen=True)
class Earlier:
    """Earlier spelling of a command.

    :param command: its name today.
    :param options: new names of its options.
    :param changed: changes the words of the new command line, where names alone do not tell.
    """

    command: str
    options: dict[str, str] = field(default_factory=dict)
    changed: Callable[[list[str]], list[str]] = list


def _posterior(words: list[str]) -> list[str]:
    """An arm where there is a machine, otherwise a servo."""
    if "--machine" in words:
        return ["identify", "arm", "--bayes", *words[2:]]
    return ["identify", "servo", "--bayes", *("--law" if word == "--model" else word for word in words[2:])]


def _geometry(words: list[str]) -> list[str]:
    """With ``--select`` poses were chosen."""
    if "--select" not in words:
        return words
    return ["design", "poses", *("--count" if word == "--select" else word for word in words[2:])]


def _published(words: list[str]) -> list[str]:
    """Values as the published program spells them: `--set` of a dictionary, and no gain held out if it is 0."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--set":
            found += _set_words(next(rest, None))
        elif word == "--hold-out-gain":
            value = [*islice(rest, 1)]
            found += [] if value == ["0"] else [word, *value]
        elif word != "--hold-out-gain=0":
            found.append(word)
    return found


def _set_words(value: str | None) -> list[str]:
    """`--set` for each entry of a dictionary in Python's notation; other values as they are."""
    if value is None or not value.strip():
        return [] if value is not None else ["--set"]
    try:
        fixed = ast.literal_eval(value.strip())
    except (SyntaxError, ValueError):
        return ["--set", value]
    if not isinstance(fixed, dict):
        return ["--set", value]
    return [word for name, number in fixed.items() for word in ("--set", f"{name}={number}")]


ARRAYS = ("--motor", "--link", "--torque", "--ratio", "--rotor-inertia", "--time")


def _transmission(words: list[str]) -> list[str]:
    """Names of arrays became one option."""
    kept: list[str] = []
    columns: list[str] = []
    for word in words:
        if columns and columns[-1].endswith("="):
            columns[-1] += word
        elif word in ARRAYS:
            columns.append(f"{word[2:].replace('-', '_')}=")
        else:
            kept.append(word)
    return [*kept, "--columns", ",".join(columns)] if columns else kept


EARLIER: dict[str, Earlier] = {
    PUBLISHED: Earlier("identify servo", {**RECORDINGS, **SERVO, **FITTED, "--model": "--law"}, _published),
    "fit-all": Earlier("identify fleet"),
    "identify-arm": Earlier("identify arm", {**RECORDINGS, **MACHINE, **PICTURES}),
    "identify-joint": Earlier("identify joint"),
    "identify-robot": Earlier("identify robot", {**RECORDINGS, "--play": "--backlash"}),
    "identify-transmission": Earlier(
        "identify transmission", {**RECORDINGS, "--joints": "--joint"}, _transmission
    ),
    "calibrate": Earlier("identify geometry", {**RECORDINGS, **MACHINE, **PICTURES}, _geometry),
    "estimate": Earlier(
        "identify mechanism", {**RECORDINGS, **PICTURES, "--model": "--mechanism", "--hold": "--set"}
    ),
    "posterior": Earlier(
        "identify arm",
        {**RECORDINGS, **SERVO, **FITTED, **MACHINE, **PICTURES, "--test": "--validate"},
        _posterior,
    ),
    "excite": Earlier("design trajectory", {**MACHINE, **PICTURES}),
    "setup-robot": Earlier("data describe", {**RECORDINGS, **SERVO, **MACHINE}),
    "import": Earlier("data import", SERVO),
    "suggest": Earlier("data suggest", {**RECORDINGS, **SERVO}),
    "evaluate": Earlier(
        "evaluate",
        {**RECORDINGS, **SERVO, "--file-kp": "--kp", "--file-supply": "--supply", "--file-motor": "--motor"},
    ),
    "plot": Earlier("evaluate", {**RECORDINGS, **SERVO, "--sim": FLAG, "--output": "--plot"}),
    "diagram": Earlier("evaluate", {**SERVO, "--output": "--diagram"}),
    "report": Earlier("evaluate", {**RECORDINGS, **SERVO, "--output": "--report"}),
    "compensate": Earlier("replay", {"--states": HERE, "--urdf": "--model", "--config": "--node-params"}),
    "export": Earlier(
        "export", {**RECORDINGS, "--to": "--format", "--actuator": "--servo", "--timestep": "--step"}
    ),
    "import-params": Earlier("import-model", {"--actuator": "--servo"}),
    "record": Earlier("record", {"--config": HERE, "--urdf": "--model"}),
    "emulate": Earlier("emulate", {"--dt": "--step"}),
}
"""Earlier names of commands, and of commands whose options were renamed."""


def with_dashes(words: Sequence[str]) -> list[str]:
    """Replace underscores in names of options, which users of the published program know, by dashes."""
    parts = [word.partition("=") if word.startswith("--") else (word, "", "") for word in words]
    return [
        (name.replace("_", "-") if name.startswith("--") else name) + equals + value
        for name, equals, value in parts
    ]


def todays(words: Sequence[str]) -> tuple[list[str], str | None]:
    """A command line in today's names, and what to say if it was not in them.

    :param words: after the name of the program, with dashes in the names of options.
    """
    first_word = next((word for word in words if not word.startswith("-")), "")
    earlier = EARLIER.get(first_word)
    if earlier is None:
        return list(words), None
    place = list(words).index(first_word)
    new = _written(earlier, [*words[:place], *words[place + 1 :]])
    if new == list(words) or (first_word in COMMANDS and sorted(new) == sorted(words)):
        return list(words), None
    if first_word == PUBLISHED:
        return new, None
    return new, f"this is now: stribeck {shlex.join(new)} (earlier names will be removed in the next version)"


def _written(earlier: Earlier, words: Sequence[str]) -> list[str]:
    """The words of a command with the new names; values of options that became positional come first."""
    first: list[str] = []
    rest: list[str] = []
    target = first
    for word in words:
        name, equals, value = word.partition("=")
        known = earlier.options.get(name) if word.startswith("--") else None
        if word.startswith("-") and word[1:2] not in "0123456789.":
            target = rest
        if known is None:
            target.append(word)
        elif known == HERE:
            target = first
            first += [value] if equals else []
        elif known != FLAG:
            rest.append(f"{known}={value}" if equals else known)
    return earlier.changed([*earlier.command.split(), *first, *rest])
