"""What worker processes of the tests do; a fresh process imports them from here."""

import multiprocessing as mp
import os
import signal
import time
from typing import Any

from stribeck.processes import end_with_parent


def report_blocked(reports: Any) -> None:
    """Report whether SIGINT is blocked here."""
    reports.put(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))


def leave_orphan(pid: Any) -> None:
    """Start a process that ends with this one, and end without stopping it."""
    mp.get_context("fork").Process(target=_orphan, args=(pid,)).start()
    while not pid.value:
        time.sleep(0.01)
    os._exit(0)


def _orphan(pid: Any) -> None:
    end_with_parent()
    pid.value = os.getpid()
    time.sleep(99.0)
