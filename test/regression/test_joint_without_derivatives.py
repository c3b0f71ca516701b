"""Joints of a robot whose simulation overflows in a search."""

import numpy as np

from stribeck.identify.common.minimise import BlockEquations, minimise_blocks
from stribeck.identify.common.solver_status import SolverStatus


def parabolas(point):
    """Three sums of squares of one coordinate each, with minima at 1; the second has no finite derivatives."""
    hessian = np.eye(3)
    hessian[1, 1] = np.nan
    return BlockEquations(0.5 * (point - 1.0) ** 2, point - 1.0, hessian)


def test_a_joint_without_finite_derivatives_stays_and_the_others_go_on():
    """What happened: one joint ended the identification of a whole SO-101 in a traceback, "array must not contain infs or
    NaNs". What must happen: it stays where it is, and is said to have diverged."""
    box = np.array([np.full(3, -5.0), np.full(3, 5.0), np.ones(3)])
    found = minimise_blocks(parabolas, np.array([0.0, 0.3, 2.5]), box, np.arange(3))
    np.testing.assert_allclose(found.point, [1.0, 0.3, 1.0], atol=1e-4)
    assert found.statuses == [SolverStatus.CONVERGED, SolverStatus.DIVERGED, SolverStatus.CONVERGED]
