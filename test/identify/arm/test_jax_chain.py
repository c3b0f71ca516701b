"""Regressor and torques in JAX are Pinocchio's."""

from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from small_arm import URDF
from stribeck.files.robots import example_robots
from stribeck.identify.arm.jax_chain import chain_of, motion, regressor, torques
from stribeck.identify.arm.model import ArmModel, load_arm


def ours(arm: ArmModel, *states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chain = chain_of(arm)
    with jax.enable_x64(True):
        moves = jax.jit(partial(motion, chain))(*(state.T for state in states))
        found = jax.jit(partial(regressor, chain))(moves), torques(chain, moves, arm.inertials)
    return np.moveaxis(np.asarray(found[0]), -1, 0), np.asarray(found[1]).T


def check(arm: ArmModel) -> None:
    rng = np.random.default_rng(0)
    states = [rng.normal(size=(20, len(arm))) for _ in range(3)]
    found, torque = ours(arm, *states)
    np.testing.assert_allclose(found, arm.regressor(*states), atol=1e-12)
    np.testing.assert_allclose(torque, arm.inverse_dynamics(*states), atol=1e-12)


@pytest.mark.slow
def test_regressor_of_turning_and_sliding_joints_is_pinocchios(tmp_path: Path) -> None:
    """Also in another order of the joints than the URDF's."""
    (tmp_path / "small.urdf").write_text(URDF)
    check(load_arm(tmp_path / "small.urdf", ["slide", "shoulder", "elbow"]))


@pytest.mark.slow
def test_regressor_of_seven_joints_is_pinocchios() -> None:
    """A real arm, its fingers locked."""
    places = example_robots("panda.urdf")
    if not places:
        pytest.skip("example-robot-data is not installed")
    check(load_arm(places[0], [f"panda_joint{k}" for k in range(1, 8)]))


def test_regressor_of_a_tree_with_continuous_joints_is_pinocchios(tmp_path: Path) -> None:
    """Two branches from one link: links of one do not load the joints of the other."""
    text = URDF.replace('<parent link="lower"/>', '<parent link="upper"/>').replace(
        'name="elbow" type="revolute"', 'name="elbow" type="continuous"'
    )
    (tmp_path / "tree.urdf").write_text(text)
    check(load_arm(tmp_path / "tree.urdf"))
