r"""Friction laws identified on pendulums and tested on an arm of two links.

1. Pendulums of both servos are simulated with a known law, M6 with published parameters, in fine steps, and recorded
   as a servo would.
2. Every law is fitted to them as ``stribeck identify servo`` does, and goes through its parameter file.
3. The arm follows paths at low and high gain, once with the true law in fine steps and once with each fitted law from
   the same start; what counts is

.. math::

    \mathrm{MAE} = \frac1{2N}\sum_{j=1}^2\sum_{k=1}^N |q_j(t_k) - \hat q_j(t_k)|

over the samples of the path, the mean of both joints: the measure of the paper's program.

Source: Duclusaud et al. 2024, §V and §VI-B, fig. 7, with simulation in place of their machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from stribeck.model.actuator import Actuator
from stribeck.model.control_laws import Gains
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.log import Log
from stribeck.model.trajectories import cubic
from two_link import Motion, Servo, TwoLinkArm, end_point, joint_angles, simulate
from two_link_benches import Bench
from virtual import Encoder, record

Array = npt.NDArray[np.float64]

TRUE_LAW = "m6"

PERIOD = 0.005
"""Between samples and commands, on pendulums and arms [s]."""

TRUE_SUBSTEPS = 25
"""Steps of the truth in a period: 0.2 ms."""

SUBSTEPS = 5
"""Steps of the arm with a fitted law in a period: 1 ms, as the authors' simulation has."""

APPROACH, REST = 2.0, 1.0
"""The arm moves from hanging to the start of the path, and rests there [s]."""


def truth_of(actuator: Actuator) -> Drive:
    """The servo as it truly is: the published parameters of M6."""
    return Drive(actuator, law_named(TRUE_LAW), {"q_offset": 0.0, **actuator.published[TRUE_LAW]})


def pendulum_runs(
    bench: Bench, truth: Drive, runs: int, seed: int, substeps: int = TRUE_SUBSTEPS
) -> list[Log]:
    """Recordings of the true servo on pendulums.

    Positions have the noise of one step of the encoder before they are rounded to it.

    :param runs: how many of the bench's combinations, at most.
    :param seed: of the combinations and the noise.
    :param substeps: steps of the simulation in a period.
    """
    actuator = truth.actuator
    rng = np.random.default_rng(seed)
    plays = bench.plays(actuator.supply.nominal, runs, rng)
    encoder = Encoder(actuator.resolution, noise=actuator.resolution)
    return record(actuator, truth.law, truth.values, plays, encoder, rng, dt=PERIOD, substeps=substeps)


