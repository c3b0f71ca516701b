"""Covariances against closed forms and brute force on linear problems."""

import numpy as np
import pytest
from scipy.stats import chi2

from stribeck.identify.common.clusters import (
    LEAST_ELSEWHERE,
    ClusterCovariance,
    Lacking,
    _Whitening,
    between_conditions,
    beyond_noise,
    bias_reduced,
    leave_one_out,
    leave_one_out_of_few,
)


def regression(groups=30, size=3, seed=0):
    """Ordinary least squares with clusters: design, residuals, scores and curvatures."""
    rng = np.random.default_rng(seed)
    designs = [rng.standard_normal((int(rng.integers(3, 12)), size)) for _ in range(groups)]
    targets = [
        design @ np.ones(size) + rng.standard_normal(len(design)) + rng.standard_normal()
        for design in designs
    ]
    whole, wanted = np.vstack(designs), np.concatenate(targets)
    estimate = np.linalg.lstsq(whole, wanted, rcond=None)[0]
    residuals = [design @ estimate - target for design, target in zip(designs, targets, strict=True)]
    scores = np.array([design.T @ residual for design, residual in zip(designs, residuals, strict=True)])
    curvatures = np.array([design.T @ design for design in designs])
    return designs, targets, residuals, scores, curvatures


def test_leave_one_out_is_the_jackknife():
    """CR3 equals refitting without each cluster, which is exact for a linear model."""
    designs, targets, _, scores, curvatures = regression()
    groups = len(designs)
    refits = []
    for left_out in range(groups):
        kept = [k for k in range(groups) if k != left_out]
        whole, wanted = np.vstack([designs[k] for k in kept]), np.concatenate([targets[k] for k in kept])
        refits.append(np.linalg.lstsq(whole, wanted, rcond=None)[0])
    full = np.linalg.lstsq(np.vstack(designs), np.concatenate(targets), rcond=None)[0]
    moved = np.array(refits) - full
    expected = (groups - 1) / groups * moved.T @ moved
    np.testing.assert_allclose(leave_one_out(scores, curvatures).matrix, expected, rtol=1e-9)


def test_bias_reduced_is_the_textbook_form():
    """CR2 equals Bell and McCaffrey's (I - H_gg)^(-1/2) on the residuals of each cluster."""
    designs, _, residuals, scores, curvatures = regression(groups=12)
    inverse = np.linalg.inv(curvatures.sum(axis=0))
    middle = np.zeros_like(inverse)
    for design, residual in zip(designs, residuals, strict=True):
        values, vectors = np.linalg.eigh(np.eye(len(design)) - design @ inverse @ design.T)
        adjusted = design.T @ (vectors @ ((vectors.T @ residual) / np.sqrt(values)))
        middle += np.outer(adjusted, adjusted)
    np.testing.assert_allclose(bias_reduced(scores, curvatures).matrix, inverse @ middle @ inverse, rtol=1e-8)


def test_freedom_is_that_of_equal_clusters():
    """The mean of G equal clusters has G - 1 degrees of freedom."""
    groups = 9
    scores = np.random.default_rng(1).standard_normal((groups, 1))
    found = bias_reduced(scores - scores.mean(axis=0), np.ones((groups, 1, 1)))
    assert found.freedom[0] == pytest.approx(groups - 1)


@pytest.mark.parametrize("covariance", [bias_reduced, leave_one_out])
def test_a_direction_without_rank_is_never_narrow(covariance):
    """Two parameters of which only the sum matters have infinite intervals, the third does not."""
    _, _, _, scores, curvatures = regression(groups=20)
    mix = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    found = covariance(scores @ mix, mix.T @ curvatures @ mix)
    widths = found.half_widths(0.95)
    assert np.all(np.isinf(widths[:2]))
    assert np.isfinite(widths[2])


def test_fewer_blocks_than_parameters_determine_nothing():
    """Leave-one-out needs more clusters than parameters."""
    _, _, _, scores, curvatures = regression(groups=3)
    assert np.all(np.isinf(leave_one_out(scores, curvatures).half_widths(0.95)))


