"""Errors of recordings that the parameters of the others predict."""

from dataclasses import replace

import numpy as np
import pytest

from drawn_made import uncertain_drive
from stribeck.evaluate.assessment import Stepping
from stribeck.exports.left_out_runs import errors_of_one_more
from stribeck.exports.runs import batch_of_source, bench_runs

STEPPING = Stepping(0.005)


def two_recordings(drive, *resistances):
    """The same bench run, recorded once with each resistance relative to that of the drive."""
    runs = batch_of_source(drive, bench_runs(drive, 400.0, 7.4)[:1] * len(resistances), STEPPING)[1]
    moved = [
        STEPPING.motion(replace(drive, values={**drive.values, "R": share * drive.values["R"]}), runs)
        for share in resistances
    ]
    return replace(runs, position=np.stack([one.position[:, k] for k, one in enumerate(moved)], axis=1))


def root_mean_squares(errors):
    return np.sqrt(np.mean(errors**2, axis=0))


def test_of_two_runs_each_is_predicted_by_the_other():
    """Resistances 3 % around the estimate: each run alone identifies its own, twice as far from the other; with two runs √3 of the error counts."""
    drive = uncertain_drive("m1")
    drive = replace(drive, bounds={"R": (0.5 * drive.values["R"], 2.0 * drive.values["R"])})
    recorded = two_recordings(drive, 0.97, 1.03)
    own = STEPPING.motion(drive, recorded).position - recorded.position
    ratio = root_mean_squares(errors_of_one_more(drive, recorded, STEPPING)) / root_mean_squares(own)
    assert ratio == pytest.approx(3.0**0.5, rel=0.05)


@pytest.mark.ci
@pytest.mark.parametrize("case", ["no bounds", "one run", "at its bound"])
def test_without_parameters_to_identify_they_are_those_of_the_drive(case):
    drive = uncertain_drive("m1")
    if case != "no bounds":
        lower = drive.values["R"] if case == "at its bound" else 0.5 * drive.values["R"]
        drive = replace(drive, bounds={"R": (lower, 2.0 * drive.values["R"])})
    recorded = two_recordings(drive, *([1.03] if case == "one run" else [0.97, 1.03]))
    own = STEPPING.motion(drive, recorded).position - recorded.position
    np.testing.assert_array_equal(errors_of_one_more(drive, recorded, STEPPING), own)
