"""Motor and external torques on the transmissions, from commands and measured efforts."""

from __future__ import annotations

from operator import le

import numpy as np

from stribeck.live.friction import LARGEST_FEEDBACK, FrictionModel
from stribeck.live.learning.latency import GoalLatency
from stribeck.live.learning.residual import Delayed
from stribeck.live.samples import Loads, State, Wish
from stribeck.live.settings import Settings
from stribeck.live.stability import steepest_feedback
from stribeck.live.states.doubt import DoubtError, finite
from stribeck.live.states.incoming import Command
from stribeck.live.states.servo_state import ServoStates
from stribeck.model.arrays import Array
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import Dynamics

LOAD_FILTER = 0.05
r"""Time constant of the measured motor torque without the feed-forward torque [s].

A delay :math:`\delta` leaves at most :math:`\delta / T` of the feed-forward torque in the estimate, so that even with
20 ms of delay the loop through the robot is a contraction.
"""

MODELLED_SHARE = 0.48
"""Part of a modelled weight that counts as load [1].

With it no position servo of `bench/position_servos.py` is worse off than with its weight alone compensated, where friction is
0.3 to 2 times the identified one, the model is 20 % wrong and goals act 140 ms late, unknown to the compensation.
"""

SMALL = 1e-3
"""Torque as a fraction of the largest [1], and velocity [rad/s] at which the slopes of a firmware are taken."""

LARGEST_EFFORT = 10.0
"""Efforts beyond this multiple of the motor's stall torque are rejected as impossible."""


