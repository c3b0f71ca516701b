"""Pictures of README and documentation are drawn by ``make figures``."""

import importlib.util
import re

import pytest

from documented import pages
from helpers import REPOSITORY

pytest.importorskip("matplotlib", reason="pictures are drawn by matplotlib: pip install '.[fit]'")

DOCS = REPOSITORY / "docs"


def drawn():
    """Names of the pictures that the program draws, and of those that are drawn by hand."""
    spec = importlib.util.spec_from_file_location("draw_pictures", DOCS / "draw_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = [name for _, _, made in module.PICTURES.values() for name in made]
    assert len(names) == len(set(names))
    return {*names, *module.BY_HAND}


def test_every_picture_is_drawn_and_shown():
    """Each picture in the folder is drawn, and shown on a page; no page shows another one."""
    shown = {
        found.rpartition("/")[2]
        for page in pages()
        for found in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())
    }
    there = {path.name for kind in ("png", "gif", "svg") for path in DOCS.glob(f"*.{kind}")}
    assert there == drawn() == shown
