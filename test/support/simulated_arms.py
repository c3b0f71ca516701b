"""Arms of known geometry, and their poses as a laser tracker measures them."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from helpers import DATA
from stribeck.files.robots import read_robot
from stribeck.identify.geometry.chain import elementary, product
from stribeck.identify.geometry.config import nominal_chain, read_calibration
from stribeck.identify.geometry.identifiability import find_dependent
from stribeck.identify.geometry.model import GEOMETRY, KinematicModel, candidate_terms
from stribeck.identify.geometry.robust_fit import PointData

IRB120 = DATA / "irb120"
MARKERS = ("SMR_1", "SMR_2", "SMR_3")
TOOL = np.array([[0.0, 0.01, 0.108], [0.075, 0.1, 0.2], [0.15, 0.01, 0.109]])
TRACKER = product(elementary("x", 2.1), elementary("y", 0.4), elementary("rz", 2.0), elementary("rx", 0.1))


@cache
def irb120():
    """The nominal chain of an IRB 120."""
    robot = read_robot("irb120")
    return nominal_chain(robot, read_calibration(robot), [])


@dataclass(frozen=True)
class TrueArm:
    """An arm that differs from nominal in identifiable parameters."""

    model: KinematicModel
    values: np.ndarray

    def measure(self, poses, seed, noise=0.0):
        """Poses all over the joint space, measured with normal noise [m]."""
        rng = np.random.default_rng(seed)
        positions = rng.uniform(-1.9, 1.9, (poses, len(self.model.chain.names)))
        points = self.model.predict(positions, self.values)
        return PointData(positions, points + noise * rng.normal(size=points.shape), np.arange(poses))


def true_arm(seed=0, markers=3, groups=(), length=1e-3, angle=2e-3):
    """An IRB 120 with errors of so many m and rad, and of other groups than the geometry."""
    chain = irb120()
    model = KinematicModel(chain, TRACKER, candidate_terms(chain), MARKERS[:markers]).keep(
        (*GEOMETRY, *groups)
    )
    rng = np.random.default_rng(seed)
    scale = np.where(np.array(model.units) == "m", length, angle)
    values = np.zeros(len(model.names))
    values[-3 * markers :] = TOOL[:markers].ravel()
    told, _ = find_dependent(model, values, rng.uniform(-1.9, 1.9, (100, 6)))
    told = [p for p in told if model.groups[p] not in ("marker", "base")]
    values[told] += (scale * rng.normal(size=len(values)))[told]
    return TrueArm(model, values)


def write_data(folder, data, markers=MARKERS):
    """Files of poses under the names of the configuration of the IRB 120."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savetxt(folder / "measured_joints.txt", np.rad2deg(data.positions))
    for k, marker in enumerate(markers):
        np.savetxt(folder / f"measured_{marker}.txt", 1e3 * data.points[:, k])
    np.savetxt(folder / "measured_base_1.txt", np.tile([2500.0, 500.0, -500.0], (len(data), 1)))
    return folder
