"""A session on real (or emulated) servos, recorded: the loop between driver, session and bags. No ROS."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from stribeck.core.directive import Aborted, Directive, RunEnded, RunStarted
from stribeck.core.limits import Play
from stribeck.core.log import Setup
from stribeck.core.session import Session
from stribeck.io.actuators import load_actuator
from stribeck.io.bag import BenchDescription
from stribeck.servo.driver import Driver, Sample
from stribeck.servo.record_config import RecordConfig
from stribeck.servo.run_writer import RunWriter

FloatArray = npt.NDArray[np.float64]

HANGING = 0.2
"""A pendulum that hangs further than this [rad] from zero, more than friction holds it, has a wrong zero."""


@dataclass(frozen=True)
class Outcome:
    """How a recording ended.

    :param bags: finished bags.
    :param end: ``finished``, ``interrupted`` by the user, or ``failed``.
    :param reason: why it did not finish, empty if it did.
    :param cut: name of the bag whose run was cut short, empty if none was.
    """

    bags: tuple[Path, ...]
    end: Literal["finished", "interrupted", "failed"]
    reason: str = ""
    cut: str = ""


class Known:
    """The last good measurement of every joint: a lost packet leaves what was known, and its age.

    :param joints: how many there are.
    """

    def __init__(self, joints: int) -> None:
        self.position = np.full(joints, math.nan)
        self.velocity = np.full(joints, math.nan)
        self.temperature = np.full(joints, math.nan)
        self.gain = np.full(joints, math.nan)
        self.torque = np.full(joints, math.nan)
        self._time = np.full(joints, -math.inf)

    def take(self, sample: Sample) -> None:
        """Take in a sample."""
        new = sample.valid
        for name in ("position", "velocity", "temperature"):
            getattr(self, name)[new] = getattr(sample, name)[new]
        self._time[new] = sample.times[new]
        self.gain, self.torque = sample.p_gain, sample.torque_enable

    def arguments(self, now: float) -> dict[str, Any]:
        """Keyword arguments of :meth:`stribeck.core.session.Session.update`."""
        return {
            "positions": self.position,
            "velocities": self.velocity,
            "temperatures": self.temperature,
            "gains": self.gain,
            "torque": self.torque,
            "state_age": float(now - self._time.min()),
        }


class Recording:
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
        self._known = Known(len(session.joints))
        self._goals = np.full(len(session.joints), math.nan)
        self._voltage = np.full(len(session.joints), math.nan)
        self._kp = math.nan
        self._interrupts = 0
        self._reason = self._bag_name = self._cut = ""

    def interrupt(self) -> None:
        """The user wants it to end: softly the first time, at once the second time. For signal handlers."""
        self._interrupts += 1

    def look(self) -> Sample:
        """Read all servos once, torque off: who is there, where, at what supply."""
        for _ in range(5):  # a packet may get lost
            sample = self.driver.cycle()
            self._voltage = np.where(sample.valid, sample.voltage, self._voltage)
            if sample.valid.all():
                break
        return sample

    def run(self) -> Outcome:
        """Play and record everything; torque is off when it returns, whatever happens.

        :raises ServoError: if torque cannot go on.
        """
        writer = RunWriter(self.driver.joints)
        try:
            self.driver.enable()
            self._loop(writer)
        finally:
            self.driver.disable()
            writer.close()
        return self._outcome(writer)

    def _loop(self, writer: RunWriter) -> None:
        period = 1.0 / self.config.driver.rate
        due = time.monotonic()
        while True:
            now = time.monotonic()
            directive = self.session.update(now, **self._known.arguments(now))
            self._follow_events(directive, writer, now)
            self.show(directive)
            if self.session.over:
                return
            self._cycle(directive, writer, now)
            late = time.monotonic()
            due = max(due + period, late - (late - due) % period)
            time.sleep(max(0.0, due - late))

    def _cycle(self, directive: Directive, writer: RunWriter, now: float) -> None:
        """Send goals, read the servos, and look whether the session may go on."""
        if directive.kp != self._kp:
            self.driver.set_gain(directive.kp)
            self._kp = directive.kp
        self.driver.set_goals(directive.goals, now)
        sample = self.driver.cycle(now)
        self._known.take(sample)
        self._goals = np.where(np.isfinite(sample.goal), sample.goal, self._goals)
        writer.add(sample)
        for event in sample.events:
            if event.kind != "fault":  # that is the reason of the end
                self.tell(event.text)
        if sample.state != "on":
            self.session.stop(sample.reason or "the driver switched torque off")
        elif writer.failure:
            self.session.abort(writer.failure)
        elif self._interrupts:
            self._obey_user()

    def _obey_user(self) -> None:
        if self._interrupts > 1:
            self.session.stop("interrupted again: torque off at once")
        else:
            self.session.abort("interrupted by the user")

    def _follow_events(self, directive: Directive, writer: RunWriter, now: float) -> None:
        for event in directive.events:
            match event:
                case RunStarted(play=play):
                    held = (
                        self._goals
                        if np.isnan(directive.goals).any()
                        else np.full_like(self._goals, math.nan)
                    )
                    path = self._path(play)
                    self._bag_name = path.name
                    writer.start(path, self._benches(play, path.name), held, now)
                case RunEnded(reason=reason):
                    writer.end(now)
                    self._cut = self._bag_name if reason is not None else ""
                case Aborted(reason=reason):
                    self._reason = reason
                case _:
                    pass

    def _path(self, play: Play) -> Path:
        """A path that is free: trajectory, gain and time of day."""
        moment = datetime.now().strftime("%Y%m%d_%H%M%S")
        name = f"{play.trajectory.name}_kp{play.kp:g}_{moment}"
        path, number = self.config.output / name, 2
        while path.exists():
            path, number = self.config.output / f"{name}_{number}", number + 1
        return path

    def _benches(self, play: Play, run_id: str) -> Sequence[BenchDescription]:
        return [
            BenchDescription(
                run_id=run_id,
                joint=joint.name,
                actuator=load_actuator(joint.actuator).name,
                trajectory=play.trajectory.name,
                setup=Setup(
                    **bench._asdict(),
                    supply_voltage=self.config.supply_voltage or float(voltage),
                    kp=play.kp,
                    ki=float(joint.servo.i_gain),
                    kd=float(joint.servo.d_gain),
                ),
            )
            for joint, bench, voltage in zip(
                self.config.driver.joints, self.config.session.benches, self._voltage, strict=True
            )
        ]

    def _outcome(self, writer: RunWriter) -> Outcome:
        outcome = Outcome(tuple(writer.bags), "finished", writer.failure or self._reason, self._cut)
        if writer.failure or self.session.phase == "aborted":
            user = self._interrupts and not writer.failure
            return replace(outcome, end="interrupted" if user else "failed")
        return outcome


def hanging_warnings(joints: Sequence[str], position: FloatArray) -> list[str]:
    """What is wrong with the zeros of pendulums that hang, torque off."""
    return [
        f"joint {name!r} hangs at {at:.2f} rad, which should be near 0: set joint_map: offset, or free it"
        for name, at in zip(joints, position, strict=True)
        if abs(at) > HANGING
    ]
