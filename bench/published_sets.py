"""Published parameter sets of one servo, the Feetech STS3215, on recorded runs of an SO-101 that consists of six of them.

Each set, and that of ``stribeck identify robot``, predicts the five arm joints free-running from goals alone, all joints together, as
``stribeck identify robot`` does; the first second does not count. The second error is that after the best constant delay and offset of each
joint, which belong to bus and mounting and which no published set has. A run takes two seconds for each set.

    stribeck identify robot FITTED.npz … --model so101_new_calib.xml --exclude gripper --no-polish --output OUT
    python bench/published_sets.py so101_new_calib.xml OUT/robot.json OTHERS.npz …
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.files.drives import Drives, read_drives
from stribeck.identify.robot.forward import held_goals, simulate_robot
from stribeck.identify.robot.problem import FIXED, HELD
from stribeck.identify.robot.recordings import RobotRun, read_runs
from stribeck.identify.robot.rollout import DRIVE
from stribeck.identify.robot.tree import RobotTree, load_tree
from stribeck.model.law import LAWS

Array = npt.NDArray[np.float64]

EVERY = 6
"""Steps per row, of 3.3 ms."""

LATEST = 0.2
"""Largest delay that is tried [s]."""


@dataclass(frozen=True)
class Published:
    """A set: gains [N m/rad, N m s/rad], torque limit [N m], and the parameters of armature and friction.

    :param ratio: of the velocity gain to critical damping, in place of ``derivative``.
    """

    title: str
    stiffness: float
    derivative: float
    limit: float
    values: Mapping[str, float]
    law: str = "m1"
    ratio: float = 0.0


def friction(armature: float, base: float, viscous: float) -> dict[str, float]:
    """Armature and M1."""
    return {"armature": armature, "friction_base": base, "friction_viscous": viscous}


@dataclass(frozen=True)
class Motor:
    """A set of the BAM program: motor constants, from which the firmware's gain and the supply make the gains."""

    title: str
    kt: float
    resistance: float
    values: Mapping[str, float] = field(default_factory=dict)
    law: str = "m1"
    ratio: float = 1.0

    def at(self, gain: float, supply: float) -> Published:
        """The servo with a firmware gain and a supply [V]; 0.166 duty per K_p rad, 0.97 at most."""
        torque, brake = self.kt / self.resistance * supply, self.kt**2 / self.resistance
        values = {**self.values, "friction_viscous": self.values["friction_viscous"] + brake}
        title = f"{self.title}, P {gain:g}, {supply:g} V"
        return Published(title, torque * 0.166 * self.ratio * gain, 0.0, 0.97 * torque, values, self.law)


BAM_M1 = Motor(
    "BAM M1",
    1.21164135295077,
    2.6761663274455603,
    friction(0.02840336348682085, 0.05239296084748866, 0.05908515565091076),
)
BAM_M6 = Motor(
    "BAM M6",
    1.2753202369175398,
    2.753421214375944,
    {
        **friction(0.021564290129722483, 0.0533134815909817, 0.028160537042911545),
        "friction_stribeck": 4.257322248151969e-05,
        "load_friction_motor": 0.044912012282132555,
        "load_friction_external": 0.24355483356616028,
        "load_friction_motor_stribeck": 0.00012448975632695385,
        "load_friction_external_stribeck": 0.1422905635963302,
        "load_friction_motor_quad": 0.007594943296670792,
        "load_friction_external_quad": 0.00340408727365082,
        "dtheta_stribeck": 0.371136775424206,
        "alpha": 9.93094944677977,
    },
    "m6",
    1.1616979929275297,
)
"""Of the servo for 7.4 V: bam/params/feetech_sts3215_7_4V of Rhoban/bam (Apache-2.0)."""

SETS = (
    Published("SO-101 model, Menagerie", 998.22, 2.731, 3.35, friction(0.028, 0.052, 0.60)),
    Published("SO-100 of Menagerie", 50.0, 0.0, 35.0, friction(0.1, 0.1, 0.0), ratio=1.0),
    Published("joints_properties.xml", 17.8, 0.0, 3.35, friction(0.028, 0.052, 0.60)),
    Published("Isaac Lab configurations", 17.8, 0.0, 10.0, friction(0.028, 0.0, 0.60)),
    Published("Open Duck Mini v2", 13.37, 0.0, 3.23, friction(0.027, 0.068, 0.56)),
    BAM_M1.at(32.0, 7.4),
    BAM_M1.at(16.0, 7.4),
    BAM_M1.at(16.0, 12.0),
    BAM_M6.at(16.0, 7.4),
)
"""TheRobotStudio/SO-ARM100 (so101_new_calib.xml, joints_properties.xml), google-deepmind/mujoco_menagerie (robotstudio_so101,
trs_so_arm100), apirrone/Open_Duck_Mini, and configurations of SO-101 arms for Isaac Lab, which give no friction."""


