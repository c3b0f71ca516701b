r"""Simulated labs: what an identification says of the friction of joints that are none of its laws.

Arms like a UR5 whose joints have the friction of ``plants.friction`` (LuGre or Maxwell slip, with direction, angle and load), drawn
at random, masses off by up to 5 % from the URDF, and joints recorded as labs do: encoders of 17 bits, noise of 2 % on the torque.

- ``sweep``: one joint with a link, at constant velocities in both directions, ``stribeck identify joint``;
- ``single``: one arm, its joints moved one after the other, ``stribeck identify arm``;
- ``whole``: one arm, all joints together, ``stribeck identify arm``.

Compared is the steady friction of the plant, :math:`g(v) + \sigma_2 v` with the share of the load and without ripple, at speeds between the
slowest and the fastest that were recorded often and at loads that were: median error, and the share of points within 95 % bands
of draws from the file. The verdict is compared with the error on recordings held out.

    python bench/labs.py [--labs 10] [--first 0] [--only sweep single whole] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import paths  # noqa: F401
import numpy as np
import pinocchio as pin

import stribeck as sb
from plants.arm import COULOMB, HOME, JOINTS, ROTOR, VISCOUS, ur5
from plants.friction import FloatArray, FrictionValues, Side
from steady_friction import drawn_friction, points
from stribeck.model.joint import Drive

STEP, EVERY = 1e-3, 5
"""Step of the plant [s], and steps per row."""

COUNT = 2.0 * np.pi / 2.0**17
USABLE, GOOD = 0.2, 0.1
"""Errors held out, relative to the torque, above which no joint may be called usable, and below which it should be."""


@dataclass(frozen=True)
class Lab:
    """Friction of six joints and the arm they move."""

    seed: int
    values: FrictionValues
    slips: int
    model: Any

    @classmethod
    def drawn(cls, seed: int) -> Lab:
        """A lab by its number."""
        rng = np.random.default_rng([7, seed])
        model = ur5()
        for k in range(1, len(model.inertias)):
            factor, body = 1.0 + float(rng.uniform(-0.05, 0.05)), model.inertias[k]
            model.inertias[k] = pin.Inertia(factor * body.mass, body.lever, factor * body.inertia)
        coulomb = COULOMB * rng.uniform(0.6, 1.5, JOINTS)
        values = FrictionValues(
            coulomb=coulomb,
            stiction=coulomb * (1.0 + rng.uniform(0.05, 0.5, JOINTS)),
            viscous=VISCOUS * rng.uniform(0.4, 1.5, JOINTS),
            stribeck_velocity=rng.uniform(0.02, 0.12, JOINTS),
            presliding=10.0 ** rng.uniform(-3.7, -2.5, JOINTS),
            inertia=ROTOR,
            asymmetry=rng.uniform(-0.15, 0.15, JOINTS),
            ripple=rng.uniform(0.0, 0.08, JOINTS),
            ripple_wave=rng.uniform(2.0, 60.0, JOINTS),
            load_share=rng.uniform(0.0, 0.06, JOINTS),
        )
        return cls(seed, values, int(rng.integers(0, JOINTS + 1)), model)

    def steady(self, joint: int, velocity: FloatArray, load: FloatArray) -> FloatArray:
        """Friction in even motion against it [N m]."""
        one = {name: value[joint] for name, value in vars(self.values).items()}
        lean = 1.0 + one["asymmetry"] * np.sign(velocity)
        weight = np.exp(-((velocity / one["stribeck_velocity"]) ** 2))
        dry = one["coulomb"] + (one["stiction"] - one["coulomb"]) * weight
        return np.asarray(lean * (dry + one["viscous"] * abs(velocity)) + one["load_share"] * np.abs(load))

    def friction(self, q: FloatArray, v: FloatArray, load: FloatArray) -> FloatArray:
        """Friction along a motion (T, 6), torques that the gears carry (T, 6) [N m]."""
        plant, found = Side(self.values, self.slips), np.empty_like(q)
        for k in range(len(q)):
            plant.modulate(q[k], load[k])
            found[k] = plant.torque(v[k], STEP)
        return found

    def dynamics(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Torque of the links (T, 6), renewed every row [N m]."""
        data = self.model.createData()
        torque = [pin.rnea(self.model, data, q[k], v[k], a[k]) for k in range(0, len(q), EVERY)]
        return np.repeat(np.array(torque), EVERY, axis=0)[: len(q)]


