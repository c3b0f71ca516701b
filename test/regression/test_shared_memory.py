"""With ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST rmw_fastrtps added shared memory whatever we asked for.

Participants that came and went, each `ros2` command too, then stalled the nodes for 190 to 340 ms, and the guard tripped.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ros_graph import Graph, domain, wait_for
from diagnostic_msgs.msg import DiagnosticArray

from stribeck.nodes.transport import PROFILES, RANGE, TRANSPORTS, avoid_shared_memory, stay_on_this_machine

OURS = (*PROFILES, TRANSPORTS, "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS")


def threads(process: str) -> list[str]:
    """Names of a process's threads."""
    found = []
    for path in Path(f"/proc/{process}/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it may have ended since
            found.append(path.read_text().strip())
    return found


@contextlib.contextmanager
def recorder(**environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A node as a user starts it, in that environment."""
    own = {name: value for name, value in os.environ.items() if name not in (*OURS, RANGE)}
    own.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
    own |= {"ROS_DOMAIN_ID": str(domain()), **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "stribeck.nodes.recording"], env=own, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.send_signal(2)
        process.wait(timeout=10.0)
        process.stderr.close()


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("asked", [{RANGE: "LOCALHOST"}, {"ROS_LOCALHOST_ONLY": "1"}, {}], ids=str)
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_a_node_uses_no_shared_memory_and_is_found(asked):
    """Its threads say so, and a participant on the loopback interface alone hears it."""
    with recorder(**asked) as process, Graph() as graph:
        told = graph.collect(DiagnosticArray, "/diagnostics")
        wait_for(lambda: told, "diagnostics of the node", 20.0)
        for what in (str(process.pid), "self"):
            names = threads(what)
            assert any(name.startswith("dds.udp") for name in names), names
            assert not [name for name in names if "shm" in name]


def test_transports_that_the_user_has_chosen_stay():
    """Others of Fast DDS, or another middleware: nothing is changed."""
    for chosen in ({TRANSPORTS: "DEFAULT", RANGE: "LOCALHOST"}, {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}):
        environment = dict(chosen)
        assert avoid_shared_memory(environment) == ""
        assert environment == chosen


def test_what_keeps_us_from_it_is_said():
    """A profile of the user's own under LOCALHOST stays, and one line says what that means and what to do."""
    environment = {RANGE: "LOCALHOST", PROFILES[0]: "mine.xml"}
    warning = avoid_shared_memory(environment)
    assert environment[PROFILES[0]] == "mine.xml"
    for part in ("stall", PROFILES[0], "unset"):
        assert part in warning
    assert "\n" not in warning


def test_another_middleware_stays_on_this_machine_by_its_own_means():
    """The profile is for Fast DDS alone."""
    environment = {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp", "ROS_STATIC_PEERS": "10.0.0.1"}
    stay_on_this_machine(environment)
    assert environment == {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp", RANGE: "LOCALHOST"}
