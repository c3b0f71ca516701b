"""Search: derivatives, feasibility, gain, and the same answer again."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from designing import small_task
from stribeck.errors import ConfigError
from stribeck.excitation.baseline import Baseline, random_baseline, shrunk
from stribeck.excitation.check import check
from stribeck.excitation.criterion import Criterion
from stribeck.excitation.search import Clock, descend, search
from stribeck.identify.common.solver_status import SolverStatus

pytestmark = pytest.mark.slow  # most of it compiles; the command's tests design a trajectory too


@pytest.fixture(scope="module")
def criterion(tmp_path_factory: pytest.TempPathFactory) -> Criterion:
    return Criterion(small_task(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as found:
        yield found


@pytest.fixture(scope="module")
def baseline(criterion: Criterion, pool: ThreadPoolExecutor) -> Baseline:
    return random_baseline(criterion, 128, 0, pool)


def test_gradient_of_the_barrier_is_that_of_finite_differences(
    criterion: Criterion, baseline: Baseline
) -> None:
    """Information, joint limits, torques, distances and heights together, along five random directions."""
    z, h = shrunk(criterion.task, baseline.z[0], 0.9), 1e-6
    _, gradient = criterion.barrier(z, 0.1)
    steps = h * np.random.default_rng(0).standard_normal((5, len(z)))
    numeric = [(criterion.barrier(z + s, 0.1)[0] - criterion.barrier(z - s, 0.1)[0]) / (2 * h) for s in steps]
    np.testing.assert_allclose(steps @ gradient / h, numeric, rtol=1e-5, atol=1e-5)


def test_log_det_is_that_of_pinocchios_regressor(criterion: Criterion, baseline: Baseline) -> None:
    """The same figure by numpy, from the definition."""
    task, z = criterion.task, baseline.z[0]
    time = task.duration * np.arange(task.samples) / task.samples
    regressor = task.base.reduce(task.arm.regressor(*task.trajectory(z).states(time)))
    stacked = (regressor / task.noise[:, None]).reshape(-1, len(task.base))
    sign, expected = np.linalg.slogdet(stacked.T @ stacked)
    assert sign == 1.0
    assert criterion.score(z).log_det == pytest.approx(expected, abs=1e-6)
    sigmas = np.sqrt(np.diag(np.linalg.inv(stacked.T @ stacked)))
    np.testing.assert_allclose(task.sigmas(task.trajectory(z)), sigmas, rtol=1e-6)


def test_the_whole_covariance_of_the_torques_counts(tmp_path: Path, baseline: Baseline) -> None:
    """Information, its gradient and the predicted deviations with correlated noise, from the definition."""
    spread = [[4.0, 1.5, 0.0], [1.5, 1.0, 0.1], [0.0, 0.1, 0.5]]
    changes = {"excitation": {"floor": 0.0, "noise_covariance": spread}, "collisions": False}
    task = small_task(tmp_path, **changes)
    criterion = Criterion(task)
    z = shrunk(task, baseline.z[0], 0.9)
    time = task.duration * np.arange(task.samples) / task.samples
    rows = task.base.reduce(task.arm.regressor(*task.trajectory(z).states(time)))
    fisher = np.einsum("nja,jk,nkb->ab", rows, np.linalg.inv(spread), rows)
    assert criterion.score(z).log_det == pytest.approx(np.linalg.slogdet(fisher)[1], abs=1e-6)
    sigmas = np.sqrt(np.diag(np.linalg.inv(fisher)))
    np.testing.assert_allclose(task.sigmas(task.trajectory(z)), sigmas, rtol=1e-6)
    _, gradient = criterion.barrier(z, 0.1)
    steps = 1e-6 * np.random.default_rng(0).standard_normal((3, len(z)))
    numeric = [(criterion.barrier(z + s, 0.1)[0] - criterion.barrier(z - s, 0.1)[0]) / 2e-6 for s in steps]
    np.testing.assert_allclose(steps @ gradient / 1e-6, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"noise_covariance": [[1.0, 2.0], [2.0, 1.0]]}, "expected 3 rows of 3 numbers"),
        ({"noise_covariance": [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}, "positive definite"),
        ({"noise_covariance": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "noise": 1.0}, "give one"),
    ],
)
def test_what_is_no_covariance_is_refused(tmp_path: Path, section: dict[str, Any], said: str) -> None:
    """Of another size, not positive definite, or beside deviations."""
    with pytest.raises(ConfigError, match=said):
        small_task(tmp_path, excitation=section)


def test_outside_the_limits_the_barrier_is_infinite(criterion: Criterion, baseline: Baseline) -> None:
    """Twice the amplitude of a trajectory that is at a limit."""
    assert criterion.barrier(shrunk(criterion.task, baseline.z[0], 2.0), 0.1)[0] == np.inf


def test_curvature_of_the_joint_limits_is_positive(criterion: Criterion, baseline: Baseline) -> None:
    """As a first guess of a Hessian must be."""
    z = shrunk(criterion.task, baseline.z[0], 0.5)
    assert np.linalg.eigvalsh(criterion.curvature(z, 1.0)).min() > 0.0


def test_random_trajectories_keep_all_limits(criterion: Criterion, baseline: Baseline) -> None:
    """The independent check finds nothing, and each has a joint at a limit or bodies in the way."""
    for z in baseline.z[:10]:
        report = check(criterion.task, criterion.task.trajectory(z), rate=200.0)
        assert report.clean, report.summary
    assert (np.diff(baseline.log_det[:100]) <= 0.0).all()


def test_designed_trajectory_tells_more_and_keeps_all_limits(criterion: Criterion) -> None:
    """Two starts; log det rises although bodies leave little room."""
    found = search(criterion, Clock(60.0), starts=2, random=128, seed=0)
    best = found.climbs[0]
    assert best.log_det > found.baseline.log_det[0] + 1.5
    assert all(climb.finished and climb.log_det >= climb.start_log_det for climb in found.climbs)
    report = check(criterion.task, criterion.task.trajectory(best.z))
    assert report.clean, report.summary


def test_same_seed_gives_the_same_trajectory(criterion: Criterion) -> None:
    """However the threads share the work."""
    first, second = (search(criterion, Clock(60.0), starts=2, random=40, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.climbs[0].z, second.climbs[0].z)


def test_called_off_the_best_random_trajectory_is_left(criterion: Criterion) -> None:
    """Ctrl-C before anything is drawn: a few trajectories of each thread, and the best as the result."""
    clock = Clock(60.0)
    clock.call_off()
    found = search(criterion, clock, starts=2, random=400, seed=0)
    assert len(found.baseline.z) < 128
    assert found.climbs[0].log_det == found.baseline.log_det[0]
    assert not found.climbs[0].finished


def test_no_room_between_the_bodies_is_said(criterion: Criterion, pool: ThreadPoolExecutor) -> None:
    """A floor above the arm."""
    buried = Criterion(replace(criterion.task, floor=5.0))
    with pytest.raises(ConfigError, match="too close to the floor or in self-collision"):
        random_baseline(buried, 10, 0, pool)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_descent_finds_the_corner_of_a_constrained_quadratic() -> None:
    """Minimum of (x - 2)^2 + (y - 1)^2 for x < 1 on a barrier: at x = 1, y = 1 as its weight vanishes."""

    def value(x: np.ndarray, weight: float) -> tuple[float, np.ndarray]:
        if x[0] >= 1.0:
            return np.inf, np.full(2, np.nan)
        gradient = 2 * (x - [2.0, 1.0]) + np.array([weight / (1.0 - x[0]), 0.0])
        return float(np.sum((x - [2.0, 1.0]) ** 2) - weight * np.log(1.0 - x[0])), gradient

    x = np.array([-3.0, 4.0])
    for weight in (1.0, 0.1, 1e-2, 1e-4):
        x, status = descend(lambda x, weight=weight: value(x, weight), x, np.eye(2), tolerance=1e-12)
        assert status is SolverStatus.CONVERGED
    np.testing.assert_allclose(x, [1.0, 1.0], atol=1e-3)
