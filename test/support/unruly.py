"""Jobs that do what jobs should not, for other processes to run."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from stribeck.errors import StribeckError
from stribeck.identify.servo.incumbent import Incumbent


def double(number: int) -> int:
    return 2 * number


def add(one: int, other: int) -> int:
    return one + other


def refuse(reason: str) -> None:
    raise StribeckError(reason)


def stumble(reason: str) -> None:
    raise ValueError(reason)


def killed_at_first(marker: Path, times: int, number: int) -> int:
    """Kill this process so many times, then return."""
    with marker.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if len(marker.read_text().split()) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def wait_for_ever(started: Path) -> None:
    started.write_text(str(os.getpid()))
    while True:
        signal.pause()


def wait_for(started: Path, go_on: Path, number: int) -> int:
    """Say which process this is, and return when another one says so."""
    with started.open("a") as file:
        file.write(f"{os.getpid()}\n")
    while not go_on.exists():
        time.sleep(0.01)  # another process will make it
    return number


def threads() -> str:
    return os.environ["OMP_NUM_THREADS"]


def interrupted(number: int) -> int:
    """Ctrl-C reaches every process of a terminal."""
    os.kill(os.getpid(), signal.SIGINT)
    return number


def half_killed(worker: int, tell) -> tuple[Incumbent, float]:
    """A search that reports a point; the first worker is killed after a better one."""
    found = Incumbent(10, lambda: 5)
    found.offer(np.full((1, 2), 0.1 * worker), np.array([1.0 + worker]))
    tell(found)
    if worker == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    found.converged = True
    return found, 0.5


def all_killed(worker: int, tell) -> tuple[Incumbent, float]:
    """A search that never finds anything."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def all_refuse(worker: int, tell) -> tuple[Incumbent, float]:
    """A search that cannot begin."""
    raise StribeckError("no such gain")
