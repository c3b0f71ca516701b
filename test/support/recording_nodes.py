"""Nodes as processes of their own, that play, record and are killed; and what came of it in bags."""

import io
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from ros_graph import Graph, domain, told_by, wait_for
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State
from rcl_interfaces.msg import Log
from rclpy.lifecycle import TransitionCallbackReturn
from std_srvs.srv import Trigger

from driving import emulated
from emulated_bus import EmulatedBus
from exciting import record_yaml
from launching import START_TIMEOUT, Launched
from servo_node_child import note_stamps
from stribeck.nodes.qos import latched
from stribeck.nodes.servo import ServoNode
from stribeck.nodes.statuses import outcome_of
from stribeck.recordings.bags.messages import JOINT_STATES, contract_types
from stribeck.recordings.bags.storage import read_messages

PROMPT = {"rate": 200, "command_timeout": 0.1, "silence_timeout": 0.075, "watchdog": 0.1}
"""The driver's own timing, as a user has it; elsewhere it is patient with a busy machine."""

RECORDER = ("-m", "stribeck.nodes.recording")
"""The program of the recorder node."""


class NodeProcess(Launched):
    """A node in a process of its own, active by itself. Use as a context manager.

    :param name: of the node.
    :param program: what Python is to run, unless it is the module of that name.
    """

    def __init__(
        self, name: str, folder: Path, program: Sequence[Any] | None = None, **parameters: Any
    ) -> None:
        given = folder / f"{name}.yaml"
        given.write_text(json.dumps({name: {"ros__parameters": {"autostart": True, **parameters}}}))
        environment = dict(os.environ) | {"ROS_DOMAIN_ID": str(domain())}
        environment.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
        command = [sys.executable, *(program or ("-m", f"stribeck.nodes.{name}"))]
        super().__init__(
            [*command, "--ros-args", "--params-file", given],
            environment,
            folder / f"{name}_{time.monotonic_ns()}.log",
        )

    def reaches(self, graph: Graph, node: str, state: int = State.PRIMARY_STATE_ACTIVE) -> None:
        """Wait until it is active, by its diagnostics.

        Not by asking: an answer to somebody who did not wait for it holds up the whole process that gives it.
        """
        assert state == State.PRIMARY_STATE_ACTIVE
        seen = graph.collect(DiagnosticArray, "/diagnostics")

        def active() -> bool:
            found = [status.message for array in seen for status in array.status if status.name == node]
            return found[-1:] not in ([], ["not active"]) or self.over

        wait_for(active, f"{node} is active", START_TIMEOUT)
        assert not self.over, self.output

    def kill(self) -> int:
        """``kill -9``; the wall clock then [ns]."""
        moment = time.time_ns()
        self._process.kill()
        self._process.wait()
        return moment


class PublishingServo:
    """A servo node in this process, and every state that it published.

    :ivar stamps: theirs [ns].
    """

    def __init__(self, graph: Graph, config: Path) -> None:
        self.states = io.BytesIO()
        self.node = graph.add(ServoNode, {"config": str(config)})
        assert self.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        note_stamps(self.node, self.states)
        assert self.node.trigger_activate() == TransitionCallbackReturn.SUCCESS

    @property
    def stamps(self) -> list[int]:
        """Of all states published so far [ns]."""
        return stamps_of(self.states.getvalue())


def stamps_of(noted: bytes) -> list[int]:
    """What :func:`servo_node_child.note_stamps` has noted [ns]."""
    return [int(stamp) for stamp in np.frombuffer(noted, dtype="<i8")]


