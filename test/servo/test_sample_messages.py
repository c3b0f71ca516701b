"""Messages of the samples of servos."""

from dataclasses import replace

import numpy as np

from driving import config_for, drive, emulated
from stribeck.recordings.bags.messages import DYNAMIC_JOINT_STATES, JOINT_COMMANDS, JOINT_STATES
from stribeck.servo.sample import SampleMessages
from virtual_bus import VirtualBus


def test_messages_that_nobody_hears_are_not_made():
    """The others are the same."""
    with VirtualBus(emulated("xl330", "xl330")) as emulation:
        driver = emulation.driver(config_for(emulation.path, "xl330", "xl330"))
        driver.connect()
        sample = replace(drive(driver, 0.05)[-1], goal=np.zeros(2), goal_stamp=driver.clock.now())
        messages = SampleMessages(driver.joints, [True, True], clock=driver.clock)
    every = [JOINT_COMMANDS, JOINT_STATES, DYNAMIC_JOINT_STATES]
    heard = list(messages(sample))
    assert [one.topic for one in heard] == every
    assert list(messages(sample, [JOINT_COMMANDS])) == heard[1:]
    assert list(messages(sample, [DYNAMIC_JOINT_STATES])) == heard[:2]
    assert list(messages(sample, [JOINT_COMMANDS, DYNAMIC_JOINT_STATES])) == heard[1:2]
