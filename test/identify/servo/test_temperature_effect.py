"""Friction and resistance by temperature are found where the recordings vary it, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import published
from recovery import estimate_at_points, refit
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import snapshot
from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.task import task_for
from stribeck.model.control_laws import ServoCommand
from stribeck.model.law import LAWS
from stribeck.model.log import Series, Setup
from stribeck.model.step import PlantState, batch_for, plant_of, simulate, step
from stribeck.model.trajectories import trajectory_named
from virtual import Encoder, record

XL330 = load_actuator("xl330")
LAW = LAWS["m1"]
TRUTH = {"q_offset": 0.0, **published("xl330", "m1"), "friction_base": 0.04, "friction_viscous": 0.012}
FRICTION_FALLS, RESISTANCE_GROWS = 0.012, 0.0039
PLAYS = [
    (Setup(0.2, 0.1, 0.02, 5.0, kp), trajectory_named(name))
    for kp in (150.0, 400.0)
    for name in ("sin_time_square", "sin_sin", "lift_and_drop")
]


@pytest.fixture(scope="module")
def recorded():
    """Runs one after the other, the servo warming up from 25 to 49 °C, simulated with values changed step by step."""
    rng = np.random.default_rng(0)
    logs = record(XL330, LAW, TRUTH, PLAYS, Encoder(0.0), rng)
    batch = batch_for(logs, 0.005, "exponential")
    rise = 25.0 + 4.0 * (np.arange(len(logs)) + batch.time[:, None] / 6.0)
    plant = plant_of(batch, XL330, LAW)
    state = PlantState(batch.position[0], batch.velocity[0], XL330.control.first_state(batch.goal[0]))
    positions = []
    for k, warm in enumerate(rise - 37.0):
        positions.append(state.position)
        fallen = {n: TRUTH[n] * np.exp(-FRICTION_FALLS * warm) for n in ("friction_base", "friction_viscous")}
        values = {**TRUTH, **fallen, "R": TRUTH["R"] * (1.0 + RESISTANCE_GROWS * warm)}
        command = ServoCommand(batch.goal[k], batch.torque_enable[k], batch.supply_voltage[k])
        state = step(plant, values, state, command, batch.dt)
    step_size = XL330.resolution
    noisy = np.array(positions) + 0.5 * step_size * rng.standard_normal(batch.position.shape)
    measured = np.round(noisy / step_size) * step_size
    return [
        replace(
            log,
            position=Series(log.position.time, measured[:, r], held=False),
            temperature=Series(log.position.time, np.round(rise[:, r]), held=False),
        )
        for r, log in enumerate(logs)
    ]


def task(logs, **fixed):
    """A fit of M1 with the effect; k_t is known, because M1 leaves k_t, R and viscous friction open."""
    actuator = XL330.with_effects(["temperature"])
    settings = FitSettings()
    return task_for(split_runs(logs), actuator, LAW, settings, fixed={"kt": TRUTH["kt"], **fixed})


def preliminary(fit):
    """The result of a search that has seen one point."""
    incumbent = Incumbent(1, lambda: 1)
    incumbent.offer(np.full((1, len(fit.parameters.free)), 0.4), np.ones(1))
    return snapshot(fit, incumbent, 0.0)


@pytest.mark.slow
def test_coefficients_of_friction_and_resistance_come_back_from_a_servo_that_warms_up(recorded):
    """Refitted from none, both are within their intervals, which are narrower than a tenth of the value."""
    fit = task(recorded)
    rollout = fit.rollout()
    known = fit.parameters.with_values({**fit.parameters.values(), **TRUTH})
    measured = rollout.batch.position[None]
    points = refit(rollout, known.to_unit(known.vector()), measured, iterations=16)
    found = estimate_at_points(rollout, points, measured)[0].estimates
    for name, true in (
        ("friction_per_kelvin", FRICTION_FALLS),
        ("resistance_per_kelvin", RESISTANCE_GROWS),
    ):
        lower, upper = found[name].interval
        assert lower <= true <= upper
        assert upper - lower < 0.1 * true
    assert fit.parameters["reference_temperature"].value == pytest.approx(37.0, abs=0.1)


def test_files_of_the_effect_predict_the_motions_again(recorded, tmp_path):
    """Coefficients and reference are in the file; a simulation in numpy has the error of the result."""
    result = preliminary(task(recorded[:2]))
    write_drive(tmp_path / "m1.json", fitted_drive(result))
    read = read_drive(tmp_path / "m1.json")
    assert read.temperature == result.parameters["reference_temperature"].value
    batch = batch_for(recorded[:2], 0.005, "exponential")
    motion = simulate(batch, read.actuator, read.law, read.values)
    assert np.mean(batch.mean_absolute_errors(motion.position)) == pytest.approx(result.train.mean, rel=1e-9)


def test_a_servo_at_constant_temperature_determines_no_coefficient(recorded):
    """Both stay 0 and are "not determined", with the temperatures."""
    same = [
        replace(log, temperature=replace(log.temperature, value=np.full(len(log.temperature.time), 31.0)))
        for log in recorded[:2]
    ]
    found = preliminary(task(same)).estimates
    for name in ("friction_per_kelvin", "resistance_per_kelvin"):
        assert (found[name].value, found[name].status) == (0.0, "not determined")
        assert found[name].reason == "All recordings are at 31 to 31 °C"