def test_correlation_by_hand():
    """Covariance 4, 9, 3 is correlation 0.5; a parameter without rank or variance has none."""
    matrix = np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
    covariance = ClusterCovariance(matrix, np.ones(3), np.array([False, False, False]))
    found = covariance.correlation(["a", "b", "c"])
    assert found is not None
    assert (found.names, found.matrix) == (("a", "b"), ((1.0, 0.5), (0.5, 1.0)))
    blind = ClusterCovariance(matrix, np.ones(3), np.array([False, True, False]))
    assert blind.correlation(["a", "b", "c"]) is None


def test_a_prior_that_tells_nothing_changes_nothing_and_a_firm_one_holds():
    """Leave-one-out with the precision of a prior: none is zero; of a known parameter nothing moves."""
    _, _, _, scores, curvatures = regression()
    plain = leave_one_out(scores, curvatures)
    np.testing.assert_allclose(leave_one_out(scores, curvatures, np.zeros((3, 3))).matrix, plain.matrix)
    firm = leave_one_out(scores, curvatures, np.diag([1e9, 0.0, 0.0])).matrix
    assert firm[0, 0] < 1e-9 * plain.matrix[0, 0]
    assert firm[1, 1] > 0.5 * plain.matrix[1, 1]


@pytest.mark.parametrize("covariance", [bias_reduced, leave_one_out])
def test_intervals_of_clustered_data_cover_the_truth(covariance):
    """400 regressions with an error common to each of 20 clusters: 95 % intervals hold the truth in 92 to 98 %."""
    hits = []
    for seed in range(400):
        designs, targets, _, scores, curvatures = regression(groups=20, seed=seed)
        estimate = np.linalg.lstsq(np.vstack(designs), np.concatenate(targets), rcond=None)[0]
        hits.append(np.abs(estimate - 1.0) <= covariance(scores, curvatures).half_widths())
    assert 0.92 <= np.mean(hits) <= 0.98


def test_clusters_of_few_rows_give_the_same_jackknife():
    """By matrices of the size of a cluster, up to the factor (G - 1)/G."""
    rng = np.random.default_rng(3)
    groups, jacobians, weights = 20, rng.standard_normal((20, 2, 4)), rng.uniform(0.2, 1.0, 20)
    residuals, ridge = rng.standard_normal((20, 2)), np.array([0.0, 0.5, 0.0, 1.0])
    scores = np.einsum("g,gmn,gm->gn", weights, jacobians, residuals)
    curvatures = np.einsum("g,gmi,gmj->gij", weights, jacobians, jacobians)
    expected = leave_one_out(scores, curvatures, np.diag(ridge)).matrix * groups / (groups - 1)
    found = leave_one_out_of_few(jacobians, residuals, weights, ridge)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_intervals_between_conditions_hold_what_a_model_lacks():
    """Coulomb and viscous friction fitted to a Stribeck curve that is passed often: most of the curve lies within the band.

    Blocks of time, which all err alike, announce a band that hardly any of it is in.
    """
    rng = np.random.default_rng(4)
    velocity = np.sin(np.linspace(0.0, 400.0 * np.pi, 20_000)) * np.sin(np.linspace(0.0, 7.0, 20_000))
    columns = np.stack([np.sign(velocity), velocity], axis=1)
    curve = columns @ [1.0, 0.5] + 0.3 * np.sign(velocity) * np.exp(-((velocity / 0.2) ** 2))
    torque = curve + 0.02 * rng.standard_normal(len(velocity))
    values, *_ = np.linalg.lstsq(columns, torque, rcond=None)
    residual = torque - columns @ values
    blocks = np.array_split(np.arange(len(velocity)), 40)
    by_time = leave_one_out(
        np.array([columns[rows].T @ residual[rows] for rows in blocks]),
        np.array([columns[rows].T @ columns[rows] for rows in blocks]),
    ).matrix
    lacking = between_conditions([(columns, residual, velocity[:, None])])
    speeds = np.linspace(0.1, 0.9, 30)
    points = np.stack([np.ones(30), speeds], axis=1)
    error = points @ values - (1.0 + 0.5 * speeds + 0.3 * np.exp(-((speeds / 0.2) ** 2)))

    def covered(covariance):
        return np.mean(np.abs(error) < 1.96 * np.sqrt(np.einsum("pi,ij,pj->p", points, covariance, points)))

    assert covered(by_time) < 0.3
    assert covered(beyond_noise(by_time, lacking)) > 0.6


