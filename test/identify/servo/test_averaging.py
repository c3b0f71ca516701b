"""Averages of fits: weights, mean and spread of their motions, and the file that keeps them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from recovery import Bench, truth_of, virtual_logs
from stribeck.api.prediction import predicted
from stribeck.cli.main import main
from stribeck.errors import ParameterFileError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.identify.servo.averaging import Found, members_of, weights_of
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.prediction import alike, averaged, factor_of, half_widths, mixed
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.task import task_for
from stribeck.model.joint import Drive, Member, Prediction
from stribeck.model.law import law_named
from stribeck.model.step import batch_for, simulate
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder

BENCH = Bench("mx106", (0.5,), 0.15, 0.05, (8.0, 32.0), 15.0)


@pytest.fixture(scope="module")
def logs():
    return virtual_logs(BENCH, truth_of(BENCH, "m1"), "m1", Encoder(0.0))[:4]


@pytest.fixture(scope="module")
def drive(logs):
    """The truth with the prediction of a fit that knows its parameters exactly."""
    names, known = ("friction_base",), ((0.0,),)
    prediction = Prediction(names, known, 0.01, 0.5, {"recorded": 1.0}, {"gain": ("8.0", "32.0")})
    return Drive(
        load_actuator("mx106"),
        law_named("m1"),
        truth_of(BENCH, "m1").values(),
        prediction=prediction,
    )


def with_members(drive, *members):
    return replace(drive, prediction=replace(drive.prediction, members=members))


def more_friction(drive, factor):
    return {**drive.values, "friction_base": factor * drive.values["friction_base"]}


def test_equal_candidates_have_equal_weights():
    """Three candidates with the same errors under two gains and three trajectories."""
    errors = [np.full((3, 2), 0.02), np.tile([0.01, 0.03, 0.02], (3, 1))]
    np.testing.assert_allclose(weights_of(errors, 12.0), 1.0 / 3.0)


def test_a_candidate_that_is_far_worse_has_no_weight():
    """Three times the error in eight runs: 3⁻⁸; one that diverges under a condition: 0."""
    errors = np.array([[1.0, 1.0, 1.0], [3.0, 3.0, 3.0], [1.0, np.inf, 1.0]])
    weights = weights_of([errors], 8.0)
    np.testing.assert_allclose(weights, [1.0 / (1.0 + 3.0**-8), 3.0**-8 / (1.0 + 3.0**-8), 0.0], atol=1e-12)


def test_weights_are_those_of_the_bayesian_bootstrap():
    """Two candidates of which each is better under one of two conditions: α uniform, so that the mean share is known by quadrature."""
    errors = np.array([[1.0, 2.0], [1.5, 1.4]])
    alpha = (np.arange(20000) + 0.5) / 20000
    first, second = (e[0] * alpha + e[1] * (1.0 - alpha) for e in errors)
    expected = np.mean(1.0 / (1.0 + (first / second) ** 6.0))
    assert weights_of([errors], 6.0)[0] == pytest.approx(expected, abs=0.03)


def test_weights_are_flatter_the_fewer_runs_there_are():
    """Errors of 2 and 3: with no run equal weights, and the better one gains with every run."""
    errors = [np.array([[2.0, 2.0], [3.0, 3.0]])]
    weights = [weights_of(errors, samples)[0] for samples in (0.0, 1.0, 4.0, 16.0)]
    np.testing.assert_allclose(weights, [1.0 / (1.0 + 1.5**-n) for n in (0.0, 1.0, 4.0, 16.0)], rtol=1e-9)


def test_mean_and_variance_of_fits_by_hand():
    """Positions 0 and 2 with weights 3/4 and 1/4: mean 0.5, variance 0.75, and 1 about the first."""
    fits = mixed(np.zeros((1, 1)), np.full((1, 1, 1), 2.0), np.array([0.25]))
    assert fits.mean[0, 0] == pytest.approx(0.5)
    assert fits.variance[0, 0] == pytest.approx(0.75)
    assert fits.about(np.zeros((1, 1)))[0, 0] == pytest.approx(1.0)


def test_the_error_of_a_mean_is_at_most_the_mean_of_the_errors():
    """Random motions and weights: Jensen's inequality for the mean absolute error of every run."""
    rng = np.random.default_rng(0)
    measured, best = rng.standard_normal((2, 50, 3))
    others, weights = rng.standard_normal((50, 3, 4)), 0.9 * rng.dirichlet(np.ones(4))
    fits = mixed(best, others, weights)
    each = [np.mean(np.abs(others[:, :, k] - measured), axis=0) for k in range(4)]
    bound = 0.1 * np.mean(np.abs(best - measured), axis=0) + weights @ np.array(each)
    assert np.all(np.mean(np.abs(fits.mean - measured), axis=0) <= bound)


