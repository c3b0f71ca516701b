"""A law is chosen by conditions left out, and the error announced is not the one that it was chosen by."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import stribeck as sb
from helpers import XL330, needs_xl330
from recovery import MX106, truth_of, virtual_logs
from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.conditions import MOST_LEVELS, ConditionKind, kinds_of
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.parallel import ParallelFits, Stage
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.selection import STRENGTHS, LeftOutErrors, Subsets, Variant, expected_of, select
from stribeck.identify.servo.subset_losses import Rows
from stribeck.identify.servo.task import task_for
from stribeck.model.law import law_named
from stribeck.model.step import simulate
from virtual import Encoder

FEW = replace(MX106, masses=(0.5, 1.5), gains=(8.0, 32.0))


@pytest.fixture(scope="module")
def logs():
    return virtual_logs(FEW, truth_of(FEW, "m1"), "m1", Encoder(0.0))


def tasks(logs, laws, effects=(), actuator="mx106"):
    servo = load_actuator(actuator).with_effects(effects)
    return [task_for(split_runs(logs), servo, law_named(law), FitSettings(trials=800)) for law in laws]


def test_conditions_are_what_the_runs_vary(logs):
    """Gains and loads in increasing order, trajectories; single runs where nothing varies; nothing for one run."""
    kinds = {kind.name: kind for kind in kinds_of(logs)}
    assert [name for name, _ in kinds["gain"].levels] == ["gain 8", "gain 32"]
    assert len(kinds["load"].levels) == 2
    assert len(kinds["trajectory"].levels) == 4
    for kind in kinds.values():
        assert np.all(np.sum(kind.masks, axis=0) == 1)
    same = [replace(logs[0], name=f"run {k}") for k in range(2 * MOST_LEVELS)]
    (kind,) = kinds_of(same)
    assert (kind.name, len(kind.levels)) == ("run", MOST_LEVELS)
    assert np.sum(kind.masks) == len(same)
    assert kinds_of(logs[:1]) == []


def hand_made(errors, sizes, effects=None, strengths=None):
    """Errors of candidates at three gains, the same however they were fitted; one run for each."""
    errors = np.asarray(errors, dtype=float)
    runs = errors.shape[1]
    kinds = [ConditionKind("gain", tuple((f"{k}", np.arange(runs) == k) for k in range(runs)), "higher gain")]
    subsets = Subsets(kinds, runs)
    by_run = np.repeat(errors[:, None, :], len(subsets.masks), axis=1)
    parts = zip(sizes, effects or [0] * len(sizes), strengths or [1.0] * len(sizes), strict=True)
    variants = [Variant("m1", ("delay",) * count, strength, size) for size, count, strength in parts]
    return LeftOutErrors(by_run, subsets, kinds, variants)


def test_the_simplest_law_within_one_standard_error_is_chosen():
    """The second differs from the best by 0.1 ± 0.2, the third by 1 ± 0.2."""
    best = [3.0, 3.0, 3.0]
    near = [3.5, 2.9, 2.9]
    far = [4.4, 3.8, 3.8]
    assert hand_made([best, near, far], [9, 5, 3]).choose() == 1
    assert hand_made([best, near, far], [3, 5, 9]).choose() == 0


def test_known_effects_stay_unless_they_predict_worse():
    """Two candidates of one size, 0.1 ± 0.2 and then 1 ± 0.2 apart."""
    assert hand_made([[3.0, 3.0, 3.0], [3.5, 2.9, 2.9]], [5, 5], [0, 2]).choose() == 1
    assert hand_made([[3.0, 3.0, 3.0], [4.4, 3.8, 3.8]], [5, 5], [0, 2]).choose() == 0


def test_the_strongest_prior_stays_unless_it_predicts_worse():
    """Two strengths of one law, 0.1 ± 0.2 and then 1 ± 0.2 apart: no strength is picked by chance."""
    strengths = [1.0, 3.0]
    assert hand_made([[3.0, 3.0, 3.0], [3.5, 2.9, 2.9]], [5, 5], strengths=strengths).choose() == 1
    assert hand_made([[3.0, 3.0, 3.0], [4.4, 3.8, 3.8]], [5, 5], strengths=strengths).choose() == 0


def test_the_expected_error_is_not_that_of_the_choice():
    """Three laws, each lucky at one gain: the choice has 2.33, but the law chosen without a gain has 3 there."""
    lucky = 3.0 - 2.0 * np.eye(3)
    judged = hand_made(lucky, [5, 5, 5])
    chosen = judged.choose()
    assert np.mean(lucky[chosen]) == pytest.approx(7.0 / 3.0)
    assert judged.expected()["gain"].value == pytest.approx(3.0)
    assert set(judged.expected()) == {"gain", "higher gain"}


def test_the_interval_of_an_expected_error_by_hand():
    """Equal errors leave the prior alone: spread² = 2·0.25²/4 with 4 degrees of freedom, t = 2.776."""
    one = expected_of(np.array([0.03, 0.03, 0.03]))
    half = 2.7764 * 0.25 * np.sqrt(0.5) * np.sqrt(4.0 / 3.0)
    np.testing.assert_allclose(one.interval, 0.03 * np.exp([-half, half]), rtol=1e-4)


def test_intervals_of_expected_errors_hold_the_next_error():
    """Log-normal errors of 3 to 6 conditions with spreads of 0.1 to 0.5: 95 % intervals hold 92 to 99 %."""
    rng = np.random.default_rng(0)
    inside = []
    for count, spread in itertools.product((3, 4, 6), (0.1, 0.25, 0.5)):
        for errors in np.exp(rng.normal(-3.5, spread, (300, count + 1))):
            low, high = expected_of(errors[:-1]).interval
            inside.append(low <= errors[-1] <= high)
    assert 0.92 < np.mean(inside) < 0.99


def point_of(fits, law, subset):
    size = int(fits.sizes[law])
    point = np.zeros((1, fits.dimension))
    point[0, :size] = np.random.default_rng(law).uniform(0.1, 0.4, size)
    return point, Rows(np.array([law]), np.array([subset]), np.array([0]))


@pytest.mark.slow
@pytest.mark.parametrize("laws", [("m1", "m4", "m6"), ("m3", "m4")], ids="-".join)
def test_a_law_has_its_own_errors_in_the_program_of_the_general_law(logs, laws):
    """M1 and M4 in M6's program, M3 in M4's, against core in float64; mapped back, the points are the same."""
    few = logs[::5]
    parts = tasks(few, laws)
    fits = ParallelFits(parts, parts[-1].rollout(), np.ones((1, len(few)), dtype=bool))
    for law, task in enumerate(fits.tasks[:-1]):
        point, rows = point_of(fits, law, 0)
        values = task.parameters.with_vector(task.parameters.from_unit(point[0, : fits.sizes[law]])).values()
        batch = fits.rollout.batch
        own = batch.mean_absolute_errors(simulate(batch, task.actuator, task.law, values).position)
        general = fits.general(point, rows)
        np.testing.assert_allclose(fits.rollout.run_errors(general)[0], own, atol=2e-5)
        back, contained = fits.projected(general, law)
        assert contained[0]
        np.testing.assert_allclose(back, point, atol=1e-9)


@pytest.mark.slow
def test_the_gradient_on_a_subset_is_that_of_a_fit_to_the_subset(logs):
    """M4 in M6's program on two of four runs of one gain, against its own program on these two, both in float64."""
    few = [log for log in logs if log.setup.kp == 32.0][:4]
    subsets = np.array([[True] * 4, [True, False, True, False]])
    settings = FitSettings(dtype="float64")
    parts = [replace(task, settings=settings) for task in tasks(few, ("m4", "m6"))]
    fits = ParallelFits(parts, parts[-1].rollout(), subsets)
    point, rows = point_of(fits, 0, 1)
    own = replace(fits.tasks[0], split=split_runs(few[::2])).rollout()
    loss = fits.losses(point, rows, fits.run_losses(point, rows))
    size = fits.sizes[0]
    np.testing.assert_allclose(loss, own.losses(point[:, :size]), rtol=1e-9)
    gradient = fits.equations(point, rows, fits.rollout).gradient[:, :size]
    expected = own.normal_equations(point[:, :size]).gradient
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.max(np.abs(expected)))


