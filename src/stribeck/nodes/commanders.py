"""Commanders, which send the goals of a session to the servo node or to a ros2_control controller."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from stribeck.errors import MissingDependencyError, ServoError
from stribeck.files.goal_messages import seconds
from stribeck.model.arrays import Array
from stribeck.nodes.base import ServiceNode
from stribeck.nodes.messages import HAS_CONTROL_MSGS, set_stamp, trajectory_message
from stribeck.nodes.setters import GainSetter
from stribeck.nodes.statuses import DISTURBED, FAILED
from stribeck.nodes.waiting import Waiting
from stribeck.recordings.bags.messages import joint_state
from stribeck.session.directive import Directive
from stribeck.session.limits import SessionJoint
from stribeck.session.motion import hold, with_rest
from stribeck.session.session import Session
from stribeck.session.timing import clock_offset

PLAN_STEP = 0.02
"""Time between the points of a trajectory [s]; cubic interpolation is within 0.01 mrad of all built-in trajectories."""

HOLD_TIME = 0.1
"""Time for a controller to reach a position to be held [s]."""

REST_TIME = 2.0
"""Rest at the end of a trajectory [s]: a controller rejects one that is over when it arrives, and then does not stop."""

ARRIVING = ("settling", "braking", "resting", "finished")
"""Phases in which the joints complete a motion."""

SUCCEEDED = 4  # action_msgs/GoalStatus


class Commander:
    """Base of the commanders; all methods except the constructor are called from the session's thread.

    :param node: creates publishers and clients.
    :param joints: joint names, in the order of all arrays.
    :param gains: sets the firmware gain of all joints; ``None`` if that is not possible.
    :ivar problem: reason to stop the session at once; empty if there is none.
    :ivar disturbance: late states or lost answers that switched torque off, after which :meth:`recover` works; empty if
        there are none.
    """

    releases_torque = sends_segments = False

    def __init__(
        self, node: ServiceNode[Any], joints: Sequence[SessionJoint], gains: GainSetter | None
    ) -> None:
        self.node = node
        self.names = [joint.name for joint in joints]
        self.problem = self.disturbance = ""
        self._gains = gains
        self._handles: list[Any] = []

    def prepare(self, waiting: Waiting) -> None:
        """Wait for the required nodes.

        :raises ServoError: if one of them is missing.
        """
        self.problem = self.disturbance = ""
        if self._gains is not None:
            self._gains.problem = ""
            self._gains.prepare(waiting)

    def start(self, waiting: Waiting) -> None:
        """Make the robot accept goals.

        :raises ServoError: if the request is refused.
        """

    def set_gain(self, gain: float) -> None:
        """Request a firmware gain, if possible; telemetry or :attr:`confirmed_gain` shows the result."""
        if self._gains is not None:
            self._gains.set(gain)

    @property
    def confirmed_gain(self) -> float | None:
        """The gain of all joints, NaN while it is not confirmed; ``None`` if gains are not set from here."""
        return None if self._gains is None else self._gains.confirmed

    def send(self, directive: Directive, session: Session, now: float) -> None:
        """Send the goals of a directive."""
        raise NotImplementedError

    def recover(self, waiting: Waiting) -> None:
        """Make the robot accept goals again after a :attr:`disturbance`, which stays while that is not possible yet.

        :raises ServoError: if there is no answer.
        """
        self.disturbance = ""

    def halt(self) -> None:
        """Emergency stop: send nothing more that moves the robot; a motion in progress may be braked."""

    def finish(self) -> None:
        """End the session and leave the joints in the state that its last directive requires."""

    def check(self) -> str:
        """Reason to stop the session at once; empty if there is none."""
        return self.problem or (self._gains.problem if self._gains is not None else "")

    def destroy(self) -> None:
        """Destroy publishers and clients."""
        handles, self._handles = self._handles, []
        for destroy, handle in handles:
            destroy(handle)
        if self._gains is not None:
            self._gains.destroy()

    def _publisher(self, kind: Any, topic: str) -> Any:
        publisher = self.node.create_publisher(kind, topic, 10)
        self._handles.append((self.node.destroy_publisher, publisher))
        return publisher

    def stamp(self, steady: float | None = None) -> int:
        """Convert a steady time [s] to the node's clock [ns]; default: now."""
        if steady is None:
            return self._node_time()
        return round(1e9 * steady) + clock_offset(self._node_time, self.node.clock)

    def _node_time(self) -> int:
        return int(self.node.get_clock().now().nanoseconds)


