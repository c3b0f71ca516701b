"""An excitation session: plays trajectories on joints, with slow motion in between, and stops on errors.

A state machine without I/O: measurements go in, goals and events come out. The program that drives the servos or
publishes commands calls :meth:`Session.update` in every cycle and sends the result.

A session goes through these phases::

    waiting -> enabling -> gain -> approaching -> settling -> running -> braking -> returning -> resting
                 ^          ^                                    |                                 |
                 |          +------------ next play -------------|---------------------------------+
                 +--- next play --- swinging <-- torque went off-+             after the last: finished

    disturbed timing: any phase after waiting -> recovering -> swinging or returning -> the same play again

``enabling`` holds the measured position to avoid a jump when torque goes on. ``braking`` decelerates the goal from the
velocity at the end of a run. ``swinging`` waits with torque off until a pendulum hangs at rest. The trajectory time of
a run is the time since its first goal was sent, whatever the timing of the loop.

Late states, lost answers and a loop that stood still disturb a run without being dangerous: torque goes off, or the
joints brake and hold, and once states are in time again the run is repeated, a few times at most. Limits, following
errors, temperatures and :meth:`Session.stop` end the session.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stribeck.session.directive import (
    Aborted,
    Directive,
    Disturbed,
    Finished,
    Phase,
    Plan,
    Recorded,
    RunEnded,
    RunStarted,
    SessionEvent,
    SessionOptions,
)
from stribeck.session.limits import Play, SessionJoint, check_plays, rest_position
from stribeck.session.motion import (
    Brake,
    Following,
    Glide,
    GoalMotion,
    Hold,
    braking,
    estimated_duration,
    sampled,
)
from stribeck.session.watch import Debounce, Measurement, Recovery, RestDetector, Trusted, lateness

GAIN_TOLERANCE = 0.5
"""Tolerance for comparing gains, which are integers in the firmware."""

AFTER_RUN = ("braking", "returning", "resting", "swinging")
"""Phases in which the run of the present play is complete, unless it is to be repeated."""


class Session:
    """Executes a list of plays on one or several joints.

    :param plays: runs, in this order.
    :param joints: the joints and their limits.
    :param releases_torque: whether torque may go off (a servo on a bench). The session then rests at 0 rad, hanging,
        and ends with torque off; otherwise it rests at each joint's center and ends holding it.
    :param whole_segments: whether the robot receives motion segments whole (:meth:`plan`). It then goes on with one while
        this program stands still, so a stop begins where the segment is by then; otherwise at the last goal sent.
    :param options: speeds and times.
    :ivar phase: the current phase.
    :ivar duration: estimated duration of the session [s].
    :raises ConfigError: for plays that exceed limits (:func:`~stribeck.session.limits.check_plays`).
    """

    def __init__(
        self,
        plays: Sequence[Play],
        joints: Sequence[SessionJoint],
        *,
        releases_torque: bool,
        whole_segments: bool = False,
        options: SessionOptions | None = None,
    ) -> None:
        check_plays(plays, joints, releases_torque=releases_torque)
        self.plays, self.joints = tuple(plays), tuple(joints)
        self.releases_torque, self._whole_segments = releases_torque, whole_segments
        self.options = options or SessionOptions()
        self._rest = np.array([rest_position(joint, releases_torque) for joint in joints])
        limits = [joint.limits for joint in joints]
        self._lower, self._upper = np.array([(one.position_lower, one.position_upper) for one in limits]).T
        self._deceleration = np.array([limit.acceleration for limit in limits])
        self._soft = (
            np.minimum([limit.velocity for limit in limits], self.options.soft_speed),
            np.minimum(self._deceleration, self.options.soft_acceleration),
        )
        self._estimates = [
            estimated_duration(play, joints, self._rest, self._soft, self.options) for play in self.plays
        ]
        self.duration = sum(self._estimates)
        self.phase: Phase = "waiting"
        self._play = self._segment = 0
        self._since = self._play_since = self._now = math.nan
        self._motion: GoalMotion = self._off()
        self._sent = self._motion.position(0.0)
        self._events: list[SessionEvent] = []
        self._ending: str | None = None
        self._disturbances = 0
        self._repeats = self._brakes_next = False
        self._recovery = Recovery(self.options.recovery_time, self.options.recovery_timeout)
        self._resting = RestDetector(self.options.rest_speed, self.options.rest_distance)
        self._following = Debounce(self.options.following_time)
        self._torque = Debounce(self.options.following_time)
        self._trusted = Trusted(joints, self.options.position_margin, self.options.alarm_time)

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self.phase in ("finished", "aborted")

    def abort(self, reason: str) -> None:
        """End the run, return the joints to rest and switch torque off; no effect if already ending or over."""
        if self._ending is None and not self.over:
            self._ending = reason

    def stop(self, reason: str) -> None:
        """End the session with the next directive: torque off, or a stop at the present position."""
        if not self.over:
            self._stop(reason)

    def disturb(self, reason: str) -> None:
        """Repeat the present run, as its timing was disturbed; end the session if that has happened too often.

        No effect while the session waits for states or recovers, or when it is over.
        """
        if self.phase not in ("waiting", "recovering") and not self.over:
            self._disturb(reason)

    def plan(self, step: float) -> Plan | None:
        """The current motion segment as points ``step`` [s] apart, or ``None`` while it holds a position.

        Programs that send whole segments send one whenever ``Directive.segment`` has changed.
        """
        return sampled(self._motion, self._since, step, (self._lower, self._upper))

    def begin(self, now: float) -> float:
        """Let a motion from rest begin at ``now``, when it is ready to be sent, and return its start; a stop begins when it is due."""
        if self._motion.duration <= 0.0:
            return now
        if not isinstance(self._motion, Brake):
            self._since = max(now, self._since)
        return self._since

    def update(
        self,
        now: float,
        positions: npt.ArrayLike,
        velocities: npt.ArrayLike | None = None,
        temperatures: npt.ArrayLike | None = None,
        *,
        state_age: npt.ArrayLike = 0.0,
        source_age: float = math.nan,
        gains: npt.ArrayLike | None = None,
        torque: npt.ArrayLike | None = None,
    ) -> Directive:
        """Return the directive at ``now``. Measurements are (J,), or one number for all joints.

        :param now: a steady clock [s].
        :param positions: measured [rad].
        :param velocities: measured [rad/s]; NaN or ``None`` where unknown.
        :param temperatures: [°C]; NaN or ``None`` where unknown.
        :param state_age: age of the measurements [s].
        :param source_age: time since their source has sent anything [s]; NaN where unknown.
        :param gains: gains reported by the servos, NaN while unknown; ``None`` if none reports them: a new gain is
            then assumed after a pause.
        :param torque: 1 where the servo reports that torque is on, else 0; ``None`` where unknown.
        """
        signals = (positions, velocities, temperatures, state_age, torque)
        measured = Measurement.of(len(self.joints), signals, source_age, gains)
        if math.isnan(self._now):
            self._since = self._now = now
        self._brake_if_due(now)
        if not self.over:
            self._react(now, measured)
        self._now = max(now, self._now)
        self._brake_if_due(self._now)
        return self._directive(self._now)

    # Stopping.

    def _react(self, now: float, measured: Measurement) -> None:
        if self.phase == "recovering" and not self._in_time_again(now, measured):
            return
        if (doubt := self._doubt(now, measured)) is not None:
            self._stop(doubt)
            return
        if (late := self._late(now, measured)) is not None:
            self._disturb(late)
            return
        if self.phase == "waiting" and not measured.complete(self.options.state_timeout):
            self._now = now
            return
        trusted, problem = self._trusted.update(now, measured)
        if problem is not None:
            self._stop(problem)
            return
        if trusted is not None:
            blocked = self._not_following(now, trusted)
            if blocked is not None:
                self._stop(blocked, Hold(trusted.position))
                return
            self._resting.update(now, trusted)
            if self._ending is not None:
                self._begin_ending(now, self._ending)
            while not self.over and self._step(now, trusted):
                pass
        self._now = now

    def _doubt(self, now: float, measured: Measurement) -> str | None:
        """Reason why the session cannot begin, or its time is not to be trusted; or ``None``."""
        options = self.options
        if self.phase == "waiting":
            late = now - self._since > options.start_timeout and not measured.complete(options.state_timeout)
            return f"no joint states were received for {options.start_timeout:g} s" if late else None
        return f"the clock went back by {self._now - now:.3g} s" if now < self._now else None

    def _late(self, now: float, measured: Measurement) -> str | None:
        """What disturbs the timing, or ``None``."""
        timeout, interval = self.options.state_timeout, now - self._now
        return None if self.phase == "waiting" else lateness(measured, self.joints, timeout, interval)

    def _in_time_again(self, now: float, measured: Measurement) -> bool:
        """Whether loop and states are in time, while recovering; stops the session if they are not for too long."""
        timeout = self.options.state_timeout
        in_time = now - self._now <= timeout and measured.complete(timeout)
        self._now = max(now, self._now)
        if problem := self._ending or self._recovery.update(now, in_time):
            self._stop(problem, disturbed=self._ending is None)
        return in_time and not problem

    def _not_following(self, now: float, measured: Measurement) -> str | None:
        """Reason why a joint does not follow its goal, or ``None``."""
        error = np.abs(self._sent - measured.position)  # NaN, hence no error, where torque is off
        allowed = np.array([joint.limits.following_error for joint in self.joints])
        late = self._following.update(now, error > allowed)
        if late is not None:
            return (
                f"joint {self.joints[late].name!r} has been {error[late]:.3g} rad from its goal for more than "
                f"{self.options.following_time:g} s; the limit is {allowed[late]:g} rad"
            )
        lost = self._torque.update(now, np.isfinite(self._sent) & (measured.torque == 0.0))
        return None if lost is None else f"joint {self.joints[lost].name!r} switched its torque off"

    def _stop(self, reason: str, hold: Hold | None = None, *, disturbed: bool = False) -> None:
        """Switch torque off or, where it must stay on, decelerate from the last goal and hold.

        :param hold: goals to hold immediately instead, because a blocked joint must not be pushed further.
        """
        self._cut_short("aborted", reason, hold, disturbed)
        self._events.append(Aborted(reason, late=disturbed))

    def _disturb(self, reason: str) -> None:
        """Stop in the same way, and recover; or for good, if the play was disturbed too often or the session ends."""
        allowed, play = self.options.repetitions, self.plays[self._play]
        self._disturbances += 1
        self._repeats |= self.phase not in AFTER_RUN
        recording: Recorded = (
            "given up" if self.phase == "running" else "not begun" if self._repeats else "kept"
        )
        event = Disturbed(play, self._play, reason, self._disturbances, allowed, recording)
        if self._ending is not None or self._disturbances > allowed:
            self._stop(f"{self._ending}; {reason}" if self._ending else event.last_text, disturbed=True)
            return
        self._recovery.start(self._now, reason)
        self._cut_short("recovering", reason, None, True)
        self._events.append(event)

    def _cut_short(self, phase: Phase, reason: str, hold: Hold | None, disturbed: bool) -> None:
        if self.phase == "running":
            self._events.append(RunEnded(self.plays[self._play], self._play, reason, disturbed))
        self._brakes_next = False
        if self.releases_torque:
            self._move(phase, self._now, self._off())
        elif hold is None and self._whole_segments:
            self._brakes_next = self._move(phase, self._since, self._motion)
        else:
            self._move(phase, self._now, hold or self._braking(self._now - self._since))

    def _brake_if_due(self, now: float) -> None:
        """Begin a stop where the segment is now, as the robot has gone on with it."""
        if self._brakes_next:
            self._brakes_next, at = False, max(now, self._now)
            self._move(self.phase, at, self._braking(at - self._since))

    def _off(self) -> Hold:
        return Hold(np.full(len(self.joints), math.nan))

    def _braking(self, time: float) -> Brake:
        return braking(self._motion, time, self._deceleration)

    def _begin_ending(self, now: float, reason: str) -> None:
        """After :meth:`abort`, leave the current phase and return to rest."""
        match self.phase:
            case "waiting":
                self._end("aborted", Aborted(reason), now)
            case "running":
                self._end_run(now, reason)
            case "enabling" | "gain" | "approaching" | "settling":
                self._move("braking", now, self._braking(now - self._since))
            case _:
                pass  # already returning

    # The phases.

    def _step(self, now: float, measured: Measurement) -> bool:
        """Enter the next phase if due; return whether to check for a further one at once."""
        elapsed, options = now - self._since, self.options
        end, done = self._since + self._motion.duration, elapsed >= self._motion.duration
        match self.phase:
            case "waiting":
                return measured.complete(options.state_timeout) and self._begin_play(now, measured)
            case "enabling":
                return elapsed >= options.enable_time and self._move("gain", now, self._motion)
            case "gain":
                return self._gain_is_set(elapsed, measured) and self._approach(now)
            case "approaching":
                return done and self._move("settling", end, self._held())
            case "settling":
                return self._rested(elapsed, options.rest_time, options.settle_timeout) and self._run(now)
            case "running":
                return done and self._end_run(end, None)
            case "braking":
                here = self._motion.position(self._motion.duration)
                return done and self._move("returning", end, Glide.within(here, self._rest, *self._soft))
            case "returning":
                return done and self._move("resting", end, self._held())
            case "resting":
                rested = self._rested(elapsed, options.rest_time, options.settle_timeout)
                return rested and self._next(now, measured)
            case "swinging":
                rested = self._rested(elapsed, options.swing_time, options.swing_timeout)
                return rested and self._next(now, measured)
            case "recovering":
                return done and self._recovery.complete(now) and self._recovered(now)
            case _:
                return False

    def _move(self, phase: Phase, at: float, motion: GoalMotion) -> bool:
        """Enter a phase and its motion, which started at ``at``."""
        self.phase, self._since = phase, at
        if motion is not self._motion:
            self._motion = motion
            self._segment += 1
        self._resting.restart()
        return True

    def _held(self) -> GoalMotion:
        return Hold(self._motion.position(self._motion.duration))

    def _rested(self, elapsed: float, wanted: float, timeout: float) -> bool:
        return elapsed >= timeout or self._resting.lasts(wanted)

    def _begin_play(self, now: float, measured: Measurement) -> bool:
        """Switch torque on by holding the measured position."""
        self._play_since = now if math.isnan(self._play_since) else self._play_since
        return self._move("enabling", now, Hold(np.clip(measured.position, self._lower, self._upper)))

    def _gain_is_set(self, elapsed: float, measured: Measurement) -> bool:
        if measured.gain is None:
            return elapsed >= self.options.gain_time
        wanted = self.plays[self._play].kp
        wrong = np.flatnonzero(~(np.abs(measured.gain - wanted) <= GAIN_TOLERANCE))
        if wrong.size and elapsed > self.options.gain_timeout:
            name, reported = self.joints[wrong[0]].name, measured.gain[wrong[0]]
            found = "not confirmed" if math.isnan(reported) else f"reported as {reported:g}"
            limit = self.options.gain_timeout
            self._stop(
                f"the gain of joint {name!r} was set to {wanted:g}, but after {limit:g} s it is {found}"
            )
        return not wrong.size

    def _approach(self, now: float) -> bool:
        here = self._motion.position(now - self._since)
        first = Following(self.plays[self._play].trajectory, self.joints).position(0.0)
        target = np.where(np.isnan(first), self._rest, first)
        return self._move("approaching", now, Glide.within(here, target, *self._soft))

    def _recovered(self, now: float) -> bool:
        """Return to rest, from where the play begins."""
        if self.releases_torque:
            return self._move("swinging", now, self._motion)
        here = self._motion.position(self._motion.duration)
        return self._move("returning", now, Glide.within(here, self._rest, *self._soft))

    def _run(self, now: float) -> bool:
        self._repeats = False
        self._events.append(RunStarted(self.plays[self._play], self._play))
        return self._move("running", now, Following(self.plays[self._play].trajectory, self.joints))

    def _end_run(self, at: float, reason: str | None) -> bool:
        self._events.append(RunEnded(self.plays[self._play], self._play, reason))
        time = at - self._since
        if np.isnan(self._motion.position(time)).any():
            return self._move("swinging", at, self._off())
        return self._move("braking", at, self._braking(time))

    def _next(self, now: float, measured: Measurement) -> bool:
        if self._ending is not None:
            return self._end("aborted", Aborted(self._ending), now)
        if not self._repeats:
            if self._play + 1 == len(self.plays):
                return self._end("finished", Finished(), now)
            self._play, self._play_since, self._disturbances = self._play + 1, now, 0
        if self.phase == "swinging":
            return self._begin_play(now, measured)
        return self._move("gain", now, self._motion)

    def _end(self, phase: Phase, event: SessionEvent, now: float) -> bool:
        self._events.append(event)
        return self._move(phase, now, self._off() if self.releases_torque else self._motion)

    # Output.

    def _directive(self, now: float) -> Directive:
        self._sent = np.clip(self._motion.position(now - self._since), self._lower, self._upper)
        events, self._events = tuple(self._events), []
        done, total = self._done(now), self.duration
        return Directive(
            goals=self._sent,
            kp=self.plays[self._play].kp,
            events=events,
            phase=self.phase,
            play=self._play,
            progress=min(1.0, done / total),
            remaining=0.0 if self.over else max(0.0, total - done),
            segment=self._segment,
        )

    def _done(self, now: float) -> float:
        """Elapsed part of the estimated duration [s]; a play counts for at most its estimate."""
        if self.phase == "finished":
            return self.duration
        elapsed = 0.0 if math.isnan(self._play_since) else now - self._play_since
        return sum(self._estimates[: self._play]) + min(elapsed, self._estimates[self._play])
