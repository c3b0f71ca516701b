"""Configuration of the follower."""

from dataclasses import dataclass

from lerobot.robots.config import RobotConfig
from lerobot.robots.so_follower import SOFollowerConfig


@RobotConfig.register_subclass("stribeck_follower")
@dataclass
class StribeckFollowerConfig(RobotConfig, SOFollowerConfig):
    """An SO follower with compensation.

    :param drives: file of drives, as ``stribeck identify robot`` writes it, from recordings in degrees.
    :param urdf: of the arm, to bear its weight; empty: friction alone.
    :param share: share of the friction that is cancelled.
    :param rate: cycles of the bus per second [Hz].
    :param loop_delay: time from a measurement to the answer of the servos [s]; 0: two cycles.
    """

    drives: str = ""
    urdf: str = ""
    share: float = 0.8
    rate: float = 100.0
    loop_delay: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        super().__post_init__()
        if not self.drives:
            raise ValueError("drives: name the file of drives that `stribeck identify robot` wrote")
        if not self.use_degrees:
            raise ValueError("use_degrees: the drives are in radians; set it to true")
        if not 10.0 <= self.rate <= 250.0:
            raise ValueError(f"rate: expected 10 to 250 Hz, found {self.rate:g}")
