"""Position servos that follow slow sines, with goals offset against friction and weight. No ROS is needed.

    python examples/position_servo/position_servo.py BUS.yaml robot.json arm.urdf
    python examples/position_servo/position_servo.py config/record_xl330.yaml m4.json [bench.urdf]

``BUS.yaml`` names port, servos and limits as ``config/record.yaml`` does (`examples/position_servo/so101.yaml`), ``robot.json`` is what
``stribeck identify robot`` or ``stribeck identify servo`` wrote. Without a URDF friction alone is compensated, not the weight. The joints
move: keep clear of them.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import stribeck as sb
from stribeck.servo.config import DriverConfig, read_driver_config
from stribeck.servo.driver import Driver, DriverSample
from stribeck.servo.safety import LATE_REMEDY

SWING, PERIOD, PERIODS = 0.2, 15.0, 2
"""Amplitude [rad], period [s] and number of periods of the motion."""

SPEED, REST = 0.5, 2.0
"""Largest speed of the way to its middle [rad/s], and time that this way takes besides [s]."""

Goals = Callable[[float], np.ndarray]


def position(config: DriverConfig) -> np.ndarray:
    """Where the joints are [rad]; torque stays off."""
    driver = Driver(config)
    driver.connect()
    try:
        return driver.cycle().position
    finally:
        driver.close()


def smooth(share: float) -> float:
    """From 0 to 1, at rest at both ends; its largest rate is 1.5."""
    share = min(max(share, 0.0), 1.0)
    return share * share * (3.0 - 2.0 * share)


def swing(lies: np.ndarray, middle: np.ndarray) -> tuple[Goals, float, float]:
    """Goals from where the joints lie to the middle and whole periods about it; when they begin and end [s]."""
    way = 1.5 * float(np.abs(middle - lies).max()) / SPEED + REST

    def goals(t: float) -> np.ndarray:
        if t < way:
            return lies + smooth(t / way) * (middle - lies)
        return middle + SWING * math.sin(2.0 * math.pi * (t - way) / PERIOD)

    return goals, way, way + PERIODS * PERIOD


def follow(
    driver: Driver,
    goals: Goals,
    seconds: float,
    compensator: sb.Compensator | None,
    rates: Goals | None = None,
) -> list[DriverSample]:
    """Follow goals [rad] over time [s] in the cycle of the bus; returns the samples.

    :param rates: velocities of the goals [rad/s] over time, where they are planned.
    :raises StribeckError: if the driver stops with a fault, torque off.
    """
    samples: list[DriverSample] = []

    def each(sample: DriverSample) -> bool:
        samples.append(sample)
        now = driver.clock.now() - start
        goal = goals(now)
        if compensator is not None and sample.valid.all():
            rate = None if rates is None else rates(now)
            goal = compensator.goal(sample.position, goal, sample.stamp, rate)
        driver.set_goals(goal, driver.clock.now())
        return now < seconds and sample.state != "fault"

    driver.connect()
    driver.enable()
    start = driver.clock.now()
    try:
        driver.run(each)
        if driver.state == "fault":
            raise sb.StribeckError(f"{driver.reason}. {LATE_REMEDY}" if driver.disturbed else driver.reason)
    finally:
        driver.close()
    return samples


def distance(samples: list[DriverSample], goals: Goals, way: float) -> np.ndarray:
    """Root mean square of goal - position of each joint [rad], the way to the motion [s] left out."""
    begin = samples[0].stamp
    errors = [
        goals(sample.stamp - begin) - sample.position
        for sample in samples
        if sample.valid.all() and sample.stamp > begin + way
    ]
    return np.sqrt(np.mean(np.square(errors), axis=0))


def main(bus: Path, drives: Path, urdf: Path | None = None) -> None:
    """Swing every joint by 0.2 rad about where it is, half a minute each without compensation, with its weight and with its friction compensated."""
    config = read_driver_config(bus)
    stated = [drive.stated for drive in sb.read(drives).drives.values()]
    gains = None if any("stiffness" in one for one in stated) else [joint.p_gain for joint in config.joints]
    with_friction = sb.Compensator(drives, urdf, joints=config.names, p_gain=gains)
    rows: list[tuple[str, sb.Compensator | None]] = [("without compensation", None)]
    if urdf is None:
        rows += [("friction compensated", with_friction)]
    else:
        weight = sb.Compensator(drives, urdf, joints=config.names, p_gain=gains, gain=0.0)
        rows += [("weight compensated", weight), ("weight and friction compensated", with_friction)]
    if gains is not None:
        print(f"position gain of the servos: {', '.join(map(str, gains))}")
    middle = position(config)
    for title, used in rows:
        goals, way, seconds = swing(position(config), middle)
        errors = 1e3 * distance(follow(Driver(config), goals, seconds, used), goals, way)
        figures = ", ".join(f"{name} {error:.1f}" for name, error in zip(config.names, errors, strict=True))
        print(f"{title}: {figures} mrad from the goals")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bus", type=Path, metavar="BUS.yaml", help="port, servos and limits")
    parser.add_argument("drives", type=Path, metavar="DRIVES.json", help="what `stribeck identify` wrote")
    parser.add_argument(
        "urdf", type=Path, nargs="?", metavar="URDF", help="load or arm, whose weight is then compensated too"
    )
    given = parser.parse_args()
    try:
        main(**vars(given))
    except sb.StribeckError as error:
        sys.exit(f"position_servo: {error}")
