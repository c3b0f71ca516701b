"""Importing ``stribeck.model`` costs little: numpy, and what numpy has already imported."""

import subprocess
import sys

CODE = """
import sys, time
import numpy
before, start = set(sys.modules), time.process_time()
import stribeck.model.joint, stribeck.model.step, stribeck.model.trajectories
seconds = time.process_time() - start
print(seconds, *sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def imported() -> tuple[float, set[str]]:
    """Processor time of the import beside numpy's [s], and the packages that it brings."""
    result = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True)
    seconds, *names = result.stdout.split()
    return float(seconds), set(names)


def test_core_imports_nothing_heavy():
    """No package but numpy, which is there before."""
    _, names = imported()
    assert names <= {"stribeck", "numpy", *sys.stdlib_module_names}
    assert not names & {
        "asyncio",
        "multiprocessing",
        "concurrent",
        "sqlite3",
        "ssl",
        "http",
        "xml",
        "logging",
        "unittest",
    }


def test_core_is_imported_in_less_than_150_ms_of_processor_time():
    """The best of three, beside numpy."""
    assert min(imported()[0] for _ in range(3)) <= 0.15
