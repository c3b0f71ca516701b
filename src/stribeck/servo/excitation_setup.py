"""The session of the excitation node, from its parameters and YAML file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from stribeck import strict
from stribeck.errors import ConfigError
from stribeck.files.schema import mapping
from stribeck.live.parameters import ExcitationParameters
from stribeck.servo.config import read_record_config
from stribeck.session.config import SessionConfig, read_robot_session
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
