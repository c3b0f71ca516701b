"""Identified servos in MuJoCo: a controller for joints, the same for MJX, and export as MJCF.

Nothing else in the package imports MuJoCo. :mod:`stribeck.mujoco.batch`, which runs on MJX, is imported by its
name: it brings JAX.
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
