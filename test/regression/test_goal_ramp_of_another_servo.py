"""What happened: the description of the STS3250 had the goal ramp of the STS3215, 5.2 rad/s, but follows goals at 8.6 rad/s. What must happen: it has none."""

import math

import numpy as np

from helpers import STS3250, needs_sts3250
from stribeck.files.actuators import load_actuator
from stribeck.recordings.sources import read_recordings


@needs_sts3250
def test_recorded_goals_are_followed_faster_than_no_ramp_of_the_description_allows():
    """Over 0.1 s of position control the joint moves faster than the STS3215's ramp, and not faster than its own description lets it."""
    own, other = load_actuator("sts3250").control, load_actuator("sts3215").control
    fastest = 0.0
    for log in read_recordings(STS3250, arm_mass=0.0):
        time = np.arange(log.position.time[0], log.position.time[-1], 0.02)
        position = np.interp(time, log.position.time, log.position.value)
        enabled = np.interp(time, log.torque_enable.time, log.torque_enable.value) > 0.99
        speed = np.abs(position[5:] - position[:-5]) / 0.1
        fastest = max(fastest, float(np.max(speed[enabled[5:] & enabled[:-5]], initial=0.0)))
    assert fastest > 1.4 * other.goal_speed
    assert (own.goal_speed or math.inf) > fastest
