"""The benchmark through the C++ compensator of controllers/: the same table as through the Python one."""

import os

import numpy as np
import pytest

import closed_loop
from cpp_compensator import CppCompensator, GivenDynamics
from plants.baselines import METHODS, Ours
from plants.table import ROWS
from stribeck.model.joint_map import JointMap

PARTS = [part for parts in closed_loop.CHOICES.values() for part in parts]


class OursInCpp(Ours):
    """The same joints, settings and samples; each joint, or arm, has a compensator of its own."""

    def __init__(self, lanes, **options):
        super().__init__(lanes, **options)
        self._robots = []

    def _made(self, sample):
        """A robot per joint, or per arm."""
        size = sample.inertia.shape[1] if sample.inertia.ndim == 3 else 1
        python, count = self.compensator, len(sample.position)
        joints = python.model.joints
        for at in range(0, count, size):
            dynamics = None
            if self._model is not None:
                inertia = np.diag(self.lanes.inertia[at : at + size])
                dynamics = GivenDynamics(inertia, np.zeros(size))
            own = joints[at : at + size]
            robot = CppCompensator(own, [JointMap()] * size, python.settings, dynamics, capacity=size)
            robot.enable()
            self._robots.append(robot)

    def update(self, sample):
        """Torque to add [N m]."""
        if not self._robots:
            self._made(sample)
        torque, doubts = CppCompensator.stepped(
            self._robots,
            sample.time,
            sample.effort,
            (sample.goal_position, sample.goal_velocity) if self._goals else None,
            sample.position,
            sample.velocity if self._velocities else None,
            (sample.inertia, -sample.known) if self._model is not None else None,
        )
        assert doubts == 0
        return torque


class Both(Ours):
    """The Python compensator leads; the C++ one hears the same and says the same."""

    def __init__(self, lanes, **options):
        super().__init__(lanes, **options)
        self._cpp = OursInCpp(lanes, **options)

    def update(self, sample):
        """Torque to add [N m]."""
        ours = super().update(sample)
        difference = np.abs(self._cpp.update(sample) - ours) / self.lanes.torque_limit
        assert difference.max() <= 1e-12, f"at {sample.time:g} s: {difference.max():.1e} of the torque limit"
        return ours


class Rounded(Ours):
    """The Python compensator, every torque changed by one rounding."""

    def update(self, sample):
        """Torque to add [N m]."""
        return np.nextafter(super().update(sample), np.inf)


def differing(ours, theirs):
    """Runs in which a figure differs by more than 1e-9 of its largest value."""
    runs = np.zeros(len(next(iter(ours.values()))), dtype=bool)
    for name, values in ours.items():
        size = np.nanmax(np.abs(values), initial=0.0)
        gap = np.nan_to_num(np.abs(theirs[name] - values)) > 1e-9 * size
        runs |= gap.reshape(len(runs), -1).any(axis=1)
    return runs


def largest(row, other):
    """Largest difference of the numbers of two rows of a table."""
    pairs = [(value, other[key]) for key, value in row.items() if isinstance(value, float)]
    return max((abs(a - b) for a, b in pairs if np.isfinite(a) or np.isfinite(b)), default=0.0)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("part", PARTS)
def test_the_benchmark_in_cpp_is_that_of_python(part, monkeypatch, capsys):
    """At every state of every run the same torque to 1e-12 of the limit. In closed loop the same figures to 1e-9, but where
    friction at rest and a quantised encoder amplify rounding: no more often than in Python with its torque rounded otherwise.
    """
    for name, method in {"both": Both, "ours_cpp": OursInCpp, "rounded": Rounded}.items():
        monkeypatch.setitem(METHODS, name, method)
    methods = ["none", "both", "ours_cpp", "rounded"]
    figures, conditions = closed_loop.measured(
        [part], methods, "STRIBECK_WHOLE_BENCHMARK" not in os.environ, 2
    )
    ours, cpp, rounded = (
        {name: values[k] for name, values in figures[part].items()} for k in range(1, len(methods))
    )
    apart, chance = differing(ours, cpp), differing(ours, rounded)
    rows = {row["method"]: row for row in ROWS[part](methods, conditions[part], figures[part])}
    gaps = [largest(rows["both"], rows[name]) for name in methods[2:]]
    with capsys.disabled():
        print(
            f"\n{part}: {len(apart)} runs, {apart.sum()} differ by more than 1e-9 ({chance.sum()} by rounding alone); "
            f"table {gaps[0]:.1e} ({gaps[1]:.1e})"
        )
    assert apart.sum() <= 2 * chance.sum() + 3
    assert gaps[0] <= 0.01
