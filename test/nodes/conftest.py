"""Without rclpy there is nothing to test here but what needs no ROS."""

import importlib.util

HAS_ROS = importlib.util.find_spec("rclpy") is not None
collect_ignore_glob = [] if HAS_ROS else ["*_node.py", "test_commanders.py"]


def pytest_report_header():
    """Say so."""
    return None if HAS_ROS else "rclpy is not installed: the tests of the nodes are left out"
