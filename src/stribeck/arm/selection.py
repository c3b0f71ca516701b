r"""Which friction terms the data support, by cross-validation, before the full problem is solved.

The law is replaced by terms that torques are linear in (friction that fades as :math:`e^{-|\dot q|/v_0}`, friction in
proportion to the torque that the links ask for), inertials stay near the URDF by a quadratic prior, and every choice
is scored on blocks of time that were left out. Blocks, because neighbouring samples are alike. A term comes in if it
lowers the error on what was left out by :data:`WORTHWHILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import linalg

from stribeck.arm.design import Machine
from stribeck.arm.motion import Motion
from stribeck.arm.signals import autocovariance, convolve, direction, presliding
from stribeck.core.friction import LAWS, FrictionLaw
from stribeck.io.identification_config import Protocol

Array = npt.NDArray[np.float64]

BLOCKS = 5
WORTHWHILE = 0.005
"""Least share by which a term has to lower the error on blocks that were left out."""

PRESLIDING = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
"""Presliding lengths that are tried [rad or m]."""

STRIBECK = (0.03, 0.1, 0.2, 0.4)
"""Stribeck velocities that are tried, as shares of the largest velocity."""

PRIORS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Standard deviations of inertials about the URDF that are tried, as shares of the size of a link."""

DELAY_STEP = 0.05
"""Steps of the delay, in periods of the torques' cut-off frequency."""

RIDGE = 1e-3
"""Precision of friction terms, in units of what the residuals allow: only against exact collinearity."""


@dataclass(frozen=True)
class Choice:
    """What the full problem is about.

    :param law: friction law of the joints.
    :param delay: recorded states come so much later than torques [s].
    :param presliding: presliding length [rad or m], ``None`` for friction that turns at once.
    :param stribeck: Stribeck velocity to begin with, as a share of the largest velocity of an element.
    :param prior: standard deviation of inertials about the URDF, as a share of the size of a link.
    :param correlated: how many rows carry the information of one independent row.
    """

    law: FrictionLaw
    delay: float = 0.0
    presliding: float | None = None
    stribeck: float = 0.2
    prior: float = 0.3
    correlated: float = 1.0


@dataclass(frozen=True)
class Prepared:
    """A run ready for predictions.

    :param regressor: of the inertials at fine times (N, n, 10 n).
    :param filtered: the same, filtered, at the rows (M, n, 10 n).
    :param speed: largest velocity of each element (E,).
    """

    motion: Motion
    regressor: Array
    filtered: Array
    speed: Array

    def at_rows(self, fine: Array) -> Array:
        """What the filter of torques makes of a fine signal (N, …), at the rows (M, …)."""
        kernel = self.motion.kernel
        return (fine if kernel is None or not fine.size else convolve(fine, kernel))[self.motion.pick]

    def developed(self, machine: Machine, length: float | None, rest: float) -> Array:
        """How far friction of each element is developed at fine times, (N, E)."""
        fine = self.motion.fine
        if length is None:
            return direction(fine.velocity @ machine.weights.T, rest)
        return presliding(fine.position @ machine.weights.T, length)


def prepare(machine: Machine, motion: Motion) -> Prepared:
    """A run ready for predictions."""
    regressor = machine.regressor(motion.fine)
    bare = Prepared(motion, regressor, regressor[:0], np.zeros(0))
    speed = np.abs(motion.fine.velocity @ machine.weights.T).max(axis=0)
    flat = bare.at_rows(regressor.reshape(len(regressor), regressor.shape[1] * regressor.shape[2]))
    filtered = flat.reshape(len(flat), *regressor.shape[1:])
    return Prepared(motion, regressor, filtered, speed)


def sizes(inertials: Array) -> Array:
    """Size of the inertial parameters of links (n, 10): m, m·0.1 m, m·(0.14 m)², for links of 0.1 kg at least."""
    mass = np.maximum(inertials.reshape(-1, 10)[:, 0], 0.1)
    return np.asarray(mass[:, None] * np.array([1.0, *[0.1] * 3, *[0.02] * 6]))


