"""A LeRobot follower whose goals are offset against friction and weight, and a leader that holds its pose."""

from .config_stribeck_follower import StribeckFollowerConfig
from .config_stribeck_leader import StribeckLeaderConfig
from .stribeck_follower import StribeckFollower
from .stribeck_leader import StribeckLeader

__all__ = ["StribeckFollower", "StribeckFollowerConfig", "StribeckLeader", "StribeckLeaderConfig"]