FITTED = LAWS["m1"].with_terms(position=True)
"""Law of the fitted drives."""


def drives_of(one: Published, tree: RobotTree, used: list[int]) -> dict[str, Array]:
    """Parameters of all joints; those that are not used are held."""
    found = {name: np.zeros(len(tree.names)) for name in (*DRIVE, *LAWS[one.law].parameter_names, *FIXED)}
    for name, value in {**HELD, "dtheta_stribeck": 1.0}.items():
        found[name] = np.full(len(tree.names), value)
    given = {"stiffness": one.stiffness, "derivative": one.derivative, "limit": one.limit}
    for name, value in (*given.items(), *one.values.items()):
        found[name][used] = value
    if one.ratio:
        inertia = tree.loads(*np.zeros((3, 1, len(tree.names)))).inertia[0] + found["armature"]
        found["derivative"][used] = 2.0 * one.ratio * np.sqrt(one.stiffness * inertia)[used]
    return found


def drives_of_fit(fit: Drives, tree: RobotTree) -> dict[str, Array]:
    """The identified parameters."""
    found = {name: np.zeros(len(tree.names)) for name in (*DRIVE, *FITTED.parameter_names, *FIXED)}
    for name, value in HELD.items():
        found[name] = np.full(len(tree.names), value)
    for joint, drive in fit.joints.items():
        at = tree.names.index(joint)
        values = {name: one.value for name, one in drive.estimates.items() if name in found}
        for name, value in ({"derivative": 0.0, "limit": tree.limits[at]} | values).items():
            found[name][at] = value
    return found


def motion(tree: RobotTree, law: str, drives: Mapping[str, Array], run: RobotRun, used: list[int]) -> Array:
    """Free-running motion (T, J) [rad]."""
    goal = np.nan_to_num(run.goal)
    still = [joint for joint in range(len(tree.names)) if joint not in used]
    goal[:, still] = run.position[0, still]
    return simulate_robot(
        tree,
        LAWS[law].with_terms(position="friction_slope" in drives),
        drives,
        held_goals(goal, drives["delay"], EVERY, run.dt),
        run.position[0],
        run.dt / EVERY,
        EVERY,
    )


def errors(runs: list[RobotRun], motions: list[Array], used: list[int]) -> tuple[Array, Array]:
    """Root mean square errors of each joint (J') [rad], as simulated, and after the best delay and offset of each joint."""
    rows = round(LATEST / runs[0].dt)
    found = []
    for late in range(-rows, rows + 1):
        differences = [
            (np.roll(moved, late, axis=0) - run.position)[run.first + rows : -rows, used]
            for run, moved in zip(runs, motions, strict=True)
        ]
        weights = np.array([1.0 / len(each) / len(runs) for each in differences])
        offset = sum(weight * each.sum(axis=0) for weight, each in zip(weights, differences, strict=True))
        found.append(np.mean([np.mean((each - offset) ** 2, axis=0) for each in differences], axis=0))
    plain = [
        np.mean((moved - run.position)[run.first :, used] ** 2, axis=0)
        for run, moved in zip(runs, motions, strict=True)
    ]
    return np.sqrt(np.mean(plain, axis=0)), np.sqrt(np.min(found, axis=0))


def main(model: Path, fitted: Path, recordings: list[Path]) -> None:
    """Print one line for each set."""
    tree = load_tree(model)
    fit = read_drives(fitted)
    used = [tree.names.index(joint) for joint in fit.joints]
    excluded = [name for name in tree.names if name not in fit.joints]
    runs = [run for run in read_runs(recordings, tree, excluded) if not run.flaw]
    print(f"{len(runs)} runs; rms over runs and joints [mrad], and of each joint")
    print(
        f"{'set':32} {'as given':>8} {'delayed, offset':>15}  {' '.join(f'{tree.names[j]:>13}' for j in used)}"
    )
    candidates = [(one.title, one.law, drives_of(one, tree, used)) for one in SETS]
    for title, law, drives in [*candidates, ("identify robot", "m1", drives_of_fit(fit, tree))]:
        given, moved = errors(runs, [motion(tree, law, drives, run, used) for run in runs], used)
        joints = " ".join(f"{1e3 * a:6.1f} {1e3 * b:6.1f}" for a, b in zip(given, moved, strict=True))
        total = [1e3 * np.sqrt(np.mean(each**2)) for each in (given, moved)]
        print(f"{title:32} {total[0]:8.1f} {total[1]:15.1f}  {joints}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="MJCF or URDF of the arm")
    parser.add_argument("fitted", type=Path, help="file of drives, from stribeck identify robot")
    parser.add_argument("recordings", type=Path, nargs="+", help="runs to predict")
    main(**vars(parser.parse_args()))
