"""Real machines: the protocols' figures, and how much better our laws predict."""

import numpy as np
import pytest

from moving_arms import EMPS, TX40, UR10E
from stribeck.files.robots import read_robot
from stribeck.identify.arm.config import identification_config
from stribeck.identify.arm.identify import Identification, standstill
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.recordings import read_arm_recordings
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.arm.residuals import explain

needs_emps = pytest.mark.skipif(not EMPS.is_dir(), reason="the recording of the EMPS is not here")
needs_tx40 = pytest.mark.skipif(not TX40.is_dir(), reason="the recording of the TX40 is not here")
needs_ur10e = pytest.mark.skipif(not UR10E.is_dir(), reason="the recordings of the UR10e are not here")


def identification(name, train, validation=(), part=None):
    """Fits of a machine; ``part`` cuts the training run, what is left validates."""
    robot = read_robot(name)
    config = identification_config(robot)
    path = robot.find_urdf(train)
    machine = machine_of(
        robot.joints, None if path is None else load_arm(path, robot.joints), config.couplings
    )
    read = lambda paths: read_arm_recordings(paths, config.recording, robot.joints, robot.units)  # noqa: E731
    runs, others = read(train), read(validation) if validation else []
    if part is not None:
        end = int(part * len(runs[0].time))
        runs, others = [runs[0].between(0, end)], [runs[0].between(end, len(runs[0].time))]
    return Identification(machine, config, runs, others)


def percent(scored, rows="every_row", part="train"):
    errors = scored.errors[part][rows]
    return [100 * value for value in (*errors["per_joint"], errors["all"])]


@pytest.fixture(scope="module")
def emps():
    return identification("emps", [EMPS])


@needs_emps
def test_emps_reproduces_the_protocol(emps):
    """Symmetric and asymmetric least squares, within 0.05 points, and the four parameters."""
    symmetric, asymmetric = emps.fit("ols"), emps.fit("asymmetric")
    assert percent(symmetric)[-1] == pytest.approx(4.85, abs=0.05)
    assert percent(asymmetric)[-1] == pytest.approx(4.03, abs=0.05)
    values = [
        symmetric.parameters[f"{name}_axis"]
        for name in ("M", "friction_viscous", "friction_base", "torque_offset")
    ]
    assert values == pytest.approx([95.31, 201.8, 20.60, 3.20], rel=2e-3)


@pytest.mark.ci
@needs_emps
def test_emps_with_our_law(emps):
    """A third less error than asymmetric friction; what is left is noise and slow error, no delay, no ripple."""
    full, asymmetric = emps.fit("full"), emps.fit("asymmetric")
    assert percent(full)[-1] < 0.97 * percent(asymmetric)[-1]
    assert percent(full)[-1] < 2.7
    (left,) = explain(full.motions["train"][0], full.predictions["train"][0])
    assert left["delay"] < 0.1
    assert left["ripple"] < 0.15


@needs_emps
def test_emps_has_no_arm(emps):
    assert not emps.applies("consistent")


@pytest.fixture(scope="module")
def tx40():
    return identification("tx40", [TX40])


@needs_tx40
def test_tx40_reproduces_the_protocol(tx40):
    """Ordinary least squares of each joint within 0.1 points."""
    expected = [6.10, 7.05, 7.80, 9.04, 10.55, 9.51, 6.95]
    assert percent(tx40.fit("ols"), "moving") == pytest.approx(expected, abs=0.1)


@pytest.mark.slow
@needs_tx40
def test_tx40_physically_consistent(tx40):
    """At most 5 % worse than least squares, every link possible."""
    ols, consistent = tx40.fit("ols"), tx40.fit("consistent")
    assert percent(consistent, "moving")[-1] < 1.05 * percent(ols, "moving")[-1]
    assert (consistency(consistent.fit.inertials) > 0.0).all()


@needs_tx40
@pytest.mark.slow
def test_tx40_with_our_laws(tx40):
    """Better than least squares by a sixth, possible links, and standstill reported apart."""
    full = tx40.fit("full")
    assert percent(full, "moving")[-1] < 5.8
    assert (consistency(full.fit.inertials) > 0.0).all()
    assert full.fit.choice.delay == pytest.approx(2e-3, abs=1e-3)
    rest = standstill(full.fit, full.motions["train"])["per_joint"]
    assert all(joint["rows"] > 0 and joint["budget"] > 0.0 for joint in rest)


@needs_tx40
@pytest.mark.slow
def test_tx40_predicts_what_it_did_not_see():
    """Fitted to the first three fifths, on the rest."""
    split = identification("tx40", [TX40], part=0.6)
    full, weighted = split.fit("full"), split.fit("weighted")
    assert percent(full, "moving", "validation")[-1] < 8.0
    assert percent(full, "every_row", "validation")[-1] < 10.0
    assert percent(full, "moving", "validation")[-1] < 0.8 * percent(weighted, "moving", "validation")[-1]


@needs_ur10e
@pytest.mark.slow
def test_ur10e_with_our_laws():
    """Trained on one run, and on another with twice the velocities."""
    work = identification("ur10e", [UR10E / "fourier_30s.csv"], [UR10E / "fourier_20s.csv"])
    full, ols = work.fit("full"), work.fit("ols")
    assert percent(ols)[-1] == pytest.approx(4.56, abs=0.1)
    assert percent(full)[-1] < 3.0
    assert percent(full, "moving", "validation")[-1] < 3.5
    assert (consistency(full.fit.inertials) > 0.0).all()


@needs_ur10e
def test_a_prediction_never_reads_the_torque():
    """Torques that are replaced by noise leave the prediction as it is."""
    work = identification("ur10e", [UR10E / "fourier_30s.csv"])
    fit = work.fit("ols").fit
    motion = work.motions()["train"][0]
    before = fit.predict(motion)
    motion.torque[:] = np.random.default_rng(0).normal(size=motion.torque.shape)
    assert np.array_equal(fit.predict(motion), before)
