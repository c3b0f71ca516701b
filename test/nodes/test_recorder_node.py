"""The recorder node on a real graph."""

from pathlib import Path

import pytest
from ros_graph import Graph, wait_for
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from stribeck.nodes.recording import RecorderNode
from stribeck.recordings.bags.storage import read_messages

pytestmark = pytest.mark.real_time


def test_a_publisher_that_comes_later_and_offers_best_effort_is_heard(tmp_path: Path) -> None:
    """However it was subscribed to at first; latched messages of others are in the bag once."""
    with Graph() as graph:
        node = graph.add(RecorderNode, {"output": str(tmp_path), "prefix": "late"})
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        graph.publisher(String, "bench", latched).publish(String(data="{}"))
        wait_for(lambda: node._recorder.counts.get("/bench"), "the latched message")
        weak = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        publisher = graph.publisher(JointState, "joint_states", weak)
        counts = node._recorder.counts

        def recorded() -> bool:
            publisher.publish(JointState(name=["joint"], position=[0.0]))
            return counts.get("/joint_states", 0) >= 5

        wait_for(recorded, "states in the bag")
        node.trigger_deactivate()
    topics = [message.topic.name for message in read_messages(tmp_path / "late_001").messages]
    assert topics.count("/joint_states") >= 5
    assert topics.count("/bench") == 1


@pytest.mark.parametrize(
    ("topic", "part"),
    [
        ("/joint_states sensor_msgs/msg/JointState", "always recorded"),
        ("/b@d sensor_msgs/msg/Imu", "not a valid topic name"),
        ("/imu", "NAME TYPE"),
    ],
)
def test_topics_that_cannot_be_are_refused_before_there_is_a_bag(
    tmp_path: Path, topic: str, part: str
) -> None:
    """Doubled ones would be recorded twice."""
    with Graph() as graph:
        node = graph.add(RecorderNode, {"output": str(tmp_path), "topics": [topic]})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
        assert part in node._failure_of_transition
        assert not list(tmp_path.iterdir())


def test_a_further_topic_is_recorded(tmp_path: Path) -> None:
    """By its name and type."""
    with Graph() as graph:
        options = {"output": str(tmp_path), "prefix": "imu", "topics": ["/imu sensor_msgs/msg/Imu"]}
        node = graph.add(RecorderNode, options)
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        graph.publisher(Imu, "imu").publish(Imu())
        wait_for(lambda: node._recorder.counts.get("/imu"), "the message")
        node.trigger_deactivate()
    assert [message.topic.name for message in read_messages(tmp_path / "imu_001").messages] == ["/imu"]
