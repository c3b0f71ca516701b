"""Commands and their options: every command is declared in full, and only the one that is called is imported."""

import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import pytest

from stribeck.cli.commands import BAYES, COMMANDS
from stribeck.cli.options import Count, TimeStep, group, numbers, option, options_from
from stribeck.cli.parser import EVERY, options_class, parse
from stribeck.errors import ConfigError

HEAVY = ("jax", "scipy", "matplotlib", "optuna", "pinocchio", "casadi", "mujoco", "rclpy", "tqdm", "arviz")


@dataclass(frozen=True, kw_only=True)
class Example:
    """One option of each kind."""

    logs: tuple[Path, ...] = option("files", metavar="LOG", positional=True)
    step: TimeStep = group("simulation")("time step", 0.005, "S")
    most: Count | None = option("at most", None)
    kind: Literal["a", "b"] = option("kind", "a")
    speeds: Annotated[tuple[float, ...], numbers] = option("speeds", (), "LIST")
    set: tuple[str, ...] = option("keep", (), "NAME=VALUE", repeated=True)
    quiet: bool = option("nothing", False)


def imports(program: str) -> str:
    """The heavy libraries that a program has imported when it ends."""
    check = f"import sys\ntry:\n  {program}\nexcept SystemExit: pass\nprint([n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr)"
    return subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stderr


def test_help_imports_no_heavy_library():
    """Neither the list of verbs nor the options of all of them."""
    call = "from stribeck.cli.main import main; main(['--help'])"
    assert imports(call).strip() == "[]"
    everything = (
        "from stribeck.cli.commands import BAYES, COMMANDS\n"
        "  from stribeck.cli.parser import build_parser\n"
        "  for name, command in [*COMMANDS.items(), *BAYES.items()]: build_parser(name, command)"
    )
    assert imports(everything).strip() == "[]"


ALL = [*((name, [], command) for name, command in COMMANDS.items())]
ALL += [(name, ["--bayes"], command) for name, command in BAYES.items()]


@pytest.mark.parametrize(("name", "more", "command"), ALL)
def test_every_option_has_a_help_text(name, more, command, capsys):
    """And the help of each command can be formatted, short and whole."""
    for flag in ("--help", EVERY):
        with pytest.raises(SystemExit) as left:
            parse([*name.split(), *more, flag])
        assert left.value.code == 0
        assert f"usage: stribeck {name}" in capsys.readouterr().out
    for entry in fields(options_class(command)):
        assert entry.metadata["help"], entry.name


def test_values_of_a_file_are_parsed_as_words_are():
    """Numbers, lists, mappings, flags; null is the default."""
    content = {"step": 0.01, "most": None, "kind": "b", "speeds": [1, 2.5], "set": {"R": 3.5}, "quiet": True}
    options = options_from(Example, content, logs=())
    assert options == Example(
        logs=(), step=0.01, most=None, kind="b", speeds=(1.0, 2.5), set=("R=3.5",), quiet=True
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"step": 1.0}, "step: must be between 1e-5 and 0.05 s, found 1.0"),
        ({"most": "many"}, "most: expected a whole number, found 'many'"),
        ({"kind": "c"}, r"kind: invalid choice: 'c' \(choose from a, b\)"),
        ({"quiet": "yes"}, "quiet: expected true or false, found 'yes'"),
    ],
)
def test_a_value_of_a_file_that_is_not_valid_is_named(content, message):
    """With its key and what is valid."""
    with pytest.raises(ConfigError, match=message):
        options_from(Example, content, logs=())
