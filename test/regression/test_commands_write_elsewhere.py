"""README's "by hand" recorded into bags/, where simulated runs lie that ``fit --logdir bags/`` then mixed in."""

import re

from helpers import REPOSITORY


def test_no_documented_command_writes_into_the_folder_of_the_simulated_bags():
    """Commands may read bags/; outputs go elsewhere."""
    pages = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    wrong = [
        f"{page.name}: {line.strip()}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.search(r"(--output|output:=)\s*bags\b", line)
    ]
    assert not wrong
