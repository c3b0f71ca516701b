"""The turns of a node in lock-step: what it does in them, on simulated time, and what it reports afterwards.

:mod:`stribeck.emulator.lockstep` describes the turns. In this mode one thread serves everything of a node: messages in a
fixed order, timers, and other threads one at a time while they do not wait for their clock. Subscriptions and publishers of
the node are reliable and deep enough for all messages of a turn, and counted. Publishers and subscribers outside the
simulation may take part in the graph; messages of theirs have no reproducible time.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rclpy.clock_type import ClockType
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.task import Future
from rclpy.time import Time

from stribeck.session.simulation import (
    CALL,
    JOIN,
    MATCH,
    REPORT,
    SERVE,
    TURN,
    Connection,
    Entities,
    TurnThread,
    TurnTimer,
)
from stribeck.session.timing import SimulatedClock

POLL = 0.2
"""Period at which a waiting node looks whether to end [s]."""

OTHERS = 0.5
"""Period at which requests from outside the simulation are served [s]; it costs 10 ms of a busy machine."""

CONNECTING = 0.005
"""Period at which a node looks whether the middleware has connected it [s]."""

SERVING = 0.02
"""Longest time between two looks at the socket while services are served [s]."""

CLOCK_TOPIC = "/clock"


class _Call(NamedTuple):
    """A call of a service that waits for the end of the turn, and the future that its caller has."""

    client: Any
    send: Callable[[Any], Future]
    request: Any
    future: Future


class CountedPublisher(Publisher):
    """A publisher whose messages are counted, and held back until all subscriptions of the simulation are connected.

    :ivar turns: set right after the construction.
    """

    turns: Turns

    def publish(self, msg: Any) -> None:
        """Publish a message, or its serialised form."""
        self.turns.publish(self, msg)

    def publish_now(self, msg: Any) -> None:
        """Publish a message at once."""
        super().publish(msg)


class _Inbox:
    """A subscription, the number of messages expected so far, and the number taken so far."""

    def __init__(self, subscription: Any) -> None:
        self.subscription, self.topic = subscription, subscription.topic_name
        self.expected = self.taken = 0


class Turns(SimulatedClock):
    """The clock of a node in lock-step, and all that the node does in its turns.

    :param node: the node; its clock is set to the same simulated time.
    :param path: of the simulation's socket.
    :param on_error: receives exceptions of callbacks; the node continues.
    :raises ServoError: if there is no simulation.
    """

    def __init__(self, node: Node, path: str, on_error: Callable[[Exception], None]) -> None:
        super().__init__()
        self._node, self._on_error = node, on_error
        self._connection = Connection.to(path)
        self._publishers: list[CountedPublisher] = []
        self._inboxes: list[_Inbox] = []
        self._clients: list[Any] = []
        self._first: list[Any] = []
        self._agenda: list[TurnTimer | TurnThread] = []
        self._outbox: list[tuple[CountedPublisher, bytes]] = []
        self._calls: deque[_Call] = deque()
        self._sent: Counter[str] = Counter()
        self._changed, self._unmatched = True, True
        self._begun = self._left = False
        self._order = 0
        self._planned = math.inf
        self._ending: Callable[[], bool] = lambda: False
        self._looked = time.monotonic()
        with node.context.handle:
            self._waiting = _rclpy.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)
        self._shown = 0.0
        # The topic /clock is for nodes outside the simulation.
        node.set_parameters([Parameter("use_sim_time", value=True)])
        for subscription in list(node.subscriptions):
            if subscription.topic_name == CLOCK_TOPIC:
                node.destroy_subscription(subscription)

    # -- for the node

    def show(self, clock: Any) -> None:
        """Set a clock of ROS to the time of this one."""
        if self._shown != self.now():
            self._shown = self.now()
            clock.set_ros_time_override(
                Time(nanoseconds=round(1e9 * self._shown), clock_type=ClockType.ROS_TIME)
            )

    def sleep(self, seconds: float) -> None:
        """Sleep; only threads of :meth:`thread` have to wait."""
        thread = threading.current_thread()
        if isinstance(thread, TurnThread) and not (thread.free or self._left):
            thread.pause_until(self.now() + max(0.0, seconds))
        else:
            super().sleep(seconds)

    def timer(self, period: float, callback: Callable[[], None]) -> TurnTimer:
        """A periodic timer."""
        timer = TurnTimer(period, callback, self.now() + period)
        self._agenda.append(timer)
        return timer

    def thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        """A thread that takes part in the turns."""
        thread = TurnThread(target, name, self.now())
        self._agenda.append(thread)
        return thread

    def serve_first(self, subscriptions: Sequence[Any]) -> None:
        """Serve these subscriptions before others in every turn, in this order."""
        self._first = list(subscriptions)

    @property
    def unconnected(self) -> bool:
        """Whether messages are held back until all subscriptions of the simulation are connected."""
        return self._changed or self._unmatched

    def publish(self, publisher: CountedPublisher, message: Any) -> None:
        """Publish a message, as soon as all subscriptions of the simulation are connected."""
        if self.unconnected:
            data = message if isinstance(message, bytes) else serialize_message(message)
            self._outbox.append((publisher, data))
        else:
            self._publish_now(publisher, message)

    def _publish_now(self, publisher: CountedPublisher, message: Any) -> None:
        self._sent[publisher.topic_name] += 1
        publisher.publish_now(message)

    def publishes(self, publisher: CountedPublisher) -> None:
        """Count the messages of a publisher."""
        publisher.turns = self
        self._publishers.append(publisher)
        self._changed = True

    def subscribes(self, subscription: Any) -> None:
        """Serve a subscription in turns."""
        self._inboxes.append(_Inbox(subscription))
        self._changed = True

    def calls(self, client: Any) -> None:
        """Let the calls of a client wait for the end of the turn."""
        client.call_async = partial(self._call, client, client.call_async)
        self._clients.append(client)
        self._changed = True

    def _call(self, client: Any, send: Callable[[Any], Future], request: Any) -> Future:
        call = _Call(client, send, request, Future())
        self._calls.append(call)
        return call.future

    def forget(self, entity: Any) -> None:
        """Forget what is being destroyed."""
        self._publishers = [one for one in self._publishers if one is not entity]
        self._inboxes = [one for one in self._inboxes if one.subscription is not entity]
        self._clients = [one for one in self._clients if one is not entity]
        self._outbox = [one for one in self._outbox if one[0] is not entity]
        self._changed = True

    # -- orders

    def spin(self, executor: Any, ending: Callable[[], bool]) -> None:
        """Take part in the simulation until ``ending`` returns true, then leave it.

        :param executor: serves services; subscriptions and timers are served in turns.
        :raises ServoError: if the simulation ends.
        """
        self._ending = ending
        self._connection.send(JOIN, self._node.get_fully_qualified_name())
        # What it has must be known before the first turn: what is due waits until all are connected.
        self._report()
        try:
            while not ending():
                if time.monotonic() - self._looked > OTHERS:
                    self._serve_others(executor)
                if (order := self._connection.receive(POLL)) is not None:
                    self._obey(executor, *order)
        finally:
            self._left = True
            self._connection.close()

    def _serve_others(self, executor: Any) -> None:
        """Serve requests from outside the simulation."""
        self._serve(executor, 0.0)
        self._looked = time.monotonic()
        if self._sent or self._calls or self._changed or self._due != self._planned:
            self._report()

    def _obey(self, executor: Any, number: int, kind: int, *content: Any) -> None:
        self._order = number
        if kind == TURN:
            self._turn(*content)
        elif kind == MATCH:
            self._match(*content)
        elif kind == CALL:
            self._make_calls(executor)
        elif kind == SERVE:
            while not (self._connection.waiting or self._ending()):
                self._serve(executor)
            return
        if not self._ending():
            self._report()

    def _serve(self, executor: Any, patience: float = SERVING) -> None:
        self._guarded(partial(executor.spin_once, timeout_sec=patience))

    def _report(self) -> None:
        entities = None
        if self._changed:
            entities, self._changed, self._unmatched = self._entities(), False, True
        sent, self._sent = dict(self._sent), Counter()
        self._planned = self._due
        self._connection.send(
            REPORT, self._order, self.now(), self._planned, sent, len(self._calls), entities
        )

    @property
    def _due(self) -> float:
        """When something is due [s]; the first turn is due at once, whatever the time is then."""
        if not self._begun:
            return -math.inf
        return min((item.due for item in self._agenda if not item.over), default=math.inf)

    def _entities(self) -> Entities:
        publishes: dict[str, tuple[int, int]] = {}
        for publisher in self._publishers:
            count, kept = publishes.get(publisher.topic_name, (0, 0))
            latched = publisher.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
            depth = publisher.qos_profile.depth if latched else 0
            publishes[publisher.topic_name] = (count + 1, kept + depth)
        subscribes: dict[str, tuple[int, int]] = {}
        for inbox in self._inboxes:
            count, _ = subscribes.get(inbox.topic, (0, 0))
            latched = inbox.subscription.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
            subscribes[inbox.topic] = (count + 1, int(latched))
        node = self._node
        services = tuple(node.resolve_service_name(service.srv_name) for service in node.services)
        return Entities(publishes, subscribes, services)

    # -- turns

    def _turn(self, now: float, news: Mapping[str, int]) -> None:
        """Process messages, then do what is due, as long as everything is connected."""
        if not self._begun:
            self._begun = True
            for item in self._agenda:
                item.due += now - self.now()
        self.move_to(now)
        for callback, message in self._received(news):
            self._guarded(callback, message)
        while not self._changed:
            self._agenda = [item for item in self._agenda if not item.over]
            due = [item for item in self._agenda if item.due <= now]
            if not due:
                break
            self._guarded(min(due, key=lambda item: item.due).act, now)

    def _received(self, news: Mapping[str, int]) -> list[tuple[Callable[[Any], None], Any]]:
        """All messages that were sent before this turn, in an order that does not depend on their arrival."""
        messages = []
        place = {id(subscription): rank for rank, subscription in enumerate(self._first)}
        inboxes = [inbox for inbox in self._inboxes if inbox.topic in news]
        for inbox in sorted(inboxes, key=lambda inbox: place.get(id(inbox.subscription), len(place))):
            inbox.expected += news[inbox.topic]
            subscription = inbox.subscription
            taken = []
            while inbox.taken < inbox.expected and not self._ending():
                if (one := subscription.handle.take_message(subscription.msg_type, True)) is None:
                    self._wait_for(subscription)
                else:
                    taken.append(one)
                    inbox.taken += 1
            if len(taken) > 1:
                taken.sort(key=_place)
            kind = None if subscription.raw else subscription.msg_type
            messages += [
                (subscription.callback, data if kind is None else deserialize_message(data, kind))
                for data, _ in taken
            ]
        return messages

    def _wait_for(self, subscription: Any) -> None:
        with self._node.context.handle, subscription.handle, self._waiting:
            self._waiting.clear_entities()
            self._waiting.add_subscription(subscription.handle)
            self._waiting.wait(round(1e9 * POLL))

    def _guarded(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            callback(*arguments)
        except Exception as error:
            self._on_error(error)

    def _match(
        self, subscriptions: Mapping[str, int], publishers: Mapping[str, int], services: Sequence[str]
    ) -> None:
        """Wait until the middleware has connected this node with all others, then publish what was held back."""
        node = self._node

        def connected() -> bool:
            names = [(client, node.resolve_service_name(client.srv_name)) for client in self._clients]
            return (
                all(
                    one.get_subscription_count() >= subscriptions.get(one.topic_name, 0)
                    for one in self._publishers
                )
                and all(
                    inbox.subscription.get_publisher_count() >= publishers.get(inbox.topic, 0)
                    for inbox in self._inboxes
                )
                and all(client.service_is_ready() for client, name in names if name in services)
            )

        while not (self._ending() or connected()):
            time.sleep(CONNECTING)
        outbox, self._outbox = self._outbox, []
        for publisher, data in outbox:
            self._publish_now(publisher, data)
        self._unmatched = False

    def _make_calls(self, executor: Any) -> None:
        """Call services one after the other and wait for each answer; that of a node that has ended never comes."""
        calls, self._calls = self._calls, deque()
        for call in calls:
            answer = call.send(call.request)
            while not (answer.done() or self._connection.waiting or self._ending()):
                if not call.client.service_is_ready():
                    break
                self._serve(executor)
            if answer.done():
                call.future.set_result(answer.result())


def _place(taken: tuple[bytes, Mapping[str, int]]) -> tuple[int, bytes]:
    """Place of a message among those of one topic: those of one publisher in their order."""
    data, info = taken
    return info.get("publication_sequence_number") or 0, data