class LoadEstimate:
    """Loads of n joints; arrays in the coordinates of the parameter files unless stated otherwise.

    :param dynamics: rigid-body model. An observer needs the acting torques then, and the model's gravity torque takes the
        place of efforts that are not measured where goals are offset.
    """

    def __init__(
        self,
        model: FrictionModel,
        joint_map: JointMap,
        settings: Settings,
        servos: ServoStates,
        dynamics: Dynamics | None = None,
    ) -> None:
        self._model, self._map, self._servos = model, joint_map, servos
        self.observed = dynamics is not None and settings.adapt
        self._mode, self._meaning = settings.mode, settings.effort_meaning
        self._largest_effort = (LARGEST_EFFORT * model.stall).tolist()
        modelled = (
            settings.mode == "goal_offset" and settings.effort_meaning == "none" and model.load_dependent
        )
        self._dynamics = dynamics if modelled else None
        self._steepest, self.gain = steepest_feedback(model.joints) if modelled else 0.0, settings.gain
        self._matter = settings.effort_meaning != "none" and model.load_dependent
        zero: Array = np.zeros(len(model.joints))
        self._idle = self.latest = Loads(zero, zero, False)
        self._filtered: Array | None = None
        self._state: State | None = None
        self._wish: tuple[Command | None, Array, float] = (None, zero, 0.0)
        self.latency = GoalLatency(len(model.joints)) if settings.mode == "goal_offset" else None
        """Measures the delays from goals to positions, where goals are commanded."""
        self._gains: tuple[Array, Array] | None = None
        self._follows = zero, zero
        self._own, self._controller = Delayed(settings.timing.loop_delay), Delayed(settings.timing.loop_delay)

    @property
    def modelled(self) -> bool:
        """Whether the loads are the gravity torques of the model; zero where friction would then amplify itself at this gain."""
        return self._dynamics is not None and self.gain * self._steepest < LARGEST_FEEDBACK

    def restart(self) -> None:
        """Forget the measured and the feed-forward torques; keep those of the controller."""
        self._filtered = self._state = None
        self._own.clear()
        if self.latency is not None:
            self.latency.restart()

    def sent(self, stamp: float, torque: Array) -> None:
        """Store the friction torque sent in response to a state, in the robot's coordinates [N m]."""
        if self.observed:
            self._own.add(stamp, torque)
        command, goal, age = self._wish
        if (
            self.latency is not None
            and self._state is not None
            and command is not None
            and self.latency.due(stamp)
        ):
            own = self._map.servo_torque(torque) + self.feed_forward_of(command)
            sent = goal + self._offset(goal, own, self._state)
            self.latency.update(stamp, self._state.position, sent, *self._dynamics_of_servos(), age)

    def _dynamics_of_servos(self) -> tuple[Array, Array]:
        """D/K [s] and J/K [s²] of each servo with its rotor, by the firmware's gains, 0 where unknown (n,)."""
        kp, supply, model = self._servos.kp, self._servos.supply, self._model
        if self._gains is None or not all(map(np.array_equal, self._gains, (kp, supply))):
            self._gains = kp.copy(), supply.copy()
            zero, one = np.zeros_like(kp), np.ones_like(kp)
            torque, slow = SMALL * model.limit, SMALL * one
            per_torque = model.offsets(torque, kp, supply) / torque
            braked = model.firmware_torque(zero, zero, zero, kp, supply)
            braked = (braked - model.firmware_torque(zero, zero, slow, kp, supply)) / slow
            drag = np.where(np.isfinite(braked), braked, 0.0) + model.viscous(one, one)
            rotors = np.array([joint.values.get("armature", 0.0) for joint in model.joints])
            self._follows = drag * per_torque, rotors * per_torque
        return self._follows

    def commanded(self, time: float | None, effort: Array) -> None:
        """Store a controller's effort that applies from ``time`` on, in the robot's coordinates [N m]."""
        if self.observed and time is not None:
            self._controller.add(time, effort)

    def acting(self, stamp: float, effort: Array, delay: float) -> Array | None:
        """Motor torque that acts at a state, in the robot's coordinates [N m]; ``None`` if unknown.

        :param effort: as measured, in the robot's coordinates.
        :param delay: from a measurement to the torque sent in response [s].
        """
        if self._mode == "sum":
            self._own.delay = self._controller.delay = delay
            own, controller = self._own.at(stamp), self._controller.at(stamp)
            if own is None or controller is None or not finite(controller):
                return None
            return own + controller
        return effort if self._meaning == "motor" and finite(effort) else None

    def loads(
        self,
        state: State,
        effort: Array,
        command: Command | None,
        wish: Wish,
        applied: Array,
        dt: float,
        trusted: bool = True,
    ) -> Loads:
        """Motor torque without the feed-forward torque, and external torque; zero if friction depends on neither.

        :param effort: as measured.
        :param applied: feed-forward torque contained in it [N m].
        :param trusted: whether the positions of all joints are; the modelled weight depends on them.
        :raises DoubtError: for an impossible effort where one is needed.
        """
        self._state, self._wish = state, (command, wish.goal, wish.age)
        if self._dynamics is not None and self.modelled:
            self.latest = self._of_model(self._dynamics, state) if trusted else self._idle
        else:
            known = self._matter
            present = self._present(state, effort, command, wish.goal, applied, dt) if known else self._idle
            self.latest = present
        return self.latest

    def _present(
        self, state: State, effort: Array, command: Command | None, goal: Array, applied: Array, dt: float
    ) -> Loads:
        motor = None if command is None else self._controller_torque(state, goal, command)
        if self._meaning == "link":
            external = -self._possible(effort)
            return Loads(-external if motor is None else self._possible(motor), external, True)
        if motor is None:
            motor = self._without_own(self._possible(effort), applied, dt)
            return Loads(motor, -motor, True)
        self._filtered = None
        return Loads(motor, -self._possible(motor), True)

    def _of_model(self, dynamics: Dynamics, state: State) -> Loads:
        r"""Loads of a slow motion, :math:`\tau_e = -s\,g(q)` and the motor torque against them, at most that of the motor at stall.

        s is :data:`MODELLED_SHARE`.
        """
        _, weight = dynamics.mass_matrix_and_bias(state.joint_position, np.zeros_like(state.joint_position))
        motor = MODELLED_SHARE * np.clip(
            self._map.servo_torque(weight), -self._model.stall, self._model.stall
        )
        return Loads(motor, -motor, True)

    def feed_forward_of(self, command: Command) -> Array:
        """Feed-forward torque that a controller sends beside its goal (gravity, for example), 0 if it sends none."""
        return np.asarray(np.where(np.isfinite(command.effort), self._map.servo_torque(command.effort), 0.0))

    def goal_offset(self, command: Command, friction: Array) -> Array:
        """Offset of a command's goal that makes the firmware add friction and the controller's torque [rad].

        :param friction: feed-forward torque against friction [N m].
        """
        goal = self._map.servo_position(command.position)
        return self._offset(goal, friction + self.feed_forward_of(command), self._state)

    def _offset(self, goal: Array, torque: Array, state: State | None) -> Array:
        kp, supply, acting = self._servos.kp, self._servos.supply, None
        if state is not None and self._model.saturated.any():
            acting = self._model.firmware_torque(goal, state.position, state.velocity, kp, supply)
        return self._model.offsets(torque, kp, supply, acting)

    def _controller_torque(self, state: State, goal: Array, command: Command) -> Array | None:
        """The controller's torque without friction compensation, if the output mode determines it."""
        torque, kp, supply = None, self._servos.kp, self._servos.supply
        if self._mode == "sum":
            torque = np.asarray(self._map.servo_torque(command.effort))
        elif self._mode == "goal_offset":
            offset = self._offset(goal, self.feed_forward_of(command), state)
            torque = self._model.firmware_torque(goal + offset, state.position, state.velocity, kp, supply)
        return torque if torque is not None and np.isfinite(torque).all() else None

    def _possible(self, torque: Array) -> Array:
        """The torque; :class:`DoubtError` if a servo cannot have it."""
        if all(map(le, map(abs, torque.tolist()), self._largest_effort)):
            return torque
        if not np.isfinite(torque).all():
            raise DoubtError(f"effort is not a number, but effort_meaning is {self._meaning}")
        raise DoubtError(
            f"the effort exceeds {LARGEST_EFFORT:g} times the stall torque, which is impossible: is it in N m?"
        )

    def _without_own(self, effort: Array, applied: Array, dt: float) -> Array:
        """The low-pass filtered motor torque without the feed-forward torque."""
        apart = effort - applied
        if self._filtered is not None:
            apart = self._filtered + min(1.0, dt / LOAD_FILTER) * (apart - self._filtered)
        self._filtered = apart
        return apart
