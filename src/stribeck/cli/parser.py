"""The command line: only the requested command is imported, and its options are declared by a dataclass.

Options import no JAX, SciPy or matplotlib; ``run`` is imported when it is called. argparse stays: cyclopts, tyro and typer
declare options from types as :mod:`stribeck.cli.options` does, but take 60 to 90 ms of processor time to be imported on the
machine on which argparse takes 13, several times as much on a single-board computer, and a robot's installation would need
them and what they need.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import stribeck
from stribeck.cli.commands import BAYES, COMMANDS, GROUPS, MAP, CommandEntry
from stribeck.cli.earlier import EARLIER, todays, with_dashes
from stribeck.cli.options import add_arguments, options_of, word_of
from stribeck.errors import UsageError

ABOUT = "Identify and compensate the friction of robot joints."

EVERY = "--help-all"
"""Shows the options that ``--help`` leaves out."""

BAYES_FLAG = "--bayes"


FORMATTER = partial(argparse.RawDescriptionHelpFormatter, max_help_position=30, width=110)


class CommandParser(argparse.ArgumentParser):
    """A parser that asks whether another option was meant.

    :param known: words of all options.
    """

    def __init__(self, *, known: Sequence[str] = (), **more: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=FORMATTER, **more)
        self.known = known

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        :raises UsageError: with the message, and where the options are explained.
        """
        said = message.removeprefix("the following arguments are required: ")
        if said != message and not said.startswith("-"):
            message += " (name recordings and files before the options)"
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            word = unknown.split()[0]
            todays_names = [
                one.options[word] for one in EARLIER.values() if one.options.get(word) in self.known
            ]
            message += f"; did you mean {todays_names[0]}?" if todays_names else meant(word, self.known)
        raise UsageError(f"{self.prog.removeprefix('stribeck ')}: {message} (help: {self.prog} --help)")


