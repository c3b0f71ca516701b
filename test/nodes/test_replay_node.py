"""A recorded bag played through the compensation node gives the torque of ``stribeck compensate`` on the bag."""

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_graph import Graph, domain, wait_for
from builtin_interfaces.msg import Time
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from helpers import published
from launching import Launched, needs_rosbag2
from stribeck.evaluate.replay import replay
from stribeck.live.parameters import CompensationParameters
from stribeck.live.setup import compensated_joints, compensator_of
from stribeck.nodes.compensation import CompensationNode
from stribeck.recordings.bags.messages import Topic
from stribeck.recordings.bags.recorder import BagRecorder
from stribeck.recordings.bags.storage import RawMessage, read_messages

pytestmark = pytest.mark.real_time

STATES = Topic("/joint_states", "sensor_msgs/msg/JointState")
COMMANDS = Topic("/joint_commands", "sensor_msgs/msg/JointState")
M6 = {**published("xl330", "m6"), "model": "m6", "actuator": "xl330"}
STEPS, PERIOD = 240, 0.005
TICK = 0.025
"""Of the clock of ``ros2 bag play --clock`` [s]."""
BETWEEN_LOOPS = 0.5
"""In which the clock of the player goes on [s]."""
DISCOVERY = 3.0
"""Before each loop, in which player and node find each other [s]."""


def message(step: int, **fields: list[float]) -> JointState:
    """A message of the joint, stamped."""
    found = JointState(name=["hinge"], **fields)
    stamp = 1_700_000_000_000_000_000 + round(step * PERIOD * 1e9)
    found.header.stamp.sec, found.header.stamp.nanosec = divmod(stamp, 10**9)
    return found


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """A motion with reversals and load: commands and states as rclpy serialises them."""
    with BagRecorder(tmp_path / "motion", (STATES, COMMANDS)) as recorder:
        for step in range(STEPS):
            t = step * PERIOD
            goal, at = math.sin(4.0 * t), 0.8 * math.sin(4.0 * t - 0.3)
            command = message(step, position=[goal])
            state = message(
                step, position=[at], velocity=[3.2 * math.cos(4.0 * t - 0.3)], effort=[0.2 * math.sin(at)]
            )
            stamp = command.header.stamp.sec * 10**9 + command.header.stamp.nanosec
            recorder.write(COMMANDS.name, serialize_message(command), stamp + 1_000_000)
            recorder.write(STATES.name, serialize_message(state), stamp + 2_000_000)
    return tmp_path / "motion"


def parameters(folder: Path) -> dict[str, object]:
    """Parameters of the node."""
    path = folder / "m6.json"
    path.write_text(json.dumps(M6))
    return {
        "joints": ["hinge"],
        "hinge.parameter_file": str(path),
        "effort_meaning": "motor",
        "state_timeout": 1.0,  # the bag is longer: its start again is time that jumps back
        "state_lag": 10.0,
        "command_timeout": 4.0,
        "ramp_time": 0.2,
        "adapt": False,
    }


class PlayerClock(threading.Thread):
    """/clock as ``ros2 bag play --clock`` publishes it: by a timer, also while the player waits before each loop."""

    def __init__(self, publisher: Any, start: int, rate: float) -> None:
        super().__init__(daemon=True)
        self._publisher, self._start, self._rate, self._over = publisher, start, rate, threading.Event()
        self.jump()

    def jump(self) -> None:
        """Back to the start of the bag."""
        self._since = time.monotonic()

    def run(self) -> None:
        while not self._over.wait(TICK):
            now = self._start + round(1e9 * self._rate * (time.monotonic() - self._since))
            seconds, nanoseconds = divmod(now, 10**9)
            self._publisher.publish(Clock(clock=Time(sec=seconds, nanosec=nanoseconds)))

    def __enter__(self) -> "PlayerClock":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def play(
    messages: list[RawMessage], publishers: dict[str, Any], rate: float, taken: Callable[[str], int]
) -> None:
    """Publish a bag's messages in their order and at a multiple of their pace, each once the one before was taken.

    States come before commands where both wait, so on a machine that stands still a queue would be served in another order.
    """
    begin, first = time.monotonic(), messages[0].log_time
    for one in messages:
        due = begin + (one.log_time - first) * 1e-9 / rate
        while (left := due - time.monotonic()) > 0.0:
            time.sleep(left)
        topic = one.topic.name
        before = taken(topic)
        publishers[topic].publish(one.data)
        wait_for(lambda topic=topic, before=before: taken(topic) > before, f"the node takes {topic}")


