"""`stribeck identify arm --bayes --output`: the posterior of an arm as files of robots, from half a second of motion."""

import csv
import json

import numpy as np
import pytest

from helpers import DATA
from stribeck.cli.identify.bayes.arm_files import DRAWS
from stribeck.cli.main import main
from stribeck.files.drives import read_drives
from stribeck.files.robots import read_robot
from stribeck.identify.arm.config import identification_config
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import INERTIALS, load_arm
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.recordings import read_arm_recordings
from stribeck.identify.arm.regressor import design, machine_of
from stribeck.identify.arm.residuals import scores
from stribeck.identify.posterior.arm import QUANTITIES
from stribeck.live.parameters import CompensationParameters
from stribeck.live.setup import compensated_joints, compensator_of, learning_of

TX40 = DATA / "tx40"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),  # sampling takes minutes of processor time
    pytest.mark.skipif(not TX40.is_dir(), reason="recordings of the TX40 are not here"),
]

SECONDS = 0.5


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The folder of results from the first half second, and what ``--json`` says."""
    folder = tmp_path_factory.mktemp("tx40")
    words = ["identify", "arm", "--bayes", TX40, "--machine", "tx40", "--seconds", SECONDS, "--draws", "300"]
    outputs = ["--output", folder / "out", "--json", folder / "s.json", "--quiet"]
    assert main([str(word) for word in (*words, *outputs)]) == 0
    return folder / "out", json.loads((folder / "s.json").read_text())


@pytest.fixture(scope="module")
def rest():
    """Machine, protocol, and the motion after the half second."""
    robot = read_robot("tx40")
    config = identification_config(robot)
    arm = load_arm(robot.find_urdf([TX40]), robot.joints)
    machine = machine_of(arm.joints, arm, config.couplings)
    (run,) = read_arm_recordings([TX40], config.recording, machine.joints, robot.units)
    cut = int(np.searchsorted(run.time, run.time[0] + SECONDS))
    return machine, config.protocol, motion_of(run.between(cut, len(run.time)), config.protocol)


def predicted(urdf, file, rest):
    """Torques (M, n) of the links in a URDF and the friction in a file of drives."""
    machine, protocol, motion = rest
    drives = read_drives(file)
    values = dict(zip(machine.arm.parameter_names, load_arm(urdf, machine.joints).inertials, strict=True))
    for joint, drive in drives.joints.items():
        values |= {f"{name}_{joint}": drive.values[name] for name in QUANTITIES[1:]}
        values[f"Ia_{joint}"] = drive.values["armature"]
    of_couplings = tuple(f"_{name}" for name in machine.couplings)
    others = {
        name: one.value for name, one in drives.machine.estimates.items() if name.endswith(of_couplings)
    }
    values |= others
    designed = design(machine, motion.states, protocol.rest)
    return designed.columns @ np.array([values.get(name, 0.0) for name in designed.names])


def test_files_predict_what_the_posterior_predicts(result, rest):
    """Links of the URDF and friction of the drives give the error of torque that the command reports, to rounding."""
    folder, summary = result
    found = scores([rest[2]], [predicted(folder / "tx40.urdf", folder / "tx40.json", rest)])["moving"]["all"]
    assert found == pytest.approx(summary["posterior"][-1], rel=1e-6)


def test_mean_and_draws_are_consistent_bodies(result, rest):
    """Pseudo-inertias are positive definite, of the mean and of every draw; draws spread as their intervals say."""
    folder, _ = result
    urdfs = [folder / "tx40.urdf", *sorted((folder / "draws").glob("*.urdf"))]
    assert len(urdfs) == 1 + DRAWS
    for urdf in urdfs:
        inertials = load_arm(urdf, rest[0].joints).inertials.reshape(-1, INERTIALS)
        assert np.all(consistency(inertials) > 0.0), urdf.name
    mean = read_drives(folder / "tx40.json")
    drawn = [read_drives(path) for path in sorted((folder / "draws").glob("*.json"))]
    for joint, drive in mean.joints.items():
        lower, upper = drive.stated["friction_base"].interval
        values = np.array([one.joints[joint].values["friction_base"] for one in drawn])
        assert np.mean((values >= lower) & (values <= upper)) >= 0.8
        assert drive.correlation.names == QUANTITIES


def test_the_band_of_the_torque_holds_the_mean(result):
    """A table of torques with the ends of a band about the mean, of the motion that was predicted."""
    folder, _ = result
    with (folder / "torque.csv").open() as file:
        rows = list(csv.DictReader(file))
    joints = read_drives(folder / "tx40.json").joints
    for joint in joints:
        mean, lower, upper = (
            np.array([float(row[f"{joint}_{name}"]) for row in rows]) for name in ("mean", "lower", "upper")
        )
        assert np.all(lower < upper)
        assert np.mean((lower <= mean) & (mean <= upper)) > 0.99


def test_the_compensation_node_takes_them(result):
    """Parameters of the node with the URDF of the mean, from which it learns."""
    folder, _ = result
    parameters = CompensationParameters.read(folder / "compensation.yaml", "compensation")
    joints = compensated_joints(parameters)
    learning = learning_of(parameters, joints)
    assert learning.dynamics is not None
    assert compensator_of(parameters, joints, learning.dynamics).names == tuple(parameters.joints)
    assert read_drives(folder / "tx40.json").verdict is not None
