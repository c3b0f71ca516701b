"""Fits of an arm to recordings, as computed by `stribeck identify arm`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from stribeck.errors import ConfigError, check_valid
from stribeck.identify.arm.base_parameters import BaseParameters
from stribeck.identify.arm.config import IdentificationConfig
from stribeck.identify.arm.consistent import ConsistentFit, fit_consistent, fit_log_cholesky
from stribeck.identify.arm.friction.drives import element_estimates
from stribeck.identify.arm.friction.full_fit import FullFit, fit_full
from stribeck.identify.arm.friction.selection import FrictionSelection, ModelChoice
from stribeck.identify.arm.least_squares import LinearFit, Weighting, fit_linear, fit_rows
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.motion import ProcessedMotion, motion_of, move_alone
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.regressor import Friction, Machine, base_of_motion, regressor_unit, structural_base
from stribeck.identify.arm.residuals import scores
from stribeck.identify.common.quantiles import normal_estimate
from stribeck.model.actuator import JointUnits
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate

Fit = LinearFit | ConsistentFit | FullFit

FITS = ("ols", "asymmetric", "weighted", "generalised", "robust", "consistent", "log-cholesky", "full")
"""Names of the fits, in the order of computation."""

USUAL = ("ols", "asymmetric", "weighted", "consistent", "full")
NEED_URDF = ("consistent", "log-cholesky")


@dataclass(frozen=True)
class Scored:
    """A fit with its predictions.

    :param motions: runs by set (``train``, ``validation``), processed as the fit requires.
    :param predictions: predicted torques at the rows of each run, by set.
    """

    fit: Fit
    motions: Mapping[str, Sequence[ProcessedMotion]]
    predictions: Mapping[str, Sequence[Array]]

    @property
    def errors(self) -> dict[str, Any]:
        """Scores by set; see :func:`~stribeck.identify.arm.residuals.scores`."""
        return {name: scores(self.motions[name], self.predictions[name]) for name in self.motions}

    @property
    def parameters(self) -> dict[str, float]:
        """Estimates by name."""
        fit = self.fit
        if isinstance(fit, LinearFit):
            return dict(fit.named)
        names = () if fit.machine.arm is None else fit.machine.arm.parameter_names
        values = dict(zip(names, fit.inertials.ravel().tolist(), strict=True))
        if isinstance(fit, ConsistentFit):
            return {**values, **dict(zip(fit.names, fit.values.tolist(), strict=True))}
        for element in fit.machine.elements:
            values |= {f"{name}_{element}": value for name, value in fit.values(element).items()}
        return values

    def estimates(self, usual: JointUnits) -> dict[str, Estimate]:
        """Estimates with units, intervals and statuses by name.

        :param usual: units of couplings, and of a machine without URDF.
        """
        fit, units = self.fit, self.fit.machine.units(usual)
        full = isinstance(fit, FullFit)
        sigma = fit.inertial_sigma.ravel() if isinstance(fit, FullFit) else fit.sigma
        estimates = {
            name: normal_estimate(value, regressor_unit(name, units), deviation)
            for (name, value), deviation in zip(self.parameters.items(), sigma.tolist(), strict=not full)
        }
        if isinstance(fit, FullFit):
            for element in fit.machine.elements:
                of_element = element_estimates(fit, element, units[element])
                estimates |= {f"{name}_{element}": one for name, one in of_element.items()}
        return estimates


class Identification:
    """Fits of one machine to recordings, each computed on first use.

    :param train, validation: the recordings; those of validation are only predicted.
    :param tell: called with the present stage of the computation.
    :param terms: names of terms that the friction of the full fit has beside those that it chooses.
    """

    def __init__(
        self,
        machine: Machine,
        config: IdentificationConfig,
        train: Sequence[ArmRecording],
        validation: Sequence[ArmRecording] = (),
        tell: Callable[[str], None] = lambda stage: None,
        terms: Sequence[str] = (),
    ) -> None:
        self._terms = tuple(terms)
        self.machine, self.config, self._tell = machine, config, tell
        self._recordings = {"train": train, **({"validation": validation} if validation else {})}
        self._motions: dict[float, dict[str, list[ProcessedMotion]]] = {}

    def of(self, machine: Machine) -> Identification:
        """The fits of another machine to the same recordings."""
        validation = self._recordings.get("validation", ())
        return Identification(
            machine, self.config, self._recordings["train"], validation, self._tell, self._terms
        )

    def applies(self, name: str) -> bool:
        """Whether this machine supports a fit."""
        return self.machine.arm is not None or name not in NEED_URDF

    def fit(self, name: str) -> Scored:
        """A fit by name.

        :raises ConfigError: for a name that is not in :data:`FITS`, or a fit that the machine does not support.
        """
        check_valid(name, FITS, "unknown fit")
        if not self.applies(name):
            raise ConfigError(f"the fit {name!r} needs a URDF, but the machine's file names none")
        self._tell(name)
        makers: dict[str, Callable[[], Fit]] = {
            "ols": lambda: self._linear("ordinary"),
            "asymmetric": lambda: self._linear("asymmetric"),
            "weighted": lambda: self._weighted,
            "generalised": lambda: self._linear("generalised"),
            "robust": lambda: self._linear("robust"),
            "consistent": lambda: self._consistent,
            "log-cholesky": lambda: self._near(fit_log_cholesky),
            "full": lambda: self._full,
        }
        return self._scored(makers[name]())

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of the machine, friction included."""
        return self._base("symmetric")

    @cached_property
    def one_at_a_time(self) -> bool:
        """Whether joints move one at a time."""
        return move_alone(self.motions()["train"])

    def _base(self, friction: Friction) -> BaseParameters:
        """Base parameters for any motion; those of the recorded one if joints move one at a time."""
        protocol, train = self.config.protocol, self.motions()["train"]
        if not self.one_at_a_time:
            return structural_base(self.machine, protocol.rest, friction)
        used = [fit_rows(motion, protocol) for motion in train]
        return base_of_motion(
            self.machine, [motion.states for motion in train], used, protocol.rest, friction
        )

    @cached_property
    def choice(self) -> tuple[ModelChoice, Mapping[str, float]]:
        """The model selected by cross-validation for the full fit, and the relative error after each step."""
        return self._selection.choose(lambda step: self._tell(f"full: choice of terms, {step}"), self._terms)

    def motions(self, delay: float = 0.0) -> dict[str, list[ProcessedMotion]]:
        """The runs by set."""
        if delay not in self._motions:
            protocol = self.config.protocol
            self._motions[delay] = {
                name: [motion_of(run, protocol, delay) for run in runs]
                for name, runs in self._recordings.items()
            }
        return self._motions[delay]

    def _scored(self, fit: Fit) -> Scored:
        motions = self.motions(fit.choice.delay if isinstance(fit, FullFit) else 0.0)
        predictions = {name: [fit.predict(motion) for motion in runs] for name, runs in motions.items()}
        return Scored(fit, motions, predictions)

    def _linear(self, kind: Literal["asymmetric"] | Weighting) -> LinearFit:
        train = self.motions()["train"]
        if kind == "asymmetric":
            base = self._base("asymmetric")
            return fit_linear(self.machine, train, self.config.protocol, friction="asymmetric", base=base)
        return fit_linear(self.machine, train, self.config.protocol, kind, base=self.base)

    @cached_property
    def _weighted(self) -> LinearFit:
        return self._linear("weighted")

    def _near(self, solve: Callable[..., ConsistentFit]) -> ConsistentFit:
        config = self.config
        train = self.motions()["train"]
        return solve(self.machine, train, config.protocol, config.neighbourhood, self._weighted.noise)

    @cached_property
    def _consistent(self) -> ConsistentFit:
        def watch(iteration: int, parameters: Array) -> None:
            self._tell(f"consistent: IPOPT iteration {iteration}")

        return self._near(partial(fit_consistent, watch=watch))

    @cached_property
    def _selection(self) -> FrictionSelection:
        names: Mapping[str, float]
        if self.machine.arm is None:
            inertials, names = np.zeros(0), self._weighted.named
        else:
            near = self._consistent
            inertials, names = near.inertials.ravel(), dict(zip(near.names, near.values, strict=True))
        symbol = self.machine.inertia_name
        return FrictionSelection(
            self.machine,
            lambda delay: self.motions(delay)["train"],
            self.config.protocol,
            inertials,
            np.array([names.get(f"{symbol}_{element}", 0.0) for element in self.machine.elements]),
            self._weighted.noise,
        )

    @cached_property
    def _full(self) -> FullFit:
        choice, _ = self.choice
        self._motions = {delay: runs for delay, runs in self._motions.items() if delay in (0.0, choice.delay)}
        train = self.motions(choice.delay)["train"]
        _, terms = self._selection.solution(choice)
        rest = self.config.protocol.rest
        return fit_full(self.machine, train, choice, rest, self._weighted.noise, terms, self._tell)


