"""The small arm as a task of trajectory design."""

from pathlib import Path
from typing import Any

from small_arm import small_robot
from stribeck.excitation.section import excitation_section
from stribeck.excitation.task import ExcitationTask, task_of
from stribeck.files.robots import read_robot
from stribeck.identify.arm.model import load_arm


def small_task(folder: Path, harmonics: int = 3, duration: float = 4.0, **changes: Any) -> ExcitationTask:
    """The task of the small arm; ``collisions=False`` leaves bodies aside."""
    collisions = changes.pop("collisions", True)
    config = read_robot(str(small_robot(folder, **changes)))
    arm = load_arm(folder / "small.urdf", config.joints)
    section = excitation_section(config, len(arm))
    return task_of(config, section, arm, harmonics=harmonics, duration=duration, collisions=collisions)
