"""Base class of the nodes: declared parameters, error reporting, diagnostics and orderly shutdown."""

from __future__ import annotations

import gc
import platform
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSPolicyKind, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.signals import SignalHandlerOptions

from stribeck.errors import ConfigError, NodeStateError, ServoError, StribeckError
from stribeck.files.declaration import NodeParameters, Spec
from stribeck.files.sections import check_sections, parameter_files
from stribeck.live.parameters import ALL_NAMES, StartParameters
from stribeck.live.real_time import request_real_time
from stribeck.nodes.hot_loop import HotLoop
from stribeck.nodes.lockstep import LockstepNode
from stribeck.nodes.node_parameters import descriptor_of, without_effect
from stribeck.nodes.qos import quiet_events
from stribeck.nodes.statuses import FAILED
from stribeck.nodes.transport import avoid_shared_memory

DIAGNOSTICS_PERIOD = 1.0

SPIN = 0.25
"""Period at which a process checks whether to exit [s]; each check makes rclpy rebuild its wait set, which costs 1 ms."""

SWITCH_INTERVAL = 1e-4
"""Longest time that a thread serving messages waits for the interpreter lock [s]."""

LEVELS = {"ok": DiagnosticStatus.OK, "warn": DiagnosticStatus.WARN, "error": DiagnosticStatus.ERROR}

Level = Literal["info", "warning", "error"]

OVERRIDABLE = (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY)
"""QoS policies of subscriptions that ``qos_overrides`` may change."""

P = TypeVar("P", bound=NodeParameters)


