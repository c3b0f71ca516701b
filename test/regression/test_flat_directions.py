"""Levenberg-Marquardt and directions that hardly matter.

What happened: a floor under all curvatures held parameters whose curvature was below a millionth of the
largest one; a fit ended beside its minimum, outside its own intervals.
What must happen: such a parameter reaches its minimum as well.
"""

import numpy as np

from stribeck.identify.common.minimise import NormalEquations
from stribeck.identify.servo.descent import levenberg_marquardt
from stribeck.identify.servo.incumbent import Incumbent, Minima


class FlatValley:
    """Curvatures that differ by nine orders of magnitude, and are coupled."""

    def __init__(self):
        axes = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
        self.root = axes @ np.diag([1.0, 1e-2, 3e-5]) @ axes.T @ np.diag([1.0, 1.0, 1e-2])
        self.best = np.array([0.3, 0.6, 0.7])
        self.dimension = 3

    def with_reset_period(self, reset_period):
        return self

    def losses(self, unit):
        return 1e-9 + np.sum(((np.asarray(unit) - self.best) @ self.root.T) ** 2, axis=1)

    def normal_equations(self, unit):
        points = np.asarray(unit)
        hessian = 2.0 * self.root.T @ self.root
        gradient = (points - self.best) @ hessian
        return NormalEquations(self.losses(points), gradient, np.broadcast_to(hessian, (len(points), 3, 3)))


def test_a_flat_direction_is_followed_to_its_minimum():
    problem = FlatValley()
    incumbent = Incumbent(10**6, lambda: 0)
    start = np.array([[0.31, 0.5, 0.1]])
    found = levenberg_marquardt(problem, incumbent, Minima(start, problem.losses(start)), 60, tolerance=1e-12)
    np.testing.assert_allclose(found.points[0], problem.best, atol=5e-3)
