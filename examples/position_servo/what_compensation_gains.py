"""What goals offset against weight and friction gain: position servos hold poses and follow a slow motion. No ROS is needed.

    python examples/position_servo/what_compensation_gains.py BUS.yaml robot.json arm.urdf TRAJECTORY.yaml [--port PORT] [--json FILE]

``BUS.yaml`` names port, servos and limits (`so101.yaml`), ``robot.json`` is what ``stribeck identify robot`` wrote, ``TRAJECTORY.yaml`` what
``stribeck design trajectory`` wrote: a path without collisions. The arm goes along it three times: as it is, with its weight borne, and with weight
and friction; each time with a rest of 3 s at eight places, and then once more slowly without. The table says how far the joints were from their
goals. The arm moves: keep clear of it.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import stribeck as sb
from position_servo import Goals, follow, position, smooth
from stribeck.servo.config import read_driver_config
from stribeck.servo.driver import Driver, DriverSample
from stribeck.session.excitation_file import read_excitation_file

PLACES, MOVE, REST, SETTLE = 8, 2.5, 3.0, 2.0
"""Places, shortest time to the next one [s], rest there [s], and how long of it is not counted [s]."""

SLOWLY, SPEED = 1.5, 0.5
"""Times the duration of the trajectory for the motion without rests; largest speed of the way to its begin [rad/s]."""

STEP = 1e-3
"""Difference of times from which velocities of goals follow [s]."""


class Course:
    """Goals from where the arm lies along a path and back, nowhere faster than along the path itself.

    :param path: positions (n,) [rad] over time, at rest at both ends.
    :param duration: of the path [s].
    :param lies: where the arm lies (n,) [rad].
    """

    def __init__(self, path: Goals, duration: float, lies: np.ndarray):
        self._path, self._duration, self._lies = path, duration, lies
        self.begin = 1.5 * float(np.abs(path(0.0) - lies).max()) / SPEED + 1.0
        self.move = max(MOVE, 1.5 * duration / PLACES)
        self.rests = self.begin + PLACES * (self.move + REST)
        self.ends = self.rests + SLOWLY * duration
        back = 1.5 * float(np.abs(path(duration) - lies).max()) / SPEED + 1.0
        self._back, self.seconds = back, self.ends + back + 0.5

    def __call__(self, t: float) -> np.ndarray:
        """Goals at a time [s]."""
        path, duration, lies = self._path, self._duration, self._lies
        if t < self.begin:
            return lies + smooth(t / self.begin) * (path(0.0) - lies)
        if t < self.rests:
            place, within = divmod(t - self.begin, self.move + REST)
            return path(duration * (place + smooth(within / self.move)) / PLACES)
        if t < self.ends:
            return path((t - self.rests) / SLOWLY)
        return path(duration) + smooth((t - self.ends) / self._back) * (lies - path(duration))

    def rates(self, t: float) -> np.ndarray:
        """Velocities of the goals at a time [rad/s]."""
        return (self(t + STEP) - self(t)) / STEP

    def errors(self, samples: list[DriverSample]) -> list[list[float]]:
        """Root mean squares of goal - position of each joint, at rest and in slow motion [rad]."""
        times = np.array([sample.stamp for sample in samples])
        times -= times[0]
        found = np.array([self(t) for t in times]) - np.array([sample.position for sample in samples])
        within = (times - self.begin) % (self.move + REST)
        resting = (times > self.begin) & (times < self.rests) & (within > self.move + SETTLE)
        moving = (times > self.rests + 1.0) & (times < self.ends)
        return [np.sqrt(np.nanmean(found[part] ** 2, axis=0)).tolist() for part in (resting, moving)]


def main() -> None:
    """Go along the trajectory with each compensation, and print the errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("bus", "drives", "urdf", "trajectory"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--port", help="in place of the file's")
    parser.add_argument("--json", type=Path, help="write the errors here [rad]")
    given = parser.parse_args()
    config = read_driver_config(given.bus)
    if given.port:
        config = replace(config, port=given.port)
    motion = read_excitation_file(given.trajectory).trajectory
    order = [motion.joints.index(name) for name in config.names]
    lies = position(config)

    def path(t: float) -> np.ndarray:
        return motion.states(np.array([t]))[0][0, order]

    course = Course(path, motion.duration, lies)
    compensators = {
        "none": None,
        "weight": sb.Compensator(given.drives, given.urdf, joints=config.names, gain=0.0),
        "weight and friction": sb.Compensator(given.drives, given.urdf, joints=config.names),
    }
    found = {}
    for name, compensator in compensators.items():
        samples = follow(Driver(config), course, course.seconds, compensator, course.rates)
        found[name] = course.errors(samples)
    print("RMS error [mrad]          " + "".join(f"{name:>15}" for name in config.names))
    for k, part in enumerate(("at rest", "slowly")):
        for name, rows in found.items():
            print(f"{part:8}{name:20}" + "".join(f"{1e3 * value:15.1f}" for value in rows[k]))
    if given.json:
        content = {name: dict(zip(("rest", "slow"), rows, strict=True)) for name, rows in found.items()}
        given.json.write_text(
            json.dumps({"joints": config.names, "errors": content, "seconds": 3 * course.seconds})
        )


if __name__ == "__main__":
    try:
        main()
    except sb.StribeckError as error:
        sys.exit(f"what_compensation_gains: {error}")
