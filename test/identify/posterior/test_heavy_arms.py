"""Synthetic arms of the MABI Max 100's kind: order of the priors, least squares, effective samples; and their calibration."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from heavy_arms import SHEET, TABLE, heavy_arm, measured_rows
from rank_calibration import calibrate
from stribeck.identify.posterior import nuts
from stribeck.identify.posterior.arm import ArmDraws, infer
from stribeck.identify.posterior.diagnostics import summarise
from stribeck.identify.posterior.knowledge import PRIORS, cad_around, prior_named
from stribeck.identify.posterior.likelihood import NOISE, InertiaPosterior
from stribeck.identify.posterior.measures import mechanical_mae, rmse
from stribeck.identify.posterior.network import Mechanical, inertia_base, link_frames, moments, to_standard
from stribeck.identify.posterior.prior import ArmPrior
from stribeck.identify.posterior.sampling import modes

ARMS, TRAINING, TEST = 20, 75, 72
STARTS = 8
"""Starts of each search along gradients."""
ROUNDS = 3
"""Rounds of forty steps of these searches."""
NOISE_OF_MEASUREMENTS = 0.05

ARM = heavy_arm()
FRAMES = link_frames(ARM)


def _links(prior: ArmPrior, x: np.ndarray) -> Mechanical:
    with jax.enable_x64():
        return Mechanical(*(np.asarray(part) for part in prior.mechanical(x)))


def _arms(rng: np.random.Generator, count: int) -> tuple[list[Mechanical], list[Mechanical]]:
    """Models of arms drawn from the seed's table whose masses leave a base, and real arms 10 % around each."""
    prior = prior_named("empirical", ARM, SHEET, TABLE)
    models: list[Mechanical] = []
    while len(models) < count:
        with jax.enable_x64():
            links = _links(prior, prior.draw(rng, 1)[0])
        if links.mass.sum() < SHEET.total_mass:
            models.append(links)
    with jax.enable_x64():
        real = [_links(own := cad_around(model), own.draw(rng, 1)[0]) for model in models]
    return models, real


def _prior(name: str, model: Mechanical) -> ArmPrior:
    return cad_around(model) if name == "cad" else prior_named(name, ARM, SHEET, TABLE)


def _standard(links: Mechanical) -> np.ndarray:
    with jax.enable_x64():
        return np.asarray(moments(links)) @ to_standard(FRAMES).T


def _known(name: str, models: list[Mechanical], rows: np.ndarray, measured: np.ndarray) -> list[ArmDraws]:
    """Posteriors of arms measured at the same poses, (D, N): side by side where they have one prior."""
    if name == "cad":
        own = [InertiaPosterior(_prior(name, model), FRAMES, rows) for model in models]
        return [
            infer(one, data, 150, k, chains=4)
            for k, (one, data) in enumerate(zip(own, measured, strict=True))
        ]
    posterior = InertiaPosterior(_prior(name, models[0]), FRAMES, rows)
    with jax.enable_x64():
        start = posterior.draw(np.random.default_rng(1), 4 * len(models)).reshape(len(models), 4, -1)
    found = nuts.sample(posterior.target(measured), start, 150, 0)
    return [ArmDraws(posterior, x) for x in found.x]


def _least_squares(train: np.ndarray, test: np.ndarray, seen: np.ndarray, later: np.ndarray) -> list[float]:
    """Test RMSE [%] of ordinary and of weighted least squares on base parameters."""
    reduced = inertia_base(ARM).reduce(train), inertia_base(ARM).reduce(test)
    ordinary = np.linalg.lstsq(reduced[0], seen, rcond=None)[0]
    weighted = np.linalg.lstsq(reduced[0] / seen[:, None], np.ones(len(seen)), rcond=None)[0]
    return [rmse(reduced[1] @ values, later) for values in (ordinary, weighted)]