def test_members_that_are_simulated_together_have_one_law_and_one_delay():
    """Laws and effects may come in any order; a delay is a property of all runs of a simulation."""
    values = [{"command_delay": 0.0}, {"command_delay": 0.01}, {}]
    listed = [Member(0.1, law, (), v) for law in ("m4", "m1") for v in values]
    assert sorted(sorted(group) for group in alike(listed)) == [[0, 2], [1], [3, 5], [4]]


def task_of(logs, law):
    return task_for(split_runs(logs), load_actuator("mx106"), law_named(law), FitSettings())


def test_minima_share_the_weight_of_their_candidate_by_their_losses(logs):
    """M1 has 0.6 and two minima with losses 1 and 1.1, of which the best fit is one; M3 has 0.4 and one minimum."""
    task, other = task_of(logs, "m1"), task_of(logs, "m3")
    point, far = np.full(len(task.parameters.free), 0.5), np.full(len(task.parameters.free), 0.2)
    place = np.full((1, len(other.parameters.free)), 0.3)
    found = [
        Found(task, 0.6, np.array([point + 0.01, far]), np.array([1.05, 1.1])),
        Found(other, 0.4, place, np.array([2.0])),
    ]
    members = members_of(found, task, point, 1.0)
    share = 1.1 ** -len(logs)
    assert [one.model for one in members] == ["m3", "m1"]
    np.testing.assert_allclose([one.weight for one in members], [0.4, 0.6 * share / (1.0 + share)])
    assert members[0].values == other.parameters.with_vector(other.parameters.from_unit(place[0])).values()


def test_a_fit_without_a_comparison_is_no_average(logs):
    """No candidates: no members."""
    task = task_of(logs, "m1")
    assert members_of((), task, np.full(len(task.parameters.free), 0.5), 1.0) == ()


def test_the_average_of_equal_fits_is_each_of_them(logs, drive):
    """Whatever their weights: the same motion, and no spread between them."""
    batch = batch_for(logs, 0.005, "exponential")
    best = simulate(batch, drive.actuator, drive.law, drive.values).position
    for weights in ((0.2, 0.3), (0.7, 0.2)):
        equal = with_members(drive, *(Member(w, "m1", (), dict(drive.values)) for w in weights))
        fits = averaged(equal, batch, "exponential", None, best)
        np.testing.assert_allclose(fits.mean, best, atol=1e-12)
        np.testing.assert_allclose(fits.variance, 0.0, atol=1e-20)
        np.testing.assert_allclose(
            half_widths(equal, batch, "exponential", None), half_widths(drive, batch, "exponential", None)
        )


@pytest.mark.ci
def test_a_prediction_is_the_weighted_mean_of_the_simulated_motions(logs, drive):
    """Two laws, one with an effect, each simulated alone."""
    m3 = {**more_friction(drive, 0.8), "load_friction_base": 0.1}
    members = (
        Member(0.3, "m1", (), more_friction(drive, 2.0)),
        Member(0.1, "m3", ("supply",), m3),
        Member(0.2, "m1", (), more_friction(drive, 0.5)),
    )
    run = logs[0]
    batch = batch_for([run], 0.005, "exponential")
    servo = drive.actuator
    alone = [
        simulate(batch, servo, drive.law, drive.values).position,
        simulate(batch, servo, drive.law, members[0].values).position,
        simulate(batch, servo.with_effects(["supply"]), law_named("m3"), m3).position,
        simulate(batch, servo, drive.law, members[2].values).position,
    ]
    weights = np.array([0.4, 0.3, 0.1, 0.2])
    mean = np.tensordot(weights, alone, 1)
    found = predicted(with_members(drive, *members), run, "")
    np.testing.assert_allclose(found.position, mean[:, 0], atol=1e-12)
    variance = np.tensordot(weights, (np.array(alone) - mean) ** 2, 1)
    plain = predicted(drive, run, "").band
    np.testing.assert_allclose(found.band, plain * np.sqrt(1.0 + variance[:, 0] / 0.01**2), rtol=1e-9)


