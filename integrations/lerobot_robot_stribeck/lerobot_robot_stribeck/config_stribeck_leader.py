"""Configuration of the leader."""

from dataclasses import dataclass

from lerobot.teleoperators.config import TeleoperatorConfig
from lerobot.teleoperators.so_leader import SOLeaderConfig


@TeleoperatorConfig.register_subclass("stribeck_leader")
@dataclass
class StribeckLeaderConfig(TeleoperatorConfig, SOLeaderConfig):
    """An SO leader that holds its pose and yields to the hand.

    :param drives: file of drives of the leader, as ``stribeck identify robot`` writes it, from recordings in degrees.
    :param urdf: of the leader, to bear its weight; empty: it is held by its servos alone, and sags.
    :param share: share of the friction that is cancelled.
    :param slip: how far a joint is pulled before its pose follows, beyond what its friction takes [rad].
    :param torque_limit: largest torque of the servos, as a share of their own.
    :param feedback_limit: largest torque of ``send_feedback`` [N m].
    :param rate: cycles of the bus per second [Hz].
    """

    drives: str = ""
    urdf: str = ""
    share: float = 0.8
    slip: float = 0.02
    torque_limit: float = 0.5
    feedback_limit: float = 0.3
    rate: float = 100.0

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not self.drives:
            raise ValueError("drives: name the file of drives that `stribeck identify robot` wrote")
        if not self.use_degrees:
            raise ValueError("use_degrees: the drives are in radians; set it to true")
        if not 10.0 <= self.rate <= 250.0:
            raise ValueError(f"rate: expected 10 to 250 Hz, found {self.rate:g}")
        if not 0.0 < self.torque_limit <= 1.0:
            raise ValueError(
                f"torque_limit: expected a share above 0, at most 1, found {self.torque_limit:g}"
            )
        if not self.slip > 0.0:
            raise ValueError(f"slip: expected a positive angle in rad, found {self.slip:g}")
        if not self.feedback_limit >= 0.0:
            raise ValueError(f"feedback_limit: expected zero or more N m, found {self.feedback_limit:g}")
