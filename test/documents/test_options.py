"""Every option of every command stands on a page, with more than its help."""

import re
from dataclasses import fields

from helpers import REPOSITORY
from stribeck.cli.commands import BAYES, COMMANDS
from stribeck.cli.options import word_of
from stribeck.cli.parser import options_class


def test_a_page_names_every_option():
    """In README, documentation or examples."""
    pages = [
        REPOSITORY / "README.md",
        *(REPOSITORY / "docs").glob("*.md"),
        *(REPOSITORY / "examples").rglob("*.md"),
    ]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    words = {
        word_of(entry.name)
        for command in (*COMMANDS.values(), *BAYES.values())
        for entry in fields(options_class(command))
        if not entry.metadata["hidden"] and not entry.metadata["positional"]
    }
    unnamed = [word for word in sorted(words) if not re.search(rf"{re.escape(word)}(?![\w-])", text)]
    assert not unnamed