class Motion(NamedTuple):
    """Positions, velocities and accelerations (T, 6) at the step of the plant."""

    q: FloatArray
    v: FloatArray
    a: FloatArray


def sines(rng: np.random.Generator, seconds: float, moved: FloatArray, size: float) -> Motion:
    """Sums of four sines of some joints (6,), eased in."""
    t = np.arange(0.0, seconds, STEP)[:, None]
    q, v, a = np.zeros((3, len(t), JOINTS))
    for frequency in (0.07, 0.16, 0.27, 0.41):
        w = 2.0 * np.pi * frequency * rng.uniform(0.9, 1.1, JOINTS)
        amplitude = moved * size * rng.uniform(0.5, 1.0, JOINTS) * (0.15 / frequency) ** 0.7
        phase = rng.uniform(0.0, 2.0 * np.pi, JOINTS)
        q += amplitude * (np.sin(w * t + phase) - np.sin(phase))
        v += amplitude * w * np.cos(w * t + phase)
        a -= amplitude * w**2 * np.sin(w * t + phase)
    return Motion(HOME + q, v, a)


def sweep(rng: np.random.Generator, top: float, travel: float) -> Motion:
    """One joint there and back at nine speeds, with ramps and rests."""
    pieces = []
    for speed in np.geomspace(0.01, 1.0, 9) * top * rng.uniform(0.9, 1.1):
        ramp = np.linspace(0.0, speed, round(0.25 / STEP), endpoint=False)
        even = np.full(round(np.clip(travel / speed, 0.6, 6.0) / STEP), speed)
        one = np.concatenate([ramp, even, ramp[::-1], np.zeros(round(0.2 / STEP))])
        pieces += [one, -one]
    v = np.concatenate(pieces)[:, None] * np.ones(JOINTS)
    return Motion(np.cumsum(v, axis=0) * STEP, v, np.gradient(v, STEP, axis=0))


