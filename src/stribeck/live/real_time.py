"""Real-time scheduling of a process, where the system allows it (sched(7), mlockall(2))."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path

LOCKS = 1 | 2 | 4
"""MCL_CURRENT, MCL_FUTURE and MCL_ONFAULT: pages stay in memory once they have been used."""

CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
"""Numbers of capabilities (capabilities(7))."""

PERMISSION = (
    "sudo groupadd -f realtime && sudo usermod -aG realtime $USER; in /etc/security/limits.conf: '@realtime - rtprio 98' and "
    "'@realtime - memlock unlimited'; log in again (a container: --cap-add=SYS_NICE --ulimit rtprio=98)"
)
"""What gives a user the permission."""


def has_capability(number: int, root: Path = Path("/")) -> bool:
    """Whether this process has a capability.

    :param root: root of the file system.
    """
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/status").read_text().splitlines():
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> number & 1)
    return False


def request_real_time(
    priority: int,
    schedule: Callable[[int, int], None] | None = None,
    lock: Callable[[], int] | None = None,
) -> str:
    """Give all threads of this process the policy SCHED_FIFO, and keep its memory from being paged out.

    Threads that start later inherit the policy. Equal priorities do not preempt each other, so that the threads of the
    middleware wait while the control thread works. Memory is locked only without a limit: with one, an allocation beyond
    it would fail in motion.

    :param priority: 1 to 99; 0 changes nothing.
    :param schedule: gives a thread a priority; default: the system's call.
    :param lock: locks the memory and returns 0, or an error number; default: the system's call.
    :returns: why that is not possible, in one line; empty if everything was done.
    """
    if priority == 0:
        return ""
    problems = []
    try:
        for thread in map(int, os.listdir("/proc/self/task")):
            with contextlib.suppress(ProcessLookupError):  # it may have ended in the meantime
                (schedule or _schedule)(thread, priority)
    except (OSError, AttributeError) as error:
        problems.append(f"no real-time priority {priority} ({getattr(error, 'strerror', None) or error})")
    if number := (lock or _lock)():
        problems.append(f"memory cannot be locked ({os.strerror(number)})")
    if not problems:
        return ""
    return f"{', '.join(problems)}: the node continues without it; stribeck doctor shows how to permit it"


def _schedule(thread: int, priority: int) -> None:
    os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))


def _lock() -> int:
    unlimited = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY
    if not (unlimited or has_capability(CAP_IPC_LOCK)):
        return errno.EPERM
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(LOCKS) == 0:
        return 0
    return ctypes.get_errno()
