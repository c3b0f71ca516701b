"""Programs of the folder examples answer --help, and a call without arguments, with their usage."""

from importlib.util import find_spec

import pytest

from helpers import REPOSITORY
from usage import answers

PROGRAMS = sorted(
    path
    for path in (REPOSITORY / "examples").rglob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
)
NEEDS = {
    "arm.py": "mujoco",
    "batch.py": "mujoco",
    "compensate_go2.py": "mujoco",
    "demo_arm.py": "pinocchio",
    "emulated_so101.py": "pinocchio",
    "identify_go2.py": "jax",
    "identify_so101.py": "jax",
    "robot_in_mujoco.py": "mujoco",
    "validate_2r.py": "jax",
    "what_compensation_gains.py": "pinocchio",
}
"""Libraries that they import before anything else."""

WITHOUT_ARGUMENTS = {
    "arm.py",
    "batch.py",
    "demo_arm.py",
    "reflect_force.py",
    "stop_on_contact.py",
    "validate_2r.py",
}
"""Programs that need none, and run."""


def installed(path):
    return path.name not in NEEDS or find_spec(NEEDS[path.name]) is not None


@pytest.fixture(scope="module")
def answered():
    """Answers to --help, and to no words, by program."""
    programs = [path for path in PROGRAMS if installed(path)]
    alone = [path for path in programs if path.name not in WITHOUT_ARGUMENTS]
    calls = [*((path, ("--help",)) for path in programs), *((path, ()) for path in alone)]
    return dict(zip(calls, answers([(str(path), words) for path, words in calls]), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_states_its_usage(path, answered):
    """--help on stdout with exit code 0; without the arguments that it needs, usage and the reason with exit code 2."""
    if path.name in NEEDS:
        pytest.importorskip(NEEDS[path.name])
    code, out, err = answered[path, ("--help",)]
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: {path.name}")
    if path.name in WITHOUT_ARGUMENTS:
        return
    code, out, err = answered[path, ()]
    assert (code, out) == (2, "")
    assert err.startswith(f"usage: {path.name}")
    assert err.splitlines()[-1].startswith(f"{path.name}: error: the following arguments are required")
