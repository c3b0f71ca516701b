r"""Whether the intervals of `stribeck advise` hold, on joints that nothing was adjusted to.

    python bench/advice.py [--joints N] [--seed S] [--json FILE]

Each joint is a position servo, random in stiffness, damping, inertia, friction, Stribeck speed, break-away deflection (0.3 to 3 mrad) and delay; the first half of them has LuGre
friction, the second Maxwell slip (:mod:`plants.friction`). Its file of drives has the parameters with errors that its intervals state, under law M2 with exponent 2. Truth is simulated: the largest torque of a joint that is
loaded slowly, the speed below which it stops on a ramp, and the gain at which a deflection of 0.1 rad does not die away.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plants.friction import FloatArray, FrictionValues, Side
from stribeck.advise.advice import AdviceSettings, JointAdvice, advise
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.law import law_named

ERRORS = {
    "stiffness": 0.03,
    "friction_base": 0.05,
    "friction_stribeck": 0.1,
    "dtheta_stribeck": 0.1,
    "friction_viscous": 0.1,
}
"""Relative standard deviations of what a file states."""

SPEEDS, GAINS = np.geomspace(0.01, 0.6, 40), np.geomspace(0.5, 2.0, 31)
STEP = 4e-4
MOVES = 0.02
"""Share of the speed of a ramp below which a joint stands."""

WANTED = {"dead band": 0.15, "slowest speed": 0.3, "hunting gain": 0.2}
"""Relative errors that values should not exceed."""

LEAST = {"dead band": 1e-9, "slowest speed": float(SPEEDS[0]), "hunting gain": 1e-9}
"""Smallest values that are tried; a slowest speed below is taken for this one."""

KEPT = 0.5
"""Share of a deflection that hunting keeps."""


@dataclass(frozen=True)
class Joints:
    """True parameters, (n,) each; see :data:`ERRORS` for names, and damping, inertia [N m s/rad, kg m²], delay [s]
    and the deflection at which the presliding stiffness reaches the Coulomb friction [rad].
    """

    values: dict[str, FloatArray]
    damping: FloatArray
    inertia: FloatArray
    delay: FloatArray
    presliding: FloatArray

    @classmethod
    def random(cls, count: int, rng: np.random.Generator) -> Joints:
        """Joints of hobby servos."""

        def between(low: float, high: float) -> FloatArray:
            return np.exp(rng.uniform(np.log(low), np.log(high), count))

        base = between(0.04, 0.3)
        values = {
            "stiffness": between(4.0, 20.0),
            "friction_base": base,
            "friction_stribeck": base * rng.uniform(0.3, 1.0, count),
            "dtheta_stribeck": between(0.03, 0.2),
            "friction_viscous": between(0.01, 0.1),
        }
        damping, inertia = between(0.1, 0.4), between(0.01, 0.08)
        delay = STEP * np.round(between(0.004, 0.02) / STEP)
        stiction = base + values["friction_stribeck"]
        return cls(values, damping, inertia, delay, between(3e-4, 3e-3) * base / stiction)

    def repeated(self, count: int) -> tuple[Side, dict[str, FloatArray]]:
        """Friction and parameters of each joint so many times in a row."""
        values = {name: np.repeat(value, count) for name, value in self.values.items()}
        values |= {
            name: np.repeat(getattr(self, name), count)
            for name in ("damping", "inertia", "delay", "presliding")
        }
        zero = np.zeros_like(values["delay"])
        friction = FrictionValues(
            coulomb=values["friction_base"], stiction=values["friction_base"] + values["friction_stribeck"],
            viscous=values["friction_viscous"], stribeck_velocity=values["dtheta_stribeck"], presliding=values["presliding"],
            inertia=values["inertia"], asymmetry=zero, ripple=zero, ripple_wave=zero, load_share=zero,
        )  # fmt: skip
        return Side(friction, slips=len(self.delay) // 2 * count), values


def true_dead_bands(joints: Joints) -> FloatArray:
    """Twice the largest torque on a joint while its goal rises by 0.004 rad/s from rest, over the stiffness [rad]."""
    friction, p = joints.repeated(1)
    q, v, largest = (np.zeros_like(p["delay"]) for _ in range(3))
    for step in range(int(40.0 / STEP)):
        torque = p["stiffness"] * (0.004 * STEP * step - q) - p["damping"] * v
        v = v + (torque - friction.torque(v, STEP)) / p["inertia"] * STEP
        q = q + v * STEP
        largest = np.maximum(largest, torque)
    return np.asarray(2.0 * largest / p["stiffness"])


def true_slowest(joints: Joints) -> FloatArray:
    """Speed below which a joint stands now and then on a ramp [rad/s], 0 for none of those tried."""
    friction, p = joints.repeated(len(SPEEDS))
    speeds = np.tile(SPEEDS, len(joints.delay))
    q, v, least = np.zeros_like(speeds), np.zeros_like(speeds), np.full_like(speeds, np.inf)
    steps = int(8.0 / STEP)
    for step in range(steps):
        torque = p["stiffness"] * (speeds * STEP * step - q) - p["damping"] * v
        v = v + (torque - friction.torque(v, STEP)) / p["inertia"] * STEP
        q = q + v * STEP
        if step > steps // 2:
            least = np.minimum(least, v)
    stands = (least < MOVES * speeds).reshape(-1, len(SPEEDS))
    found = []
    for row in stands:
        last = np.flatnonzero(row)
        edge = int(last[-1]) if len(last) else -1
        found.append(
            0.0 if edge < 0 else float(np.sqrt(SPEEDS[edge] * SPEEDS[min(edge + 1, len(SPEEDS) - 1)]))
        )
    return np.array(found)


def true_hunting(joints: Joints, around: FloatArray) -> FloatArray:
    """Stiffness from which on a deflection of 0.1 rad keeps half of itself [N m/rad], infinite for none near ``around``."""
    friction, p = joints.repeated(len(GAINS))
    stiffness = (around[:, None] * GAINS).ravel()
    lags = np.round(p["delay"] / STEP).astype(int)
    lanes = np.arange(len(lags))
    past = np.full((lags.max() + 1, len(lags)), 0.1)
    q, v, largest = np.full(len(lags), 0.1), np.zeros(len(lags)), np.zeros(len(lags))
    steps = int(8.0 / STEP)
    for step in range(steps):
        past[step % len(past)] = q
        late = past[(step - lags) % len(past), lanes]
        torque = -stiffness * late - p["damping"] * v
        v = v + (torque - friction.torque(v, STEP)) / p["inertia"] * STEP
        q = np.clip(q + v * STEP, -10.0, 10.0)
        if step > 0.8 * steps:
            largest = np.maximum(largest, np.abs(q))
    kept = (largest > KEPT * 0.1).reshape(-1, len(GAINS))
    first = [
        float(a * GAINS[row.argmax()]) if row.any() and not row[0] else np.inf
        for a, row in zip(around, kept, strict=True)
    ]
    return np.array(first)


def advised(joints: Joints, rng: np.random.Generator) -> list[JointAdvice]:
    """Advice from files with the errors that they state."""
    found = []
    actuator = torque_actuator("rotary", largest=100.0, resolution=1e-3, derivative_gain=1.0)
    for k in range(len(joints.delay)):
        estimates: dict[str, Any] = {"alpha": fixed(2.0, "1")}
        for name, relative in ERRORS.items():
            value = float(joints.values[name][k]) * float(np.exp(relative * rng.standard_normal()))
            half = 1.96 * relative * value
            estimates[name] = estimate_of(value, "", (value - half, value + half), bounds=(0.0, 1e3))
        estimates["derivative"] = fixed(float(joints.damping[k]), "")
        estimates["armature"] = fixed(float(joints.inertia[k]), "")
        drive = torque_drive(actuator, law_named("m2"), estimates)
        found.append(advise(f"j{k}", drive, settings=AdviceSettings(delay=float(joints.delay[k]))))
    return found


def measured(count: int, seed: int) -> dict[str, Any]:
    """Share of true values within the 90 % intervals, and errors of the values, by quantity; joints that stop nowhere, as is said of them, are not counted."""
    rng = np.random.default_rng(seed)
    joints = Joints.random(count, rng)
    advice = advised(joints, rng)
    stated = {
        "dead band": [one.dead_band for one in advice],
        "slowest speed": [one.slowest for one in advice],
        "hunting gain": [one.hunts for one in advice],
    }
    described = np.array([one.hunting.described for one in advice])
    truth = {
        "dead band": true_dead_bands(joints),
        "slowest speed": true_slowest(joints),
        "hunting gain": true_hunting(joints, np.where(np.isfinite(described), described, 1.0)),
    }
    result = {}
    for name, values in stated.items():
        true = truth[name]
        used = np.array(
            [
                np.isfinite(t) and np.isfinite(v.value) and max(t, v.value) > 0.0
                for t, v in zip(true, values, strict=True)
            ]
        )
        inside = [v.lower <= max(t, LEAST[name]) and t <= v.upper for t, v in zip(true, values, strict=True)]
        positive = used & (np.array([v.value for v in values]) > 0.0) & (true > 0.0)
        errors = np.array(
            [
                abs(v.value - t) / max(t, LEAST[name]) if u else np.nan
                for t, v, u in zip(true, values, used, strict=True)
            ]
        )
        result[name] = {
            "joints": int(used.sum()),
            "covered": float(np.mean(np.array(inside)[used])),
            f"within {WANTED[name]:.0%}": float(np.mean(errors[used] <= WANTED[name])),
            f"within {WANTED[name]:.0%} where both are positive": float(
                np.mean(errors[positive] <= WANTED[name])
            ),
            "median error": float(np.nanmedian(errors)),
            "p90 error": float(np.nanquantile(errors, 0.9)),
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joints", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = measured(given.joints, given.seed)
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