def arm_of(fit: Fit) -> ArmModel | None:
    """The arm with the inertials of a fit; ``None`` for a fit of base parameters."""
    arm = fit.machine.arm
    if arm is None or isinstance(fit, LinearFit):
        return None
    return arm.with_inertials(fit.inertials.ravel())


def standstill(fit: FullFit, motions: Sequence[ProcessedMotion]) -> dict[str, Any]:
    r"""Excess of torques at rest over the friction budget, :math:`\max(0, |\tau - \tau_{rigid}| - \tau_f^m)`.

    Per joint: number of rows at rest, share of them beyond the budget, mean excess, and mean budget [N m or N].
    """
    rows, outside, budgets = [], [], []
    for motion in motions:
        parts = fit.torques(motion)
        rows.append(motion.resting)
        outside.append(np.maximum(np.abs(motion.torque - parts.rigid) - parts.budget, 0.0))
        budgets.append(parts.budget)
    resting, beyond, width = (np.concatenate(part) for part in (rows, outside, budgets))
    joints = []
    for j in range(resting.shape[1]):
        mask = resting[:, j]
        distance = beyond[mask, j]
        joints.append(
            {
                "rows": int(mask.sum()),
                "outside": float(np.mean(distance > 0.0)) if mask.any() else None,
                "distance": float(distance.mean()) if mask.any() else None,
                "budget": float(width[mask, j].mean()) if mask.any() else None,
            }
        )
    return {"per_joint": joints}
