"""Drives of each law with stated uncertainty, as a fit writes them."""

import numpy as np

from helpers import published
from stribeck.files.actuators import load_actuator
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.joint import Drive, Prediction
from stribeck.model.law import law_named
from stribeck.model.log import Batch

SHARE = 0.04
"""Standard deviation of each parameter relative to its value."""


def uncertain_drive(law: str, error: float = 0.015, share: float = SHARE, **changes: float) -> Drive:
    """An XL330 with published parameters, each uncertain by ``share``; neighbours are correlated.

    :param error: standard deviation of the model's error [rad].
    """
    actuator = load_actuator("xl330")
    names = [*actuator.parameters(law_named(law)).names]
    values = {name: published("xl330", law)[name] for name in names} | changes
    parameters = actuator.parameters(law_named(law))
    free = [name for name in names if name != "q_offset"]
    sigma = share * np.array([max(abs(values[name]), 1e-6) for name in free])
    near = np.exp(-np.abs(np.subtract.outer(np.arange(len(free)), np.arange(len(free)))) / 1.5)
    covariance = near * np.outer(sigma, sigma)
    stated = {name: fixed(value, "") for name, value in values.items()}
    for name, s in zip(free, sigma.tolist(), strict=True):
        bounds = (parameters[name].lower, parameters[name].upper)
        interval = (values[name] - 1.96 * s, values[name] + 1.96 * s)
        stated[name] = estimate_of(values[name], "", interval, bounds=bounds)
    prediction = Prediction(
        tuple(free), tuple(map(tuple, covariance.tolist())), error, 0.1, {"recorded": 1.1}, {}
    )
    return Drive(actuator, law_named(law), values, stated=stated, prediction=prediction)


def spread(motion: np.ndarray, runs: Batch) -> float:
    """Root mean square over samples of the standard deviation of motions (T, R, S) [rad]."""
    return float(np.sqrt(np.sum(runs.weight * np.var(motion, axis=2))))