@needs_xl330
@pytest.mark.slow
def test_fits_of_a_comparison_have_converged():
    """Gains 100 and 200 of the XL330, M5 with all strengths of the prior: further steps from the best points lower no loss by 2 %.

    One that ended early had 6 %, and predicted gain 400 with 41 mrad where its minimum has 66.
    """
    files = sorted(path for gain in (100, 200) for path in XL330.glob(f"kp{gain}_*.json"))
    runs = sb.load(files, arm_mass=0.0).logs
    assert len(runs) == 8
    parts = tasks(runs, ("m4", "m5"), ("current-limit", "saturation", "supply"), "xl330")
    subsets = np.stack(Subsets(kinds_of(runs), len(runs)).masks)
    fits = ParallelFits(parts, parts[-1].rollout(), subsets, STRENGTHS)
    pool = fits.fit()
    rows = fits.every.take(fits.every.law == 1)
    found = [fits.ranked(pool, rows.take(np.array([k]))) for k in range(len(rows.law))]
    start = np.stack([points[0] for _, points, _ in found])
    further = fits.refine(start, rows, Stage(1, 12, 0))
    before = np.array([losses[0] for _, _, losses in found])
    after = fits.losses(further, rows, fits.run_losses(further, rows))
    assert np.max(1.0 - after / before) < 0.02


@pytest.mark.slow
def test_coulomb_friction_is_recognised(logs):
    """Truth M1 among M1, M3 and M6: M1 is chosen, and errors under conditions left out are below an encoder step."""
    selection = select([tasks(logs, ("m1", "m3", "m6"))])
    assert selection.task.law.name == "m1"
    assert set(selection.expected) == {"gain", "higher gain", "load", "heavier load", "trajectory"}
    assert all(one.value < 1.6e-3 for one in selection.expected.values())
