"""How a compensator works: what goes out, how cautious it is, what it learns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from stribeck.core.adaptation import AdaptationSettings
from stribeck.core.compensation import EFFORT_MEANINGS, EffortMeaning
from stribeck.core.direction import Tuning
from stribeck.errors import ConfigError

OutputMode = Literal["friction_only", "sum", "goal_offset", "current"]
OUTPUT_MODES: tuple[OutputMode, ...] = get_args(OutputMode)

Control = Literal["tracking", "impedance"]
CONTROLS: tuple[Control, ...] = get_args(Control)


@dataclass(frozen=True)
class Settings:
    """How a compensator works.

    :param mode: what goes out.
    :param effort_meaning: what the effort of the states is: torque of the motor, torque at the link,
        or nothing that can be used, in which case load terms are zero.
    :param gain: share of the friction that is cancelled [1].
    :param state_timeout: age of the last state from which the torque is zero [s].
    :param command_timeout: age of the last command from which it is not passed on, and says nothing of
        the intended motion any more [s]. The first is decided by arrival, the second by stamps.
    :param ramp_time: from zero to full torque after a start or a doubt [s].
    :param slew: largest change of torque [N m/s] in the coordinates of the parameter files; 0 for
        :data:`TIMES_TO_FULL_TORQUE` times each joint's limit.
    :param other_joints: whether states that hold joints without a parameter file count as a doubt.
    :param tuning: rest and reversals of all joints, in the robot's coordinates; by default each joint's own.
    :param control: what the goals are for. Where they are tracked the offset that the friction model leaves
        is cancelled too; an impedance is to yield.
    :param adapt: learn the present friction of joints whose dynamics are known.
    :param sure: share of the identified friction that is there for sure, come what may [1].
    :param loop_delay: from a measurement to the torque that it makes [s]; 0: two periods of the states.
    :param state_lag: states that arrive later than others by more than this are not used [s].
    :param learned_gain: the gain towards which that of a joint goes as its friction is learnt, at most
        1.25 times ``gain``.
    """

    mode: OutputMode
    effort_meaning: EffortMeaning
    gain: float = 0.8
    state_timeout: float = 0.04
    command_timeout: float = 0.1
    ramp_time: float = 0.5
    slew: float = 0.0
    other_joints: Literal["refuse", "ignore"] = "refuse"
    tuning: Tuning | None = None
    control: Control = "tracking"
    adapt: bool = True
    sure: float = 0.25
    loop_delay: float = 0.0
    state_lag: float = 0.1
    learned_gain: float = 1.0
    adaptation: AdaptationSettings = field(default_factory=AdaptationSettings)

    def __post_init__(self) -> None:
        if self.mode not in OUTPUT_MODES:
            raise ConfigError(f"unknown output mode {self.mode!r}; valid: {', '.join(OUTPUT_MODES)}")
        if self.effort_meaning not in EFFORT_MEANINGS:
            raise ConfigError(
                f"effort_meaning must be one of {', '.join(EFFORT_MEANINGS)}, found {self.effort_meaning!r}: "
                "say what the effort in the joint states is"
            )
        for name in ("state_timeout", "command_timeout"):
            if not 0.0 < getattr(self, name) <= 10.0:
                raise ConfigError(f"{name} must be in (0, 10] s, found {getattr(self, name):g}")
        if self.control not in CONTROLS:
            raise ConfigError(f"unknown control {self.control!r}; valid: {', '.join(CONTROLS)}")
        for name in ("sure", "learned_gain"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} must be between 0 and 1, found {getattr(self, name):g}")
        for name in ("ramp_time", "slew", "loop_delay", "state_lag"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be zero or positive, found {getattr(self, name):g}")
