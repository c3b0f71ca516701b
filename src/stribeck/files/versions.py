"""Versions of the software that made a result."""

import platform
from importlib.metadata import PackageNotFoundError, version

import stribeck


def versions(*libraries: str) -> dict[str, str]:
    """Versions of stribeck, Python and those of the libraries that are installed."""
    found = {"stribeck": stribeck.__version__, "python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
