"""What all tests share."""

import faulthandler
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

# Small products are slower on several threads of BLAS than on one, far slower beside other work. numpy asks on import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from stribeck.api.extras import EXTRAS

try:
    from hypothesis import settings
except ImportError:  # as with the packages of a ROS distribution alone
    pass
else:  # a busy machine takes longer for an example; that is no failure
    settings.register_profile("repeatable", deadline=None, derandomize=True)
    settings.register_profile("explore", deadline=None, max_examples=1000)
    settings.load_profile("repeatable")

QUICK_TO_COMPILE = "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false"
"""Tests compile more than they compute: programs compile in half the time and take up to half as long again to run."""

FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Programs that JAX compiles serve later tests, and the processes that tests start. It asks on import."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a shell that started this in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    known = _jaxlib() >= (0, 10)  # older ones end at flags that they do not know
    if known and config.option.markexpr != "slow":
        os.environ.setdefault("XLA_FLAGS", QUICK_TO_COMPILE)
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    config.stash[FOLDER] = folder = tempfile.TemporaryDirectory(prefix="jax-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "0"


def _jaxlib() -> tuple[int, ...]:
    """Version of what compiles JAX's programs; (0,) where it is not installed."""
    try:
        return tuple(map(int, version("jaxlib").split(".")[:2]))
    except PackageNotFoundError:
        return (0,)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cases after the first of tests with `one_case_is_quick` are slow, and so are tests with `ci`, which CI runs for every change."""
    seen = set()
    for item in items:
        if item.get_closest_marker("one_case_is_quick") is not None:
            test = item.nodeid.partition("[")[0]
            if test in seen:
                item.add_marker("slow")
            seen.add(test)
        if item.get_closest_marker("slow") is not None:  # a slow case of a test with `ci`
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "ci"]
        elif item.get_closest_marker("ci") is not None:
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Modules that need an extra are skipped without it, as in `colcon test` with the packages of ROS alone."""
    report = yield
    missing = re.search(r"No module named '(\w+)", str(report.longrepr)) if report.failed else None
    if missing is not None and (extra := EXTRAS.get(missing[1])):
        reason = f"Skipped: {missing[1]} is not installed: pip install '.[{extra}]'"
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, reason)
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if (folder := config.stash.get(FOLDER, None)) is not None:
        folder.cleanup()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that hangs where no signal reaches it, in a library, ends the whole run and shows where."""
    own = item.get_closest_marker("timeout")
    limit = float(own.args[0] if own is not None else item.config.getini("timeout"))
    if item.config.getoption("usepdb") or not limit:
        return (yield)
    shown = item.config.stash[fault_handler_stderr_fd_key]  # pytest keeps sys.stderr to itself
    faulthandler.dump_traceback_later(1.5 * limit, exit=True, file=shown)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