class ServiceNode(LockstepNode, LifecycleNode, Generic[P]):
    """A lifecycle node with declared parameters.

    A subclass sets :attr:`parameter_class` and implements ``_configure``, ``_activate``, ``_deactivate``, ``_release``
    and ``_status``. Each of them may raise a :class:`StribeckError`: the transition then fails and the reason is
    logged once. ``_deactivate`` and ``_release`` may be called at any time, even twice. What is :meth:`managed`
    is destroyed after ``_release``. Everything waits and measures time on :attr:`clock`, which is
    simulated in lock-step (:mod:`stribeck.nodes.lockstep`).
    """

    parameter_class: type[P] = NodeParameters  # type: ignore[assignment]

    hardware = platform.node()
    """What diagnostics are about (``hardware_id``): this computer, or the devices that a subclass names."""

    exit_code: int | None = None
    """Set by a node whose work is done; the process then exits with this code."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._hot: tuple[Any, ...] = ()
        self._loop: HotLoop | None = None
        self._tick_timer: Any = None
        self._managed: list[tuple[Callable[[Any], Any], Any]] = []
        super().__init__(name, **kwargs)
        self._usual_name = name
        self._parameter_files = parameter_files([*sys.argv, *(kwargs.get("cli_args") or ())])
        self._specs: dict[str, Spec] = {}
        self.declare((*self.parameter_class.specs(), *StartParameters.specs()))
        if self.get_parameter("lockstep").value:
            self.join_lockstep(self.get_parameter("lockstep").value, self.report)
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._active = False
        self._failure_of_transition = ""
        self.owns_process = False
        """Whether it may tune the garbage collector and thread policies of the process."""
        self.steady_timer(DIAGNOSTICS_PERIOD, self.publish_diagnostics)
        if self.get_parameter("autostart").value:
            self._autostart = self.steady_timer(0.0, self._start)

    # -- parameters

    def declare(self, specs: Iterable[Spec]) -> None:
        """Declare parameters with types, ranges and descriptions, unless they are declared already.

        :raises ConfigError: for an invalid initial value.
        """
        for spec in specs:
            if spec.name in self._specs:
                continue
            try:
                self.declare_parameter(spec.name, spec.default, descriptor_of(spec))
            except (InvalidParameterTypeException, InvalidParameterValueException) as error:
                value = self._parameter_overrides[spec.name].value
                integer = spec.type is float and type(value) is int
                spec.check(value)  # gives a better message when it refuses the value
                raise ConfigError(
                    f"{spec.name}: expected a value of type {getattr(spec.type, '__name__', spec.type)}, found {value!r}"
                    + (f"; write {value}.0" if integer else "")
                ) from error
            self._specs[spec.name] = spec

    def values(self) -> dict[str, Any]:
        """All declared parameters, checked.

        :raises ConfigError: for an invalid value.
        """
        return {
            name: spec.check(spec.plain(self.get_parameter(name).value)) for name, spec in self._specs.items()
        }

    def parameters(self) -> P:
        """The parameters of the node and of its joints, checked.

        :raises ConfigError: for an invalid value.
        """
        self.declare(self.parameter_class.all_specs(self.values().get("joints")))
        return self.parameter_class.of(self.values())

    def _check_names(self, values: Mapping[str, Any]) -> None:
        """Warn of parameters that no node declares; a misspelt one would silently keep its default.

        :raises ConfigError: if the parameter belongs to a joint of this node.
        """
        given = set(self._parameter_overrides) - set(self._specs) - ALL_NAMES
        for line in without_effect(self.parameter_class, given, tuple(self._specs), values.get("joints", ())):
            self.get_logger().warning(line)

    def _on_set_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = {}
        try:
            for parameter in parameters:
                spec = self._specs.get(parameter.name)
                if spec is None:
                    continue
                changes[spec.name] = spec.check(spec.plain(parameter.value))
                if self._configured and not spec.live:
                    raise ConfigError(f"{spec.name} can be changed only while the node is not configured")
            if self._configured:
                self._change_all(changes)
        except StribeckError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _change_all(self, changes: Mapping[str, Any]) -> None:
        before, applied = self.values(), []
        try:
            for name, value in changes.items():
                self._change(name, value)
                applied.append(name)
        except StribeckError:
            for name in applied:
                self._change(name, before[name])
            raise

    def _change(self, name: str, value: Any) -> None:
        """Apply a change of a live parameter; a :class:`StribeckError` refuses it."""

    # -- life cycle

    _configured = False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read parameters and files; if they are invalid, log one line and return FAILURE."""
        try:
            check_sections(self._parameter_files, self.get_fully_qualified_name(), self._usual_name)
            self._configure(self.parameters())
            self._check_names(self.values())
        except Exception as error:  # rclpy would swallow it silently
            return self._failed("configure", error)
        self._configured, self._failure_of_transition = True, ""
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the work; if that is impossible, log one line and return FAILURE."""
        try:
            self._activate()
        except Exception as error:
            self._deactivate()
            return self._failed("activate", error, release=False)
        self._active, self._failure_of_transition = True, ""
        refusal = request_real_time(self.values().get("realtime_priority", 0)) if self.owns_process else ""
        if refusal:
            self.get_logger().warning(refusal)
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the work and enter the safe state."""
        self._end_work()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the work and release all resources, from any state."""
        self._end()
        return TransitionCallbackReturn.SUCCESS

    on_shutdown = on_error = on_cleanup

    def destroy_node(self) -> None:
        """Shut down safely from any state."""
        self._end()
        super().destroy_node()

    def _end_work(self) -> None:
        self._active = False
        self._deactivate()

    def _end(self) -> None:
        self._end_work()
        self._release_all()
        self._configured = False

    def _release_all(self) -> None:
        self.stop_serving()
        self._release()
        managed, self._managed = self._managed, []
        for destroy, one in managed:
            destroy(one)

    def _failed(self, transition: str, error: Exception, release: bool = True) -> TransitionCallbackReturn:
        kind = "" if isinstance(error, StribeckError) else f"{type(error).__name__}: "
        self._failure_of_transition = f"{FAILED}{transition}: {kind}{error}"
        self.get_logger().error(self._failure_of_transition)
        self.publish_diagnostics()  # now, as the process may end with this
        if release:
            self._release_all()
        return TransitionCallbackReturn.FAILURE

    def _start(self) -> None:
        self._autostart.cancel()
        steps = (self.trigger_configure, self.trigger_activate)
        failed = any(step() != TransitionCallbackReturn.SUCCESS for step in steps)
        if failed and self.get_parameter("exit_on_failure").value:
            self.exit_code = 1

    def _configure(self, parameters: P) -> None:
        raise NotImplementedError

    def _activate(self) -> None:
        raise NotImplementedError

    def _deactivate(self) -> None:
        raise NotImplementedError

    def _release(self) -> None:
        """Release resources that are not :meth:`managed`."""

    # -- diagnostics

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        """Level (a key of :data:`LEVELS`), message and values of the diagnostics."""
        raise NotImplementedError

    def publish_diagnostics(self) -> None:
        """Publish the current status: its stamp is not later than what it says."""
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        failure = self._failure_of_transition
        inactive: tuple[str, str, Mapping[str, Any]] = (
            ("error", failure, {}) if failure else ("ok", "not active", {})
        )
        array.status = [self.status_message(*(self._status() if self._active else inactive))]
        self._diagnostics.publish(array)

    def status_message(self, level: str, message: str, figures: Mapping[str, Any]) -> DiagnosticStatus:
        """A status of this node; figures become text, and a list as many values of its key."""
        values = [
            KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value))
            for key, found in figures.items()
            for value in (found if isinstance(found, list) else [found])
        ]
        name = self.get_fully_qualified_name().lstrip("/")
        return DiagnosticStatus(
            level=LEVELS[level], name=name, message=message, hardware_id=self.hardware, values=values
        )

    def say(self, level: Level, text: str) -> None:
        """Log at a severity given as a variable; rclpy requires a separate source line for each severity."""
        logger = self.get_logger()
        if level == "error":
            logger.error(text)
        elif level == "warning":
            logger.warning(text)
        else:
            logger.info(text)

    # -- services, publishers and subscriptions

    def answer(self, kind: Any, name: str, action: Callable[..., str]) -> None:
        """Create a service of type Trigger or SetBool that responds with the text returned by ``action``.

        :param action: receives ``data`` of a SetBool; its :class:`StribeckError` becomes an unsuccessful response.
        """

        def call(request: Any, response: Any) -> Any:
            try:
                response.message = action(*([request.data] if hasattr(request, "data") else []))
                response.success = True
            except StribeckError as error:
                response.success, response.message = False, str(error)
            return response

        self.create_service(kind, name, call)

    def require_active(self) -> None:
        """:raises NodeStateError: if the node is not active."""
        if not self._active:
            raise NodeStateError("activate the node first")

    def managed(self, one: Any, destroy: Callable[[Any], Any]) -> Any:
        """A publisher, subscription or timer, to be destroyed when the node is cleaned up."""
        self._managed.append((destroy, one))
        return one

    def managed_publisher(self, kind: Any, topic: str, qos: QoSProfile | int) -> Any:
        """A publisher that is destroyed when the node is cleaned up."""
        return self.managed(self.create_publisher(kind, topic, qos), self.destroy_publisher)

    def hot_subscription(
        self, kind: Any, topic: str, callback: Callable[[Any], None], qos: QoSProfile | int, raw: bool = True
    ) -> Any:
        """A subscription for :meth:`serve_fast`; its callback receives serialised messages unless ``raw`` is false."""
        return self.create_subscription(kind, topic, callback, qos, event_callbacks=quiet_events(), raw=raw)

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, qos_profile: Any, **options: Any
    ) -> Any:
        """Create a subscription whose history, depth and reliability can be set by ``qos_overrides``."""
        name = f"qos_overrides.{self.resolve_topic_name(topic)}.subscription."
        asked = [policy for policy in OVERRIDABLE if name + policy.name.lower() in self._parameter_overrides]
        options.setdefault("qos_overriding_options", QoSOverridingOptions(asked))
        return super().create_subscription(msg_type, topic, callback, qos_profile, **options)

    @property
    def subscriptions(self) -> Iterator[Any]:
        """The subscriptions that an executor serves, that is, all except those of the hot loop or of lock-step."""
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
        """Serve subscriptions made by :meth:`hot_subscription` in a :class:`HotLoop`, in this order of priority.

        In lock-step, the turns of the node serve them.

        :param tick: called in the same thread about once per ``period`` [s].
        :param lazy: whether polling for messages once per ``period`` is currently sufficient.
        """
        self._hot = subscriptions
        if self.turns is not None:
            self.turns.serve_first(subscriptions)
            self._tick_timer = self.turns.timer(period, tick)
            return
        self._loop = HotLoop(self, subscriptions, tick, period, self.report, lazy)
        if self.owns_process:
            self._loop.prioritise()
            gc.collect()
            gc.freeze()  # the garbage collector need not traverse existing objects again, which would cause pauses

    def stop_serving(self, keep: Collection[Any] = ()) -> None:
        """Stop the hot loop and destroy its subscriptions, except those in ``keep``."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
        if self._tick_timer is not None:
            self._tick_timer.cancel()
        hot, self._hot = self._hot, ()
        for subscription in hot:
            if subscription not in keep:
                self.destroy_subscription(subscription)

    def report(self, error: Exception) -> None:
        """Log an exception raised by a callback; the node continues."""
        self.get_logger().error(f"{type(error).__name__}: {error}", throttle_duration_sec=5.0)


