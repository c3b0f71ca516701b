"""Laws tried on the arm of two links: the truth has no error against itself, and its step is fine enough."""

import numpy as np
import pytest

from stribeck.files.actuators import load_actuator
from two_link import Motion
from two_link_benches import BENCHES
from two_link_validation import (
    SUBSTEPS,
    TRUE_SUBSTEPS,
    PathTests,
    path_errors,
    pendulum_runs,
    truth_of,
)


def true_servos(name):
    """Both servos of an arm as they truly are."""
    return tuple(truth_of(load_actuator(servo)) for servo in BENCHES[name].servos)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mx", "erob"])
def test_the_truth_is_fine_enough_and_has_no_error_against_itself(name):
    """Zero at its own step; 0.02 mrad at half of it; 0.15 mrad at the step of the fitted laws."""
    servos, tests = true_servos(name), PathTests.of(BENCHES[name], ["circle"])
    truth = tests.true_motion(servos)
    start = Motion(truth.position[0], truth.velocity[0])
    for substeps, largest in ((TRUE_SUBSTEPS, 1e-12), (2 * TRUE_SUBSTEPS, 2e-5), (SUBSTEPS, 1.5e-4)):
        found = path_errors(tests, truth, tests.motion(servos, start, substeps))
        assert max(error.mean for error in found.values()) <= largest
    assert np.abs(truth.velocity).max() > 0.05


def test_errors_are_means_over_samples_of_the_path():
    """A shift of one joint: its own error, half of it on average, and the end point's way; padding does not count."""
    tests = PathTests.of(BENCHES["mx"], ["circle", "square_wave"])
    assert [name for name, _ in tests.names] == ["circle", "circle", "square_wave", "square_wave"]
    count = len(tests.goals) - tests.first
    still = np.zeros((count, 2, 4))
    shifted = still.copy()
    shifted[:1601, 1] = 0.01
    shifted[1601:] = 1.0
    found = path_errors(tests, Motion(still, still), Motion(shifted, still))
    assert found["circle", "low"].joints == pytest.approx((0.0, 0.01))
    assert found["circle", "low"].mean == pytest.approx(0.005)
    assert found["circle", "low"].end_point == pytest.approx(2 * 0.18 * np.sin(0.005))
    assert found["square_wave", "high"].mean > 0.5


def test_the_arm_waits_at_the_start_of_its_path():
    """Goals lead from hanging to the path's start, and stand there for a second."""
    tests = PathTests.of(BENCHES["erob"], ["square"])
    np.testing.assert_array_equal(tests.goals[0], 0.0)
    assert np.ptp(tests.goals[tests.first - 200 : tests.first + 1], axis=0).max() == 0.0
    assert np.abs(np.diff(tests.goals, axis=0)).max() < 0.02
    assert tests.gains.tolist() == [[10.0, 100.0], [5.0, 50.0]]


@pytest.mark.ci
def test_pendulums_repeat_with_their_seed():
    """The same runs and noise again; positions are whole steps of the encoder."""
    servo = truth_of(load_actuator("mx64"))
    first, again, other = (pendulum_runs(BENCHES["mx"], servo, 3, seed, substeps=2) for seed in (0, 0, 1))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.position.value, two.position.value)
        steps = one.position.value / servo.actuator.resolution
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    assert [log.name for log in first] != [log.name for log in other]
