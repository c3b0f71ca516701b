"""What is measured while a group of runs goes on: errors, oscillation at rest, forces, energies, speeds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plants.control import START
from plants.friction import FloatArray

SETTLED = 1.5
"""Rest begins to count so long after the reference stopped or the load changed [s]."""

AT_REST = 0.02
"""A joint slower than this at the end of a free phase has come to rest [rad/s]."""


LEAST_RELEASED = 0.1
"""Joints that are let go slower count as let go with this speed [rad/s]."""

CONTACT_SETTLED = 4.0
"""From here on a contact lasts and its forces are steady [s]."""


class Window:
    """Oscillation of positions while they are watched: peak to peak, less the way from first to last.

    A joint that creeps to its goal does not oscillate, so the way is taken off.
    """

    def __init__(self, lanes: int) -> None:
        self.largest: FloatArray = np.zeros(lanes)
        self._low: FloatArray = np.full(lanes, np.inf)
        self._high: FloatArray = np.full(lanes, -np.inf)
        self._first: FloatArray = np.zeros(lanes)
        self._last: FloatArray = np.zeros(lanes)
        self._open = np.zeros(lanes, dtype=np.bool_)

    def watch(self, position: FloatArray, watched: npt.NDArray[np.bool_]) -> None:
        """Take in a sample; lanes that are no longer watched close their window."""
        begins, ends = watched & ~self._open, ~watched & self._open
        if ends.any():
            self._close(ends)
        self._low = np.where(begins, position, np.where(watched, np.minimum(self._low, position), self._low))
        self._high = np.where(
            begins, position, np.where(watched, np.maximum(self._high, position), self._high)
        )
        self._first = np.where(begins, position, self._first)
        self._last = np.where(watched, position, self._last)
        self._open = watched

    def _close(self, which: npt.NDArray[np.bool_]) -> None:
        swing = self._high - self._low - np.abs(self._last - self._first)
        self.largest = np.where(which, np.maximum(self.largest, swing), self.largest)

    def end(self) -> None:
        """Close what is open."""
        self._close(self._open)


class Measures:
    """Sums and extremes over one simulation; all arrays (L,)."""

    def __init__(self, lanes: int) -> None:
        zero = np.zeros(lanes)
        self.error, self.worst, self.force = zero.copy(), zero.copy(), zero.copy()
        self.peak, self.late, self.own_late = zero.copy(), zero.copy(), zero.copy()
        self.released, self.growth = zero.copy(), zero.copy()
        self.put_in, self.dissipated = zero.copy(), zero.copy()
        self.free_in, self.free_out = zero.copy(), zero.copy()
        self.final_speed = zero.copy()
        self.most_added = zero.copy()
        self.rest = Window(lanes)
        self._count = 0
        self._held = False
        self._quiet: FloatArray = zero.copy()

    def track(
        self,
        time: float,
        dt: float,
        error: FloatArray,
        counts: FloatArray,
        resting: npt.NDArray[np.bool_],
        added: FloatArray,
    ) -> None:
        """A sample of a joint that has a goal.

        :param resting: lanes whose reference and load stand still.
        """
        if time < START:
            return
        self.error += error * error
        self._count += 1
        np.maximum(self.worst, np.abs(error), out=self.worst)
        np.maximum(self.most_added, np.abs(added), out=self.most_added)
        self._quiet = np.where(resting, self._quiet + dt, 0.0)
        self.rest.watch(counts, self._quiet > SETTLED)

    def touch(self, time: float, force: FloatArray) -> None:
        """A torque of hand or wall [N m]: its largest, and its largest once the first contact is over."""
        self.force += force * force
        np.maximum(self.peak, np.abs(force), out=self.peak)
        if time >= CONTACT_SETTLED:
            np.maximum(self.late, np.abs(force), out=self.late)

    def lasts(self, time: float, added: FloatArray) -> None:
        """A torque of the compensation [N m]: its largest once the first contact is over."""
        if time >= CONTACT_SETTLED:
            np.maximum(self.own_late, np.abs(added), out=self.own_late)

    def free(self, held: bool, speed: FloatArray) -> None:
        """Speeds [rad/s] while a hand holds the joints or not: what becomes of the speed at release."""
        if self._held and not held:
            self.released = np.maximum(np.abs(speed), LEAST_RELEASED)
        if not held and (self.released > 0.0).all():
            np.maximum(self.growth, np.abs(speed) / self.released, out=self.growth)
            self.final_speed = np.abs(speed)
        self._held = held

    def finished(self, resolution: FloatArray) -> dict[str, FloatArray]:
        """Every figure by name, (L,)."""
        self.rest.end()
        return {
            "rms": np.sqrt(self.error / max(self._count, 1)),
            "worst": self.worst,
            "counts": self.rest.largest / resolution,
            "force": np.sqrt(self.force),
            "peak": self.peak,
            "late": self.late,
            "own_late": self.own_late,
            "growth": self.growth,
            "final_speed": self.final_speed,
            "energy_in": self.put_in,
            "energy_out": self.dissipated,
            "most_added": self.most_added,
        }
