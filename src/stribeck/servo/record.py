"""A session on real (or emulated) servos, recorded: the loop between driver, session and bags. No ROS."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from stribeck.io.messages import BENCH, DYNAMIC_JOINT_STATES, JOINT_COMMANDS, JOINT_STATES
from stribeck.io.run_writer import RunWriter
from stribeck.servo.driver import Driver, DriverSample
from stribeck.servo.record_config import RecordConfig
from stribeck.servo.sample_messages import SampleMessages
from stribeck.session.bags import Outcome, SessionBags
from stribeck.session.directive import Directive
from stribeck.session.joint_state_buffer import JointStateBuffer
from stribeck.session.session import Session

__all__ = ["Outcome", "SessionRecorder", "hanging_warnings"]

FloatArray = npt.NDArray[np.float64]

TOPICS = (BENCH, JOINT_STATES, JOINT_COMMANDS, DYNAMIC_JOINT_STATES)

HANGING = 0.2
"""A pendulum that hangs further than this [rad] from zero, more than friction holds it, has a wrong zero."""


class SessionRecorder:
    """Plays a session through a driver and records every run.

    :param config: what to record.
    :param driver: connected.
    :param tell: takes lines for the user.
    :param show: takes every directive, for a progress display; it must be quick.
    """

    def __init__(
        self,
        config: RecordConfig,
        driver: Driver,
        *,
        tell: Callable[[str], None],
        show: Callable[[Directive], None],
    ) -> None:
        session = config.session
        self.config, self.driver, self.tell, self.show = config, driver, tell, show
        self.session = Session(session.plays, session.joints, releases_torque=True, options=session.options)
        self._known = JointStateBuffer(len(session.joints))
        self._kp = math.nan
        self._interrupts = 0

    def interrupt(self) -> None:
        """The user wants it to end: softly the first time, at once the second time. For signal handlers."""
        self._interrupts += 1

    def look(self) -> DriverSample:
        """Read all servos once, torque off: who is there, where, at what supply."""
        for _ in range(5):  # a packet may get lost
            sample = self.driver.cycle()
            self._known.tell(sample.valid, voltage=sample.voltage[sample.valid])
            if sample.valid.all():
                break
        return sample

    def run(self) -> Outcome:
        """Play and record everything; torque is off when it returns, whatever happens.

        :raises ServoError: if torque cannot go on.
        """
        config = self.config
        messages = SampleMessages(self.driver.joints, [True] * len(self.driver.joints))
        writer = RunWriter(TOPICS, messages)
        bags = SessionBags(config.output, config.bench_joints, writer, config.supply_voltage)
        bags.voltage = self._known.voltage.copy()
        try:
            self.driver.enable()
            self._loop(bags, writer, messages)
        finally:
            self.driver.disable()
            bags.close()
        return bags.outcome(user=self._interrupts > 0)

    def _loop(self, bags: SessionBags, writer: RunWriter[DriverSample], messages: SampleMessages) -> None:
        period = 1.0 / self.config.driver.rate
        due = time.monotonic()
        while True:
            now = time.monotonic()
            directive = self.session.update(now, **self._known.arguments(now))
            bags.follow(directive, messages.stamp(now))
            self.show(directive)
            if self.session.over:
                return
            sample = self._cycle(directive, now)
            writer.add(sample)
            bags.goals = np.where(np.isfinite(sample.goal), sample.goal, bags.goals)
            if writer.failure:
                self.session.abort(writer.failure)
            late = time.monotonic()
            due = max(due + period, late - (late - due) % period)
            time.sleep(max(0.0, due - late))

    def _cycle(self, directive: Directive, now: float) -> DriverSample:
        """Send goals, read the servos, and look whether the session may go on."""
        if directive.kp != self._kp:
            self.driver.set_gain(directive.kp)
            self._kp = directive.kp
        self.driver.set_goals(directive.goals, now)
        sample = self.driver.cycle(now)
        new = sample.valid
        self._known.move(new, sample.times[new], sample.position[new], sample.velocity[new])
        self._known.tell(new, temperature=sample.temperature[new])
        self._known.tell(slice(None), gain=sample.p_gain, torque=sample.torque_enable)
        for event in sample.events:
            if event.kind != "fault":  # that is the reason of the end
                self.tell(event.text)
        if sample.state != "on":
            self.session.stop(sample.reason or "the driver switched torque off")
        elif self._interrupts:
            self._obey_user()
        return sample

    def _obey_user(self) -> None:
        if self._interrupts > 1:
            self.session.stop("interrupted again: torque off at once")
        else:
            self.session.abort("interrupted by the user")


def hanging_warnings(joints: Sequence[str], position: FloatArray) -> list[str]:
    """What is wrong with the zeros of pendulums that hang, torque off."""
    return [
        f"joint {name!r} hangs at {at:.2f} rad, which should be near 0: set joint_map: offset, or free it"
        for name, at in zip(joints, position, strict=True)
        if abs(at) > HANGING
    ]
