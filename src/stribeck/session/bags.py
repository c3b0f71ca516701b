"""Records a session: one bag per run, with its name and the content of ``/bench``."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

import stribeck
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import Pendulum
from stribeck.model.log import Setup
from stribeck.recordings.bags.messages import BENCH, JOINT_COMMANDS, RawMessage, joint_state, text
from stribeck.recordings.bags.recorder import RunWriter
from stribeck.recordings.bench import BenchDescription
from stribeck.session.directive import Aborted, Directive, RunEnded, RunStarted
from stribeck.session.limits import Play


@dataclass(frozen=True)
class BenchJoint:
    """Metadata of a joint in a recording.

    :param actuator: family in ``config/actuators``, or a YAML file.
    :param load: the pendulum, ``None`` for a joint of a robot.
    :param ki: integral gain, in firmware units.
    :param kd: derivative gain.
    """

    name: str
    actuator: str
    load: Pendulum | None
    ki: float = 0.0
    kd: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How a session ended.

    :param bags: finished bags.
    :param end: ``finished``, ``interrupted`` by the user, or ``failed``.
    :param reason: why it did not finish, empty if it did.
    :param cut: bag of the run that was cut short, empty for none.
    :param disturbed: bags of runs that late states or lost answers cut short, which readers leave out.
    :param late: whether it ended because states or answers were late too often or for too long.
    """

    bags: tuple[Path, ...]
    end: Literal["finished", "interrupted", "failed"]
    reason: str = ""
    cut: str = ""
    disturbed: tuple[Path, ...] = ()
    late: bool = False


class SessionBags:
    """Follows a session and records every run in a bag.

    :param folder: for the bags.
    :param joints: the joints of the session.
    :param writer: writes the bags; ``None`` to record nothing.
    :param supply_voltage: as set on the power supply [V]; ``None``: see :attr:`voltage`.
    :param announce: receives every text of ``/bench``.
    :ivar goals: last goals sent, (J,) [rad], NaN for none; set by the caller.
    :ivar voltage: supply voltage measured at rest, (J,) [V]; set by the caller.
    :ivar first: creates further initial messages of a bag from the calendar time [ns].
    """

    def __init__(
        self,
        folder: Path,
        joints: Sequence[BenchJoint],
        writer: RunWriter[Any] | None,
        supply_voltage: float | None = None,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self.joints = tuple(joints)
        self.writer = writer
        self.supply_voltage = supply_voltage
        self.goals = np.full(len(self.joints), math.nan)
        self.voltage = np.full(len(self.joints), math.nan)
        self.first: Callable[[int], Sequence[RawMessage]] = lambda _: ()
        self._announce = announce
        self._actuators = [load_actuator(joint.actuator).name for joint in self.joints]
        self._run_id = self._reason = self._cut = ""
        self._aborted = self._late = False
        self._paths: set[Path] = set()
        self._disturbed: list[Path] = []

    def follow(self, directive: Directive, time: int) -> None:
        """Start and end bags according to the events of a directive.

        :param time: calendar time [ns].
        """
        for event in directive.events:
            match event:
                case RunStarted(play=play):
                    self._start(play, directive, time)
                case RunEnded(reason=reason, disturbed=True):
                    self._disturbed.append(self.folder / self._run_id)
                    self._say_end(time, {"aborted": reason})
                case RunEnded(reason=reason):
                    self._say_end(time)
                    self._cut = self._run_id if reason is not None else ""
                case Aborted(reason=reason, late=late):
                    self._reason, self._aborted, self._late = reason, True, late
                case _:
                    pass

    @property
    def failure(self) -> str:
        """Reason why recording has stopped, empty while it works."""
        return self.writer.failure if self.writer is not None else ""

    def close(self) -> None:
        """Finish the last bag and wait for it."""
        if self.writer is not None:
            self.writer.close()

    def outcome(self, *, user: bool) -> Outcome:
        """How the session ended; call it after :meth:`close`.

        :param user: whether the user caused an abort.
        """
        written = self.writer.bags if self.writer is not None else []
        disturbed = tuple(bag for bag in written if bag in self._disturbed)
        bags = tuple(bag for bag in written if bag not in self._disturbed)
        if self.failure:
            return Outcome(bags, "failed", self.failure, self._cut, disturbed)
        if self._aborted:
            end: Literal["interrupted", "failed"] = "interrupted" if user else "failed"
            return Outcome(bags, end, self._reason, self._cut, disturbed, self._late)
        return Outcome(bags, "finished", "", self._cut, disturbed)

    def _start(self, play: Play, directive: Directive, time: int) -> None:
        path = self._new_path(play, time)
        self._run_id = path.name
        texts = self._benches(play)
        for words in texts:
            self._announce(words)
        if self.writer is not None:
            messages = [RawMessage(BENCH, time, text(words)) for words in texts]
            # A log without goals during the run needs the goal sent before it.
            held = np.flatnonzero(np.isfinite(self.goals))
            if np.isnan(directive.goals).any() and held.size:
                names = [self.joints[j].name for j in held]
                data = joint_state(time, names, self.goals[held].tolist())
                messages.append(RawMessage(JOINT_COMMANDS, time, data))
            self.writer.start(path, [*messages, *self.first(time)])

    def _new_path(self, play: Play, time: int) -> Path:
        """A new path from trajectory, gain and time. The writer may not have created the previous bags yet."""
        moment = datetime.fromtimestamp(1e-9 * time).strftime("%Y%m%d_%H%M%S")
        name = f"{play.trajectory.name}_kp{play.kp:g}_{moment}"
        path, number = self.folder / name, 2
        while path in self._paths or path.exists():
            path, number = self.folder / f"{name}_{number}", number + 1
        self._paths.add(path)
        return path

    def _say_end(self, time: int, more: Mapping[str, Any] = MappingProxyType({})) -> None:
        words = json.dumps({"run_id": self._run_id, "event": "end", **more})
        self._announce(words)
        if self.writer is not None:
            self.writer.end([RawMessage(BENCH, time, text(words))])

    def _benches(self, play: Play) -> list[str]:
        """The texts of ``/bench`` for a run; without a load for joints of a robot."""
        texts = []
        for joint, actuator, voltage in zip(self.joints, self._actuators, self.voltage, strict=True):
            supply, name = self.supply_voltage or float(voltage), play.trajectory.name
            if joint.load is not None:
                setup = Setup(*joint.load, supply_voltage=supply, kp=play.kp, ki=joint.ki, kd=joint.kd)
                texts.append(BenchDescription(self._run_id, joint.name, actuator, name, setup).to_json())
                continue
            content = {
                "run_id": self._run_id,
                "joint": joint.name,
                "actuator": actuator,
                "trajectory": name,
                "supply_voltage": supply,
                "kp": play.kp,
                "ki": joint.ki,
                "kd": joint.kd,
                "software": f"stribeck {stribeck.__version__}",
            }
            texts.append(json.dumps(content))
        return texts
