"""Joints with little friction, whose gravity is wrong by three times of it: a model must not cost what tracking gains without one."""

from plants.baselines import METHODS
from plants.conditions import light
from plants.loop import ClosedLoop
from plants.table import hunts

COARSE = 2e-4
"""Inner step [s]."""


def test_a_model_with_wrong_gravity_is_never_worse_than_none():
    """In each of 24 runs the error is no larger than without a model, and 0.14 of that without compensation on average.

    What happened: the learnt scales and offset are bounded and attribute the error of gravity to friction, while the scale of tracking
    was not adapted beside them: up to 9 times the error of the same joint without a model, in 12 of 24 runs.
    """
    methods = {name: METHODS[name] for name in ("none", "ours_graph", "ours_graph_static")}
    figures = ClosedLoop(light(True), methods, 7.0, COARSE).run()
    _, known, unknown = figures["rms"] / figures["rms"][0]
    assert (known <= 1.02 * unknown).all()
    assert known.mean() <= 0.14
    assert not hunts(figures["counts"]).any()
