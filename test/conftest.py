"""What all tests share."""

import os
import tempfile

import pytest

FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Programs that JAX has compiled serve later tests, and the processes that tests start. It asks on import."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    config.stash[FOLDER] = folder = tempfile.TemporaryDirectory(prefix="jax-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "0"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if (folder := config.stash.get(FOLDER, None)) is not None:
        folder.cleanup()
