"""Ctrl-C while an arm is identified.

What happened: IPOPT ended with an assertion of CasADi and exit code 1, or went on as if nothing had been pressed.
What must happen: exit code 130 within seconds, with the fits that are complete.
"""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("casadi", reason="arms need the arm extra: pip install '.[arm]'")

from helpers import REPOSITORY
from moving_arms import NEAR, arm, protocol, recording, saved_arm
from stribeck.identify.arm.consistent import fit_consistent
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.regressor import machine_of

AWAIT = 200.0
"""Time after which a child counts as stuck [s]."""


def test_ipopt_passes_an_interrupt_on(tmp_path):
    """As KeyboardInterrupt, from an iteration in the middle."""
    model = arm(tmp_path)
    machine, run = machine_of(model.joints, model, {}), motion_of(recording(model, noise=0.1), protocol())

    def watch(iteration, parameters):
        if iteration == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit_consistent(machine, [run], protocol(), NEAR, run.torque.std(axis=0), watch)


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.real_time
@pytest.mark.parametrize("stage", ["ols", "IPOPT iteration", "choice of terms"])
def test_an_interrupted_identification_leaves_what_is_complete(tmp_path, stage):
    """In any stage: exit code 130, one line about it, and the fits before that stage in the summary."""
    config = saved_arm(tmp_path)
    command = [
        "identify-arm",
        "--config",
        config,
        "--data",
        tmp_path / "train.csv",
        "--json",
        tmp_path / "f.json",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "stribeck", *map(str, command)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        told = b""
        while stage.encode() not in told:
            part = os.read(child.stderr.fileno(), 4096)
            assert part, told
            told += part
        child.send_signal(signal.SIGINT)
        told += child.communicate(timeout=AWAIT)[1]
    assert child.returncode == 130, told
    assert b"interrupted" in told
    assert b"Traceback" not in told
    if stage == "choice of terms":
        assert "consistent" in json.loads((tmp_path / "f.json").read_text())["fits"]


@pytest.mark.real_time
def test_a_computation_that_does_not_end_is_ended():
    """Even if it never returns to Python, or ignores the exception; its workers end too."""
    code = (
        "import multiprocessing as mp, time\n"
        "from stribeck.cli import stop\n"
        "stop.EXIT_WITHIN = 0.2\n"
        "if __name__ == '__main__':\n"
        "    with stop.exit_after_interrupt():\n"
        "        worker = mp.get_context('fork').Process(target=time.sleep, args=(1000,))\n"
        "        worker.start()\n"
        "        while True:\n"
        "            try:\n"
        "                print('at work', flush=True)\n"
        "                time.sleep(1000)\n"
        "            except KeyboardInterrupt:\n"
        "                pass\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline() == "at work\n"
        child.send_signal(signal.SIGINT)
        told = child.communicate(timeout=AWAIT)[1]  # returns when the worker, too, has closed its output
    assert child.returncode == 130
    assert re.search("^stribeck: interrupted$", told, re.MULTILINE)
