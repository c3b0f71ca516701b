"""A lever that stops where it touches something, without a force sensor: the external torque of ``sb.Compensator``.

    python examples/contact/stop_on_contact.py

The lever and the wall are simulated; its friction is 20 % more than the file says, its mass 5 % more than the URDF's. It first swings to and fro
to learn its friction, then moves on slowly until its external torque passes the threshold of an alarm, and stays there. For a robot of your own,
replace :class:`Lever` by its driver.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import NamedTuple

import stribeck as sb
from stribeck.files.drives import Drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import law_named

MASS, LENGTH, ROTOR = 2.0, 0.4, 0.2
"""Point mass [kg] at the end of the lever [m]; rotor inertia at the joint [kg m²]."""

COULOMB, VISCOUS = 3.0, 1.5
"""Friction as identified [N m, N m s/rad]."""

PERIOD = 0.002
"""Of the control loop [s]."""

LEARNING = 10.0
"""So long the lever swings before it moves to the wall [s]."""

WALL, STIFFNESS, DAMPING = 0.9, 20_000.0, 60.0
"""Where the wall is [rad], and what it is like [N m/rad, N m s/rad]."""

URDF = f"""<robot name="lever"><link name="base"/><link name="lever"><inertial><origin xyz="0 0 {-LENGTH}"/><mass value="{MASS}"/>
<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="lever" type="continuous"><parent link="base"/><child link="lever"/><axis xyz="0 -1 0"/></joint></robot>"""


class Lever:
    """A simulated lever with Coulomb and viscous friction, hanging down at 0, and a wall."""

    def __init__(self, friction: float = 1.2, mass: float = 1.05, wall: float = WALL) -> None:
        self.position = self.velocity = self.force = 0.0
        self._friction, self._mass, self._wall = friction, mass * MASS, wall
        self._inertia = ROTOR + self._mass * LENGTH**2

    def advance(self, torque: float) -> None:
        """Move for a period under a motor torque [N m]."""
        dt = PERIOD / 20
        for _ in range(20):
            deep = self.position - self._wall
            self.force = max(STIFFNESS * deep + DAMPING * self.velocity, 0.0) if deep > 0.0 else 0.0
            weight = self._mass * 9.81 * LENGTH * math.sin(self.position)
            free = self.velocity + (torque - weight - self.force) / self._inertia * dt
            free /= 1.0 + self._friction * VISCOUS / self._inertia * dt
            slower = max(abs(free) - self._friction * COULOMB / self._inertia * dt, 0.0)
            self.velocity = math.copysign(slower, free)
            self.position += self.velocity * dt


class Stopped(NamedTuple):
    """What became of a move to the wall.

    :param delay: from touching the wall to the stop [s]; NaN if it was not found.
    :param position: where the lever stopped, NaN if it did not [rad].
    :param force: largest torque of the wall on the lever, and what remains at the end [N m].
    """

    delay: float
    position: float
    force: tuple[float, float]


def files(folder: Path) -> tuple[Path, Path]:
    """The file of drives and the URDF, as an identification leaves them."""
    law = law_named("m1")
    estimates = {
        "armature": fixed(ROTOR, "kg m^2"),
        "friction_base": fixed(COULOMB, "N m"),
        "friction_viscous": fixed(VISCOUS, "N m s/rad"),
    }
    drives, urdf = folder / "lever.json", folder / "lever.urdf"
    actuator = torque_actuator("rotary", largest=40.0)
    write_drives(drives, Drives({"lever": torque_drive(actuator, law, estimates)}))
    urdf.write_text(URDF)
    return drives, urdf


def wanted(time: float) -> tuple[float, float, float]:
    """Goal of the lever: it swings about 0, rests for a second, then moves on at 0.25 rad/s; position, velocity, acceleration."""
    if time < LEARNING:
        w = 0.8 * math.pi
        return 0.5 * math.sin(w * time), 0.5 * w * math.cos(w * time), -0.5 * w * w * math.sin(w * time)
    return 0.25 * max(time - LEARNING - 1.0, 0.0), 0.25 * (time > LEARNING + 1.0), 0.0


def moved(loop: sb.Compensator, lever: Lever, seconds: float, stops: bool = True) -> Stopped:
    """Swing, then move towards the wall; stop at the first contact of the slow move."""
    inertia = ROTOR + MASS * LENGTH**2
    torque, hold, touched, delay, largest = 0.0, math.nan, math.nan, math.nan, 0.0
    for k in range(round(seconds / PERIOD)):
        time, q, v = PERIOD * k, lever.position, lever.velocity
        goal, rate, bend = (hold, 0.0, 0.0) if math.isfinite(hold) else wanted(time)
        friction = loop.torque([q], [v], effort=[torque], q_goal=[goal], qd_goal=[rate], t=time)
        found = loop.external_torque
        if stops and time > LEARNING and math.isnan(hold) and found is not None and found.contact.any():
            hold, delay = q, time - touched
        weight = MASS * 9.81 * LENGTH * math.sin(q)
        torque = inertia * (bend + 225.0 * (goal - q) + 30.0 * (rate - v)) + weight + float(friction[0])
        lever.advance(torque)
        if lever.force > 0.0:
            touched, largest = (time if math.isnan(touched) else touched), max(largest, lever.force)
    return Stopped(delay, hold, (largest, lever.force))


def main() -> None:
    """Move to the wall twice, without and with stopping."""
    with tempfile.TemporaryDirectory() as folder:
        drives, urdf = files(Path(folder))
        for stops in (False, True):
            loop = sb.Compensator(drives, urdf, effort_meaning="motor", max_torque=15.0)
            found = moved(loop, Lever(), 18.0, stops)
            largest, last = found.force
            if stops:
                print(
                    f"stopped {1e3 * found.delay:.0f} ms after it touched the wall, at {found.position:.3f} rad"
                )
            print(
                f"{'stopping at contacts' if stops else 'moving on'}: the wall was pressed with {largest:.1f} N m at most, "
                f"{last:.1f} N m at the end"
            )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    main()
