r"""Measured time from the goals of position servos to their positions, by least squares.

A servo that pulls its joint to a goal of a time T before, :math:`J\ddot q = K(\theta(t - T) - q) - D\dot q - F`, follows it with

.. math:: \theta(t - T) = q + \frac{D}{K}\dot q + \frac{J}{K}\ddot q + c\,\mathrm{sign}\,\dot q + o,

with K, D and J of the parameter file (D: viscous friction and what the firmware brakes with velocity), while c and o are free: friction, weight, bias.
Both sides pass the same low-pass filter of third order, from whose stages the derivatives follow. Samples count while a joint
moves on in one direction. For each T of a grid the residual sum of squares S(T) follows from sums; T is its minimum, and with residuals
that are correlated over :math:`t_c`, in a motion of time W,

.. math:: \mathrm{var}\,T = \frac{2\,t_c}{S''(T)}\,\frac{S(T)}{W - 2 t_c}.

A damping that the file does not contain (back-EMF, say) appears as D/K more: T is then too large, not too small. In a slow motion it cannot be told
from a delay.
"""

from __future__ import annotations

import math

import numpy as np

from stribeck.model.arrays import Array, Mask

LONGEST = 0.4
"""Longest delay that is measured [s]."""

SPACING = 0.01
"""Of the grid of delays [s]."""

PERIOD = 0.005
"""Shortest period of samples [s]."""

GAP = 0.1
"""Longest period of samples; after a longer one the motion is forgotten [s]."""

RATE = 20.0
"""Of each stage of the filter [1/s]."""

SLOWEST = 0.03
"""Slower joints may stick [rad/s]."""

SETTLED = 0.15
"""After a reversal, samples do not count for this long [s]."""

MEMORY = 20.0
"""Time constant of forgetting, in motion [s]."""

CORRELATED = 0.2
"""Correlation time of the residuals [s]."""

LEAST_MOTION = 2.0
"""Motion before which nothing is concluded [s]."""

WIDEST = 0.01
"""Half-width of the 95 % interval beyond which a delay is not identified [s]."""

NORMAL = 1.96
"""Half-width of the 95 % interval in standard deviations [1]."""

CONCLUDED = 0.25
"""Period of conclusions [s]."""

DELAYS: Array = np.arange(round(LONGEST / SPACING) + 1, dtype=np.float64) * SPACING
KEPT = round(LONGEST / PERIOD) + 4
STAGES = 3


