"""Whether intervals hold what they promise."""

import numpy as np
from scipy.stats import binom, norm

CONFIDENCE = 0.95
HALF_WIDTH = norm.ppf(0.5 + 0.5 * CONFIDENCE)
"""Of a 95 % interval, in standard deviations."""


def hits_of(errors, sigma):
    """Whether intervals hold the truth, from errors and standard deviations (repetitions, p)."""
    return np.abs(np.asarray(errors)) <= HALF_WIDTH * np.asarray(sigma)


def assert_covered(hits, lowest=0.93, highest=0.97, level=0.01):
    """Pooled coverage within bounds, and no parameter significantly below 95 % (binomial, Holm).

    :param hits: (repetitions, p).
    """
    pooled = float(np.mean(hits))
    print(f"coverage {pooled:.4f}, lowest {np.mean(hits, axis=0).min():.3f}")
    assert lowest <= pooled <= highest, f"pooled coverage {pooled:.4f}"
    p_values = np.sort(binom.cdf(np.sum(hits, axis=0), len(hits), CONFIDENCE))
    bounds = level / np.arange(len(p_values), 0, -1)
    assert p_values[0] > bounds[0], f"a parameter covers {np.mean(hits, axis=0).min():.3f}"
