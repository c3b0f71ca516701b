"""The servo node, which sends goals to servos on a bus and publishes joint states and telemetry."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from stribeck.errors import ConfigError, NodeStateError, ServoError
from stribeck.files.cdr import JointStateReader
from stribeck.live.parameters import ServoParameters
from stribeck.nodes.base import ServiceNode, run
from stribeck.nodes.emergency_stop import PRESSED, EmergencyStop
from stribeck.nodes.messages import telemetry_topics
from stribeck.nodes.statuses import DISTURBED
from stribeck.recordings.bags.messages import (
    JOINT_COMMANDS,
    JOINT_STATES,
    Topic,
)
from stribeck.servo.config import DriverConfig, read_driver_config
from stribeck.servo.driver import Driver, DriverSample, Event
from stribeck.servo.port import Port, port_named
from stribeck.servo.sample import JointGoals, SampleMessages
from stribeck.session.timing import SimulatedClock, SteadyClock

DEPTH = 200
"""Queue depth: a second of messages, as a recorder may wait for its disk."""


class ServoNode(ServiceNode[ServoParameters]):
    """Subscribes to ``joint_goals``; publishes ``joint_states``, ``joint_commands`` (all JointState), and telemetry.

    Goals are positions, NaN for torque off; joints in current or pwm mode take current [A] or duty as effort. Telemetry
    is ``dynamic_joint_states`` if control_msgs is installed, otherwise ``servo_status``. The bus has its own thread;
    :mod:`stribeck.servo.driver` describes its reactions to faults. ``emergency_stop`` (Bool) switches torque off until
    ``~/clear``; ``~/recover`` clears and enables after a fault of timing only.
    """

    parameter_class = ServoParameters

    def __init__(self, **kwargs: Any) -> None:
        self._driver: Driver | None = None
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        super().__init__("servo", **kwargs)
        self.answer(SetBool, "~/enable", self._on_enable)
        self.answer(Trigger, "~/clear", self._on_clear)
        self.answer(Trigger, "~/recover", self._on_recover)
        self._emergency_stop = EmergencyStop(self, self._on_emergency_stop)

    # -- life cycle

    def _configure(self, parameters: ServoParameters) -> None:
        config = servo_config(parameters)
        self.hardware = config.port
        self._driver = driver = Driver(config, self._port(config))
        report = driver.connect()
        for warning in (*report.warnings, *([driver.stays_energised] if driver.stays_energised else ())):
            self.get_logger().warning(warning)
        for note in report.notes:
            self.get_logger().info(note)
        self._enable_at_start = parameters.enabled
        self._figures = SampleStatistics(config.names, self.clock)
        self._trouble = ""
        self._goals, self._reader = JointGoals(config.joints), JointStateReader()
        telemetry = telemetry_topics()[-1]
        followers = [joint.servo.follows_position for joint in config.joints]
        self._messages = SampleMessages(config.names, followers, telemetry.topic, driver.clock)
        self._topics = {
            topic: self.managed_publisher(JointState, topic.name.lstrip("/"), DEPTH)
            for topic in (JOINT_STATES, JOINT_COMMANDS)
        }
        self._topics[telemetry.topic] = self.managed_publisher(telemetry.type, telemetry.name, DEPTH)
        if self.turns is not None:
            self._shown_time = self.managed_publisher(Clock, "clock", 1)
        self.serve_fast(self.hot_subscription(JointState, "joint_goals", self._on_goals, 10))

    def _activate(self) -> None:
        driver = self._connected()
        self._goals.forget()
        self._ending.clear()
        self._thread = self.thread(partial(self._run, driver), "servo bus")
        self._thread.start()
        if self._emergency_stop.pressed:
            driver.stop(PRESSED)
        elif self._enable_at_start:
            try:
                driver.enable()
            except ServoError as error:
                # States are still published, as a user needs them to find the cause.
                self._trouble = str(error)
                self.get_logger().error(self._trouble)

    def _deactivate(self) -> None:
        driver, thread = self._driver, self._thread
        if driver is None or thread is None:
            return
        driver.disable()
        self._ending.set()
        if threading.current_thread() is not thread:
            thread.join()
        self._thread = None
        for event in driver.cycle().events:  # if the servos did not confirm that torque is off
            self._say(event)

    def _release(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def _change(self, name: str, value: Any) -> None:
        if name == "p_gain" and self._driver is not None:
            self._driver.set_gain(gains_of(value, self._driver.config))

    def _port(self, config: DriverConfig) -> Port:
        """The port of the servos; that of emulated servos in simulated time requires lock-step with it.

        :raises ConfigError: for lock-step with another simulation, or none.
        """
        port = port_named(config.port, config.baud_rate, self.turns)
        simulated, lockstep = isinstance(port.clock, SimulatedClock), self.get_parameter("lockstep").value
        if simulated != bool(lockstep) or (simulated and not Path(lockstep).samefile(config.port)):
            raise ConfigError(
                f"port is {config.port!r} and lockstep is {lockstep!r}: for emulated servos in simulated time "
                "both must be the socket of `stribeck emulate --simulated`; otherwise leave lockstep empty"
            )
        return port

    def _connected(self) -> Driver:
        if self._driver is None:
            raise NodeStateError("not connected: configure the node first")
        return self._driver

    # -- the bus

    def _run(self, driver: Driver) -> None:
        try:
            driver.run(self._take, self.clock if self.turns is not None else None)
        except Exception as error:
            # A bug, or a context that was shut down: servos must not stay energised.
            driver.disable()
            self._trouble = (
                f"torque is off, because the control cycle failed ({type(error).__name__}: {error})"
            )
            self.get_logger().fatal(self._trouble)

    def _take(self, sample: DriverSample) -> bool:
        for message in self._messages(sample, self._unheard):
            self._topics[message.topic].publish(message.data)
        if self.turns is not None and self._shown_time.get_subscription_count():
            self._shown_time.publish(Clock(clock=self.get_clock().now().to_msg()))
        self._figures.take(sample)
        for event in sample.events:
            self._say(event)
        if sample.events:
            self.publish_diagnostics()
        return not self._ending.is_set()

    @property
    def _unheard(self) -> list[Topic]:
        """Topics to which nobody listens."""
        if self.turns is not None and self.turns.unconnected:
            return []
        return [topic for topic, one in self._topics.items() if not one.get_subscription_count()]

    def _say(self, event: Event) -> None:
        self.say("error" if event.kind == "fault" else event.kind, event.text)

    # -- what comes in

    def _on_goals(self, data: bytes) -> None:
        driver = self._driver
        if driver is None or driver.state != "on":
            return
        try:
            message = self._reader.read(data)
            position, _, effort = (numbers.tolist() for numbers in message.numbers)
            unknown = self._goals.take(message.names, position, effort, driver.clock.now())
            driver.set_goals(*self._goals.command)
        except (ConfigError, ValueError) as error:
            self.get_logger().warning(f"{error}; this message is ignored", throttle_duration_sec=5.0)
            return
        if unknown:
            self.get_logger().warning(
                f"goals of unknown joints: {unknown}; valid: {', '.join(driver.joints)}",
                throttle_duration_sec=5.0,
            )

    def _on_enable(self, on: bool) -> str:
        driver = self._connected()
        if not on:
            driver.disable("by ~/enable")
            if driver.state != "off":
                raise ServoError(driver.reason)
            return driver.reason or "torque is off"
        self.require_active()
        if driver.state != "on":
            self._goals.forget()
            driver.enable()
        self._trouble = ""
        return "goals are obeyed"

    def _on_clear(self) -> str:
        if self._emergency_stop.pressed:
            raise ServoError("the emergency stop is still pressed: release it first")
        self._connected().clear()
        self._trouble = ""
        return "no fault; torque is off until ~/enable"

    def _on_recover(self) -> str:
        self.require_active()
        driver = self._connected()
        self._goals.forget()
        try:
            driver.recover()
        finally:
            self.publish_diagnostics()
        self._trouble = ""
        return "goals are obeyed"

    def _on_emergency_stop(self) -> None:
        if self._driver is not None and self._active:
            self._driver.stop(PRESSED)

    # -- diagnostics

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        driver = self._driver
        if driver is None:
            return "ok", "not configured", {}
        gap, figures = self._figures.collect()
        counters = {name: float(value) for name, value in vars(driver.counters).items()}
        figures = {"state": driver.state, DISTURBED: driver.disturbed, **figures, **counters}
        if driver.stays_energised:
            figures["stays energised"] = driver.stays_energised
        if driver.state == "fault":
            return "error", driver.reason, figures
        if self._trouble:
            return "error", self._trouble, figures
        if driver.state == "off":
            return "warn", "torque is off; goals are ignored until ~/enable", figures
        if gap:
            return "warn", gap, figures
        return "ok", "goals are obeyed", figures


class SampleStatistics:
    """Statistics of the samples since the last diagnostics.

    :param joints: names, in the order of all arrays.
    :param clock: to measure the rate with.
    """

    def __init__(self, joints: Sequence[str], clock: SteadyClock) -> None:
        self._joints, self._clock = joints, clock
        self._lock = threading.Lock()
        self._sample: DriverSample | None = None
        self._gaps = 0
        self._restart()

    def _restart(self) -> None:
        self._since, self._cycles = self._clock.now(), 0
        self._longest = np.zeros(len(self._joints))

    def take(self, sample: DriverSample) -> None:
        """Take in a sample."""
        with self._lock:
            self._sample = sample
            self._cycles += 1
            self._gaps += int(np.count_nonzero(sample.gap[sample.valid]))
            self._longest = np.maximum(self._longest, sample.gap)

    def collect(self) -> tuple[str, dict[str, Any]]:
        """Description of gaps (empty if none) and statistics since the last call."""
        with self._lock:
            sample, longest = self._sample, self._longest
            figures: dict[str, Any] = {"rate": self._cycles / max(1e-9, self._clock.now() - self._since)}
            figures["gaps"] = self._gaps
            self._restart()
        if sample is not None:
            for j, name in enumerate(self._joints):
                figures[f"energised/{name}"] = bool(sample.torque_enable[j])
                figures[f"voltage/{name}"] = float(sample.voltage[j])
                figures[f"temperature/{name}"] = float(sample.temperature[j])
        silent = [
            f"no answer from joint {name!r} for {1e3 * gap:.0f} ms"
            for name, gap in zip(self._joints, longest, strict=True)
            if gap > 0.0
        ]
        return "; ".join(silent), figures


def servo_config(parameters: ServoParameters) -> DriverConfig:
    """The driver's configuration from the parameters of the node.

    :raises ConfigError: for a missing file, or invalid values.
    """
    if not parameters.config:
        raise ConfigError(
            "config is empty: name the YAML file of the servos (config/record.yaml is an example)"
        )
    config = read_driver_config(Path(parameters.config).expanduser())
    gains = gains_of(parameters.p_gain, config)
    return replace(
        config,
        port=parameters.port or config.port,
        rate=parameters.rate or config.rate,
        joints=tuple(
            replace(joint, p_gain=joint.check_gain(gain))
            for joint, gain in zip(config.joints, gains, strict=True)
        ),
    )


def gains_of(value: Sequence[float], config: DriverConfig) -> list[float]:
    """One gain per joint: from the file, one for all, or one for each.

    :raises ConfigError: for any other number of gains.
    """
    count = len(config.joints)
    if not value:
        return [float(joint.p_gain) for joint in config.joints]
    if len(value) not in (1, count):
        raise ConfigError(
            f"p_gain: give one value for all joints, or one for each of {count}; found {len(value)}"
        )
    return list(value) * count if len(value) == 1 else list(value)


main = partial(run, ServoNode)


if __name__ == "__main__":
    sys.exit(main())
