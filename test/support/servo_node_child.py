"""A servo node that notes the stamp of every state that it publishes, in a file: 8 bytes each [ns].

python servo_node_child.py FILE --ros-args …
"""

import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stribeck.nodes.base import run
from stribeck.nodes.servo import ServoNode
from stribeck.recordings.bags.messages import JOINT_STATES


class NotingPublisher:
    """A publisher of states that notes their stamps first."""

    def __init__(self, publisher: Any, file: Any) -> None:
        self._publisher, self._file = publisher, file

    def publish(self, data: bytes) -> None:
        """Note a state and pass it on."""
        seconds, nanoseconds = struct.unpack_from("<iI", data, 4)
        self._file.write(struct.pack("<q", seconds * 1_000_000_000 + nanoseconds))
        self._publisher.publish(data)

    def get_subscription_count(self) -> int:
        """At least one: states are noted, even if nobody else listens."""
        return max(1, int(self._publisher.get_subscription_count()))


def note_stamps(node: ServoNode, file: Any) -> None:
    """Have a servo node that is configured note the stamps of its states in a binary file."""
    node._topics[JOINT_STATES] = NotingPublisher(node._topics[JOINT_STATES], file)


class NotingServoNode(ServoNode):
    """A servo node that does so by itself."""

    def _configure(self, values: Mapping[str, Any]) -> None:
        super()._configure(values)
        note_stamps(self, FILE)


if __name__ == "__main__":
    with Path(sys.argv[1]).open("wb", buffering=0) as FILE:
        sys.exit(run(NotingServoNode))
