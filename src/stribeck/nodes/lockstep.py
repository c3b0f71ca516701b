"""Nodes that may run in lock-step with emulated servos in simulated time, instead of in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from stribeck.nodes.turns import CountedPublisher, Turns
from stribeck.session.timing import SYSTEM_CLOCK, SteadyClock

DEPTH = 1000
"""Queue depth of publishers and subscriptions in lock-step, more than the messages of any turn."""


class LockstepNode:
    """Mixin for nodes that may run in lock-step; before :meth:`join_lockstep` it changes nothing.

    :ivar clock: steady clock of everything that the node does.
    :ivar turns: its turns; ``None`` while it is not in lock-step.
    """

    clock: SteadyClock = SYSTEM_CLOCK
    turns: Turns | None = None

    def join_lockstep(self: Any, path: str, on_error: Callable[[Exception], None]) -> None:
        """Take part in the simulation at a path; before the node creates its publishers and subscriptions.

        :raises ServoError: if there is none.
        """
        self.clock = self.turns = Turns(self, path, on_error)

    def get_clock(self) -> Any:
        """The clock of ROS, which in lock-step is set when it is asked for."""
        clock = super().get_clock()  # type: ignore[misc]
        if self.turns is not None:
            self.turns.show(clock)
        return clock

    def calendar_time(self) -> int:
        """Calendar time [ns]: simulated in lock-step, otherwise the system's."""
        return time.time_ns() if self.turns is None else round(1e9 * self.clock.now())

    def steady_timer(self: Any, period: float, callback: Callable[[], None]) -> Any:
        """A timer on :attr:`clock`; in real time it runs even while a simulated time of ROS is paused."""
        if self.turns is not None:
            return self.turns.timer(period, callback)
        return self.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        """A thread whose clock is :attr:`clock`."""
        if self.turns is not None:
            return self.turns.thread(target, name)
        return threading.Thread(target=target, name=name, daemon=True)

    def create_publisher(self, msg_type: Any, topic: str, qos_profile: Any, **options: Any) -> Any:
        """Create a publisher."""
        create = super().create_publisher  # type: ignore[misc]
        if self.turns is None:
            return create(msg_type, topic, qos_profile, **options)
        options["publisher_class"] = CountedPublisher
        publisher = create(msg_type, topic, _lossless(qos_profile), **options)
        self.turns.publishes(publisher)
        return publisher

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, qos_profile: Any, **options: Any
    ) -> Any:
        """Create a subscription."""
        create = super().create_subscription  # type: ignore[misc]
        if self.turns is None:
            return create(msg_type, topic, callback, qos_profile, **options)
        subscription = create(msg_type, topic, callback, _lossless(qos_profile), **options)
        self.turns.subscribes(subscription)
        return subscription

    def create_client(self, *arguments: Any, **options: Any) -> Any:
        """Create a client."""
        client = super().create_client(*arguments, **options)  # type: ignore[misc]
        if self.turns is not None:
            self.turns.calls(client)
        return client

    def destroy_publisher(self, publisher: Any) -> bool:
        """Destroy a publisher."""
        self._forget(publisher)
        return bool(super().destroy_publisher(publisher))  # type: ignore[misc]

    def destroy_subscription(self, subscription: Any) -> bool:
        """Destroy a subscription."""
        self._forget(subscription)
        return bool(super().destroy_subscription(subscription))  # type: ignore[misc]

    def destroy_client(self, client: Any) -> bool:
        """Destroy a client."""
        self._forget(client)
        return bool(super().destroy_client(client))  # type: ignore[misc]

    def _forget(self, entity: Any) -> None:
        if self.turns is not None:
            self.turns.forget(entity)

    @property
    def subscriptions(self) -> Iterator[Any]:
        """The subscriptions that an executor serves: none in lock-step."""
        yield from super().subscriptions if self.turns is None else ()  # type: ignore[misc]


def _lossless(qos: Any) -> QoSProfile:
    """Quality of service with which no message of a turn is lost."""
    if not isinstance(qos, QoSProfile):
        return QoSProfile(depth=DEPTH)
    depth = qos.depth if qos.durability == DurabilityPolicy.TRANSIENT_LOCAL else DEPTH
    return QoSProfile(depth=depth, durability=qos.durability, reliability=ReliabilityPolicy.RELIABLE)
