"""Turns of a node in lock-step, which this file orders itself; what it sends back is the same whatever the wall clock says."""

import math
import threading

import pytest
from ros_graph import User, domain, rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from std_msgs.msg import String

from stribeck.nodes.turns import OTHERS
from stribeck.session.simulation import JOIN, MATCH, REPORT, TURN, Connection, short_name, unix_socket

pytestmark = pytest.mark.real_time

PATIENCE = 60.0


class Ordered:
    """A node in a thread, and the connection on which it gets its orders. Use as a context manager.

    :param late: how long ago it looked for requests from outside when it begins to take orders [s].
    """

    def __init__(self, folder, late: float) -> None:
        self._listener = unix_socket()
        with short_name(folder / "simulation") as name:
            self._listener.bind(name)
        self._listener.listen()
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain())
        self._executor = SingleThreadedExecutor(context=self._context)
        self.node = User("one", context=self._context)
        self.errors: list[Exception] = []
        self.node.join_lockstep(str(folder / "simulation"), self.errors.append)
        self.node.turns._looked -= late
        self._executor.add_node(self.node)
        self._connection = Connection(self._listener.accept()[0])
        self._ending = threading.Event()
        self._thread = threading.Thread(
            target=self.node.turns.spin, args=(self._executor, self._ending.is_set)
        )

    def start(self) -> None:
        """Let the node take orders."""
        self._thread.start()

    def order(self, *content: object) -> None:
        """Give an order."""
        self._connection.send(*content)

    def told(self) -> list:
        """The node's next message."""
        message = self._connection.receive(PATIENCE)
        assert message is not None
        return message

    def __enter__(self) -> "Ordered":
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.node.destroy_node()
        self._executor.shutdown()
        rclpy.shutdown(context=self._context)
        self._connection.close()
        self._listener.close()


@pytest.mark.parametrize("late", [0.0, 2.0 * OTHERS])
def test_the_first_turn_does_not_depend_on_how_long_the_others_took(tmp_path, late):
    """The node says what it has when it joins, and does in its first turn what is due; nothing else, however long it waited.

    A node that had waited for half a second told it in between, and was then ahead of the others by a turn.
    """
    acted = []
    with Ordered(tmp_path, late) as one:
        publisher = one.node.create_publisher(String, "words", QoSProfile(depth=1))

        def act() -> None:
            acted.append(one.node.clock.now())
            publisher.publish(String(data="begun"))

        one.node.steady_timer(1.0, act)
        one.start()
        if late:
            one.order(1, TURN, 1500.0, {})  # while it looks for requests from outside
        assert one.told() == [JOIN, "/one"]
        kind, number, _, due, sent, calls, entities = one.told()
        assert (kind, number, due, sent, calls) == (REPORT, 0, -math.inf, {}, 0)
        assert entities[0]["/words"] == [1, 0]
        if not late:
            one.order(1, TURN, 1500.0, {})
        kind, number, now, due, sent, _, entities = one.told()
        assert (kind, number, now, due, sent, entities) == (REPORT, 1, 1500.0, 1501.0, {}, None)
        one.order(2, TURN, 1501.0, {})
        assert one.told()[1:5] == [2, 1501.0, 1502.0, {}]
        one.order(3, MATCH, {}, {}, [])
        assert one.told()[1:5] == [3, 1501.0, 1502.0, {"/words": 1}]
        assert (acted, one.errors) == ([1501.0], [])
