"""How a process talks to others: without shared memory, and without leaving the machine where that is asked for.

Whoever writes into the shared memory of Fast DDS holds a lock of the reader's. A process that is stopped or killed
while it holds one keeps the others from hearing anybody for a second and more, and every participant that comes or
goes, each ``ros2`` command too, stalls them for some tenths of a second: what a guard is there for would fail, and
samples would be lost. Loopback UDP is as fast for messages this small.

``FASTDDS_BUILTIN_TRANSPORTS`` keeps shared memory out, but not with ``ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST``: there
rmw_fastrtps chooses the transports itself, shared memory among them, and listens at all interfaces. A profile of ours,
``loopback.xml``, then does what was asked for. No ROS here; to be called before rclpy starts.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

PROFILE = Path(__file__).with_name("loopback.xml")

PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""Where Fast DDS looks for profiles, before and since its version 3."""

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
LOCALHOST_ONLY = "ROS_LOCALHOST_ONLY"
"""What the range was called before; it goes before it."""

TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
STATIC_PEERS = "ROS_STATIC_PEERS"
UDP = "UDPv4"

Environment = MutableMapping[str, str]


def stay_on_this_machine(environment: Environment = os.environ) -> None:
    """Let this process, and those that it starts, hear and be heard on this machine alone, whatever was said before."""
    environment.pop(LOCALHOST_ONLY, None)
    environment.pop(STATIC_PEERS, None)
    if not _is_fast_dds(environment):
        environment[RANGE] = "LOCALHOST"
        return
    _use_profile(environment)


def avoid_shared_memory(environment: Environment = os.environ) -> str:
    """Let this process talk by UDP alone, unless the user has chosen transports.

    :returns: what to warn of, in one line: shared memory that could not be kept out. Empty if there is nothing.
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
            f"{RANGE}=LOCALHOST brings shared memory, in which nodes stall for tenths of a second when others come and "
            f"go, and {chosen[0]} keeps us from going round it: unset one of the two, or say {RANGE}=SUBNET"
        )
    environment.pop(LOCALHOST_ONLY, None)
    _use_profile(environment)
    return ""


def _use_profile(environment: Environment) -> None:
    environment[RANGE] = "SUBNET"  # the one range with which rmw_fastrtps leaves a profile as it is
    environment[TRANSPORTS] = UDP
    for name in PROFILES:
        environment[name] = str(PROFILE)


def _is_fast_dds(environment: Environment) -> bool:
    return environment.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp").startswith("rmw_fastrtps")


def _localhost(environment: Environment) -> bool:
    return environment.get(RANGE) == "LOCALHOST" or environment.get(LOCALHOST_ONLY) == "1"