class GoalLatency:
    """Delays of the goals of n joints, in the coordinates of the parameter files."""

    def __init__(self, joints: int) -> None:
        n, grid = joints, len(DELAYS)
        self._alternating, self._square = np.zeros((2, n))
        """Sums of the sign of motion, and of the time (n,) [s]."""
        self._signed, self._plain, self._squares = np.zeros((3, grid, n))
        """Sums over the products of what is left of a goal with the sign, 1 and itself (delays, n)."""
        self.delay: Array = np.full(n, math.nan)
        """From a goal to the position, NaN where not identified (n,) [s]."""
        self.half_width: Array = np.full(n, math.inf)
        """Of its 95 % interval (n,) [s]."""
        self._period = 0.0
        self.restart()

    def restart(self) -> None:
        """Forget the motion but keep what was measured."""
        n = self._square.shape[0]
        self._stamp = -math.inf
        self._position, self._goal = np.zeros((2, STAGES, n))
        self._times: Array = np.full(KEPT, -math.inf)
        self._goals: Array = np.zeros((KEPT, n))
        self._covered, self._since_concluded = 0.0, 0.0
        self._direction, self._since = np.zeros((2, n))

    @property
    def largest(self) -> float:
        """Largest delay that was identified, 0 if none was [s]."""
        return max((delay for delay in self.delay.tolist() if delay == delay), default=0.0)

    def due(self, stamp: float) -> bool:
        """Whether a state is late enough after the last one that counted, or not after it."""
        return not 0.0 <= stamp - self._stamp < PERIOD - 1e-9

    def update(
        self, stamp: float, position: Array, goal: Array, lag: Array, bend: Array, age: float = 0.0
    ) -> None:
        """Take in a state and the goal sent in response.

        :param goal: with all offsets [rad].
        :param lag: D/K of each joint [s].
        :param bend: J/K of each joint [s²].
        :param age: of the goal [s].
        """
        elapsed = stamp - self._stamp
        if not (0.0 <= elapsed <= GAP and np.isfinite(goal).all()):
            self.restart()
            if np.isfinite(goal).all():
                self._stamp = stamp
                self._position[:], self._goal[:] = position, goal
                self._keep(stamp - age)
            return
        if not self.due(stamp):
            return
        self._stamp, self._covered = stamp, self._covered + elapsed
        self._period = self._period + 0.05 * (elapsed - self._period) if self._period else elapsed
        share = -math.expm1(-RATE * elapsed)
        for stages, value in ((self._position, position), (self._goal, goal)):
            for stage in stages:
                stage += share * (value - stage)
                value = stage
        self._keep(stamp - age)
        first, second, third = self._position
        velocity = RATE * (second - third)
        acceleration = RATE * RATE * (first - 2.0 * second + third)
        direction = np.where(np.abs(velocity) > SLOWEST, np.sign(velocity), 0.0)
        same = (direction == self._direction) & (direction != 0.0)
        self._direction, self._since = direction, np.where(same, self._since + elapsed, 0.0)
        counts = self._since >= SETTLED
        if self._covered > LONGEST + PERIOD and True in counts.tolist():
            self._add(stamp, third + lag * velocity + bend * acceleration, counts, elapsed)
        self._since_concluded += elapsed
        if self._since_concluded >= CONCLUDED:
            self._since_concluded = 0.0
            self._conclude()

    def _keep(self, stamp: float) -> None:
        self._times[:-1], self._goals[:-1] = self._times[1:], self._goals[1:]
        self._times[-1], self._goals[-1] = max(stamp, self._times[-2] + 1e-6), self._goal[-1]

    def _add(self, stamp: float, expected: Array, counts: Mask, elapsed: float) -> None:
        """Add a sample to the sums; ``expected`` is the goal that the motion shows [rad]."""
        wanted = stamp - DELAYS
        after = np.clip(np.searchsorted(self._times, wanted), 1, KEPT - 1)
        before = after - 1
        span = self._times[after] - self._times[before]
        share = ((wanted - self._times[before]) / span)[:, None]
        goals = self._goals[before] + share * (self._goals[after] - self._goals[before])
        left = goals - expected
        weight, kept = np.where(counts, elapsed, 0.0), np.where(counts, math.exp(-elapsed / MEMORY), 1.0)
        sign = self._direction
        self._alternating = kept * self._alternating + weight * sign
        self._square = kept * self._square + weight
        self._signed = kept * self._signed + weight * sign * left
        self._plain = kept * self._plain + weight * left
        self._squares = kept * self._squares + weight * left * left

    def _conclude(self) -> None:
        """Minima of the residual sums of squares."""
        joints = np.arange(len(self._square))
        whole, sign = self._square, self._alternating
        # Regressors are the sign and 1: of motion in one direction, one of both.
        free = np.maximum(whole - sign * sign / np.maximum(whole, 1e-9), 1e-9)
        aside = self._signed - sign * self._plain / np.maximum(whole, 1e-9)
        squares = self._squares - self._plain**2 / np.maximum(whole, 1e-9)
        squares = squares - np.where(free > 1e-6 * whole, aside**2 / free, 0.0)
        least = np.argmin(squares, axis=0)
        inner = np.clip(least, 1, len(DELAYS) - 2)
        low, middle, high = (squares[inner + step, joints] for step in (-1, 0, 1))
        bend = np.maximum(low - 2.0 * middle + high, 1e-30)
        spread = np.maximum(middle, 0.0) / np.maximum(whole - 2.0 * CORRELATED, CORRELATED)
        half = NORMAL * np.sqrt(2.0 * CORRELATED * spread * SPACING * SPACING / bend)
        # A goal holds for a period; half of it is no delay.
        found = SPACING * (inner + 0.5 * (low - high) / bend) - 0.5 * self._period
        sound = (least == inner) & (whole >= LEAST_MOTION) & (half <= WIDEST)
        self.delay = np.where(sound, np.maximum(found, 0.0), math.nan)
        self.half_width = np.where(sound, half, math.inf)


class ServoDelay:
    """Delay of position servos: the larger of the declared and the measured one."""

    def __init__(self, joints: int, declared: float) -> None:
        self._declared = declared
        self._latency: GoalLatency | None = None
        self._bandwidth: Array = np.zeros(joints)
        self.lag: Array = np.zeros(joints)
        """Time by which positions follow the goals that the torque goes with (n,) [s]."""
        self.by_goal: Mask = np.zeros(joints, dtype=np.bool_)
        """Joints whose friction is that at the velocity of the goal: a velocity measured so long ago would drive them."""

    def begin(self, bandwidth: Array, latency: GoalLatency | None) -> None:
        """Say what measures the delay, ``None`` for outputs other than goals.

        :param bandwidth: of the viscous friction, with which the delay is compared, (n,) [1/s].
        """
        self._bandwidth, self._latency = bandwidth, latency
        self.update()

    def update(self) -> None:
        """Take what has been measured."""
        if self._latency is not None:
            self.lag = np.fmax(self._declared, self._latency.delay)
        self.by_goal = self._bandwidth * np.maximum(self._declared, self.lag) > 1.0
