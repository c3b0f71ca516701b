"""A sweep recorded as one file per speed: each file was judged alone, was no sweep, and its ramps counted as errors."""

from dataclasses import replace

from joint_tables import columns, sweep, write_table
from stribeck.identify.joint.identify import identify_joint
from stribeck.identify.joint.recording import recording_of
from stribeck.survey.joint_table import read_joint_table

SPEEDS = (0.02, 0.05, 0.1, 0.2, 0.4)


def recording(folder, name, seed, *speeds):
    path = write_table(folder / f"{name}.csv", columns(sweep(speeds), seed=seed))
    return recording_of(read_joint_table(path))


def test_errors_of_a_sweep_are_those_of_its_plateaus_however_it_is_divided(tmp_path):
    """Of the fitted files those of the rows that were fitted, and one that is predicted has the error of its like among them."""
    files = [recording(tmp_path, f"at_{speed:g}", k, speed) for k, speed in enumerate(SPEEDS)]
    again = recording(tmp_path, "again", 2, SPEEDS[2])
    result = identify_joint(files, [again])
    assert len(result.plateaus) == 2 * len(SPEEDS)
    runs = iter(result.runs)
    rows = [sum(int(next(runs).kept.sum()) for _ in one.runs) for one in files]
    assert [one.rows for one in result.train] == rows
    assert rows[2] < sum(len(run.time) for run in files[2].runs)
    assert result.validation == (replace(result.train[2], file="again.csv"),)
