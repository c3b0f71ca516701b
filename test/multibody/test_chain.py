import numpy as np

from stribeck.multibody.chain import Rows, eliminate


def chain(rng, runs, steps, d=3, p=2, m=5):
    """Random rows of several runs, and the same as one dense matrix."""
    count = runs * steps
    linked = np.arange(1, count + 1) % steps != 0
    here, there = rng.normal(size=(2, count, m, d))
    there = there * linked[:, None, None]
    parameters, value = rng.normal(size=(count, m, p)), rng.normal(size=(count, m))
    starts = np.arange(runs) * steps
    first, first_p, first_v = rng.normal(size=(runs, d, d)), rng.normal(size=(runs, d, p)), rng.normal(size=(runs, d))
    dense = np.zeros((count * m + runs * d, count * d + p))
    for k in range(count):
        rows = slice(k * m, (k + 1) * m)
        dense[rows, k * d : (k + 1) * d] = here[k]
        if linked[k]:
            dense[rows, (k + 1) * d : (k + 2) * d] = there[k]
        dense[rows, count * d :] = parameters[k]
    for run, k in enumerate(starts):
        rows = slice(count * m + run * d, count * m + (run + 1) * d)
        dense[rows, k * d : (k + 1) * d], dense[rows, count * d :] = first[run], first_p[run]
    right = np.concatenate([value.reshape(-1), first_v.reshape(-1)])
    return Rows(here, there, parameters, value, starts, first, first_p, first_v), dense, right


def test_elimination_solves_the_dense_problem():
    """States and parameters of three runs are those of dense least squares; S is the Schur complement."""
    rows, dense, right = chain(np.random.default_rng(0), 3, 7)
    expected = np.linalg.lstsq(dense, -right, rcond=None)[0]
    found = eliminate(rows)
    chi = np.linalg.solve(found.schur, found.reduced)
    np.testing.assert_allclose(chi, expected[-2:], atol=1e-10)
    np.testing.assert_allclose(found.states(chi).reshape(-1), expected[:-2], atol=1e-9)
    information = dense.T @ dense
    schur = np.linalg.inv(np.linalg.inv(information)[-2:, -2:])
    np.testing.assert_allclose(found.schur, schur, rtol=1e-9)


def test_response_is_how_optimal_states_follow_parameters():
    """A change of parameters moves the states that are optimal for them by the response."""
    rows, _, _ = chain(np.random.default_rng(1), 2, 5)
    found = eliminate(rows)
    step = np.array([0.3, -0.2])
    moved = found.states(step) - found.states(np.zeros(2))
    np.testing.assert_allclose(moved, found.response() @ step, atol=1e-10)
