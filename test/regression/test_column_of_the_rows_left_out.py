"""`identify joint` on a bag of a sweep ended in a traceback: "Matrix is not positive definite"."""

import numpy as np
import pytest

from stribeck.identify.joint.fit import normal_of


def test_a_column_that_only_the_rows_left_out_have_gets_no_coefficient():
    """What rounding left of it was scaled to one; the other coefficients are those of the remaining rows alone."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((300, 3)) * [1.0, 1e3, 1.0]
    columns[100:, 2] = 0.0
    torque = columns @ [0.5, 2e-3, 3.0] + 0.01 * rng.standard_normal(300)
    names = ("friction_base", "friction_viscous", "inertia")
    rest = normal_of(columns, torque) - normal_of(columns[:100], torque[:100])
    found = rest.solution(names)
    assert found[2] == 0.0
    alone = normal_of(columns[100:, :2], torque[100:]).solution(names[:2])
    assert found[:2] == pytest.approx(alone, rel=1e-6)


def test_products_that_rounding_made_indefinite_are_solved():
    """Two columns that are alike but for rounding, most of whose rows are taken away."""
    rng = np.random.default_rng(1)
    column = 1e4 * rng.standard_normal((1000, 1))
    columns = np.concatenate([column, column * (1.0 + 1e-13), np.ones((1000, 1))], axis=1)
    torque = 1e-4 * column[:, 0]
    rest = normal_of(columns, torque) - normal_of(columns[:990], torque[:990])
    found = rest.solution(("friction_base", "friction_viscous", "inertia"))
    assert np.isfinite(found).all()
    assert found[0] + found[1] == pytest.approx(1e-4, rel=1e-4)
