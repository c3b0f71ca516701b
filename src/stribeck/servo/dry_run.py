"""A dry run of the excitation node: ``stribeck record --dry-run`` as a child process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stribeck.errors import ServoError
from stribeck.live.parameters import ExcitationParameters
from stribeck.servo.excitation_setup import session_config
from stribeck.session.fit_process import environment_for

TIMEOUT = 120.0
"""Longest time of a dry run [s]."""


def dry_run(parameters: ExcitationParameters) -> str:
    """Check the motion that the parameters describe, and draw it; what was checked, in lines.

    :raises ConfigError: for plays that exceed limits.
    :raises ServoError: for a self-collision or a torque beyond the robot's limits.
    """
    output = session_config(parameters).output
    words = [str(Path(parameters.config).expanduser()), "--output", str(output)]
    words += ["--rate", f"{parameters.rate:g}"] if parameters.rate else []
    words += ["--model", str(Path(parameters.urdf).expanduser())] if parameters.urdf else []
    words += ["--keep-torque"] if parameters.commander != "servo" else []
    command = [sys.executable, "-m", "stribeck", "record", *words, "--dry-run"]
    environment = environment_for(Path(sys.executable))
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise ServoError(f"the dry run did not finish within {TIMEOUT:g} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ServoError(lines[-1].removeprefix("stribeck: "))
    return (done.stdout + done.stderr).strip()
