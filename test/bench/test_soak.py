"""A minute of ``make soak``, and what it judges."""

import importlib.util
import math
import subprocess
import sys

import pytest

from helpers import REPOSITORY

if importlib.util.find_spec("rclpy") is None:
    pytest.skip("rclpy is not installed: pip install '.[ros]'", allow_module_level=True)

import soak
from soaking.figures import Usage


class Silent:
    """A robot without losses."""

    def counts(self):
        return {"sent": 10, "unaccounted": 0}


class Lossy:
    """A robot with one."""

    def counts(self):
        return {"sent": 10, "unaccounted": 1}

    def unaccounted(self):
        return ["lost 3.00 s after a fault or pause, inf s before the next"]


def history(growth, files):
    """A process over five minutes: memory grows by so much after the first, and much before."""
    return [
        Usage(
            50.0 + min(age, 60.0) + growth * max(0.0, age - 60.0) / 240.0,
            files if age > 200.0 else 10,
            0.0,
            age,
        )
        for age in (1.0, 30.0, 60.0, 100.0, 200.0, 290.0, 295.0, 300.0)
    ]


@pytest.mark.parametrize(
    ("growth", "files", "robot", "said"),
    [
        (4.0, 12, Silent(), []),
        (6.0, 12, Silent(), ["memory of guard grew"]),
        (0.0, 20, Silent(), ["open files"]),
        (0.0, 10, Lossy(), ["lost without a reason"]),
    ],
    ids=["sound", "memory", "files", "losses"],
)
def test_broken_limits_are_named(growth, files, robot, said):
    """Growth after the first minute, open files, losses; what grows in the first minute does not count."""
    report = soak.Report(usage={("guard", 1): history(growth, files)})
    soak.judge(report, robot)
    assert len(report.broken) == len(said)
    assert all(part in text for part, text in zip(said, report.broken, strict=True))
    assert math.isclose(soak.growth_of(report)["guard"], growth, abs_tol=1e-9)


@pytest.mark.slow
@pytest.mark.real_time
def test_a_minute_of_faults_ends_as_documented():
    """All processes, random faults: exit code 0."""
    command = [sys.executable, str(REPOSITORY / "bench" / "soak.py"), "--minutes", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all limits held" in done.stdout
