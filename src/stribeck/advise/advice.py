r"""What a joint of a position servo suffers from friction and weight, and what a higher gain or offset goals would gain.

At rest the error :math:`e = \theta^* - \theta` lies anywhere in :math:`-\tau_e/K \pm \tau_b/K`, with the stiffness K, the load
:math:`\tau_e` and the friction at rest :math:`\tau_b` (different by direction where the law says so): the second part is half the dead band,
the first the sag. The smallest sufficient gain keeps the sum within the wanted error. Intervals (90 %) are quantiles over random parameters
as uncertain as the fit left them, for slow motion also over the presliding length, which no fit knows, and for slow motion and hunting over
the error of the model (:data:`SLOWEST_ERROR`). The random parameters of each joint are its own, so that chance does not repeat from joint to joint.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from stribeck.advise.hunting import Hunting, describing, hunting
from stribeck.advise.plant import DELAY, JointPlant, plant_of, voltage_of
from stribeck.advise.stairs import FASTEST, LENGTHS, slowest_speeds, stable_speed, stair_height
from stribeck.errors import ConfigError
from stribeck.evaluate.draws import draws_of
from stribeck.identify.common.quantiles import normal_quantile
from stribeck.model.arrays import Array
from stribeck.model.joint import STIFFNESS, Drive
from stribeck.model.temperature import at_temperature

NO_LOAD = 1e-9
"""Loads below are rounding errors of the pose [N m]."""

LEVEL = 0.9
"""Probability of intervals."""

DRAWS = 499
"""Random sets of parameters for intervals: the 25th smallest and largest values are their ends, unbiased in their probability."""

SHARE = 0.8
"""Share of the friction that offset goals cancel, as the default of :class:`stribeck.Compensator`."""

WEIGHT_ERROR = 0.1
"""Assumed relative error of the weight that offset goals bear."""

SLOWEST_ERROR, HUNTS_ERROR = 0.15, 0.04
"""Relative errors of the slowest speed and of the gain that hunts beyond those of stability: of joints with LuGre friction and Maxwell slip
(``bench/advice.py``, seeds 95, 97 and 99), whose stiffness at rest and memory the laws do not have, and whose parameters count twice."""

MARGIN = 0.5
"""Largest advised gain as a share of the one that hunts."""


class Value(NamedTuple):
    """A number with its 90 % interval; the interval is NaN where the fit states none."""

    value: float
    lower: float = math.nan
    upper: float = math.nan


@dataclass(frozen=True)
class AdviceSettings:
    """What is asked of every joint.

    :param tolerance: wanted largest error at rest [rad].
    :param kp: gain of the servos; ``None``: that of the recordings. Where a file states the stiffness in N m/rad, it is what the servos call
        the gain of the recordings: gains are then told in their numbers, and the stiffness remains that of the file.
    :param delay: in the loop of the servo [s].
    :param supply: voltage [V]; ``None``: that of the recordings.
    :param seed: of random parameters.
    """

    tolerance: float = 0.01
    kp: float | None = None
    delay: float = DELAY
    supply: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class JointAdvice:
    """Advice for one joint in one pose.

    :param kp: present gain, in the numbers that were given or those of the drive.
    :param stiffness: [N m/rad].
    :param dead_band: width [rad].
    :param sag: by the load [rad].
    :param error: largest error at rest [rad].
    :param with_offsets: the same with offset goals [rad].
    :param sufficient: gain at which the error is within the tolerance.
    :param hunts: gain from which on a deflection does not die away; infinite for none.
    :param hunting: details of it.
    :param slowest: slowest smooth speed [rad/s], 0 if every speed is, infinite if none was found.
    :param stair: height of the stairs below it [rad], 0 where there is no such speed.
    :param largest: torque limit [N m].
    :param notes: what the file cannot tell.
    """

    joint: str
    kp: float
    stiffness: float
    load: float
    dead_band: Value
    sag: Value
    error: Value
    with_offsets: float
    sufficient: Value
    hunts: Value
    hunting: Hunting
    slowest: Value
    stair: float
    largest: float
    tolerance: float
    notes: tuple[str, ...]

    @property
    def advised(self) -> float | None:
        """The gain to set: the sufficient one if it is well below hunting, else ``None``."""
        return self.sufficient.value if self.sufficient.value <= MARGIN * self.hunts.value else None

    @property
    def text(self) -> str:
        """The advice in one sentence."""
        now, then = f"{1e3 * self.error.value:.3g}", f"{1e3 * self.with_offsets:.3g}"
        if self.error.value <= self.tolerance:
            return f"no change needed: the error at rest is at most {now} mrad"
        offsets = f"send offset goals, which reduces the error at rest from {now} to {then} mrad"
        if self.advised is None:
            hunts = f"{self.hunts.value:.3g}"
            return (
                f"{offsets}; the gain of {self.sufficient.value:.3g} that would reduce it to {1e3 * self.tolerance:.3g} mrad is too close to the gain at "
                f"which the joint hunts ({hunts})"
            )
        return f"raise the gain from {self.kp:.3g} to {self.sufficient.value:.3g}, or {offsets}"


def advise(
    joint: str,
    drive: Drive,
    *,
    inertia: float = 0.0,
    load: float = 0.0,
    settings: AdviceSettings | None = None,
) -> JointAdvice:
    """Advice for a joint; see the module docstring.

    :param inertia, load: of the pose, without the rotor [kg m², N m].
    :raises ConfigError: for settings that are not valid, or gain and voltage that are missing.
    """
    asked = settings or AdviceSettings()
    for name in ("tolerance", "delay"):
        value = getattr(asked, name)
        if not (math.isfinite(value) and value >= 0.0) or (name == "tolerance" and value == 0.0):
            raise ConfigError(f"{name}: expected a positive number, found {value:g}")

    def made(one: Drive, supply: float | None = asked.supply) -> JointPlant:
        gain = asked.kp if one.gains is None else None
        return plant_of(one, kp=gain, inertia=inertia, load=load, delay=asked.delay, supply=supply)

    plant = made(drive)
    kp = asked.kp if asked.kp is not None else float(drive.gains.kp if drive.gains else math.nan)
    seed = (asked.seed, zlib.crc32(joint.encode()))
    value = _Intervals(plant, [made(one) for one in _random(drive, seed)], seed)
    found = hunting(plant)
    ends = slowest_speeds(plant, np.array(LENGTHS))
    stable, slowest = stable_speed(plant), float(ends[1])
    rest = left_by_offsets(max(plant.breakaway()), abs(plant.load))
    shift = found.stiffness / found.described if math.isfinite(found.described) else 1.0
    return JointAdvice(
        joint=joint,
        kp=kp,
        stiffness=plant.stiffness,
        load=load,
        dead_band=value(lambda one: one.dead_band),
        sag=value(lambda one: one.load / one.stiffness if abs(one.load) > NO_LOAD else 0.0),
        error=value(_error),
        with_offsets=max(rest / plant.stiffness, plant.resolution),
        sufficient=value(lambda one: kp * _error(one) / asked.tolerance),
        hunts=value(lambda one: kp * shift * describing(one)[0] / one.stiffness, HUNTS_ERROR),
        hunting=found,
        slowest=value(lambda one: stable_speed(one) / stable if stable else 0.0, SLOWEST_ERROR, ends),
        stair=stair_height(plant, 0.5 * slowest) if 0.0 < slowest < math.inf else 0.0,
        largest=plant.largest,
        tolerance=asked.tolerance,
        notes=(
            *_notes(drive, plant, (stable, slowest), load, inertia),
            *conditions(drive, made, voltage_of(drive, asked.supply)),
        ),
    )


class _Intervals:
    """Values of quantities of a plant with intervals over random ones."""

    def __init__(self, plant: JointPlant, drawn: list[JointPlant], seed: Sequence[int]) -> None:
        self._plant, self._drawn = plant, drawn
        self._normal = np.random.default_rng((*seed, 1)).standard_normal((2, len(drawn)))

    def __call__(
        self, of: Callable[[JointPlant], float], error: float = 0.0, scale: Array | None = None
    ) -> Value:
        """The value, and its interval with a relative standard deviation of the model in addition.

        :param scale: factor at the lower end, the median and the upper end (3,) of the 90 % interval of something else that is unknown.
        """
        factors, middle = np.exp(error * self._normal[0]), 1.0
        if scale is not None:
            ends = normal_quantile(LEVEL) * np.array([-1.0, 0.0, 1.0])
            factors, middle = factors * np.interp(self._normal[1], ends, scale), float(scale[1])
        drawn = [of(one) * f for one, f in zip(self._drawn, factors.tolist(), strict=True)]
        return _with_interval(middle * of(self._plant), drawn)


def _with_interval(value: float, drawn: Sequence[float]) -> Value:
    if not len(drawn) or not math.isfinite(value):
        return Value(value)
    beyond = round(0.5 * (1.0 - LEVEL) * (len(drawn) + 1))
    ordered = np.sort(drawn)
    return Value(value, min(float(ordered[beyond - 1]), value), max(float(ordered[-beyond]), value))


def _random(drive: Drive, seed: Sequence[int]) -> list[Drive]:
    """Drives with random parameters; none if the file states no intervals."""
    if not drive.intervals:
        return []
    drawn = draws_of(drive, DRAWS, seed)
    found = []
    for k in range(DRAWS):
        values = {
            name: float(drawn[name][k]) if name in drawn else value for name, value in drive.values.items()
        }
        one = replace(drive, values=values)
        if STIFFNESS in drawn:
            stated = dict(drive.stated)
            stated[STIFFNESS] = replace(stated[STIFFNESS], value=float(drawn[STIFFNESS][k]))
            one = replace(one, stated=stated)
        found.append(one)
    return found


def _error(plant: JointPlant) -> float:
    return (max(plant.breakaway()) + abs(plant.load)) / plant.stiffness


def left_by_offsets(friction: float, weight: float) -> float:
    """What offset goals leave of an error at rest: of its parts by friction and by weight, or of the torques."""
    return (1.0 - SHARE) * friction + WEIGHT_ERROR * weight


def _notes(
    drive: Drive, plant: JointPlant, speeds: tuple[float, float], load: float, inertia: float
) -> tuple[str, ...]:
    """What the file cannot tell, with the speeds of stable and of smooth motion."""
    notes = []
    stable, slowest = speeds
    if math.isinf(slowest):
        notes.append(
            f"the joint sticks at all simulated speeds, up to {FASTEST:g} rad/s: its damping is too small to state a slowest smooth speed"
        )
    if not stable and not drive.law.of_kind("fading"):
        notes.append(
            f"the law {drive.law.name.upper()} has no friction that decreases with speed, so it cannot predict steps in slow motion: record ramps of 0.01 to "
            "0.3 rad/s for two minutes, and identify with law m2 or m4"
        )
    if not load and not inertia:
        notes.append("no robot model was given: the load is assumed to have no weight and no inertia")
    if max(plant.breakaway()) + abs(load) > plant.largest:
        notes.append(
            f"load and friction ({max(plant.breakaway()) + abs(load):.3g} N m) exceed the largest torque of "
            f"the motor ({plant.largest:.3g} N m): at no gain can the joint keep this pose"
        )
    return tuple(notes)


LESS = 0.9
"""Supply voltage of a battery that runs down, as a share."""

KELVIN = 10.0
"""Difference of temperature for which the dead band is stated [K]."""


def conditions(
    drive: Drive, made: Callable[[Drive, float | None], JointPlant], voltage: float | None
) -> tuple[str, ...]:
    """Notes on the dead band.

    :param made: the plant of a drive at a supply voltage.
    :param voltage: present supply voltage [V], ``None`` if it does not count.
    """
    notes = [_temperature(drive, lambda one: made(one, voltage).dead_band)]
    if (
        voltage is not None
        and (low := made(drive, LESS * voltage).dead_band) != made(drive, voltage).dead_band
    ):
        notes.append(
            f"at {LESS * voltage:.3g} V instead of {voltage:.3g} V the dead band is {_mrad(low)} mrad"
        )
    backlash = drive.stated.get("backlash")
    if backlash is None:
        notes.append(
            "the file does not state the backlash of the gears: identify the robot with a test for backlash"
        )
    elif backlash.value > 0.0:
        ends = (
            ""
            if backlash.interval is None
            else f" ({_mrad(backlash.interval[0])} to {_mrad(backlash.interval[1])})"
        )
        notes.append(
            f"the gears have a backlash of {_mrad(backlash.value)}{ends} mrad; neither a higher gain nor goal offsets remove it"
        )
    return tuple(notes)


def _temperature(drive: Drive, dead_band: Callable[[Drive], float]) -> str:
    reference = drive.values.get("reference_temperature")
    if "friction_per_kelvin" in drive.values and reference is not None:
        cold, warm = (
            dead_band(replace(drive, values=at_temperature(drive.values, reference + one)))
            for one in (-KELVIN, KELVIN)
        )
        return f"the dead band is {_mrad(cold)} mrad at {reference - KELVIN:.3g} degC, and {_mrad(warm)} mrad at {reference + KELVIN:.3g} degC"
    if drive.temperature is None:
        return "the temperature of the recordings is not known: servos stick less when they are warm"
    return (
        f"the file does not state how friction changes with temperature, and is valid near {drive.temperature:.3g} degC only: record a cold and a warm servo, "
        "and identify with the effect temperature"
    )


def _mrad(value: float) -> str:
    return f"{1e3 * value:.3g}"
