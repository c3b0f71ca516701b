"""The two benches of Duclusaud et al. 2024: pendulums to fit laws (§V, table I), arms of two links to test them (§VI-B).

The paper gives the loads, lengths and gains of the pendulums, the servos of the arms and the shapes of the paths. What it
leaves out of the arms is as in their authors' published model and programs (Rhoban/bam, folders ``2R`` and ``bam``,
Apache-2.0): links, loads, sizes and times of the paths, half the gain on the second eRob. Low and high gain are the ends
of table I, which the paper does not say either. The second link holds the load, the first one the servo of joint 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.log import Setup
from stribeck.model.trajectories import Trajectory, cubic, trajectory_named
from two_link import Link

Array = npt.NDArray[np.float64]

PENDULUM_TRAJECTORIES = ("sin_time_square", "sin_sin", "up_and_down", "lift_and_drop")


@dataclass(frozen=True)
class Path:
    """A path for the end point.

    :param title: in words.
    :param duration: [s].
    :param knots: times, sideways and upwards positions (K, 3) [s, m, m], between which it moves along straight lines,
        at rest at each; of a circle its first point alone.
    :param radius: of a circle that is gone round once [m]; 0 for straight lines. Its centre lies below its first point
        for a positive radius, above it for a negative one.
    """

    title: str
    duration: float
    knots: Array
    radius: float = 0.0

    def at(self, time: Array) -> tuple[Array, Array]:
        """Sideways and upwards position at times (N,) [m]; after the end that of the end."""
        if self.radius:
            angle = 2.0 * np.pi * np.clip(time / self.duration, 0.0, 1.0)
            _, x, z = self.knots[0]
            return x + abs(self.radius) * np.sin(angle), z + self.radius * (np.cos(angle) - 1.0)
        found = np.broadcast_to(self.knots[0, 1:], (len(time), 2)).copy()
        for (begin, *here), (end, *there) in zip(self.knots[:-1], self.knots[1:], strict=True):
            for axis in (0, 1):
                found[:, axis] += cubic(time, begin, 0.0, end, there[axis] - here[axis])
        return found[:, 0], found[:, 1]


def along(title: str, points: Sequence[tuple[float, float]], move: float, pause: float) -> Path:
    """From point to point, with a pause at each.

    :param points: sideways and upwards [m].
    :param move, pause: times [s].
    """
    knots: list[tuple[float, float, float]] = []
    time = 0.0
    for point in points:
        knots.append((time, *point))
        if pause:
            time += pause
            knots.append((time, *point))
        time += move
    return Path(title, knots[-1][0], np.array(knots))


def square_wave(x: float, z: float, stride: float, rise: float, moves: int = 19) -> list[tuple[float, float]]:
    """Corners of a square wave that begins with its rise."""
    return [(x + stride * (k // 2), z + rise * ((k + 1) // 2 % 2)) for k in range(moves + 1)]


def triangular_wave(
    x: float, z: float, stride: float, rise: float, moves: int = 10
) -> list[tuple[float, float]]:
    """Corners of a triangular wave that begins with its rise."""
    return [(x + stride * k, z + rise * (k % 2)) for k in range(moves + 1)]


def square(x: float, z: float, side: float, sideways: float) -> list[tuple[float, float]]:
    """Corners of a square from a lower one, upwards first, and back."""
    return [(x, z), (x, z + side), (x + sideways, z + side), (x + sideways, z), (x, z)]


@dataclass(frozen=True)
class Bench:
    """An arm of two links, and the pendulums on which the laws of its servos are identified.

    :param title: in words.
    :param servos: names of the servos of joint 1 and 2.
    :param links: of the arm, without the rotors.
    :param gains: proportional gains of joint 1 and 2, by name.
    :param paths: by name.
    :param loads: masses and lengths of the pendulums [kg, m].
    :param pendulum_gains: proportional gains on the pendulums.
    """

    title: str
    servos: tuple[str, str]
    links: tuple[Link, Link]
    gains: Mapping[str, tuple[float, float]]
    paths: Mapping[str, Path]
    loads: Sequence[tuple[float, float]]
    pendulum_gains: Sequence[float]

    def plays(self, supply: float, runs: int, rng: np.random.Generator) -> list[tuple[Setup, Trajectory]]:
        """Set-up and trajectory of pendulum runs: all combinations, or so many of them at random, in order.

        :param supply: of the servo [V].
        """
        everything = [
            (Setup(mass, length, 0.0, supply, kp), trajectory_named(name))
            for (mass, length), kp, name in product(self.loads, self.pendulum_gains, PENDULUM_TRAJECTORIES)
        ]
        chosen = rng.choice(len(everything), min(runs, len(everything)), replace=False)
        return [everything[k] for k in np.sort(chosen)]


BENCHES: dict[str, Bench] = {
    "mx": Bench(
        "Dynamixel MX-106 and MX-64",
        ("mx106", "mx64"),
        (
            Link(0.211448, 0.18, 0.138051, 5.61942e-4),
            Link(1.046614, 0.18, 0.177175, 3.346928e-3),
        ),
        {"low": (4.0, 4.0), "high": (32.0, 32.0)},
        {
            "circle": Path("circle", 8.0, np.array([[0.0, 0.0, -0.2952]]), radius=-0.05),
            "square": along("square", square(0.05, -0.2952, 0.1, -0.1), 2.0, 0.0),
            "square_wave": along("square wave", square_wave(0.2, -0.2452, -0.4 / 9.0, 0.05), 1.5, 0.0),
            "triangular_wave": along("triangular wave", triangular_wave(0.2, -0.2452, -0.04, 0.05), 1.5, 0.0),
        },
        list(product((0.5, 1.0, 1.5), (0.1, 0.15, 0.2))),
        (4.0, 8.0, 16.0, 32.0),
    ),
    "erob": Bench(
        "eRob80 1:100 and 1:50",
        ("erob80_100", "erob80_50"),
        (
            Link(1.640162, 0.25, 0.125, 1.594182e-2),
            Link(12.857048, 0.25, 0.204432, 0.221226),
        ),
        {"low": (10.0, 5.0), "high": (100.0, 50.0)},
        {
            "circle": Path("circle", 8.0, np.array([[0.0, 0.0, -0.2]]), radius=0.1),
            "square": along("square", square(-0.1, -0.4, 0.2, 0.2), 2.0, 1.0),
            "square_wave": along("square wave", square_wave(-0.25, -0.3, 0.05, 0.1), 1.0, 1.0),
            "triangular_wave": along("triangular wave", triangular_wave(-0.25, -0.3, 0.05, 0.1), 2.0, 2.0),
        },
        [(mass, 0.5) for mass in (3.1, 8.2, 12.7, 14.6, 19.6)],
        (10.0, 25.0, 50.0, 100.0),
    ),
}
"""The arms, by the names of ``stribeck validate-2r --servos``."""


def bench_named(name: str) -> Bench:
    """The bench called ``name``.

    :raises ConfigError: for a name that is not in the table.
    """
    if name not in BENCHES:
        raise ConfigError(f"unknown arm {name!r}; valid: {', '.join(BENCHES)}")
    return BENCHES[name]
