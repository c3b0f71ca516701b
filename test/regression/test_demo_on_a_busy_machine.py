"""What a busy machine did to the demo: states were late, values wrong and samples lost, and the cause was told after 30 s.

Emulated servos kept real time, which a machine with other work cannot. Now they keep simulated time, in lock-step with the
nodes: whatever the machine does meanwhile, the same is recorded.
"""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ros_graph import Graph, domain
from diagnostic_msgs.msg import DiagnosticStatus
from mcap.reader import make_reader

from stribeck.cli.demo.stage import EmulatedLoad, NodeProcesses, servo_yaml, truth
from stribeck.errors import StribeckError
from stribeck.model.bench import Pendulum
from stribeck.nodes.qos import latched
from stribeck.nodes.statuses import outcome_of

pytestmark = pytest.mark.real_time

LOADS = {"light": Pendulum(0.1, 0.1, 0.02), "heavy": Pendulum(0.2, 0.1, 0.02)}
PLAYS = {"trajectories": ["lift_and_drop"], "gains": [200]}
PROCESSES = ("bench_servos", "servo", "excitation")


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Processes in a folder of their own, on the domain of this test."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain()))

    def make(name: str) -> NodeProcesses:
        (tmp_path / name).mkdir()
        return NodeProcesses(tmp_path / name)

    return make


def start(nodes: NodeProcesses, **changes: object) -> None:
    """Start two emulated servos, their servo node, and a session."""
    servos = [EmulatedLoad(load, truth()) for load in LOADS.values()]
    socket = nodes.emulate("bench", servos, ["/servo", "/excitation"], seed=3, noise=0.3)
    content = servo_yaml(socket, LOADS, PLAYS, nodes.folder / "bags")
    config = nodes.folder / "record.yaml"
    config.write_text(content.replace('"id": 2', f'"id": {changes.get("second_id", 2)}'))
    nodes.start("servo", {"config": str(config)}, socket)
    nodes.start("excitation", {"config": str(config), "autoplay": True}, socket)


def suspended(nodes: NodeProcesses, label: str) -> None:
    """Suspend a process for as long as another program takes to start."""
    process = nodes._running[label]._process.pid
    os.killpg(process, signal.SIGSTOP)
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)
    os.killpg(process, signal.SIGCONT)


def recorded(nodes: NodeProcesses, disturbed: bool) -> list[tuple[str, int, bytes]]:
    """Topic, log time and bytes of all messages of a session."""
    with Graph() as graph, nodes:
        progress = graph.collect(DiagnosticStatus, "/excitation/progress", latched(10))
        results = graph.collect(DiagnosticStatus, "/excitation/result", latched())
        start(nodes)
        for number, label in enumerate(PROCESSES if disturbed else ()):
            nodes.wait_until(lambda number=number: len(progress) > 5 * number)
            suspended(nodes, label)
        nodes.wait_until(lambda: bool(results))
    result = outcome_of(results[0])
    assert result["end"] == "finished", result
    (bag,) = result["bags"]
    with next(Path(bag).glob("*.mcap")).open("rb") as stream:
        return [
            (channel.topic, message.log_time, message.data)
            for _, channel, message in make_reader(stream).iter_messages(log_time_order=False)
        ]


@pytest.mark.slow
def test_a_session_is_recorded_byte_by_byte_whatever_the_machine_does(nodes):
    """Servos, servo node and excitation node are each suspended in the middle: every message and its time is the same."""
    quiet, disturbed = recorded(nodes("quiet"), False), recorded(nodes("disturbed"), True)
    assert [one[:2] for one in disturbed] == [one[:2] for one in quiet]
    assert disturbed == quiet
    states = [time for topic, time, _ in quiet if topic == "/joint_states"]
    assert len(states) >= 1200
    steps = [later - earlier for earlier, later in itertools.pairwise(states)]
    assert max(abs(step - 5_000_000) for step in steps) <= 1_000_000


def test_a_node_that_cannot_configure_is_named_with_its_own_message(nodes):
    """The servo node finds no servo 9: that is what the user reads, as soon as it has ended."""
    with nodes("failing") as failing:
        start(failing, second_id=9)
        with pytest.raises(StribeckError, match=r"^servo: cannot configure: .*missing ID 9"):
            failing.wait_until(lambda: False)
