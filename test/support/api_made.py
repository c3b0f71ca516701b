"""Drives and files for tests of the public interface, with intervals and a correlation."""

from pathlib import Path

from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, write_drives
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.joint import CorrelationMatrix, Drive
from stribeck.model.law import law_named
from stribeck.model.verdict import Verdict

VALUES = {
    "kt": 0.39,
    "R": 3.2,
    "armature": 0.0017,
    "q_offset": 0.01,
    "friction_base": 0.01,
    "friction_viscous": 0.005,
}
UNITS = {
    "kt": "N m/A",
    "R": "ohm",
    "armature": "kg m^2",
    "friction_base": "N m",
    "friction_viscous": "N m s/rad",
}
HALF = {"kt": 0.02, "R": 0.3, "friction_base": 0.008}


def drive_made(**changes: float) -> Drive:
    """A drive of M1 that knows kt, R and Coulomb friction with intervals; kt and R are correlated by 0.9."""
    values = VALUES | changes
    parameters = load_actuator("xl330").parameters(law_named("m1"))
    stated = {
        name: fixed(value, UNITS.get(name, "rad"))
        if name not in HALF
        else estimate_of(
            value,
            UNITS[name],
            (value - HALF[name], value + HALF[name]),
            bounds=(parameters[name].lower, parameters[name].upper),
        )
        for name, value in values.items()
    }
    correlation = CorrelationMatrix(("kt", "R"), ((1.0, 0.9), (0.9, 1.0)))
    return Drive(
        load_actuator("xl330"),
        law_named("m1"),
        values,
        stated=stated,
        correlation=correlation,
        verdict=Verdict(),
    )


def file_of_joints(path: Path, *joints: str) -> Path:
    """A file with such drives; without names one of a servo."""
    write_drives(path, Drives({name: drive_made() for name in joints or ("",)}))
    return path
