"""What poses can tell: the number of parameters that theory says, and expressions that hold."""

import numpy as np
import pytest

from simulated_arms import MARKERS, TOOL, irb120
from stribeck.identify.common.independence import dependence, independent_columns
from stribeck.identify.geometry.chain import SerialChain, dh_chain
from stribeck.identify.geometry.identifiability import find_dependent
from stribeck.identify.geometry.model import GEOMETRY, KinematicModel, candidate_terms

SCARA = dh_chain([(0, 0.3, 0.25, 0), (0, 0, 0.2, np.pi), (0, 0.1, 0, 0), (0, 0.05, 0, 0)], "abcd")


def geometry(chain, markers):
    model = KinematicModel(chain, np.eye(4), candidate_terms(chain), MARKERS[:markers]).keep(GEOMETRY)
    return model, np.concatenate([np.zeros(len(model.terms)), TOOL[:markers].ravel()])


@pytest.mark.parametrize(("markers", "number"), [(1, 27), (2, 30), (3, 33)])
def test_six_revolute_joints_have_four_parameters_each(markers, number):
    """4R + 6 constants with a tool frame; three points have nine coordinates in place of its six."""
    model, values = geometry(irb120(), markers)
    told, dependent = find_dependent(model, values, np.random.default_rng(0).uniform(-2, 2, (60, 6)))
    assert len(told) == number
    assert {found.because for found in dependent} == {"geometry"}


def test_a_prismatic_joint_has_two_parameters():
    """4R + 2P + 6 − 6 + 9 for a SCARA arm with three markers."""
    chain = SerialChain(SCARA.names, SCARA.placements, SCARA.flange, (False, False, True, False))
    model, values = geometry(chain, 3)
    told, _ = find_dependent(model, values, np.random.default_rng(0).uniform(-2, 2, (60, 4)))
    assert len(told) == 4 * 3 + 2 + 9


def test_expressions_hold():
    """A dependent parameter moves the points as the others do that its expression names."""
    model, values = geometry(irb120(), 3)
    positions = np.random.default_rng(1).uniform(-2, 2, (20, 6))
    _, dependent = find_dependent(model, values, positions)
    _, jacobian = model.linearise(positions, values)
    for found in dependent:
        others = sum(value * jacobian[:, :, model.names.index(name)] for name, value in found.equals.items())
        np.testing.assert_allclose(jacobian[:, :, model.names.index(found.name)], others, atol=1e-6)
    assert "joint_1.z = +1 base.z" in [str(found) for found in dependent]


def test_a_joint_that_stands_still_is_named():
    """With joint 4 at rest, its offset cannot be told from the rest of the arm."""
    model, values = geometry(irb120(), 3)
    positions = np.random.default_rng(2).uniform(-2, 2, (60, 6))
    positions[:, 3] = 0.4
    _, dependent = find_dependent(model, values, positions)
    blamed = [found for found in dependent if found.because == "poses"]
    assert len(blamed) == 4  # the axis of joint 4
    assert any("joint_4" in str(found) for found in blamed)


def test_columns_that_stand_first_are_kept():
    """A sum of two earlier columns is dependent with coefficients one and one."""
    matrix = np.random.default_rng(3).normal(size=(10, 3))
    matrix = np.column_stack([matrix[:, :2], matrix[:, 0] + 1e3 * matrix[:, 1], matrix[:, 2], np.zeros(10)])
    kept = independent_columns(matrix)
    assert kept == [0, 1, 3]
    found = dependence(matrix, kept, 2)
    assert found == pytest.approx({0: 1.0, 1: 1e3})
