"""What the nodes read in each other's diagnostics and results, which are of the type ``diagnostic_msgs/DiagnosticStatus``."""

from typing import Any

FAILED = "cannot "
"""Messages of a node that cannot be configured or activated begin with it."""

DISTURBED = "disturbed"
"""Key of the servo node: whether a fault is one of timing, after which ``~/recover`` works."""


def texts_of(status: Any, key: str) -> list[str]:
    """All values of a key in a ``DiagnosticStatus``, in their order."""
    return [one.value for one in status.values if one.key == key]


def outcome_of(status: Any) -> dict[str, Any]:
    """How a session ended, from ``~/result`` of the excitation node: ``end``, ``reason``, ``bags``, ``cut`` and ``disturbed``."""
    return {
        "end": status.message,
        "reason": "".join(texts_of(status, "reason")),
        "bags": texts_of(status, "bag"),
        "cut": "".join(texts_of(status, "cut")),
        "disturbed": texts_of(status, "disturbed"),
    }
