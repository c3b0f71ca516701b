r"""Measured points of the drive/backdrive diagram: snapshots just before a joint begins to move, and while it goes on slowly.

At rest, motor and load hold each other while friction bears the difference :math:`|\tau_m + \tau_e|`. The snapshot at which the joint
begins to move shows the most that friction can bear, :math:`\tau_f^m(0, \tau_m, \tau_e)`: a *drive* torque if it moves with
the motor, a *backdrive* torque if it moves with the load. In even motion the friction is :math:`|\tau_m + \tau_e - J\ddot\theta|`.
The motor torque follows from the firmware's law, or from the recorded duty, with the parameters of a file; the load is gravity.

Source: Duclusaud et al. 2025, §II-C, fig. 3. The trajectory ``breakaway`` (:mod:`stribeck.model.trajectories`) makes such
recordings: slow triangles about several positions, which are several loads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d
from scipy.signal import lsim, lti

from stribeck.identify.common.correlation import correlation_time
from stribeck.model.arrays import Array
from stribeck.model.bench import Pendulum, gravity_torque, inertia
from stribeck.model.control_laws import ControlState, Gains, ServoCommand, VoltageControl
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget, viscous_slope
from stribeck.model.log import Log, Samples

STEP = 0.005
"""Time step at which recordings are looked at [s]."""

WINDOW = 0.1
"""Time over which the velocity is a straight line's [s]."""

SMOOTHED = 5
"""Rows of which positions are averaged, against the steps of the encoder."""

STILL = 0.3
"""Time within which a joint at rest does not leave its place [s]."""

COUNTS = 1.5
"""Steps of the encoder by which it leaves it."""

FOLLOWED = 4.0
"""Steps of the encoder over which the speed of a beginning motion is measured, after the joint has left its place."""

LONGEST, FINE = 2.0, 4
"""Longest time for which a beginning motion is followed backwards [s], and parts of a row in which it is looked for."""

EVEN, LONG = 0.15, 0.25
"""Largest relative change of the speed of even motion, and its duration [s]."""

SLOW = 0.5
"""Largest speed of even motion that is looked at [rad/s]."""

EFFORT = 0.02
"""Snapshots at which motor or load have less than this share of the largest torque are of no region."""

Kind = Literal["drive", "backdrive"]


@dataclass(frozen=True)
class DiagramPoint:
    """One snapshot.

    :param run: name of the recording.
    :param time: of the snapshot in it [s].
    :param rows: first and last row of the snapshot at steps of :data:`STEP`.
    :param kind: whether the joint moves with the motor or with the load.
    :param speed: zero just before motion begins, otherwise of the even motion [rad/s].
    :param motor_torque, external_torque: with their signs [N m].
    :param friction: that bears the difference [N m].
    :param deviation: its standard deviation [N m].
    """

    run: str
    time: float
    rows: tuple[int, int]
    kind: Kind
    speed: float
    motor_torque: float
    external_torque: float
    friction: float
    deviation: float


class _Snapshot(NamedTuple):
    """Rows of a snapshot: around the beginning of motion, or of even motion; the direction of the motion; even motion or not."""

    start: int
    stop: int
    direction: float
    moving: bool


def measured_points(logs: Sequence[Log], drive: Drive) -> list[DiagramPoint]:
    """All snapshots of the recordings of a servo on a bench.

    :param drive: whose motor gives the torque.
    """
    found: list[DiagramPoint] = []
    for log in logs:
        samples = log.resample(STEP)
        motor, load = acting_torques(samples, drive, drive.values)
        largest = EFFORT * max(float(np.max(np.abs(motor))), 1e-9)
        for snapshot in _snapshots(samples, drive.actuator.resolution, _followed(samples, drive)):
            point = _point(samples, drive, snapshot, motor, load)
            if min(abs(point.motor_torque), abs(point.external_torque)) > largest:
                found.append(point)
    return found


def acting_torques(samples: Samples, drive: Drive, p: Mapping[str, float]) -> tuple[Array, Array]:
    """Torques of motor and load along a recorded run (N,) [N m], with the values p."""
    log, actuator = samples.log, drive.actuator
    load = np.asarray(gravity_torque(_pendulum(log), samples.position, p["q_offset"]))
    velocity = smoothed_velocity(samples)
    supply = samples.supply_voltage if actuator.uses_measured_supply else log.setup.supply_voltage
    command = ServoCommand(samples.goal, samples.torque_enable, supply, samples.temperature)
    if log.pwm is not None and isinstance(actuator.control, VoltageControl):
        output: Any = log.pwm.at(samples.time)
    else:
        gains = Gains(log.setup.kp, log.setup.ki, log.setup.kd)
        state = _firmware_states(samples, drive, gains)
        output = actuator.control.output(p, gains, state, samples.goal, samples.position, velocity)
    return np.asarray(actuator.control.torque(p, output, command, velocity)), load


