"""Verbs and their options: every verb is declared in full, and only the one that is called is imported."""

import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import pytest

from stribeck.cli.options import Count, TimeStep, group, numbers, option, options_from
from stribeck.cli.parser import VERBS, options_class, parse
from stribeck.errors import ConfigError

HEAVY = ("jax", "scipy", "matplotlib", "optuna", "pinocchio", "casadi", "mujoco", "rclpy", "tqdm", "arviz")


@dataclass(frozen=True, kw_only=True)
class Example:
    """One option of each kind."""

    logs: tuple[Path, ...] = option("files", metavar="LOG", positional=True)
    dt: TimeStep = group("simulation")("time step", 0.005, "S")
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
    everything = "from stribeck.cli.parser import build_parser; build_parser()"
    assert imports(everything).strip() == "[]"


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_a_help_text(verb, capsys):
    """And the help of each verb can be formatted."""
    with pytest.raises(SystemExit) as left:
        parse([verb, "--help"])
    assert left.value.code == 0
    for entry in fields(options_class(verb)):
        assert entry.metadata["help"], entry.name
    assert "usage: stribeck " + verb in capsys.readouterr().out


def test_values_of_a_file_are_parsed_as_words_are():
    """Numbers, lists, mappings, flags; null is the default."""
    content = {"dt": 0.01, "most": None, "kind": "b", "speeds": [1, 2.5], "set": {"R": 3.5}, "quiet": True}
    options = options_from(Example, content, logs=())
    assert options == Example(
        logs=(), dt=0.01, most=None, kind="b", speeds=(1.0, 2.5), set=("R=3.5",), quiet=True
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"dt": 1.0}, "dt: must be between 1e-5 and 0.05 s, found 1.0"),
        ({"most": "many"}, "most: invalid int value: 'many'"),
        ({"kind": "c"}, r"kind: invalid choice: 'c' \(choose from a, b\)"),
        ({"quiet": "yes"}, "quiet: expected true or false, found 'yes'"),
    ],
)
def test_a_value_of_a_file_that_is_not_valid_is_named(content, message):
    """With its key and what is valid."""
    with pytest.raises(ConfigError, match=message):
        options_from(Example, content, logs=())
