"""Parameter files of an arm's joints."""

from types import SimpleNamespace

import numpy as np
import pytest

from stribeck.identify.arm.friction.drives import element_estimates, search_bounds
from stribeck.model.law import LAWS


def test_what_cannot_be_negative_has_no_negative_limit():
    """What happened: a load term at its bound 0 got the interval -0.02 to 0.02, and its file did not say that it is at the bound.
    What must happen: it is at the bound, and intervals of other magnitudes end at 0; those with a sign do not."""
    values = {"armature": 0.1, "friction_base": 0.01, "load_friction_base": 0.0, "torque_offset": 0.01}
    fit = SimpleNamespace(
        values=lambda element: values,
        machine=SimpleNamespace(elements=("joint",)),
        sigma=(np.array([0.001, 0.01, 0.01, 0.01]),),
        bounds=(np.array([[0.0, np.inf], [0.0, np.inf], [0.0, 0.5], [-np.inf, np.inf]]),),
    )
    found = element_estimates(fit, "joint", "rotary")
    assert found["armature"].status == "determined"
    assert found["friction_base"].interval == (0.0, pytest.approx(0.0296, abs=1e-4))
    assert (found["load_friction_base"].status, found["load_friction_base"].side) == ("at bound", "lower")
    assert found["load_friction_base"].interval is None
    assert found["torque_offset"].interval[0] < 0.0


def test_files_state_the_bounds_that_the_search_had():
    """Those with two ends, which JSON can hold: draws of the other parameters keep their sign."""
    law = LAWS["m4"]
    ends = np.tile([0.0, np.inf], (len(law.parameter_names) + 1, 1))
    names = ("armature", *law.parameter_names)
    ends[names.index("load_friction_base")] = 0.0, 0.5
    ends[names.index("alpha")] = 0.5, 2.0
    fit = SimpleNamespace(laws=(law,), bounds=(ends,))
    assert search_bounds(fit, 0) == {"load_friction_base": (0.0, 0.5), "alpha": (0.5, 2.0)}
