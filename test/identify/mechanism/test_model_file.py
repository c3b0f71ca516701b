from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechanisms import BLOCK, changed, mechanism
from stribeck.errors import ConfigError
from stribeck.files.folders import included_names
from stribeck.identify.mechanism.affine import affine
from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.mechanism import Regularization
from stribeck.identify.mechanism.model_file import model_of, read_model


@pytest.mark.slow
@pytest.mark.parametrize("name", included_names("mechanisms"))
def test_models_that_come_along_are_valid_and_closed(name):
    """Every file is read, and its joints meet in the zero pose."""
    at = read_model(name).mechanism
    with jax.enable_x64():
        layout = MultibodyDynamics(at).layout
        physical = at.physical(at.values())
        pose = layout.pose(physical, layout.zero_pose(physical))
        np.testing.assert_allclose(np.array(layout.deviation(pose)), 0.0, atol=1e-15)
        np.testing.assert_allclose(np.array(layout.coordinates(pose)), 0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("text", "constant", "row"),
    [
        (0.5, 0.5, [0, 0]),
        ("a", 0, [1, 0]),
        ("-b", 0, [0, -1]),
        ("0.1 - 0.5 b + a", 0.1, [1, -0.5]),
        ("2e-3*a", 0, [2e-3, 0]),
    ],
)
def test_numbers_are_affine_in_parameters(text, constant, row):
    """Constants and coefficients, by hand."""
    found = affine(text, ("a", "b"), "here")
    assert found[0] == pytest.approx(constant)
    np.testing.assert_allclose(found[1], row)


def wrong(**sections):
    return model_of(changed(BLOCK, **sections), Path("test.yaml"))


BODY = BLOCK["bodies"]["block"]
HINGE = {"kind": "revolute", "parent": "world", "child": "block", "point": [0, 0, 0], "axis": [0, 0, 1]}
WAVE = {"order": 3, "cos": 0.1, "sin": 0}


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"bodies": {"block": BODY | {"mass": -1.0}}}, "mass must be positive"),
        ({"bodies": {"block": BODY | {"inertia": {"xx": 0.01, "yy": 0.01, "zz": 0.05}}}}, "at most the sum"),
        ({"bodies": {"block": BODY | {"com": [100.0, 0, 500.0]}}}, "millimetres"),
        ({"bodies": {"block": BODY | {"inertia": {"xx": 100.0, "yy": 100.0, "zz": 100.0}}}}, "gyration"),
        ({"bodies": {"block": BODY, "loose": BODY}}, "no joints connect loose to the world"),
        ({"bodies": {"block": BODY | {"mass": "m9"}}}, "unknown parameter 'm9'"),
        ({"bodies": {"block": BODY | {"mass": "2 ** 3"}}}, "neither a number nor a sum"),
        (
            {"joints": {"slide": BLOCK["joints"]["slide"] | {"kind": "screw"}}},
            "expected fixed, free, prismatic or revolute, found 'screw'",
        ),
        ({"joints": {"slide": BLOCK["joints"]["slide"] | {"axis": [0, 0, 0]}}}, "axis must not be zero"),
        ({"joints": {"slide": BLOCK["joints"]["slide"] | {"coulomb": -1.0}}}, "must not be negative"),
        ({"joints": {"slide": BLOCK["joints"]["slide"] | {"ripple": [WAVE]}}}, "only a revolute joint"),
        ({"joints": {"slide": HINGE | {"ripple": [WAVE | {"order": 1.5}]}}}, "whole number"),
        ({"joints": {"slide": HINGE | {"ripple": WAVE}}}, "expected a list"),
        ({"joints": {"slide": HINGE | {"ripple": [{"order": 3}]}}}, "cos"),
        ({"sensors": {"place": {"joint": "nowhere"}}}, "unknown 'nowhere'"),
        ({"regularization": {"compliance": 0.0}}, "compliance must be positive"),
        ({"regularization": {"damping": 0.0}}, "damping must be positive"),
        ({"wheels": 4}, "unknown key 'wheels'"),
        ({"data": {"time": "t", "sensors": {"place": {"column": "x", "unit": "deg"}}}}, "unknown unit 'deg'"),
    ],
)
def test_what_no_mechanism_is_gives_one_clear_line(sections, said):
    """The message names the place and what is wrong."""
    with pytest.raises(ConfigError, match=r"test\.yaml") as error:
        wrong(**sections)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_names_are_answered_with_those_that_exist():
    """The message lists the mechanisms that come along."""
    with pytest.raises(ConfigError, match="double_pendulum, four_bar, furuta"):
        read_model("nothing")


@pytest.mark.slow
def test_chain_of_a_urdf_swings_like_pinocchio_says(tmp_path):
    """Joint accelerations of a falling chain of three links, against Pinocchio's forward dynamics."""
    import pinocchio as pin

    from urdf_mechanism import mechanism_of_urdf

    link = (
        '<link name="l{0}"><inertial><origin xyz="0.02 0.01 -0.1" rpy="0.1 0.2 0.3"/><mass value="0.7"/>'
        '<inertia ixx="0.003" ixy="0.0002" ixz="0" iyy="0.004" iyz="0.0001" izz="0.002"/></inertial></link>'
    )
    joint = (
        '<joint name="j{1}" type="{2}"><parent link="l{0}"/><child link="l{1}"/><origin xyz="0.03 0 -0.2" rpy="0.4 0 0.2"/>'
        '<axis xyz="{3}"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>'
    )
    text = '<robot name="r"><link name="l0"/>' + link.format(1) + link.format(2) + link.format(3)
    text += (
        joint.format(0, 1, "revolute", "1 0 0")
        + joint.format(1, 2, "revolute", "0 1 0")
        + joint.format(2, 3, "prismatic", "0 0 1")
    )
    path = tmp_path / "r.urdf"
    path.write_text(text + "</robot>")
    model = pin.buildModelFromUrdf(str(path))
    expected = pin.aba(model, model.createData(), np.zeros(3), np.zeros(3), np.zeros(3))
    at = mechanism_of_urdf(
        path, Regularization(compliance=1e-13)
    )  # softer joints would have to be loaded first
    with jax.enable_x64():
        dynamics, h = MultibodyDynamics(at), 1e-3
        physical = at.physical(at.values())
        start = BodyState(dynamics.layout.zero_pose(physical), jnp.zeros((3, 6)))
        state = dynamics.step(physical, start, jnp.zeros(0), h)
        found = jnp.stack(dynamics.layout.rates(dynamics.layout.pose(physical, state.q), state.v)[1]) / h
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_mechanism_helper_reads_the_block():
    """The description that tests share is valid."""
    assert mechanism(BLOCK).joints[0].kind == "prismatic"
