"""A LeRobot follower whose goals are offset against friction and weight."""

from .config_stribeck_follower import StribeckFollowerConfig
from .stribeck_follower import StribeckFollower

__all__ = ["StribeckFollower", "StribeckFollowerConfig"]
