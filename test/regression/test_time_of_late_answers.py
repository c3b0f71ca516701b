"""Times of servo states were wrong on a busy machine: half of the time by which an answer was late.

What happened: the stamp was the middle between request and answer, however far these were apart, as when the process had been
suspended in between; and joints of which one was asked again had one stamp. Positions of moving joints were published with the time of
others. What must happen: an answer whose time is not known to 20 ms is asked for again, and joints that were read at
different times have messages of their own.
"""

from dataclasses import replace

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from driving import config_for, drive, emulated
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.servo.link import LONGEST_INTERVAL
from stribeck.servo.sample import SampleMessages
from virtual_bus import VirtualBus

TYPES = get_typestore(Stores.ROS2_JAZZY)
SPEED = 2.0


def witnessed(servo):
    """Time and position of the servo whenever it is read."""
    readings, read = [], servo.read

    def noted(address, length):
        readings.append((servo.clock, float(servo.state.position)))
        return read(address, length)

    servo.read = noted
    return readings


def states(messages, sample):
    """Names, stamps [ns] and positions of the joints in the messages of a sample."""
    for message in messages(sample):
        if message.topic == JOINT_STATES:
            state = TYPES.deserialize_cdr(message.data, JOINT_STATES.type)
            stamp = state.header.stamp.sec * 10**9 + state.header.stamp.nanosec
            yield from ((name, stamp, q) for name, q in zip(state.name, state.position, strict=True))


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("models", "suspended"),
    [(("xl330", "xl330"), 0.03), (("xl330", "xl330"), 0.09), (("mx106",), 0.1), (("mx106",), 0.25)],
)
def test_positions_are_those_at_the_time_of_their_stamp(monkeypatch, models, suspended):
    """The program is suspended again and again between sending a request and looking for its answer, while all joints move."""
    servos = emulated(*models)
    histories = [witnessed(servo) for servo in servos]
    with VirtualBus(servos) as emulation:
        driver = emulation.driver(config_for(emulation.path, *models, silence_timeout=0.5))
        driver.connect()
        driver.enable()
        messages = SampleMessages(driver.joints, [True] * len(models), clock=driver.clock)
        port, seen, start = driver.bus.port, [], driver.clock.now()
        write, written = port.writePort, [0]

        def suspending(packet):
            sent = write(packet)
            written[0] += 1
            if written[0] % 40 == 0:
                driver.clock.sleep(suspended)
            return sent

        monkeypatch.setattr(port, "writePort", suspending)

        def each(sample):
            seen.extend(states(messages, sample))
            now = driver.clock.now() - start
            driver.set_goals(np.full(len(models), np.sin(SPEED * now)), driver.clock.now())
            return now < 3.0

        driver.run(each)
        assert driver.reason == ""
    offset = messages.stamp(0.0)
    worst = 0.0
    for name, stamp, position in seen:
        time, where = np.array(histories[int(name[1:]) - 1]).T
        worst = max(worst, abs(np.interp(1e-9 * (stamp - offset), time, where) - position))
    assert worst < SPEED * 0.5 * LONGEST_INTERVAL
    assert len(seen) > 100 * len(models)


def test_joints_that_were_read_at_other_times_have_messages_of_their_own():
    """Three joints, the first asked again a tenth of a second later: the others first, with their time; no joint twice."""
    models = ("xl330",) * 3
    with VirtualBus(emulated(*models)) as emulation:
        driver = emulation.driver(config_for(emulation.path, *models))
        driver.connect()
        sample = drive(driver, 0.05)[-1]
        messages = SampleMessages(driver.joints, [True] * 3, clock=driver.clock)
    at = sample.times.max()
    late = replace(sample, times=np.array([at + 0.1, at, at - 0.002]))
    found = list(states(messages, late))
    assert [name for name, _, _ in found] == ["j2", "j3", "j1"]
    assert [stamp for _, stamp, _ in found] == [messages.stamp(at - 0.001)] * 2 + [messages.stamp(at + 0.1)]
    assert len(list(states(messages, sample))) == 3
    assert len({stamp for _, stamp, _ in states(messages, sample)}) == 1
