"""Which runs the benchmark makes, part by part. Whatever is left to chance has a fixed seed."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from plants.control import is_admitted
from plants.joints import JOINTS, Condition

SCALES = (1.0, 0.5, 1.5)
"""True friction per identified friction."""

FREE_SCALES = (1.0, 0.7, 0.3, 1.5, 2.0)
"""The same for joints without goals."""

PRELUDE = 3.0
"""So long joints follow goals before they are left without [s]."""

REFERENCES = ("sine", "slow", "moves", "creep")

VARIANTS: dict[str, dict[str, Any]] = {
    "gms": {"law": "gms"},
    "asymmetric": {"asymmetry": 0.15},
    "ripple": {"ripple": 0.2},
    "load": {"load_share": 0.1, "gravity_error": 0.0},
    "backlash": {"drive": "backlash"},
    "cold": {"viscous_scale": 2.0},
    "warm": {"viscous_scale": 0.3},
}
"""What may be different about a plant."""

DISTURBANCES: dict[str, dict[str, Any]] = {
    "gravity": {"gravity_error": 0.2},
    "load step": {"load_step": 0.1},
}
"""What acts on a joint beside its friction, and is not to be compensated with it."""

CONTROLS: tuple[dict[str, Any], ...] = (
    {"control": "impedance", "bandwidth": 6.0},
    {"bandwidth": 6.0},
    {"bandwidth": 15.0},
    {"bandwidth": 25.0},
    {"bandwidth": 50.0},
)


def scaled(base: Condition, scale: float) -> Condition:
    """The condition with so much of its friction."""
    return replace(
        base,
        coulomb_scale=base.coulomb_scale * scale,
        viscous_scale=base.viscous_scale * scale,
    )


def sensed(base: Condition, rng: np.random.Generator) -> Condition | None:
    """The condition with an encoder drawn for it, measured velocity if it must; none if it is not admitted."""
    chosen = replace(base, bits=int(rng.choice([17, 17, 14, 12])), measured_velocity=bool(rng.random() < 0.3))
    for option in (chosen, replace(chosen, bits=17), replace(chosen, measured_velocity=True)):
        if all(is_admitted(scaled(option, scale)) for scale in SCALES):
            return option
    return None


def tracking(quick: bool = False, seed: int = 0) -> list[Condition]:
    """Single joints that follow a path; another seed draws other encoders, paths and drives."""
    rng = np.random.default_rng(seed)
    plants: list[dict[str, Any]] = [{"drive": "rigid"}, {"drive": "elastic"}]
    found: list[Condition] = []
    rates, delays = (500,) if quick else (100, 500, 1000), (1, 3)
    for joint, plant, control, rate, delay in product(JOINTS, plants, CONTROLS, rates, delays):
        reference = str(rng.choice(REFERENCES))
        base = sensed(Condition(joint, **plant, **control, rate=rate, delay=delay, reference=reference), rng)
        if base:
            found += [scaled(base, scale) for scale in SCALES]
    return found + _varied(VARIANTS, rates, rng)


WIDE_RATES = (50, 100, 200, 500, 1000)
"""Rates of states of :func:`wide` [Hz]."""

WIDE_COUNTS = 600, 200
"""Runs of :func:`wide`, and of them with ``quick``."""


def wide(quick: bool = False, seed: int = 0) -> list[Condition]:
    """Single joints with 0.1 to 2 times the identified friction at rates from 50 Hz to 1 kHz, all else at random."""
    rng = np.random.default_rng(1000 + seed)
    variants: list[dict[str, Any]] = [{}, {}, *VARIANTS.values()]
    found: list[Condition] = []
    while len(found) < WIDE_COUNTS[quick]:
        options = (
            rng.choice(len(part)) for part in (WIDE_RATES, variants, CONTROLS, REFERENCES, list(JOINTS))
        )
        rate, variant, control, path, joint = map(int, options)
        plant: dict[str, Any] = {
            "drive": str(rng.choice(["rigid", "elastic"])),
            **variants[variant],
            **CONTROLS[control],
        }
        base = Condition(
            list(JOINTS)[joint],
            **plant,
            rate=WIDE_RATES[rate],
            delay=int(rng.integers(1, 4)),
            reference=REFERENCES[path],
            bits=int(rng.choice([17, 14, 12])),
            measured_velocity=bool(rng.random() < 0.3),
        )
        one = scaled(base, float(np.exp(rng.uniform(np.log(0.1), np.log(2.0)))))
        if is_admitted(one):
            found.append(one)
    return found


def disturbed(quick: bool = False) -> list[Condition]:
    """Single joints that follow a path while something else than friction acts on them."""
    return _varied(DISTURBANCES, (500,) if quick else (100, 500, 1000), np.random.default_rng(3))


def _varied(
    variants: dict[str, dict[str, Any]], rates: tuple[int, ...], rng: np.random.Generator
) -> list[Condition]:
    found: list[Condition] = []
    for joint, variant, control, rate in product(JOINTS, variants.values(), CONTROLS[:4], rates):
        reference, delay = str(rng.choice(REFERENCES)), int(rng.choice([1, 2, 3]))
        drive = str(rng.choice(["rigid", "elastic"]))
        whole = {"drive": drive, **variant, **control, "rate": rate, "delay": delay}
        base = sensed(Condition(joint, reference=reference, **whole), rng)
        if base:
            found += [scaled(base, scale) for scale in SCALES]
    return found


def light(quick: bool = False) -> list[Condition]:
    """Joints with little friction, whose gravity is known with an error of 10 %: three times the friction."""
    rng = np.random.default_rng(4)
    found: list[Condition] = []
    for error, control, path in product((0.1, -0.1), CONTROLS[:3], REFERENCES):
        base = Condition("qdd", **control, gravity_error=error, reference=path, delay=int(rng.integers(1, 4)))
        found += [scaled(base, scale) for scale in ((1.0,) if quick else SCALES)]
    return found


def guided(quick: bool = False) -> list[Condition]:
    """Joints that a hand guides, pushes and lets go; nothing but gravity is controlled."""
    return _goalless("hand", quick, FREE_SCALES)


def coasting(quick: bool = False) -> list[Condition]:
    """Joints that are pushed once and let go."""
    return _goalless("coast", quick, FREE_SCALES)


def guided_later(quick: bool = False) -> list[Condition]:
    """The same after some seconds of motion under goals."""
    return [replace(c, prelude=PRELUDE) for c in guided(quick)]


def coasting_later(quick: bool = False) -> list[Condition]:
    """Joints that are pushed after some seconds of motion under goals."""
    return [replace(c, prelude=PRELUDE) for c in coasting(quick)]


def _goalless(reference: str, quick: bool, scales: tuple[float, ...]) -> list[Condition]:
    rng = np.random.default_rng(1)
    plants: list[dict[str, Any]] = [{}, {"drive": "elastic"}]
    if not quick:
        plants += [{"law": "gms"}, {"drive": "backlash"}, {"gravity_error": 0.0}, {"gravity_error": 0.1}]
    found = []
    for joint, plant, speed in product(JOINTS, plants, (0.5, 1.0, 1.5)):
        base = Condition(
            joint,
            **plant,
            control="zero",
            reference=reference,
            hand_speed=speed,
            bits=int(rng.choice([17, 14])),
            measured_velocity=bool(rng.random() < 0.3),
            delay=int(rng.choice([1, 2])),
            rate=500,
        )
        found += [scaled(base, scale) for scale in scales]
    return found


def walls(quick: bool = False) -> list[Condition]:
    """Joints pressed against a wall."""
    return _contacts("wall", quick)


def holds(quick: bool = False) -> list[Condition]:
    """Joints that a hand holds while their goal moves on."""
    return _contacts("hold", quick)


def _contacts(contact: Any, quick: bool) -> list[Condition]:
    found = []
    for joint, drive, control, delay in product(JOINTS, ("rigid", "elastic"), CONTROLS[:3], (1, 2)):
        base = Condition(joint, drive=drive, **control, delay=delay, reference="push", contact=contact)
        if is_admitted(base) and not (quick and delay == 2):
            found += [scaled(base, scale) for scale in SCALES]
    return found


SECONDS = {
    "guided": 14.0,
    "released": 9.0,
    "disturbed": 10.0,
    "tracking": 10.0,
    "wide": 10.0,
    "light": 10.0,
    "hand": 11.0,
    "coast": 6.0,
    "wall": 6.0,
    "hold": 6.0,
}
"""Simulated time of a run, by part [s]."""

PARTS = {
    "tracking": tracking,
    "wide": wide,
    "light": light,
    "disturbed": disturbed,
    "hand": guided,
    "guided": guided_later,
    "coast": coasting,
    "released": coasting_later,
    "wall": walls,
    "hold": holds,
}
"""The runs of single joints, by part."""
