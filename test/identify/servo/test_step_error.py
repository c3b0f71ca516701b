"""The time step does not show in the parameters: its error is estimated, small, and made smaller where it is not."""

from dataclasses import replace

import numpy as np
import pytest

from recovery import MX106, STEP_12_BITS, Bench, refit, truth_of
from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.refinement import STEP_SHARE
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.task import task_for
from stribeck.identify.servo.uncertainty import estimate_uncertainty
from stribeck.model.law import law_named
from stribeck.model.step import batch_for, simulate
from virtual import Encoder, record

FEW = replace(MX106, masses=(0.5, 1.5), gains=(8.0, 32.0))
XL330 = Bench("xl330", (0.2, 0.49), 0.1, 0.02, (100.0, 400.0, 1600.0, 16383.0), 7.4)
STS3215 = Bench("sts3215", (0.3, 0.8), 0.12, 0.05, (8.0, 32.0, 254.0), 7.4)
STRONG = replace(MX106, gains=(8.0, 32.0, 254.0))


def recorded(bench, law, substeps, integrator, encoder):
    """Recordings of a servo simulated in many steps per sample."""
    truth, actuator = truth_of(bench, law), load_actuator(bench.actuator)
    rng = np.random.default_rng(0)
    plays = list(bench.plays())
    logs = record(
        actuator,
        law_named(law),
        truth.values(),
        plays,
        encoder,
        rng,
        substeps=substeps,
        integrator=integrator,
    )
    return truth, actuator, logs


@pytest.mark.slow
def test_the_estimated_error_of_the_step_is_what_half_the_step_changes():
    """Refitted at 5 and 2.5 ms, parameters differ by 3/4 of the estimate, and by the estimate from the truth."""
    truth, actuator, logs = recorded(FEW, "m1", 8, "exponential", Encoder(0.0))
    law, start = law_named("m1"), truth.to_unit(truth.vector())
    found, widths = {}, truth.upper - truth.lower
    for dt in (0.005, 0.0025):
        batch = batch_for(logs, dt, "exponential")
        rollout = Rollout(batch, actuator, law, truth, dtype="float64")
        found[dt] = refit(rollout, start, batch.position[None], iterations=8)[0]
        if dt == 0.005:
            values = truth.with_vector(truth.from_unit(found[dt])).values()
            residual = simulate(batch, actuator, law, values).position - batch.position
            errors = estimate_uncertainty(rollout, found[dt], residual).step_errors
    estimated = np.array([errors[name] for name in truth.free_names]) / widths
    for actual in (found[0.005] - start, 4.0 / 3.0 * (found[0.005] - found[0.0025])):
        assert np.linalg.norm(actual) > 1e-5
        assert np.linalg.norm(estimated - actual) < 0.3 * np.linalg.norm(actual)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bench", "law"),
    [(XL330, "m6"), (STRONG, "m6"), (STS3215, "m1")],
    ids=["xl330-m6", "mx106-m6", "sts3215-m1"],
)
def test_parameters_come_back_from_motions_in_steps_of_a_twentieth_of_a_millisecond(bench, law):
    """Truth from another integrator at 0.05 ms, gains up to the firmware's maximum, fits at default settings.

    Determined parameters are within 1 % of the truth, or within their intervals; the step's error is below a
    quarter of the half-widths.
    """
    truth, actuator, logs = recorded(bench, law, 100, "semi-implicit", Encoder(STEP_12_BITS, STEP_12_BITS))
    result = identify(task_for(split_runs(logs), actuator, law_named(law), FitSettings()))
    uncertainty = result.uncertainty
    print(f"{actuator.name} {law}: {1e3 * result.settings.dt:g} ms, step share {uncertainty.step_share:.3f}")
    assert uncertainty.step_share <= STEP_SHARE
    for name, one in result.estimates.items():
        true = truth[name].value
        print(f"  {name} {one.value:.6g} true {true:.6g} {one.status} {one.interval}")
        if one.status == "determined":
            inside = one.interval[0] <= true <= one.interval[1]
            assert inside or abs(one.value / true - 1.0) < 0.01, name
