"""Friction half as large again as identified: without a model, or without goals, most of the excess was never cancelled."""

import numpy as np
import pytest

from plants.baselines import METHODS, Method
from plants.conditions import guided, tracking
from plants.joints import Condition
from plants.loop import ClosedLoop
from plants.table import hunts

COARSE = 2e-4
"""Inner step [s]."""


def found(method, conditions, seconds=7.8):
    """Errors per those without compensation, and which joints hunt."""
    figures = ClosedLoop(conditions, {"none": Method, "ours": METHODS[method]}, seconds, COARSE).run()
    return figures["rms"][1] / figures["rms"][0], hunts(figures["counts"])[1]


@pytest.mark.slow
def test_without_a_model_joints_follow_with_a_sixth_of_the_error():
    """Thirty plants with 0.5, 1 and 1.5 of their friction: 0.16 on average, none worse than without, none hunts.

    What happened: 0.35, because the share of the friction never rose above 1 (0.63 at 1.5 times the friction).
    """
    every = tracking(True)
    ratio, hunting = found("ours_graph_static", every[:: len(every) // 30][:30])
    assert ratio.mean() <= 0.16
    assert ratio.max() <= 1.02
    assert not hunting.any()


@pytest.mark.ci
def test_a_slow_controller_is_not_wound_up():
    """Errors of slow controllers last: what is added while they last must not carry joints past their goals.

    Held out of the choice of the lead time: another rate, and stronger friction.
    """
    slow = [
        Condition(
            joint, coulomb_scale=scale, viscous_scale=scale, rate=200, delay=2, bandwidth=6.0, reference=path
        )
        for joint in ("shoulder", "wrist", "panda")
        for scale in (0.7, 2.0)
        for path in ("creep", "slow", "moves")
    ]
    ratio, hunting = found("ours_graph_static", slow)
    assert ratio.mean() <= 0.2
    assert ratio.max() <= 1.02
    assert not hunting.any()


@pytest.mark.slow
def test_efforts_alone_teach_the_friction_of_joints_that_a_controller_drives():
    """Eighteen plants that make moves or swing: 0.72 on average. What happened: 0.84, because only goals taught anything."""
    every = [c for c in tracking(True) if c.reference in ("moves", "sine")]
    ratio, hunting = found("ours_graph_efforts", every[:: len(every) // 18][:18])
    assert ratio.mean() <= 0.72
    assert not hunting.any()


@pytest.mark.slow
def test_a_hand_teaches_nothing():
    """Joints under gravity compensation that hands guide, with known efforts: their friction stays as identified."""
    methods = []

    def ours(lanes):
        methods.append(METHODS["ours_efforts"](lanes))
        return methods[-1]

    chosen = guided(True)[::5]
    ClosedLoop(chosen, {"none": Method, "ours": ours}, 5.0, COARSE).run()
    observer = methods[0].compensator.feed_forward.observer
    np.testing.assert_array_equal(observer.scales.dry, 1.0)
    assert (methods[0].compensator.feed_forward.tank.filled == 0.0).all()