def _pendulum(log: Log) -> Pendulum:
    return Pendulum(log.setup.mass, log.setup.length, log.setup.arm_mass)


def _firmware_states(samples: Samples, drive: Drive, gains: Gains) -> ControlState:
    """State of the firmware at each row: its goal after the ramp, and the integral of the error (N,)."""
    state = drive.actuator.control.first_state(float(samples.goal[0]))
    rows = []
    for goal, position in zip(samples.goal.tolist(), samples.position.tolist(), strict=True):
        state = drive.actuator.control.next_state(gains, state, goal, position, samples.dt)
        rows.append(state)
    return ControlState(*(np.array(part, dtype=np.float64) for part in zip(*rows, strict=True)))


def smoothed_velocity(samples: Samples) -> Array:
    """Slope of a straight line through the positions of :data:`WINDOW` about each row (N,) [rad/s]."""
    half = max(1, round(0.5 * WINDOW / samples.dt))
    lags = samples.dt * np.arange(-half, half + 1)
    padded = np.pad(samples.position, half, mode="edge")
    return np.asarray(np.convolve(padded, lags[::-1], mode="valid") / np.sum(lags**2))


def _snapshots(samples: Samples, resolution: float, followed: Array) -> list[_Snapshot]:
    """Rests at the end of which the joint begins to move, and stretches of slow, even motion.

    :param followed: of :func:`_followed`.
    """
    enabled = samples.torque_enable > 0.5
    smooth = uniform_filter1d(samples.position, SMOOTHED, mode="nearest")
    width, most = round(STILL / samples.dt), round(LONG / samples.dt)
    spread = maximum_filter1d(smooth, width) - minimum_filter1d(smooth, width)
    still = (spread < COUNTS * resolution) & enabled
    found = []
    for start, stop in _stretches(still):
        # The window is centred: the rest goes on for half of it.
        last = min(stop + width, len(smooth))
        place = float(np.median(smooth[max(start, stop - width) : stop]))
        away = np.flatnonzero(np.abs(smooth[stop:last] - place) > COUNTS * resolution)
        if away.size and enabled[stop : stop + int(away[0]) + 1].all():
            left = stop + int(away[0])
            direction = float(np.sign(smooth[left] - place))
            first, last = _beginning(direction * (smooth - place) / resolution, left, followed)
            found.append(_Snapshot(max(start, first), max(last, start + 2), direction, moving=False))
    velocity = smoothed_velocity(samples)
    slowest = COUNTS * resolution / STILL
    moving = (np.abs(velocity) > slowest) & ~still & enabled & (np.abs(velocity) < SLOW)
    for start, stop in _stretches(moving):
        for first in range(start + width, stop - most, most):
            part = velocity[first : first + most]
            if np.ptp(part) < EVEN * abs(float(part.mean())) + 2.0 * slowest:
                found.append(_Snapshot(first, first + most, float(np.sign(part.mean())), moving=True))
    return found


def _beginning(distance: Array, left: int, followed: Array) -> tuple[int, int]:
    """Rows within which a motion began that has gone further than :data:`COUNTS` steps of the encoder at the row ``left``.

    A joint that breaks away follows its goal; beginning and speed of the goal follow from two positions, and the beginning is
    known to half a step of the encoder.

    :param distance: from the place of rest in the direction of the motion (N,) [steps of the encoder].
    :param followed: of :func:`_followed`.
    """
    beyond = np.flatnonzero(distance[left:] > COUNTS + FOLLOWED)
    reached = left + int(beyond[0]) if beyond.size else len(distance) - 1
    between = max(reached - left, 1) * FINE
    late = followed[between:] if between < len(followed) - FINE else followed[-FINE:]
    early = followed[: len(late)]
    ratio = max(float(distance[reached]), COUNTS + 1.0) / float(distance[left])
    before = min(
        int(np.searchsorted(early * ratio - late, 0.0)), len(late) - 2
    )  # the ratio falls with the time since the beginning
    speed = float(distance[left]) / max(float(early[before]), 1e-9)
    half = 1.0 + 0.5 / max(speed * float(early[before + 1] - early[before]) * FINE, 0.05)
    begun = left - before / FINE
    return max(0, math.floor(begun - half)), math.ceil(begun + half) + 1