def count_taken(node: CompensationNode, counts: dict[str, int]) -> None:
    """Count the states and commands that a node has served, which is not configured yet."""

    def served(serve: Callable[[bytes], None], topic: str, data: bytes) -> None:
        serve(data)
        counts[topic] += 1

    node._on_state = partial(served, node._on_state, STATES.name)
    node._on_command = partial(served, node._on_command, COMMANDS.name)


def check(
    folder: Path,
    bag: Path,
    simulated: bool,
    playing: Callable[[list[RawMessage], Graph, Callable[[], int], Callable[[str], int]], None],
    loops: int = 2,
) -> None:
    """Loops of a bag, played through the node, give the torque of ``stribeck compensate`` to 1e-9 N m.

    :param playing: given the messages, the graph, and what counts the torques of states of the bag, and the messages of a
        topic that the node has served.
    """
    given = parameters(folder)
    values = CompensationParameters.complete(given, "test")
    joints = compensated_joints(values)
    offline = replay(bag, read_messages(bag), compensator_of(values, joints), joints)
    wanted = dict(zip((int(s) for s in offline.stamps), offline.torque[:, 0], strict=True))
    assert max(abs(torque) for torque in wanted.values()) > 0.01, "the motion asks for torque"
    with Graph() as graph:
        # Nothing may be lost on a machine that others use too: a queue of its own for each loop.
        states, commands = (
            f"qos_overrides./{topic}.subscription" for topic in ("joint_states", "controller_command")
        )
        heard = {f"{states}.reliability": "reliable", f"{states}.depth": 1000, f"{commands}.depth": 1000}
        node = graph.add(CompensationNode, {**given, **heard, "use_sim_time": simulated})
        taken = {STATES.name: 0, COMMANDS.name: 0}
        count_taken(node, taken)
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        wait_for(lambda: node._compensator.enabled, "compensation is enabled")
        torques = graph.collect(JointState, "friction_torque", 1000)
        wait_for(lambda: node._torque.get_subscription_count(), "the torque is heard")
        count = lambda: sum(stamp_of(t) in wanted for t in list(torques))  # noqa: E731
        playing(read_messages(bag).messages, graph, count, taken.__getitem__)
    found = [(stamp_of(torque), torque.effort[0]) for torque in torques]
    assert not any(torque for stamp, torque in found if stamp not in wanted), "zero between two loops"
    found = [(stamp, torque) for stamp, torque in found if stamp in wanted][: loops * STEPS]
    assert [stamp for stamp, _ in found] == loops * sorted(wanted)
    np.testing.assert_allclose([torque for _, torque in found], [wanted[s] for s, _ in found], atol=1e-9)


def stamp_of(message: JointState) -> int:
    """[ns]."""
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


@pytest.mark.ci
@pytest.mark.parametrize("rate", [1.0, *(pytest.param(r, marks=pytest.mark.slow) for r in (0.5, 2.0, 4.0))])
def test_a_bag_played_twice_gives_the_torque_of_the_offline_replay(tmp_path, bag, rate):
    """At rate 1, at other rates with /clock, and in the second loop, to 1e-9 N m."""

    def playing(messages, graph, count, taken):
        publishers = {
            STATES.name: graph.publisher(JointState, "joint_states", 1000),
            COMMANDS.name: graph.publisher(JointState, "controller_command", 1000),
        }
        ticking = contextlib.nullcontext()
        if rate != 1.0:
            ticking = PlayerClock(graph.publisher(Clock, "/clock"), messages[0].log_time, rate)
        with ticking as clock:
            for loop in (1, 2):
                if clock is not None:
                    time.sleep(BETWEEN_LOOPS)
                    clock.jump()
                play(messages, publishers, rate, taken)
                wait_for(lambda loop=loop: count() >= loop * STEPS, f"{loop * STEPS} torques")

    check(tmp_path, bag, rate != 1.0, playing)


@needs_rosbag2
@pytest.mark.slow
@pytest.mark.parametrize(("rate", "clock"), [(1.0, False), (1.0, True), (0.5, True), (4.0, True)])
def test_ros2_bag_play_gives_the_torque_of_the_offline_replay(tmp_path, bag, rate, clock):
    """The real player, once without a clock, or looped with one, which also runs while it waits between two loops."""
    loops = 2 if clock else 1
    words = ["--rate", rate, "--delay", DISCOVERY, *(["--clock", "--loop"] if clock else [])]
    words += ["--remap", f"{COMMANDS.name}:=/controller_command", "--disable-keyboard-controls"]
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain())}
    environment.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)

    def playing(_messages, _graph, count, _taken):
        with Launched(["ros2", "bag", "play", bag, *words], environment, tmp_path / "output"):
            wait_for(lambda: count() >= loops * STEPS, f"{loops} loops", 60.0)

    check(tmp_path, bag, clock, playing, loops)
