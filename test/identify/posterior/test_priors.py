"""Densities, coordinates and priors of arms."""

from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import integrate

from heavy_arms import SHEET, TABLE, heavy_arm
from helpers import REPOSITORY
from link_tables import ROBOTS, as_yaml, table_of
from stribeck.errors import ConfigError
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import load_arm
from stribeck.identify.posterior.densities import HalfNormal, LogNormal, Normal, TruncatedNormal, Uniform
from stribeck.identify.posterior.knowledge import PRIORS, cad_around, prior_named, read_table
from stribeck.identify.posterior.network import (
    Mechanical,
    inertia_base,
    inertia_regressor,
    link_frames,
    mechanical_of,
    moments,
    to_standard,
)
from stribeck.identify.posterior.prior import CartesianCom

DENSITIES = {
    "uniform": Uniform(np.array(-1.0), np.array(3.0)),
    "soft": Uniform(np.array(0.0), np.array(5.0), soft=True),
    "normal": Normal(np.array(2.0), np.array(0.5)),
    "box": TruncatedNormal(np.array(1.0), np.array(2.0), np.array(0.5), np.array(4.0)),
    "tail": TruncatedNormal(np.array(1.0), np.array(2.0), np.array(0.0)),
    "half": HalfNormal(np.array(2.0)),
    "log": LogNormal(np.array(3.0), np.array(3.0)),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_draws_have_the_moments_of_the_density(name):
    """Mean and variance of draws are those of the density, by quadrature."""
    density = DENSITIES[name]
    grid = np.linspace(-2.0, 60.0, 400_001)
    log = np.asarray(density.log_density(grid), dtype=float)
    support = {
        "uniform": (-1.0, 3.0),
        "box": (0.5, 4.0),
        "tail": (0.0, 60.0),
        "half": (0.0, 60.0),
        "log": (1e-6, 60.0),
    }
    low, high = support.get(name, (-2.0, 60.0))
    weight = np.where((grid >= low) & (grid <= high), np.exp(log), 0.0)
    whole = integrate.trapezoid(weight, grid)
    mean = integrate.trapezoid(weight * grid, grid) / whole
    drawn = density.draw(np.random.default_rng(0), 40_000)
    assert drawn.mean() == pytest.approx(mean, abs=5.0 * drawn.std() / 200.0)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("name", [name for name in DENSITIES if name != "soft"])
def test_coordinates_lead_back_and_their_slope_is_the_jacobian(name):
    """value and coordinate undo each other, and log_jacobian is the log of the derivative."""
    density = DENSITIES[name]
    values = density.draw(np.random.default_rng(1), 50)
    with jax.enable_x64():
        x = density.coordinate(values)
        assert np.asarray(density.value(x)) == pytest.approx(values, rel=1e-9)
        slope = jax.vmap(jax.grad(lambda one: density.value(one).sum()))(x)
        assert np.asarray(density.log_jacobian(x)) == pytest.approx(np.log(slope), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["box", "tail", "half"])
def test_no_coordinate_leaves_the_support(name):
    """Far out, quantities stay inside their bounds, and densities and their slopes stay finite."""
    density = DENSITIES[name]
    low, high = (0.5, 4.0) if name == "box" else (0.0, np.inf)
    x = np.array([-30.0, -9.0, -1.0, 0.0, 1.0, 9.0, 30.0])

    def log(one):
        return density.log_density(density.value(one)) + density.log_jacobian(one)

    with jax.enable_x64():
        values, logs = np.asarray(density.value(x)), np.asarray(log(x))
        slopes = np.asarray(jax.vmap(jax.grad(log))(x))
    assert np.all((values > low) & (values < high))
    assert np.all(np.isfinite(logs))
    assert np.all(np.isfinite(slopes))
    assert logs[0] < logs[2]
    assert logs[-1] < logs[2]


def test_log_normal_has_the_mean_and_deviation_of_the_quantity():
    """Mean and standard deviation are those asked for, not of the logarithm."""
    drawn = LogNormal(np.array(3.0), np.array(1.5)).draw(np.random.default_rng(0), 200_000)
    assert (drawn.mean(), drawn.std()) == pytest.approx((3.0, 1.5), rel=0.02)


def test_inertia_regressor_is_the_diagonal_of_the_mass_matrix():
    """Inertias of axes by the regressor equal Pinocchio's mass matrix plus the motors'."""
    import pinocchio as pin

    arm = heavy_arm()
    rng = np.random.default_rng(0)
    poses, motor = rng.uniform(-3.0, 3.0, (4, 6)), rng.uniform(1.0, 2.0, 6)
    found = inertia_regressor(arm, poses) @ np.concatenate([arm.inertials, motor])
    data = arm.model.createData()
    mass = [np.diag(pin.crba(arm.model, data, pose)) for pose in poses]
    assert found == pytest.approx(np.array(mass) + motor, rel=1e-9)


def test_a_six_joint_arm_has_the_32_base_parameters_of_the_seed():
    """Seed 003 counts 32 base parameters of inertia for its arm."""
    assert len(inertia_base(heavy_arm())) == 32


def test_moments_lead_back_to_the_standard_parameters_of_a_urdf():
    """Mechanical parameters in axes along the links give the URDF's standard parameters again."""
    arm = heavy_arm()
    with jax.enable_x64():
        found = np.asarray(moments(mechanical_of(arm, np.arange(6.0)))) @ to_standard(link_frames(arm)).T
    assert found == pytest.approx(np.concatenate([arm.inertials, np.arange(6.0)]), abs=1e-12)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in PRIORS])