class ServoCommander(Commander):
    """Commands the servo node: publishes ``joint_goals``, calls its enable service, monitors its diagnostics.

    :param servo_node: name of the servo node.
    """

    releases_torque = True

    def __init__(
        self,
        node: ServiceNode[Any],
        joints: Sequence[SessionJoint],
        gains: GainSetter | None,
        servo_node: str,
    ) -> None:
        super().__init__(node, joints, gains)
        self._servo = servo_node
        self._full_name = node.resolve_topic_name(servo_node).lstrip("/")
        self._goals = self._publisher(JointState, "joint_goals")
        self._enable = node.create_client(SetBool, f"{servo_node}/enable")
        self._recover = node.create_client(Trigger, f"{servo_node}/recover")
        watched = node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._handles += [(node.destroy_client, client) for client in (self._enable, self._recover)]
        self._handles.append((node.destroy_subscription, watched))
        self._enabled_at = math.inf
        self._cannot_start = ""
        self._limp = [math.nan] * len(self.names)

    def prepare(self, waiting: Waiting) -> None:
        """Wait for the servo node; if it cannot be configured, its reason ends the wait."""
        self._enabled_at = math.inf
        self._cannot_start = ""
        waiting.until(
            lambda: self._enable.service_is_ready() and self._goals.get_subscription_count() > 0,
            lambda: f"the servo node {self._servo!r} is not running, or not configured: start it",
            lambda: self._cannot_start,
        )
        super().prepare(waiting)

    def start(self, waiting: Waiting) -> None:
        """Enable the servo node."""
        future = self._enable.call_async(SetBool.Request(data=True))
        waiting.until(future.done, lambda: f"{self._servo}/enable does not answer")
        answer = future.result()
        if not answer.success:
            raise ServoError(f"{self._servo}: {answer.message}")
        self._enabled_at = 1e-9 * self.stamp()

    def recover(self, waiting: Waiting) -> None:
        """Clear the fault of the servo node, and enable it; its diagnostics say why if that fails."""
        self._enabled_at = 1e-9 * self.stamp()
        future = self._recover.call_async(Trigger.Request())
        waiting.until(future.done, lambda: f"{self._servo}/recover does not answer")
        if future.result().success:
            super().recover(waiting)
            self._enabled_at = 1e-9 * self.stamp()

    def send(self, directive: Directive, session: Session, now: float) -> None:
        """Publish the goals; NaN means torque off."""
        self._publish(directive.goals.tolist())

    def finish(self) -> None:
        """Switch torque off."""
        self._enabled_at = math.inf
        self._publish(self._limp)

    def _publish(self, goals: list[float]) -> None:
        self._goals.publish(joint_state(self.stamp(), self.names, goals))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == self._full_name:
                self._on_status(status, seconds(message.header.stamp))

    def _on_status(self, status: DiagnosticStatus, stamp: float) -> None:
        failed = status.level == DiagnosticStatus.ERROR
        text = f"{self._servo}: {status.message}" if failed else ""
        self._cannot_start = text if status.message.startswith(FAILED) else ""
        if not failed or stamp < self._enabled_at:
            return
        if any(pair.key == DISTURBED and pair.value == str(True) for pair in status.values):
            self.disturbance = text
        else:
            self.problem = text


class ControllerCommander(Commander):
    """Base for ros2_control controllers; goals are also published on ``joint_commands``.

    :param sent: receives sent goals as a serialised JointState.
    :param controller: name of the controller.
    """

    controller_type = "joint_trajectory_controller"
    topic: str
    message: Any
    """Topic of the controller for goals, and its type."""

    def __init__(
        self,
        node: ServiceNode[Any],
        joints: Sequence[SessionJoint],
        gains: GainSetter | None,
        sent: Callable[[bytes], None],
        controller: str,
    ) -> None:
        super().__init__(node, joints, gains)
        self._sent, self._controller = sent, controller
        self._deceleration = np.array([joint.limits.acceleration for joint in joints])
        self._commands = self._publisher(JointState, "joint_commands")
        self._connect()

    def _connect(self) -> None:
        self._target = f"{self._controller}/{self.topic}"
        self._goals = self._publisher(self.message, self._target)

    def _is_ready(self) -> bool:
        return self._goals.get_subscription_count() > 0  # type: ignore[no-any-return]

    def prepare(self, waiting: Waiting) -> None:
        """Wait for the controller."""
        problem = f"nothing receives goals on {self._target}: activate the {self.controller_type}, or set the parameter controller"
        waiting.until(self._is_ready, lambda: problem)
        super().prepare(waiting)

    def _publish_commands(self, goals: list[float], now: float | None = None) -> None:
        data = joint_state(self.stamp(now), self.names, goals)
        self._commands.publish(data)
        self._sent(data)


