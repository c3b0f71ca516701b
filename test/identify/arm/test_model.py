"""Regressor, base parameters, and URDFs that cannot be used."""

import numpy as np
import pytest

from moving_arms import JOINTS, arm, motion, urdf
from stribeck.errors import ConfigError
from stribeck.identify.arm.base_parameters import base_parameters, structural_base_parameters
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.urdf import urdf_with_inertials


@pytest.fixture
def model(tmp_path):
    return arm(tmp_path)


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
def test_torques_are_the_regressor_times_the_inertials(tmp_path, kind):
    """Newton-Euler and regressor agree, for joints that turn, turn without end, or slide."""
    model = load_arm(urdf(tmp_path, kind=kind), JOINTS)
    _, *states = motion(0.2)
    expected = model.inverse_dynamics(*states)
    assert np.allclose(model.regressor(*states) @ model.inertials, expected, atol=1e-10)
    assert np.abs(expected).max() > 1.0


def test_gravity_by_hand(tmp_path):
    """A stretched arm at rest: the elbow carries its link and the tool at their levers."""
    model = arm(tmp_path)
    still = np.zeros((1, 3))
    expected = -9.81 * (2.0 * 0.1 + 0.3 * (0.2 + 0.02))
    assert model.inverse_dynamics(still, still, still)[0, 2] == pytest.approx(expected)


def test_joints_come_in_the_order_of_the_data(tmp_path):
    """Arrays follow the names that were given, not the URDF."""
    straight, turned = arm(tmp_path), load_arm(urdf(tmp_path), JOINTS[::-1])
    _, q, v, a = motion(0.1)
    flipped = turned.regressor(q[:, ::-1], v[:, ::-1], a[:, ::-1]) @ turned.inertials
    assert np.allclose(flipped[:, ::-1], straight.inverse_dynamics(q, v, a))
    assert turned.parameter_names[0] == "m_elbow"


def test_joints_that_are_left_out_are_locked(tmp_path):
    """Their links then move with the one before."""
    model = load_arm(urdf(tmp_path), JOINTS[:2])
    assert model.inertials[10] == pytest.approx(4.0 + 2.0 + 0.3)


def test_base_parameters_say_all_that_torques_tell(model):
    """Torques from base parameters equal those from all; their number is the known one."""
    base = structural_base_parameters(model)
    assert len(base) == 15
    _, *states = motion(0.2, seed=3)
    regressor = model.regressor(*states)
    assert np.allclose(base.reduce(regressor) @ base.values(model.inertials), regressor @ model.inertials)
    assert "m_base" in base.unidentifiable
    assert np.isfinite(base.condition)


def test_expressions_are_the_values(model):
    """Each printed combination, evaluated with the inertials, is the base parameter."""
    base = structural_base_parameters(model)
    known = dict(zip(model.parameter_names, model.inertials, strict=True))
    for text, value in zip(base.expressions(), base.values(model.inertials), strict=True):
        assert eval(text, {}, known) == pytest.approx(value, rel=1e-5, abs=1e-6)  # noqa: S307


def test_dependent_columns_are_left_to_the_first():
    """A column that is a sum of earlier ones, or zero, is none of the base."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50))
    base = base_parameters(np.stack([a, np.zeros(50), b, 2 * a - b], axis=1), ["a", "nil", "b", "sum"])
    assert base.chosen == (0, 2)
    assert np.allclose(base.projection, [[1, 0, 0, 2], [0, 0, 1, -1]])
    assert base.expressions() == ("a + 2*sum", "b - sum")
    assert base.unidentifiable == ("nil",)


def test_a_new_urdf_moves_as_the_identified_arm(model, tmp_path):
    """Inertials that go into a URDF come out of it, those of fixed links counted once."""
    changed = model.inertials * np.linspace(0.9, 1.1, len(model.inertials))
    path = tmp_path / "new.urdf"
    path.write_text(urdf_with_inertials(model.path, model.joints, changed))
    assert np.allclose(load_arm(path, JOINTS).inertials, changed, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "joints", "said"),
    [
        ({"mass": 0.0}, JOINTS[:3], None),
        ({"kind": "fixed"}, (), "all joints are fixed"),
        ({}, ("base", "wrist"), "no movable joint 'wrist'; valid: base, shoulder, elbow"),
        ({"more": '<mimic joint="elbow"/>'}, ("base", "elbow"), "base follows another one"),
    ],
)
def test_urdfs_that_cannot_be_used(tmp_path, change, joints, said):
    """One line says what was found and what to do."""
    path = urdf(tmp_path, **change)
    if said is None:
        path.write_text(path.read_text().replace('mass value="0.3"', 'mass value="0"'))
        said = "no mass"
    with pytest.raises(ConfigError, match=said) as caught:
        load_arm(path, joints)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"), [("<robot", "is not a URDF"), ("<sdf/>", "expected <robot>"), (None, "no such file")]
)
def test_files_that_are_no_urdf(tmp_path, content, said):
    path = tmp_path / "arm.urdf"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said):
        load_arm(path)
