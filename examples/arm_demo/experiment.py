r"""The simulated experiment: wrong inertias of some links, identified from one motion and validated on another.

The true arm is simulated under inverse-dynamics control on a training and a validation trajectory, with noise on its
torques. The estimator starts from an arm with wrong links and solves the physically consistent problem.
Over its iterations the cost

.. math::

    L = \frac1T\sum_t \|\tau_t - f(q_t, \dot q_t, \ddot q_t)\|^2_{\Sigma^{-1}}

falls from that of the wrong arm to the noise floor, on both trajectories. :math:`\Sigma` is the covariance of the noise
of the sensors after the protocol's filters, so the floor is the number of joints.

Source: Maestro 2025, "Experiment Design" and "Results".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulation import (
    Control,
    Desired,
    SensorNoise,
    SimulatedArm,
    SimulatedRun,
    simulate_tracking,
)
from stribeck.errors import ConfigError
from stribeck.identify.arm.base_parameters import BaseParameters
from stribeck.identify.arm.config import Neighbourhood, Protocol
from stribeck.identify.arm.consistent import ConsistentFit, fit_consistent
from stribeck.identify.arm.inertia import about_com, from_com
from stribeck.identify.arm.least_squares import fit_linear, fit_rows
from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.identify.arm.motion import ProcessedMotion, motion_of
from stribeck.identify.arm.regressor import Machine, design, machine_of, structural_base

Array = npt.NDArray[np.float64]

WRONG_LINKS = 4
WRONG_BY = 0.3
"""Number of wrong links, and their relative error."""

PROTOCOL = Protocol(
    rows={},
    resample=None,
    position_filter=None,
    effort_filter=None,
    every=10,
    drop=30,
    edge_order=2,
    moving=0.1,
    rest=1e-4,
    fit="moving",
)
"""Every tenth sample at 1000 Hz, unfiltered."""

NEIGHBOURHOOD = Neighbourhood(mass=0.9, com=0.2, inertia=5.0)


@dataclass(frozen=True)
class Costs:
    """Costs on one trajectory.

    :param iterations: of each iterate of the last round (I,); see :attr:`wrong` and :attr:`result`.
    :param result: of the result.
    :param floor: of the truth: what noise alone costs.
    """

    iterations: Array
    result: float
    floor: float

    @property
    def wrong(self) -> float:
        """Cost of the wrong arm, with the rotor inertias and friction that fit it best."""
        return float(self.iterations[0])

    @property
    def excess(self) -> float:
        """Relative excess of the result over the noise floor."""
        return self.result / self.floor - 1.0


@dataclass(frozen=True)
class Estimates:
    """Base parameters.

    :param expressions: each as a sum of standard parameters.
    :param start, truth, values, sigma: at the start, in truth, estimated, and its standard deviation, (b,) each.
    """

    expressions: tuple[str, ...]
    start: Array
    truth: Array
    values: Array
    sigma: Array


@dataclass(frozen=True)
class Experiment:
    """The result of the experiment.

    :param start: the wrong arm.
    :param wrong: joints whose links it is wrong about.
    """

    start: ArmModel
    wrong: tuple[str, ...]
    fit: ConsistentFit
    training: Costs
    validation: Costs
    estimates: Estimates


def wrong_arm(arm: ArmModel, seed: int, links: int = WRONG_LINKS, by: float = WRONG_BY) -> ArmModel:
    """An arm with wrong inertials of some links.

    Mass, lever of the centre of mass, and inertia about it are each multiplied by 1 + ``by`` or 1 - ``by``, so that
    the link stays a possible one.

    :param seed: of which links, and of the signs.
    :raises ConfigError: for more links than there are, or a share that is not between 0 and 1.
    """
    if not 0 < links <= len(arm) or not 0.0 < by < 1.0:
        raise ConfigError(
            f"cannot be wrong about {links} links by {by:g}; the arm has {len(arm)}, and shares are between 0 and 1"
        )
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(arm), links, replace=False))
    inertials = arm.inertials.reshape(-1, INERTIALS).copy()
    for k in chosen:
        mass, com, inertia = about_com(inertials[k])
        factors = 1.0 + by * rng.choice([-1.0, 1.0], 3)
        inertials[k] = from_com(float(factors[0] * mass), factors[1] * com, factors[2] * inertia)
    return arm.with_inertials(inertials.ravel())


def differing(one: ArmModel, other: ArmModel) -> tuple[str, ...]:
    """Joints whose links have different inertials in two arms."""
    alike = np.isclose(one.inertials, other.inertials, rtol=1e-9, atol=0.0)
    differ = np.flatnonzero(~np.all(alike.reshape(-1, INERTIALS), axis=1))
    return tuple(one.joints[k] for k in differ)


def true_parameters(plant: SimulatedArm) -> Array:
    """Inertials of the links, then inertia, viscous and Coulomb friction and offset of each joint, (14 n,).

    :raises ConfigError: for friction that is more than Coulomb-viscous, for which these are no parameters.
    """
    law, given = plant.law, plant.friction
    if law is not None and (law.name != "m1" or law.opposites):
        raise ConfigError(
            f"friction law {law.name} has no true Coulomb-viscous parameters; simulate m1, or none"
        )
    nothing = np.zeros(len(plant.arm))
    columns = [
        plant.rotors,
        nothing + given.get("friction_viscous", 0.0),
        nothing + given.get("friction_base", 0.0),
        nothing + given.get("torque_offset", 0.0),
    ]
    return np.concatenate([plant.arm.inertials, np.column_stack(columns).ravel()])


def run_experiment(
    plant: SimulatedArm,
    training: Desired,
    validation: Desired,
    duration: float,
    noise: SensorNoise,
    seed: int,
    *,
    start: ArmModel | None = None,
    control: Control | None = None,
    protocol: Protocol = PROTOCOL,
    near: Neighbourhood = NEIGHBOURHOOD,
) -> Experiment:
    """Simulate, identify from the training trajectory, validate on the other.

    :param training, validation: desired motions.
    :param duration: of each [s].
    :param seed: of the noise, and of what the start is wrong about.
    :param start: what the estimator starts from; :func:`wrong_arm` if left out.
    :raises RecordingError: for a training motion that leaves parameters open.
    """
    start = start or wrong_arm(plant.arm, seed)
    runs = [
        simulate_tracking(plant, desired, duration, control=control) for desired in (training, validation)
    ]
    seeds = np.random.SeedSequence(seed).generate_state(2)
    trials = [_Trial.of(run, noise, int(s), protocol) for run, s in zip(runs, seeds, strict=True)]
    machine = machine_of(start.joints, start, {})
    sigma = trials[0].sigma
    boards = [_Board(machine, trial, sigma, protocol) for trial in trials]

    def watch(iteration: int, parameters: Array) -> None:
        for board in boards:
            board.note(iteration, parameters)

    rough = fit_linear(machine, [trials[0].motion], protocol).noise
    fit = fit_consistent(machine, [trials[0].motion], protocol, near, rough, watch)
    base = structural_base(machine, protocol.rest, "symmetric", seed)
    costs = [board.costs(fit.parameters) for board in boards]
    wrong = differing(start, plant.arm)
    return Experiment(start, wrong, fit, costs[0], costs[1], _estimates(base, plant, start, fit))


def _estimates(base: BaseParameters, plant: SimulatedArm, start: ArmModel, fit: ConsistentFit) -> Estimates:
    truth = true_parameters(plant)
    values, sigma = fit.base(base)
    begun = np.concatenate([start.inertials, truth[start.inertials.size :]])
    return Estimates(base.expressions(), base.values(begun), base.values(truth), values, sigma)


@dataclass(frozen=True)
class _Trial:
    """One trajectory as it was measured.

    :param noise: what noise is left in the torques of the rows (M, n).
    """

    motion: ProcessedMotion
    noise: Array
    protocol: Protocol

    @classmethod
    def of(cls, run: SimulatedRun, noise: SensorNoise, seed: int, protocol: Protocol) -> _Trial:
        motion = motion_of(run.measured("simulated", noise, seed), protocol)
        clean = motion_of(run.measured("simulated"), protocol)
        return cls(motion, motion.torque - clean.torque, protocol)

    @property
    def sigma(self) -> Array:
        """Standard deviation of the noise of each joint in its fitted rows (n,)."""
        used = fit_rows(self.motion, self.protocol)
        squares = np.sum(np.where(used, self.noise, 0.0) ** 2, axis=0)
        return np.asarray(np.sqrt(squares / used.sum(axis=0)))


class _Board:
    """Records the cost of one trajectory over the iterations."""

    def __init__(self, machine: Machine, trial: _Trial, sigma: Array, protocol: Protocol) -> None:
        self._columns = design(machine, trial.motion.states, protocol.rest).columns
        self._torque, self._noise, self._sigma = trial.motion.torque, trial.noise, sigma
        self._used = fit_rows(trial.motion, protocol)
        self._noted: list[float] = []

    def note(self, iteration: int, parameters: Array) -> None:
        """Record an iterate; the first one of a round deletes those before."""
        if iteration == 0:
            self._noted.clear()
        self._noted.append(self._cost(self._torque - self._columns @ parameters))

    def costs(self, parameters: Array) -> Costs:
        """The costs so far, and that of the result."""
        result = self._cost(self._torque - self._columns @ parameters)
        return Costs(np.array(self._noted), result, self._cost(self._noise))

    def _cost(self, residual: Array) -> float:
        """Sum over the joints of the mean square over its fitted rows, over the noise."""
        squares = np.where(self._used, residual / self._sigma, 0.0) ** 2
        return float(np.sum(squares.sum(axis=0) / self._used.sum(axis=0)))
