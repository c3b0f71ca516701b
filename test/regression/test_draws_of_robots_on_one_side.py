"""Draws of joints of robots.

What happened: the file of a robot stated no search bounds, and draws were cut off at the default ones, which are for a small servo: a curve of the
friction of 0.55 N m/rad² lies above its bound of 0.1, so that all friction could only be drawn smaller, with a median of 0.73 times the identified
one. What must happen: draws are log-normal around what was identified, also from files of earlier versions.
"""

import numpy as np
import pytest

from stribeck.evaluate.draws import draws_of
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.identify.robot.problem import UNKNOWNS
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.law import LAWS

CALF = {
    "armature": (0.0206, 0.001),
    "friction_base": (0.533, 0.02),
    "friction_viscous": (0.108, 0.013),
    "friction_slope": (-0.265, 0.034),
    "friction_curve": (0.552, 0.13),
}
"""Value and half of the interval of the rear right calf of a Go2."""


def calf(bounds):
    """The drive, with or without the search bounds of its parameters."""
    estimates = {
        name: estimate_of(value, "", (value - half, value + half)) for name, (value, half) in CALF.items()
    }
    estimates["friction_centre"] = fixed(-1.8, "rad")
    return torque_drive(
        torque_actuator("rotary"), LAWS["m1"].with_terms(position=True), estimates, bounds=bounds
    )


@pytest.mark.parametrize("stated", [True, False], ids=["bounds", "earlier file"])
def test_friction_is_drawn_on_both_sides(stated):
    """4000 draws with an error of 50 %: median, quartiles and spread of Coulomb friction and of the curve are those of a log-normal factor."""
    bounds = {name: (UNKNOWNS[name].lower, UNKNOWNS[name].upper) for name in CALF} if stated else {}
    drawn = draws_of(calf(bounds), 4000, 1, error=0.5)
    for name in ("friction_base", "friction_curve"):
        ratio = drawn[name] / CALF[name][0]
        assert np.median(ratio) == pytest.approx(1.0, abs=0.05)
        assert np.mean(ratio > 1.0) == pytest.approx(0.5, abs=0.03)
    ratio = drawn["friction_base"] / CALF["friction_base"][0]
    assert np.quantile(ratio, [0.25, 0.75]) == pytest.approx(np.exp([-0.337, 0.337]), rel=0.05)
    assert np.std(np.log(ratio)) == pytest.approx(0.5, rel=0.05)
    assert np.all(drawn["friction_base"] > 0.0)


def test_friction_that_is_not_identified_does_not_limit_the_draws():
    """A fixed slope above the default bounds is scaled with the rest, on both sides too."""
    drive = calf({})
    fixed_slope = {**drive.stated, "friction_slope": fixed(-0.265, "N m/rad")}
    known = torque_drive(drive.actuator, drive.law, fixed_slope)
    ratio = draws_of(known, 4000, 1, error=0.2)["friction_slope"] / -0.265
    assert np.median(ratio) == pytest.approx(1.0, abs=0.02)


def test_the_bounds_of_the_fit_still_hold():
    """Draws stay within bounds that the file states."""
    drawn = draws_of(calf({"friction_base": (0.0, 0.6)}), 1000, 1, error=0.5)
    assert np.max(drawn["friction_base"]) <= 0.6
