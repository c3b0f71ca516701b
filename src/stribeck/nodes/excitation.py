"""The excitation node, which plays trajectories at each gain through a commander and records every run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import String
from std_srvs.srv import Trigger

from stribeck.errors import NodeStateError, ServoError
from stribeck.files.cdr import JointStateReader
from stribeck.files.folders import check_writable
from stribeck.live.parameters import ExcitationParameters
from stribeck.nodes.base import ServiceNode, run
from stribeck.nodes.commanders import (
    ActionCommander,
    Commander,
    ForwardCommander,
    ServoCommander,
    TrajectoryCommander,
)
from stribeck.nodes.emergency_stop import PRESSED, EmergencyStop
from stribeck.nodes.messages import TelemetryTopic, decode_telemetry, telemetry_topics
from stribeck.nodes.player import Listener, Player
from stribeck.nodes.qos import latched
from stribeck.nodes.recording import OFFERS_PERIOD, TopicSubscriber, contract_topics, further_topics
from stribeck.nodes.setters import GainSetter
from stribeck.recordings.bags.messages import JOINT_COMMANDS, JOINT_STATES, Topic
from stribeck.servo.excitation_setup import dry_run, session_config
from stribeck.session.bags import Outcome
from stribeck.session.directive import Directive
from stribeck.session.limits import SessionJoint

PROGRESS_PERIOD = 0.2
TELEMETRY_PERIOD = 0.05
"""Period at which gain, torque and temperature are read [s]; all messages are recorded."""

LEVELS_OF_ENDS = {"finished": "ok", "interrupted": "warn", "failed": "error"}
"""Level of ``~/result`` for each end of a session."""

TELEMETRY = {"voltage": "voltage", "temperature": "temperature", "gain": "p_gain", "torque": "torque_enable"}
"""Telemetry required by a session, with the interface names."""


class ExcitationNode(ServiceNode[ExcitationParameters]):
    """Publishes ``bench`` (JSON), ``~/progress`` and ``~/result`` (DiagnosticStatus), latched; reads ``joint_states`` and telemetry.

    ``~/start`` starts a session. ``~/abort`` brings the joints gently to rest; a second call stops them at once, as does
    true on ``emergency_stop`` (Bool). ``~/dry_run`` checks the motion without moving. The goals are sent by a commander (:mod:`stribeck.nodes.commanders`).
    """

    parameter_class = ExcitationParameters

    def __init__(self, **kwargs: Any) -> None:
        self._commander: Commander | None = None
        self._player: Player | None = None
        self._ended = ""
        self._subscriber: TopicSubscriber | None = None
        self._states_reader, self._sent_reader = JointStateReader(), JointStateReader()
        super().__init__("excitation", **kwargs)
        self.steady_timer(OFFERS_PERIOD, self._follow_publishers)
        self.answer(Trigger, "~/start", self._on_start)
        self.answer(Trigger, "~/abort", self._on_abort)
        self.answer(Trigger, "~/dry_run", self._on_dry_run)
        self._emergency_stop = EmergencyStop(self, self._on_emergency_stop)

    # -- life cycle

    def _configure(self, parameters: ExcitationParameters) -> None:
        self._settings = parameters
        self._config = session_config(parameters)
        if parameters.record:
            check_writable(self._config.output / "bag")
        joints = self._config.joints
        self._index = {joint.name: j for j, joint in enumerate(joints)}
        self._bench = self.managed_publisher(String, "bench", latched(len(joints) + 1))
        self._progress = self.managed_publisher(DiagnosticStatus, "~/progress", latched())
        self._result = self.managed_publisher(DiagnosticStatus, "~/result", latched())
        self._commander = self._commander_of(parameters, joints)
        self._subscribe()

    def _subscribe(self) -> None:
        """Subscribe to the topics that the session reads or records; the node's own messages are recorded directly."""
        callbacks: dict[Topic, Callable[[bytes], None]] = {JOINT_STATES: self._on_state}
        if isinstance(self._commander, ServoCommander):
            callbacks[JOINT_COMMANDS] = self._on_sent
        for topic in telemetry_topics():
            callbacks[topic.topic] = partial(self._on_telemetry, topic)
        topics = contract_topics()
        more = further_topics(self._settings.topics)
        callbacks |= {one.topic: partial(self._on_further, one.topic) for one in more}
        topics += more
        self._bag_topics = [one.topic for one in topics]
        self._read_at = 0.0
        self._subscriber = TopicSubscriber(
            self, {one: callbacks[one.topic] for one in topics if one.topic in callbacks}
        )

    def _follow_publishers(self) -> None:
        if self._subscriber is not None:
            self._subscriber.follow_publishers()

    def _activate(self) -> None:
        self._ended = ""
        if self._settings.autoplay:
            self._begin()

    def _deactivate(self) -> None:
        player, self._player = self._player, None
        if player is not None:
            player.stop("the excitation node was deactivated")

    def _release(self) -> None:
        self._subscriber = None
        commander, self._commander = self._commander, None
        if commander is not None:
            commander.destroy()

    def _commander_of(self, parameters: ExcitationParameters, joints: tuple[SessionJoint, ...]) -> Commander:
        """The commander selected by the parameters.

        :raises MissingDependencyError: if it needs a package that is not installed.
        """
        kind = parameters.commander
        target = parameters.gain_node or (parameters.servo_node if kind == "servo" else "")
        gains = GainSetter(self, target, parameters.gain_parameter) if target else None
        if kind == "servo":
            return ServoCommander(self, joints, gains, parameters.servo_node)
        make, usual = {
            "forward": (ForwardCommander, "forward_position_controller"),
            "trajectory": (TrajectoryCommander, "joint_trajectory_controller"),
            "trajectory_action": (ActionCommander, "joint_trajectory_controller"),
        }[kind]
        return make(self, joints, gains, self._on_sent, parameters.controller or usual)

    # -- playing

    def _begin(self) -> str:
        if self._commander is None:
            raise ServoError("configure the node first")
        if self._emergency_stop.pressed:
            raise ServoError("the emergency stop is pressed: release it first")
        self._shown_at, self._shown_play = 0.0, -1
        player = Player(
            self._config,
            self._commander,
            Listener(self._announce, self._show, self.say, self._finish),
            topics=self._bag_topics if self._settings.record else None,
            patience=self._settings.patience,
            allow_overvoltage=self._settings.allow_overvoltage,
        )
        self._player = player
        player.start()
        plays = len(self._config.plays)
        text = f"{plays} run{'s' if plays > 1 else ''}, about {player.session.duration:.0f} s"
        self.get_logger().info(text + (f", into {self._config.output}" if self._settings.record else ""))
        return text

    def _on_start(self) -> str:
        self.require_active()
        if self._player is not None and self._player.alive:
            raise NodeStateError(f"already playing: call {self.get_name()}/abort first")
        return self._begin()

    def _on_abort(self) -> str:
        if self._player is None or not self._player.alive:
            raise NodeStateError("nothing is played")
        self._player.abort()
        return "returning to rest; call ~/abort again to stop at once"

    def _on_dry_run(self) -> str:
        if self._playing() is not None:
            raise NodeStateError(f"playing; call {self.get_name()}/abort first")
        return dry_run(self.parameters())

    def _on_emergency_stop(self) -> None:
        if (player := self._playing()) is not None:
            player.emergency_stop(PRESSED)

    # -- callbacks of the player, in its thread

    def _announce(self, text: str) -> None:
        self._bench.publish(String(data=text))

    def _show(self, directive: Directive) -> None:
        now = self.clock.now()
        if directive.play != self._shown_play:
            self._shown_play = directive.play
            play, plays = self._config.plays[directive.play], len(self._config.plays)
            self.get_logger().info(
                f"run {directive.play + 1}/{plays}: {play.trajectory.name}, gain {play.kp:g}"
            )
        elif now - self._shown_at < PROGRESS_PERIOD and directive.phase not in ("finished", "aborted"):
            return
        self._shown_at = now
        self._progress.publish(self.status_message("ok", directive.phase, self._progress_of(directive)))

    def _progress_of(self, directive: Directive) -> dict[str, Any]:
        plays = self._config.plays
        play = plays[directive.play]
        return {
            "run": directive.play + 1,
            "runs": len(plays),
            "trajectory": play.trajectory.name,
            "kp": play.kp,
            "progress": round(directive.progress, 4),
            "remaining": round(directive.remaining, 2),
        }

    def _finish(self, outcome: Outcome) -> None:
        bags = [str(bag) for bag in outcome.bags]
        count = f"{len(bags)} bag{'' if len(bags) == 1 else 's'}"
        self._ended = f"{outcome.end}: {outcome.reason}" if outcome.reason else outcome.end
        self.say("error" if outcome.end == "failed" else "info", f"{self._ended}; {count}")
        disturbed = [str(bag) for bag in outcome.disturbed]
        figures = {"reason": outcome.reason, "bag": bags, "cut": outcome.cut, "disturbed": disturbed}
        self._result.publish(self.status_message(LEVELS_OF_ENDS[outcome.end], outcome.end, figures))
        self.publish_diagnostics()
        if self._settings.exit_when_done:
            self.exit_code = 0 if outcome.end == "finished" else 1

    # -- subscriptions

    def _playing(self) -> Player | None:
        player = self._player
        return player if player is not None and player.alive else None

    def _on_state(self, data: bytes) -> None:
        if (player := self._playing()) is None:
            return
        arrival = self.clock.now()
        player.record(JOINT_STATES, data)
        message = self._states_reader.read(data)
        positions, velocities, _ = (numbers.tolist() for numbers in message.numbers)
        if any(name in self._index for name in message.names):
            player.states.source_alive(arrival)
        for place, name in enumerate(message.names):
            joint = self._index.get(name)
            if joint is not None and place < len(positions):
                velocity = velocities[place] if place < len(velocities) else np.nan
                player.states.move(joint, arrival, positions[place], velocity)

    def _on_sent(self, data: bytes) -> None:
        """Handle commands sent by the servo node or by the commander."""
        if (player := self._playing()) is None:
            return
        player.record(JOINT_COMMANDS, data)
        message = self._sent_reader.read(data)
        for name, position in zip(message.names, message.numbers[0].tolist(), strict=False):
            if name in self._index:
                player.sent(self._index[name], position)

    def _on_further(self, topic: Topic, data: bytes) -> None:
        if (player := self._playing()) is not None:
            player.record(topic, data)

    def _on_telemetry(self, topic: TelemetryTopic, data: bytes) -> None:
        if (player := self._playing()) is None:
            return
        player.record(topic.topic, data)
        now = self.clock.now()
        if now - self._read_at < TELEMETRY_PERIOD:
            return
        self._read_at = now
        for name, values in decode_telemetry(topic, data):
            if name in self._index:
                player.states.tell(
                    self._index[name],
                    **{key: values[interface] for key, interface in TELEMETRY.items() if interface in values},
                )

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        player = self._playing()
        if player is None:
            level = "error" if self._ended.startswith("failed") else "ok"
            return level, self._ended or "nothing is played", {}
        return "ok", f"playing: {player.session.phase}", {"phase": player.session.phase}


main = partial(run, ExcitationNode)


if __name__ == "__main__":
    sys.exit(main())