class ForwardCommander(ControllerCommander):
    """Commands a forward_command_controller in position mode."""

    controller_type = "forward_command_controller"
    topic, message = "commands", Float64MultiArray
    _halted = False

    def prepare(self, waiting: Waiting) -> None:
        """Wait for the controller."""
        self._halted = False
        super().prepare(waiting)

    def halt(self) -> None:
        """Send nothing more; the controller keeps the goal that it has."""
        self._halted = True

    def send(self, directive: Directive, session: Session, now: float) -> None:
        """Publish the goals, except while the session waits for states."""
        if np.isfinite(directive.goals).all() and not self._halted:
            goals = directive.goals.tolist()
            self._goals.publish(Float64MultiArray(data=goals))
            self._publish_commands(goals)


class TrajectoryCommander(ControllerCommander):
    """Commands a joint_trajectory_controller by topic; each motion segment is sent whole, with its braking to rest."""

    sends_segments = True
    topic, message = "joint_trajectory", JointTrajectory

    def prepare(self, waiting: Waiting) -> None:
        """Wait for the controller."""
        self._segment = 0
        self._rest = np.full(len(self.names), math.nan)
        super().prepare(waiting)

    def send(self, directive: Directive, session: Session, now: float) -> None:
        """Send the motion segment if it is new."""
        if not np.isfinite(directive.goals).all():
            return
        goals = directive.goals
        if directive.segment != self._segment:
            self._segment = directive.segment
            goals, now = self._send_segment(directive, session, now)
        self._publish_commands(goals.tolist(), now)

    def _send_segment(self, directive: Directive, session: Session, now: float) -> tuple[Array, float]:
        """Send a motion or a position to hold, unless the previous segment ends there; return goals and their time."""
        segment = session.plan(PLAN_STEP)
        if segment is not None:
            segment = with_rest(segment, self._deceleration, PLAN_STEP, REST_TIME)
        else:
            segment = hold(directive.goals, now, HOLD_TIME, REST_TIME)
        rest = segment.position[-1]
        # The braking after a run, and the position held then, were sent with the run.
        if directive.phase in ARRIVING and np.allclose(rest, self._rest, rtol=0.0, atol=1e-9):
            return directive.goals, now
        self._rest = rest
        message = trajectory_message(self.names, segment)
        now = session.begin(self.node.clock.now())  # what takes time, the points, is ready
        set_stamp(message.header, self.stamp(now))
        self._send(message)
        return segment.position[0], now

    def _send(self, message: JointTrajectory) -> None:
        self._goals.publish(message)


class ActionCommander(TrajectoryCommander):
    """Commands a joint_trajectory_controller by action, which reports rejected and aborted trajectories."""

    def _connect(self) -> None:
        if not HAS_CONTROL_MSGS:
            raise MissingDependencyError(
                "commander trajectory_action needs control_msgs, which is not installed: install it "
                "(apt install ros-jazzy-control-msgs), or use commander trajectory"
            )
        from control_msgs.action import FollowJointTrajectory

        self._type = FollowJointTrajectory
        self._target = f"{self._controller}/follow_joint_trajectory"
        self._client = ActionClient(self.node, FollowJointTrajectory, self._target)
        # An action client may only be used in the executor's thread.
        self._outbox: deque[JointTrajectory] = deque()
        self._wake = self.node.create_guard_condition(self._send_waiting)
        self._handles.append((ActionClient.destroy, self._client))
        self._handles.append((self.node.destroy_guard_condition, self._wake))
        self._goal = 0

    def _is_ready(self) -> bool:
        return self._client.server_is_ready()  # type: ignore[no-any-return]

    def _send(self, message: JointTrajectory) -> None:
        self._outbox.append(message)
        self._wake.trigger()

    def _send_waiting(self) -> None:
        while self._outbox:
            self._goal += 1
            future = self._client.send_goal_async(self._type.Goal(trajectory=self._outbox.popleft()))
            future.add_done_callback(lambda future, goal=self._goal: self._on_answer(goal, future.result()))

    def _on_answer(self, goal: int, handle: Any) -> None:
        if handle.accepted:
            handle.get_result_async().add_done_callback(lambda future: self._on_result(goal, future.result()))
        elif goal == self._goal:
            self.problem = f"{self._target} refuses the trajectory"

    def _on_result(self, goal: int, answer: Any) -> None:
        """Handle the result of a goal, unless a later goal has replaced it."""
        if goal == self._goal and answer.status != SUCCEEDED:
            result = answer.result
            self.problem = (
                f"{self._target} aborted the trajectory: {result.error_string or result.error_code}"
            )
