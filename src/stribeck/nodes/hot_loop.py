"""A thread that serves a few subscriptions with low latency.

rclpy's executors build a new wait set from all entities of a node for every message, which for a lifecycle node costs
more than compensating seven joints. This loop builds its wait set once. It serves subscriptions that the node hides from
its executor (:class:`~stribeck.nodes.base.ServiceNode`).

Comparison with rclpy.experimental.EventsExecutor (Jazzy, rclpy 7.1.5): six alternating pairs of runs with 7 joints at 1
kHz for 8 s on two loaded cores. Medians of this loop and of EventsExecutor: 0 and 28 of 8000 states lost, round trip p50
0.50 and 0.59 ms, p99 7 and 25 ms, time in the node p50 199 and 233 µs, CPU load 32 and 33 % of a core. EventsExecutor
does not prioritise subscriptions either.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node

from stribeck.live.floating_point import ignore_warnings


class HotLoop:
    """Serves subscriptions in a separate thread.

    :param node: owner of the subscriptions.
    :param subscriptions: subscriptions in order of priority; their callbacks take only the message.
    :param tick: called about once per ``period`` [s], between messages.
    :param on_error: receives exceptions of callbacks; the loop continues.
    :param lazy: while it returns true, messages are only taken before each tick, which is cheaper than waiting for them.
    """

    def __init__(
        self,
        node: Node,
        subscriptions: Sequence[Any],
        tick: Callable[[], None],
        period: float,
        on_error: Callable[[Exception], None],
        lazy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._tick, self._period, self._lazy = tick, period, lazy
        self._context = node.context
        self._subscriptions = list(subscriptions)
        self._on_error = on_error
        self._guard = _rclpy.GuardCondition(self._context.handle)
        self._stopping = False
        self._due = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="hot loop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current callback."""
        self._stopping = True
        with self._guard:
            self._guard.trigger_guard_condition()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._guard.destroy_when_not_in_use()

    def prioritise(self) -> None:
        """Keep the other threads of the process from preempting the loop.

        Fast DDS wakes a timer thread about four times per message; preemption by it takes a third of the loop's time.
        Threads with policy SCHED_BATCH have the same share of the processor but do not preempt when they wake up
        (sched(7)). Threads with a policy other than the default keep it.
        """
        if not hasattr(os, "SCHED_BATCH"):
            return
        for thread in map(int, os.listdir("/proc/self/task")):
            if thread == self._thread.native_id:
                continue
            with contextlib.suppress(OSError):  # a thread may have ended in the meantime
                if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                    os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))

    def _run(self) -> None:
        ignore_warnings()
        handles = [subscription.handle for subscription in self._subscriptions]
        with self._context.handle, self._guard:
            waiting = _rclpy.WaitSet(len(handles), 1, 0, 0, 0, 0, self._context.handle)
            with waiting:
                while not self._stopping and self._context.ok():
                    if self._lazy():
                        time.sleep(max(0.0, self._due - time.monotonic()))
                        self._serve(len(self._subscriptions))
                        self._tick_when_due()
                        continue
                    waiting.clear_entities()
                    places = [waiting.add_subscription(handle) for handle in handles]
                    waiting.add_guard_condition(self._guard)
                    waiting.wait(max(0, round(1e9 * (self._due - time.monotonic()))))
                    ready = [place for place in places if waiting.is_ready("subscription", place)]
                    self._serve(max(ready, default=-1) + 1)
                    self._tick_when_due()

    def _serve(self, count: int) -> None:
        """Serve the first subscriptions until nothing is left; after each message, begin with the first again.

        Otherwise many messages of one would hold up those of higher priority that arrive meanwhile. To look in vain costs
        2 µs.
        """
        place = 0
        while place < count and not self._stopping:
            subscription = self._subscriptions[place]
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                place += 1
                continue
            self._guarded(subscription.callback, taken[0])
            self._tick_when_due()
            place = 0

    def _tick_when_due(self) -> None:
        if time.monotonic() >= self._due and not self._stopping:
            self._due = time.monotonic() + self._period
            self._guarded(self._tick)

    def _guarded(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            callback(*arguments)
        except Exception as error:
            # A failing callback must not end the loop; the owner sets the torque to zero and reports the error.
            self._on_error(error)
