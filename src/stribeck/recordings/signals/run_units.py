"""Noticing recordings in other units than SI, by magnitudes and by signals that contradict each other."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from stribeck.errors import RecordingError
from stribeck.model.actuator import Actuator
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.log import Log
from stribeck.recordings.signals.units import UNITS

LARGEST_POSITION = 4 * np.pi
"""Positions beyond two turns of a pendulum [rad] are taken to be in degrees or counts."""

LARGEST_SPEED = 60.0
"""Speeds above this [rad/s], 570 rev/min of a servo's joint, are taken to be of positions in degrees."""

LONGEST_INTERVAL = 0.2
"""Samples further apart than this [s] are taken to have times in milliseconds."""

LARGEST_VOLTAGE = 60.0
LARGEST_RATIO = 20.0
"""Largest ratio of two positions that move together: less than that of degrees to radians."""

TWICE = (1.9, 2.1)
"""Velocities so many times the slope of the position come from a doubled time axis, their inverse from a halved one."""

CLOSE = 0.15
"""Largest relative difference of a ratio from that of a unit."""

OPPOSITE = 0.3
"""Largest distance from -1 of the ratio of a velocity of the other sign."""

WRONG = "one of them is wrong, in another unit, or belongs to another joint"

STRIDE = 5
"""Samples over which slopes are taken."""

ADVICE = "give its unit in a table of `signals`"

STRONGER = 5.0
"""Torque of gravity, in multiples of the servo's stall torque, from which the load cannot be what was moved."""

AWAY, HANGING, AWAY_SHARE = 0.5, 0.2, 0.1
"""A joint this far from its goal [rad], yet at rest and this close to hanging straight down [rad], in this share of the
samples, has no torque: a controller that only lags behind its goal holds it where gravity does something."""

UNRELATED = 0.2
"""Velocities with less correlation with the slope of the position are of something else."""

SLOWEST = 0.3
"""Slopes of the position whose root mean square, without noise, is below this [rad/s] are compared with nothing."""

SMOOTH = 0.5
"""Usual steps between samples must be smaller [rad] for a larger one to be told as a jump."""

LEAD, LEAD_SAMPLES = 0.015, 20
"""A position that moves so much before its goal [s] does not follow it; looked for over so many samples."""


def overload(logs: Sequence[Log], actuator: Actuator) -> str:
    """A line on the heaviest load if the servo cannot have moved it; else empty."""
    stall, heaviest = actuator.datasheet_torque, max(logs, key=lambda log: log.setup.load)
    torque = STANDARD_GRAVITY * heaviest.setup.load
    if not stall or torque <= STRONGER * stall:
        return ""
    setup = heaviest.setup
    return (
        f"{heaviest.name}: the weight of {setup.mass:g} kg at {setup.length:g} m is {torque / stall:.3g} "
        f"times the stall torque of {stall:g} N m: are masses in grams, or lengths in mm?"
    )


def limp(log: Log) -> str:
    """A line on a joint that hangs far from its goal although torque is said to be on; else empty."""
    position, speed = log.position.value, np.abs(np.gradient(log.position.value, log.position.time))
    away = np.abs(log.goal.at(log.position.time) - position) > AWAY
    share = float(np.mean(away & (np.abs(position) < HANGING) & (speed < 0.1)))
    if np.min(log.torque_enable.value) < 0.5 or share < AWAY_SHARE:
        return ""
    return (
        f"{log.name}: in {100.0 * share:.0f} % of the samples the joint hangs at rest, more than {AWAY:g} rad from its goal: if torque was off there, give "
        "torque_enable as a recorded signal instead of a constant"
    )


def oddities(log: Log) -> list[str]:
    """Lines on what contradicts the set-up of a run: samples that are missing, torque that seems off, a goal that follows its joint, a gain of zero."""
    lines = [limp(log), _early(log)]
    time = log.position.time
    steps = np.diff(time)
    if steps.max() > LONGEST_INTERVAL:
        lines.append(
            f"{log.name}: no samples for {steps.max():.2g} s after {time[np.argmax(steps)] - time[0]:.3g} s: "
            "the goal is assumed to be constant there; split the run if it was not"
        )
    if np.std(log.position.value) > 0.0 and np.array_equal(log.goal.at(time), log.position.value):
        lines.append(f"{log.name}: goal and position are equal: were both read from the same column?")
    if log.setup.kp == 0.0 and np.std(log.position.value) > AWAY * np.std(log.goal.at(time)) > 0.0:
        lines.append(
            f"{log.name}: kp is 0, although the joint moves as far as its goal: give the gain of the recording"
        )
    return [line for line in lines if line]


