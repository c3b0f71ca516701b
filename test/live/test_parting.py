"""The last words for a controller that has fallen silent."""

import numpy as np

from compensating import Driven, model
from stribeck.live.parting import REPEATS, Parting

OWN, FRICTION = np.array([0.05, -0.02]), np.array([0.03, -0.01])
TIMEOUT, TICK = 0.1, 0.01


def parting(slew: float) -> Parting:
    """Of two joints with a slew limit [N m/s]."""
    driven = Driven([model("a"), model("b")], mode="sum", slew=slew)
    return Parting(driven.compensator.fade, TIMEOUT)


def words(found: Parting, begin: float, count: int = 200) -> list[np.ndarray]:
    """What is said from ``begin`` on, in ticks."""
    said = (found.due(begin + TICK * k) for k in range(count))
    return [effort for effort in said if effort is not None]


def test_the_friction_fades_out_and_then_nothing_is_said() -> None:
    """In steps of at most the slew limit, down to the controller's own effort, three times."""
    found = parting(slew=0.5)
    found.passed_on(7.0, OWN, FRICTION)
    assert words(found, 7.0, 11) == [], "as long as the last command counts"
    said = np.array(words(found, 7.1 + 1e-6))
    rest = said - OWN
    assert np.all(np.abs(np.diff(np.vstack([FRICTION, rest]), axis=0)) <= 0.5 * TICK * 1.001)
    assert np.all(np.diff(np.abs(rest), axis=0) <= 1e-15)
    assert np.count_nonzero(np.all(np.abs(rest) < 1e-15, axis=1)) == REPEATS
    assert words(found, 20.0) == []


def test_nothing_is_owed_without_friction_or_after_somebody_else_took_over() -> None:
    """The robot has been told the controller's own effort already, or another tells it."""
    found = parting(slew=0.0)
    assert words(found, 7.0) == []
    found.passed_on(7.0, OWN, 0.0 * OWN)
    assert words(found, 7.2) == []
    found.passed_on(8.0, OWN, FRICTION)
    found.forget()
    assert words(found, 9.0) == []


def test_a_controller_that_speaks_again_ends_it() -> None:
    """And is owed the same once more."""
    found = parting(slew=0.1)
    found.passed_on(7.0, OWN, FRICTION)
    assert len(words(found, 7.11, 3)) == 3
    found.passed_on(7.2, OWN, FRICTION)
    assert words(found, 7.21, 5) == []
    assert len(words(found, 7.31)) > REPEATS
