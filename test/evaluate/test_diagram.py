"""Drive/backdrive diagrams: closed forms, the boundary equation, self-locking, asymmetry and offset."""

from __future__ import annotations

import numpy as np
import pytest

from stribeck.evaluate.diagram import LOCKING_RATIO, SPEEDS, Boundaries, boundaries, diagram_curve
from stribeck.files.actuators import load_actuator
from stribeck.model.law import LAWS, FrictionLaw, friction_budget, law_named

MOTOR = np.linspace(0.0, 0.5, 47)
COULOMB = {"friction_base": 0.02, "friction_viscous": 0.01}


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def or_nan(drive: np.ndarray) -> np.ndarray:
    """A drive torque exists only where the motor overcomes its own friction."""
    return np.where(drive > 0.0, drive, np.nan)


@pytest.mark.parametrize("speed", [0.0, 1.0, 2.5])
def test_coulomb_viscous_zone_has_the_width_of_the_friction(speed: float) -> None:
    """M1: drive = tau_m - K_c - K_v v, backdrive = tau_m + K_c + K_v v."""
    edges = boundaries(law_named("m1"), COULOMB, MOTOR, speed)
    friction = 0.02 + 0.01 * speed
    assert_close(edges.drive, or_nan(MOTOR - friction))
    assert_close(edges.backdrive, MOTOR + friction)


@pytest.mark.parametrize("load_friction", [0.05, 0.4, 0.95])
def test_load_dependent_boundaries_match_the_closed_form(load_friction: float) -> None:
    """M3: tau_m - x = K_c + K_l (tau_m + x), and x - tau_m = K_c + K_l (tau_m + x)."""
    p = {**COULOMB, "load_friction_base": load_friction}
    edges = boundaries(law_named("m3"), p, MOTOR)
    assert_close(edges.drive, or_nan(((1 - load_friction) * MOTOR - 0.02) / (1 + load_friction)))
    assert_close(edges.backdrive, ((1 + load_friction) * MOTOR + 0.02) / (1 - load_friction))


@pytest.mark.parametrize("load_friction", [1.0, 1.2])
def test_a_self_locking_joint_is_never_backdriven(load_friction: float) -> None:
    """With K_l >= 1 friction grows at least as fast as the load that would move the joint."""
    edges = boundaries(law_named("m3"), {**COULOMB, "load_friction_base": load_friction}, MOTOR)
    assert np.all(np.isnan(edges.backdrive))


def test_a_worm_gear_can_be_driven_but_not_backdriven() -> None:
    """Directional friction: K_e^s > 1 locks against the load (paper, §III-D), the motor still turns."""
    p = {
        **COULOMB,
        "friction_stribeck": 0.0,
        "load_friction_motor": 0.1,
        "load_friction_external": 0.0,
        "load_friction_motor_stribeck": 0.0,
        "load_friction_external_stribeck": 1.1,
        "dtheta_stribeck": 0.5,
        "alpha": 2.0,
    }
    edges = boundaries(law_named("m5"), p, MOTOR)
    assert np.all(np.isnan(edges.backdrive))
    assert_close(edges.drive, or_nan((0.9 * MOTOR - 0.02) / 2.1))


def test_the_range_decides_what_counts_as_self_locking() -> None:
    """M3 with K_l = 0.9 needs 19 tau_m + 10 K_c: found, as the range ends far beyond it."""
    law, p = law_named("m3"), {**COULOMB, "load_friction_base": 0.9}
    assert_close(boundaries(law, p, [0.1]).backdrive, np.array([2.1]))
    almost = {**COULOMB, "load_friction_base": 1.0 - 0.5 / LOCKING_RATIO}
    assert np.isnan(boundaries(law, almost, [0.1]).backdrive[0])


@pytest.mark.parametrize("actuator", ["xl330", "mx106", "mx64", "xl320", "erob80_50", "erob80_100"])
@pytest.mark.parametrize("law", list(LAWS.values()), ids=list(LAWS))
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_boundaries_satisfy_their_equation(actuator: str, law: FrictionLaw, speed: float) -> None:
    """On both edges, for every published law, the net torque equals the friction budget."""
    p = load_actuator(actuator).published[law.name]
    motor = np.linspace(0.0, 60.0 if actuator.startswith("erob") else 2.0, 101)
    edges = boundaries(law, p, motor, speed)
    assert np.any(np.isfinite(edges.drive))
    assert np.all(np.isfinite(edges.backdrive))
    moved = np.isfinite(edges.drive)
    positive, _ = friction_budget(law, p, motor[moved], -edges.drive[moved], speed)
    _, negative = friction_budget(law, p, motor, -edges.backdrive, -speed)
    assert_close((motor - edges.drive)[moved] - positive, np.zeros(np.sum(moved)))
    assert_close(edges.backdrive - motor - negative, np.zeros(len(motor)))