def recorded(lab: Lab, motion: Motion, rigid: FloatArray, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Columns of a recording, from the torque of the links (T, 6)."""
    torque = rigid + ROTOR * motion.a + lab.friction(motion.q, motion.v, rigid)
    rows = slice(0, None, EVERY)
    torque, q, v = torque[rows], motion.q[rows], motion.v[rows]
    noise = rng.standard_normal((2, *torque.shape))
    return {
        "time": np.arange(len(q)) * STEP * EVERY,
        "q": np.round(q / COUNT) * COUNT,
        "dq": v + 2e-3 * noise[0],
        "tau": torque + 0.02 * np.sqrt(np.mean(torque**2, axis=0)) * noise[1],
    }


def compared(
    lab: Lab, joint: int, drive: Drive, v: FloatArray, load: FloatArray, q: FloatArray
) -> dict[str, Any]:
    """Errors and coverage of one joint."""
    speed, carried = points(v, load)
    true = lab.steady(joint, speed, carried)
    places = np.quantile(q, np.linspace(0.05, 0.95, 7))
    found, drawn = drawn_friction(drive, speed, carried, places)
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    use = None if drive.verdict is None else str(drive.verdict.use)
    return {
        "joint": joint,
        "law": drive.law.name,
        "error": (np.abs(found - true) / true).tolist(),
        "inside": ((low <= true) & (true <= high)).tolist(),
        "width": ((high - low) / 2.0 / true).tolist(),
        "use": use,
        "reasons": [] if drive.verdict is None else sorted({one.key for one in drive.verdict.reasons}),
    }


def single_joint(lab: Lab, folder: Path) -> list[dict[str, Any]]:
    """Sweeps of two joints of a lab, each carrying a link about a horizontal axis; another sweep is held out."""
    rng = np.random.default_rng([8, lab.seed])
    rows = []
    weight, inertia = 2.0 * lab.values.coulomb, 2.0 * ROTOR
    found = {}
    for name in ("train", "test"):
        motion = sweep(rng, 1.2, 1.0)
        rigid = weight * np.sin(motion.q) + inertia * motion.a
        found[name] = recorded(lab, motion, rigid, rng)
    for joint in (lab.seed % JOINTS, (lab.seed + 3) % JOINTS):
        files = []
        for name, table in found.items():
            one = {key: value if key == "time" else value[:, joint] for key, value in table.items()}
            files.append(folder / f"{name}.npz")
            np.savez(files[-1], **one)
        fit = sb.identify_joint([files[0]], validate=[files[1]], progress=False)
        table = found["train"]
        load = weight[joint] * np.sin(table["q"][:, joint])
        row = compared(lab, joint, fit.drive(), table["dq"][:, joint], load, table["q"][:, joint])
        row["held_out"] = fit.result.validation[0].relative
        rows.append(row)
    return rows


def arm(lab: Lab, folder: Path, urdf: Path, whole: bool) -> list[dict[str, Any]]:
    """All joints of a lab, moved together or one after the other; another recording of the same kind is held out."""
    rng = np.random.default_rng([9, lab.seed, whole])
    files: dict[str, list[Path]] = {"train": [], "test": []}
    v, load, q = [], [], []
    for name, some in files.items():
        moves = [np.ones(JOINTS)] if whole else list(np.eye(JOINTS))
        seconds = (45.0 if whole else 16.0) * (1.0 if name == "train" else 0.6)
        for k, moved in enumerate(moves):
            motion = sines(rng, seconds, moved, 0.5)
            rigid = lab.dynamics(*motion)
            table = recorded(lab, motion, rigid, rng)
            some.append(folder / f"{name}{k}.npz")
            np.savez(some[-1], **table)
            if name == "train":
                v.append(table["dq"] * moved)
                load.append(rigid[::EVERY])
                q.append(table["q"])
    fit = sb.identify_arm(files["train"], urdf, validate=files["test"], fits=["ols", "full"], progress=False)
    errors = fit.result["full"].errors["validation"]["moving"]["per_joint"]
    speeds, loads, at = np.concatenate(v), np.concatenate(load), np.concatenate(q)
    rows = []
    for joint, (drive, error) in enumerate(zip(fit.drives.values(), errors, strict=True)):
        own = np.abs(speeds[:, joint]) > 0.0
        row = compared(lab, joint, drive, speeds[own, joint], loads[own, joint], at[own, joint])
        row["held_out"] = error
        rows.append(row)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Figures of some joints."""
    error, inside, width = (
        np.concatenate([row[name] for row in rows]) for name in ("error", "inside", "width")
    )
    held = np.array([row["held_out"] for row in rows], dtype=float)
    usable = np.array([row["use"] == "usable" for row in rows])
    good = held <= GOOD
    return {
        "joints": len(rows),
        "median error": float(np.median(error)),
        "covered": float(np.mean(inside)),
        "median half-width": float(np.median(width)),
        "median held out": float(np.median(held)),
        "usable above 20 %": int(np.sum(usable & (held > USABLE))),
        "usable of good": float(np.mean(usable[good])) if good.any() else float("nan"),
    }


def urdf_of() -> Path:
    """The URDF that ``plants.arm.ur5`` reads."""
    import sys

    below = "cmeel.prefix/share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"
    return next(Path(folder) / below for folder in sys.path if (Path(folder) / below).is_file())


KINDS = ("sweep", "single", "whole")


def run_lab(seed: int, kinds: list[str], tell: Any = print) -> dict[str, list[dict[str, Any]]]:
    """Rows of a lab by kind."""
    lab, found = Lab.drawn(seed), {}
    for kind in kinds:
        begin = time.process_time()
        with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            folder = Path(name)
            found[kind] = (
                single_joint(lab, folder) if kind == "sweep" else arm(lab, folder, urdf_of(), kind == "whole")
            )
        for row in found[kind]:
            row["lab"] = seed
        tell(f"{seed} {kind} {time.process_time() - begin:.0f} s  {summary(found[kind])}")
    return found


def main() -> None:
    """Run labs and print figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in given.only}
    for seed in range(given.first, given.first + given.labs):
        for kind, some in run_lab(seed, given.only, lambda text: print(text, flush=True)).items():
            rows[kind] += some
        if given.json:
            given.json.write_text(json.dumps(rows))
    for kind, some in {**rows, "all": [one for each in rows.values() for one in each]}.items():
        print(kind, {name: round(value, 4) for name, value in summary(some).items()})


if __name__ == "__main__":
    main()
