"""Two emulated servos as the joints of one arm: their motions act on each other, as those of a real arm do.

The registers, the firmware's law, the bus and its faults are those of ``stribeck.emulator``; the physics of both joints is
:func:`two_link.step`. The supply does not sag.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.joint import BARE, EmulatedJoint, Firmware
from stribeck.model.control_laws import ControlState, ServoCommand
from stribeck.model.joint import Drive
from two_link import Link, Servo, TwoLinkArm, step

Due = tuple[Firmware, float, Callable[[float], object]]
"""A step of one joint that waits for the other joint: what the firmware is told, the supply [V], who hears of the position."""

DT = 0.001
"""Step of the physics [s]."""


class LinkedJoint(EmulatedJoint):
    """A joint of an :class:`EmulatedArm`, which takes its steps together with the other one."""

    def __init__(self, parameters: Drive, dt: float) -> None:
        super().__init__(parameters, BARE, 0.0, dt)
        self.drive, self.due = parameters, deque[Due]()
        self.act: Callable[[], None] = lambda: None

    def step(
        self,
        firmware: Firmware,
        push: float,
        open_voltage: float,
        count: int = 1,
        allowed: tuple[float, float] = (-math.inf, math.inf),
        observe: Callable[[float], object] = lambda position: None,
    ) -> int:
        """Take ``count`` steps as soon as the other joint has come as far; see the class above."""
        self.voltage = open_voltage
        self.due += [(firmware, open_voltage, observe)] * count
        self.act()
        return count


class EmulatedArm:
    """The physics of both joints, from the base outwards; it starts hanging at rest.

    :param links: of the arm, without the rotors.
    :param drives: servos of joint 1 and 2.
    """

    def __init__(self, links: tuple[Link, Link], drives: tuple[Drive, Drive], dt: float = DT) -> None:
        self._links, self._dt = links, dt
        self.joints = (LinkedJoint(drives[0], dt), LinkedJoint(drives[1], dt))
        self._modes = ["off", "off"]
        for joint in self.joints:
            joint.act = self._act

    def _act(self) -> None:
        while all(joint.due for joint in self.joints):
            due = [joint.due.popleft() for joint in self.joints]
            for k, (joint, (firmware, _, _)) in enumerate(zip(self.joints, due, strict=True)):
                if firmware.drive == "position" != self._modes[k]:
                    joint.state = joint.state._replace(control=ControlState(joint.state.position, 0.0))
                self._modes[k] = firmware.drive
            one, two = (
                Servo(
                    joint.drive.actuator.with_used_terms(firmware.gains),
                    joint.law,
                    joint.values,
                    firmware.gains,
                )
                for joint, (firmware, _, _) in zip(self.joints, due, strict=True)
            )
            commands = [
                ServoCommand(firmware.goal, float(firmware.drive == "position"), voltage)
                for firmware, voltage, _ in due
            ]
            states = (self.joints[0].state, self.joints[1].state)
            after, _ = step(TwoLinkArm(self._links, (one, two)), states, (commands[0], commands[1]), self._dt)
            for joint, state, (_, _, observe) in zip(self.joints, after, due, strict=True):
                joint.state = type(state)(float(state.position), float(state.velocity), state.control)
                observe(joint.state.position)


def emulated_arm(
    models: tuple[str, str], links: tuple[Link, Link], drives: tuple[Drive, Drive], noise: float = 0.3
) -> list[EmulatedServo]:
    """Servos with IDs 1 and 2 for :class:`stribeck.emulator.line.EmulatedLine` and all that is built on it.

    :param models: of the servos on the bus.
    :param noise: of their encoders [counts].
    """
    arm = EmulatedArm(links, drives)
    servos = []
    for number, (model, drive, joint) in enumerate(zip(models, drives, arm.joints, strict=True), 1):
        servo = EmulatedServo(
            model,
            drive,
            servo_id=number,
            voltage=drive.actuator.supply.nominal,
            supply_resistance=0.0,
            noise=noise,
            dt=DT,
        )
        servo.joint = joint
        joint.voltage = servo.open_voltage
        servos.append(servo)
    return servos
