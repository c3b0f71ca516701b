"""The independent check catches every kind of violation."""

from dataclasses import replace

import numpy as np
import pytest

from designing import small_task
from stribeck.excitation.check import check
from stribeck.excitation.task import ExcitationTask
from stribeck.session.fourier import FourierTrajectory


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> ExcitationTask:
    return small_task(tmp_path_factory.mktemp("small"))


def gentle(
    task: ExcitationTask, amplitude: float = 0.1, offset: tuple[float, ...] = (0.0, 0.0, 0.05)
) -> FourierTrajectory:
    """A motion about an offset that all limits allow."""
    z = np.zeros(task.shape)
    z[:, 0] = amplitude * np.array([1.0, 1.0, 0.1])
    z[:, -1] = offset
    return task.trajectory(z)


def broken(task: ExcitationTask, trajectory: FourierTrajectory) -> set[str]:
    return {name for name, count in check(task, trajectory, rate=200.0).violations.items() if count}


def test_gentle_motion_is_clean(task: ExcitationTask) -> None:
    """Nothing is found where nothing is."""
    report = check(task, gentle(task))
    assert report.clean
    assert report.samples == 4001
    assert report.summary == ""


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("lower", np.array([0.001, -9.0, 0.0])),
        ("upper", np.array([-0.001, 9.0, 0.1])),
        ("velocity", np.array([0.01, 4.0, 1.0])),
        ("acceleration", np.array([0.01, 20.0, 5.0])),
        ("effort", np.array([0.5, 15.0, 20.0])),
        ("coefficient", np.array([0.01, 4.0, 1.0])),
    ],
)
def test_each_joint_limit_is_looked_at(task: ExcitationTask, name: str, change: np.ndarray) -> None:
    """The limit of one joint is moved into the motion."""
    expected = {"lower": "position", "upper": "position", "effort": "torque", "coefficient": "coefficients"}
    limits = replace(task.limits, **{name: change})
    assert broken(replace(task, limits=limits), gentle(task)) == {expected.get(name, name)}


def test_motion_that_does_not_end_at_rest_is_found(task: ExcitationTask) -> None:
    """Coefficients bent behind the back of the trajectory's own check."""
    trajectory = gentle(task)
    trajectory.sine[0] += 1e-6
    assert broken(task, trajectory) == {"rest"}
    trajectory = gentle(task)
    trajectory.cosine[1, 0] += 1e-6
    assert broken(task, trajectory) == {"rest"}


def test_reaching_the_floor_is_found(task: ExcitationTask) -> None:
    """The arm hangs down below its foot."""
    assert broken(task, gentle(task, offset=(1.5, 0.0, 0.05))) >= {"floor"}


def test_bodies_that_touch_are_found(task: ExcitationTask) -> None:
    """The arm is folded so that the slider meets the base; not so if these may touch."""
    folded = gentle(task, 0.01, offset=(1.3, 1.9, 0.03))
    found = broken(replace(task, floor=None), folded)
    assert found == {"self_collision"}
    ignored = frozenset(frozenset(("base", link)) for link in ("lower", "slider"))
    assert not broken(replace(task, floor=None, ignored=ignored), folded)
    assert not broken(replace(task, shapes=(), floor=None), folded)


def test_values_that_are_no_numbers_are_violations(task: ExcitationTask) -> None:
    """NaN keeps no limit."""
    trajectory = gentle(task)
    trajectory.offset[0] = np.nan
    assert "position" in broken(replace(task, shapes=(), floor=None), trajectory)
