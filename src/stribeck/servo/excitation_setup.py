"""The session of the excitation node, from its parameters and YAML file, and its dry run: ``stribeck record --dry-run``."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from stribeck import strict
from stribeck.errors import ConfigError, ServoError
from stribeck.files.schema import mapping
from stribeck.live.parameters import ExcitationParameters
from stribeck.servo.config import read_record_config
from stribeck.session.config import SessionConfig, read_robot_session
from stribeck.session.fit_process import environment_for
from stribeck.session.limits import check_plays, extent, followed


def session_config(parameters: ExcitationParameters) -> SessionConfig:
    """The session described by the node's parameters, checked.

    :raises ConfigError: for a missing or invalid file, or for plays that exceed the limits or that the commander cannot
        execute.
    """
    if not parameters.config:
        raise ConfigError(
            "config is empty: name the YAML file of joints and plays (config/record.yaml is an example)"
        )
    session = read_session(Path(parameters.config).expanduser())
    commander = parameters.commander
    check_plays(session.plays, session.joints, releases_torque=commander == "servo")
    _check_gains(session, commander, parameters.gain_node)
    if commander.startswith("trajectory"):
        _check_jumps(session)
    return replace(
        session,
        output=Path(parameters.output).expanduser() if parameters.output else session.output,
        rate=parameters.rate or session.rate,
    )


def read_session(path: Path) -> SessionConfig:
    """Read joints and plays from a file for ``stribeck record``, with or without its bus section.

    :raises ConfigError: for an invalid file.
    """
    return read_record_config(path)[1] if has_bus(path) else read_robot_session(path)


def has_bus(path: Path) -> bool:
    """Whether a session's file has a bus section.

    :raises ConfigError: for a file that cannot be read.
    """
    data = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    return "port" in mapping(data, str(path), ConfigError)


def _check_gains(session: SessionConfig, commander: str, gain_node: str) -> None:
    """Check that a node can set the gains, if there are several."""
    gains = sorted({play.kp for play in session.plays})
    if commander != "servo" and not gain_node and len(gains) > 1:
        raise ConfigError(
            f"plays: gains: found {', '.join(f'{gain:g}' for gain in gains)}, but commander {commander} "
            "cannot set gains: keep only the gain that is set on the robot, or set gain_node"
        )


def _check_jumps(session: SessionConfig) -> None:
    """Refuse goals that jump, which an interpolating trajectory controller cannot follow."""
    for trajectory in {play.trajectory.name: play.trajectory for play in session.plays}.values():
        each = (
            [followed(trajectory, joint)[0] for joint in session.joints]
            if trajectory.joint_goals
            else [trajectory]
        )
        if any(math.isinf(extent(one).velocity) for one in each):
            raise ConfigError(
                f"trajectory {trajectory.name!r} jumps, which a joint_trajectory_controller cannot follow: remove it, or use commander servo or forward"
            )


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