def test_what_a_model_lacks_adds_as_far_as_it_exceeds_noise():
    """A variance that noise alone explains is part of it; degrees of freedom are those of Welch and Satterthwaite."""
    own = ClusterCovariance(np.eye(2), np.array([4.0, 4.0]), np.zeros(2, dtype=bool))
    between = np.array([np.diag([2.0, 0.5]), np.diag([0.5, 1.4])])
    both = own.beyond(Lacking(between, np.full((2, 2), 1.5)), 6.0)
    np.testing.assert_allclose(both.matrix, np.diag([2.0, 1.0]))
    np.testing.assert_allclose(both.freedom, [9.6, 4.0])


def test_what_a_model_lacks_has_the_degrees_of_freedom_of_its_cells():
    """Of one condition, of two with excesses of 1 and 3, and of none."""
    own = ClusterCovariance(np.eye(3), np.full(3, 4.0), np.zeros(3, dtype=bool))
    between = np.array([np.diag([2.0, 2.0, 0.5]), np.diag([1.0, 4.0, 1.2])])
    freedom = np.array([[6.0, 6.0, 6.0], [3.0, 3.0, 3.0]])
    both = own.beyond(Lacking(between, np.full((2, 3), 1.5), freedom))
    np.testing.assert_allclose(np.diag(both.matrix), [2.0, 5.0, 1.0])
    second = 0.2**2 / 4.0 + 0.8**2 * (0.25**2 / 6.0 + 0.75**2 / 3.0)
    np.testing.assert_allclose(1.0 / both.freedom, [0.5**2 / 4.0 + 0.5**2 / 6.0, second, 0.25])
    kept = Lacking(between, np.full((2, 3), 1.5), freedom).of(np.array([1]))
    np.testing.assert_allclose(kept.beyond(np.ones(1)), [[1.0], [3.0]])
    np.testing.assert_allclose(kept.freedom, [[6.0], [3.0]])


@pytest.mark.parametrize("groups", [8, 30])
def test_noise_alone_passes_for_a_lack_as_often_as_stated(groups):
    """The limit by simulation: white noise in cells of unequal information exceeds it in 5 % (3-8 %) of 1500 cases.

    Equal cells of one parameter by hand: chi-squared with G - 1 degrees of freedom.
    """
    rng = np.random.default_rng(5)
    curvatures = np.array([np.outer(row, row) for row in rng.normal(size=(groups, 2))])
    curvatures += 0.3 * np.eye(2)
    total = np.linalg.inv(curvatures.sum(axis=0))
    whitening = _Whitening.of(curvatures, None)
    limit = whitening.limit(LEAST_ELSEWHERE)
    exceeds = []
    roots = np.linalg.cholesky(curvatures)
    for _ in range(1500):
        scores = np.einsum("gij,gj->gi", roots, rng.normal(size=(groups, 2)))
        scores -= np.einsum("gij,jk,k->gi", curvatures, total, scores.sum(axis=0))  # at the optimum
        between = whitening.left_out(scores, LEAST_ELSEWHERE)
        exceeds.append(np.diag(between) > limit * np.diag(total))
    assert np.all(np.mean(exceeds, axis=0) > 0.03)
    assert np.all(np.mean(exceeds, axis=0) < 0.08)
    equal = _Whitening.of(np.ones((groups, 1, 1)), None).limit(LEAST_ELSEWHERE)
    by_hand = chi2.ppf(0.95, groups - 1) / (groups - 1)
    np.testing.assert_allclose(equal, by_hand)
