"""Posteriors of servos, simulated."""

from dataclasses import replace

import numpy as np
import pytest

from stribeck.errors import ConfigError, ParameterFileError
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.identify.posterior.servo import mean_position, sample_servo
from stribeck.identify.posterior.servo_priors import servo_prior
from stribeck.identify.posterior.servo_result import as_json, drawn_drive
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.rollout import Rollout
from stribeck.live.caution import cautious_values
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.log import Setup, batch_of
from stribeck.model.trajectories import trajectory_named
from virtual import Encoder, record

SERVO = load_actuator("xl330")
LAW = law_named("m1")
TRUTH = {
    "kt": 0.36,
    "R": 3.3,
    "armature": 0.0018,
    "q_offset": 0.01,
    "friction_base": 0.012,
    "friction_viscous": 0.004,
}


@pytest.fixture(scope="module")
def known():
    """Draws of a simulated servo, and its runs."""
    plays = [
        (Setup(0.1, 0.1, 0.02, 5.0, kp), trajectory_named(name))
        for kp, name in ((100.0, "sin_sin"), (200.0, "sin_time_square"))
    ]
    logs = record(SERVO, LAW, TRUTH, plays, Encoder(0.0015, 0.0005), np.random.default_rng(0))
    parameters = SERVO.parameters(LAW)
    rollout = Rollout(batch_of([log.resample(0.005) for log in logs]), SERVO, LAW, parameters)
    found = sample_servo(
        rollout, servo_prior(SERVO, LAW, parameters), 0, discrepancy=False, draws=8, thin=20, chains=64
    )
    return found, tuple(logs)


def test_truth_of_a_simulated_servo_lies_within_its_posterior(known):
    """Every true value is within four standard deviations, and friction is known far better than before."""
    found, _ = known
    mean, deviation = found.flat.mean(axis=0), found.flat.std(axis=0)
    truth = np.array([TRUTH[name] for name in found.posterior.names[:-1]])
    assert np.all(np.abs(mean[:-1] - truth) < 4.0 * deviation[:-1] + 1e-4)
    assert deviation[found.posterior.names.index("friction_base")] < 0.002
    errors = mean_position(found, found.posterior.rollout, 5) - found.posterior.rollout.batch.position
    assert np.abs(errors).mean() < 0.002


def test_parameter_file_holds_the_posterior(known, tmp_path):
    """Means, intervals and the runs held out go into the parameter file and come back; JSON names every parameter."""
    found, logs = known
    path = tmp_path / "m1.json"
    write_drive(path, drawn_drive(found, split_runs(logs, validation_kp=200.0), FitSettings()))
    content = read_drive(path)
    assert content.values["friction_base"] == pytest.approx(found.mean["friction_base"])
    assert content.provenance is not None
    assert len(content.provenance.runs.validation) == 1
    assert content.loss.validation < 0.01
    lower, upper = content.intervals["friction_base"]
    assert lower < content.values["friction_base"] < upper
    assert set(as_json(found, logs, 1.0)["parameters"]) == set(found.posterior.names)


def test_cautious_quantile_takes_less_friction(known):
    """At the 2.5 % quantile friction is half an interval's width below, or its upper half; the motor's constants stay."""
    found, logs = known
    content = drawn_drive(found, split_runs(logs), FitSettings())
    lower, upper = content.intervals["friction_viscous"]
    cautious = cautious_values(content, 0.025)
    value = content.values["friction_viscous"]
    assert cautious["friction_viscous"] == pytest.approx(
        max(value - max(0.5 * (upper - lower), upper - value), 0.0)
    )
    assert cautious["kt"] == content.values["kt"]
    assert cautious_values(content, 0.5) == dict(content.values)
    with pytest.raises(ParameterFileError, match="intervals"):
        cautious_values(Drive(SERVO, LAW, TRUTH), 0.1)


@pytest.mark.parametrize("width", [0.1, 0.6, 2.4])
def test_cautious_quantile_of_a_symmetric_interval_is_half_its_width_below(known, width):
    """That is its lower end, or zero where the interval reaches below zero; widths as multiples of the value."""
    found, logs = known
    content = drawn_drive(found, split_runs(logs), FitSettings())
    value = content.values["friction_viscous"]
    lower, upper = value - 0.5 * width * value, value + 0.5 * width * value
    symmetric = replace(content.stated["friction_viscous"], interval=(lower, upper))
    content = replace(content, stated={**content.stated, "friction_viscous": symmetric})
    assert cautious_values(content, 0.025)["friction_viscous"] == pytest.approx(
        max(value - 0.5 * (upper - lower), 0.0)
    )


WITHOUT_PRIOR = (
    "cybergear",
    "dm_j4310",
    "erob80_100",
    "erob80_50",
    "force_axis",
    "sts3215",
    "sts3250",
    "torque_joint",
    "unitree_go1",
)
"""Servos whose files lack stall currents, or stall torques."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in actuator_names() if name not in WITHOUT_PRIOR])
def test_every_servo_with_a_datasheet_has_a_prior(name):
    """Draws of M4's prior are finite, and friction is positive."""
    servo, law = load_actuator(name), law_named("m4")
    parameters = servo.parameters(law)
    prior = servo_prior(servo, law, parameters)
    values = np.asarray(prior.values(prior.draw(np.random.default_rng(0), 50)))
    assert np.all(values[:, parameters.free_names.index("friction_base")] > 0.0)
    assert np.all(np.isfinite(values))


@pytest.mark.parametrize("name", WITHOUT_PRIOR)
def test_a_datasheet_that_lacks_a_figure_is_named(name):
    """One line says which figure is missing."""
    servo, law = load_actuator(name), law_named("m4")
    with pytest.raises(ConfigError, match=f"datasheet of {name}"):
        servo_prior(servo, law, servo.parameters(law))
