"""Configuration of the documentation: ``make docs`` builds it into build/docs."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import stribeck
from stribeck.cli.commands import BAYES, COMMANDS
from stribeck.cli.parser import ABOUT, BAYES_FLAG, build_parser, map_of_commands

project = "Stribeck"
author = "The Stribeck maintainers"
copyright = author
version = release = stribeck.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.apidoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["generated/api/modules.rst"]
# Short names in type hints, such as "dt", are fields of several classes.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = "Stribeck"

myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

# The reference of the code, one page for each module, from its docstrings.
apidoc_modules = [
    {
        "path": "../src/stribeck",
        "destination": "generated/api",
        "separate_modules": True,
        "module_first": True,
        "implicit_namespaces": False,
    }
]
autodoc_mock_imports = [
    "onnx",
    "pxr",
]  # of the extra `export`, which the tools for the documentation do without
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "show-inheritance": True}

GENERATED = Path(__file__).parent / "generated"


def write_verbs(app: Sphinx) -> None:
    """The reference of the command line, from the parser that runs it."""
    lines = ["# Command line", "", ABOUT, "", "```text", map_of_commands(), "```", ""]
    bayes = {f"{name} {BAYES_FLAG}": command for name, command in BAYES.items()}
    for name, command in {**COMMANDS, **bayes}.items():
        text = build_parser(name.removesuffix(f" {BAYES_FLAG}"), command, every=True).format_help()
        lines += [f"## stribeck {name}", "", "```text", text.rstrip(), "```", ""]
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "verbs.md").write_text("\n".join(lines), encoding="utf-8")


def near_pages_only(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """The list of pages beside a page opens its own branch: all modules beside each of their 700 pages took more than half of the build."""
    if "toctree" in context:
        list_of_pages = context["toctree"]
        context["toctree"] = lambda **options: list_of_pages(**{**options, "collapse": True})


def setup(app: Sphinx) -> None:
    """Sphinx calls this when it loads the configuration."""
    app.connect("builder-inited", write_verbs, priority=100)
    app.connect("html-page-context", near_pages_only, priority=100)  # before the theme asks for the list
