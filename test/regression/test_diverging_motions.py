"""Motions that diverge among those from which bands are made."""

import numpy as np

from recovery import truth_of, virtual_runs
from small_studies import TINY
from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.prediction import Model, motions
from stribeck.model.law import law_named


def test_the_spread_of_motions_that_diverge_is_a_number():
    """What happened: a fit with the integrator `paper` ended with a warning of an overflow. What must happen: none."""
    truth = truth_of(TINY, "m1")
    model = Model(
        virtual_runs(TINY, truth, "m1"), load_actuator("mx106"), law_named("m1"), truth, "paper", None
    )
    points = np.repeat(truth.vector()[None], 2, axis=0)
    points[1, truth.free_names.index("kt")] = 100.0
    moved = motions(model, points)
    assert np.abs(moved[:, :, 0]).max() < 10.0
    assert np.abs(moved[:, :, 1]).max() > 1e6
    assert np.isfinite(np.var(moved, axis=2)).all()
