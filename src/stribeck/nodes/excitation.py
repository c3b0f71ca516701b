"""The excitation node: plays trajectories at each gain on whatever moves the joints, and records every run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from stribeck.errors import ServoError, StribeckError
from stribeck.io.files import check_writable
from stribeck.io.messages import JOINT_COMMANDS, JOINT_STATES, Topic
from stribeck.nodes.base import ServiceNode, run, steady
from stribeck.nodes.commanders import (
    ActionCommander,
    Commander,
    ForwardCommander,
    GainSetter,
    ServoCommander,
    TrajectoryCommander,
)
from stribeck.nodes.excitation_setup import session_config
from stribeck.nodes.messages import TelemetryTopic, decoded, telemetry_topics
from stribeck.nodes.parameters import EXCITATION
from stribeck.nodes.player import Listener, Player
from stribeck.nodes.recording import OFFERS_PERIOD, Hearing, contract_topics
from stribeck.nodes.recording import TELEMETRY as TELEMETRY_TOPICS
from stribeck.session.bags import Outcome
from stribeck.session.directive import Directive
from stribeck.session.limits import SessionJoint

PROGRESS_PERIOD = 0.2
TELEMETRY_PERIOD = 0.05
"""Gain, torque and temperature are looked at this often [s]; recorded is everything."""

TELEMETRY = {"voltage": "voltage", "temperature": "temperature", "gain": "p_gain", "torque": "torque_enable"}
"""What a session wants to know of a servo, and its interface name."""


class ExcitationNode(ServiceNode):
    """Topics: ``joint_states`` and telemetry in; latched ``bench`` and ``~/result``, and ``~/progress`` out, as JSON.

    Services ``~/start`` and ``~/abort``: softly, at once when called again. What is commanded goes where the
    commander says (:mod:`stribeck.nodes.commanders`).
    """

    table = EXCITATION

    def __init__(self, **kwargs: Any) -> None:
        self._commander: Commander | None = None
        self._player: Player | None = None
        self._handles: list[Any] = []
        self._ended = ""
        self._hearing: Hearing | None = None
        super().__init__("excitation", **kwargs)
        self.steady_timer(OFFERS_PERIOD, self._follow_offers)
        self.create_service(Trigger, "~/start", self._on_start)
        self.create_service(Trigger, "~/abort", self._on_abort)

    # -- life cycle

    def _configure(self, values: Mapping[str, Any]) -> None:
        self._config = session_config(values)
        self._autoplay, self._record = values["autoplay"], values["record"]
        self._exit_when_done = values["exit_when_done"]
        if self._record:
            check_writable(self._config.output / "bag")
        self._settings = {"patience": values["patience"], "allow_overvoltage": values["allow_overvoltage"]}
        joints = self._config.joints
        self._index = {joint.name: j for j, joint in enumerate(joints)}
        self._bench = self.create_publisher(String, "bench", latched(len(joints) + 1))
        self._progress = self.create_publisher(String, "~/progress", latched(1))
        self._result = self.create_publisher(String, "~/result", latched(1))
        self._handles = [self._bench, self._progress, self._result]
        self._commander = self._commander_of(values, joints)
        self._subscribe()

    def _subscribe(self) -> None:
        """Hear what a session needs and a bag holds; what this node says itself it writes down itself."""
        takes: dict[Topic, Callable[[bytes], None]] = {JOINT_STATES: self._on_state}
        if isinstance(self._commander, ServoCommander):
            takes[JOINT_COMMANDS] = self._on_sent
        for topic in telemetry_topics():
            takes[TELEMETRY_TOPICS[topic.name]] = partial(self._on_telemetry, topic)
        heard = contract_topics()
        self._bag_topics = [found.topic for found in heard]
        self._read_at = 0.0
        self._hearing = Hearing(self, {found: takes[found.topic] for found in heard if found.topic in takes})

    def _follow_offers(self) -> None:
        if self._hearing is not None:
            self._hearing.follow_offers()

    def _activate(self) -> None:
        self._ended = ""
        if self._autoplay:
            self._begin()

    def _deactivate(self) -> None:
        player, self._player = self._player, None
        if player is not None:
            player.stop("the excitation node was deactivated")

    def _release(self) -> None:
        self._hearing = None
        commander, self._commander = self._commander, None
        if commander is not None:
            commander.destroy()
        handles, self._handles = self._handles, []
        for handle in handles:
            self.destroy_publisher(handle)

    def _commander_of(self, values: Mapping[str, Any], joints: tuple[SessionJoint, ...]) -> Commander:
        """The commander that the parameters name.

        :raises MissingDependencyError: if it needs what is not installed.
        """
        kind = values["commander"]
        target = values["gain_node"] or (values["servo_node"] if kind == "servo" else "")
        if kind == "servo":
            gains = GainSetter(self, target, values["gain_parameter"])
            return ServoCommander(self, joints, gains, values["servo_node"])
        make, usual = {
            "forward": (ForwardCommander, "forward_position_controller"),
            "trajectory": (TrajectoryCommander, "joint_trajectory_controller"),
            "trajectory_action": (ActionCommander, "joint_trajectory_controller"),
        }[kind]
        setter = GainSetter(self, target, values["gain_parameter"]) if target else None
        return make(self, joints, setter, self._on_sent, values["controller"] or usual)

    # -- playing

    def _begin(self) -> str:
        """Begin a session, and say so."""
        if self._commander is None:
            raise ServoError("configure the node first")
        self._shown_at, self._shown_play = 0.0, -1
        player = Player(
            self._config,
            self._commander,
            Listener(self._announce, self._show, self.say, self._done),
            topics=self._bag_topics if self._record else None,
            **self._settings,
        )
        self._player = player
        player.start()
        plays = len(self._config.plays)
        text = f"{plays} run{'s' if plays > 1 else ''}, about {player.session.duration:.0f} s"
        self.get_logger().info(text + (f", into {self._config.output}" if self._record else ""))
        return text

    def _on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not self._active:
            response.message = "activate the node first"
        elif self._player is not None and self._player.alive:
            response.message = f"already playing; call {self.get_name()}/abort first"
        else:
            try:
                response.success, response.message = True, self._begin()
            except StribeckError as error:
                response.success, response.message = False, str(error)
        return response

    def _on_abort(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._player is None or not self._player.alive:
            response.message = "nothing is played"
        else:
            self._player.abort()
            response.success, response.message = True, "returning to rest; call again to end at once"
        return response

    # What the player says, in its thread.

    def _announce(self, text: str) -> None:
        self._bench.publish(String(data=text))

    def _show(self, directive: Directive) -> None:
        now = steady()
        if directive.play != self._shown_play:
            self._shown_play = directive.play
            play, plays = self._config.plays[directive.play], len(self._config.plays)
            self.get_logger().info(
                f"run {directive.play + 1}/{plays}: {play.trajectory.name}, gain {play.kp:g}"
            )
        elif now - self._shown_at < PROGRESS_PERIOD and directive.phase not in ("finished", "aborted"):
            return
        self._shown_at = now
        self._progress.publish(String(data=json.dumps(self._progress_of(directive))))

    def _progress_of(self, directive: Directive) -> dict[str, Any]:
        plays = self._config.plays
        play = plays[directive.play]
        return {
            "phase": directive.phase,
            "run": directive.play + 1,
            "runs": len(plays),
            "trajectory": play.trajectory.name,
            "kp": play.kp,
            "progress": round(directive.progress, 4),
            "remaining": round(directive.remaining, 2),
        }

    def _done(self, outcome: Outcome) -> None:
        bags = [str(bag) for bag in outcome.bags]
        count = f"{len(bags)} bag{'' if len(bags) == 1 else 's'}"
        self._ended = f"{outcome.end}: {outcome.reason}" if outcome.reason else outcome.end
        self.say("error" if outcome.end == "failed" else "info", f"{self._ended}; {count}")
        result = {"end": outcome.end, "reason": outcome.reason, "bags": bags, "cut": outcome.cut}
        self._result.publish(String(data=json.dumps({"schema": 1, **result})))
        self.publish_diagnostics()
        if self._exit_when_done:
            self.exit_code = 0 if outcome.end == "finished" else 1

    # -- what is heard

    def _playing(self) -> Player | None:
        player = self._player
        return player if player is not None and player.alive else None

    def _on_state(self, data: bytes) -> None:
        if (player := self._playing()) is None:
            return
        arrival = steady()
        player.record(JOINT_STATES, data)
        message = deserialize_message(data, JointState)
        velocities = message.velocity
        for place, name in enumerate(message.name):
            joint = self._index.get(name)
            if joint is not None and place < len(message.position):
                velocity = velocities[place] if place < len(velocities) else np.nan
                player.known.move(joint, arrival, message.position[place], velocity)

    def _on_sent(self, data: bytes) -> None:
        """Commands as sent, by the servo node or by our commander."""
        if (player := self._playing()) is None:
            return
        player.record(JOINT_COMMANDS, data)
        message = deserialize_message(data, JointState)
        for name, position in zip(message.name, message.position, strict=False):
            if name in self._index:
                player.sent(self._index[name], position)

    def _on_telemetry(self, topic: TelemetryTopic, data: bytes) -> None:
        if (player := self._playing()) is None:
            return
        player.record(TELEMETRY_TOPICS[topic.name], data)
        now = time.monotonic()
        if now - self._read_at < TELEMETRY_PERIOD:
            return
        self._read_at = now
        for name, values in decoded(topic, data):
            if name in self._index:
                told = {key: values[interface] for key, interface in TELEMETRY.items() if interface in values}
                player.known.tell(self._index[name], **told)

    def _status(self) -> tuple[str, str, Mapping[str, Any]]:
        player = self._playing()
        if player is None:
            level = "error" if self._ended.startswith("failed") else "ok"
            return level, self._ended or "nothing is played", {}
        return "ok", f"playing: {player.session.phase}", {"phase": player.session.phase}


def latched(depth: int) -> QoSProfile:
    """Quality of a topic whose last messages reach subscribers that come late."""
    return QoSProfile(depth=depth, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def main() -> int:
    """Run the node until it is told to end."""
    return run(ExcitationNode)


if __name__ == "__main__":
    sys.exit(main())
