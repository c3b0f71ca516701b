"""Recording of topics: subscriptions to serialised messages, and the recorder node for other robots."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rclpy.exceptions import InvalidTopicNameException
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from stribeck.errors import ConfigError, OutputError
from stribeck.files.folders import check_writable
from stribeck.live.parameters import RecorderParameters
from stribeck.nodes.base import ServiceNode, run
from stribeck.nodes.messages import telemetry_topics
from stribeck.nodes.qos import has_best_effort_publisher, latched
from stribeck.recordings.bags.messages import (
    BENCH,
    JOINT_COMMANDS,
    JOINT_STATES,
    Topic,
    warm_up,
)
from stribeck.recordings.bags.recorder import BagRecorder

DEPTH = 2000
"""Queue depth of a topic: ten seconds of messages."""

OFFERS_PERIOD = 0.5
"""Period of the search for new best-effort publishers [s]."""


class RecordedTopic(NamedTuple):
    """A topic to record: name in the bag, message type, and name to subscribe to."""

    topic: Topic
    kind: Any
    name: str


def contract_topics() -> list[RecordedTopic]:
    """The topics of the bag contract that this installation can receive."""
    return [
        RecordedTopic(JOINT_STATES, JointState, "joint_states"),
        RecordedTopic(JOINT_COMMANDS, JointState, "joint_commands"),
        RecordedTopic(BENCH, String, "bench"),
        *(RecordedTopic(topic.topic, topic.type, topic.name) for topic in telemetry_topics()),
    ]


class TopicSubscriber:
    """Subscriptions to serialised messages, each reliable if all its publishers are.

    A reliable subscription loses nothing but is incompatible with best-effort publishers. When one appears, only its
    topic is resubscribed as best effort; otherwise latched messages of the other topics would arrive twice.

    :param node: its hot loop serves the subscriptions.
    :param callbacks: callback of each topic.
    """

    def __init__(
        self, node: ServiceNode[Any], callbacks: Mapping[RecordedTopic, Callable[[bytes], None]]
    ) -> None:
        self._node, self._callbacks = node, dict(callbacks)
        self._best_effort = self._best_effort_topics()
        self._subscriptions = {topic: self._subscribe(topic) for topic in self._callbacks}
        node.serve_fast(*self._subscriptions.values())

    def follow_publishers(self) -> None:
        """Resubscribe to topics for which best-effort publishers have appeared."""
        late = self._best_effort_topics() - self._best_effort
        if not late:
            return
        self._best_effort |= late
        subscriptions = self._subscriptions
        self._node.stop_serving(keep=[kept for topic, kept in subscriptions.items() if topic not in late])
        subscriptions |= {topic: self._subscribe(topic) for topic in self._callbacks if topic in late}
        self._node.serve_fast(*subscriptions.values())

    def _best_effort_topics(self) -> set[RecordedTopic]:
        return {topic for topic in self._callbacks if has_best_effort_publisher(self._node, topic.name)}

    def _subscribe(self, topic: RecordedTopic) -> Any:
        qos = latched(DEPTH) if topic.topic.latched else QoSProfile(depth=DEPTH)
        if topic in self._best_effort:
            qos.reliability = ReliabilityPolicy.BEST_EFFORT
        return self._node.hot_subscription(topic.kind, topic.name, self._callbacks[topic], qos)


class RecorderNode(ServiceNode[RecorderParameters]):
    """Records one bag per activation; the latched topic ``~/bag`` holds the path of the last finished bag."""

    parameter_class = RecorderParameters

    def __init__(self, **kwargs: Any) -> None:
        self._recorder: BagRecorder | None = None
        self._failure = ""
        self._subscriber: TopicSubscriber | None = None
        super().__init__("recorder", **kwargs)
        self.steady_timer(OFFERS_PERIOD, self._follow_publishers)

    def _configure(self, parameters: RecorderParameters) -> None:
        self._output, self._prefix = Path(parameters.output).expanduser(), parameters.prefix
        check_writable(self._output / "bag")
        warm_up()
        self._topics = [*contract_topics(), *further_topics(parameters.topics)]
        self._bag = self.managed_publisher(String, "~/bag", latched())

    def _activate(self) -> None:
        self._failure = ""
        self._recorder = BagRecorder.numbered(self._output, self._prefix, [one.topic for one in self._topics])
        # Subscribe anew for each bag, so that latched messages arrive again.
        self._subscriber = TopicSubscriber(self, {one: self._recording(one.topic) for one in self._topics})
        self.get_logger().info(f"recording into {self._recorder.path}")

    def _follow_publishers(self) -> None:
        if self._recorder is not None and self._subscriber is not None:
            self._subscriber.follow_publishers()

    def _recording(self, topic: Topic) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            recorder = self._recorder
            if recorder is None or self._failure:
                return
            try:
                recorder.write(topic.name, data, self.calendar_time())
            except OutputError as error:
                self._fail(str(error))

        return take

    def _deactivate(self) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        self.stop_serving()
        self._recorder = self._subscriber = None
        try:
            recorder.close()
        except OutputError as error:
            self._fail(str(error))
        if not self._failure:
            count = sum(recorder.counts.values())
            self.say("info" if count else "warning", f"recorded {count} messages into {recorder.path}")
            self._bag.publish(String(data=str(recorder.path)))

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


def further_topics(texts: Iterable[str]) -> list[RecordedTopic]:
    """Parse topics from texts ``NAME TYPE``.

    :raises ConfigError: for malformed texts, or a type that is not installed.
    """
    topics: list[RecordedTopic] = []
    taken = {one.topic.name for one in contract_topics()}
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
            raise ConfigError(
                f"topics: {words[0]!r} is not a valid topic name: {str(error).strip().splitlines()[0]}"
            ) from None
        name = words[0] if words[0].startswith("/") else f"/{words[0]}"
        if name in taken:
            raise ConfigError(f"topics: {name} is listed twice, or is always recorded: remove it")
        taken.add(name)
        topics.append(RecordedTopic(Topic(name, words[1]), kind, words[0]))
    return topics


main = partial(run, RecorderNode)


if __name__ == "__main__":
    sys.exit(main())
