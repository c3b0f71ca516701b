r"""External torque on five arms: false alarms, contacts found, and how often the band holds.

    python bench/external_torque.py [--minutes 2] [--contacts 20] [--seed 0] [--arms ur5,panda]

The arms follow random motions under computed torque. Their masses are those of the model ± 10 %, their friction (LuGre) that of the
file ± 30 %. After 20 s of learning, free motion counts alarms and the share of the time in the pointwise band; then torques of 1.5 times
the threshold of an alarm are applied to single joints, in either direction, and a contact is found if the joint raises an alarm within 100 ms.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from plants.friction import FloatArray, FrictionValues, LuGre
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named

ARMS = {
    "ur3": ("ur_description/urdf/ur3_robot.urdf", 6),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", 6),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", 6),
    "panda": ("panda_description/urdf/panda.urdf", 7),
    "z1": ("z1_description/urdf/z1.urdf", 6),
}
"""URDF in the package example-robot-data, and how many of its first joints are the arm."""

DT, INNER = 0.002, 10
MASSES, FRICTION = 0.1, 0.3
"""Largest relative errors of masses and friction."""

BANDWIDTH = 10.0
"""Of the controller [rad/s]."""

LEARNING = 20.0
"""So long the arms learn before anything is counted [s]."""

SIZE, FOUND_WITHIN, LASTS = 1.5, 0.1, 0.3
"""Contacts per threshold; time to find them, and how long they last [s]."""


def urdf_of(path: str) -> Path:
    """A URDF of the package example-robot-data.

    :raises FileNotFoundError: without the package.
    """
    below = Path("cmeel.prefix/share/example-robot-data/robots") / path
    for folder in sys.path:
        if (Path(folder) / below).is_file():
            return Path(folder) / below
    raise FileNotFoundError(f"{below.name} not found: pip install example-robot-data")


class Dynamics:
    """A model with rotors, as the compensator asks for it."""

    def __init__(self, model: Any, rotors: FloatArray) -> None:
        self.model, self.rotors, self.data = model, rotors, model.createData()

    def mass_matrix_and_bias(self, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """M and h."""
        upper = np.triu(pin.crba(self.model, self.data, q))
        bias = np.array(pin.nonLinearEffects(self.model, self.data, q, v))
        return np.asarray(upper + np.triu(upper, 1).T + np.diag(self.rotors)), bias


@dataclass
class Drawn:
    """An arm with its true dynamics, those of the model, and its friction as identified (n,)."""

    name: str
    true: Dynamics
    known: Dynamics
    home: FloatArray
    coulomb: FloatArray
    scale: FloatArray


def drawn(name: str, rng: np.random.Generator) -> Drawn:
    """An arm with errors of its masses and friction."""
    path, count = ARMS[name]
    whole = pin.buildModelFromUrdf(str(urdf_of(path)))
    locked = list(range(count + 1, whole.njoints))
    model = pin.buildReducedModel(whole, locked, pin.neutral(whole)) if locked else whole
    lower, upper = (
        np.clip(limit, -2.0, 2.0) for limit in (model.lowerPositionLimit, model.upperPositionLimit)
    )
    home = 0.5 * (lower + upper) + 0.15 * (upper - lower)
    data = model.createData()
    poses = [home + rng.uniform(-0.4, 0.4, count) for _ in range(20)]
    gravity = np.max([np.abs(pin.computeGeneralizedGravity(model, data, q)) for q in poses], axis=0)
    rotors = (
        0.5 * np.diag(Dynamics(model, np.zeros(count)).mass_matrix_and_bias(home, np.zeros(count))[0]) + 0.02
    )
    true = model.copy()
    for k in range(1, true.njoints):
        body, factor = true.inertias[k], 1.0 + float(rng.uniform(-MASSES, MASSES))
        true.inertias[k] = pin.Inertia(factor * body.mass, body.lever, factor * body.inertia)
    return Drawn(
        name,
        Dynamics(true, rotors),
        Dynamics(model, rotors),
        home,
        0.15 * gravity + 3.0 * rotors,
        rng.uniform(1.0 - FRICTION, 1.0 + FRICTION, count),
    )


class Arm:
    """A compensated arm: controller, compensator and motion; the plants are simulated together (:class:`Arms`)."""

    def __init__(self, arm: Drawn, seed: int) -> None:
        self.arm, n = arm, len(arm.home)
        rng = np.random.default_rng(seed)
        self._frequency = 2.0 * np.pi * rng.uniform(0.1, 0.45, (4, n))
        self._amplitude = rng.uniform(0.06, 0.16, (4, n))
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (4, n))
        servo = replace(load_actuator("torque_joint"), resolution=1e-5)
        joints = [
            JointModel(
                f"j{k}",
                servo,
                law_named("m2"),
                {
                    "ratio": 1.0,
                    "armature": float(arm.known.rotors[k]),
                    "friction_base": float(c),
                    "friction_stribeck": float(0.25 * c),
                    "dtheta_stribeck": 0.08,
                    "alpha": 2.0,
                    "friction_viscous": float(0.5 * c),
                },
                float(10.0 * c),
            )
            for k, c in enumerate(arm.coulomb)
        ]
        settings = Settings("sum", "none", timing=Timing(loop_delay=DT))
        self.compensator = Compensator(joints, [JointMap()] * n, settings, dynamics=arm.known)
        self.compensator.enable()
        self.names = self.compensator.names

    def goal(self, time: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position, velocity and acceleration, rising within two seconds and at rest for two of every ten."""
        at = self._frequency * time + self._phase
        w, a = self._frequency, self._amplitude
        s = np.clip(np.minimum(time % 10.0, 8.0 - time % 10.0) / 1.5, 0.0, 1.0)
        rising = 1.0 if time % 10.0 < 4.0 else -1.0
        ease, slope = s**3 * (10.0 - 15.0 * s + 6.0 * s * s), 30.0 * s * s * (1.0 - s) ** 2 * rising / 1.5
        bend = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / 1.5**2
        path, rate, curve = (
            (a * np.sin(at)).sum(0),
            (a * w * np.cos(at)).sum(0),
            -(a * w * w * np.sin(at)).sum(0),
        )
        return (
            self.arm.home + ease * path,
            ease * rate + slope * path,
            ease * curve + 2.0 * slope * rate + bend * path,
        )

    def torque(self, time: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """Torque of controller and compensation [N m]."""
        goal, rate, bend = self.goal(time)
        mass, bias = self.arm.known.mass_matrix_and_bias(q, v)
        effort = mass @ (bend + BANDWIDTH**2 * (goal - q) + 2.0 * BANDWIDTH * (rate - v)) + bias
        ours = self.compensator
        ours.on_command(time, time - 1e-6, self.names, (), (), effort)
        ours.on_goal(time, time - 1e-6, self.names, goal, rate)
        return np.asarray(effort + ours.on_state(time, time, self.names, q, v, ()))


class Arms:
    """Several arms at once; the friction of all joints is one array."""

    def __init__(self, arms: list[Drawn], seed: int) -> None:
        self.arms = [Arm(arm, seed + k) for k, arm in enumerate(arms)]
        sizes = [len(arm.home) for arm in arms]
        self.parts = [
            slice(end - size, end) for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True)
        ]
        coulomb = np.concatenate([arm.coulomb * arm.scale for arm in arms])
        zero = np.zeros_like(coulomb)
        masses = [arm.true.mass_matrix_and_bias(arm.home, np.zeros_like(arm.home))[0] for arm in arms]
        free = np.concatenate([1.0 / np.diag(np.linalg.inv(mass)) for mass in masses])
        self.friction = LuGre(
            FrictionValues(
                coulomb=coulomb, stiction=1.25 * coulomb, viscous=0.5 * coulomb, stribeck_velocity=zero + 0.08,
                presliding=zero + 1e-3, inertia=free, asymmetry=zero, ripple=zero, ripple_wave=zero, load_share=zero,
            )
        )  # fmt: skip
        self.q: FloatArray = np.concatenate([arm.goal(0.0)[0] for arm in self.arms])
        self.v = np.zeros_like(self.q)
        self.sent = np.zeros_like(self.q)
        self.step = 0

    def advance(self, push: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """One cycle under torques from outside; external torque, band and threshold of all joints, (n,) each."""
        time, now = self.step * DT, np.zeros_like(self.q)
        found = np.zeros((3, len(self.q)))
        for arm, part in zip(self.arms, self.parts, strict=True):
            now[part] = arm.torque(time, self.q[part], self.v[part])
            external = arm.compensator.external_torque
            found[:, part] = np.stack(external) if external is not None else np.nan
        inner = DT / INNER
        dynamics = [
            arm.arm.true.mass_matrix_and_bias(self.q[part], self.v[part])
            for arm, part in zip(self.arms, self.parts, strict=True)
        ]
        inverses = [np.linalg.inv(mass) for mass, _ in dynamics]
        known = (self.sent + push - np.concatenate([bias for _, bias in dynamics])) * inner
        for _ in range(INNER):
            pushed = known - self.friction.torque(self.v, inner) * inner
            self.v = self.v + np.concatenate(
                [inverse @ pushed[part] for inverse, part in zip(inverses, self.parts, strict=True)]
            )
            self.q = self.q + self.v * inner
        self.sent, self.step = now, self.step + 1
        return found[0], found[1], found[2]

    def free(self, seconds: float) -> tuple[FloatArray, FloatArray]:
        """Free motion: alarms that begin, per arm, and the share of time within the band, per joint."""
        none, before = np.zeros_like(self.q), np.zeros(len(self.q), dtype=np.bool_)
        begun, within = np.zeros(len(self.arms)), np.zeros_like(self.q)
        steps = round(seconds / DT)
        for _ in range(steps):
            torque, band, threshold = self.advance(none)
            alarm = np.abs(torque) > threshold
            begun += [bool((alarm & ~before)[part].any()) for part in self.parts]
            within += np.abs(torque) <= band
            before = alarm
        return begun, within / steps

    def contacts(self, count: int, rng: np.random.Generator) -> tuple[int, int]:
        """So many contacts per arm, one at a time: how many were found in time, of how many."""
        none, found, tried = np.zeros_like(self.q), 0, 0
        for _ in range(count):
            _, _, threshold = self.advance(none)
            for _ in range(int(rng.integers(300, 600))):
                _, _, threshold = self.advance(none)
            push = none.copy()
            for part in self.parts:
                k = int(rng.integers(part.start, part.stop))
                push[k] = float(rng.choice([-1.0, 1.0])) * SIZE * threshold[k]
            seen = np.zeros(len(self.q), dtype=np.bool_)
            for step in range(round(LASTS / DT)):
                torque, _, threshold = self.advance(push)
                if step * DT <= FOUND_WITHIN:
                    seen |= (np.abs(torque) > threshold) & (torque * push > 0.0)
            found, tried = found + int(seen.sum()), tried + len(self.parts)
        return found, tried


def measured(names: list[str], minutes: float, contacts: int, seed: int) -> dict[str, Any]:
    """Every figure."""
    rng = np.random.default_rng(seed)
    arms = Arms([drawn(name, rng) for name in names], seed)
    arms.free(LEARNING)
    begun, within = arms.free(60.0 * minutes)
    found, tried = arms.contacts(contacts, rng)
    return {
        "alarms per 10 minutes": float(begun.sum() / (minutes * len(names)) * 10.0),
        "alarms": {name: int(count) for name, count in zip(names, begun, strict=True)},
        "within the band": float(within.mean()),
        "least within the band": float(within.min()),
        "contacts found": found,
        "contacts": tried,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2.0, help="of free motion of each arm")
    parser.add_argument("--contacts", type=int, default=20, help="with each arm")
    parser.add_argument("--seed", type=int, default=0, help="of arms, motions and contacts")
    parser.add_argument("--arms", default=",".join(ARMS), help=f"some of {', '.join(ARMS)}")
    given = parser.parse_args()
    print(json.dumps(measured(given.arms.split(","), given.minutes, given.contacts, given.seed), indent=1))


if __name__ == "__main__":
    main()
