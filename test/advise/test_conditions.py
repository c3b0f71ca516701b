"""What advice says of voltage, temperature and backlash."""

from dataclasses import replace

import pytest

from stribeck.advise.advice import advise, conditions
from stribeck.advise.plant import plant_of
from stribeck.emulator.joint import published_parameters
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.law import law_named
from stribeck.model.provenance import Spread

VALUES = {
    "stiffness": 8.0,
    "derivative": 0.5,
    "armature": 0.03,
    "friction_base": 0.1,
    "friction_viscous": 0.05,
}


def drive(**more):
    """A joint with a dead band of 25 mrad, as identify robot states it."""
    actuator = torque_actuator("rotary", largest=10.0, resolution=1e-3, derivative_gain=1.0)
    estimates = {name: fixed(value, "") for name, value in VALUES.items()} | more
    return torque_drive(actuator, law_named("m1"), estimates)


def notes(one):
    return " ".join(advise("lift", one).notes)


def test_the_dead_band_at_a_lower_voltage():
    """A voltage law has its stiffness in proportion to the supply: a tenth less widens the dead band by a ninth."""
    servo = published_parameters("sts3215")

    def made(one, supply):
        return plant_of(one, kp=16.0, supply=supply)

    found = " ".join(conditions(servo, made, 7.4))
    expected = 1e3 * made(servo, 7.4).dead_band / 0.9
    assert f"at 6.66 V instead of 7.4 V the dead band is {expected:.3g} mrad" in found
    assert " V " not in notes(drive())


def test_the_dead_band_of_cold_and_warm_servos():
    """With the effect: e^(0.2) times as wide 10 K colder at 0.02 per kelvin. Without it, what to record."""
    thermal = {"friction_per_kelvin": 0.02, "reference_temperature": 30.0}
    one = drive()
    assert "temperature of the recordings is not known" in notes(one)
    assert "valid near 28 degC only: record a cold and a warm servo" in notes(
        replace(one, temperatures=Spread(min=26.0, max=30.0))
    )
    found = notes(replace(one, values={**one.values, **thermal}))
    assert "30.5 mrad at 20 degC, and 20.5 mrad at 40 degC" in found
    assert "record a cold" not in found


def test_backlash_is_beside_the_dead_band():
    """A backlash that was found is told with its interval, one that was not looked for as such, and one of zero not at all."""
    assert "identify the robot with a test for backlash" in notes(drive())
    found = drive(backlash=estimate_of(0.017, "rad", (0.015, 0.019), bounds=(0.0, 0.1)))
    assert "a backlash of 17 (15 to 19) mrad" in notes(found)
    assert advise("lift", found).dead_band.value == pytest.approx(0.025)
    assert "backlash" not in notes(drive(backlash=fixed(0.0, "rad")))
