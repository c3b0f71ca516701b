"""The command language: one name for one thing, help that fits a screen, worked lines, earlier names."""

import re
import shlex
from dataclasses import fields
from typing import get_type_hints

import pytest

from helpers import REPOSITORY
from stribeck.cli.commands import BAYES, COMMANDS, GROUPS, MAP
from stribeck.cli.earlier import EARLIER, PUBLISHED, todays, with_dashes
from stribeck.cli.main import main
from stribeck.cli.options import syntax_of
from stribeck.cli.parser import EVERY, build_parser, options_class, parse
from stribeck.errors import UsageError

MOST_OPTIONS = 130
LINES_OF_A_SCREEN = 50

ALL = [*((name, command) for name, command in COMMANDS.items()), *BAYES.items()]

KINDS = {
    "joint": "one joint, or several in the order of files",
    "bench": "a description, or one for each emulated servo",
    "servo": "one servo, or one for each emulated servo",
    "seconds": "one duration, or several to compare",
    "set": "pairs as text, or as numbers",
    "params": "parameter files",
    "terms": "valid terms differ by engine",
    "effects": "valid effects differ by engine",
    "fits": "valid fits differ by engine",
    "columns": "signals differ by engine",
    "harmonics": "a count",
    "arm_mass": "a mass, checked later where it is not needed",
    "law": "a law, in any case or lower case",
    "hold_out": "a share",
    "model": "a file",
    "kp": "a gain",
    "max_torque": "one limit, or one for each joint",
    "recordings": "one, where only one can be used",
}
"""Options whose values are parsed in more than one way, and what all have in common."""


def declared():
    """Every option that is not hidden: name, command, whether positional, how it is parsed."""
    for name, command in ALL:
        kind = options_class(command)
        hints = get_type_hints(kind, include_extras=True)
        for entry in fields(kind):
            if not entry.metadata["hidden"]:
                yield entry, name, syntax_of(hints[entry.name])


def test_there_are_few_options():
    names = {entry.name for entry, _, _ in declared() if not entry.metadata["positional"]}
    assert len(names) <= MOST_OPTIONS


def test_a_name_means_one_thing():
    """An option takes the same kind of value wherever it is; recordings are positional everywhere; earlier names are gone."""
    found = {}
    for entry, _, syntax in declared():
        word = getattr(syntax.parse, "__name__", str(syntax.parse))
        found.setdefault(entry.name, set()).add((word, syntax.several or entry.metadata["repeated"]))
        assert (entry.name == "recordings") <= entry.metadata["positional"]
    unlike = {name for name, kinds in found.items() if len(kinds) > 1}
    assert unlike <= set(KINDS), unlike - set(KINDS)
    gone = {
        *(
            "logdir",
            "states",
            "dt",
            "timestep",
            "urdf",
            "actuator",
            "to",
            "hold",
            "play",
            "plots",
            "config",
            "test",
        ),
        *("validation_kp", "validation_fraction"),
    }
    assert not gone & set(found)
    assert {
        "json",
        "output",
        "seed",
        "quiet",
        "strict",
        "validate",
        "step",
        "law",
        "model",
        "set",
        "servo",
    } <= set(found)


@pytest.mark.parametrize(("name", "command"), ALL)
def test_help_fits_a_screen_and_ends_with_two_worked_lines(name, command):
    """The short help; options that it names exist, and those that it leaves out are in the whole one."""
    kind = {entry.name for entry in fields(options_class(command)) if not entry.metadata["hidden"]}
    assert command.essential <= kind, command.essential - kind
    short = build_parser(name, command).format_help()
    assert len(short.splitlines()) <= LINES_OF_A_SCREEN
    assert [line.strip() for line in short.splitlines()[-2:]] == [
        f"stribeck {line}" for line in command.examples
    ]
    whole = build_parser(name, command, every=True).format_help()
    for one in kind - {
        entry.name for entry in fields(options_class(command)) if entry.metadata["positional"]
    }:
        assert f"--{one.replace('_', '-')}" in whole
    assert (EVERY in short) == bool(command.essential and kind - command.essential)


