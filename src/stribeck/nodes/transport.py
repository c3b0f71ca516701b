"""Configures Fast DDS transports: no shared memory, and loopback only if requested.

A writer to Fast DDS shared memory holds a lock of the reader. If its process is stopped or killed while holding one, the
others block for a second or more. Each participant that joins or leaves, including every ``ros2`` command, stalls them
for some tenths of a second. The guard would fail, and samples would be lost. Loopback UDP is as fast for messages of this
size.

``FASTDDS_BUILTIN_TRANSPORTS`` disables shared memory, except with ``ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST``: then
rmw_fastrtps chooses the transports itself, including shared memory, and listens on all interfaces. In that case the
profile ``loopback.xml`` is used instead. No ROS here; call before rclpy starts.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

PROFILE = Path(__file__).with_name("loopback.xml")

PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""Environment variables that name Fast DDS profiles, before and since version 3."""

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
LOCALHOST_ONLY = "ROS_LOCALHOST_ONLY"
"""Older variable, which takes precedence over the discovery range."""

TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
STATIC_PEERS = "ROS_STATIC_PEERS"
UDP = "UDPv4"

Environment = MutableMapping[str, str]


def stay_on_this_machine(environment: Environment = os.environ) -> None:
    """Restrict this process and its children to this machine, overriding the environment."""
    environment.pop(LOCALHOST_ONLY, None)
    environment.pop(STATIC_PEERS, None)
    if not _is_fast_dds(environment):
        environment[RANGE] = "LOCALHOST"
        return
    _use_profile(environment)


def avoid_shared_memory(environment: Environment = os.environ) -> str:
    """Restrict this process to UDP, unless the user has chosen transports.

    :returns: a warning if shared memory could not be disabled, else empty.
    """
    if not _is_fast_dds(environment) or environment.get(TRANSPORTS, UDP) != UDP:
        return ""
    environment.setdefault(TRANSPORTS, UDP)
    if not _localhost(environment):
        return ""
    ours = ("", str(PROFILE))
    chosen = [name for name in (*PROFILES, STATIC_PEERS) if environment.get(name, "") not in ours]
    if chosen:
        return (
            f"with {RANGE}=LOCALHOST messages use shared memory, so nodes stall for tenths of a second when others start or end; {chosen[0]} prevents UDP "
            f"from being used instead: unset one of the two, or set {RANGE}=SUBNET"
        )
    environment.pop(LOCALHOST_ONLY, None)
    _use_profile(environment)
    return ""


def _use_profile(environment: Environment) -> None:
    environment[RANGE] = "SUBNET"  # the only range for which rmw_fastrtps does not change a profile
    environment[TRANSPORTS] = UDP
    for name in PROFILES:
        environment[name] = str(PROFILE)


def _is_fast_dds(environment: Environment) -> bool:
    return environment.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp").startswith("rmw_fastrtps")


def _localhost(environment: Environment) -> bool:
    return environment.get(RANGE) == "LOCALHOST" or environment.get(LOCALHOST_ONLY) == "1"