def meant(word: str, valid: Sequence[str]) -> str:
    """A question that ends a message about an unknown word; empty if no valid one is like it."""
    close = get_close_matches(word, valid, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def map_of_commands() -> str:
    """What there is, in the order in which it is used."""
    lines = [ABOUT, "", "usage: stribeck COMMAND …", ""]
    for title, names in MAP.items():
        lines.append(title)
        lines += [f"  {name:22s} {COMMANDS[name].text}" for name in names]
    more = [
        "",
        "stribeck COMMAND --help explains a command and ends with two examples; `import stribeck` is the same in Python.",
        "For example:",
        *(f"  stribeck {COMMANDS[name].examples[0]}" for name in ("identify servo", "evaluate")),
    ]
    return "\n".join([*lines, *more])


def _usage_of(entry: Field[Any]) -> str:
    """Words of a command line, in brackets if they may be left out."""
    word = entry.metadata["metavar"] or entry.name.upper()
    return f"{word} [{word} …]" if entry.default is MISSING else f"[{word} …]"


def build_parser(name: str, command: CommandEntry, *, every: bool = False) -> CommandParser:
    """The parser of a command.

    :param name: its words.
    :param every: whether help shows the rare options, too.
    """
    kind = options_class(command)
    essential = None if every or not command.essential else command.essential
    positional = [entry for entry in fields(kind) if entry.metadata["positional"]]
    known = [
        word_of(entry.name)
        for entry in fields(kind)
        if not entry.metadata["hidden"] and entry not in positional
    ]
    hidden = essential is not None and any(
        not entry.metadata["hidden"] and entry.name not in essential for entry in fields(kind)
    )
    words = [_usage_of(entry) for entry in positional]
    examples = "\n".join(f"  stribeck {line}" for line in command.examples)
    more = f"{EVERY} shows further options.\n\n" if hidden else ""
    bayes = f" {BAYES_FLAG}" if command in BAYES.values() else ""
    parser = CommandParser(
        prog=f"stribeck {name}{bayes}",
        usage=" ".join([f"stribeck {name}{bayes}", *words, "[options]"]),
        description=command.text[0].upper() + command.text[1:] + ".",
        epilog=f"{more}examples:\n{examples}",
        known=[*known, "--help", EVERY],
    )
    parser.add_argument(EVERY, action="help", help=argparse.SUPPRESS)
    if bayes:
        parser.add_argument(BAYES_FLAG, action="store_true", help=argparse.SUPPRESS)
    add_arguments(parser, kind, essential)
    parser.set_defaults(run=partial(_run, command), kind=kind)
    return parser


def options_class(command: CommandEntry) -> type[Any]:
    """The dataclass that declares the options of a command: as named, otherwise the one that the module declares."""
    module = _part(command, "options")
    name = command.options or next(
        name
        for name, one in vars(module).items()
        if is_dataclass(one) and getattr(one, "__module__", "") == module.__name__
    )
    kind: type[Any] = getattr(module, name)
    return kind


def _part(command: CommandEntry, part: str) -> ModuleType:
    """A module of a command's folder, or its only module."""
    module = import_module(f"stribeck.cli.{command.place}")
    return import_module(f"{module.__name__}.{part}") if hasattr(module, "__path__") else module


def _run(command: CommandEntry, options: Any) -> int:
    code: int = _part(command, "run").run(options)
    return code


def parse(argv: Sequence[str]) -> tuple[str, Any, Callable[[], int]]:
    """Parse a command line; returns the command's words, its options, and a function that runs it.

    Without a command, the map of commands is printed and the program ends with code 0.

    :raises UsageError: for an unknown command, an unknown option or a value that is not valid.
    """
    words, _ = todays(with_dashes(argv))
    name, command, rest = _found(words)
    parser = build_parser(name, command, every=EVERY in rest)
    arguments = parser.parse_args(rest)
    options = options_of(arguments.kind, arguments)
    return name, options, partial(arguments.run, options)


def _found(words: Sequence[str]) -> tuple[str, CommandEntry, list[str]]:
    """The command of a command line, and the words that follow."""
    names = [word for word in words if not word.startswith("-")]
    first = names[0] if names else ""
    if "--version" in words and not first:
        _say(f"stribeck {stribeck.__version__}")
    if not first:
        if any(word not in ("-h", "--help", EVERY) for word in words):
            _refuse(f"unknown: {words[0]}{meant(words[0], ['--help', '--version'])}")
        _say(map_of_commands())
    if first in GROUPS:
        name = " ".join(names[:2])
        if len(names) < 2 or words[words.index(first) + 1 : words.index(first) + 2] != names[1:2]:
            _say(_map_of_group(first))
        if name not in COMMANDS:
            inside = [one.split()[1] for one in COMMANDS if one.startswith(f"{first} ")]
            _refuse(f"{first}: unknown: {names[1]}; valid: {', '.join(inside)}{meant(names[1], inside)}")
        begin = words.index(first) + 2
    else:
        name, begin = first, words.index(first) + 1
        if name not in COMMANDS:
            every = [*COMMANDS, *(one.split()[-1] for one in COMMANDS), *GROUPS, *EARLIER]
            close = get_close_matches(name, every, n=1, cutoff=0.6)
            full = [one for one in COMMANDS if close and one.split()[-1] == close[0]] or close
            _refuse(f"unknown command: {name}{f'; did you mean {full[0]}?' if close else ''}")
    rest = [*words[: begin - len(name.split())], *words[begin:]]
    command = BAYES[name] if BAYES_FLAG in rest and name in BAYES else COMMANDS[name]
    return name, command, rest


def _map_of_group(group: str) -> str:
    inside = {name: command for name, command in COMMANDS.items() if name.startswith(f"{group} ")}
    lines = [f"stribeck {group}: {GROUPS[group]}", ""]
    lines += [f"  {name:22s} {command.text}" for name, command in inside.items()]
    examples = [command.examples[0] for command in inside.values()][:2]
    return "\n".join([*lines, "", "examples:", *(f"  stribeck {line}" for line in examples)])


def _say(text: str) -> NoReturn:
    print(text)
    sys.exit(0)


def _refuse(text: str) -> NoReturn:
    raise UsageError(f"{text} (stribeck alone shows all commands)")
