"""Identified servos in MuJoCo: joint controllers for MuJoCo and MJX, and export as MJCF.

No other package imports MuJoCo. :mod:`stribeck.mujoco.batch`, which needs JAX, is not imported here.
"""

from stribeck.errors import MissingDependencyError

try:
    import mujoco  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingDependencyError(
        f"stribeck.mujoco needs {error.name}: pip install 'stribeck[mujoco]'"
    ) from None

from stribeck.mujoco.controller import Controller
from stribeck.mujoco.export import PlainJoint, export_onto, exported, snippet
from stribeck.mujoco.servo import Servo

__all__ = ["Controller", "PlainJoint", "Servo", "export_onto", "exported", "snippet"]
