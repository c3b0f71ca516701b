"""Errors of recordings of arms and robots."""

import numpy as np
import pytest

from stribeck.identify.common.machine_motion import MachineMotion, errors_of, overall_error


def motion(quantity="torque", units=("N m", "N m")):
    """Two rows of a strong and a weak joint; the weak one counts in the first row only."""
    measured = np.array([[30.0, 1.0], [40.0, 5.0]])
    predicted = np.array([[33.0, 2.0], [36.0, 50.0]])
    counted = np.array([[True, True], [True, False]])
    return MachineMotion(
        "run", ("strong", "weak"), quantity, units, np.array([0.0, 1.0]), measured, predicted, counted
    )


def test_the_error_of_torque_of_all_joints_is_relative_to_the_torque_of_all_joints():
    """Residuals 3, -4 and 1 of 30, 40 and 1 N m: as `identify arm` prints it, not the mean of 10 % and 100 %."""
    errors = errors_of([motion()])
    assert [errors[joint].relative for joint in ("strong", "weak")] == pytest.approx([0.1, 1.0])
    assert overall_error([motion()]) == pytest.approx(np.sqrt(26.0) / np.sqrt(2501.0))


def test_the_error_of_position_of_all_joints_is_the_root_mean_square_of_the_rows_that_count():
    """Two recordings have twice the rows and the same error; different units have none in common."""
    one = motion("position", ("rad", "rad"))
    assert overall_error([one, one]) == pytest.approx(np.sqrt(26.0 / 3.0))
    assert np.isnan(overall_error([motion("position", ("rad", "m"))]))