class Excitation:
    """The excitation node from outside: what it says, and its services."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.progress = graph.collect(DiagnosticStatus, "/excitation/progress", latched())
        self.results = graph.collect(DiagnosticStatus, "/excitation/result", latched())

    def start(self) -> None:
        """Start a session, as soon as it lets us."""
        self.progress.clear()
        self.results.clear()
        answer = self._graph.call(Trigger, "/excitation/start", Trigger.Request())
        assert answer.success, answer.message

    def abort(self) -> None:
        """End the session softly."""
        assert self._graph.call(Trigger, "/excitation/abort", Trigger.Request()).success

    def running(self, share: float) -> None:
        """Wait until it is in the middle of a run, and has done that share of the session."""

        def far() -> bool:
            assert not self.results, self.results[-1]
            told = self.progress[-1] if self.progress else DiagnosticStatus()
            return told.message == "running" and told_by(told)["progress"] >= share

        wait_for(far, f"a session that is done to {share:.0%}")

    def result(self, timeout: float) -> dict[str, Any]:
        """How the session ended."""
        wait_for(lambda: self.results, "the end of the session", timeout)
        return outcome_of(self.results[-1])


class Setup:
    """A graph with an emulated servo, a servo node here, and an excitation node elsewhere."""

    def __init__(self, graph: Graph, folder: Path, config: Path) -> None:
        self._heard: set[tuple[int, ...]] = set()
        self.graph, self.folder, self.config = graph, folder, config
        self.log = graph.collect(Log, "/rosout", 1000)
        self.servo = PublishingServo(graph, config)
        self.excitation = Excitation(graph)

    @property
    def bags(self) -> Path:
        """Where the bags of the excitation node go."""
        return self.folder / "bags"

    def errors(self, node: str) -> list[str]:
        """What a node logged as an error."""
        return [line.msg for line in self.log if line.name == node and line.level >= 40]

    @contextmanager
    def exciting(self) -> Iterator[NodeProcess]:
        """An excitation node that is active and hears the servo node."""
        with NodeProcess("excitation", self.folder, config=str(self.config), output=str(self.bags)) as node:
            node.reaches(self.graph, "excitation")
            self.heard_by("excitation")
            yield node
            # A process that is killed may hold up those that publish to it, later and for 0.3 s.
            assert node.over or node.interrupt() == 0, node.output

    def heard_by(self, node: str) -> None:
        """Wait until a node has subscribed to the states of the servo node; one that was killed stands there on."""

        def new() -> set[tuple[int, ...]]:
            heard = self.graph.user.get_subscriptions_info_by_topic("/joint_states")
            return {tuple(info.endpoint_gid) for info in heard if info.node_name == node} - self._heard

        self._heard |= wait_for(new, f"{node} listens")

    def more(self, seconds: float) -> None:
        """Wait until states of some more seconds have been published [s]."""
        wanted = len(self.servo.stamps) + round(seconds * PROMPT["rate"])
        wait_for(lambda: len(self.servo.stamps) > wanted, f"{seconds:g} s of states")


@contextmanager
def setup(tmp_path: Path, port: str | None = None, **top: Any) -> Iterator[tuple[Setup, EmulatedBus | None]]:
    """A servo node with an emulated servo that does not protect itself, in this process unless there is a ``port``."""
    with ExitStack() as stack:
        bus = None
        if port is None:
            link = tmp_path / "port"
            bus = stack.enter_context(EmulatedBus(emulated("xl330", registers={"shutdown": 0}), link=link))
            port = str(link)
        config = record_yaml(tmp_path / "record.yaml", port, **{"rate": PROMPT["rate"], **top})
        graph = stack.enter_context(Graph())
        yield Setup(graph, tmp_path, config), bus


def stamps_in(bag: Path) -> list[int]:
    """Stamps of the joint states of a bag [ns], in the order in which they were recorded."""
    types = contract_types()
    return [
        stamp.sec * 1_000_000_000 + stamp.nanosec
        for found in read_messages(bag).messages
        if found.topic == JOINT_STATES
        for stamp in [types.deserialize_cdr(found.data, JOINT_STATES.type).header.stamp]
    ]


def assert_nothing_lost(recorded: list[int], published: list[int]) -> None:
    """From the first recorded state to the last every one that was published, once and in order."""
    assert recorded
    among = [stamp for stamp in published if recorded[0] <= stamp <= recorded[-1]]
    missing = len(set(among) - set(recorded))
    assert recorded == among, f"{missing} of {len(among)} missing, {len(recorded)} recorded"