def _noisy(rows: np.ndarray, truths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    clean = truths @ rows.T
    return clean * (1.0 + NOISE_OF_MEASUREMENTS * rng.standard_normal(clean.shape))


def _measured(
    rng: np.random.Generator,
) -> tuple[list[Mechanical], list[Mechanical], tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Models of arms, real arms, rows of the regressor for training and test, and the measured inertias of all arms."""
    models, real = _arms(rng, ARMS)
    rows = measured_rows(ARM, rng, TRAINING), measured_rows(ARM, rng, TEST)
    truths = np.array([_standard(links) for links in real])
    return models, real, rows, (_noisy(rows[0], truths, rng), _noisy(rows[1], truths, rng))


def _most_likely(rows: np.ndarray, measured: np.ndarray) -> tuple[ArmDraws, np.ndarray]:
    """The most likely parameters of arms (D, 1, d) within the bounds of the diffuse prior, by Newton steps from several random starts, and
    their log likelihoods (D,).
    """
    posterior = InertiaPosterior(prior_named("diffuse", ARM, SHEET, TABLE), FRAMES, rows)
    data = np.repeat(measured, STARTS, axis=0)
    target = replace(posterior.target(data), log_prior=lambda x: 0.0)
    with jax.enable_x64():
        found = posterior.draw(np.random.default_rng(2), len(data))
        for _ in range(ROUNDS):
            found, _ = modes(target, found)
        likelihood = np.asarray(jax.vmap(target.log_likelihood)(found, data)).reshape(-1, STARTS)
    best = likelihood.argmax(axis=1)
    chosen = found.reshape(len(measured), STARTS, -1)[np.arange(len(measured)), best]
    return ArmDraws(posterior, chosen[:, None]), likelihood.max(axis=1)


def _errors() -> dict[str, dict[str, np.ndarray]]:
    """Mechanical MAE and test RMSE [%] of prior and posterior, (ARMS,) each, by prior; and of least squares."""
    rng = np.random.default_rng(0)
    models, real, (train, test), (seen, later) = _measured(rng)
    least = [_least_squares(train, test, *pair) for pair in zip(seen, later, strict=True)]
    found = {"least squares": dict(zip(("ordinary", "weighted"), np.array(least).T, strict=True))}
    for name in PRIORS:
        after = _known(name, models, train, seen)
        priors = [InertiaPosterior(_prior(name, model), FRAMES, train) for model in models]
        with jax.enable_x64():
            before = [
                ArmDraws(one, one.draw(rng, 500)[None]) for one in (priors if name == "cad" else priors[:1])
            ]
        before = before if name == "cad" else before * ARMS
        found[name] = {}
        for key, each in (("prior", before), ("posterior", after)):
            links = zip(each, real, strict=True)
            found[name][f"{key} mechanical"] = np.array([mechanical_mae(d.mean, own) for d, own in links])
            data = zip(each, later, strict=True)
            found[name][f"{key} test"] = np.array(
                [rmse(d.inertias(test).mean(axis=(0, 1)), y) for d, y in data]
            )
        print(name, {k: float(v.mean().round(2)) for k, v in found[name].items()}, flush=True)
        jax.clear_caches()
    return found


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_posteriors_are_better_than_priors_and_more_knowledge_is_better():
    """Means over 20 arms: every posterior beats its prior; mechanical errors fall from diffuse to CAD; empirical and CAD
    beat least squares on inertias that were not measured.
    """
    errors = {name: {k: v.mean() for k, v in own.items()} for name, own in _errors().items()}
    print(errors["least squares"])
    for name in PRIORS:
        assert errors[name]["posterior mechanical"] < errors[name]["prior mechanical"]
        assert errors[name]["posterior test"] < errors[name]["prior test"]
    order = [errors[name]["posterior mechanical"] for name in PRIORS]
    assert order == sorted(order, reverse=True)
    least = min(errors["least squares"].values())
    assert errors["empirical"]["posterior test"] <= least
    assert errors["cad"]["posterior test"] <= least


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_most_likely_links_predict_but_are_not_those_of_the_arm():
    """A global search along gradients, without a prior: it finds links that are at least as likely as the true ones and
    predict inertias better than least squares, but are further from the truth than the posterior of any prior.
    """
    _, real, (train, test), (seen, later) = _measured(np.random.default_rng(0))
    found, likelihood = _most_likely(train, seen)
    clean = np.array([_standard(links) for links in real]) @ train.T
    width = NOISE_OF_MEASUREMENTS * clean
    of_truth = np.sum(-np.log(width) - 0.5 * ((seen - clean) / width) ** 2, axis=1)
    assert (likelihood > of_truth).all()
    links = [ArmDraws(found.posterior, x[None]).mean for x in found.x]
    errors = [mechanical_mae(one, own) for one, own in zip(links, real, strict=True)]
    predicted = [rmse(x[0] @ test.T, y) for x, y in zip(found.standard, later, strict=True)]
    plain = [_least_squares(train, test, *pair)[1] for pair in zip(seen, later, strict=True)]
    print(np.mean(errors), np.mean(predicted), np.mean(plain), (likelihood - of_truth).min())
    assert np.mean(predicted) < np.mean(plain)
    assert np.mean(errors) > 60.0


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["empirical", "cad"])
def test_a_thousand_effective_samples_of_every_parameter(name):
    """Every mechanical parameter and the noise: at least 1000 effective samples, R-hat below 1.01."""
    rng = np.random.default_rng(0)
    models, real = _arms(rng, 1)
    rows = measured_rows(ARM, rng, TRAINING)
    measured = rows @ _standard(real[0]) * (1.0 + NOISE_OF_MEASUREMENTS * rng.standard_normal(TRAINING))
    posterior = InertiaPosterior(_prior(name, models[0]), FRAMES, rows)
    found = infer(posterior, measured, 1000, 1)
    summary = summarise(*found.named(ARM.joints))
    print(name, summary.effective.min(), summary.tail.min(), summary.rhat.max())
    assert summary.effective.min() >= 1000.0
    assert summary.converged


def ranks_of(name: str, posteriors: int, draws: int, thin: int, chains: int = 2, rounds=(20, 40, 60, 80)):
    """Calibration of arms drawn from a prior, noise included."""
    rng = np.random.default_rng(5)
    models, _ = _arms(rng, 1)
    rows = measured_rows(ARM, rng, TRAINING)
    prior = _prior(name, models[0])
    posterior = InertiaPosterior(prior, FRAMES, rows)
    with jax.enable_x64():
        truth = posterior.draw(rng, posteriors)
        start = posterior.draw(rng, posteriors * chains).reshape(posteriors, chains, -1)
    measured = posterior.simulate(truth, rng)
    found = nuts.sample(
        posterior.target(measured), start, draws // chains, 0, thin=thin, rounds=rounds, deepest=6
    )

    def table(x: np.ndarray) -> np.ndarray:
        return ArmDraws(posterior, x).named(ARM.joints)[1]

    names = ArmDraws(posterior, truth[None]).named(ARM.joints)[0]
    values = table(found.x).reshape(posteriors, -1, len(names))
    return calibrate(names, table(truth[None])[0], values)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", ["empirical", "cad"])
def test_ranks_of_arms_are_uniform(name):
    """Simulation-based calibration: 200 arms of the prior, noise c·X with c drawn too."""
    found = ranks_of(name, 200, 200, thin=3)
    print(name, found.adjusted.min(), found.names[int(found.adjusted.argmin())], found.pooled_coverage)
    assert found.uniform
    assert 0.93 <= found.pooled_coverage <= 0.97


@pytest.mark.slow
def test_noise_of_simulated_measurements_is_that_of_the_likelihood():
    """Measurements scatter by c times the true inertia."""
    rng = np.random.default_rng(0)
    posterior = InertiaPosterior(
        prior_named("empirical", ARM, SHEET, TABLE), FRAMES, measured_rows(ARM, rng, 30)
    )
    with jax.enable_x64():
        x = np.repeat(posterior.draw(rng, 1), 400, axis=0)
        x[:, -1] = NOISE.coordinate(np.array(0.05))
        clean = np.asarray(posterior.inertias(x[:1]))
    scatter = posterior.simulate(x, rng) / clean - 1.0
    assert scatter.std() == pytest.approx(0.05, rel=0.03)
