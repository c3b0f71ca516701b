"""Topics into bags: subscriptions that only hand bytes on, and the recorder node for robots that move by themselves."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rclpy.exceptions import InvalidTopicNameException
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from stribeck.errors import ConfigError, OutputError
from stribeck.io.files import check_writable
from stribeck.io.messages import (
    BENCH,
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    SERVO_STATUS,
    Topic,
    warm_up,
)
from stribeck.io.recorder import BagRecorder
from stribeck.nodes.base import ServiceNode, offered_weakly, quiet_events, run
from stribeck.nodes.messages import telemetry_topics
from stribeck.nodes.parameters import RECORDER

DEPTH = 2000
"""Messages of a topic that may wait to be recorded: ten seconds of them."""

OFFERS_PERIOD = 0.5
"""How often publishers are looked for that came later than the recording [s]."""

TELEMETRY = {topic.name.lstrip("/"): topic for topic in (DYNAMIC_JOINT_STATES, SERVO_STATUS)}


class Heard(NamedTuple):
    """A topic to record: its name in the bag, its message type here, and the name by which it is heard."""

    topic: Topic
    kind: Any
    name: str


def contract_topics() -> list[Heard]:
    """The topics of the bag contract that can be heard in this installation."""
    return [
        Heard(JOINT_STATES, JointState, "joint_states"),
        Heard(JOINT_COMMANDS, JointState, "joint_commands"),
        Heard(BENCH, String, "bench"),
        *(Heard(TELEMETRY[found.name], found.type, found.name) for found in telemetry_topics()),
    ]


class Hearing:
    """Subscriptions of a node that take serialised messages, each as reliable as its publishers offer.

    A reliable one loses nothing, but does not hear a publisher of best effort: as soon as one is found, its topic
    alone is subscribed to anew (latched messages of the others would come twice).

    :param node: what serves them, in its hot loop.
    :param takes: what to hear, and what takes it.
    """

    def __init__(self, node: ServiceNode, takes: Mapping[Heard, Callable[[bytes], None]]) -> None:
        self._node, self._takes = node, dict(takes)
        self._weak = self._offered_weakly()
        self._subscriptions = {heard: self._hear(heard) for heard in self._takes}
        node.serve_fast(*self._subscriptions.values())

    def follow_offers(self) -> None:
        """Look for publishers that came since."""
        late = self._offered_weakly() - self._weak
        if not late:
            return
        self._weak |= late
        found = self._subscriptions
        self._node.stop_serving(keep=[kept for heard, kept in found.items() if heard not in late])
        found |= {heard: self._hear(heard) for heard in self._takes if heard in late}
        self._node.serve_fast(*found.values())

    def _offered_weakly(self) -> set[Heard]:
        return {heard for heard in self._takes if offered_weakly(self._node, heard.name)}

    def _hear(self, heard: Heard) -> Any:
        weak, latched = heard in self._weak, heard.topic.latched
        qos = QoSProfile(
            depth=DEPTH,
            reliability=ReliabilityPolicy.BEST_EFFORT if weak else ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        return self._node.create_subscription(
            heard.kind, heard.name, self._takes[heard], qos, raw=True, event_callbacks=quiet_events()
        )


class RecorderNode(ServiceNode):
    """Records while it is active, one bag each time; latched ``~/bag`` says where the last finished one is."""

    table = RECORDER

    def __init__(self, **kwargs: Any) -> None:
        self._recorder: BagRecorder | None = None
        self._said: Any = None
        self._failure = ""
        self._hearing: Hearing | None = None
        super().__init__("recorder", **kwargs)
        self.steady_timer(OFFERS_PERIOD, self._follow_offers)

    def _configure(self, values: Mapping[str, Any]) -> None:
        self._output, self._prefix = Path(values["output"]).expanduser(), values["prefix"]
        check_writable(self._output / "bag")
        warm_up()
        self._heard = [*contract_topics(), *further_topics(values["topics"])]
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._said = self.create_publisher(String, "~/bag", latched)

    def _activate(self) -> None:
        self._failure = ""
        self._recorder = BagRecorder.numbered(
            self._output, self._prefix, [heard.topic for heard in self._heard]
        )
        # Subscribed to anew for each bag: that is when latched messages come again.
        self._hearing = Hearing(self, {heard: self._recording(heard.topic) for heard in self._heard})
        self.get_logger().info(f"recording into {self._recorder.path}")

    def _follow_offers(self) -> None:
        if self._recorder is not None and self._hearing is not None:
            self._hearing.follow_offers()

    def _recording(self, topic: Topic) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            recorder = self._recorder
            if recorder is None or self._failure:
                return
            try:
                recorder.write(topic.name, data, time.time_ns())
            except OutputError as error:
                self._fail(str(error))

        return take

    def _deactivate(self) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        self.stop_serving()
        self._recorder = self._hearing = None
        try:
            recorder.close()
        except OutputError as error:
            self._fail(str(error))
        if not self._failure:
            count = sum(recorder.counts.values())
            self.say("info" if count else "warning", f"recorded {count} messages into {recorder.path}")
            self._said.publish(String(data=str(recorder.path)))

    def _release(self) -> None:
        said, self._said = self._said, None
        if said is not None:
            self.destroy_publisher(said)

    def _fail(self, reason: str) -> None:
        if not self._failure:
            self._failure = reason
            self.get_logger().error(reason)

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        if self._failure:
            return "error", self._failure, {}
        recorder = self._recorder
        if recorder is None:
            return "ok", "not recording", {}
        return "ok", f"recording into {recorder.path}", {**recorder.counts, "lag": recorder.lag}


def further_topics(texts: Iterable[str]) -> list[Heard]:
    """Topics from ``NAME TYPE``.

    :raises ConfigError: for other texts, or a type that is not installed.
    """
    found: list[Heard] = []
    taken = {heard.topic.name for heard in contract_topics()}
    for text in texts:
        words = text.split()
        parts = words[1].split("/") if len(words) == 2 else []
        if len(parts) != 3 or parts[1] != "msg":
            raise ConfigError(f"topics: expected NAME TYPE, as in '/imu sensor_msgs/msg/Imu', found {text!r}")
        try:
            kind = getattr(importlib.import_module(f"{parts[0]}.msg"), parts[2])
        except (ImportError, AttributeError):
            raise ConfigError(f"topics: message type {words[1]} is not installed") from None
        try:
            validate_topic_name(words[0])
        except InvalidTopicNameException as error:
            raise ConfigError(f"topics: {words[0]!r} is no name of a topic: {_first_line(error)}") from None
        name = words[0] if words[0].startswith("/") else f"/{words[0]}"
        if name in taken:
            raise ConfigError(f"topics: {name} stands twice, or is recorded anyway")
        taken.add(name)
        found.append(Heard(Topic(name, words[1]), kind, words[0]))
    return found


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def main() -> int:
    """Run the node until it is told to end."""
    return run(RecorderNode)


if __name__ == "__main__":
    sys.exit(main())