class Selection:
    """Cross-validation of choices.

    :param motions: makes the runs for a delay.
    :param reference: inertial parameters (10 n,) that loads are reckoned from.
    :param inertia: inertia of each element (E,), likewise.
    :param noise: standard deviation of the residuals of each joint (n,).
    """

    def __init__(
        self,
        machine: Machine,
        motions: Callable[[float], Sequence[Motion]],
        protocol: Protocol,
        reference: Array,
        inertia: Array,
        noise: Array,
    ) -> None:
        self._machine, self._protocol, self._motions = machine, protocol, motions
        self._reference, self._inertia, self._noise = reference, inertia, noise
        self._prepared: dict[float, list[Prepared]] = {}

    def prepared(self, delay: float) -> list[Prepared]:
        """The runs at a delay."""
        if delay not in self._prepared:
            self._prepared[delay] = [prepare(self._machine, motion) for motion in self._motions(delay)]
        return self._prepared[delay]

    def choose(self) -> tuple[Choice, dict[str, float]]:
        """The choice, and the share of the error that each step left of what the step before had."""
        choice = Choice(LAWS["m1"].with_terms(offset=True))
        choice = replace(choice, correlated=self._correlation(choice))
        best = start = self.error(choice)
        steps: dict[str, float] = {}
        for name, others in (
            ("prior", self._priors),
            ("asymmetric", self._asymmetric),
            ("delay", self._delays),
            ("presliding", self._presliding),
            ("stribeck", self._stribeck),
            ("load", self._load),
            ("delay again", self._delays),
            ("prior again", self._priors),
        ):
            errors = {other: self.error(other) for other in others(choice)}
            found = min(errors, key=lambda other: errors[other], default=choice)
            before = best
            if errors and errors[found] < best * (1.0 - WORTHWHILE):
                choice, best = found, errors[found]
            steps[name] = best / before
            self._prepared = {d: p for d, p in self._prepared.items() if d == choice.delay}
        return choice, {**steps, "all": best / start}

    def error(self, choice: Choice) -> float:
        """Root mean square of the residuals over the noise, on blocks of time that were left out."""
        grams = self._grams(choice)
        centre, precision = self._prior(choice, len(grams[0][1]))
        whole, pull = sum_of(part[0] for part in grams), sum_of(part[1] for part in grams)
        squares: float = 0.0
        rows = 0
        for gram, slope, square, count in grams:
            values = centre + _solved(whole - gram, pull - slope - (whole - gram) @ centre, precision)
            squares += float(square - 2.0 * values @ slope + values @ gram @ values)
            rows += count
        return float(np.sqrt(max(squares, 0.0) / max(rows, 1)))

    def solution(self, choice: Choice) -> tuple[Array, dict[str, Array]]:
        """Inertials (10 n,), and the friction terms of the elements by name (E,), fitted to all rows."""
        grams = self._grams(choice)
        centre, precision = self._prior(choice, len(grams[0][1]))
        gram, slope = sum_of(part[0] for part in grams), sum_of(part[1] for part in grams)
        values = centre + _solved(gram, slope - gram @ centre, precision)
        size = len(self._machine.inertials)
        names = self._terms(choice)
        elements = len(self._machine.elements)
        return values[:size], {
            name: values[size + k * elements : size + (k + 1) * elements] for k, name in enumerate(names)
        }

    # -- what is tried

    def _priors(self, choice: Choice) -> list[Choice]:
        return [] if self._machine.arm is None else [replace(choice, prior=prior) for prior in PRIORS]

    def _delays(self, choice: Choice) -> list[Choice]:
        if self._protocol.effort_filter is None:
            return []
        step = DELAY_STEP / self._protocol.effort_filter.cutoff
        errors = {0: self.error(choice)}
        stride, centre = 4, 0
        while stride:
            for k in (centre - stride, centre + stride):
                if k not in errors:
                    errors[k] = self.error(replace(choice, delay=k * step))
            best = min(errors, key=lambda k: errors[k])
            if best == centre or abs(best) >= 40:
                stride //= 2
            centre = best
        return [replace(choice, delay=centre * step)]

    def _presliding(self, choice: Choice) -> list[Choice]:
        return [replace(choice, presliding=length) for length in PRESLIDING]

    def _stribeck(self, choice: Choice) -> list[Choice]:
        law = _terms_of(LAWS["m2"], choice.law)
        return [replace(choice, law=law, stribeck=share) for share in STRIBECK]

    def _load(self, choice: Choice) -> list[Choice]:
        law = LAWS["m4" if choice.law.stribeck else "m3"]
        return [replace(choice, law=_terms_of(law, choice.law))]

    def _asymmetric(self, choice: Choice) -> list[Choice]:
        return [replace(choice, law=choice.law.with_terms(asymmetric=True))]

    # -- linear algebra

    def _terms(self, choice: Choice) -> list[str]:
        law = choice.law
        sides = (
            ["viscous+", "viscous-", "base+", "base-"] if law.asymmetric else ["viscous", "base", "offset"]
        )
        return ["inertia", *sides, *["stribeck"] * law.stribeck, *["load"] * (law.load != "none")]

    def _friction(self, choice: Choice, run: Prepared) -> Array:
        """Columns of the friction terms at the rows (M, n, terms · E)."""
        machine, fine = self._machine, run.motion.fine
        z = run.developed(machine, choice.presliding, self._protocol.rest)
        velocity, acceleration = fine.velocity @ machine.weights.T, fine.acceleration @ machine.weights.T
        load = np.zeros_like(velocity)
        load[:, : len(machine.joints)] = 2.0 * run.regressor @ self._reference
        load[:, : len(machine.joints)] += (acceleration * self._inertia)[:, : len(machine.joints)]
        forward, backward = np.maximum(z, 0.0), np.minimum(z, 0.0)
        joints = np.arange(len(machine.elements)) < len(machine.joints)
        columns = {
            "inertia": acceleration,
            "viscous": velocity,
            "base": z,
            "offset": np.ones_like(z) * joints,
            "viscous+": np.maximum(velocity, 0.0),
            "viscous-": np.minimum(velocity, 0.0),
            "base+": forward,
            "base-": backward,
            "stribeck": z * np.exp(-np.abs(velocity) / (choice.stribeck * run.speed)),
            "load": z * np.abs(load),
        }
        stacked = np.concatenate([columns[name] for name in self._terms(choice)], axis=1)
        rows = run.at_rows(stacked)
        weights = np.tile(machine.weights.T, len(self._terms(choice)))
        return np.asarray(rows[:, None, :] * weights)

    def _grams(self, choice: Choice) -> list[tuple[Array, Array, float, int]]:
        """Normal equations of each block of time: Gram matrix, slope, square of the torques, rows."""
        found = []
        for run in self.prepared(choice.delay):
            columns = np.concatenate([run.filtered, self._friction(choice, run)], axis=2)
            used = run.motion.moving
            for block in np.array_split(np.arange(len(columns)), BLOCKS):
                mask = used[block]
                noise = np.broadcast_to(self._noise, mask.shape)[mask]
                rows = columns[block][mask] / noise[:, None]
                torque = run.motion.torque[block][mask] / noise
                found.append((rows.T @ rows, rows.T @ torque, float(torque @ torque), len(rows)))
        return found

    def _prior(self, choice: Choice, parameters: int) -> tuple[Array, Array]:
        """Centre and precision of all parameters (p,)."""
        inertials = self._machine.inertials
        centre = np.concatenate([inertials, np.zeros(parameters - len(inertials))])
        spread = choice.prior * sizes(inertials).ravel() if len(inertials) else np.zeros(0)
        return centre, np.concatenate(
            [choice.correlated / spread**2, np.full(parameters - len(inertials), RIDGE)]
        )

    def _correlation(self, choice: Choice) -> float:
        """Rows that carry the information of one independent row, by the residuals of a plain fit."""
        inertials, terms = self.solution(choice)
        values = np.concatenate([inertials, *terms.values()])
        found = []
        for run in self.prepared(choice.delay):
            columns = np.concatenate([run.filtered, self._friction(choice, run)], axis=2)
            residual = run.motion.torque - columns @ values
            for column in residual.T:
                gamma = autocovariance(column - column.mean())
                found.append(2.0 * gamma.sum() / gamma[0] - 1.0)
        return float(np.median(found))


def _terms_of(law: FrictionLaw, other: FrictionLaw) -> FrictionLaw:
    """A law with the asymmetry, or the offset, of another."""
    return law.with_terms(asymmetric=other.asymmetric, offset=other.offset)


def sum_of(parts: Iterable[Array]) -> Array:
    """Sum of arrays of one shape."""
    return np.asarray(np.sum(list(parts), axis=0))


def _solved(gram: Array, slope: Array, precision: Array) -> Array:
    matrix = gram + np.diag(precision)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    factor = linalg.cho_factor(matrix * np.outer(scale, scale) + 1e-12 * np.eye(len(scale)))
    return np.asarray(scale * linalg.cho_solve(factor, scale * slope))
