r"""Hands joints over from one compensator to another without a step in the torque, and back.

.. math:: \tau = (1 - s)\,\tau_{old} + s\,\tau_{new}, \qquad s = \mathrm{clip}\bigl((t - t_0)/T - 1,\ 0,\ 1\bigr)

Both compute the same states from :math:`t_0` on, and both are told what was sent. The new one rises from zero within the ramp time T before it
counts, and has taken over within another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stribeck.errors import ConfigError
from stribeck.live.compensator import Compensator
from stribeck.live.outputs import Output
from stribeck.live.settings import Settings
from stribeck.live.states.incoming import Numbers
from stribeck.model.arrays import Array


class Handover:
    """A compensator that another one of the same joints can replace while it runs.

    Methods that it shares with :class:`Compensator` reach both of them during a handover; what else is to be known is that of :attr:`present`.

    :param ramp_time: T [s].
    """

    def __init__(self, compensator: Compensator, ramp_time: float) -> None:
        self.present = compensator
        """The one that compensates, or is taking over."""
        self._ramp_time, self._share, self._begun = ramp_time, 1.0, math.nan
        self._leaving: Compensator | None = None
        self._former: Compensator | None = None
        self.torque: Array = compensator.torque

    def exchange(self, successor: Compensator) -> None:
        """Let another compensator of the same joints take over, with the present gain.

        :raises ConfigError: if its gain would not be stable, or while another one is taking over; the present one goes on.
        """
        if self._leaving is not None:
            raise ConfigError(
                f"the change to another file of drives is in progress and takes {2.0 * self._ramp_time:g} s: try again later"
            )
        successor.set_gain(self.present.gain)
        self._former, self.present = self.present, successor
        if self._former.enabled:
            successor.enable(self._former.feed_forward.closed_loop)
            self._leaving, self._share, self._begun = self._former, 0.0, math.nan

    def revert(self) -> None:
        """Let the one before the last exchange take over again, with what it has learnt.

        :raises ConfigError: if there was none, or while another one is taking over.
        """
        if self._former is None:
            raise ConfigError("there is no previous file of drives, because the file has not been changed")
        self.exchange(self._former)

    def _each(self) -> list[Compensator]:
        return [self.present] if self._leaving is None else [self._leaving, self.present]

    # -- as those of a compensator

    @property
    def names(self) -> tuple[str, ...]:
        """Of the joints."""
        return self.present.names

    @property
    def settings(self) -> Settings:
        """Of the present compensator."""
        return self.present.settings

    @property
    def enabled(self) -> bool:
        """Whether it compensates."""
        return self.present.enabled

    def enable(self, closed_loop: bool = True) -> None:
        """Start, with a ramp of the torque; a handover that is under way ends."""
        self._end()
        self.present.enable(closed_loop)
        self.torque = self.present.torque

    def disable(self, reason: str = "not enabled") -> None:
        """Set the torque to zero until :meth:`enable`; a handover that is under way ends."""
        self._end()
        self.present.disable(reason)
        self.torque = self.present.torque

    def _end(self) -> None:
        if self._leaving is not None:
            self._leaving.disable("the file of drives has been changed again")
        self._leaving, self._share = None, 1.0

    def set_gain(self, gain: float) -> None:
        """Set the gain from the next state on.

        :raises ConfigError: for a gain that would not be stable; the old one stays.
        """
        self.present.set_gain(gain)

    def on_telemetry(self, joint: str, **values: Any) -> None:
        """As :meth:`Compensator.on_telemetry`; a former compensator is told too."""
        for one in {id(c): c for c in (self.present, self._former) if c is not None}.values():
            one.on_telemetry(joint, **values)

    def on_command(self, *command: Any, **more: Any) -> None:
        """As :meth:`Compensator.on_command`."""
        for one in self._each():
            one.on_command(*command, **more)

    def carried(self, effort: Array) -> None:
        """As :meth:`Compensator.carried`."""
        for one in self._each():
            one.carried(effort)

    def on_goal(self, *goal: Any, **more: Any) -> None:
        """As :meth:`Compensator.on_goal`."""
        for one in self._each():
            one.on_goal(*goal, **more)

    def on_state(
        self, arrival: float, stamp: float, names: Sequence[str], position: Numbers, velocity: Numbers, effort: Numbers,
        now: float | None = None,
    ) -> Array:  # fmt: skip
        """As :meth:`Compensator.on_state`."""
        if (leaving := self._leaving) is not None:
            leaving.on_state(arrival, stamp, names, position, velocity, effort, now)
        self.torque = self.present.on_state(arrival, stamp, names, position, velocity, effort, now)
        if leaving is not None:
            self._advance(stamp)
            self.torque = self._mixed(leaving.torque, self.present.torque)
            for one in self._each():
                one.sent(self.torque)
            if self._share >= 1.0:
                self._end()
        return self.torque

    def _advance(self, stamp: float) -> None:
        if math.isnan(self._begun) or stamp < self._begun:  # time jumped back
            self._begun = stamp
        passed = (stamp - self._begun) / self._ramp_time - 1.0 if self._ramp_time > 0.0 else 1.0
        self._share = max(self._share, min(passed, 1.0))

    def _mixed(self, old: Array, new: Array) -> Array:
        return np.asarray((1.0 - self._share) * old + self._share * new)

    def expire(self, now: float, time: float | None = None) -> bool:
        """As :meth:`Compensator.expire`."""
        expired = [one.expire(now, time) for one in self._each()]
        if any(expired):  # a successor that still waits for its first state has none to lose
            self.torque = self.present.torque
        return any(expired)

    def output(self, now: float) -> Output | None:
        """As :meth:`Compensator.output`."""
        found = self.present.output(now)
        before = None if self._leaving is None else self._leaving.output(now)
        if found is None or before is None:
            return found
        return Output(self._mixed(before.values, found.values), self.torque)


Compensating = Compensator | Handover
"""Either of them."""
