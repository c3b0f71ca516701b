"""Identified servos in MuJoCo: joint controllers for MuJoCo and MJX.

Only this package and :mod:`stribeck.exports` import MuJoCo. :mod:`stribeck.mujoco.batch`, which needs JAX, is not imported here.
"""

from stribeck.errors import MissingDependencyError

try:
    import mujoco  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingDependencyError(
        f"stribeck.mujoco needs {error.name}: pip install 'stribeck[mujoco]'"
    ) from None

from stribeck.model.joint import Servo
from stribeck.mujoco.controller import Controller

__all__ = ["Controller", "Servo"]