def _followed(samples: Samples, drive: Drive) -> Array:
    r"""How far a joint at rest has followed a goal that begins to move by one per row, at fractions 1/:data:`FINE` of a row (N,).

    :math:`J\ddot x + c\dot x + k x = k t`, with the load's inertia, the damping and the stiffness of the servo.
    """
    pendulum, dt = _pendulum(samples.log), samples.dt
    mass = float(np.mean(inertia(pendulum, drive.values["armature"])))
    damping = -_slope(samples, drive, 0.0, 1e-3) + float(viscous_slope(drive.law, drive.values, 0.0))
    stiffness = -_slope(samples, drive, 1e-3, 0.0)
    times = np.arange(FINE * round(LONGEST / dt)) / FINE  # rows
    system = lti([stiffness], [mass / dt**2, damping / dt, stiffness])
    return np.asarray(lsim(system, times, times)[1])


def _slope(samples: Samples, drive: Drive, position: float, velocity: float) -> float:
    """Change of the motor's torque per change of position or velocity, at the goal [N m/rad or N m s/rad]."""
    setup, actuator = samples.log.setup, drive.actuator
    gains = Gains(setup.kp, setup.ki, setup.kd)
    state = actuator.control.first_state(0.0)
    command = ServoCommand(0.0, 1.0, setup.supply_voltage, math.nan)

    def torque(at: float, speed: float) -> float:
        output = actuator.control.output(drive.values, gains, state, 0.0, at, speed)
        return float(actuator.control.torque(drive.values, output, command, speed))

    return (torque(position, velocity) - torque(0.0, 0.0)) / (position + velocity)


def _stretches(mask: Any) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _point(samples: Samples, drive: Drive, snapshot: _Snapshot, motor: Array, load: Array) -> DiagramPoint:
    rows = slice(snapshot.start, snapshot.stop)
    turning = snapshot.direction
    speed = abs(float(smoothed_velocity(samples)[rows].mean())) if snapshot.moving else 0.0
    acceleration = _acceleration(samples, rows) if snapshot.moving else 0.0
    pull = inertia(_pendulum(samples.log), drive.values["armature"]) * acceleration
    total = motor[rows] + load[rows] - pull
    means = float(motor[rows].mean()), float(load[rows].mean())
    count = rows.stop - rows.start
    if snapshot.moving:
        deviation = float(np.std(total, ddof=1)) / math.sqrt(
            max(count / max(1.0, correlation_time([total])), 2.0)
        )
    else:
        # Anywhere within the rows the motion may have begun: a uniform distribution between their ends.
        deviation = float(
            np.hypot(np.ptp(total) / math.sqrt(12.0), np.std(np.diff(total)) / math.sqrt(2.0 * count))
        )
    # Each step of the encoder has an error of its own; a row may be half a step older or newer than the firmware's position.
    step = drive.actuator.resolution
    passed = float(np.ptp(samples.position[rows])) / step if snapshot.moving else 0.0
    error = math.hypot(step / math.sqrt(12.0 * (1.0 + passed)), 0.5 * samples.dt * speed)
    floor = error * abs(_slope(samples, drive, step, 0.0))
    return DiagramPoint(
        samples.log.name,
        float(samples.time[rows.stop - 1] - samples.time[0]),
        (rows.start, rows.stop),
        "drive" if turning * means[0] > 0.0 else "backdrive",
        speed,
        *means,
        turning * float(total.mean()),
        math.hypot(deviation, floor),
    )


def _acceleration(samples: Samples, rows: slice) -> float:
    """Of even motion, from a parabola through its positions [rad/s²]."""
    time = samples.time[rows] - samples.time[rows].mean()
    return float(2.0 * np.polyfit(time, samples.position[rows], 2)[0])


def expected_friction(point: DiagramPoint, drive: Drive, p: Mapping[str, float]) -> float:
    """The friction that a law bears at a point [N m]."""
    turning = math.copysign(1.0, point.motor_torque if point.kind == "drive" else point.external_torque)
    positive, negative = friction_budget(
        drive.law, p, point.motor_torque, point.external_torque, turning * point.speed
    )
    return float(positive if turning > 0.0 else negative)
