"""Exported files in Newton itself: its parser of USD and its solver, with Isaac Lab's own kernels, on a CPU."""

import numpy as np
import pytest

import bam_kernels
import newton_drive
from bam_made import servo_of, written
from helpers import XL330, needs_xl330
from stribeck.evaluate.assessment import Stepping
from stribeck.exports.projection import plain
from stribeck.exports.registry import FORMATS
from stribeck.exports.runs import batch_of_source
from stribeck.exports.task import ExportTask, JointServo
from stribeck.model.bench import Pendulum, gravity_torque
from stribeck.model.joint import Servo
from stribeck.model.step import batch_for
from stribeck.recordings.sources import read_recordings

pytest.importorskip(
    "newton", reason="Newton is not installed: pip install 'newton[sim]' newton-usd-schemas usd-core"
)
pytestmark = [
    pytest.mark.skipif(
        bam_kernels.ISAACLAB is None, reason="no checkout of Isaac Lab: set STRIBECK_ISAACLAB"
    ),
    needs_xl330,
    pytest.mark.filterwarnings("ignore:SolverMuJoCo is converting"),  # joints to the world itself
]

STEP = 0.005
"""Of the drive [s]."""


MEAN, LARGEST = {"m1": 0.01, "m2": 0.01, "m3": 0.1, "m4": 0.15, "m5": 0.25}, 3.0
"""Differences with Isaac Lab's friction constraint [mrad]: it yields in proportion to the friction, which grows with the load in M3 to M5."""


def differences(folder, law, rigid=False):
    """Differences [mrad] (T, R) from the kernels written down, over the runs of an XL330, and which samples are before torque is switched off."""
    source = servo_of(law)
    _, runs = batch_of_source(source, read_recordings(XL330, arm_mass=0.0), Stepping(STEP))
    grid, files = batch_for(runs.logs, STEP, "semi-implicit"), []
    for r, log in enumerate(runs.logs):
        robot, output = folder / f"robot{r}.usda", folder / f"servo{r}.usda"
        bench = Pendulum(log.setup.mass, log.setup.length, log.setup.arm_mass)
        robot.write_text(newton_drive.robot_text(bench, source.values["q_offset"]))
        held = plain(source, FORMATS["usd-bam"])
        servo = Servo(held, log.setup.kp, supply_voltage=log.setup.supply_voltage)
        task = ExportTask((JointServo("elbow", servo),), output, robot)
        output.write_text(FORMATS["usd-bam"].write(task).files[output])
        files.append(output)
    start = np.stack([runs.position[0], runs.velocity[0]])
    external = gravity_torque(grid.pendulum, start[0], source.values["q_offset"])
    theirs = newton_drive.motion(bam_kernels.ISAACLAB, files, grid.goal, start, external, STEP, rigid)
    ours = bam_kernels.motion(written(folder, source), runs, STEP, source.values["q_offset"], None)
    on = np.cumprod(grid.torque_enable >= 0.5, axis=0).astype(bool) & (grid.weight > 0.0)
    assert np.mean(on) > 0.8
    return 1e3 * np.abs(theirs - ours), on


@pytest.mark.parametrize("law", MEAN)
def test_a_usd_file_moves_in_newton_as_its_law(tmp_path, law):
    """Over the 12 runs of an XL330, until torque is switched off."""
    apart, on = differences(tmp_path, law)
    assert apart[on].mean() < MEAN[law]
    assert apart[on].max() < LARGEST


def test_what_differs_is_the_soft_friction_of_the_solver(tmp_path):
    """With friction that does not yield M5, which differs most, is nearer."""
    soft, hard = (differences(tmp_path, "m5", rigid) for rigid in (False, True))
    print(
        "soft",
        soft[0][soft[1]].mean(),
        soft[0][soft[1]].max(),
        "rigid",
        hard[0][hard[1]].mean(),
        hard[0][hard[1]].max(),
    )
    assert hard[0][hard[1]].mean() < 0.5 * soft[0][soft[1]].mean()
