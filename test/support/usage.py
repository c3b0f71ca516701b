"""What programs answer to a call that ends at once."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CHILD = Path(__file__).with_name("usage_child.py")

Call = tuple[str, Sequence[str]]
"""Path of a program, and its words."""


def answers(calls: Sequence[Call]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each call, all in one process."""
    done = subprocess.run(
        [sys.executable, str(CHILD)],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]
