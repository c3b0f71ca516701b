"""The examples that are shipped, as a user runs them."""

import os
import re
import subprocess
import sys

import pytest

from helpers import REPOSITORY

pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")


def output_of(*words):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_arm():
    """Friction keeps the joints further behind their goals."""
    said = output_of("examples/mujoco/arm.py", "--seconds", "3")
    behind = [[float(x) for x in re.findall(r"([\d.]+) mrad", line)] for line in said.splitlines()]
    assert len(behind) == 2
    assert behind[0][0] > behind[1][0] > 0.0
    assert behind[0][1] > behind[1][1] > 0.0


@pytest.mark.slow
def test_a_batch():
    """Every simulation reaches its goal but for friction and gravity."""
    pytest.importorskip("jax")
    said = output_of("examples/mujoco/batch.py", "--count", "32", "--seconds", "1")
    assert "32 simulations of 250 steps" in said
    mean, most = (float(x) for x in re.findall(r"([\d.]+) mrad", said))
    assert 1.0 < mean < most < 400.0
