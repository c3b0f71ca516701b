"""Plays and records one excitation session through a commander, in a separate thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import ServoError, StribeckError
from stribeck.model.arrays import Array
from stribeck.nodes.base import Level
from stribeck.nodes.commanders import Commander
from stribeck.nodes.messages import telemetry_topics
from stribeck.nodes.waiting import Waiting
from stribeck.recordings.bags.messages import RawMessage, Topic
from stribeck.recordings.bags.recorder import RunWriter
from stribeck.servo.record import hanging_warnings
from stribeck.servo.sample import ENCODERS
from stribeck.session.bags import Outcome, SessionBags
from stribeck.session.config import SessionConfig
from stribeck.session.directive import Directive, Disturbed
from stribeck.session.session import Session
from stribeck.session.timing import PeriodicLoop
from stribeck.session.watch import JointStateBuffer

EXPLAINED = 1.0
"""How much later than its effect an emergency stop may be heard [s]."""


@dataclass(frozen=True)
class Listener:
    """Callbacks of a player, called from its thread.

    :param announce: receives the texts for ``/bench``.
    :param show: receives every directive; must return quickly.
    :param say: receives log messages.
    :param done: receives the outcome, as the last callback.
    """

    announce: Callable[[str], None]
    show: Callable[[Directive], None]
    say: Callable[[Level, str], None]
    done: Callable[[Outcome], None]


class Player:
    """Plays a session once.

    :param config: the session to play and record.
    :param commander: moves the joints.
    :param topics: topics of the bags; ``None`` to record nothing.
    :param patience: longest time to wait for the commander and for states [s].
    :param allow_overvoltage: record even if the supply exceeds the rated voltage.
    :ivar states: latest joint states, written by the node's subscriptions.
    """

    def __init__(
        self,
        config: SessionConfig,
        commander: Commander,
        listener: Listener,
        *,
        topics: Sequence[Topic] | None,
        patience: float,
        allow_overvoltage: bool,
    ) -> None:
        self.config, self.commander, self.listener = config, commander, listener
        self.session = Session(
            config.plays,
            config.joints,
            releases_torque=commander.releases_torque,
            whole_segments=commander.sends_segments,
            options=config.options,
        )
        self.states = JointStateBuffer(len(config.joints))
        self._writer = None if topics is None else RunWriter[RawMessage](topics, lambda message: (message,))
        self._bags = SessionBags(
            config.output, config.bench_joints, self._writer, config.supply_voltage, listener.announce
        )
        self._bags.first = self._first_messages
        self._telemetry = telemetry_topics()[-1].topic
        self._patience, self._allow_overvoltage = patience, allow_overvoltage
        self._aborts = 0
        self._stopping = ""
        self._halts = False
        self._cancelled = threading.Event()
        self._node, self._clock = commander.node, commander.node.clock
        self._thread = self._node.thread(self._run, "excitation")

    # -- called by the node

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def abort(self) -> None:
        """Bring the joints gently to rest; stop at once when called again."""
        self._aborts += 1
        self._cancelled.set()

    def stop(self, reason: str) -> None:
        """Stop at once, and wait until the session has ended."""
        self._stopping = self._stopping or reason
        self._cancelled.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def emergency_stop(self, reason: str) -> None:
        """Stop at once without waiting: torque off, or no further command."""
        self._halts = True
        self._stopping = self._stopping or reason
        self._cancelled.set()

    def record(self, topic: Topic, data: bytes) -> None:
        """Record a message that has just arrived, if a run is in progress."""
        if topic in ENCODERS:
            self._telemetry = topic
        if self._writer is not None:
            self._writer.add(RawMessage(topic, self._node.calendar_time(), data))

    def sent(self, joint: int, goal: float) -> None:
        """Store the goal of a joint as it was sent [rad]."""
        self._bags.goals[joint] = goal

    # -- in the thread

    def _run(self) -> None:
        try:
            outcome = self._play()
        except StribeckError as error:
            outcome = Outcome((), "interrupted" if self._cancelled.is_set() else "failed", str(error))
        except Exception as error:
            # A bug: the joints have been released, but the node must still be notified of the end.
            outcome = Outcome((), "failed", f"{type(error).__name__}: {error}")
        self.listener.done(outcome)

    def _play(self) -> Outcome:
        waiting = Waiting(self._clock, self._patience, self._cancelled)
        try:
            self.commander.prepare(waiting)
            self._await_states(waiting)
            self._check_supply()
            self.commander.start(waiting)
            self._loop()
        finally:
            self.commander.finish()
            self._bags.close()
        return self._explained(self._bags.outcome(user=self._cancelled.is_set()))

    def _explained(self, outcome: Outcome) -> Outcome:
        """The outcome, and beside its reason an emergency stop that the servos may have heard before this node."""
        late = self._clock.now() + EXPLAINED
        while outcome.end == "failed" and not self._halts and self._clock.now() < late:
            self._clock.sleep(0.02)
        if outcome.end == "finished" or not self._halts or self._stopping in outcome.reason:
            return outcome
        return replace(outcome, end="interrupted", reason=f"{outcome.reason}; {self._stopping}")

    def _await_states(self, waiting: Waiting) -> None:
        """Wait for states of all joints, and store the supply voltage at rest."""
        names = self.commander.names
        waiting.until(
            lambda: np.isfinite(self.states.position).all(),
            lambda: f"no joint_states of {_missing(names, self.states.position)} are received",
            self.commander.check,
        )
        if self.config.supply_voltage is None:
            waiting.until(
                lambda: np.isfinite(self.states.voltage).all(),
                lambda: (
                    f"the supply voltage of {_missing(names, self.states.voltage)} is not known, as no "
                    "telemetry contains it: set supply_voltage in the YAML file named by config"
                ),
                self.commander.check,
            )
        self._bags.voltage = self.states.voltage.copy()
        if self.commander.releases_torque:
            for warning in hanging_warnings(self.config.joints, self.states.position):
                self.listener.say("warning", warning)

    def _first_messages(self, time: int) -> list[RawMessage]:
        """Telemetry for robots that publish none; a fit needs to know that torque is on, as it is throughout."""
        missing = {
            name: {"torque_enable": 1.0}
            for name, torque in zip(self.commander.names, self.states.torque, strict=True)
            if not math.isfinite(torque)
        }
        if self.commander.releases_torque or not missing:
            return []
        encode = ENCODERS[self._telemetry]
        return [RawMessage(self._telemetry, time, encode(self.commander.stamp(), missing))]

    def _check_supply(self) -> None:
        rated_voltage = self.config.rated_voltage or [math.inf] * len(self.commander.names)
        for name, voltage, rated in zip(
            self.commander.names, self.states.voltage, rated_voltage, strict=True
        ):
            if voltage > rated:
                text = f"joint {name!r}: the supply voltage is {voltage:.1f} V, above the servo's rating of {rated:g} V"
                if not self._allow_overvoltage:
                    raise ServoError(f"{text}: lower it, or set allow_overvoltage")
                self.listener.say("warning", text)

    def _loop(self) -> None:
        session, loop = self.session, PeriodicLoop(1.0 / self.config.rate, self._clock)
        kp, until = math.nan, math.inf
        while True:
            self._intervene()
            now = self._clock.now()
            measured = self.states.arguments(now)
            if measured["gains"] is None:  # no telemetry reports them
                measured["gains"] = self.commander.confirmed_gain
            directive = session.update(now, **measured)
            self._bags.follow(directive, self._node.calendar_time())
            self.listener.show(directive)
            for event in directive.events:
                if isinstance(event, Disturbed):
                    self.listener.say("warning", event.text)
            if directive.kp != kp:
                kp = directive.kp
                self.commander.set_gain(kp)
            self.commander.send(directive, session, now)
            if session.over:
                until = min(until, self._rest_of_motion(now))
                if now >= until:
                    return
            loop.wait()

    def _rest_of_motion(self, now: float) -> float:
        """Time at which the last motion of a finished session ends [s], as joints with torque on must come to rest."""
        segment = self.session.plan(1.0)
        return now if segment is None else segment.start + float(segment.time[-1])

    def _intervene(self) -> None:
        """Stop or abort for reasons outside the session."""
        if self._stopping:
            if self._halts:
                self.commander.halt()
            self.session.stop(self._stopping)
        elif problem := self.commander.check():
            self.session.stop(problem)
        elif self._aborts > 1:
            self.session.stop("aborted twice: at once")
        elif self._aborts:
            self.session.abort("aborted by the user")
        elif self._bags.failure:
            self.session.abort(self._bags.failure)
        elif disturbance := self.commander.disturbance:
            if self.session.phase == "recovering":
                self._recover()
            self.session.disturb(disturbance)

    def _recover(self) -> None:
        """Make the robot accept goals again; the session waits for that, and ends if it refuses."""
        try:
            self.commander.recover(Waiting(self._clock, self._patience, self._cancelled))
        except ServoError as error:
            self.session.stop(self._stopping or str(error))


def _missing(names: Sequence[str], values: Array) -> str:
    return ", ".join(name for name, value in zip(names, values, strict=True) if not math.isfinite(value))
