import numpy as np

from stribeck.identify.mechanism.chain import StateChain, eliminate, response


def chain(rng, runs, steps, d=4, e=2, p=2, s=3, f=2):
    """Random problem of several runs, and the same as one dense matrix over z, ε and χ."""
    count = runs * steps
    linked = np.arange(1, count + 1) % steps != 0
    turn, push, drift = (
        rng.normal(size=(count, d, d)),
        rng.normal(size=(count, d, e)),
        rng.normal(size=(count, d, p)),
    )
    sample = rng.normal(size=(count, s, e + d + p + 1)) * linked[:, None, None]
    weight, offset = rng.uniform(0.5, 2.0, size=(count, e)), rng.normal(size=(count, e))
    first, first_drift = rng.normal(size=(runs, d, f)), rng.normal(size=(runs, d, p))
    width = runs * f + count * e + p
    rows, right = [], []
    run = -1
    for k in range(count):
        if k % steps == 0:
            run += 1
            state = np.zeros((d, width))
            state[:, run * f : (run + 1) * f], state[:, -p:] = first[run], first_drift[run]
        if linked[k]:
            own = np.zeros((e, width))
            own[:, runs * f + k * e : runs * f + (k + 1) * e] = np.eye(e)
            chi = np.eye(width)[-p:]
            rows += [
                sample[k, :, :e] @ own + sample[k, :, e : e + d] @ state + sample[k, :, e + d : -1] @ chi
            ]
            right += [sample[k, :, -1], offset[k]]
            rows += [weight[k][:, None] * own]
            state = turn[k] @ state + push[k] @ own + drift[k] @ chi
    none = np.zeros((len(first), 0, turn.shape[1] + drift.shape[2] + 1))
    problem = StateChain(turn, push, drift, linked, sample, weight, offset, first, first_drift, none)
    return problem, np.concatenate(rows), np.concatenate(right)


def test_elimination_solves_the_dense_problem():
    """Parameters, first states, impulses and cost of three runs are those of dense least squares."""
    problem, dense, right = chain(np.random.default_rng(0), 3, 6)
    best = np.linalg.lstsq(dense, -right, rcond=None)[0]
    found = eliminate(problem)
    chi = np.linalg.solve(found.schur, found.reduced)
    np.testing.assert_allclose(chi, best[-2:], rtol=1e-6)
    np.testing.assert_allclose(found.first_gain @ np.append(chi, 1.0), best[:6].reshape(3, 2), rtol=1e-6)
    np.testing.assert_allclose(found.cost(chi), 0.5 * np.sum((dense @ best + right) ** 2), rtol=1e-9)
    away = chi + np.array([0.2, -0.5])
    grown = 0.5 * (away - chi) @ found.schur @ (away - chi)
    np.testing.assert_allclose(found.cost(away) - found.cost(chi), grown, rtol=1e-9)


def test_cost_away_from_the_optimum_is_that_of_optimal_states():
    """At given parameters the cost is the dense minimum over first states and impulses."""
    problem, dense, right = chain(np.random.default_rng(1), 2, 5)
    chi = np.array([0.3, -0.7])
    rest = -(right + dense[:, -2:] @ chi)
    states = np.linalg.lstsq(dense[:, :-2], rest, rcond=None)[0]
    expected = 0.5 * np.sum((dense[:, :-2] @ states - rest) ** 2)
    np.testing.assert_allclose(eliminate(problem).cost(chi), expected, rtol=1e-8)


def test_response_is_how_optimal_impulses_follow_parameters():
    """A change of parameters moves the dense optimum of the impulses by the response."""
    problem, dense, _ = chain(np.random.default_rng(2), 2, 5)
    _, pushes = response(problem, eliminate(problem))
    step = np.array([0.3, -0.2])
    moved = np.linalg.lstsq(dense[:, :-2], -dense[:, -2:] @ step, rcond=None)[0]
    np.testing.assert_allclose(pushes @ step, moved[4:].reshape(10, 2), atol=1e-6)