@dataclass(frozen=True, eq=False)
class PathTests:
    """Paths times gains, side by side.

    :param names: path and gain of each of the L tests.
    :param gains: proportional gains of both joints (2, L).
    :param goals: of both joints (N, 2, L) [rad]; the approach first, held after the end.
    :param first: sample at which the paths begin.
    :param last: sample after the end of each path (L,).
    """

    bench: Bench
    names: tuple[tuple[str, str], ...]
    gains: Array
    goals: Array
    first: int
    last: npt.NDArray[np.int64]

    @classmethod
    def of(cls, bench: Bench, paths: Sequence[str]) -> PathTests:
        """Every path at every gain."""
        names = tuple(product(paths, bench.gains))
        longest = max(bench.paths[path].duration for path in paths)
        first = round((APPROACH + REST) / PERIOD)
        lasting = np.array([round(bench.paths[path].duration / PERIOD) + 1 for path, _ in names])
        on_path = PERIOD * np.arange(round(longest / PERIOD) + 1, dtype=np.float64)
        approach = cubic(PERIOD * np.arange(first, dtype=np.float64), 0.0, 0.0, APPROACH, 1.0)
        goals = np.empty((first + len(on_path), 2, len(names)))
        for k, (path, _) in enumerate(names):
            angles = np.stack(joint_angles(bench.links, *bench.paths[path].at(on_path)), axis=1)
            goals[:first, :, k] = approach[:, None] * angles[0]
            goals[first:, :, k] = angles
        gains = np.array([bench.gains[gain] for _, gain in names]).T
        return cls(bench, names, gains, goals, first, first + lasting)

    def arm(self, servos: tuple[Drive, Drive]) -> TwoLinkArm:
        """The arm with given servos, one for each test."""
        nothing = np.zeros(len(self.names))
        one, two = (
            Servo(file.actuator, file.law, file.values, Gains(kp, nothing, nothing))
            for file, kp in zip(servos, self.gains, strict=True)
        )
        return TwoLinkArm(self.bench.links, (one, two))

    def true_motion(self, servos: tuple[Drive, Drive], substeps: int = TRUE_SUBSTEPS) -> Motion:
        """Motion of the true arm on the paths, (N, 2, L), from a start at rest at the hanging position."""
        hanging = np.zeros((2, len(self.names)))
        found = simulate(self.arm(servos), Motion(hanging, hanging), self.goals, PERIOD, substeps)
        return Motion(*(part[self.first :] for part in found))

    def motion(
        self,
        servos: tuple[Drive, Drive],
        start: Motion,
        substeps: int = SUBSTEPS,
        supplies: Array | None = None,
    ) -> Motion:
        """Motion of another arm on the paths, from a start (2, L), with supplies (N, 2, L) [V] that are not nominal."""
        goals = self.goals[self.first :]
        return simulate(self.arm(servos), start, goals, PERIOD, substeps, supplies)

    def samples(self, test: int) -> slice:
        """Samples of a motion on the paths that count for a test."""
        return slice(0, int(self.last[test]) - self.first)


@dataclass(frozen=True)
class PathErrors:
    """Distance of an arm from the true one on one path.

    :param joints: mean absolute error of each joint [rad].
    :param end_point: mean distance of the end points [m].
    """

    joints: tuple[float, float]
    end_point: float

    @property
    def mean(self) -> float:
        """Mean absolute error of both joints [rad]."""
        return 0.5 * (self.joints[0] + self.joints[1])


def path_errors(tests: PathTests, truth: Motion, motion: Motion) -> dict[tuple[str, str], PathErrors]:
    """Errors of a motion by path and gain."""
    apart = np.abs(motion.position - truth.position)
    points = [
        end_point(tests.bench.links, (part[:, 0], part[:, 1])) for part in (motion.position, truth.position)
    ]
    distance = np.hypot(*(a - b for a, b in zip(*points, strict=True)))
    found = {}
    for k, name in enumerate(tests.names):
        used = tests.samples(k)
        one, two = apart[used, :, k].mean(axis=0)
        found[name] = PathErrors((float(one), float(two)), float(distance[used, k].mean()))
    return found


@dataclass(frozen=True, eq=False)
class Validation:
    """The result of the validation.

    :param truth: motion of the true arm on the paths.
    :param motions: of the arms with fitted laws, by law.
    :param errors: by law, then by path and gain.
    """

    tests: PathTests
    truth: Motion
    motions: Mapping[str, Motion]
    errors: Mapping[str, Mapping[tuple[str, str], PathErrors]]

    def ratio(self, law: str, test: tuple[str, str], reference: str = "m1") -> float:
        """Error of a law over that of another one."""
        return self.errors[law][test].mean / self.errors[reference][test].mean


def validate(
    bench: Bench,
    truth: tuple[Drive, Drive],
    laws: Mapping[str, tuple[Drive, Drive]],
    paths: Sequence[str],
) -> Validation:
    """Test laws on the arm.

    :param truth: what the servos of joints 1 and 2 truly are.
    :param laws: what was identified of them, by law.
    :param paths: names of the bench's paths.
    """
    tests = PathTests.of(bench, paths)
    true = tests.true_motion(truth)
    start = Motion(true.position[0], true.velocity[0])
    motions = {law: tests.motion(servos, start) for law, servos in laws.items()}
    errors = {law: path_errors(tests, true, motion) for law, motion in motions.items()}
    return Validation(tests, true, motions, errors)