def test_the_fits_survive_their_file_and_older_files_have_none(drive, tmp_path):
    """Written and read: the same members; a file without the key predicts with its own law."""
    several = with_members(drive, Member(0.25, "m1", ("supply",), more_friction(drive, 2.0)))
    write_drive(tmp_path / "several.json", several)
    write_drive(tmp_path / "one.json", drive)
    assert read_drive(tmp_path / "several.json").prediction == several.prediction
    assert "members" not in json.loads((tmp_path / "one.json").read_text())["stribeck"]["prediction"]
    assert read_drive(tmp_path / "one.json").prediction.members == ()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model": "m7"}, "members[0]"),
        ({"weight": 1.0}, "between 0 and 1"),
        ({"effects": ["fire"]}, "members[0]"),
        ({"values": {"kt": 1.0}}, "members[0]"),
    ],
    ids=["law", "weight", "effect", "values"],
)
def test_a_member_that_cannot_be_simulated_is_refused(drive, tmp_path, change, text):
    """Unknown laws and effects, missing values, weights that leave none for the fit of the file."""
    path = tmp_path / "file.json"
    write_drive(path, with_members(drive, Member(0.25, "m1", (), dict(drive.values))))
    content = json.loads(path.read_text())
    content["stribeck"]["prediction"]["members"][0] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(ParameterFileError) as caught:
        read_drive(path)
    assert text in str(caught.value)


def test_bands_widen_with_the_distance_from_the_recorded_gains(logs):
    """Gains 8, 16 and 32: between them the factor of a new gain, one step above that of a higher one, two steps above twice as far."""
    factors = {"recorded": 1.0, "gain": 2.0, "higher gain": 3.0}
    seen = {
        "gain": ("16.0", "32.0", "8.0"),
        "load": (str(round(logs[0].setup.load, 6)),),
        "trajectory": (logs[0].trajectory,),
    }
    prediction = Prediction((), (), 0.01, 0.5, factors, seen)

    def factor(kp):
        return factor_of(prediction, replace(logs[0], setup=replace(logs[0].setup, kp=kp)))

    found = [factor(kp) for kp in (8.0, 20.0, 4.0, 40.0, 64.0, 128.0)]
    np.testing.assert_allclose(found, [1.0, 2.0, 2.0, 3.0, 3.0, 5.0])


@pytest.mark.slow
def test_evaluate_states_the_error_of_the_mean_and_that_of_the_law_alone(logs, drive, tmp_path, capsys):
    """A file whose law is wrong, averaged with the truth: the mean is closer, and both errors are told."""
    write_bag(tmp_path / "bag", logs)
    wrong = replace(drive, values=more_friction(drive, 3.0))
    write_drive(tmp_path / "alone.json", wrong)
    write_drive(tmp_path / "file.json", with_members(wrong, Member(0.75, "m1", (), dict(drive.values))))
    output = tmp_path / "e.json"
    files = [str(tmp_path / name) for name in ("alone.json", "file.json")]
    assert main(["evaluate", str(tmp_path / "bag"), "--params", *files, "--json", str(output)]) == 0
    alone, several = json.loads(output.read_text())["results"]
    assert "averaged" not in alone
    assert several["averaged"] == 2
    assert several["mae_best"] == pytest.approx(alone["mae"])
    assert several["mae"] < 0.9 * alone["mae"]
    assert (
        f"file: mean motion of 2 fits that predict about as well; the law of the file alone has {1e3 * alone['mae']:.2f} mrad"
        in capsys.readouterr().out
    )