def state_counts(
    law: FrictionLaw, p: dict[str, float], motor: float, edges: Boundaries, top: float
) -> tuple[int, int]:
    """How many external torques inside the zone move the joint, and how many just outside do not."""
    x = np.linspace(0.0, top, 20001)
    x = x[x != motor]
    budget = friction_budget(law, p, motor, -x, 0.0)[0]
    static = np.abs(motor - x) <= budget
    inside = (x > np.nan_to_num(edges.drive[0], nan=-1.0)) & (x < edges.backdrive[0])
    step = x[1]
    beside = (np.abs(x - edges.drive[0]) < 2 * step) | (np.abs(x - edges.backdrive[0]) < 2 * step)
    return int(np.sum(inside & ~static)), int(np.sum(~inside & beside & static))


@pytest.mark.parametrize("motor", [4.0, 15.0, 40.0, 60.0])
@pytest.mark.parametrize("quad", [(0.0, 0.0), (0.0027, 0.0026), (0.01, 0.001), (0.001, 0.01), (0.03, 0.03)])
def test_quadratic_zone_is_static_inside_and_moves_beside(motor: float, quad: tuple[float, float]) -> None:
    """M6: a brute-force look at every external torque finds the same connected static zone."""
    law = law_named("m6")
    p = dict(load_actuator("erob80_100").published["m6"])
    p["load_friction_motor_quad"], p["load_friction_external_quad"] = quad
    edges = boundaries(law, p, np.array([motor]))
    assert state_counts(law, p, motor, edges, top=300.0) == (0, 0)


def test_static_zone_grows_with_the_torque_of_a_harmonic_drive() -> None:
    """The eRob's friction depends on its load (paper, fig. 3): the zone widens, and rest is stickiest."""
    curve = diagram_curve(
        "m6", law_named("m6"), load_actuator("erob80_100").published["m6"], np.linspace(10.0, 60.0, 51)
    )
    width = curve.backdrive[0] - curve.drive[0]
    assert np.all(np.diff(width) > 0.0)
    assert np.all(curve.backdrive[0] > curve.motor_torque)
    assert np.all(curve.drive[0] < curve.motor_torque)


def test_asymmetric_friction_drives_against_one_budget_and_backdrives_against_the_other() -> None:
    """Drive is positive motion and pays K_c^+; backdrive is negative motion and pays K_c^-."""
    law = law_named("m1").with_terms(asymmetric=True)
    p = {**COULOMB, "friction_base_negative": 0.05, "friction_viscous_negative": 0.03}
    edges = boundaries(law, p, MOTOR, 2.0)
    assert_close(edges.drive, or_nan(MOTOR - 0.04))
    assert_close(edges.backdrive, MOTOR + 0.11)


@pytest.mark.parametrize("offset", [0.1, -0.1])
def test_an_offset_torque_shifts_the_zone(offset: float) -> None:
    """tau_0 adds to the motor; one that outweighs friction alone moves an unloaded joint."""
    law = law_named("m1").with_terms(offset=True)
    edges = boundaries(law, {**COULOMB, "torque_offset": offset}, MOTOR)
    assert_close(edges.drive, or_nan(MOTOR + offset - 0.02))
    assert_close(edges.backdrive, np.maximum(MOTOR + offset + 0.02, 0.0))


def test_a_tie_of_the_torques_does_not_open_the_zone() -> None:
    """Q is zero in the single point |tau_m| = |tau_e|; with an offset the scan may hit just that point."""
    law = law_named("m6").with_terms(offset=True)
    p = dict.fromkeys(law.parameter_names, 0.0) | {"dtheta_stribeck": 1.0, "alpha": 2.0, "torque_offset": 1.0}
    p |= {"load_friction_motor_quad": 4.0, "load_friction_external_quad": 4.0}
    # Balance at x = 4, and the tie at x = 3 on the quarter of the way, where step 500 of the scan lies.
    # Driven above the tie if 4 - x > 4 * 9, never; below it if 4 - x > 4 x^2.
    edges = boundaries(law, p, np.array([3.0]))
    assert_close(edges.drive, np.array([(np.sqrt(65.0) - 1.0) / 8.0]))


def test_no_friction_leaves_no_static_zone() -> None:
    """Without friction drive and backdrive meet where the torques balance, also at zero."""
    p = {"friction_base": 0.0, "friction_viscous": 0.0}
    edges = boundaries(law_named("m1"), p, MOTOR)
    assert_close(edges.drive, or_nan(MOTOR))
    assert_close(edges.backdrive, MOTOR)
    assert_close(boundaries(law_named("m1"), p, [0.0]).backdrive, np.array([0.0]))


def test_a_curve_holds_one_line_for_each_speed() -> None:
    """Rows follow the speeds; viscous friction widens the zone of M1 with each."""
    curve = diagram_curve("m1.json", law_named("m1"), COULOMB, MOTOR)
    assert curve.label == "m1.json"
    assert curve.drive.shape == curve.backdrive.shape == (len(SPEEDS), len(MOTOR))
    np.testing.assert_array_equal(curve.speeds, SPEEDS)
    assert np.all(np.diff(curve.backdrive, axis=0) > 0.0)
    row = boundaries(law_named("m1"), COULOMB, MOTOR, SPEEDS[2])
    np.testing.assert_array_equal(curve.drive[2], row.drive)
