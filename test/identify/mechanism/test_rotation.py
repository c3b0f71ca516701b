import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stribeck.identify.mechanism import rotation


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64():
        yield


def bodies(rng, count=2):
    q = rng.normal(size=(count, 7))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    return jnp.asarray(q)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 1.0, 3.0])
def test_minus_undoes_plus(size):
    """q ⊞ δ ⊟ q = δ for rotations of up to half a turn, and from no rotation on."""
    rng = np.random.default_rng(0)
    q, increment = bodies(rng), rng.normal(size=(2, 6))
    increment[:, 3:] *= size / np.linalg.norm(increment[:, 3:], axis=1, keepdims=True)
    found = rotation.minus(rotation.plus(q, jnp.asarray(increment)), q)
    np.testing.assert_allclose(found, increment, atol=1e-12)


def test_quarter_turn_about_z_carries_x_to_y():
    """exp(π/2 e_z), computed by hand: R e_x = e_y."""
    turn = rotation.matrix(rotation.exp((0.0 * jnp.pi, 0.0, jnp.pi / 2)))
    np.testing.assert_allclose([row[0] for row in turn], [0.0, 1.0, 0.0], atol=1e-15)


@pytest.mark.slow
def test_derivatives_at_no_rotation_are_those_of_a_vector():
    """At δ = 0 the derivative of (q ⊞ δ) ⊟ q is the identity, also where the formula is 0/0."""
    q = bodies(np.random.default_rng(1), 1)
    jacobian = jax.jacfwd(lambda d: rotation.minus(rotation.plus(q, d.reshape(1, 6)), q).reshape(-1))(
        jnp.zeros(6)
    )
    np.testing.assert_allclose(jacobian, np.eye(6), atol=1e-12)


def test_body_frame_increments_turn_with_the_body():
    """e ⊞ ψ acts from the right: R(e ⊞ ψ) = R(e) exp([ψ]x)."""
    q = bodies(np.random.default_rng(2), 1)
    psi = jnp.array([0.3, -0.2, 0.5])
    after = rotation.plus(q, jnp.concatenate([jnp.zeros(3), psi])[None])
    turns = [np.array(rotation.matrix(rotation.quaternion(x[0, 3:]))) for x in (q, after)]
    own = np.array(rotation.matrix(rotation.exp(tuple(psi))))
    np.testing.assert_allclose(turns[1], turns[0] @ own, atol=1e-14)