def run(make: Callable[[], ServiceNode[Any]], argv: list[str] | None = None) -> int:
    """Spin a node until SIGINT, SIGTERM or SIGHUP (closed terminal), then shut it down safely.

    :returns: exit code: 0, the node's own exit code, or 1 if the node could not be created.
    """
    sys.setswitchinterval(SWITCH_INTERVAL)
    warning = avoid_shared_memory()
    stopping: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: stopping.append(received))
    try:
        rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # from rcl, for arguments or a parameter file that it cannot read
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
    if not node.get_parameter("autostart").value:
        name = node.get_fully_qualified_name()
        node.get_logger().info(
            f"not configured: ros2 lifecycle set {name} configure, then activate; or start with -p autostart:=true"
        )
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    ending: Callable[[], bool] = lambda: bool(stopping) or node.exit_code is not None  # noqa: E731
    try:
        if node.turns is not None:
            node.turns.spin(executor, ending)
        while not ending() and rclpy.ok():
            try:
                executor.spin_once(timeout_sec=SPIN)
            except Exception as error:  # from a callback; a bad message must not stop the node
                node.report(error)
    except ServoError as error:  # the simulation has ended
        node.get_logger().fatal(str(error))
        node.exit_code = 1
    finally:
        node.destroy_node()
        executor.shutdown()
        rclpy.try_shutdown()
    return 0 if stopping else node.exit_code or 0
