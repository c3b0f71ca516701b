r"""Numerical core: friction laws, servo models and live compensation on plain arrays; numpy only, no ROS, no files.

Conventions:

- SI units everywhere: rad, rad/s, N m, kg, m, s, V, A; temperature in °C.
- The pendulum hangs down at :math:`\theta = 0`; positive is counter-clockwise.
- :math:`\tau_m` is the motor torque at the output shaft, :math:`\tau_e` the external torque,
  :math:`\tau_f` the friction torque; all act on the output shaft in the positive direction, so
  :math:`J\ddot\theta = \tau_m + \tau_e + \tau_f`.
- Arrays of several runs are (T, R): time first. Candidates of a fit come last: (R, C).
- Parameter values are passed as a mapping from the keys of parameter files to floats or arrays.
"""

from stribeck.core.actuator import EFFECTS, Actuator
from stribeck.core.friction import LAWS, FrictionLaw, friction_budget, law_named
from stribeck.core.log import Batch, Log, Samples, Series, Setup, batch_of
from stribeck.core.parameters import Parameter, ParameterSet
from stribeck.core.step import simulate
from stribeck.core.trajectories import TRAJECTORIES, Trajectory, trajectory_named

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
