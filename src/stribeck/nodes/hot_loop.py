"""A thread that serves a few subscriptions fast.

rclpy's executors build a new wait set from all entities of a node for every message, which for a
lifecycle node costs more than the compensation of seven joints. This loop builds its wait set once.
It serves subscriptions that their node hides from its executor (:class:`~stribeck.nodes.base.ServiceNode`).
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


class HotLoop:
    """Serves subscriptions in a thread of its own, in the order in which they are given.

    :param node: whose context the subscriptions belong to.
    :param subscriptions: what to serve; their callbacks take the message alone.
    :param tick: called about once per ``period`` [s], between messages.
    :param on_error: told of an exception of a callback; the loop goes on.
    :param lazy: while it says so nothing is waited for: messages are looked for before each tick alone. Waiting costs
        more than taking a message.
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
        """End the thread; what it is doing is finished first."""
        self._stopping = True
        with self._guard:
            self._guard.trigger_guard_condition()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._guard.destroy_when_not_in_use()

    def go_first(self) -> None:
        """Let the process's other threads wait until the loop does.

        Fast DDS wakes a thread of its own for its timers some four times per message, and each time the kernel
        takes the processor from the loop for it: a third of the loop's time. Threads of the policy SCHED_BATCH
        are as important, but interrupt nobody when they wake up (sched(7)); whoever may change nothing, or has
        chosen another policy, keeps what there is.
        """
        if not hasattr(os, "SCHED_BATCH"):
            return
        for thread in map(int, os.listdir("/proc/self/task")):
            if thread == self._thread.native_id:
                continue
            with contextlib.suppress(OSError):  # a thread may have ended since
                if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                    os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))

    def _run(self) -> None:
        handles = [subscription.handle for subscription in self._subscriptions]
        with self._context.handle, self._guard:
            waiting = _rclpy.WaitSet(len(handles), 1, 0, 0, 0, 0, self._context.handle)
            with waiting:
                while not self._stopping and self._context.ok():
                    if self._lazy():
                        time.sleep(max(0.0, self._due - time.monotonic()))
                        for subscription in self._subscriptions:
                            self._serve(subscription)
                        self._tick_when_due()
                        continue
                    waiting.clear_entities()
                    places = [waiting.add_subscription(handle) for handle in handles]
                    waiting.add_guard_condition(self._guard)
                    waiting.wait(max(0, round(1e9 * (self._due - time.monotonic()))))
                    ready = [waiting.is_ready("subscription", place) for place in places]
                    for subscription, is_ready in zip(self._subscriptions, ready, strict=True):
                        if is_ready and not self._stopping:
                            self._serve(subscription)
                    self._tick_when_due()

    def _serve(self, subscription: Any) -> None:
        """Take and handle all messages that wait, so that none is lost to the next wait."""
        while not self._stopping:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                return
            self._guarded(subscription.callback, taken[0])
            self._tick_when_due()

    def _tick_when_due(self) -> None:
        if time.monotonic() >= self._due and not self._stopping:
            self._due = time.monotonic() + self._period
            self._guarded(self._tick)

    def _guarded(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            callback(*arguments)
        except Exception as error:
            # A callback that fails must not end the loop: the owner falls to zero and says why.
            self._on_error(error)
