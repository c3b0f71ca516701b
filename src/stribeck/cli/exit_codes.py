"""Exit codes of the program, and its start."""

from __future__ import annotations

import time

STARTED = time.perf_counter()
"""Program start, from which wall times are measured."""


DONE, FAILED, NOT_USABLE, INTERRUPTED = 0, 1, 2, 130
