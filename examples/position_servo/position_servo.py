"""Position servos that follow slow sines, with goals offset against friction and weight. No ROS is needed.

    python examples/position_servo/position_servo.py BUS.yaml robot.json arm.urdf

``BUS.yaml`` names port, servos and limits as ``config/record.yaml`` does (`examples/position_servo/so101.yaml`), ``robot.json`` is what
``stribeck identify robot`` or ``stribeck identify servo`` wrote. The arm moves: keep clear of it.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import stribeck as sb
from stribeck.servo.config import read_driver_config
from stribeck.servo.driver import Driver, DriverSample


def follow(
    driver: Driver, goals: Callable[[float], np.ndarray], seconds: float, compensator: sb.Compensator | None
) -> list[DriverSample]:
    """Follow goals [rad] over time [s] in the cycle of the bus; returns the samples."""
    samples: list[DriverSample] = []

    def each(sample: DriverSample) -> bool:
        samples.append(sample)
        now = driver.clock.now() - start
        goal = goals(now)
        if compensator is not None and sample.valid.all():
            goal = compensator.goal(sample.position, goal, sample.stamp)
        driver.set_goals(goal, driver.clock.now())
        return now < seconds and sample.state != "fault"

    driver.connect()
    driver.enable()
    start = driver.clock.now()
    try:
        driver.run(each)
    finally:
        driver.close()
    return samples


def main(bus: Path, drives: Path, urdf: Path) -> None:
    """Swing every joint by 0.2 rad about where it is, for half a minute."""
    config = read_driver_config(bus)
    compensator = sb.Compensator(drives, urdf, joints=config.names)
    driver = Driver(config)
    driver.connect()
    middle = driver.cycle().position
    driver.close()
    follow(driver, lambda t: middle + 0.2 * math.sin(0.5 * t), 30.0, compensator)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
