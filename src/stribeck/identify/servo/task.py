"""The task of a fit: law, recordings and settings, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stribeck.errors import ConfigError
from stribeck.files.drive_entry import check_possible
from stribeck.identify.servo.objective import Split
from stribeck.identify.servo.programs import lanes_for
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.search import SEARCHES
from stribeck.model.actuator import EFFECT_PARAMETERS, Actuator
from stribeck.model.law import FrictionLaw
from stribeck.model.log import Batch, Log, TemperatureRange, common_actuator
from stribeck.model.parameters import ParameterSet
from stribeck.model.step import batch_for
from stribeck.recordings.sources import fingerprint


@dataclass(frozen=True, eq=False)
class FitTask:
    """Task of fitting one law to the runs of one servo; picklable."""

    split: Split
    actuator: Actuator
    law: FrictionLaw
    parameters: ParameterSet
    settings: FitSettings

    def batch(self, logs: Sequence[Log]) -> Batch:
        """Runs resampled on the time grid of the simulation."""
        return batch_for(logs, self.settings.dt, self.settings.integrator)

    def rollout(self) -> Rollout:
        """Compiled simulations of the runs to fit."""
        settings = self.settings
        lanes = lanes_for(len(self.split.train))
        return Rollout(
            self.batch(self.split.train),
            self.actuator,
            self.law,
            self.parameters,
            reset_period=settings.reset_period,
            dtype=settings.dtype,
            integrator=settings.integrator,
            lanes=min(settings.batch, lanes) if self.samples else lanes,
        )

    @property
    def samples(self) -> bool:
        """Whether the method keeps all trials in a study; other methods keep only their best points there."""
        settings = self.settings
        return settings.method not in SEARCHES or (
            settings.method == "cmaes" and settings.study.url is not None
        )

    @property
    def study_name(self) -> str:
        """Name of this task's study in its storage."""
        return f"stribeck {self.actuator.name} {self.law.name}"

    @property
    def study_signature(self) -> dict[str, object]:
        """Properties that must match before a study can be continued."""
        return {
            "actuator": self.actuator.name,
            "law": self.law.name,
            "recordings": fingerprint(self.split.train),
            "bounds": {p.name: [p.lower, p.upper] for p in self.parameters.free},
            "fixed": {p.name: p.value for p in self.parameters if not p.free},
            "effects": sorted(self.actuator.active_effects),
            "reset_period": self.settings.reset_period,
            "dt": self.settings.dt,
            "integrator": self.settings.integrator,
            "method": self.settings.method,
            "seed": self.settings.seed,
            "batch": self.settings.batch,
        }


def at_reference(actuator: Actuator, logs: Sequence[Log]) -> dict[str, float]:
    """Values that a fit does not identify with the effect ``temperature``.

    The reference is the mean temperature. Temperatures that hardly differ (:attr:`TemperatureRange.varies`) determine no
    coefficient: both are 0.
    """
    names, found = actuator.temperature_parameters, TemperatureRange.of(logs)
    if not names or found is None:
        return {}
    return {name: 0.0 for name in names if not found.varies} | {"reference_temperature": found.mean}


def task_for(
    split: Split,
    actuator: Actuator,
    law: FrictionLaw,
    settings: FitSettings,
    *,
    fixed: Mapping[str, float] | None = None,
    freed: Iterable[str] = (),
) -> FitTask:
    """Create a task and check that its parts are consistent.

    :param fixed: values of parameters that are not identified.
    :param freed: effect parameters to identify.
    :raises ConfigError: for unknown parameters, parameters that cannot be fixed or freed in this way, or nothing to
        identify.
    :raises RecordingError: for recordings of different servos.
    """
    logs = (*split.train, *split.validation)
    recorded = common_actuator(logs)
    if recorded != actuator.name:
        raise ConfigError(
            f"the recordings are of the servo {recorded!r}, not of {actuator.name!r}: both names must be "
            "equal (`servo`, name: in its YAML file, actuator of `bench`)"
        )
    parameters = actuator.parameters(law)
    fixed, freed = at_reference(actuator, logs) | dict(fixed or {}), tuple(freed)
    for name, value in fixed.items():
        parameters[name]  # raises for unknown names
        check_possible(name, value, "fixed")
    for name in freed:
        effect = {parameter: effect for effect, parameter in EFFECT_PARAMETERS.items()}.get(name)
        if effect is None:
            raise ConfigError(
                f"{name} is always identified unless it is fixed; valid here: {', '.join(EFFECT_PARAMETERS.values())}"
            )
        if effect not in actuator.active_effects:
            raise ConfigError(f"{name} can be identified only with its effect: add {effect} to `effects`")
        if name in fixed:
            raise ConfigError(f"{name} is both fixed and to be identified: choose one")
    parameters = parameters.fixed(fixed).freed(freed)
    if settings.reset_period is not None and settings.reset_period < 10.0 * settings.dt:
        raise ConfigError(
            f"a reset period of {settings.reset_period:g} s is too short: at least ten time steps are needed ({10.0 * settings.dt:g} s)"
        )
    if not parameters.free:
        raise ConfigError("all parameters are fixed: leave at least one to identify")
    return FitTask(split, actuator, law, parameters, settings)
