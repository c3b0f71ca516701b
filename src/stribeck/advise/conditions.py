"""How supply voltage, temperature and play act on the dead band, and what a file cannot tell of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stribeck.advise.plant import JointPlant
from stribeck.model.joint import Drive
from stribeck.model.temperature import at_temperature

LESS = 0.9
"""Supply voltage of a battery that runs down, as a share."""

KELVIN = 10.0
"""Difference of temperature for which the dead band is stated [K]."""


def conditions(
    drive: Drive, made: Callable[[Drive, float | None], JointPlant], voltage: float | None
) -> tuple[str, ...]:
    """Notes on the dead band.

    :param made: the plant of a drive at a supply voltage.
    :param voltage: present supply voltage [V], ``None`` if it does not count.
    """
    notes = [_temperature(drive, lambda one: made(one, voltage).dead_band)]
    if (
        voltage is not None
        and (low := made(drive, LESS * voltage).dead_band) != made(drive, voltage).dead_band
    ):
        notes.append(
            f"at {LESS * voltage:.3g} V instead of {voltage:.3g} V the dead band is {_mrad(low)} mrad"
        )
    play = drive.stated.get("play")
    if play is None:
        notes.append(
            "the file does not state the backlash of the gears: identify the robot with a test for backlash"
        )
    elif play.value > 0.0:
        ends = "" if play.interval is None else f" ({_mrad(play.interval[0])} to {_mrad(play.interval[1])})"
        notes.append(
            f"the gears have a backlash of {_mrad(play.value)}{ends} mrad; neither a higher gain nor goal offsets remove it"
        )
    return tuple(notes)


def _temperature(drive: Drive, dead_band: Callable[[Drive], float]) -> str:
    reference = drive.values.get("reference_temperature")
    if "friction_per_kelvin" in drive.values and reference is not None:
        cold, warm = (
            dead_band(replace(drive, values=at_temperature(drive.values, reference + one)))
            for one in (-KELVIN, KELVIN)
        )
        return f"the dead band is {_mrad(cold)} mrad at {reference - KELVIN:.3g} degC, and {_mrad(warm)} mrad at {reference + KELVIN:.3g} degC"
    if drive.temperature is None:
        return "the temperature of the recordings is not known: servos stick less when they are warm"
    return (
        f"the file does not state how friction changes with temperature, and is valid near {drive.temperature:.3g} degC only: record a cold and a warm servo, "
        "and identify with the effect temperature"
    )


def _mrad(value: float) -> str:
    return f"{1e3 * value:.3g}"
