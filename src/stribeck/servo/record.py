"""Plays a session on servos and records it in bags, without ROS."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from stribeck.errors import ServoError
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import BENCH, DYNAMIC_JOINT_STATES, JOINT_COMMANDS, JOINT_STATES
from stribeck.recordings.bags.recorder import RunWriter
from stribeck.servo.driver import Driver, DriverSample
from stribeck.servo.port import NoAnswerError
from stribeck.servo.sample import SampleMessages
from stribeck.session.bags import Outcome, SessionBags
from stribeck.session.config import SessionConfig
from stribeck.session.directive import Directive, Disturbed
from stribeck.session.limits import SessionJoint, rest_position
from stribeck.session.session import Session
from stribeck.session.timing import PeriodicLoop
from stribeck.session.watch import JointStateBuffer

__all__ = ["Outcome", "SessionRecorder", "hanging_warnings"]

TOPICS = (BENCH, JOINT_STATES, JOINT_COMMANDS, DYNAMIC_JOINT_STATES)

HANGING = 0.2
"""A pendulum at rest further than this from zero [rad], more than friction can hold, has a wrong zero; a robot, a wrong center."""


class SessionRecorder:
    """Plays a session through a driver and records every run.

    :param config: what to play and record.
    :param driver: connected.
    :param tell: receives lines for the user.
    :param show: receives every directive, for a progress display; it must return quickly.
    """

    def __init__(
        self,
        config: SessionConfig,
        driver: Driver,
        *,
        tell: Callable[[str], None],
        show: Callable[[Directive], None],
    ) -> None:
        self.config, self.driver, self.tell, self.show = config, driver, tell, show
        self.session = Session(config.plays, config.joints, releases_torque=True, options=config.options)
        self._states = JointStateBuffer(len(config.joints))
        self._kp = math.nan
        self._interrupts = 0
        self._emergency = ""

    def interrupt(self) -> None:
        """End the session, smoothly on the first call and at once on the second. For signal handlers."""
        self._interrupts += 1

    def emergency_stop(self, reason: str) -> None:
        """Torque off before anything else is sent. For :attr:`show`; in signal handlers see :meth:`interrupt`."""
        self._emergency = reason

    def look(self) -> DriverSample:
        """Read the positions and supply voltages of all servos once, with torque off."""
        for _ in range(5):  # a packet may get lost
            sample = self.driver.cycle()
            self._states.tell(sample.valid, voltage=sample.voltage[sample.valid])
            if sample.valid.all():
                break
        return sample

    def run(self) -> Outcome:
        """Play and record everything; torque is off when it returns or raises.

        :raises ServoError: if torque cannot be switched on.
        """
        config, driver = self.config, self.driver
        messages = SampleMessages(driver.joints, [True] * len(driver.joints), clock=driver.clock)
        writer = RunWriter(TOPICS, messages)
        bags = SessionBags(config.output, config.bench_joints, writer, config.supply_voltage)
        bags.voltage = self._states.voltage.copy()
        try:
            driver.enable()
            self._loop(bags, writer, messages)
        finally:
            driver.disable()
            bags.close()
        return bags.outcome(user=self._interrupts > 0 or bool(self._emergency))

    def _loop(self, bags: SessionBags, writer: RunWriter[DriverSample], messages: SampleMessages) -> None:
        clock = self.driver.clock
        loop = PeriodicLoop(1.0 / self.driver.config.rate, clock)
        while True:
            now = clock.now()
            directive = self.session.update(now, **self._states.arguments(now))
            bags.follow(directive, messages.stamp(now))
            self.show(directive)
            if self._emergency and not self.session.over:
                self.session.stop(self._emergency)
                continue
            for event in directive.events:
                if isinstance(event, Disturbed):
                    self.tell(event.text)
            if self.session.over:
                return
            if self.session.phase == "recovering" and self.driver.state != "on":
                self._recover()
            sample = self._cycle(directive, now)
            writer.add(sample)
            bags.goals = np.where(np.isfinite(sample.goal), sample.goal, bags.goals)
            if writer.failure:
                self.session.abort(writer.failure)
            loop.wait()

    def _recover(self) -> None:
        """Clear a fault of timing; while servos do not answer the session waits, and ends if that takes too long."""
        try:
            self.driver.recover()
        except NoAnswerError:
            pass
        except ServoError as problem:
            if not self.driver.disturbed:
                self.session.stop(str(problem))

    def _cycle(self, directive: Directive, now: float) -> DriverSample:
        if directive.kp != self._kp:
            self.driver.set_gain(directive.kp)
            self._kp = directive.kp
        self.driver.set_goals(directive.goals, now)
        sample = self.driver.cycle(now)
        new = sample.valid
        self._states.source_alive(now)
        self._states.move(new, sample.times[new], sample.position[new], sample.velocity[new])
        self._states.tell(new, temperature=sample.temperature[new])
        self._states.tell(slice(None), gain=sample.p_gain, torque=sample.torque_enable)
        for event in sample.events:
            if event.kind != "fault":  # a fault is reported as the reason for the end
                self.tell(event.text)
        if self._interrupts > 1:
            self.session.stop("interrupted again: torque off at once")
        elif sample.state == "fault" and sample.disturbed:
            self.session.disturb(sample.reason)
        elif sample.state != "on":
            self.session.stop(sample.reason or "the driver switched torque off")
        elif self._interrupts:
            self.session.abort("interrupted by the user")
        return sample


def hanging_warnings(joints: Sequence[SessionJoint], position: Array) -> list[str]:
    """Warnings about joints that are, with torque off, not where torque will go off at the end."""
    return [
        f"joint {joint.name!r} hangs at {at:.2f} rad, but should hang near 0: set joint_map: offset, or remove what holds it"
        if joint.hangs
        else (
            f"joint {joint.name!r} rests at {at:.2f} rad with torque off, but torque will be switched off at "
            f"its center, {joint.center:.2f} rad: set center to the pose in which it rests"
        )
        for joint, at in zip(joints, position, strict=True)
        if abs(at - rest_position(joint, True)) > HANGING
    ]
