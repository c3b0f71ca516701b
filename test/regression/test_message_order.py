"""Commands that came while states were served waited until no state was left: each state used an older command.

Replays differed by up to 0.04 N m from `stribeck compensate` on a busy machine; revocations by the guard waited as long.
"""

from types import SimpleNamespace

import pytest


def test_what_arrives_meanwhile_is_served_by_priority():
    """A command that arrives during a state is served before the next state."""
    pytest.importorskip("rclpy", reason="rclpy is not installed: pip install '.[ros]'")
    from stribeck.nodes.hot_loop import HotLoop

    served, queues = [], {"command": [], "state": [b"1", b"2", b"3"]}

    def subscription(name):
        def callback(message):
            served.append((name, message))
            if name == "state":
                queues["command"].append(b"after " + message)

        queue = queues[name]
        handle = SimpleNamespace(take_message=lambda *_: (queue.pop(0), None) if queue else None)
        return SimpleNamespace(handle=handle, callback=callback, msg_type=bytes, raw=True)

    loop = HotLoop.__new__(HotLoop)  # without its thread
    loop._subscriptions = [subscription(name) for name in queues]
    loop._stopping, loop._tick, loop._on_error = False, lambda: None, served.append
    loop._due, loop._period = 0.0, 1.0
    loop._serve(2)
    assert served == [
        (kind, message)
        for number in (b"1", b"2", b"3")
        for kind, message in (("state", number), ("command", b"after " + number))
    ]
