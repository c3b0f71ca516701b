r"""Friction laws, servo models, time step and logs on plain arrays; numpy only, no ROS, no files."""

from stribeck.model.actuator import EFFECTS, Actuator
from stribeck.model.law import LAWS, FrictionLaw, friction_budget, law_named
from stribeck.model.log import Batch, Log, Samples, Series, Setup, batch_of
from stribeck.model.parameters import Parameter, ParameterSet
from stribeck.model.step import simulate
from stribeck.model.trajectories import TRAJECTORIES, Trajectory, trajectory_named

__all__ = [
    "EFFECTS",
    "LAWS",
    "TRAJECTORIES",
    "Actuator",
    "Batch",
    "FrictionLaw",
    "Log",
    "Parameter",
    "ParameterSet",
    "Samples",
    "Series",
    "Setup",
    "Trajectory",
    "batch_of",
    "friction_budget",
    "law_named",
    "simulate",
    "trajectory_named",
]
