"""A small ROS graph inside a test: nodes in a context of their own, spun in a thread."""

import fcntl
import functools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed: pip install '.[ros]'")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from stribeck.nodes.lockstep import LockstepNode  # noqa: E402
from stribeck.nodes.transport import stay_on_this_machine  # noqa: E402

stay_on_this_machine()  # also for the processes that tests start

_CLAIMED: list[IO[str]] = []
"""Locked files, whose locks end with this process."""

PATIENCE = 60.0
"""Seconds after which a condition that never comes true fails a test."""


@functools.cache
def domain() -> int:
    """A domain that no other process of tests uses while this one runs; benchmarks, soak and demo use 61 to 100."""
    for number in (1 + (os.getpid() + k) % 60 for k in range(60)):
        try:
            file = open(Path(tempfile.gettempdir()) / f"stribeck_test_domain_{number}", "a")  # noqa: SIM115
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # in use, or the file of another user
            continue
        _CLAIMED.append(file)
        return number
    raise AssertionError("all 60 domains for tests are in use")


def told_by(status: Any) -> dict[str, Any]:
    """A DiagnosticStatus as ``state`` and its values, numbers as numbers."""
    told: dict[str, Any] = {"state": status.message}
    for one in status.values:
        try:
            told[one.key] = float(one.value)
        except ValueError:
            told[one.key] = one.value
    return told


def wait_for(condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
    """The first true value of ``condition``; fails with ``what`` if there is none in time."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if found := condition():
            return found
        threading.Event().wait(0.002)
    raise AssertionError(f"after {timeout:g} s still not: {what}")


class User(LockstepNode, Node):
    """The node of a test itself."""


class Graph:
    """Nodes of a test. Use as a context manager."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain())
        self.executor = SingleThreadedExecutor(context=self.context)
        self.nodes: list[Any] = []
        self.user = User("user", context=self.context)
        self.executor.add_node(self.user)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.executor.wake()
        self._thread.join()
        for node in self.nodes:
            node.destroy_node()
        self.user.destroy_node()
        self.executor.shutdown()
        rclpy.shutdown(context=self.context)

    def _spin(self) -> None:
        while not self._stop.is_set():
            self.executor.spin_once(timeout_sec=0.05)

    def add(self, make: Callable[..., Any], parameters: dict[str, Any], **kwargs: Any) -> Any:
        """A node with parameters, spun from now on."""
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        node = make(context=self.context, parameter_overrides=overrides, **kwargs)
        self.nodes.append(node)
        self.executor.add_node(node)
        self.executor.wake()
        return node

    def collect(self, kind: Any, topic: str, qos: Any = 50) -> list[Any]:
        """A list that grows with the messages of a topic."""
        found: list[Any] = []
        self.user.create_subscription(kind, topic, found.append, qos)
        return found

    def publisher(self, kind: Any, topic: str, qos: Any = 50) -> Any:
        """A publisher to which somebody has subscribed."""
        publisher = self.user.create_publisher(kind, topic, qos)
        wait_for(lambda: publisher.get_subscription_count() > 0, f"a subscription to {topic}")
        return publisher

    def call(self, kind: Any, service: str, request: Any, timeout: float = PATIENCE) -> Any:
        """Answer of a service."""
        client = self.user.create_client(kind, service)
        wait_for(client.service_is_ready, f"service {service}")
        future = client.call_async(request)
        wait_for(future.done, f"an answer of {service}", timeout)
        return future.result()
