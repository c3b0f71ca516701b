"""What one search simulates counts for all fits whose laws contain the point."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from recovery import MX106, truth_of, virtual_logs
from stribeck.files.actuators import load_actuator
from stribeck.identify.common.minimise import minimise_batch
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.parallel import REACH, ParallelFits, SimulatedPoints
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.subset_losses import Rows
from stribeck.identify.servo.task import task_for
from stribeck.model.law import law_named
from virtual import Encoder

FEW = replace(MX106, masses=(0.5,), gains=(8.0, 32.0))


@pytest.fixture(scope="module")
def fits():
    """M1, M4 and M6 on all of three runs and on all but one of them, with two strengths of the prior."""
    logs = virtual_logs(FEW, truth_of(FEW, "m1"), "m1", Encoder(0.0))[:3]
    servo = load_actuator("mx106")
    parts = [
        task_for(split_runs(logs), servo, law_named(law), FitSettings(dt=0.02)) for law in ("m1", "m4", "m6")
    ]
    subsets = np.concatenate([np.ones((1, 3), dtype=bool), ~np.eye(3, dtype=bool)])
    return ParallelFits(parts, parts[-1].rollout(), subsets, (1.0, 3.0))


def offered(simulated, law, seed):
    fits, size = simulated.fits, simulated.fits.sizes[law]
    points = np.zeros((4, fits.dimension))
    points[:, :size] = np.random.default_rng(seed).uniform(0.1, 0.4, (4, size))
    rows = Rows(*(np.full(4, value) for value in (law, 2, 1)))
    by_run = fits.run_losses(points, rows)
    simulated.add(fits.general(points, rows), by_run)
    return points, by_run


def test_a_point_counts_for_every_subset_strength_and_richer_law(fits):
    """Points of a fit of M1 to one subset are the best of all fits of M1, M4 and M6; a point of M4 is none of M1."""
    simulated = SimulatedPoints(fits)
    points, by_run = offered(simulated, 0, 0)
    for k in range(len(fits.every.law)):
        row = fits.every.take(np.array([k]))
        rows = row.take(np.zeros(4, int))
        own = fits.losses(points, rows._replace(law=np.zeros(4, int)), by_run)
        point, loss = simulated.lowest(row)
        if row.law[0] == 0:
            assert loss == pytest.approx(np.min(own), rel=1e-12)
            np.testing.assert_allclose(point[0], points[np.argmin(own)], atol=1e-9)
        else:  # the prior is over the law's own coordinates
            assert np.isfinite(loss[0])
    before = simulated.losses.copy()
    offered(simulated, 1, 1)
    np.testing.assert_array_equal(simulated.losses[0], before[0])
    assert np.all(simulated.losses[1:] <= before[1:])


def test_minima_hold_the_best_point_of_every_fit(fits):
    """Ranked by each fit, the pool begins with the lowest loss that was simulated."""
    simulated = SimulatedPoints(fits)
    for law, seed in ((0, 2), (1, 3), (2, 4), (1, 5)):
        offered(simulated, law, seed)
    pool = simulated.minima()
    for k in range(len(fits.every.law)):
        row = fits.every.take(np.array([k]))
        assert fits.ranked(pool, row)[2][0] == pytest.approx(simulated.lowest(row)[1][0], rel=1e-12)


def test_derivatives_at_a_point_are_computed_once(fits):
    """The second subset and strength at a point cost no derivative, and have the same equations as alone."""
    point = np.full((1, fits.dimension), 0.3)
    both = Rows(np.array([2, 2]), np.array([0, 1]), np.array([0, 1]))
    before = fits.rollout.meter.evaluations
    together = fits.equations(np.repeat(point, 2, axis=0), both, fits.rollout)
    assert fits.rollout.meter.evaluations - before == fits.dimension + 1
    for k in range(2):
        alone = fits.equations(point, both.take(np.array([k])), fits.rollout)
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one[k], other[0], rtol=1e-12)


@pytest.mark.parametrize(("excess", "expected"), [(0.9, True), (1.1, False)])
def test_a_law_is_out_of_reach_by_its_loss_on_all_runs(excess, expected):
    """The first law predicts runs left out to 1; the other has 0.9 and 1.1 times the limit already where it is fitted."""
    subsets = np.concatenate([np.ones((1, 2), dtype=bool), np.eye(2, dtype=bool)])
    made = SimpleNamespace(tasks=(0, 1), subsets=subsets, strengths=(1.0,), dimension=1)
    simulated = SimulatedPoints(made)
    simulated.best_by_run[0], simulated.best_by_run[1] = 1.0, 2.0
    simulated.best_by_run[1, 0] = excess * REACH
    assert simulated.within_reach().tolist() == [True, expected]


def test_laws_that_fit_exactly_are_within_reach():
    """Losses of -1e-9 everywhere, by rounding: none is more than 1.5 times the least, and no law at all was searched any further."""
    subsets = np.concatenate([np.ones((1, 2), dtype=bool), np.eye(2, dtype=bool)])
    made = SimpleNamespace(tasks=(0, 1), subsets=subsets, strengths=(1.0,), dimension=1)
    simulated = SimulatedPoints(made)
    simulated.best_by_run[0], simulated.best_by_run[1] = -1e-9, 2.0
    assert simulated.within_reach().tolist() == [True, False]


def test_searches_go_on_from_the_lowest_point_of_all():
    """Of two searches in one valley with a wall between them, the one behind the wall ends at the other's minimum."""
    best, found = np.array([0.2]), {}

    def losses(points, searches):
        costs = np.where(points[:, 0] > 0.5, 10.0, 0.0) + (points[:, 0] - best) ** 2
        for point, cost in zip(points, costs, strict=True):
            if cost < found.get("cost", np.inf):
                found.update(cost=cost, point=point)
        return costs

    def equations(points, searches):
        wall = points[:, 0] > 0.5  # there the loss falls towards the upper bound
        gradient = np.where(wall[:, None], -1.0, 2.0 * (points - best))
        return SimpleNamespace(
            loss=losses(points, searches), gradient=gradient, hessian=np.full((len(points), 1, 1), 2.0)
        )

    def lowest(searches):
        return np.tile(found["point"], (len(searches), 1)), np.full(len(searches), found["cost"])

    points = np.array([[0.3], [0.8]])
    ends = []
    for shared in (None, lowest):
        found.clear()
        ends.append(
            minimise_batch(
                equations,
                losses,
                points,
                losses(points, np.arange(2)),
                iterations=20,
                dampings=np.array([1e-4, 1.0]),
                tolerance=1e-6,
                lowest=shared,
            ).points[:, 0]
        )
    assert ends[0][1] > 0.5
    np.testing.assert_allclose(ends[1], 0.2, atol=1e-3)
