"""Tutorials and the notebook, executed from top to bottom in a folder of the user's files."""

import ast
import json
import re
from pathlib import Path

import matplotlib
import pytest

from documented import tutorials
from helpers import REPOSITORY
from line_files import furnish
from tutorial_blocks import blocks, executed

pytest.importorskip("jax", reason="tutorials identify: pip install '.[fit]'")
pytest.importorskip("mujoco", reason="tutorials export to MuJoCo: pip install '.[mujoco]'")

NOTEBOOK = REPOSITORY / "examples" / "notebook.ipynb"


def test_there_are_seven():
    """Each has something to execute, and at most two pages (120 lines)."""
    assert len(tutorials()) == 7
    for page in tutorials():
        assert blocks(page), page
        assert len(page.read_text().splitlines()) <= 120, page


def test_the_readme_is_short():
    """At most 120 lines; its program in Python has at most nine statements."""
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 120
    ((_, program),) = blocks(REPOSITORY / "README.md")
    assert len(ast.parse(program).body) <= 9


SHORT = [page for page in tutorials() if page.stem != "tutorial_so101_bus"]
"""Those that a test need not judge by what they achieve: `test/examples/test_hobby_protocol.py` executes the other."""


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", SHORT, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_written(page, tmp_path):
    """Every block succeeds; the user's recordings and models that it names are those of a simulated machine."""
    for name in ("bags", "config", "examples"):
        if page.stem not in ("tutorial_arm", "tutorial_so101", "tutorial_quadruped") or name != "bags":
            (tmp_path / name).symlink_to(REPOSITORY / name)
    for language, text in blocks(page):
        if language == "sh":
            for line in text.splitlines():
                furnish(line, tmp_path)
        said = executed(tmp_path, language, text)
        if "position_servo.py" in text:
            before, weight, after = map(float, re.findall(r"compensat\w+: joint ([\d.]+) mrad", said))
            assert weight < 0.7 * before
            assert after < 0.5 * before
            assert after < 0.6 * weight


@pytest.mark.slow
def test_the_notebook_ends_with_a_usable_verdict(tmp_path, monkeypatch):
    """Every cell runs, the fit of two gains is usable, and the gain left out is predicted within a degree."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    (tmp_path / "bags").symlink_to(REPOSITORY / "bags")
    names = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)  # noqa: S102 - our own notebook
    assert names["fit"].verdict.use == "usable"
    assert names["prediction"].error < 0.0175
    assert Path("p.json").is_file()


@pytest.mark.slow
def test_the_python_lines_of_the_readme_run(tmp_path):
    """As they stand, on the bags of the repository, with a usable verdict."""
    ((language, text),) = blocks(REPOSITORY / "README.md")
    (tmp_path / "bags").symlink_to(REPOSITORY / "bags")
    said = executed(tmp_path, language, text)
    assert "verdict: usable" in said
    assert (tmp_path / "p.json").is_file()


def test_the_notebook_is_stored_without_results():
    """No outputs, no counts: a change shows in a diff."""
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
