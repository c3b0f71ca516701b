"""The benchmark's loop: what is the same must come out the same, and what is known of controllers must show."""

import numpy as np
import pytest

from plants.baselines import METHODS, Method
from plants.joints import Condition
from plants.loop import ClosedLoop
from plants.table import tracking_rows


@pytest.fixture(scope="module")
def found():
    conditions = [
        Condition("shoulder", law="gms", bits=14),
        Condition("wrist", drive="elastic", reference="sine"),
        Condition("panda", coulomb_scale=0.5, viscous_scale=0.5),
    ]
    methods = {"none": Method, "again": Method, "tanh_desired": METHODS["tanh_desired"]}
    return methods, conditions, ClosedLoop(conditions, methods, 4.0).run()


@pytest.mark.slow
def test_lanes_do_not_touch_each_other(found):
    """The same method twice gives the same figures, whatever runs beside it."""
    for values in found[2].values():
        np.testing.assert_array_equal(values[0], values[1])


@pytest.mark.slow
def test_feed_forward_halves_the_error_of_exact_friction(found):
    """Where friction is as identified, 0.8 of it at the desired velocity helps in every plant."""
    methods, conditions, figures = found
    ratio = figures["rms"][2] / figures["rms"][0]
    assert (ratio[:2] < 0.6).all()
    rows = tracking_rows(list(methods), conditions, figures)
    assert [row["method"] for row in rows] == list(methods)


@pytest.mark.slow
def test_work_of_feed_forward_is_less_than_what_friction_takes():
    """0.8 of exact friction puts in less than is dissipated, and nothing at all without a method."""
    conditions = [Condition("shoulder", control="zero", reference="coast", hand_speed=1.0)]
    figures = ClosedLoop(conditions, {"none": Method, "tanh": METHODS["tanh"]}, 3.0).run()
    assert figures["energy_in"][0, 0] == 0.0
    assert 0.0 < figures["energy_in"][1, 0] < figures["energy_out"][1, 0]
