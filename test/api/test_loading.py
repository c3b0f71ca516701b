"""Recordings as the public interface names them, and messages without options."""

import ast
import re

import pytest

import stribeck as sb
from helpers import REPOSITORY
from stribeck.cli.commands import COMMANDS
from stribeck.cli.options import spelled
from stribeck.cli.parser import options_class
from stribeck.errors import ConfigError

BAGS = REPOSITORY / "bags" / "xl330_simulated"
SOURCE = REPOSITORY / "src" / "stribeck"


@pytest.mark.slow
def test_runs_are_a_sequence():
    """A folder, as text or path; one run, some runs, those with a property; names in the order of the paths."""
    runs = sb.load(str(BAGS))
    assert repr(runs) == f"Recordings({BAGS})", "nothing has been read yet"
    assert len(runs) == 36
    assert repr(runs).endswith("36 runs)")
    assert runs[0].name == runs.names[0]
    assert runs[2:5].names == runs.names[2:5]
    soft = runs.where(lambda run: run.setup.kp == 200)
    assert 0 < len(soft) < 36
    assert {run.setup.kp for run in soft} == {200}


@pytest.mark.slow
def test_several_paths_are_read_together_and_names_must_differ():
    folders = sorted(path for path in BAGS.iterdir() if path.is_dir())
    assert len(sb.load(folders)) == 36
    with pytest.raises(sb.StribeckError, match="several runs named"):
        len(sb.load([folders[0], folders[0]]))


def test_what_is_not_there_is_said_at_once(tmp_path):
    with pytest.raises(sb.StribeckError, match="no such file or folder"):
        sb.load(tmp_path / "bags")
    with pytest.raises(sb.StribeckError, match="no recordings given: name a file"):
        sb.load([])
    with pytest.raises(sb.StribeckError, match=r"bench: actuator, length, .* missing"):
        len(sb.load(BAGS, bench={"mass": 0.1}))


def test_unknown_words_are_refused_with_the_valid_ones():
    """Laws, terms, effects, fits, joints' known values: what is valid is listed, before anything is read."""
    with pytest.raises(sb.StribeckError, match="unknown friction law 'm7'; valid: auto, m1"):
        sb.identify_servo(BAGS, law="m7")
    with pytest.raises(sb.StribeckError, match="unknown effects 'rain'"):
        sb.identify_servo(BAGS, effects=["rain"])
    with pytest.raises(sb.StribeckError, match="unknown fit 'best'; valid: ols"):
        sb.identify_arm(BAGS, "arm.urdf", fits=["best"])
    with pytest.raises(sb.StribeckError, match="fixed: unknown 'mass'; valid: kt"):
        sb.identify_joint(BAGS, fixed={"mass": 1.0}, progress=False)
    with pytest.raises(sb.StribeckError, match="`machine` or `model` is needed"):
        sb.identify_arm(BAGS)
    with pytest.raises(sb.StribeckError, match="remove `hold_out` and `hold_out_gain`"):
        sb.identify_servo(BAGS, validate=sb.load(BAGS)[:1], hold_out=0.5)


ALLOWED = {
    "session/fit_process.py": "options of the command that it runs",
    "servo/excitation_setup.py": "options of the command that it runs",
    "session/simulation.py": "the command to start",
    "nodes/servo.py": "the command to start",
    "live/parameters.py": "the command to start",
    "processes.py": "options of setpriv",
    "report/document.py": "variables of CSS",
    "files/sections.py": "options of ROS",
    "live/real_time.py": "options of a container",
}


@pytest.mark.slow
def test_the_library_names_no_options():
    """Messages outside the command line name arguments, in backticks, never options."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = str(path.relative_to(SOURCE))
        if place.startswith("cli/") or place in ALLOWED:
            continue
        tree = ast.parse(path.read_text())
        documentation = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
        ]
        named = [text for text in texts if re.search(r"(^|[\s(`'])--[a-z]", text) and "stribeck" not in text]
        if named:
            found[place] = named
    assert not {
        place: texts for place, texts in found.items() if not all(_attribute(t, place) for t in texts)
    }


def _attribute(text, place):
    """Whether a text stands below an assignment, as documentation of a constant."""
    return f'"""{text}"""' in (SOURCE / place).read_text()


def test_the_command_line_writes_them_as_its_options():
    """A message of the library names `bench`; a command that has --bench writes that, one without leaves it."""
    fit = options_class(COMMANDS["identify servo"])
    assert spelled("describe it with `bench` or `fixed`", fit) == "describe it with --bench or --set"
    assert spelled("the verdict is `usable`", fit) == "the verdict is `usable`"
    assert (
        spelled("name it with `columns`", options_class(COMMANDS["identify joint"]))
        == "name it with --columns"
    )
    assert isinstance(ConfigError("x"), sb.StribeckError)
