r"""An arm of position servos in MuJoCo, as servos of the emulated bus drive it.

Each joint has a motor and its link, with play between them: :math:`q_l = q_m + p`, :math:`|p| \le b/2`. The motor follows

.. math::

    \tau = k_t\,(d V - k_t\dot q_m)/R, \qquad d = g K_p\,(\theta_d(t - T) - \epsilon\,round(q_m/\epsilon))

with the duty d in steps of encoder counts, zero within the dead zone, at least the punch beyond it. Goals act T after they arrive.
Friction between motor and gear is LuGre's, which rises with the load and varies with position (:class:`plants.friction.LuGre`);
links are MuJoCo's. Nothing here is of :mod:`stribeck.model.law`. The encoder is on the motor's side of the play.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from plants.friction import FloatArray, FrictionValues, LuGre
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.joint import Firmware
from stribeck.model.control_laws import ControlState
from stribeck.model.step import PlantState

PLAY_INERTIA, PLAY_DAMPING = 1e-5, 2e-3
"""Of what turns within the play [kg m²], and of the grease there [N m s/rad]."""

STOP = (0.004, 1.0)
"""Time constant [s] and damping ratio at the ends of the play and of the joints."""


@dataclass(frozen=True)
class MotorValues:
    """Motors of one kind.

    :param torque_constant: k_t [N m/A].
    :param resistance: R [ohm].
    :param armature: inertia at the output [kg m²].
    :param duty_gain: g, duty per rad and unit of P.
    :param goal_speed: at which the firmware moves the goal [rad/s].
    """

    torque_constant: float
    resistance: float
    armature: float
    duty_gain: float
    goal_speed: float


class ServoArm:
    """The arm, advanced together for all servos.

    :param urdf: of the robot.
    :param joints: names, in the order of ``servos``.
    :param servos: which drive them; they give their joints to the arm.
    :param friction: per joint, in the same order.
    :param backlash: b [rad].
    :param latency: T [s].
    :param mass_scale: of each joint's link, (n,).
    :param at: first positions (n,) [rad].
    """

    def __init__(
        self,
        urdf: Path,
        joints: Sequence[str],
        servos: Sequence[EmulatedServo],
        motor: MotorValues,
        friction: FrictionValues,
        *,
        backlash: float,
        latency: float,
        mass_scale: FloatArray,
        at: FloatArray,
    ) -> None:
        self._servos, self._motor, self._latency = tuple(servos), motor, latency
        self.dt, self.time = servos[0].joint.dt, 0.0
        self.model = _model(urdf, joints, motor.armature, backlash, mass_scale, self.dt)
        self.data = mujoco.MjData(self.model)
        self._at = np.array([self.model.joint(name).qposadr[0] for name in joints])
        self._dof = np.array([self.model.joint(name).dofadr[0] for name in joints])
        self.data.qpos[self._at] = at
        self._friction = LuGre(friction)
        self._commands: list[deque[tuple[float, Firmware]]] = [deque() for _ in servos]
        self._seen: list[Firmware | None] = [None] * len(servos)
        self._columns = [self._column(None)] * len(servos)
        self._table = np.array(self._columns)
        self.ramped = at.copy()
        self.steps = 0
        self.history: deque[FloatArray] = deque(maxlen=64)
        self.torque = self.current = self.duty = np.zeros(len(servos))
        for place, servo in enumerate(servos):
            servo.joint = _ArmJoint(self, place, servo)  # type: ignore[assignment]

    @property
    def position(self) -> FloatArray:
        """Of the motors [rad]."""
        return np.array(self.data.qpos[self._at])

    @property
    def velocity(self) -> FloatArray:
        """Of the motors [rad/s]."""
        return np.array(self.data.qvel[self._dof])

    @property
    def link_position(self) -> FloatArray:
        """Beyond the play [rad]."""
        return np.array(self.data.qpos[self._at] + self.data.qpos[self._at + 1])

    @staticmethod
    def _column(firmware: Firmware | None) -> tuple[float, ...]:
        """Whether it drives, goal, P, largest duty, count, dead zone and punch."""
        if firmware is None or firmware.drive != "position":
            return (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
        gain = float(firmware.gains.kp)
        limits = firmware.resolution, firmware.dead_zone, firmware.punch
        return (1.0, firmware.goal, gain, firmware.duty_limit, *limits)

    def advance(self, steps: int) -> None:
        """Go on to a step; commands are those that the servos have now."""
        for place, servo in enumerate(self._servos):
            if servo.firmware is not self._seen[place]:
                self._seen[place] = servo.firmware
                self._commands[place].append((self.time + self._latency, servo.firmware))
        while self.steps < steps:
            self._step()

    def _adopt(self) -> None:
        """Commands whose time has come."""
        changed = False
        for place, waiting in enumerate(self._commands):
            while waiting and waiting[0][0] <= self.time + 1e-9:
                column = self._column(waiting.popleft()[1])
                if column[0] and not self._columns[place][0]:
                    self.ramped[place] = self.data.qpos[self._at[place]]
                self._columns[place], changed = column, True
        if changed:
            self._table = np.array(self._columns)

    def _step(self) -> None:
        self._adopt()
        on, goal, gain, limit, count, zone, punch = self._table.T
        motor, q, v = self._motor, self.data.qpos[self._at], self.data.qvel[self._dof]
        reach = motor.goal_speed * self.dt
        self.ramped += on * np.clip(goal - self.ramped, -reach, reach)
        error = self.ramped - np.round(q / count) * count
        duty = motor.duty_gain * gain * error
        duty = np.sign(error) * np.maximum(np.abs(duty), punch) * (np.abs(error) > zone + 0.5 * count)
        self.duty = on * np.clip(duty, -limit, limit)
        voltage = np.array([servo.open_voltage for servo in self._servos])
        self.current = on * (self.duty * voltage - motor.torque_constant * v) / motor.resistance
        self.torque = motor.torque_constant * self.current
        self._friction.modulate(q, self.torque)
        self.data.qfrc_applied[self._dof] = self.torque - self._friction.torque(v, self.dt)
        mujoco.mj_step(self.model, self.data)
        self.steps += 1
        self.time += self.dt
        self.history.append(self.position)


class _ArmJoint:
    """A joint of the arm as the servo sees it, in place of an :class:`~stribeck.emulator.joint.EmulatedJoint`."""

    def __init__(self, arm: ServoArm, place: int, servo: EmulatedServo) -> None:
        self._arm, self._place, self._done = arm, place, 0
        self.dt, self.voltage, self.goal_speed = arm.dt, servo.open_voltage, arm._motor.goal_speed
        self.loop_of = servo.joint.loop_of
        self._update()

    def _update(self) -> None:
        arm, k = self._arm, self._place
        goal = ControlState(float(arm.ramped[k]), 0.0)
        self.state = PlantState(float(arm.position[k]), float(arm.velocity[k]), goal)
        self.motor_torque, self.current, self.duty = (
            float(part[k]) for part in (arm.torque, arm.current, arm.duty)
        )

    def step(
        self, firmware: Firmware, push: float, open_voltage: float, count: int = 1,
        allowed: tuple[float, float] = (0.0, 0.0), observe: Callable[[float], object] = lambda _: None,
    ) -> int:  # fmt: skip
        """Advance the whole arm, unless another servo has done so."""
        self._done += count
        self._arm.advance(self._done)
        self.voltage = open_voltage
        for positions in list(self._arm.history)[-count:]:
            observe(float(positions[self._place]))
        self._update()
        return count


def _model(
    urdf: Path, joints: Sequence[str], armature: float, backlash: float, mass_scale: FloatArray, dt: float
) -> mujoco.MjModel:
    """The robot with a joint for the play beside each of its joints, without contacts."""
    spec = mujoco.MjSpec.from_file(str(urdf))
    spec.option.timestep, spec.option.integrator = dt, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    for name, scale in zip(joints, mass_scale, strict=True):
        joint = spec.joint(name)
        body = joint.parent
        joint.armature, joint.solref_limit = armature, STOP
        body.mass *= scale
        body.fullinertia = np.asarray(body.fullinertia) * scale
        body.inertia = np.asarray(body.inertia) * scale
        if backlash:
            body.add_joint(
                name=f"{name}_play",
                type=mujoco.mjtJoint.mjJNT_HINGE,
                axis=joint.axis,
                pos=joint.pos,
                range=(-0.5 * backlash, 0.5 * backlash),
                limited=mujoco.mjtLimited.mjLIMITED_TRUE,
                armature=PLAY_INERTIA,
                damping=[PLAY_DAMPING, 0.0, 0.0],
                solref_limit=STOP,
            )
    return spec.compile()
