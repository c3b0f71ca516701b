"""Settings of a compensator: output, safety limits and learning."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from stribeck.errors import ConfigError, check_valid
from stribeck.live.direction.motion import Tuning
from stribeck.live.friction import EFFORT_MEANINGS, EffortMeaning
from stribeck.live.learning.adaptation import AdaptationSettings

OutputMode = Literal["friction_only", "sum", "goal_offset", "current"]
OUTPUT_MODES: tuple[OutputMode, ...] = get_args(OutputMode)

Control = Literal["tracking", "impedance"]
CONTROLS: tuple[Control, ...] = get_args(Control)


@dataclass(frozen=True)
class Timing:
    """Times of a compensator.

    :param state_timeout: age of the last state above which the torque is zero, by arrival [s].
    :param command_timeout: age of the last command above which it is not passed on, by arrival, and is ignored as
        a goal, by stamps [s].
    :param ramp_time: from zero to full torque after a start or an untrusted state [s].
    :param loop_delay: from a measurement to the torque computed from it [s]; 0: two periods of the states.
    :param state_lag: states that arrive later than others by more than this are not used [s].
    """

    state_timeout: float = 0.04
    command_timeout: float = 0.1
    ramp_time: float = 0.5
    loop_delay: float = 0.0
    state_lag: float = 0.1

    def __post_init__(self) -> None:
        for name in ("state_timeout", "command_timeout"):
            if not 0.0 < getattr(self, name) <= 10.0:
                raise ConfigError(f"{name} must be in (0, 10] s, found {getattr(self, name):g}")
        for name in ("ramp_time", "loop_delay", "state_lag"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be zero or positive, found {getattr(self, name):g}")


@dataclass(frozen=True)
class Settings:
    """Settings of a compensator.

    :param mode: quantity that is published.
    :param effort_meaning: meaning of the effort in states: motor torque, torque at the link,
        or nothing usable, in which case load terms are zero.
    :param gain: fraction of the friction that is cancelled [1].
    :param timing: times and delays.
    :param slew: largest rate of change of the torque [N m/s] in the coordinates of the parameter files; 0 for
        :data:`TIMES_TO_FULL_TORQUE` times each joint's limit.
    :param other_joints: refuse states that also hold joints without a parameter file, or ignore these joints.
    :param tuning: behaviour at rest and at reversals of all joints, in the robot's coordinates; by default each
        joint's own.
    :param control: purpose of the goals. For tracking, the offset beyond the friction model is cancelled too; an
        impedance controller must stay compliant.
    :param adapt: learn the present friction of joints whose dynamics are known.
    :param certain_fraction: guaranteed fraction of the identified friction [1].
    :param learned_gain: gain that a joint approaches as its friction is learnt, at most 1.25 times ``gain``.
    """

    mode: OutputMode
    effort_meaning: EffortMeaning
    gain: float = 0.8
    timing: Timing = field(default_factory=Timing)
    slew: float = 0.0
    other_joints: Literal["refuse", "ignore"] = "refuse"
    tuning: Tuning | None = None
    control: Control = "tracking"
    adapt: bool = True
    certain_fraction: float = 0.25
    learned_gain: float = 1.0
    adaptation: AdaptationSettings = field(default_factory=AdaptationSettings)

    def __post_init__(self) -> None:
        check_valid(self.mode, OUTPUT_MODES, "unknown output mode")
        if self.effort_meaning not in EFFORT_MEANINGS:
            raise ConfigError(
                f"effort_meaning must be one of {', '.join(EFFORT_MEANINGS)}, found {self.effort_meaning!r}: state what the effort in the joint states is"
            )
        check_valid(self.control, CONTROLS, "unknown control")
        for name in ("certain_fraction", "learned_gain"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} must be between 0 and 1, found {getattr(self, name):g}")
        if not 0.0 <= self.slew < math.inf:
            raise ConfigError(f"slew must be zero or positive, found {self.slew:g}")
