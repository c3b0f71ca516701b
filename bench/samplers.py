"""Samplers for the posterior of a servo side by side: our adaptive Metropolis, and blackjax's SMC and random walk, and NUTS.

Effective samples of the slowest parameter per second, compilation included, on real runs (``XL330 = $STRIBECK_DATA/xl330``) or,
without them, on simulated ones.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc import random_walk
from blackjax.smc import extend_params, resampling

from stribeck.files.actuators import load_actuator
from stribeck.identify.posterior import metropolis, nuts
from stribeck.identify.posterior.diagnostics import worst
from stribeck.identify.posterior.sampling import Target
from stribeck.identify.posterior.servo import ServoPosterior
from stribeck.identify.posterior.servo_priors import servo_prior
from stribeck.identify.servo.rollout import Rollout
from stribeck.model.law import law_named
from stribeck.model.log import batch_of
from stribeck.recordings.sources import read_recordings

CHAINS, DRAWS, THIN = 128, 30, 30
SAMPLES_PER_RUN = 2.5


def posterior_of(folder: Path, law: str) -> ServoPosterior:
    """The posterior of a folder's runs, each worth :data:`SAMPLES_PER_RUN` samples."""
    logs, servo = read_recordings(folder, arm_mass=0.0), load_actuator("xl330")
    parameters = servo.parameters(law_named(law))
    rollout = Rollout(batch_of([log.resample(0.005) for log in logs]), servo, law_named(law), parameters)
    prior = servo_prior(servo, law_named(law), parameters)
    return ServoPosterior(rollout, prior, np.full(len(logs), SAMPLES_PER_RUN))


def by_metropolis(posterior: ServoPosterior, start: Any) -> Any:
    """Ours: tempered, then adaptive Metropolis."""
    return metropolis.sample(posterior.batched(CHAINS), start[None], DRAWS, 0, thin=THIN).x[0]


def by_blackjax(posterior: ServoPosterior, start: Any) -> Any:
    """blackjax: adaptive tempered SMC, then random-walk Metropolis with the population's covariance."""
    one, size = posterior.batched(1), start.shape[1]

    def likelihood(x: Any) -> Any:
        value = one.log_likelihood(x[None])[0]
        return jnp.where(jnp.isfinite(value), value, -1e30)

    def root(particles: Any) -> Any:
        return 2.38 / np.sqrt(size) * jnp.linalg.cholesky(jnp.cov(particles.T) + 1e-9 * jnp.eye(size))

    kernel = random_walk.build_additive_step()

    def step(key: Any, state: Any, density: Any, scale: Any) -> Any:
        return kernel(
            key, state, density, lambda k, _: scale @ jax.random.normal(k, (size,), dtype=jnp.float64)
        )

    with jax.enable_x64():
        smc = blackjax.inner_kernel_tuning(
            smc_algorithm=blackjax.adaptive_tempered_smc,
            logprior_fn=posterior.log_prior,
            loglikelihood_fn=likelihood,
            mcmc_step_fn=step,
            mcmc_init_fn=random_walk.init,
            resampling_fn=resampling.systematic,
            mcmc_parameter_update_fn=lambda _, state, __: extend_params({"scale": root(state.particles)}),
            initial_parameter_value=extend_params({"scale": root(jnp.asarray(start))}),
            num_mcmc_steps=metropolis.MOVES,
            target_ess=metropolis.LEFT,
        )
        state, key, advance = smc.init(jnp.asarray(start)), jax.random.key(0), jax.jit(smc.step)
        while state.sampler_state.tempering_param < 1.0:
            key, now = jax.random.split(key)
            state, _ = advance(now, state)
        points, scale = state.sampler_state.particles, root(state.sampler_state.particles)

        def whole(x: Any) -> Any:
            return posterior.log_prior(x) + likelihood(x)

        @jax.jit
        def run(points: Any, scale: Any, keys: Any) -> Any:
            states = jax.vmap(partial(random_walk.init, logdensity_fn=whole))(points)

            def body(states: Any, key: Any) -> Any:
                each = jax.random.split(key, CHAINS)
                states, _ = jax.vmap(lambda k, s: step(k, s, whole, scale))(each, states)
                return states, states.position

            return jax.lax.scan(body, states, keys)[1]

        for number in range(2):
            path = run(points, scale, jax.random.split(jax.random.key(number + 1), 300))
            points, scale = path[-1], root(path[150::3].reshape(-1, size))
        path = run(points, scale, jax.random.split(jax.random.key(3), 300))
        parts = [path[THIN - 1 :: THIN]]
        for number in range(DRAWS * THIN // 300 - 1):
            path = run(path[-1], scale, jax.random.split(jax.random.key(4 + number), 300))
            parts.append(path[THIN - 1 :: THIN])
        return np.moveaxis(np.concatenate([np.asarray(p) for p in parts]), 0, 1)


def by_nuts(posterior: ServoPosterior, start: Any) -> Any:
    """The no-U-turn sampler, with gradients through the simulation."""
    one = posterior.batched(1)

    def likelihood(x: Any, _: Any) -> Any:
        return one.log_likelihood(x[None])[0]

    target = Target(start.shape[1], posterior.log_prior, likelihood, np.zeros((1, 1)))
    return nuts.sample(target, start[None, :8], 100, 0, rounds=(40, 80), deepest=5).x[0]


def main() -> None:
    """A table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="recordings of an XL330")
    parser.add_argument("--model", default="m3")
    parser.add_argument("--samplers", nargs="+", default=["metropolis", "blackjax", "nuts"])
    arguments = parser.parse_args()
    posterior = posterior_of(arguments.data, arguments.model)
    start = posterior.draw(np.random.default_rng(0), CHAINS)
    every = {"metropolis": by_metropolis, "blackjax": by_blackjax, "nuts": by_nuts}
    for name in arguments.samplers:
        began = time.perf_counter()
        x = every[name](posterior, start)
        seconds = time.perf_counter() - began
        with jax.enable_x64():
            rhat, effective = worst(np.asarray(posterior.values(x)))
        print(
            f"{name}: {seconds:.1f} s, {effective:.0f} effective samples, {effective / seconds:.1f} per second, "
            f"R-hat {rhat:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