def test_every_draw_of_a_prior_and_every_coordinate_is_a_possible_arm(name):
    """Draws, and any coordinates at all, are physically consistent, with positive inertias."""
    arm = heavy_arm()
    prior = prior_named(name, arm, SHEET, TABLE)
    rng = np.random.default_rng(0)
    with jax.enable_x64():
        x = np.concatenate([prior.draw(rng, 6), 2.0 * rng.standard_normal((20, prior.dimension))])
        links = prior.mechanical(x)
        standard = np.asarray(moments(links)) @ to_standard(link_frames(arm)).T
        log = np.asarray(jax.vmap(prior.log_density)(x))
        slopes = np.asarray(jax.vmap(jax.grad(prior.log_density))(x))
    assert np.all(consistency(standard[:, :60].reshape(-1, 10)) > 0.0)
    assert np.all(inertia_regressor(arm, rng.uniform(-3.0, 3.0, (5, 6))) @ standard.T > 0.0)
    assert np.all(np.isfinite(log))
    assert np.all(np.isfinite(slopes))


@pytest.mark.slow
def test_density_of_an_inertia_counts_the_change_of_coordinates():
    """The log density differs from that of the single parameters by the log determinant of the coordinates' derivative."""
    links = Mechanical(
        np.array([2.0]),
        np.array([[0.1, 0.0, 0.2]]),
        np.array([[0.05, 0.06, 0.07, 0.002, 0.001, 0.0]]),
        np.ones(1),
    )
    prior = cad_around(links)
    assert isinstance(prior.com, CartesianCom)
    with jax.enable_x64():
        rng = np.random.default_rng(2)
        points = prior.draw(rng, 3)

        def free(x):
            m = prior.mechanical(x)
            return jax.numpy.concatenate([m.mass, m.com.ravel(), m.inertia.ravel(), m.motor])

        def single(x):
            m = prior.mechanical(x)
            parts = (
                prior.mass.log_density(m.mass),
                prior.com.centre.log_density(m.com),
                prior.diagonal.log_density(m.inertia[:, :3]),
                prior.off.log_density(m.inertia[:, 3:]),
                prior.motor.log_density(m.motor),
            )
            return sum(part.sum() for part in parts) + jax.numpy.linalg.slogdet(jax.jacfwd(free)(x))[1]

        difference = [float(prior.log_density(x) - single(x)) for x in points]
    assert difference == pytest.approx([difference[0]] * 3, abs=1e-8)


def test_shipped_table_is_that_of_the_robots_it_names():
    """The table of links is made of the URDFs that it says."""
    folder = _example_robots()
    arms = [load_arm(folder / robot.file, robot.joints) for robot in ROBOTS]
    shipped, made = read_table(), table_of(arms)
    assert as_yaml(made, ROBOTS) == as_yaml(shipped, ROBOTS)
    assert len(ROBOTS) >= 6


def test_a_table_scales_with_mass_and_reach():
    """Inertias go with mass times the square of the reach."""
    table = read_table()
    scaled = table.scaled(100.0, 2.0)
    assert scaled.diagonal == pytest.approx(table.diagonal * 400.0)
    assert scaled.radius == pytest.approx(table.radius * 2.0)


def test_unknown_priors_and_damaged_tables_are_refused(tmp_path: Path):
    """One clear line each."""
    with pytest.raises(ConfigError, match="valid: diffuse, informed, empirical, cad"):
        prior_named("vague", heavy_arm(), SHEET)
    path = tmp_path / "table.yaml"
    text = (REPOSITORY / "config" / "priors" / "industrial_arms.yaml").read_text()
    path.write_text(text.replace("total_mass: 1.0", "total_mass: heavy"))
    with pytest.raises(ConfigError, match="total_mass"):
        read_table(path)


def _example_robots() -> Path:
    import pinocchio

    place = Path("share") / "example-robot-data" / "robots"
    for ancestor in Path(pinocchio.__file__).parents:
        if (ancestor / place).is_dir():
            return ancestor / place
    pytest.skip("example-robot-data is not here")
