"""Imports inside the package: no module imports itself through others, within layers either."""

import ast
from collections.abc import Iterator
from pathlib import Path

from helpers import REPOSITORY

SOURCES = REPOSITORY / "src"

BY_NAME = {("stribeck.model.terms.term", "stribeck.model.terms")}
"""A pickled term is found by its name in the table of terms, which holds the terms."""


def modules() -> dict[str, Path]:
    """All modules and packages by name."""
    found = {}
    for path in sorted((SOURCES / "stribeck").rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of ours that a file imports, in functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (entry.name for entry in node.names if entry.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for entry in node.names:
                whole = f"{node.module}.{entry.name}"
                yield whole if whole in known else node.module


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Modules that are left when those that import nothing, or only what is taken away, are taken away."""
    left = {name: set(names) for name, names in graph.items()}
    while free := {name for name, names in left.items() if not names & left.keys()}:
        left = {name: names for name, names in left.items() if name not in free}
    # What only leads into a circle is none itself.
    while free := left.keys() - set().union(*left.values()):
        left = {name: names for name, names in left.items() if name not in free}
    return sorted(left)


def test_a_circle_is_found():
    """Of three modules and one that leads to them."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c"]


def test_no_module_imports_itself_through_others():
    """Imports within functions count: they only hide a circle."""
    known = modules()
    graph = {
        name: {other for other in imported(path, known) if other != name and (name, other) not in BY_NAME}
        for name, path in known.items()
    }
    assert sum(map(len, graph.values())) > 1000, "imports are found"
    assert not circles(graph)


def test_nothing_but_nodes_imports_a_folder_that_is_gone():
    """Every import of ours names a module, or a name in one."""
    known = modules()
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "stribeck":
                assert node.module in known, (name, node.module)