@pytest.mark.parametrize(("name", "command"), ALL)
def test_worked_lines_are_valid(name, command):
    """They parse, in today's names."""
    for line in command.examples:
        found, _, _ = parse(shlex.split(line))
        assert found == name
        assert todays(shlex.split(line))[1] is None


def test_the_map_shows_every_command(capsys):
    """Without a command: the map on stdout, exit code 0; the first word of a group alone shows the group."""
    assert sorted(name for names in MAP.values() for name in names) == sorted(COMMANDS)
    with pytest.raises(SystemExit) as left:
        main([])
    shown = capsys.readouterr()
    assert left.value.code == 0
    assert shown.err == ""
    for command in COMMANDS.values():
        assert command.text in shown.out
    for group in GROUPS:
        with pytest.raises(SystemExit) as left:
            main([group])
        assert left.value.code == 0
        assert f"{group} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["identfy", "servo", "x"], "unknown command: identfy; did you mean identify?"),
        (["identify", "sevro", "x"], "did you mean servo?"),
        (["servo", "x"], "did you mean identify servo?"),
        (["frobnicate"], "unknown command: frobnicate"),
        (["evaluat", "x"], "did you mean evaluate?"),
        (
            ["evaluate", "x", "--parms", "p.json"],
            "unrecognized arguments: --parms p.json; did you mean --params?",
        ),
        (
            ["identify", "servo", "--law", "m6"],
            "required: RECORDING (name recordings and files before the options)",
        ),
        (["identify", "servo", "x", "--actuator", "xl330"], "--actuator xl330; did you mean --servo?"),
        (["--hlep"], "did you mean --help?"),
        (
            ["data", "library", "--names", "x"],
            "unrecognized arguments: --names (help: stribeck data library --help)",
        ),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(words, said, capsys):
    assert main(words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


LINES = {
    "fit --logdir a --model m6 --actuator xl330 --validation-kp 400 --dt=0.002": (
        "identify servo a --law m6 --servo xl330 --hold-out-gain 400 --step=0.002"
    ),
    "fit-all fleet.yaml --workers 2": "identify fleet fleet.yaml --workers 2",
    "identify-arm --config tx40 --data a b --urdf x.urdf --plots p": (
        "identify arm a b --machine tx40 --model x.urdf --plot p"
    ),
    "identify-joint a.csv --law m4": "identify joint a.csv --law m4",
    "identify-robot --model g.xml --data a b --play": "identify robot a b --model g.xml --backlash",
    "identify-transmission --data a --motor m --link l --torque t --ratio 100,100 --time t --joints 1": (
        "identify transmission a --joint 1 --columns motor=m,link=l,torque=t,ratio=100,100,time=t"
    ),
    "calibrate --config irb120 --data a --plots p": "identify geometry a --machine irb120 --plot p",
    "calibrate --config irb120 --data a --select 20": "design poses a --machine irb120 --count 20",
    "estimate --model pendulum --data a --hold m=1": "identify mechanism a --mechanism pendulum --set m=1",
    "posterior --logdir a --model m3 --validation-kp 400": "identify servo --bayes a --law m3 --hold-out-gain 400",
    "posterior --config tx40 --data a --urdf x.urdf --test b": (
        "identify arm --bayes a --machine tx40 --model x.urdf --validate b"
    ),
    "excite --config panda --plots p": "design trajectory --machine panda --plot p",
    "setup-robot --urdf x.urdf --data a --output m.yaml": "data describe a --model x.urdf --output m.yaml",
    "import a --actuator xl330 --output b": "data import a --servo xl330 --output b",
    "suggest --params p.json --logdir a": "data suggest a --params p.json",
    "evaluate --params p.json --logdir a --file-kp 4 --actuator xl330": "evaluate a --params p.json --kp 4 --servo xl330",
    "plot --logdir a --params p.json --sim --output d": "evaluate a --params p.json --plot d",
    "diagram --params p.json --max-torque 1 --output d.png": "evaluate --params p.json --max-torque 1 --diagram d.png",
    "report --params p.json --logdir a --output r.html": "evaluate a --params p.json --report r.html",
    "compensate --params p.json --states a --urdf x.urdf": "replay a --params p.json --model x.urdf",
    "compensate --config c.yaml --states a": "replay a --node-params c.yaml",
    "export --to mjcf --params p.json --logdir a --timestep 0.002 --output x.xml": (
        "export a --format mjcf --params p.json --step 0.002 --output x.xml"
    ),
    "import-params x.xml --format mjcf --actuator xl330 --output p.json": (
        "import-model x.xml --format mjcf --servo xl330 --output p.json"
    ),
    "record --config r.yaml --urdf x.urdf --dry-run": "record r.yaml --model x.urdf --dry-run",
    "emulate --link s --dt 0.001": "emulate --link s --step 0.001",
}
"""A line in earlier names for each of these, and the same in today's."""


def test_every_earlier_name_has_a_line():
    assert {line.split()[0] for line in LINES} == set(EARLIER)


@pytest.mark.parametrize("line", LINES)
def test_earlier_names_are_read_as_today_s(line):
    """The options are those of the new line; the notice shows it, but for `stribeck fit`, which stays."""
    new = LINES[line]
    words, notice = todays(line.split())
    assert words == new.split()
    assert parse(line.split())[:2] == parse(new.split())[:2]
    assert todays(new.split()) == (new.split(), None)
    if line.split()[0] == PUBLISHED:
        assert notice is None
    else:
        assert f"stribeck {new} (" in notice


def test_earlier_names_say_the_new_ones_after_the_result(capsys):
    """One line on stderr after a command that worked; an error stays one line, and today's names say nothing."""
    assert main(["export", "--to", "list"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "stribeck: warning: this is now: stribeck export --format list (earlier names will be removed in the next version)"
    ]
    assert main(["export", "--format", "list"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["report", "--params", "none.json", "--logdir", "nowhere", "--output", "r.html"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_published_program_s_spellings_stay():
    """Underscores, --load_study and --eval."""
    _, options, _ = parse(
        [
            "fit",
            "--logdir",
            "a",
            "--load_study",
            "sqlite:///x",
            "--output",
            "p.json",
            "--eval",
            "--validation_fraction",
            "0.2",
        ]
    )
    assert (options.load_study, options.eval, options.hold_out) == ("sqlite:///x", True, 0.2)


@pytest.mark.parametrize(
    ("given", "today"),
    [
        ("--set \"{'kt': 0.3, 'R': 3}\"", "--set kt=0.3 --set R=3"),
        ('--set "{}"', ""),
        ("--set ''", ""),
        ("--set kt=0.3", "--set kt=0.3"),
        ("--set \"{'kt': 0.3\"", "--set \"{'kt': 0.3\""),
        ("--validation_kp 0", ""),
        ("--validation_kp=0", ""),
        ("--validation_kp 400", "--hold-out-gain 400"),
        ("--validation_kp=400", "--hold-out-gain=400"),
    ],
)
def test_the_published_program_s_values_stay(given, today):
    """A dictionary of fixed values in Python's notation, and 0 for no gain held out; all other values as they are."""
    words, notice = todays(with_dashes(shlex.split(f"fit --logdir a --model m6 {given} --seed 1")))
    assert words == shlex.split(f"identify servo a --law m6 {today} --seed 1")
    assert notice is None


def documented():
    """Command lines of README and documentation, with places."""
    pages = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    for page in pages:
        text = re.sub(r" *\\\n *", " ", page.read_text())
        for line in text.splitlines():
            found = re.match(r"^\s+(?:\$ )?(?:\.venv/bin/)?stribeck ([a-z].*)$", line)
            if found:
                yield f"{page.name}: {found[1]}"


@pytest.mark.parametrize("place", documented())
def test_lines_of_the_documentation_are_in_today_s_names(place):
    """Each parses without a word; `…` and what follows a comment or a pipe are left out."""
    line = re.split(r"\s+(?:#|\||>|&)", place.partition(": ")[2])[0]
    words = [word for word in shlex.split(line) if "…" not in word]
    try:
        parse(words)
    except UsageError:
        if "…" not in line:
            raise
    assert todays(words)[1] is None
