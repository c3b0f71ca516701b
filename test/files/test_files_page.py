"""The page of file formats says what the classes that read the files say."""

import importlib.util

import pytest

from helpers import REPOSITORY


@pytest.fixture(scope="module")
def generator():
    pytest.importorskip("scipy", reason="the page covers files of layers that need SciPy")
    spec = importlib.util.spec_from_file_location("write_files", REPOSITORY / "docs" / "write_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator):
    """Otherwise run ``python docs/write_files.py``."""
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run python docs/write_files.py"


def test_the_page_has_a_table_for_every_declared_file(generator):
    """Each of its classes has keys."""
    page = generator.page()
    assert page.count("| key | valid | default | meaning |") == sum(
        len(found) for _, _, found in generator.FILES
    )
    assert "| `entries[].timestamp` | a number |  | [s] |" in page


def test_every_key_has_a_meaning(generator):
    """Each row ends with words, without markup of docstrings."""
    rows = [line.split("|") for line in generator.page().splitlines() if line.startswith("| `")]
    assert len(rows) > 300
    assert [row[1] for row in rows if not row[-2].strip() or ":class:" in row[-2]] == []
