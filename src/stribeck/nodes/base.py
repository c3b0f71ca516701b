"""What all nodes share: parameters from a table, clear failures, diagnostics, one way to end."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.signals import SignalHandlerOptions

from stribeck.errors import ConfigError, StribeckError
from stribeck.nodes.hot_loop import HotLoop
from stribeck.nodes.parameters import KNOWN_NAMES, Spec, Table
from stribeck.nodes.sections import check_sections, parameter_files
from stribeck.nodes.transport import avoid_shared_memory

DIAGNOSTICS_PERIOD = 1.0

SPIN = 0.25
"""A process looks so often whether it is to end [s]; each time rclpy builds its wait set anew, which costs a millisecond."""

SWITCH_INTERVAL = 1e-4
"""A thread that serves messages waits at most so long for one that does not [s]."""

LEVELS = {"ok": DiagnosticStatus.OK, "warn": DiagnosticStatus.WARN, "error": DiagnosticStatus.ERROR}

Level = Literal["info", "warning", "error"]

ROS_PARAMETERS = ("use_sim_time", "qos_overrides", "start_type_description_service")
"""What ROS itself takes from a file of parameters."""

OVERRIDABLE = (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY)
"""Qualities of subscriptions that ``qos_overrides`` may change."""

AUTOSTART = Spec("autostart", "bool", False, "configure and activate without being told")


class ServiceNode(LifecycleNode):
    """A lifecycle node that does one service to a robot.

    A subclass gives :attr:`table` and fills ``_configure``, ``_activate``, ``_deactivate``, ``_release``
    and ``_status``. Each of them may raise a :class:`StribeckError`: the transition then fails and the
    reason is logged once. ``_deactivate`` and ``_release`` may be called at any time, twice too.
    """

    table: Table = ()

    exit_code: int | None = None
    """Set by a node whose work is done: the process then ends with it."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._hot: tuple[Any, ...] = ()
        self._loop: HotLoop | None = None
        super().__init__(name, **kwargs)
        self._usual_name = name
        self._parameter_files = parameter_files([*sys.argv, *(kwargs.get("cli_args") or ())])
        self._specs: dict[str, Spec] = {}
        self.declare((*self.table, AUTOSTART))
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._last_level: bytes | None = None
        self._active = False
        self._failure_of_transition = ""
        self.owns_process = False
        """Whether it may set garbage collector and threads of the process to its needs."""
        self.steady_timer(DIAGNOSTICS_PERIOD, self.publish_diagnostics)
        if self.get_parameter(AUTOSTART.name).value:
            self._autostart = self.steady_timer(0.0, self._start)

    def steady_timer(self, period: float, callback: Callable[[], None]) -> Any:
        """A timer on the steady clock, which runs on when simulated time stands."""
        return self.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))

    # -- parameters

    def declare(self, table: Table) -> None:
        """Declare parameters with types, ranges and descriptions; known ones are left alone.

        :raises ConfigError: for a value given at start that its table does not allow.
        """
        for spec in table:
            if spec.name in self._specs:
                continue
            try:
                self.declare_parameter(spec.name, spec.default, _descriptor(spec))
            except (InvalidParameterTypeException, InvalidParameterValueException) as error:
                given = self._parameter_overrides[spec.name].value
                hint = f"; write {given}.0" if spec.kind == "float" and type(given) is int else ""
                spec.check(given)  # says more, where it refuses the value
                raise ConfigError(f"{spec.name}: expected {spec.kind}, found {given!r}{hint}") from error
            self._specs[spec.name] = spec

    def values(self) -> dict[str, Any]:
        """All parameters, checked.

        :raises ConfigError: for a value that its table does not allow.
        """
        return {
            name: spec.check(_plain(self.get_parameter(name).value, spec))
            for name, spec in self._specs.items()
        }

    def _check_names(self, values: Mapping[str, Any]) -> None:
        """Say which given parameters nobody knows: a misspelt one would silently keep its default.

        :raises ConfigError: for one of a joint of ours.
        """
        joints = values.get("joints", ())
        strangers = []
        for name in sorted(set(self._parameter_overrides) - set(self._specs) - KNOWN_NAMES):
            first, _, rest = name.partition(".")
            if rest and first in joints:
                known = [
                    spec.removeprefix(f"{first}.") for spec in self._specs if spec.startswith(f"{first}.")
                ]
                raise ConfigError(f"{name}: unknown parameter of a joint; valid: {', '.join(known)}")
            unheard = first == "qos_overrides" and ".publisher" in name
            if unheard or (first not in ROS_PARAMETERS and not (rest and not joints)):
                strangers.append(name)
        if strangers:
            self.get_logger().warning(
                f"unknown parameters, which change nothing: {', '.join(strangers)}; valid: {', '.join(self._specs)}"
            )

    def _on_set_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = {}
        try:
            for parameter in parameters:
                spec = self._specs.get(parameter.name)
                if spec is None:
                    continue
                changes[spec.name] = spec.check(_plain(parameter.value, spec))
                if self._configured and not spec.live:
                    raise ConfigError(f"{spec.name} can change only while the node is not configured")
            if self._configured:
                self._change_all(changes)
        except StribeckError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _change_all(self, changes: Mapping[str, Any]) -> None:
        """Take over live parameters, all or none."""
        before, done = self.values(), []
        try:
            for name, value in changes.items():
                self._change(name, value)
                done.append(name)
        except StribeckError:
            for name in done:
                self._change(name, before[name])
            raise

    def _change(self, name: str, value: Any) -> None:
        """Take over a live parameter; a :class:`StribeckError` refuses it."""

    # -- life cycle

    _configured = False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read parameters and files; FAILURE with one line if they do not fit."""
        try:
            check_sections(self._parameter_files, self.get_fully_qualified_name(), self._usual_name)
            self._configure(self.values())
            self._check_names(self.values())
        except Exception as error:  # rclpy would swallow it without a word
            return self._failed("configure", error)
        self._configured, self._failure_of_transition = True, ""
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the work; FAILURE with one line if that cannot be."""
        try:
            self._activate()
        except Exception as error:
            self._deactivate()
            return self._failed("activate", error, release=False)
        self._active, self._failure_of_transition = True, ""
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the work, in the safe state."""
        self._end_work()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give everything back."""
        self._end()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the work and give everything back, from any state."""
        self._end()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """After an exception in a transition: as if newly started."""
        self._end()
        return TransitionCallbackReturn.SUCCESS

    def destroy_node(self) -> None:
        """End safely, however the node was left."""
        self._end()
        super().destroy_node()

    def _end_work(self) -> None:
        self._active = False
        self._deactivate()

    def _end(self) -> None:
        self._end_work()
        self.stop_serving()
        self._release()
        self._configured = False

    def _failed(self, what: str, error: Exception, release: bool = True) -> TransitionCallbackReturn:
        kind = "" if isinstance(error, StribeckError) else f"{type(error).__name__}: "
        self._failure_of_transition = f"cannot {what}: {kind}{error}"
        self.get_logger().error(self._failure_of_transition)
        if release:
            self.stop_serving()
            self._release()
        return TransitionCallbackReturn.FAILURE

    def _start(self) -> None:
        self._autostart.cancel()
        if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    def _configure(self, values: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _activate(self) -> None:
        raise NotImplementedError

    def _deactivate(self) -> None:
        raise NotImplementedError

    def _release(self) -> None:
        raise NotImplementedError

    # -- diagnostics

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        """Level (a key of :data:`LEVELS`), a sentence, and figures."""
        raise NotImplementedError

    def publish_diagnostics(self) -> None:
        """Say how things are, now."""
        if self._active:
            level, message, figures = self._status()
        elif self._failure_of_transition:
            level, message, figures = "error", self._failure_of_transition, {}
        else:
            level, message, figures = "ok", "not active", {}
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        status = DiagnosticStatus(
            level=LEVELS[level], name=self.get_fully_qualified_name().lstrip("/"), message=message
        )
        status.values = [KeyValue(key=key, value=_words(value)) for key, value in figures.items()]
        array.status = [status]
        self._diagnostics.publish(array)

    def say(self, level: Level, text: str) -> None:
        """Log a line whose severity is only known now: rclpy wants a source line for each."""
        logger = self.get_logger()
        if level == "error":
            logger.error(text)
        elif level == "warning":
            logger.warning(text)
        else:
            logger.info(text)

    # -- subscriptions

    def create_subscription(
        self, kind: Any, topic: str, callback: Any, qos_profile: Any, **kwargs: Any
    ) -> Any:
        """A subscription whose history, depth and reliability are the user's where ``qos_overrides`` name them."""
        name = f"qos_overrides.{self.resolve_topic_name(topic)}.subscription."
        asked = [policy for policy in OVERRIDABLE if name + policy.name.lower() in self._parameter_overrides]
        kwargs.setdefault("qos_overriding_options", QoSOverridingOptions(asked))
        return super().create_subscription(kind, topic, callback, qos_profile, **kwargs)

    @property
    def subscriptions(self) -> Iterator[Any]:
        """The subscriptions that an executor serves: all but those of the hot loop."""
        for subscription in super().subscriptions:
            if not any(subscription is hot for hot in self._hot):
                yield subscription

    def serve_fast(
        self,
        *subscriptions: Any,
        tick: Callable[[], None] = lambda: None,
        period: float = 0.1,
        lazy: Callable[[], bool] = lambda: False,
    ) -> None:
        """Serve subscriptions by a :class:`HotLoop`; they must be created with :func:`quiet_events`.

        :param tick: called in the same thread about once per ``period`` [s].
        :param lazy: whether it is enough, now, to look for messages once per ``period``.
        """
        self._hot = subscriptions
        self._loop = HotLoop(self, subscriptions, tick, period, self.report, lazy)
        if self.owns_process:
            self._loop.go_first()
            gc.collect()
            gc.freeze()  # what is here now stays: no pause to look through it again

    def stop_serving(self, keep: Collection[Any] = ()) -> None:
        """End the hot loop and its subscriptions, but for those to ``keep``, which are to be served anew."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
        hot, self._hot = self._hot, ()
        for subscription in hot:
            if subscription not in keep:
                self.destroy_subscription(subscription)

    def report(self, error: Exception) -> None:
        """Log what a callback failed with; the node goes on."""
        self.get_logger().error(f"{type(error).__name__}: {error}", throttle_duration_sec=5.0)


def offered_weakly(node: Node, topic: str) -> bool:
    """Whether a publisher of a topic is known that offers best effort only: no reliable subscription hears it."""
    offers = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    return any(offer.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT for offer in offers)


def measured(depth: int) -> QoSProfile:
    """Quality of a subscription to measurements: best effort, which hears every publisher, reliable or not.

    What is lost is not worth waiting for: the next state comes soon, and if none does, that is what time-outs are for.
    """
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


def quiet_events() -> Any:
    """Event callbacks for a subscription of a hot loop: none, whose conditions would wake the executor."""
    from rclpy.event_handler import SubscriptionEventCallbacks

    return SubscriptionEventCallbacks(use_default_callbacks=False)


def _descriptor(spec: Spec) -> ParameterDescriptor:
    text = spec.description + (f" ({', '.join(c for c in spec.choices if c)})" if spec.choices else "")
    descriptor = ParameterDescriptor(name=spec.name, description=text)
    descriptor.dynamic_typing = spec.kind in ("floats", "texts")  # an empty list tells no type
    bounded = abs(spec.lower) != float("inf") and abs(spec.upper) != float("inf")
    if spec.kind == "float" and bounded:
        descriptor.floating_point_range = [FloatingPointRange(from_value=spec.lower, to_value=spec.upper)]
    if spec.kind == "int" and bounded:
        descriptor.integer_range = [IntegerRange(from_value=int(spec.lower), to_value=int(spec.upper))]
    return descriptor


def _plain(value: Any, spec: Spec) -> Any:
    """A parameter's value without ROS's types."""
    if value is None and spec.kind in ("floats", "texts"):
        return []  # what an empty list in a YAML file becomes
    return list(value) if not isinstance(value, (bool, int, float, str)) and value is not None else value


def _words(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def run(make: Callable[[], ServiceNode], argv: list[str] | None = None) -> int:
    """Spin a node until SIGINT, SIGTERM or SIGHUP (a terminal that closes), then end it safely.

    :returns: exit code: 0, what a node that ends by itself says, or 1 if the node could not be made.
    """
    sys.setswitchinterval(SWITCH_INTERVAL)
    warning = avoid_shared_memory()
    stopping: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: stopping.append(received))
    try:
        rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # of rcl, for arguments or a file of parameters that it cannot read
        sys.stderr.write(f"cannot start: {' '.join(str(error).split())}\n")
        return 1
    try:
        node = make()
    except StribeckError as error:
        sys.stderr.write(f"{error}\n")
        rclpy.shutdown()
        return 1
    if warning:
        node.get_logger().warning(warning)
    node.owns_process = True
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        while not stopping and rclpy.ok() and node.exit_code is None:
            try:
                executor.spin_once(timeout_sec=SPIN)
            except Exception as error:  # of a callback: one bad message ends no node
                node.report(error)
    finally:
        node.destroy_node()
        executor.shutdown()
        rclpy.try_shutdown()
    return 0 if stopping else node.exit_code or 0


def steady() -> float:
    """Time on the steady clock [s]."""
    return time.monotonic()
