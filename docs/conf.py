"""Configuration of the documentation: ``make docs`` builds it into build/docs."""

import argparse
from pathlib import Path

from sphinx.application import Sphinx

import stribeck
from stribeck.cli.parser import build_parser

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
    parser = build_parser()
    verbs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    lines = ["# Command line", "", parser.description or "", ""]
    for name, verb in verbs.choices.items():
        lines += [f"## stribeck {name}", "", "```text", verb.format_help().rstrip(), "```", ""]
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "verbs.md").write_text("\n".join(lines), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Sphinx calls this when it loads the configuration."""
    app.connect("builder-inited", write_verbs, priority=100)
