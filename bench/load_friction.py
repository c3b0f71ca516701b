"""Evidence for load friction: what laws predict on recordings where nothing was fitted, and their parameters in MJCF.

- M1: Coulomb and viscous friction, ``frictionloss`` and ``damping`` of MJCF.
- LuGre of MuJoCo's ``dcmotor``: M2 with an exponent of 2, its bristles (:data:`DEFLECTION`), simulated in MuJoCo with the written file.
- Loss proportional to the motor's torque, as proposed in google-deepmind/mujoco#3528: Coulomb and viscous friction, and a share of the motor
  torque (M5 without its external and fading parts). MJCF has no place for it.
- M3 to M6: friction that grows with the transmitted torque, and fades with speed. MJCF has no place for it; ``stribeck.mujoco.Controller`` has.

Of the XL330 the runs of each gain are left out in turn, of the STS3250 each trajectory; of robots every second or third run, with M1, M2 and M4,
which are fitted one from the other. ``joints`` are tables of one joint (``joint_friction``), whose last third is left out; their load is not known, so that
only M1 and M2 can be compared.

    python bench/load_friction.py xl330|sts3250|so101|go2|joints [--only CONDITION …] [--jobs 2] [--fits FOLDER] [--data FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import stribeck as sb
from left_out import DATA, ROBOTS, SERVOS, conditions, fitted, robot
from stribeck.evaluate.assessment import stepping_of
from stribeck.exports.mjcf import JOINT, class_of, snippet
from stribeck.exports.mjcf_runs import runs_of, servo_of_run
from stribeck.exports.projection import plain
from stribeck.exports.registry import FORMATS
from stribeck.exports.task import JointServo
from stribeck.identify.robot.choice import Fitted
from stribeck.identify.robot.choice import fitted as fitted_robot
from stribeck.identify.robot.identify import RunScore, predicted, score
from stribeck.model.joint import Drive, Servo
from stribeck.model.log import Batch, Log
from stribeck.model.step import batch_for

Array = npt.NDArray[np.float64]
Rows = list[dict[str, object]]

DEFLECTION = 0.002
"""Of the bristles under the static friction [rad]: below what the recordings resolve."""

STEP = 0.00025
"""Of MuJoCo with bristles [s]."""

NOT_FADING = {"friction_stribeck": 0.0, "dtheta_stribeck": 1.0, "alpha": 2.0}


@dataclass(frozen=True)
class Candidate:
    """A law, with the parameters that it does not have fixed at zero."""

    title: str
    key: str
    law: str
    fixed: Mapping[str, float] = field(default_factory=dict)
    bristles: bool = False


CANDIDATES = (
    Candidate("M1, frictionloss", "m1", "m1"),
    Candidate("LuGre, dcmotor", "lugre", "m2", {"alpha": 2.0}, bristles=True),
    Candidate(
        "share of motor torque (#3528)",
        "proportional",
        "m5",
        {
            **NOT_FADING,
            "load_friction_external": 0.0,
            "load_friction_motor_stribeck": 0.0,
            "load_friction_external_stribeck": 0.0,
        },
    ),
    Candidate("M3, share of transmitted torque", "m3", "m3"),
    Candidate("M4, load and fading", "m4", "m4"),
    Candidate("M5", "m5", "m5"),
    Candidate("M6", "m6", "m6"),
)


def with_bristles(text: str, drive: Drive) -> str:
    """An exported file whose dry friction is LuGre of its dcmotor."""
    p = drive.values
    static = p["friction_base"] + p["friction_stribeck"]
    stiffness = static / DEFLECTION
    damping = 2.0 * math.sqrt(stiffness * p["armature"])
    numbers = (stiffness, damping, p["friction_base"], static, p["dtheta_stribeck"])
    text, found = re.subn(r'frictionloss="[^"]*"', 'frictionloss="0"', text)
    lugre = " ".join(f"{number:.6g}" for number in numbers)
    text, motors = re.subn(r"<dcmotor ", f'<dcmotor lugre="{lugre}" ', text)
    if (found, motors) != (1, 1):
        raise SystemExit("this MuJoCo has no dcmotor: version 4.0 or newer is needed")
    return text


def simulated_with_bristles(drive: Drive, runs: Batch) -> Array:
    """Positions (T, R) [rad] in MuJoCo."""
    servo, substeps, texts = Servo(plain(drive, FORMATS["mjcf"]), 1.0), math.ceil(runs.dt / STEP - 1e-9), []
    for r in range(len(runs.logs)):
        own = JointServo(JOINT, servo_of_run(servo, runs, r))
        texts.append((with_bristles(snippet([own], runs.dt / substeps), drive), class_of(own)))
    return runs_of(servo, runs, texts, substeps, np.stack([runs.position[0], runs.velocity[0]]))


def errors(drive: Drive, logs: Sequence[Log], bristles: bool) -> Array:
    """Mean absolute error of each run (R,) [rad]."""
    stepping = stepping_of(drive)
    runs = batch_for(logs, stepping.dt, stepping.integrator)
    moved = simulated_with_bristles(drive, runs) if bristles else stepping.motion(drive, runs).position
    return runs.mean_absolute_errors(moved)


def mjcf_of(drive: Drive, log: Log, bristles: bool) -> list[str]:
    """Elements of MJCF with the numbers of a drive."""
    servo = Servo(plain(drive, FORMATS["mjcf"]), log.setup.kp, supply_voltage=log.setup.supply_voltage)
    text = snippet([JointServo(JOINT, servo)])
    text = with_bristles(text, drive) if bristles else text
    return [line.strip() for line in text.splitlines() if "<joint" in line or "<dcmotor" in line]


def candidate_rows(name: str, one: Candidate, given: argparse.Namespace) -> Rows:
    """Errors of a candidate under each condition; what is compiled for its law serves all of them."""
    rows = []
    for condition, kept, other in conditions(name, given.data):
        if given.only and condition not in given.only:
            continue
        train, test = (sb.load(paths, arm_mass=0.0) for paths in (kept, other))
        drive = fitted(train, one.law, given.fits, f"{name}_{one.key}_without_{condition}", one.fixed)
        within, left = (
            1e3 * float(np.mean(errors(drive, runs.logs, one.bristles))) for runs in (train, test)
        )
        friction = {key: value for key, value in drive.values.items() if key in drive.law.parameter_names}
        rows.append(
            row_of(condition, one.title, within, left)
            | {"parameters": friction, "mjcf": mjcf_of(drive, test.logs[0], one.bristles)}
        )
    return rows


def servo_rows(name: str, given: argparse.Namespace) -> Rows:
    """Errors of each candidate under each condition, in the order of the conditions."""
    jobs = [partial(candidate_rows, name, one, given) for one in CANDIDATES]
    by_law = in_processes(jobs, given.jobs)
    return [rows[k] for k in range(len(by_law[0])) for rows in by_law]


def in_processes(jobs: Sequence[Callable[[], Rows]], count: int) -> list[Rows]:
    """Results in the order of the jobs, of which the last ones, with the richest laws, begin first."""
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        begun = [pool.submit(job) for job in reversed(jobs)]
        return [each.result() for each in reversed(begun)]


def row_of(left_out: str, law: str, within: float, left: float, unit: str = "mrad") -> dict[str, object]:
    """A row of the table."""
    return {"left_out": left_out, "law": law, "fitted": within, "predicted": left, "unit": unit}


def robot_rows(name: str, given: argparse.Namespace) -> Rows:
    """Errors of M1, M2 and M4 on runs left out of a robot."""
    chains = ("m2",), ("m1", "m4")
    jobs = [partial(chain_rows, name, laws, given.data) for laws in chains]
    rows = [row for part in in_processes(jobs, given.jobs) for row in part]
    return sorted(rows, key=lambda row: str(row["law"]))


def chain_rows(name: str, laws: Sequence[str], data: Path) -> Rows:
    """Errors of laws that are fitted one from the other, as ``identify_robot`` finds them without ``polish``."""
    tree, excluded, train, test = robot(name, data)
    joints = [index for index, joint in enumerate(tree.names) if joint not in excluded]
    known: dict[str, Fitted] = {}
    rows = []
    for law in laws:
        problem, x = fitted_robot(tree, train, joints, law, lambda text: None, known=known)
        scores = [score(tree, problem, x, run, index) for index, run in enumerate(train)]
        unseen = [predicted(tree, problem, x, run) for run in test]
        title = f"{len(test)} of {len(train) + len(test)} runs"
        rows.append(row_of(title, law.upper(), rms(scores), rms(unseen)))
    return rows


def rms(scores: Sequence[RunScore]) -> float:
    """Root mean square error of runs [mrad]."""
    return 1e3 * float(np.sqrt(np.mean([each.squares.mean() for each in scores])))


def joint_rows(name: str, given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Torque errors of M1 and M2 in the last third of each table of one joint."""
    for path in sorted((given.data / "joint_friction").glob("*.csv")):
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        cut = 2 * len(lines) // 3
        with tempfile.TemporaryDirectory() as folder:
            parts = [Path(folder) / "fitted.csv", Path(folder) / "left_out.csv"]
            for part, some in zip(parts, (lines[:cut], lines[cut:]), strict=True):
                part.write_text("\n".join([head, *some]), encoding="utf-8")
            for law in ("m1", "m2"):
                found: Any = sb.identify_joint(parts[0], law=law, validate=parts[1], progress=False).result
                yield row_of(path.stem, law.upper(), found.train[0].rms, found.validation[0].rms, "N m")


def main() -> None:
    """Print the table, and the elements of MJCF of the last condition."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=(*SERVOS, *ROBOTS, "joints"))
    parser.add_argument("--only", nargs="+", default=(), help="conditions (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: all cores)")
    parser.add_argument("--fits", type=Path, help="folder in which fits are kept")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"{'left out':24} {'law':32} {'fitted':>9} {'predicted':>9}")
    servo = given.name in SERVOS
    rows_of = servo_rows if servo else robot_rows if given.name in ROBOTS else joint_rows
    rows: list[dict[str, Any]] = []
    for row in rows_of(given.name, given):
        print("{left_out:24} {law:32} {fitted:9.3f} {predicted:9.3f} {unit}".format(**row), flush=True)
        rows.append(row)
    for row in rows[-len(CANDIDATES) :] if servo else ():
        print(f"\n{row['law']}: " + ", ".join(f"{k} {v:.4g}" for k, v in row["parameters"].items()))
        print("\n".join(row["mjcf"]))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
