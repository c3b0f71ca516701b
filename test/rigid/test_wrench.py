"""Jacobians by finite differences, and wrenches that come back from the torques they make."""

import numpy as np
import pytest

from cpp_histories import arm
from stribeck.errors import ConfigError
from stribeck.rigid.wrench import wrench_of

POINT = np.array([0.05, -0.1, 0.2])


def place(model, q):
    pose = model.poses(q)[-1]
    return pose[:3, :3] @ POINT + pose[:3, 3], pose[:3, :3]


@pytest.mark.parametrize("count", [1, 3, 7])
def test_the_jacobian_is_the_slope_of_the_pose(count):
    """Position and rotation of a point on the last body of random trees, by central differences."""
    random = np.random.default_rng(count)
    for _ in range(5):
        model, q, step = arm(random, count), random.normal(size=count), 1e-6
        found = model.jacobian(q, POINT)
        for k in range(count):
            change = step * np.eye(count)[k]
            (ahead, turned), (back, before) = place(model, q + change), place(model, q - change)
            rate = (turned - before) / (2.0 * step) @ place(model, q)[1].T
            expected = [*(ahead - back) / (2.0 * step), rate[2, 1], rate[0, 2], rate[1, 0]]
            np.testing.assert_allclose(found[:, k], expected, atol=1e-8)


def test_a_wrench_comes_back_from_its_torques():
    """Seven joints: force and moment; four: the force; a stretched pose says nothing for certain; two are refused."""
    random = np.random.default_rng(1)
    wrench = random.normal(size=6)
    whole = random.normal(size=(6, 7))
    found = wrench_of(whole.T @ wrench, np.full(7, 0.1), whole)
    np.testing.assert_allclose(np.concatenate([found.force, found.moment]), wrench, rtol=1e-9)
    assert (found.band > 0.0).all()
    few = random.normal(size=(6, 4))
    found = wrench_of(few[:3].T @ wrench[:3], np.zeros(4), few)
    np.testing.assert_allclose(found.force, wrench[:3], rtol=1e-9)
    assert np.isnan(found.moment).all()
    whole[5] = whole[4]
    assert np.isinf(wrench_of(whole.T @ wrench, np.zeros(7), whole).band).all()
    with pytest.raises(ConfigError, match="at least three joints"):
        wrench_of(np.zeros(2), np.zeros(2), np.zeros((6, 2)))
