"""Independent sums of squares, minimised in the same evaluations with a damping each."""

import numpy as np

from stribeck.identify.common.minimise import BlockEquations, minimise_blocks

SCALES = np.array([1.0, 1e4, 1e-3])


def valleys(point):
    """Three Rosenbrock valleys of different depth, with two coordinates each; a seventh coordinate that stays."""
    costs, gradient, hessian = np.zeros(3), np.zeros(7), np.zeros((7, 7))
    for k, scale in enumerate(SCALES):
        a, b = point[2 * k : 2 * k + 2]
        residual = np.sqrt(scale) * np.array([10.0 * (b - a * a), 1.0 - a])
        slopes = np.sqrt(scale) * np.array([[-20.0 * a, 10.0], [-1.0, 0.0]])
        own = slice(2 * k, 2 * k + 2)
        costs[k], gradient[own], hessian[own, own] = (
            0.5 * residual @ residual,
            slopes.T @ residual,
            slopes.T @ slopes,
        )
    gradient[6] = 1.0
    return BlockEquations(costs, gradient, hessian)


def test_each_block_reaches_its_own_minimum_and_none_rises():
    """From bad and good starts at once; the coordinate of no block stays."""
    start = np.array([-1.2, 1.0, 1.0, 1.0, 0.5, -2.0, 0.3])
    box = np.array([np.full(7, -5.0), np.full(7, 5.0), np.full(7, 1.0)])
    last = valleys(start).costs
    for iterations in range(1, 40, 3):
        point = minimise_blocks(valleys, start, box, np.array([0, 0, 1, 1, 2, 2, -1]), iterations).point
        costs = valleys(point).costs
        assert np.all(costs <= last)
        last = costs
    np.testing.assert_allclose(point[:6], 1.0, atol=1e-4)
    assert point[6] == 0.3
