"""What the nodes read in each other's diagnostics."""

FAILED = "cannot "
"""Messages of a node that cannot be configured or activated begin with it."""

DISTURBED = "disturbed"
"""Key of the servo node: whether a fault is one of timing, after which ``~/recover`` works."""