def _early(log: Log) -> str:
    """A line on a position that moves before its goal, as if one were taken for the other; else empty."""
    step = float(np.median(np.diff(log.position.time)))
    grid = np.arange(log.position.time[0], log.position.time[-1], step)
    if len(grid) < 2 * LEAD_SAMPLES:
        return ""
    at = np.clip(np.searchsorted(log.goal.time, grid, side="right") - 1, 0, len(log.goal.time) - 1)
    goal, position = (
        np.diff(log.goal.value[at]),
        np.diff(np.interp(grid, log.position.time, log.position.value)),
    )
    inner = slice(LEAD_SAMPLES, len(goal) - LEAD_SAMPLES)
    if min(np.std(goal[inner]), np.std(position[inner])) < 1e-9:
        return ""
    lags = range(-LEAD_SAMPLES, LEAD_SAMPLES + 1)
    together = [
        float(np.corrcoef(goal[inner.start - k : inner.stop - k], position[inner])[0, 1]) for k in lags
    ]
    best = int(np.argmax(together))
    lead = -lags[best] * step
    if lead < max(LEAD, 2.0 * step) or together[best] < 0.8:
        return ""
    return f"{log.name}: the position moves {1e3 * lead:.0f} ms before its goal: were they interchanged, or do their clocks differ?"


def check_units(
    log: Log,
    what: str,
    *,
    names: Mapping[str, str] | None = None,
    declared: Collection[str] = (),
    advice: str = ADVICE,
) -> None:
    """Refuse values that are only plausible in other units than SI.

    Magnitudes of signals whose unit was declared are not doubted; contradictions between signals always are.

    :param what: the run, for messages.
    :param names: names of the signals in the recording, where they differ from ours.
    :param declared: signals whose unit was given.
    :param advice: what to do about a wrong unit.
    :raises RecordingError: for these values.
    """
    name = {"time": "time", **dict.fromkeys(vars(log), ""), **(names or {})}
    name = {signal: text or signal for signal, text in name.items()}
    for problem in _wrong_units(log, name, declared, advice):
        raise RecordingError(f"{what}: {problem}")


def _wrong_units(log: Log, name: Mapping[str, str], declared: Collection[str], advice: str) -> Iterator[str]:
    """What is only plausible in other units, by magnitude, then by contradiction."""
    for signal in ("position", "goal"):
        largest = float(np.max(np.abs(getattr(log, signal).value)))
        if largest > LARGEST_POSITION and signal not in declared:
            yield f"{name[signal]} reaches {largest:.1f} rad, but radians are expected: is it in degrees or counts? {advice}"
    interval = float(np.median(np.diff(log.position.time)))
    if interval > LONGEST_INTERVAL:
        yield f"samples are {interval:g} s apart, but seconds are expected: is {name['time']} in milliseconds?"
    if log.supply_voltage is not None:
        volts = float(np.median(log.supply_voltage.value))
        if volts > LARGEST_VOLTAGE:
            found = f"{name['supply_voltage']} is around {volts:g} V"
            yield f"{found}, but volts are expected: is it in tenths of a volt?"
    if log.pwm is not None and (largest := float(np.max(np.abs(log.pwm.value)))) > 1.001:
        found = f"{name['pwm']} reaches {largest:g}, but a duty in [-1, 1] is expected"
        yield f"{found}: is it in percent or counts? {advice}"
    if (turn := _whole_turn(log)) is not None:
        found = f"{name['position']} jumps by a whole turn at {turn:.3f} s"
        yield f"{found}: unwrap positions and goals first (numpy.unwrap)"
    if (slope := _slope(log)) is not None:
        yield from _contradictions(log, slope, name, declared, advice)


