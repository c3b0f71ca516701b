"""Shell lines of README, documentation, examples and help, each with its place."""

import re
from collections.abc import Iterator
from pathlib import Path

from helpers import REPOSITORY
from stribeck.cli.commands import BAYES, COMMANDS

PROGRAMS = (
    *("stribeck", "python", "python3", "pip", "make", "git", "ros2", "colcon", "rosdep", "docker", "pixi", "source", "export", "cmake", "apt", "sudo"),
    *("until", "for"),
)  # fmt: skip
"""First words of shell lines in blocks of code of no stated language."""

SHELL = ("", "sh", "shell", "bash", "console")


def pages() -> list[Path]:
    """README, documentation, and pages beside examples, bags and controllers."""
    beside = (
        path for folder in ("examples", "bags", "controllers") for path in (REPOSITORY / folder).rglob("*.md")
    )
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")), *sorted(beside)]


def blocks_of(text: str) -> Iterator[str]:
    """Lines of blocks that hold shell lines: fenced with a language of shells, or indented by four."""
    language = None
    for line in text.splitlines():
        fence = re.match(r"\s*```+\s*(\w*)", line)
        if fence:
            language = fence[1] if language is None else None
        elif language in SHELL or (language is None and line.startswith("    ")):
            yield line.strip().removeprefix("$ ")


def shell_lines_of(page: Path) -> Iterator[str]:
    """Shell lines of a page, continued lines joined, comments left out; of tutorials those that are not fenced."""
    text = re.sub(r" *\\\n *", " ", page.read_text())
    if page in tutorials():
        text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for line in blocks_of(text):
        command = re.split(r"\s+#\s", line)[0].rstrip()
        words = command.split()
        if (
            words
            and len(words) > 1
            and words[0].rpartition("/")[2] in PROGRAMS
            and not re.match(r"\w+ (?:=|:)", command)
        ):
            yield command


def tutorials() -> list[Path]:
    """Pages whose lines are executed one after another."""
    return sorted((REPOSITORY / "docs").glob("tutorial_*.md"))


def all_lines() -> dict[str, str]:
    """Every line that stands by itself, and where it stands first."""
    found: dict[str, str] = {}
    for page in pages():
        for line in shell_lines_of(page):
            found.setdefault(line, str(page.relative_to(REPOSITORY)))
    for table, option in ((COMMANDS, ""), (BAYES, " --bayes")):
        for name, command in table.items():
            for line in command.examples:
                found.setdefault(f"stribeck {line}", f"stribeck {name}{option} --help")
    return found
