"""The compensation node: joint states and commands in, friction torque out."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Int64
from std_srvs.srv import SetBool, Trigger

from stribeck.core.compensator import Compensator
from stribeck.core.parting import Parting
from stribeck.errors import StribeckError
from stribeck.io.cdr import JointStateReader, Stamp, header_stamp
from stribeck.nodes.base import ServiceNode, measured, offered_weakly, quiet_events, run, steady
from stribeck.nodes.memory import Memory
from stribeck.nodes.messages import (
    CommandReader,
    GoalReader,
    OutputMessage,
    ScaleMessage,
    TelemetryTopic,
    decoded,
    telemetry_topics,
)
from stribeck.nodes.parameters import COMPENSATED_JOINT, COMPENSATION, joint_table
from stribeck.nodes.setup import (
    CompensatedJoint,
    check_lease,
    compensated_joints,
    compensator_of,
    hand_through_of,
    learning_of,
)
from stribeck.nodes.telemetry import Gate, hand_over

DEPTH = 50
TICK = 0.01
CALM = 0.3
"""How long a node must have run without a pause before it starts to compensate by itself [s]."""

SCALE_PERIOD = 0.1
"""How often ``friction_scale`` goes out [s]."""

KEEPING_PERIOD = 60.0
"""How often what was learnt is written [s]."""

REVOKED = "compensation_revoked"
REVOKED_QOS = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class CompensationNode(ServiceNode):
    """Topics: ``joint_states``, ``controller_command``, goals in; ``compensated_command``, ``friction_torque`` out.

    ``friction_torque`` and ``friction_scale`` go out while somebody listens. ``compensation_alive`` carries since when the node is
    enabled [ns], 0 while it is not, and is the sign of life that the guard watches. On ``compensation_revoked``
    the guard says which of these it has taken over from: whoever of the two was the one that paused, one of them
    speaks.
    """

    table = COMPENSATION

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("compensation", **kwargs)
        self._lock = threading.Lock()
        self._compensator: Compensator | None = None
        self._handles: list[Any] = []
        self._enable_when_calm = False
        self._goals: GoalReader | None = None
        self._memory: Memory | None = None
        self._newest: float | None = None
        self.create_service(SetBool, "~/enable", self._on_enable)
        self.create_service(Trigger, "~/forget", self._on_forget)
        self.steady_timer(KEEPING_PERIOD, self._keep)

    # -- life cycle

    def _configure(self, values: Mapping[str, Any]) -> None:
        for joint in values["joints"]:
            self.declare(joint_table(COMPENSATED_JOINT, joint))
        values = self.values()
        self._joints = compensated_joints(values)
        learning = learning_of(values, self._joints)
        compensator = compensator_of(values, self._joints, learning.dynamics)
        goals = GoalReader(values["goal_type"], compensator) if values["goal_topic"] else None
        check_lease(values)
        self._guarded, self._pause = values["guarded"], values["pause_limit"]
        self._returns, self._returned = values["automatic_returns"], 0
        # What fades is taken back by a compensator of its own: this one may go on meanwhile.
        fade = hand_through_of(values, self._joints).fade
        self._parting = Parting(fade, values["command_timeout"])
        self._sums = values["output_mode"] == "sum"
        self._enable_at_start = values["enabled"]
        self._margin = values["temperature_margin"]
        self._durations = np.zeros(values["latency_samples"])
        self._count = 0
        self._since = 0
        self._muted = self._guarded
        self._temperature_warning = self._tripped = ""
        self._message = OutputMessage(values["output_type"], values["output_mode"], compensator.names)
        self._friction = OutputMessage("joint_state", "friction_only", compensator.names)
        self._states, self._commands = JointStateReader(), CommandReader(values["command_type"])
        self._on_each_state = values["output_mode"] in ("friction_only", "current")
        self._output = self.create_publisher(self._message.type, "compensated_command", DEPTH)
        self._torque = self.create_publisher(JointState, "friction_torque", DEPTH)
        self._alive = self.create_publisher(Int64, "compensation_alive", 1)
        self._handles = [self._output, self._torque, self._alive]
        self._scales = self.create_publisher(Float64MultiArray, "friction_scale", 1)
        self._scale_message, self._scales_due = ScaleMessage(compensator.names), 0.0
        self._handles.append(self._scales)
        self._gap = learning.gap
        for line in (*learning.words, f"no friction is learnt: {learning.gap}" if learning.gap else ""):
            if line:
                self.get_logger().info(line)
        if values["state_file"]:
            self._recall(Path(values["state_file"]).expanduser(), compensator)
        self._compensator, self._goals = compensator, goals
        self._simulated, self._newest = self.get_clock().ros_time_is_active, None
        self._last_sign = steady()
        self._gates = {topic.name: Gate() for topic in telemetry_topics()}
        for topic in telemetry_topics():
            subscription = self.create_subscription(
                topic.type, topic.name, lambda data, topic=topic: self._on_telemetry(topic, data), 1, raw=True
            )
            self._handles.append(subscription)
        states = self._hear(JointState, "joint_states", self._on_state, measured(DEPTH))
        self._needs_reliable_states = states.qos_profile.reliability == ReliabilityPolicy.RELIABLE
        heard = []
        if goals is not None:  # a trajectory comes once, the others often
            qos = DEPTH if values["goal_type"] == "joint_trajectory" else measured(DEPTH)
            heard.append(self._hear(goals.type, values["goal_topic"], self._on_goal, qos))
        self.serve_fast(  # the guard's word first: nothing that waited beside it is answered any more
            self.create_subscription(
                Int64, REVOKED, self._on_revoked, REVOKED_QOS, event_callbacks=quiet_events()
            ),
            *heard,  # before the states and efforts that they belong to
            self._hear(self._commands.type, "controller_command", self._on_command),
            states,
            tick=self._tick,
            period=TICK,
        )

    def _hear(
        self, kind: Any, topic: str, take: Callable[[bytes], None], qos: QoSProfile | int = DEPTH
    ) -> Any:
        return self.create_subscription(
            kind,
            topic,
            take,
            qos,
            event_callbacks=quiet_events(),
            raw=True,
        )

    def _activate(self) -> None:
        # Finding the others in the graph can hold a process up for some tenths of a second.
        self._calm_since = steady()
        self._enable_when_calm = self._enable_at_start

    def _deactivate(self) -> None:
        self._enable_when_calm = False
        if self._compensator is not None:
            self._enable(False)
            self._keep()

    def _release(self) -> None:
        with self._lock:
            self._compensator = self._goals = self._memory = None
        handles, self._handles = self._handles, []
        for handle in handles:
            if hasattr(handle, "publish"):
                self.destroy_publisher(handle)
            else:
                self.destroy_subscription(handle)

    def _change(self, name: str, value: Any) -> None:
        if name == "gain" and self._compensator is not None:
            with self._lock:
                self._compensator.set_gain(value)

    # -- callbacks of the hot loop

    def _on_state(self, data: bytes) -> None:
        began = time.perf_counter()
        with self._lock:
            if (compensator := self._compensator) is None:
                return
            arrival = steady()
            if arrival - self._last_sign > self._pause:
                self._stand_back(arrival)
            state, foreign = self._states.read(data), compensator.merger.foreign
            stamp = self._newest = state.stamp.seconds
            now = self._now() if self._simulated else None
            if self._goals is not None:
                self._goals.source.before_state(arrival, stamp, state.names, state.numbers[0], now)
            compensator.on_state(arrival, stamp, state.names, *state.numbers, now)
            if compensator.merger.foreign != foreign:
                return  # somebody else's joints
            if self._on_each_state:
                self._send(arrival, state.stamp)
            self._durations[self._count % len(self._durations)] = time.perf_counter() - began
            self._count += 1
            self._tell_torque(state.stamp)

    def _now(self) -> float | None:
        """The time on /clock [s]; until that was heard the stamp of the last state."""
        now = self.get_clock().now().nanoseconds
        return 1e-9 * now if now else self._newest

    def _on_goal(self, data: bytes) -> None:
        with self._lock:
            if self._goals is None:
                return
            now = self._now() if self._simulated else None
            problem = self._goals.take(data, steady(), now)
        if problem is not None:
            self.get_logger().warning(problem, throttle_duration_sec=10.0)

    def _tell_scales(self, now: float) -> None:
        """Publish how much of the identified friction there is, if somebody listens."""
        if now < self._scales_due or self._compensator is None:
            return
        self._scales_due = now + SCALE_PERIOD
        if self._scales.get_subscription_count():
            account = self._compensator.account()
            rows = np.stack([account.dry, account.viscous, account.offset], axis=1)
            self._scales.publish(self._scale_message.filled(rows))

    def _tell_torque(self, stamp: Stamp) -> None:
        """Publish the friction torque, if somebody listens."""
        if self._compensator is not None and self._torque.get_subscription_count():
            self._torque.publish(self._friction.filled(self._compensator.torque, stamp))

    def _part(self, now: float) -> None:
        """Take the friction out of the last effort of a controller that has fallen silent."""
        if self._muted:
            self._parting.forget()
        elif (effort := self._parting.due(now)) is not None:
            stamp = Stamp.of(self.get_clock().now().nanoseconds)
            self._output.publish(self._message.filled(effort, stamp))

    def _on_command(self, data: bytes) -> None:
        with self._lock:
            if self._compensator is None:
                return
            arrival = steady()
            if arrival - self._last_sign > self._pause:
                self._stand_back(arrival)
            now = self._now() if self._simulated else None
            stamp = self._commands.take(self._compensator, data, arrival, now)
            if not self._on_each_state:
                self._send(arrival, stamp)

    def _send(self, now: float, stamp: Stamp | None) -> None:
        """Publish the output at ``now``, if there is one and nobody else is in charge of it."""
        if self._muted or self._compensator is None:
            return
        output = self._compensator.output(now)
        if output is not None:
            stamp = Stamp.of(self.get_clock().now().nanoseconds) if stamp is None else stamp
            self._output.publish(self._message.filled(output.values, stamp))
            if self._sums:
                self._parting.passed_on(now, output.values - output.friction, output.friction)

    # -- the rest

    def _tick(self) -> None:
        with self._lock:
            if self._compensator is None:
                return
            now = steady()
            self._simulated = self.get_clock().ros_time_is_active
            if now - self._last_sign > self._pause:
                self._calm_since = now
            self._give_sign(now)
            if self._compensator.expire(now):
                self._send_zero()
                self._tell_torque(Stamp.of(self.get_clock().now().nanoseconds))
            self._part(now)
            self._tell_scales(now)
        if self._active and self._enable_when_calm and now - self._calm_since > CALM:
            self._enable(True)

    def _give_sign(self, now: float) -> None:
        """The sign of life. Given by the hot loop alone: while that hangs the guard is in charge."""
        if now - self._last_sign > self._pause:
            self._stand_back(now)
        self._last_sign = now
        self._alive.publish(Int64(data=self._since))

    def _stand_back(self, now: float) -> None:
        """After too long a silence the guard has taken over: this node stays quiet until it is enabled again."""
        if self._guarded:
            self._trip(f"stood still for {1e3 * (now - self._last_sign):.0f} ms", now)

    def _on_revoked(self, message: Int64) -> None:
        """The guard has taken over from this very spell of compensation."""
        with self._lock:
            if message.data == self._since:
                self._trip("no sign of life reached the guard", steady())

    def _trip(self, reason: str, now: float) -> None:
        compensator = self._compensator
        if compensator is None or not compensator.enabled:
            return
        self._tripped = f"{reason}, the guard took over: enable again"
        compensator.disable(self._tripped)
        self._since, self._muted = 0, True
        if self._enable_at_start and not self._count:  # nothing has moved yet: it may still start by itself
            self._enable_when_calm, self._calm_since = True, now
        elif self._returned < self._returns:
            self._returned += 1
            self._tripped = (
                f"{reason}, the guard took over: automatic return {self._returned} of {self._returns}"
            )
            self._enable_when_calm, self._calm_since = True, now
            self.get_logger().warning(self._tripped)
        else:
            self.get_logger().error(self._tripped)

    def _send_zero(self) -> None:
        if self._on_each_state:
            self._send(steady(), None)

    def _enable(self, on: bool) -> None:
        with self._lock:
            self._enable_when_calm = False
            compensator = self._compensator
            if compensator is None or not (on or compensator.enabled):
                return
            self._last_sign, self._tripped = steady(), ""
            if on:
                if not compensator.enabled:
                    compensator.enable()
                # A new spell, also of a node that is enabled: it ends what a guard holds against the last one.
                self._since, self._muted = time.time_ns(), False
            else:
                compensator.disable()
                self._send_zero()
                self._since, self._muted = 0, self._guarded
            self._alive.publish(Int64(data=self._since))

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data and not self._active:
            response.success, response.message = False, "activate the node first"
            return response
        self._returned = 0
        self._enable(request.data)
        response.success = True
        response.message = "compensating" if request.data else "friction torque is zero"
        return response

    def _recall(self, path: Path, compensator: Compensator) -> None:
        """Begin with what was learnt in an earlier run."""
        self._memory = Memory(path, [joint.identified for joint in self._joints])
        learned, problem = self._memory.read()
        if problem:
            self.get_logger().warning(problem)
        if learned is not None:
            compensator.recall(learned)
            self.get_logger().info(f"goes on with what was learnt before: {path}")

    def _keep(self) -> None:
        """Write what was learnt, if it has changed."""
        with self._lock:
            memory, compensator = self._memory, self._compensator
            if memory is None or compensator is None or not compensator.account().certainty.any():
                return  # nothing was learnt in this run
            learned = compensator.learned
        if learned is not None:
            try:
                memory.write(learned)
            except StribeckError as error:
                self.get_logger().warning(
                    f"what was learnt is not kept: {error}", throttle_duration_sec=600.0
                )

    def _on_forget(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            if self._compensator is None:
                response.success, response.message = False, "configure the node first"
                return response
            self._compensator.recall(None)
            memory = self._memory
        response.success, response.message = True, "friction is as it was identified"
        if memory is not None:
            try:
                memory.forget()
            except StribeckError as error:
                response.success, response.message = False, str(error)
        return response

    def _on_telemetry(self, topic: TelemetryTopic, data: bytes) -> None:
        stamp = header_stamp(data)
        if not self._gates[topic.name].passes(stamp):
            return
        known = {joint.model.name: joint for joint in self._joints}
        for name, values in decoded(topic, data):
            if name in known:
                with self._lock:
                    if self._compensator is not None:
                        hand_over(self._compensator, known[name], values, stamp.seconds)
                self._check_temperature(known[name], values.get("temperature", math.nan))

    def _check_temperature(self, joint: CompensatedJoint, temperature: float) -> None:
        fitted = joint.temperature
        if fitted is None or not abs(temperature - fitted) > self._margin:
            return
        self._temperature_warning = (
            f"{joint.model.name} is at {temperature:.0f} °C, its friction was identified at {fitted:.0f} °C: "
            "identify it again at this temperature"
        )
        self.get_logger().warning(self._temperature_warning, throttle_duration_sec=60.0)

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        with self._lock:
            compensator = self._compensator
            if compensator is None:
                return "ok", "not configured", {}
            durations = 1e6 * self._durations[: min(self._count, len(self._durations))]
            figures: dict[str, Any] = {
                "enabled": compensator.enabled,
                "gain": compensator.gain,
                "states": self._count,
                "automatic returns": f"{self._returned} of {self._returns}",
                "states merged": compensator.merger.merged,
                "states of other joints": compensator.merger.foreign,
                **{
                    f"torque/{n}": float(t)
                    for n, t in zip(compensator.names, compensator.torque, strict=True)
                },
            }
            doubt, notice, account = compensator.doubt, compensator.notice, compensator.account()
        for k, name in enumerate(compensator.names):
            figures[f"scale/{name}"] = f"{account.dry[k]:.3f} dry, {account.viscous[k]:.3f} viscous"
            figures[f"certainty/{name}"] = float(account.certainty[k])
            figures[f"contact/{name}"] = float(account.contact[k])
            figures[f"energy/{name}"] = float(account.energy[k])
        if self._gap:
            figures["learning"] = f"nothing: {self._gap}"
        if len(durations):
            p50, p99, longest = np.percentile(durations, [50, 99, 100])
            figures |= {"p50_us": float(p50), "p99_us": float(p99), "max_us": float(longest)}
        if compensator.settings.effort_meaning == "none" and compensator.model.load_dependent:
            figures["load terms"] = "zero: effort_meaning is none"
        if doubt is not None and compensator.enabled:
            if not self._count and compensator.merger.foreign:
                doubt += f": of {', '.join(compensator.names)} none was heard, only other joints"
            elif not self._count and self._unheard():
                doubt += ": joint_states are offered as best effort, but qos_overrides ask for reliable ones"
            return "warn", f"zero torque: {doubt}", figures
        if self._tripped:
            return "warn", self._tripped, figures
        if self._guarded and not self._alive.get_subscription_count():
            return "warn", "guarded, but no guard listens: start it, or set guarded to false", figures
        fading = [name for name, left in zip(compensator.names, account.energy, strict=True) if left < 1.0]
        if fading:
            warning = (
                f"{', '.join(fading)}: moved on for long without a goal, the friction torque fades to what is surely "
                "there; it comes back at rest, or with a goal"
            )
            self.get_logger().warning(warning, throttle_duration_sec=60.0)
            return "warn", warning, figures
        if notice:
            self.get_logger().warning(notice, throttle_duration_sec=60.0)
            return "warn", notice, figures
        if self._temperature_warning:
            return "warn", self._temperature_warning, figures
        return "ok", doubt or "compensating", figures

    def _unheard(self) -> bool:
        """Whether a publisher of states is known that this node was told not to hear."""
        return self._needs_reliable_states and offered_weakly(self, "joint_states")


def main() -> int:
    """Run the node until it is told to end."""
    return run(CompensationNode)


if __name__ == "__main__":
    sys.exit(main())