def _contradictions(
    log: Log, slope: np.ndarray, name: Mapping[str, str], declared: Collection[str], advice: str
) -> Iterator[str]:
    """Compare the slope of the position with measured velocities, and the position with its goal."""
    ratio = _velocity_ratio(log, slope)
    remove = "velocity from the table of `signals`, so that it is computed from the position"
    if ratio == 0.0:
        yield f"{name['velocity']} is always 0 although {name['position']} moves: remove {remove}"
    if ratio is not None and math.isnan(ratio):
        found = f"{name['velocity']} is not the derivative of {name['position']}"
        yield f"{found}: does it belong to another joint, or is one of them noise? Remove {remove}"
    elif ratio is not None and not 0.4 < ratio < 2.5:
        found = f"{name['velocity']} is {ratio:.3g} times the derivative of {name['position']}"
        wrong = "is one of them in degrees, rev/min or counts, or does it have the wrong sign?"
        yield f"{found}, but rad and rad/s are expected: {wrong} {advice}"
    speed = float(np.quantile(np.abs(slope), 0.99))
    if speed > LARGEST_SPEED and "position" not in declared:
        found = f"{name['position']} moves at {speed:.3g} rad/s"
        yield f"{found}, but radians are expected: is it in degrees? {advice}"
    time, on = log.position.time, log.torque_enable.at(log.position.time) > 0.5
    goal, position = log.goal.at(time)[on], log.position.value[on]
    if len(goal) < 20 or min(np.std(goal), np.std(position)) < 1e-9:
        return
    share = float(np.cov(goal, position)[0, 1] / np.var(goal, ddof=1))
    together = float(np.corrcoef(goal, position)[0, 1])
    if together > 0.9 and not 1.0 / LARGEST_RATIO < share < LARGEST_RATIO:
        found = f"{name['position']} moves {share:.3g} times as far as {name['goal']}"
        yield f"{found}, but radians are expected: is one of them in degrees or counts? {advice}"
    if together < -0.9 and share < -0.5:
        found = f"{name['position']} moves in the opposite direction to {name['goal']}"
        yield f"{found}: set sign: -1 for one of them in a table of `signals`"


def _whole_turn(log: Log) -> float | None:
    """When a position jumps by a whole turn from one sample to the next [s], as angles do that are kept within one turn."""
    time, value = log.position.time, log.position.value
    jumps = np.abs(np.diff(value))
    whole = (np.abs(jumps - 2.0 * np.pi) < 0.1 * np.pi) & (np.diff(time) < LONGEST_INTERVAL)
    return float(time[int(np.argmax(whole)) + 1]) if whole.any() and np.median(jumps) < SMOOTH else None


def _slope(log: Log) -> np.ndarray | None:
    """Slope of the position over :data:`STRIDE` samples; ``None`` with too few of them."""
    time, value = log.position.time, log.position.value
    if len(time) < 20:
        return None
    return np.asarray((value[STRIDE:] - value[:-STRIDE]) / (time[STRIDE:] - time[:-STRIDE]))


def _velocity_ratio(log: Log, slope: np.ndarray) -> float | None:
    r"""Measured velocity divided by the slope of the position, by least squares; ``None`` without clear motion, NaN
    for velocities that are not correlated with it.

    Noise and quantisation of the position, of standard deviation :math:`\sigma`, add :math:`2 \sigma^2 / T^2` to the mean
    square of slopes over the time T, and would make the ratio too small; a position that barely moves has no other slopes.
    White noise adds :math:`6 \sigma^2` to the mean square of the second differences, to which smooth motion adds little.
    """
    measured = log.velocity.at(log.position.time)[STRIDE // 2 : STRIDE // 2 + len(slope)]
    interval = STRIDE * float(np.median(np.diff(log.position.time)))
    noise = float(np.mean(np.diff(log.position.value, 2) ** 2)) / (3.0 * interval**2)
    motion = float(np.mean(slope**2)) - noise
    if motion < SLOWEST**2:
        return None
    product = float(np.mean(slope * measured))
    together = product / math.sqrt(max(motion * float(np.mean(measured**2)), 1e-300))
    if np.any(measured) and abs(together) < UNRELATED:
        return math.nan
    return product / motion


def clock_error(ratio: float) -> str:
    """What is wrong with the time axis if velocities are ``ratio`` times the slopes of positions; empty if nothing is."""
    if abs(ratio / 1e3 - 1.0) < CLOSE:
        return "the time is in milliseconds"
    if TWICE[0] < ratio < TWICE[1]:
        return "the time axis is doubled"
    return "the time axis is halved" if ratio > 0.0 and TWICE[0] < 1.0 / ratio < TWICE[1] else ""


def cause_of(ratio: float) -> str:
    """The likely cause of a velocity that is ``ratio`` times the slope of the position, other than 1, in words."""
    if abs(ratio + 1.0) < OPPOSITE:
        return "one of them has the wrong sign"
    if ratio < 0.0:
        return WRONG
    if clock := clock_error(ratio):
        return f"{clock}, or the velocity is wrong"
    for unit, factor in (("deg/s", UNITS["deg"]), ("rpm", UNITS["rpm"])):
        if abs(ratio * factor - 1.0) < CLOSE:
            return f"the velocity is in {unit}"
    if abs(ratio / UNITS["deg"] - 1.0) < CLOSE:
        return "the position is in degrees"
    if ratio > 10.0 or ratio < 0.1:
        return "one is on the motor side of a gear, and the other on the joint side"
    return WRONG
