"""The trajectories on which compensation is shown and measured: goals over time, all from rest at 0 rad."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ShowCase:
    """A goal over time.

    :param name: key in results.
    :param title: in words.
    :param duration: [s].
    :param goal: position [rad] at a time [s].
    """

    name: str
    title: str
    duration: float
    goal: Callable[[float], float]


def glide(time: float, start: float, end: float, duration: float) -> float:
    """From rest to rest on a cubic in ``duration`` [s], then held."""
    u = min(max(time / duration, 0.0), 1.0)
    return start + (end - start) * u * u * (3.0 - 2.0 * u)


def _steps(time: float) -> float:
    levels = (0.0, 0.5, 1.0, 0.5, 0.0, -0.5, 0.0)
    return levels[min(int(max(time, 0.0) / 1.15), len(levels) - 1)]


SHOWCASES = (
    ShowCase("slow_sine", "0.8 sin(0.4π t)", 7.5, lambda t: 0.8 * math.sin(0.4 * math.pi * t)),
    ShowCase("sin_half_t_squared", "sin(t²/2)", 6.5, lambda t: math.sin(0.5 * t * t)),
    ShowCase("steps", "steps with holds", 8.05, _steps),
)
"""A slow sine, a sweep, and steps with holds."""
