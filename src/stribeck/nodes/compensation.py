"""The compensation node, which computes friction torque from joint states and commands."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from rclpy.parameter import Parameter
from rclpy.qos import ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Int64
from std_srvs.srv import SetBool, Trigger

from stribeck.errors import NodeStateError, StribeckError
from stribeck.files.cdr import JointStateReader, Stamp
from stribeck.live.compensator import Compensator
from stribeck.live.drives_in_use import DrivesInUse
from stribeck.live.handover import Handover
from stribeck.live.learning.external import ExternalTorque
from stribeck.live.parameters import CompensationParameters
from stribeck.live.setup import CompensatedJoint, check_heartbeat, dynamics_of, passthrough_of
from stribeck.live.states.incoming import SimulatedTime
from stribeck.live.supervision import TICK, EnableState
from stribeck.live.telemetry import apply_telemetry
from stribeck.nodes.base import ServiceNode, run
from stribeck.nodes.command_output import DEPTH, REVOKED, CommandOutput
from stribeck.nodes.figures import fading_of, figures_of, latency
from stribeck.nodes.messages import (
    CommandReader,
    GoalReader,
    OutputMessage,
    ScaleMessage,
    TelemetryReader,
    telemetry_topics,
)
from stribeck.nodes.qos import best_effort, has_best_effort_publisher, latched
from stribeck.nodes.robot_outputs import WrenchOutput, ZeroTorqueOutput

SCALE_PERIOD = 0.1
"""Publication period of ``friction_scale`` [s]."""

SAVE_PERIOD = 60.0
"""Period at which the learned friction is saved [s]."""


class CompensationNode(ServiceNode[CompensationParameters]):
    """Reads ``joint_states``, ``controller_command``, goals; publishes ``compensated_command``, ``friction_torque``.

    ``friction_torque`` and ``friction_scale`` are only published while they have subscribers. ``compensation_alive`` is
    the heartbeat that the guard monitors; it holds the time at which the node was enabled [ns], or 0 while it is
    disabled. On ``compensation_revoked`` the guard names the enabled period that it has taken over
    (:mod:`stribeck.live.supervision`).
    """

    parameter_class = CompensationParameters

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("compensation", **kwargs)
        self._lock = threading.Lock()
        self._compensator: Handover | None = None
        self._goals: GoalReader | None = None
        self._newest: float | None = None
        self._former: DrivesInUse | None = None
        self._reverting = False
        self.answer(SetBool, "~/enable", self._on_enable)
        self.answer(SetBool, "~/zero_torque", self._on_zero_torque)
        self.answer(Trigger, "~/revert", self._on_revert)
        self.answer(Trigger, "~/forget", self._on_forget)
        self.steady_timer(SAVE_PERIOD, self._save)

    # -- life cycle

    def _configure(self, parameters: CompensationParameters) -> None:
        check_heartbeat(parameters)
        self._settings, self.hardware = parameters, ", ".join(parameters.joints)
        in_use = DrivesInUse.of(parameters)
        compensator = Handover(in_use.compensator, parameters.ramp_time)
        self._goals = GoalReader(parameters.goal_type, compensator) if parameters.goal_topic else None
        self._use(in_use)
        self._durations, self._count = np.zeros(parameters.latency_samples), 0
        self._create_publishers(parameters, compensator)
        self._simulated, self._newest = self._has_simulated_clock, None
        self._passing = SimulatedTime()
        self._enabling = EnableState(
            compensator,
            guarded=parameters.guarded,
            pause_limit=parameters.pause_limit,
            returns=parameters.automatic_returns,
            at_start=parameters.enabled,
            log=self.say,
            now=self.clock.now(),
        )
        self._compensator = compensator
        self._subscribe(parameters)

    def _use(self, in_use: DrivesInUse) -> None:
        self._in_use, self._temperature_warning = in_use, ""
        for line in in_use.learning.words:
            self.get_logger().info(line)
        for line in in_use.remarks:
            self.get_logger().warning(line)

    def _create_publishers(self, parameters: CompensationParameters, compensator: Handover) -> None:
        # A separate compensator ramps the friction torque down, as the main one may still be active.
        passthrough = passthrough_of(parameters, self._in_use.joints)
        self._command_output = CommandOutput(self, parameters, passthrough)
        dynamics, _ = dynamics_of(parameters, self._in_use.joints)
        self._zero = ZeroTorqueOutput(parameters, compensator, dynamics, self._command_output)
        self._wrench = WrenchOutput(self, parameters, dynamics)
        self._output = self._command_output.publisher
        self._on_each_state = parameters.output_mode in ("friction_only", "current")
        self._friction = OutputMessage("joint_state", "friction_only", compensator.names)
        self._torque = self.managed_publisher(JointState, "friction_torque", DEPTH)
        self._external = self.managed_publisher(Float64MultiArray, "external_torque", DEPTH)
        self._external_message = ScaleMessage(compensator.names, ExternalTorque._fields)
        self._alive = self.managed_publisher(Int64, "compensation_alive", 1)
        self._scales = self.managed_publisher(Float64MultiArray, "friction_scale", 1)
        self._scale_message, self._scales_due = ScaleMessage(compensator.names), 0.0

    def _subscribe(self, parameters: CompensationParameters) -> None:
        for topic in telemetry_topics():
            take = partial(self._on_telemetry, TelemetryReader(topic, self._in_use.joints))
            heard = self.create_subscription(topic.type, topic.name, take, 1, raw=True)
            self.managed(heard, self.destroy_subscription)
        self._state_reader = JointStateReader()
        self._commands = CommandReader(parameters.command_type)
        states = self.hot_subscription(JointState, "joint_states", self._on_state, best_effort(DEPTH))
        self._needs_reliable_states = states.qos_profile.reliability == ReliabilityPolicy.RELIABLE
        goals = []
        if self._goals is not None:
            # A trajectory is sent once; other goals are sent frequently.
            qos = DEPTH if parameters.goal_type == "joint_trajectory" else best_effort(DEPTH)
            goals = [self.hot_subscription(self._goals.type, parameters.goal_topic, self._on_goal, qos)]
        self.serve_fast(
            # Revocations have priority: messages received at the same time must not be answered any more.
            self.hot_subscription(Int64, REVOKED, self._on_revoked, latched(), raw=False),
            *goals,  # before the states and efforts to which they belong
            self.hot_subscription(self._commands.type, "controller_command", self._on_command, DEPTH),
            states,
            tick=self._tick,
            period=TICK,
        )

    def _activate(self) -> None:
        self._enabling.start(self.clock.now())

    def _deactivate(self) -> None:
        if self._compensator is not None:
            self._disable()
            self._save()

    def _release(self) -> None:
        with self._lock:
            self._compensator = self._goals = self._former = None

    def _change(self, name: str, value: Any) -> None:
        if self._compensator is None:
            return
        if name == "gain":
            with self._lock:
                self._compensator.set_gain(value)
        elif name == "drives_file":
            former = self._former if self._reverting else None
            self._exchange(self._in_use.from_file(value) if former is None else former)

    def _exchange(self, in_use: DrivesInUse) -> None:
        """Let other drives take over; those that were in use before do with what was learnt about them."""
        self._save()
        former, before = self._former, self._in_use
        returns = in_use is former or in_use.same_as(former)
        with self._lock:
            if self._compensator is None:
                return
            if self._zero.on:
                raise NodeStateError(
                    "zero-torque mode is on, in which the gravity torque must not change: end the mode first"
                )
            if former is not None and returns:
                self._compensator.revert()
                in_use = former
            else:
                self._compensator.exchange(in_use.compensator)
            self._zero.dynamics, _ = dynamics_of(in_use.parameters, in_use.joints)
        self._former = before
        self._use(in_use)

    def _on_revert(self) -> str:
        if self._former is None:
            raise NodeStateError("there is no previous file of drives: set the parameter drives_file first")
        path = self._former.parameters.drives_file
        self._reverting = True  # to what was read then, whatever the file holds now
        try:
            result = self.set_parameters([Parameter("drives_file", value=path)])[0]
        finally:
            self._reverting = False
        if not result.successful:
            raise NodeStateError(result.reason)
        return f"changing to the drives in {path}"

    # -- callbacks of the hot loop

    def _on_state(self, data: bytes) -> None:
        began = time.perf_counter()
        with self._lock:
            if (compensator := self._compensator) is None:
                return
            arrival = self.clock.now()
            self._enabling.check_pause(arrival)
            state, foreign = self._state_reader.read(data), compensator.present.merger.foreign
            stamp = self._newest = state.stamp.seconds
            now = self._now(arrival, stamp)
            if self._goals is not None:
                self._goals.source.before_state(arrival, stamp, state.names, state.numbers[0], now)
            compensator.on_state(arrival, stamp, state.names, *state.numbers, now)
            if compensator.present.merger.foreign != foreign:
                return  # a state of other joints only
            if self._zero.on:
                self._zero.send(arrival, state.stamp)
            elif self._on_each_state:
                self._send(arrival, state.stamp)
            self._durations[self._count % len(self._durations)] = time.perf_counter() - began
            self._count += 1
            self._enabling.moved = True
            self._publish_torque(state.stamp)

    @property
    def _has_simulated_clock(self) -> bool:
        """Whether stamps are on another clock than :attr:`clock`; in lock-step they are on the same."""
        return self.turns is None and bool(self.get_clock().ros_time_is_active)

    def _now(self, steady: float, stamp: float = -math.inf) -> float | None:
        """Simulated time [s], or the stamp of the last state until /clock is received; ``None`` if time is real."""
        if not self._simulated:
            return None
        now = self.get_clock().now().nanoseconds
        return self._passing.at(steady, 1e-9 * now, stamp) if now else self._newest

    def _on_goal(self, data: bytes) -> None:
        with self._lock:
            if self._goals is None:
                return
            arrival = self.clock.now()
            problem = self._goals.take(data, arrival, self._now(arrival))
        if problem is not None:
            self.get_logger().warning(problem, throttle_duration_sec=10.0)

    def _on_command(self, data: bytes) -> None:
        with self._lock:
            if self._compensator is None:
                return
            arrival = self.clock.now()
            self._enabling.check_pause(arrival)
            stamp = self._commands.take(self._compensator, data, arrival, self._now(arrival))
            if self._compensator.present.commanded(arrival) is not None:
                self._zero.commanded(arrival)
            if not (self._on_each_state or self._zero.on):
                self._send(arrival, stamp)

    def _on_revoked(self, message: Int64) -> None:
        with self._lock:
            if self._compensator is not None:
                self._enabling.revoke(message.data, self.clock.now())

    def _send(self, now: float, stamp: Stamp | None) -> None:
        """Publish the output, if there is one and the guard is not in charge."""
        if self._compensator is not None and not self._enabling.muted:
            self._command_output.send(self._compensator, now, stamp)
            if self._enabling.check_pause(self.clock.now()):
                self._command_output.take_back()  # suspended while it computed: nobody may correct this effort

    def _publish_torque(self, stamp: Stamp) -> None:
        if self._compensator is None:
            return
        if self._torque.get_subscription_count():
            self._torque.publish(self._friction.filled(self._compensator.torque, stamp))
        # Without a model of the dynamics there is none, and asking for subscribers takes time.
        if self._zero.dynamics is not None and self._external.get_subscription_count():
            external = self._compensator.present.external_torque
            if external is not None:
                self._external.publish(self._external_message.filled(np.stack(external, axis=1)))
        self._wrench.send(self._compensator.present, stamp)

    def _publish_scales(self, now: float) -> None:
        """Publish the current friction relative to the identified friction, if there are subscribers."""
        if now < self._scales_due or self._compensator is None:
            return
        self._scales_due = now + SCALE_PERIOD
        if self._scales.get_subscription_count():
            account = self._compensator.present.account()
            rows = np.stack([account.dry, account.viscous, account.offset], axis=1)
            self._scales.publish(self._scale_message.filled(rows))

    def _tick(self) -> None:
        """Send the heartbeat; only the hot loop does so, so the guard takes over if the loop hangs."""
        with self._lock:
            if self._compensator is None:
                return
            now = self.clock.now()
            self._simulated = self._has_simulated_clock
            self._enabling.beat(now)
            self._publish_beat()
            ticking = self._simulated and self.get_clock().now().nanoseconds > 0
            if self._compensator.expire(now, self._now(now) if ticking else None):
                self._send_zero()
                self._publish_torque(self._command_output.now())
            self._zero.send(now, None)
            if self._enabling.muted:
                self._command_output.parting.forget()
            else:
                self._command_output.send_parting(now)
            self._publish_scales(now)
        if self._active and self._enabling.resumes(now):
            self._enable()

    # -- enabling

    def _publish_beat(self) -> None:
        self._alive.publish(Int64(data=self._enabling.period))

    def _send_zero(self) -> None:
        if self._on_each_state and not self._zero.on:  # whose weight stays, and then fades
            self._send(self.clock.now(), None)

    def _enable(self) -> None:
        with self._lock:
            if self._compensator is not None:
                self._enabling.enable(self.clock.now(), self.calendar_time())
                self._publish_beat()

    def _disable(self) -> None:
        with self._lock:
            if self._compensator is not None:
                self._zero.stop("compensation was switched off")
                if self._enabling.disable(self.clock.now(), self._send_zero):
                    self._publish_beat()

    def _on_zero_torque(self, on: bool) -> str:
        self.require_active()
        with self._lock:
            return self._zero.request(on, self.clock.now())

    def _on_enable(self, on: bool) -> str:
        if on:
            self.require_active()
        if self._compensator is not None:
            self._enabling.returned = 0
        (self._enable if on else self._disable)()
        return "compensating" if on else "friction torque is zero"

    # -- what was learnt

    def _save(self) -> None:
        """Save the learned friction if it has changed."""
        with self._lock:
            if self._compensator is None:
                return
            memory, compensator = self._in_use.memory, self._in_use.compensator
            if memory is None or not compensator.account().certainty.any():
                return  # nothing was learned in this run
            learned = compensator.learned
        if learned is not None:
            try:
                memory.write(learned)
            except StribeckError as error:
                self.get_logger().warning(
                    f"what was learnt could not be saved: {error}", throttle_duration_sec=600.0
                )

    def _on_forget(self) -> str:
        with self._lock:
            if self._compensator is None:
                raise NodeStateError("configure the node first")
            self._compensator.present.recall(None)
            memory = self._in_use.memory
        if memory is not None:
            memory.forget()
        return "what was learnt has been discarded; friction is as identified"

    # -- telemetry and diagnostics

    def _on_telemetry(self, reader: TelemetryReader, data: bytes) -> None:
        for joint, values, stamp in reader.read(data):
            with self._lock:
                if self._compensator is not None:
                    apply_telemetry(self._compensator, joint, values, stamp)
            self._check_temperature(joint, values.get("temperature", math.nan))

    def _check_temperature(self, joint: CompensatedJoint, temperature: float) -> None:
        fitted = joint.model.temperature
        known = joint.model.per_kelvin is not None
        if known or fitted is None or not abs(temperature - fitted) > self._settings.temperature_margin:
            return
        self._temperature_warning = f"{joint.model.name} is at {temperature:.0f} °C, but its friction was identified at {fitted:.0f} °C: identify it again at this temperature"
        self.get_logger().warning(self._temperature_warning, throttle_duration_sec=60.0)

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        with self._lock:
            if self._compensator is None:
                return "ok", "not configured", {}
            compensator, zero = self._compensator.present, self._zero.status
            figures = figures_of(compensator, self._enabling, self._count, self._in_use.learning.gap)
            durations = self._durations[: self._count].copy()
            doubt, notice = compensator.doubt, fading_of(compensator) or compensator.notice
            off = compensator.off_reasons
        figures |= latency(durations)  # without the lock, on which a state would wait
        if doubt is not None and compensator.enabled:
            return "warn", f"zero torque: {doubt}{self._missing_states(compensator)}", figures
        if self._enabling.tripped:
            return "warn", self._enabling.tripped, figures
        if off and compensator.enabled:
            return "warn", f"zero torque of some joints: {'; '.join(off)}", figures
        if zero[0] == "warn":
            return *zero, figures
        if self._settings.guarded and not self._alive.get_subscription_count():
            text = "guarded is true, but no guard is running: start it, or set guarded to false"
            return "warn", text, figures
        if notice:
            self.get_logger().warning(notice, throttle_duration_sec=60.0)
            return "warn", notice, figures
        if self._temperature_warning:
            return "warn", self._temperature_warning, figures
        return "ok", zero[1] or doubt or "compensating", figures

    def _missing_states(self, compensator: Compensator) -> str:
        if self._count:
            return ""
        if compensator.merger.foreign:
            return f": states of {', '.join(compensator.names)} are not received, only those of other joints"
        if self._needs_reliable_states and has_best_effort_publisher(self, "joint_states"):
            return ": joint_states are published as best effort, but qos_overrides require reliable"
        return ""


main = partial(run, CompensationNode)


if __name__ == "__main__":
    sys.exit(main())
