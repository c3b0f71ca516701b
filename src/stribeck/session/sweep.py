r"""Constant-velocity sweeps of a joint: friction over velocity, in both directions and at several places of the travel.

Speeds are spaced geometrically, :math:`v_k = v_1 (v_n/v_1)^{(k-1)/(n-1)}`, so that most are in the region of the Stribeck effect. At each
speed the joint turns there and back with ramps of constant acceleration a; the even part lasts :data:`PLATEAU`, or as long as the
travel allows. Slow sweeps are repeated at several places of the travel, where gravity loads the joint differently; fast ones
need all of it.

.. code-block:: yaml

    schema: 1
    joint: elbow
    range: [-1.0, 1.0]
    speeds: [0.01, 0.03, 0.1, 0.3, 1.0]
    acceleration: 5.0
    places: 3
    others: {shoulder: 0.5}
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.schema import Count, Positive
from stribeck.model.arrays import Array
from stribeck.model.trajectories import Trajectory
from stribeck.session.motion_file import MotionFile

PLATEAU, SHORTEST = 6.0, 0.5
"""Usual duration of even motion, and the shortest one that is played [s]."""

REST = 0.4
"""Pause after each leg [s]."""

FEWEST = 3
"""Fewest speeds that show a Stribeck curve."""

SLOWEST = 0.005
"""Smallest speed of a programme, relative to the largest."""


class SweepFile(MotionFile):
    """The keys of a sweep's file.

    :param schema: version of the format.
    :param joint: name of the joint that moves.
    :param range: lower and upper end of its travel [rad].
    :param speeds: in ascending order [rad/s].
    :param acceleration: of the ramps [rad/s²].
    :param places: number of equal parts of the travel in which slow sweeps are played.
    :param others: positions at which other joints are held [rad].
    """

    schema: Literal[1]
    joint: str
    range: tuple[float, float]
    speeds: tuple[Positive, ...]
    acceleration: Positive
    places: Count = 1
    others: dict[str, float] = {}  # noqa: RUF012 - msgspec copies defaults

    def __post_init__(self) -> None:
        if not self.range[0] < self.range[1]:
            raise ValueError(f"range: expected [lower, upper], found {list(self.range)}")
        if list(self.speeds) != sorted(set(self.speeds)):
            raise ValueError(f"speeds: expected increasing speeds, found {list(self.speeds)}")
        if self.joint in self.others:
            raise ValueError(f"others: {self.joint} is the joint that moves: remove it there")
        if len(self.played) < FEWEST:
            raise ValueError(
                f"only {len(self.played)} of {len(self.speeds)} speeds leave {SHORTEST:g} s of constant velocity within {self.travel:.3g} rad, but at least "
                f"{FEWEST} are needed: widen the range, lower the speeds, or raise the acceleration"
            )

    @property
    def travel(self) -> float:
        """Width of the range [rad]."""
        return self.range[1] - self.range[0]

    @property
    def played(self) -> tuple[float, ...]:
        """The speeds for which the range is wide enough."""
        return tuple(v for v in self.speeds if v * SHORTEST + v * v / self.acceleration <= self.travel)

    def legs(self) -> list[tuple[float, float, float]]:
        """Start, end and speed of all sweeps [rad], [rad], [rad/s]."""
        width, found = self.travel / self.places, []
        for v in self.played:
            wanted = v * PLATEAU + v * v / self.acceleration
            centres = [self.range[0] + (k + 0.5) * width for k in range(self.places)]
            if wanted > width:
                wanted, centres = min(wanted, self.travel), [0.5 * (self.range[0] + self.range[1])]
            for centre in centres:
                ends = centre - 0.5 * wanted, centre + 0.5 * wanted
                found += [(*ends, v), (*ends[::-1], v)]
        return found

    def to_play(self, name: str) -> Trajectory:
        """The trajectory that `stribeck record` and the excitation node play."""
        motion = _Motion(self.acceleration)
        legs = self.legs()
        between = self.played[len(self.played) // 2]
        at = legs[0][0]
        for first, last, speed in legs:
            if abs(first - at) > 1e-9:
                motion.move(at, first, between)
            motion.move(first, last, speed)
            at = last
        motion.move(at, legs[0][0], between)
        goals: dict[str, Callable[[Array], Array]] = {self.joint: motion.goals()}
        goals |= {joint: _held(position) for joint, position in self.others.items()}
        return Trajectory(name, "a constant-velocity sweep", motion.end, np.zeros_like, joint_goals=goals)


class _Motion:
    """A motion of constant accelerations, built leg by leg."""

    def __init__(self, acceleration: float) -> None:
        self._acceleration = acceleration
        self._pieces: list[tuple[float, float, float, float]] = []
        self.end = 0.0

    def move(self, first: float, last: float, speed: float) -> None:
        """Ramp, even motion, ramp, and a pause."""
        distance, direction = abs(last - first), float(np.sign(last - first))
        top = min(speed, float(np.sqrt(distance * self._acceleration)))
        if top <= 0.0:
            return
        ramp, even = top / self._acceleration, distance / top - top / self._acceleration
        speed, pull = direction * top, direction * self._acceleration
        at = 0.5 * ramp * speed
        for duration, position, velocity, acceleration in (
            (ramp, first, 0.0, pull),
            (even, first + at, speed, 0.0),
            (ramp, last - at, speed, -pull),
            (REST, last, 0.0, 0.0),
        ):
            self._pieces.append((self.end, position, velocity, acceleration))
            self.end += duration

    def goals(self) -> Callable[[Array], Array]:
        """Position at times (N,) [s]."""
        start, position, velocity, acceleration = np.array(self._pieces).T

        def goal(time: Array) -> Array:
            k = np.clip(np.searchsorted(start, time, side="right") - 1, 0, len(start) - 1)
            after = np.asarray(time) - start[k]
            return np.asarray(position[k] + velocity[k] * after + 0.5 * acceleration[k] * after**2)

        return goal


def _held(position: float) -> Callable[[Array], Array]:
    return lambda time: np.full_like(np.asarray(time, dtype=np.float64), position)


def spaced_speeds(largest: float, count: int) -> tuple[float, ...]:
    """So many speeds, spaced geometrically from :data:`SLOWEST` times the largest on [rad/s]."""
    return tuple(float(f"{v:.3g}") for v in largest * np.geomspace(SLOWEST, 1.0, count))


def sweep_of(values: dict[str, object]) -> SweepFile:
    """A sweep of values.

    :raises ConfigError: for values that do not fit together.
    """
    try:
        return SweepFile(schema=1, **values)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"sweep: {error}") from None
