"""What is claimed of the compensation in the benchmark: means over plants of all kinds, and its worst cases."""

import numpy as np
import pytest

from closed_loop import measured
from plants.arm import ArmClosedLoop, ArmCondition
from plants.baselines import METHODS
from plants.conditions import guided_later, holds, light, tracking, walls
from plants.joints import Condition
from plants.loop import ClosedLoop
from plants.table import hunts, label

BOTH = {name: METHODS[name] for name in ("none", "ours")}

COARSE = 2e-4
"""Inner step of the quick runs [s]."""

WORST = [
    Condition("wrist", coulomb_scale=1.5, viscous_scale=1.5, asymmetry=0.15, rate=100, bandwidth=6.0, reference="slow"),
    Condition("wrist", coulomb_scale=1.5, viscous_scale=0.45, rate=100, delay=2, bandwidth=6.0, reference="slow"),
    Condition("wrist", coulomb_scale=1.5, viscous_scale=1.5, rate=100, delay=3, bandwidth=6.0, reference="slow"),
    Condition("wrist", "backlash", coulomb_scale=1.5, viscous_scale=1.5, rate=100, delay=3, bandwidth=6.0, reference="slow"),
    Condition("wrist", "elastic", coulomb_scale=1.5, viscous_scale=1.5, ripple=0.2, bits=12, measured_velocity=True, rate=1000, delay=2, bandwidth=6.0, reference="slow"),
    Condition("wrist", "elastic", coulomb_scale=1.5, viscous_scale=1.5, asymmetry=0.15, bits=12, measured_velocity=True, rate=1000, delay=3, control="impedance", bandwidth=6.0, reference="slow"),
]  # fmt: skip
"""The conditions of a whole run in which compensation helps least."""

NO_WORSE = 1.05
"""Errors are the same within so much."""


def ratios(figures):
    return figures["rms"][1] / figures["rms"][0]


def assert_tracks(ratio, hunting, conditions, most_hunting=0.0):
    assert ratio.mean() <= 0.12
    worse = [label(c) for c, r in zip(conditions, ratio, strict=True) if r > NO_WORSE]
    assert not worse, f"worse than without compensation: {worse}"
    hunt = [label(c) for c, h in zip(conditions, hunting, strict=True) if h]
    assert len(hunt) <= most_hunting * len(conditions), f"hunts at rest: {hunt}"


@pytest.mark.slow
def test_joints_follow_with_an_eighth_of_the_error():
    """60 plants at 100 Hz and 1 kHz, and those for which compensation does least: none is worse off, none hunts.

    With half to one and a half times the identified friction.
    """
    ratio, hunting, chosen = [], [], []
    for rate in (100, 1000):
        every = [c for c in tracking() if c.rate == rate]
        some = every[:: len(every) // 30][:30]
        assert {c.coulomb_scale for c in some} == {0.5, 1.0, 1.5}
        worst = [c for c in WORST if c.rate == rate]
        figures = ClosedLoop(some + worst, BOTH, 7.8, COARSE).run()
        found, hunt = ratios(figures), hunts(figures["counts"])[1]
        assert (found[30:] <= NO_WORSE).all()
        assert not hunt[30:].any()
        ratio.append(found[:30])
        hunting.append(hunt[:30])
        chosen += some
    assert_tracks(np.concatenate(ratio), np.concatenate(hunting), chosen)


def assert_arms(conditions, figures, largest):
    ratio = ratios(figures)
    for condition, found in zip(conditions, ratio, strict=True):
        exact = condition.scale == 1.0
        limit = 0.2 if condition.control == "impedance" else 0.10 if exact else 0.13
        assert found.mean() <= limit, label(condition)
        assert found.max() <= largest, label(condition)
    assert not hunts(figures["counts"])[1].any()


@pytest.mark.slow
def test_an_arm_with_a_wrong_model_follows():
    """Computed torque within a tenth of the error without compensation, impedance within a fifth."""
    conditions = [
        ArmCondition(scale, control, bandwidth)
        for control, bandwidth in (("computed", 8.0), ("impedance", 6.0))
        for scale in (1.0, 0.6, 1.4)
    ]
    assert_arms(conditions, ArmClosedLoop(conditions, BOTH, 7.0).run(), 0.3)


def own_and_added(conditions, figures):
    """Largest lasting torque of the compensation, and force beyond that without it, per torque limit."""
    limit = np.array([c.data.torque_limit for c in conditions])
    return figures["own_late"][1] / limit, (figures["late"][1] - figures["late"][0]) / limit


@pytest.mark.slow
def test_a_wall_and_a_hand_feel_no_lasting_torque():
    """At a contact that lasts the compensation is gone; a wall is pressed by 5 % of the torque limit more at most."""
    for conditions in (walls(True), holds(True)):
        some = [c for c in conditions if c.coulomb_scale != 1.0]
        figures = ClosedLoop(some, {**BOTH, "momentum": METHODS["momentum"]}, 5.0, COARSE).run()
        own, added = own_and_added(some, figures)
        assert (own <= 0.05).all()
        if some[0].contact == "wall":
            assert (added <= 0.05).all()
        assert figures["own_late"][2].max() > 0.3 * 12.0, "a rival that cancels contacts must show"


def assert_easy(conditions, figures):
    force = figures["force"][1] / figures["force"][0]
    scales = np.array([c.coulomb_scale for c in conditions])
    for scale, limit in ((1.0, 0.5), (0.7, 0.75), (1.5, 0.75)):
        assert force[scales == scale].mean() <= limit, scale
        assert force[scales == scale].max() <= 1.0, scale


@pytest.mark.slow
def test_a_hand_guides_with_half_the_force_after_motion():
    """Force of a hand that guides a joint to and fro and pushes it, after three seconds under goals."""
    some = [c for c in guided_later(True) if c.coulomb_scale in (0.7, 1.0, 1.5)]
    assert_easy(some, ClosedLoop(some, BOTH, 14.0, COARSE).run())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_whole_benchmark():
    """Every condition of the benchmark. Of arms the worst joint has 0.34, of walls the worst 5.2 %.

    At most 2 in 1000 may hunt; one of 1089 does, by four counts of its encoder.
    """
    figures, conditions = measured(["tracking", "arm", "wall", "hold", "guided"], list(BOTH), False, 2)
    assert_tracks(
        ratios(figures["tracking"]), hunts(figures["tracking"]["counts"])[1], conditions["tracking"], 0.002
    )
    assert_arms(conditions["arm"], figures["arm"], 0.35)
    for part, most in (("wall", 0.055), ("hold", np.inf)):
        own, added = own_and_added(conditions[part], figures[part])
        assert (own <= 0.05).all()
        assert (added <= most).all()
    assert_easy(conditions["guided"], figures["guided"])


@pytest.mark.slow
def test_joints_with_little_friction_follow_better_with_a_wrong_model_than_without_one():
    """Friction of 3 % of the weight, weight wrong by 10 %: the observer learns the error as an offset; 24 runs.

    Goals as in a graph: 0.15 of the error of no compensation, without a model 0.26.
    """
    chosen = {name: METHODS[name] for name in ("none", "ours_graph", "ours_graph_static")}
    figures = ClosedLoop(light(quick=True), chosen, 7.0, COARSE).run()
    with_model, without = (figures["rms"] / figures["rms"][0])[1:]
    assert with_model.mean() <= 0.17
    assert with_model.mean() < without.mean() <= 0.3
    assert max(with_model.max(), without.max()) <= 1.0
    assert not hunts(figures["counts"]).any()
